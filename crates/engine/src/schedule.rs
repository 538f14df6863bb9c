//! What each node can observe, and therefore waits for (P-20, E-11).
//!
//! [`Schedule::derive`] reads the accesses off the graph and gives every node the least it has to wait
//! for; [`Schedule::prove`] checks, place by place, that any two conflicting accesses are ordered.
//!
//! A *place* is a thread, a node's result, a name of `runtime_metadata`, or the world outside. Writers
//! of a place form an [`Order`], in list order. A wait is for the first so many writers of an order to
//! have finished, which costs the same whatever their number.

use crate::effect::Effects;
use crate::graph::{Act, Control, Graph, Node, OnError};
use crate::ids::{NodeIx, OrderIx, Table, ThreadIx};
use crate::message::Slice;
use crate::template::{Path, Root, classify};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

mod accesses;
mod prove;
pub use accesses::{Supply, reads, supply};
use accesses::{edits, least_appended, opens_frames, world};
pub(crate) use accesses::{paths, schema_properties};
pub use prove::{Race, Unsound};
pub(crate) use prove::{no_bindings, no_variables};

/// Nodes that may write one place, in list order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// The writers.
    pub writers: Vec<NodeIx>,
}

/// What a node waits for before it starts, and why (shown by `explain`).
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// What has to have happened.
    pub until: Until,
    /// Why, in words.
    pub why: Arc<str>,
}

/// A condition that, once true, stays true until a failed run is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// This node has finished.
    Finished(NodeIx),
    /// The first `count` writers of the order have finished.
    First(OrderIx, u32),
    /// The first `count` nodes have retired.
    Retired(u32),
}

/// The derived schedule of a graph.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// What each node waits for.
    pub waits: Table<NodeIx, Vec<Wait>>,
    /// For a node that opens its thread: how many writers of the source it observes.
    pub open_at: Table<NodeIx, u32>,
    /// All orders; the first ones are the threads', by [`ThreadIx`].
    pub orders: Table<OrderIx, Order>,
    /// The orders that a node writes, with its position in each.
    pub member: Table<NodeIx, Vec<(OrderIx, u32)>>,
    /// The strongest effects a node's calls may have; `None` if it calls nothing.
    pub world: Table<NodeIx, Option<Effects>>,
    /// For each node, how many earlier nodes may change the world, and how many may look at it.
    pub world_before: Table<NodeIx, (u32, u32)>,
    /// For each node, the last earlier node that declares a bare name it reads, by name.
    pub last_supplier: Table<NodeIx, Vec<(Arc<str>, NodeIx)>>,
    /// Whether a node has placeholders.
    pub reads: Table<NodeIx, bool>,
    /// The first node that a model may help to recover: nobody can tell what that does to the world, or which nodes
    /// come behind it then (D-20).
    pub open_ended: Option<NodeIx>,
    /// Positions of node ids.
    pub by_id: HashMap<Arc<str>, NodeIx>,
    /// Positions of thread names.
    pub thread_by_name: HashMap<Arc<str>, ThreadIx>,
}

/// The order of nodes whose result may bring any name.
pub const fn unknown_order(threads: usize) -> OrderIx {
    OrderIx(threads as u32)
}
/// The order of nodes that may change the world.
pub const fn writers_order(threads: usize) -> OrderIx {
    OrderIx(threads as u32 + 1)
}
/// The order of nodes that may look at the world or change it.
pub const fn impure_order(threads: usize) -> OrderIx {
    OrderIx(threads as u32 + 2)
}

impl Schedule {
    /// Derives the schedule of `graph`; `sequential` makes each node wait for all earlier ones to retire.
    pub fn derive(graph: &Graph, sequential: bool) -> Schedule {
        let mut builder = Builder::new(graph);
        // The nodes of a flow follow its ways.
        for node in graph.nodes.indices().filter(|_| graph.control == Control::Dataflow) {
            builder.node(node, sequential);
        }
        builder.schedule
    }

    /// The number of writers of `order` before `node`.
    pub fn before(&self, order: OrderIx, node: NodeIx) -> u32 {
        let order = &self.orders[order];
        u32::try_from(order.writers.partition_point(|writer| *writer < node)).unwrap_or(u32::MAX)
    }
}

