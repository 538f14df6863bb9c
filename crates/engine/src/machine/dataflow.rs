//! How far a frame has come whose nodes wait for what they observe, and retire in list order (P-20).

use crate::graph::Graph;
use crate::ids::{NodeIx, OrderIx, Table, ThreadIx};
use crate::message::{Entry, Thread};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What only a dataflow has of a frame. Flows have [`super::flow::Flow`], and there are many more of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dataflow {
    pub(crate) orders: Table<OrderIx, OrderState>,
    pub(crate) threads: Table<ThreadIx, Written>,
    /// Nodes that wait for another one to finish.
    pub(crate) waiters: Table<NodeIx, Vec<NodeIx>>,
    /// How many nodes have retired.
    pub(crate) retired: u32,
    /// Who goes on at which number of retired nodes.
    pub(crate) on_retired: BTreeMap<u32, Vec<NodeIx>>,
    /// Nodes without a result that the run goes on without (D-16).
    pub(crate) unresolved: Unresolved,
    /// Replans that were decided on, by node, and those of nodes that are no more (D-19).
    pub(crate) replans: BTreeMap<NodeIx, u32>,
    pub(crate) replanned: u32,
    /// Visits, tries and the last visit counted, of ids whose nodes are no more (D-25).
    pub(crate) prior_visits: BTreeMap<Arc<str>, (u32, u32, u32)>,
    /// `runtime_metadata`: for each name, the nodes that set it and the field it came from (D-02, D-05).
    pub(crate) runtime: HashMap<Arc<str>, BTreeMap<NodeIx, Arc<str>>>,
    /// Top-level keys of results that did not sync, for D-07's last look-up.
    pub(crate) fields: HashMap<Arc<str>, BTreeMap<NodeIx, ()>>,
}

/// Nodes without a result that the run goes on without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unresolved {
    /// Those that failed, and those that were skipped because of them.
    pub(crate) nodes: BTreeSet<NodeIx>,
    /// Those of them that could have brought any name (D-05).
    pub(super) unknown: BTreeSet<NodeIx>,
    /// How many nodes in a row have failed for good, in list order, up to the last that retired (D-19).
    pub(crate) in_a_row: u32,
}

impl Unresolved {
    /// Nodes from `first` on begin again.
    pub(crate) fn forget_from(&mut self, first: NodeIx) {
        self.nodes.split_off(&first);
        self.unknown.split_off(&first);
    }
}

/// How far an order has got.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderState {
    /// The first so many writers have finished.
    pub(crate) prefix: u32,
    pub(crate) ahead: BTreeSet<u32>,
    pub(crate) waiters: BTreeMap<u32, Vec<NodeIx>>,
}

/// A thread, writer by writer: values of finished prefixes, and what finished ahead of its turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// The thread after each of its first writers. Clones of a state share it until one goes on.
    pub(crate) after: Arc<Vec<Thread>>,
    pub(crate) ahead: BTreeMap<u32, Contribution>,
}

/// What a writer left on a thread.
#[derive(Clone, Debug)]
pub(crate) enum Contribution {
    /// The owner's whole value.
    Whole(Thread),
    /// Messages to append in the writer's turn.
    Append(Option<Entry>),
}

impl Dataflow {
    pub(crate) fn new(graph: &Graph, schedule: &Schedule) -> Self {
        let mut new =
            Self { threads: graph.threads.values().map(|_| Written::default()).collect(), ..Self::default() };
        new.place(graph, schedule);
        new
    }
    /// Nobody has written, and nobody waits.
    pub(crate) fn place(&mut self, graph: &Graph, schedule: &Schedule) {
        self.orders = schedule.orders.values().map(|_| OrderState::default()).collect();
        self.waiters = graph.nodes.values().map(|_| Vec::new()).collect();
    }
    /// Replans that count against the limit (D-19).
    pub(crate) fn replans_so_far(&self) -> u32 {
        self.replanned + self.replans.values().sum::<u32>()
    }
}

impl Written {
    /// The next writer's turn has come, and it had finished before.
    pub(crate) fn advance(&mut self, base: &Thread, position: u32) {
        let contribution = self.ahead.remove(&position).unwrap_or(Contribution::Append(None));
        self.take(base, contribution);
    }

    /// The next writer's turn. `base`: the thread before all of them.
    pub(crate) fn take(&mut self, base: &Thread, contribution: Contribution) {
        let before = self.after.last().unwrap_or(base);
        let value = match contribution {
            Contribution::Whole(thread) => thread,
            Contribution::Append(message) => {
                let mut thread = before.clone();
                message.into_iter().for_each(|message| thread.push(message));
                thread
            }
        };
        Arc::make_mut(&mut self.after).push(value);
    }

    /// Only the first so many writers have written.
    pub(crate) fn rewind(&mut self, writers: usize) {
        if writers < self.after.len() {
            Arc::make_mut(&mut self.after).truncate(writers);
        }
    }
}
