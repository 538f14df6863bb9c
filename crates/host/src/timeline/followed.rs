//! A run that is followed, record by record.

use super::Timeline;
use selvedge_engine::{Graph, Record, State};
use std::slice;
use std::sync::Arc;

/// What a run is after so many records, and what has happened in it.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Its state.
    pub state: State,
    /// What happened.
    pub timeline: Timeline,
}

impl Followed {
    /// A run whose journal begins with this graph, before its first event.
    pub fn new(graph: &Arc<Graph>) -> Self {
        Self::from(State::new(Arc::clone(graph)))
    }

    /// Takes in the next record.
    pub fn take(&mut self, record: &Record) {
        self.state.apply_record(record);
        self.timeline.events(&self.state, slice::from_ref(record));
    }
}

impl From<State> for Followed {
    /// Of a state before its first event.
    fn from(state: State) -> Self {
        let timeline = Timeline::new(state.graph());
        Self { state, timeline }
    }
}
