//! Who waits for whom and why, as `explain`, `graph` and the live view show it: direct waits with their reasons, without what already
//! follows from them (P-20).

use selvedge_engine::schedule::{Schedule, Until, impure_order, writers_order};
use selvedge_engine::{Effects, Graph, Ix, NodeIx, OrderIx, ThreadIx};
use std::collections::HashMap;
use std::sync::Arc;

/// Above so many nodes it is not followed who waits for whom through others: the table would get too large.
const FOLLOWED: usize = 5_000;
/// Of more nodes that one thread makes a node wait for, those are left out that another one of them waited for.
const OF_A_THREAD: usize = 64;

/// Why calls of these effects wait for earlier ones (P-20), wherever it is told; pure ones don't.
pub fn turn(effects: Effects) -> Option<&'static str> {
    match effects {
        Effects::Pure => None,
        Effects::Read => Some("looks only after earlier writes"),
        Effects::Idempotent => Some("writes only after earlier calls"),
        Effects::Write => Some("writes only after all earlier nodes"),
    }
}

/// A node that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The earlier node.
    pub node: NodeIx,
    /// Why, in words; several reasons are joined by semicolons.
    pub why: String,
}

/// The direct waits of all nodes, in list order. `calls` says how strong the effects of a node's calls are, which
/// may have to keep their turn.
pub fn all(
    graph: &Graph,
    schedule: &Schedule,
    calls: impl Fn(NodeIx) -> Option<Effects>,
) -> Vec<Vec<Waited>> {
    let mut before = Before::new(graph.nodes.len());
    let owners = owners(graph, schedule);
    let mut all = Vec::with_capacity(graph.nodes.len());
    for node in graph.nodes.indices() {
        let mut list = List { node, waited: Vec::new(), at: HashMap::new() };
        list.declared(schedule, &owners, &before);
        if let Some(effects) = calls(node) {
            list.turn(schedule, graph.threads.len(), effects, &before);
        }
        list.waited.sort_by_key(|waited| waited.node);
        before.add(node, &list.waited);
        all.push(list.waited);
    }
    all
}

/// The waits of one node.
struct List {
    node: NodeIx,
    waited: Vec<Waited>,
    /// Where each node stands in it.
    at: HashMap<NodeIx, usize>,
}

impl List {
    /// What the schedule says.
    fn declared(&mut self, schedule: &Schedule, owners: &[Vec<usize>], before: &Before) {
        let Some(waits) = schedule.waits.get(self.node) else { return };
        for wait in waits {
            match wait.until {
                Until::Finished(node) => self.add(node, &wait.why),
                // The nodes before that one had retired when it did.
                Until::Retired(count) => self.add(NodeIx(count.saturating_sub(1)), &wait.why),
                Until::First(order, count) if order.get() < owners.len() => {
                    let writers = since_owner(schedule, owners, order, count);
                    match writers.len() > OF_A_THREAD {
                        true => self.add_last(writers.iter().rev().copied(), &wait.why, before),
                        false => writers.iter().for_each(|writer| self.add(*writer, &wait.why)),
                    }
                }
                Until::First(order, count) => {
                    let writers = first(schedule, order, count);
                    self.add_last(writers.iter().rev().copied(), &wait.why, before);
                }
            }
        }
    }

    /// Whose calls this node's calls come after (P-20's order of effects).
    fn turn(&mut self, schedule: &Schedule, threads: usize, effects: Effects, before: &Before) {
        let (writers, impure) = schedule.world_before.get(self.node).copied().unwrap_or_default();
        let Some(why) = turn(effects) else { return };
        match effects {
            Effects::Pure => {}
            Effects::Read => {
                let earlier = first(schedule, writers_order(threads), writers);
                self.add_last(earlier.iter().rev().copied(), why, before);
            }
            Effects::Idempotent => {
                let earlier = first(schedule, impure_order(threads), impure);
                self.add_last(earlier.iter().rev().copied(), why, before);
            }
            Effects::Write => self.add_last((0..self.node.0).rev().map(NodeIx), why, before),
        }
    }

