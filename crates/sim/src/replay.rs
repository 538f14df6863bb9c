//! Replay: the inputs of a recorded run, and nothing else, give every other event again (E-18).

use crate::journal::Journal;
use selvedge_engine::{Graph, Input, Record, State};
use std::sync::Arc;

/// Replays a journal.
///
/// # Errors
/// The first event that comes out differently.
pub fn replay(graph: &Arc<Graph>, journal: &Journal) -> Result<(), String> {
    let mut state = State::new(Arc::clone(graph));
    for (at, recorded) in journal.records()?.iter().enumerate() {
        let event = match Input::from_event(recorded.event.clone()) {
            Some(input) => {
                state.tick(recorded.at);
                state.accept(input)
            }
            None => state.step(),
        };
        let Some(event) = event else { return Err(format!("E-18: event {} is not derived", at + 1)) };
        let record = Record { at: state.tick(0), event };
        let (old, new) = (text(recorded)?, text(&record)?);
        if old != new {
            return Err(format!("E-18: event {} differs\n  recorded {old}\n  replayed {new}", at + 1));
        }
        state.apply(&record.event);
    }
    Ok(())
}

fn text(record: &Record) -> Result<String, String> {
    serde_json::to_string(record).map_err(|error| error.to_string())
}
