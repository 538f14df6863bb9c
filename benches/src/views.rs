//! Looking at a part of a long run, once it is loaded.

use crate::measure::{emit, median, timed};
use crate::ports::Echo;
use crate::runs::{driver, runtime, start};
use crate::{Result, plans};
use selvedge_engine::{Input, State};
use selvedge_runtime::{Controls, Journal};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;

/// How often each look is repeated for one measurement.
const LOOKS: u32 = 100;

pub(crate) fn views(scale: f64) -> Result<()> {
    let events = (100_000.0 * scale) as usize;
    let graph = plans::compile(&plans::steps(events / 6 + 1).to_string())?;
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let begun = vec![Input::Start(Box::new(start()))];
    let mut controls = Controls::default();
    runtime()?.block_on(driver(Arc::new(Echo)).drive("x", &mut state, &mut journal, begun, &mut controls))?;
    let name = "log";
    let thread = state.view().thread(name).ok_or("no thread")?;
    let node = &graph.nodes.values().last().ok_or("no node")?.id;
    let last = median(|| looks(|| state.view().thread(name).map(|thread| thread.last(20).iter().count())))?;
    let result = median(|| looks(|| state.view().result(node).map(|result| result.output)))?;
    emit(
        "views",
        json!({"events": state.events(), "messages": thread.len(), "last_20_messages_us": last, "result_us": result}),
    );
    Ok(())
}

/// Microseconds of one look.
fn looks<T>(look: impl Fn() -> Option<T>) -> Result<f64> {
    let wall = timed(|| {
        for _ in 0..LOOKS {
            black_box(look()).ok_or("nothing to be seen")?;
        }
        Ok(())
    })?;
    Ok(wall / f64::from(LOOKS) * 1e6)
}