    fn add(&mut self, node: NodeIx, why: &str) {
        match self.at.get(&node).and_then(|at| self.waited.get_mut(*at)) {
            Some(known) if known.why.split("; ").any(|reason| reason == why) => {}
            Some(known) => {
                known.why.push_str("; ");
                known.why.push_str(why);
            }
            None => {
                self.at.insert(node, self.waited.len());
                self.waited.push(Waited { node, why: why.to_owned() });
            }
        }
    }

    /// Adds those nodes, the last first, that nothing in the list has waited for itself.
    fn add_last(&mut self, nodes: impl Iterator<Item = NodeIx>, why: &str, before: &Before) {
        let mut covered = before.of(&self.waited);
        for node in nodes {
            if covered.has(node) || self.at.contains_key(&node) {
                continue;
            }
            self.add(node, why);
            covered.add_all_before(before, node);
            if !before.followed {
                // Who waits for whom is not followed: the last one stands for those before it.
                break;
            }
        }
    }
}

/// The first writers of an order.
fn first(schedule: &Schedule, order: OrderIx, count: u32) -> &[NodeIx] {
    let writers = schedule.orders.get(order).map_or(&[][..], |order| &order.writers);
    writers.get(..count as usize).unwrap_or(writers)
}

/// For each thread, which of its writers work on it; the others only send something to it.
fn owners(graph: &Graph, schedule: &Schedule) -> Vec<Vec<usize>> {
    let owners = |thread: ThreadIx| {
        let writers = schedule.orders.get(OrderIx(thread.0)).map_or(&[][..], |order| &order.writers);
        let positions = writers.iter().enumerate().filter(|(_, node)| owns(graph, **node, thread));
        positions.map(|(at, _)| at).collect()
    };
    graph.threads.indices().map(owners).collect()
}

/// Of a thread's first `count` writers, the last that works on it, and those that write to it after that: it has
/// waited for all before it.
fn since_owner<'s>(
    schedule: &'s Schedule,
    owners: &[Vec<usize>],
    order: OrderIx,
    count: u32,
) -> &'s [NodeIx] {
    let owners = owners.get(order.get()).map_or(&[][..], |owners| owners);
    let last = owners.partition_point(|at| *at < count as usize).checked_sub(1);
    let from = last.and_then(|last| owners.get(last)).copied().unwrap_or_default();
    first(schedule, order, count).get(from..).unwrap_or_default()
}

/// Whether a node works on a thread.
pub fn owns(graph: &Graph, node: NodeIx, thread: ThreadIx) -> bool {
    graph.nodes.get(node).is_some_and(|node| node.body.thread == Some(thread))
}

/// For each node, all nodes that it waits for, also through others.
struct Before {
    words: usize,
    rows: Vec<Arc<[u64]>>,
    followed: bool,
}

impl Before {
    fn new(nodes: usize) -> Self {
        Self { words: nodes.div_ceil(64), rows: Vec::new(), followed: nodes <= FOLLOWED }
    }

    fn add(&mut self, node: NodeIx, waited: &[Waited]) {
        if self.followed {
            let mut set = self.of(waited);
            waited.iter().for_each(|waited| set.insert(waited.node));
            debug_assert_eq!(self.rows.len(), node.get());
            self.rows.push(set.bits.into());
        }
    }

    /// What these nodes wait for.
    fn of(&self, waited: &[Waited]) -> Set {
        let mut set = Set { bits: vec![0; if self.followed { self.words } else { 0 }] };
        waited.iter().for_each(|waited| set.add_all_before(self, waited.node));
        set
    }
}

/// A set of nodes.
struct Set {
    bits: Vec<u64>,
}

impl Set {
    fn has(&self, node: NodeIx) -> bool {
        self.bits.get(node.get() / 64).is_some_and(|word| word >> (node.get() % 64) & 1 == 1)
    }

    fn insert(&mut self, node: NodeIx) {
        if let Some(word) = self.bits.get_mut(node.get() / 64) {
            *word |= 1 << (node.get() % 64);
        }
    }

    fn add_all_before(&mut self, before: &Before, node: NodeIx) {
        if let Some(row) = before.rows.get(node.get()) {
            self.bits.iter_mut().zip(row.iter()).for_each(|(word, more)| *word |= more);
        }
    }
}

#[cfg(test)]
mod tests;
