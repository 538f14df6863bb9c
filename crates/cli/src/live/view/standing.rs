//! How many of the nodes that have started stand where, and in which lanes: kept up node by node, so that a picture costs what it
//! shows, however many there are.

use selvedge_host::timeline::NodeStatus;
use std::collections::{BTreeSet, HashMap};

/// Where a node stands, and when that changes by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stand {
    pub(super) status: NodeStatus,
    /// When the time of a call that waits to be tried again has come.
    pub(super) until: Option<i64>,
    /// Whether it counts: not if it waits for what it has opened.
    pub(super) counts: bool,
    /// The lane that it runs in.
    pub(super) lane: Option<usize>,
}

/// The nodes that have started and not ended, by where they stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    nodes: HashMap<usize, Stand>,
    counts: HashMap<NodeStatus, usize>,
    lanes: HashMap<NodeStatus, BTreeSet<usize>>,
    /// Those whose standing changes by itself, by when.
    due: BTreeSet<(i64, usize)>,
}

impl Standing {
    /// A node stands there now, or has ended.
    pub(super) fn put(&mut self, row: usize, stand: Option<Stand>) {
        let before = match stand {
            Some(stand) => self.nodes.insert(row, stand),
            None => self.nodes.remove(&row),
        };
        if before == stand {
            return;
        }
        if let Some(Stand { status, until, counts, lane }) = before {
            *self.counts.entry(status).or_default() -= usize::from(counts);
            if let Some(until) = until {
                self.due.remove(&(until, row));
            }
            if let Some((lanes, lane)) = self.lanes.get_mut(&status).zip(lane) {
                lanes.remove(&lane);
            }
        }
        if let Some(Stand { status, until, counts, lane }) = stand {
            *self.counts.entry(status).or_default() += usize::from(counts);
            self.due.extend(until.map(|until| (until, row)));
            self.lanes.entry(status).or_default().extend(lane);
        }
    }

    /// A node whose standing has changed by itself by then, if there is one.
    pub(super) fn due(&self, now: i64) -> Option<usize> {
        self.due.first().filter(|(until, _)| *until <= now).map(|(_, row)| *row)
    }

    /// How many nodes stand there.
    pub(super) fn count(&self, status: NodeStatus) -> usize {
        self.counts.get(&status).copied().unwrap_or_default()
    }

    /// The lanes whose node stands there.
    pub(super) fn lanes(&self, status: NodeStatus) -> Option<&BTreeSet<usize>> {
        self.lanes.get(&status)
    }
}
