//! How far a frame has come whose nodes wait for what they observe, and retire in list order (P-20).

use super::skip::Unresolved;
use super::state::OrderState;
use crate::ids::{NodeIx, OrderIx, Table};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What only a dataflow has of a frame. Flows have [`super::flow::Flow`], and there are many more of them.
#[derive(Debug, Default)]
pub(crate) struct Dataflow {
    pub(crate) orders: Table<OrderIx, OrderState>,
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

impl Dataflow {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let orders = schedule.orders.values().map(|_| OrderState::default()).collect();
        Self { orders, ..Self::default() }
    }
    /// Replans that count against the limit (D-19).
    pub(crate) fn replans_so_far(&self) -> u32 {
        self.replanned + self.replans.values().sum::<u32>()
    }
}