struct Builder<'a> {
    graph: &'a Graph,
    schedule: Schedule,
    /// Why nodes of a thread wait, said once for all of them.
    continues: Table<ThreadIx, Arc<str>>,
    /// Guaranteed number of messages of each thread after each of its writers so far.
    least: Table<ThreadIx, Vec<usize>>,
    /// The last node that declares a name.
    supplier: HashMap<Arc<str>, NodeIx>,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph) -> Self {
        let orders = (0..graph.threads.len() + 3).map(|_| Order::default()).collect();
        let ids = |(ix, node): (NodeIx, &Node)| {
            [Some(&node.id), node.end.as_ref()].map(|id| Some((id?.clone(), ix)))
        };
        // Room for all of them at once, which a list of lists does not say it needs.
        let mut by_id = HashMap::with_capacity(graph.nodes.len());
        by_id.extend(graph.nodes.iter().flat_map(ids).flatten());
        let thread_by_name = graph.threads.iter().map(|(ix, def)| (def.name.clone(), ix)).collect();
        let least = graph.threads.values().map(|def| vec![usize::from(def.first.is_some())]).collect();
        let continues =
            graph.threads.values().map(|def| format!("continues thread {}", def.name).into()).collect();
        let nodes = graph.nodes.len();
        let schedule = Schedule {
            waits: Table::with_capacity(nodes),
            open_at: Table::with_capacity(nodes),
            orders,
            member: Table::with_capacity(nodes),
            world: Table::with_capacity(nodes),
            world_before: Table::with_capacity(nodes),
            last_supplier: Table::with_capacity(nodes),
            reads: Table::with_capacity(nodes),
            open_ended: None,
            by_id,
            thread_by_name,
        };
        Self { graph, schedule, continues, least, supplier: HashMap::new() }
    }

    fn node(&mut self, ix: NodeIx, sequential: bool) {
        let node = &self.graph.nodes[ix];
        let mut waits = Vec::new();
        if sequential && ix.0 > 0 {
            waits.push(Wait { until: Until::Retired(ix.0), why: "sequential execution".into() });
        }
        if opens_frames(self.graph, node) {
            waits.push(Wait { until: Until::Retired(ix.0), why: "opens frames".into() });
        }
        self.after(ix, node, &mut waits);
        let opened = self.threads(node, &mut waits);
        let reads = reads(self.graph, node);
        let mut last_supplier = self.scope(ix, &reads, &mut waits);
        waits.dedup_by(|a, b| a.until == b.until);
        // There are as many of these lists as nodes, and they stay as they are.
        waits.shrink_to_fit();
        last_supplier.shrink_to_fit();
        let threads = self.graph.threads.len();
        let counts = |o: OrderIx| u32::try_from(self.schedule.orders[o].writers.len()).unwrap_or(u32::MAX);
        if node.recovery.as_ref().is_some_and(|recovery| recovery.model) {
            self.schedule.open_ended.get_or_insert(ix);
        }
        let world_before = (counts(writers_order(threads)), counts(impure_order(threads)));
        let world = world(self.graph, node);
        self.schedule.waits.push(waits);
        self.schedule.open_at.push(opened.map_or(0, |(count, _)| count));
        self.schedule.world.push(world);
        self.schedule.world_before.push(world_before);
        self.schedule.last_supplier.push(last_supplier);
        self.schedule.reads.push(!reads.is_empty());
        // Most nodes write one place.
        self.schedule.member.push(Vec::with_capacity(1));
        self.writes(ix, node, world, opened.map_or(0, |(_, least)| least));
        self.schedule.member[ix].shrink_to_fit();
    }

    /// Waits for what is said to come first (D-14).
    fn after(&self, ix: NodeIx, node: &Node, waits: &mut Vec<Wait>) {
        if node.after.is_empty() {
            return;
        }
        let mut seen = HashSet::new();
        for id in &node.after {
            if let Some(&earlier) = self.schedule.by_id.get(id)
                && earlier < ix
                && seen.insert(earlier)
            {
                waits.push(Wait { until: Until::Finished(earlier), why: format!("depends on {id}").into() });
            }
        }
    }

    /// Waits for threads; for a node that opens its thread, how many writers of the source it observes
    /// and how many messages it takes at least.
    fn threads(&self, node: &Node, waits: &mut Vec<Wait>) -> Option<(u32, usize)> {
        let mut first = |thread: ThreadIx, count: usize, why: Arc<str>| {
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                waits.push(Wait { until: Until::First(OrderIx(thread.0), count), why });
            }
        };
        if let Some(thread) = node.body.thread {
            first(thread, self.least[thread].len() - 1, self.continues[thread].clone());
        }
        let (from, slice) = self.graph.leaves(node).find_map(|leaf| match leaf.act {
            Act::Open { from, slice } => Some((from, slice)),
            _ => None,
        })?;
        let least = &self.least[from];
        // The first writers whose guaranteed minimum covers the prefix, else all earlier ones (P-20).
        let enough = slice.prefix().and_then(|end| least.iter().position(|sum| *sum >= end));
        let count = enough.unwrap_or(least.len() - 1);
        let Slice(a, b) = slice;
        let name = &self.graph.threads[from].name;
        let show = |end: Option<i64>| end.map_or_else(|| "null".into(), |n| n.to_string());
        first(from, count, format!("takes [{}, {}] of thread {name}", show(a), show(b)).into());
        let sum = least.get(count).copied().unwrap_or(0);
        Some((u32::try_from(count).unwrap_or(u32::MAX), slice_least(slice, sum)))
    }

    /// Waits for what placeholders can see.
    fn scope(&self, ix: NodeIx, reads: &[&Path], waits: &mut Vec<Wait>) -> Vec<(Arc<str>, NodeIx)> {
        let mut suppliers = Vec::new();
        if reads.is_empty() {
            return suppliers;
        }
        let unknown = unknown_order(self.graph.threads.len());
        let finished = |wait: &Wait| match wait.until {
            Until::Finished(producer) => Some(producer),
            _ => None,
        };
        let mut awaited: HashSet<NodeIx> = waits.iter().filter_map(finished).collect();
        for path in reads {
            let name = match classify(path, |id| self.schedule.by_id.contains_key(id)) {
                Root::StepOutput { step, .. } => {
                    if let Some(&producer) = self.schedule.by_id.get(step)
                        && producer < ix
                        && awaited.insert(producer)
                    {
                        let why = format!("reads the result of {step}").into();
                        waits.push(Wait { until: Until::Finished(producer), why });
                    }
                    continue;
                }
                Root::Inputs { .. } => continue,
                Root::Metadata { name, .. } | Root::Name { name, .. } => name,
            };
            let why = || format!("reads {name}").into();
            if let Some((key, &last)) = self.supplier.get_key_value(name) {
                suppliers.push((key.clone(), last));
                waits.push(Wait { until: Until::Finished(last), why: why() });
            }
            let count = self.schedule.orders[unknown].writers.len();
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                waits.push(Wait { until: Until::First(unknown, count), why: why() });
            }
        }
        suppliers
    }

    /// Enters the node as a writer of its places.
    fn writes(&mut self, ix: NodeIx, node: &Node, world: Option<Effects>, opened: usize) {
        let threads = self.graph.threads.len();
        // A node whose failure the run survives guarantees nothing.
        let sure = usize::from(node.on_error == OnError::Fail);
        if let Some(thread) = node.body.thread {
            let edits = edits(self.graph, node);
            if edits {
                // What stood at a place before it says nothing of what stands there behind it (E-09).
                self.least[thread].iter_mut().for_each(|sum| *sum = 0);
            }
            let sum = self.least[thread].last().copied().unwrap_or(0);
            let said = if edits || sure == 0 { 0 } else { opened + least_appended(self.graph, &node.body) };
            self.least[thread].push(sum + said);
            self.enter(ix, OrderIx(thread.0));
        }
        for leaf in self.graph.leaves(node) {
            if let Act::Publish { to, .. } = leaf.act
                && Some(to) != node.body.thread
            {
                let sum = self.least[to].last().copied().unwrap_or(0);
                self.least[to].push(sum + sure);
                self.enter(ix, OrderIx(to.0));
            }
        }
        let supply = supply(self.graph, node);
        if supply.unknown {
            self.enter(ix, unknown_order(threads));
        }
        for name in supply.names {
            let prefixed: Arc<str> = format!("{}_{name}", node.id).into();
            self.supplier.insert(prefixed, ix);
            self.supplier.insert(name, ix);
        }
        match world {
            Some(Effects::Write | Effects::Idempotent) => {
                self.enter(ix, writers_order(threads));
                self.enter(ix, impure_order(threads));
            }
            Some(Effects::Read) => self.enter(ix, impure_order(threads)),
            Some(Effects::Pure) | None => {}
        }
    }

    fn enter(&mut self, node: NodeIx, order: OrderIx) {
        let writers = &mut self.schedule.orders[order].writers;
        let position = u32::try_from(writers.len()).unwrap_or(u32::MAX);
        writers.push(node);
        self.schedule.member[node].push((order, position));
    }
}

/// How many messages a slice takes at least of a thread that has at least `len`.
fn slice_least(slice: Slice, len: usize) -> usize {
    match slice {
        Slice(start, None) if start.unwrap_or(0) < 0 => {
            let (a, b) = slice.bounds(len);
            b - a
        }
        Slice(None, None) => len,
        _ if slice.prefix().is_some() => {
            let (a, b) = slice.bounds(len);
            b - a
        }
        _ => 0,
    }
}
