//! What nodes wait for, told once each (P-20): a node whose thread is free and which still can't start, and a call
//! that has to come after other nodes' calls.

use crate::live::track::{Phase, Track};
use selvedge_engine::{NodeIx, State};
use selvedge_host::timeline::{News, Timeline};
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
    pub(super) fn new(timeline: &Timeline, state: &State) -> Self {
        Self { track: Track::new(timeline, state), begun: false, told: HashMap::new() }
    }

    /// What there is to tell after news.
    pub(super) fn news(&mut self, timeline: &Timeline, state: &State, news: &News) -> Vec<String> {
        let moved = self.track.follow(timeline, state, news);
        if state.ended().is_some() {
            return Vec::new();
        }
        let track = &self.track;
        self.begun &= moved.is_some();
        let ended = |node: &NodeIx| !matches!(track.phase(*node), Phase::Waiting | Phase::Running);
        let mut freed: BTreeSet<usize> = moved
            .iter()
            .flatten()
            .filter(|node| ended(node))
            .filter_map(|node| track.lane_of(*node))
            .collect();
        if !std::mem::replace(&mut self.begun, true) {
            freed.extend(0..track.lanes().len());
        }
        let starts = freed.into_iter().filter_map(|lane| {
            let last = track.last_started(lane);
            let free = last.is_none_or(|node| track.phase(node) != Phase::Running);
            let head = track.head(lane).filter(|_| free)?;
            Some((head, track.waits(head)))
        });
        let touched: BTreeSet<NodeIx> =
            news.nodes.iter().filter_map(|row| track.node_at(timeline, *row)).collect();
        let calls = touched.into_iter().filter(|node| track.phase(*node) == Phase::Running);
        let calls = calls.filter_map(|node| Some((node, track.held(state, node)?)));
        let all: Vec<(NodeIx, String)> = starts.chain(calls).filter(|(_, why)| !why.is_empty()).collect();
        let mut news = Vec::new();
        for (node, why) in all {
            if self.told.get(&node) != Some(&why) {
                news.push(format!("{} {why}", track.title(node)));
                self.told.insert(node, why);
            }
        }
        news
    }
}
