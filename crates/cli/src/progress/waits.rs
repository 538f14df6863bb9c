//! What nodes wait for, told once each (P-20): a node whose thread is free and which still can't start, and a call
//! that has to come after other nodes' calls.

use crate::live::track::{Phase, Track};
use selvedge_engine::{Event, NodeIx, Record, State};
use std::collections::{BTreeSet, HashMap};

/// What was told so far.
#[derive(Debug)]
pub(super) struct Waits {
    track: Track,
    /// Whether the first nodes have had their chance to start.
    begun: bool,
    told: HashMap<NodeIx, String>,
}

impl Waits {
    /// Nothing was told yet.
    pub(super) fn new(state: &State) -> Self {
        Self { track: Track::new(state), begun: false, told: HashMap::new() }
    }

    /// Takes events in; what there is to tell after them.
    pub(super) fn news(&mut self, state: &State, records: &[Record]) -> Vec<String> {
        let (mut freed, mut running) = (BTreeSet::new(), BTreeSet::new());
        for record in records {
            match &record.event {
                Event::Resumed { .. } | Event::Forked(_) | Event::Spliced { .. } => {
                    (self.track, self.begun) = (Track::new(state), false)
                }
                Event::NodeStarted { node, .. } => {
                    if let Some(node) = self.track.node(node) {
                        self.track.started(node);
                        running.insert(node);
                    }
                }
                Event::NodeFinished { node, fault, .. } => {
                    if let Some(node) = self.track.node(node) {
                        self.track.finished(node, fault.is_some());
                        freed.extend(self.track.lane_of(node));
                    }
                }
                Event::NodeSkipped { node, .. } => {
                    if let Some(node) = self.track.node(node) {
                        self.track.skipped(node);
                        freed.extend(self.track.lane_of(node));
                    }
                }
                Event::Appended { node, .. } => running.extend(self.track.node(node)),
                Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                    running.extend(state.pending().get(effect).map(|pending| state.outermost(pending.node)));
                }
                _ => {}
            }
        }
        self.track.retire(state);
        if state.ended().is_some() {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.begun, true) {
            freed.extend(0..self.track.lanes().len());
        }
        let starts = freed.into_iter().filter_map(|lane| {
            let last = self.track.last_started(lane);
            let free = last.is_none_or(|node| self.track.phase(node) != Phase::Running);
            let head = self.track.head(lane).filter(|_| free)?;
            Some((head, self.track.waits(head)))
        });
        let calls = running.iter().filter_map(|node| Some((*node, self.track.held(state, *node)?)));
        let all: Vec<(NodeIx, String)> = starts.chain(calls).filter(|(_, why)| !why.is_empty()).collect();
        let mut news = Vec::new();
        for (node, why) in all {
            if self.told.get(&node) != Some(&why) {
                news.push(format!("{} {why}", self.track.title(node)));
                self.told.insert(node, why);
            }
        }
        news
    }
}
