//! What each node can observe, and therefore waits for (P-20, E-11).
//!
//! [`Schedule::derive`] reads the accesses off the graph and gives every node the least it has to wait
//! for; [`Schedule::prove`] checks, place by place, that any two conflicting accesses are ordered.
//!
//! A *place* is a thread, a node's result, a name of `runtime_metadata`, or the world outside. Writers
//! of a place form an [`Order`], in list order. A wait is for the first so many writers of an order to
//! have finished, which costs the same whatever their number.

use crate::effect::Effects;
use crate::graph::{Act, Flow, Graph, Guard, Leaf, Node, OnError};
use crate::ids::{LeafIx, NodeIx, OrderIx, Table, ThreadIx};
use crate::message::Slice;
use crate::template::{Path, Root, classify};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

mod prove;
pub use prove::Race;

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

/// What a node's result can bring to `runtime_metadata` (D-05).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Supply {
    /// Names that are declared.
    pub names: Vec<Arc<str>>,
    /// Whether other names may come.
    pub unknown: bool,
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

/// Every template of a node's flow, in the order it is resolved.
fn paths<'g>(graph: &'g Graph, node: &'g Node) -> Vec<&'g Path> {
    let mut paths = Vec::new();
    for leaf in graph.leaves(node) {
        match &leaf.act {
            Act::Say(text) | Act::Ask(_, text) | Act::Publish { description: text, .. } => {
                paths.extend(text.placeholders().map(|p| &p.path));
            }
            Act::Call(call) => paths.extend(call.args.placeholders().map(|(_, p)| &p.path)),
            Act::Infer(infer) => {
                paths.extend(infer.system.iter().flat_map(|t| t.placeholders()).map(|p| &p.path));
            }
            Act::Brief { text, .. } => paths.extend(text.placeholders().map(|p| &p.path)),
            Act::Open { .. }
            | Act::Answer { .. }
            | Act::Turn
            | Act::Decide
            | Act::Try
            | Act::Compile { .. }
            | Act::Splice => {}
        }
    }
    paths
}

/// Every placeholder that a node may resolve: those of its flow, and of its alternatives (D-14).
pub fn reads<'g>(graph: &'g Graph, node: &'g Node) -> Vec<&'g Path> {
    let mut all = paths(graph, node);
    let alternatives = node.recovery.iter().flat_map(|recovery| &recovery.alternatives);
    let args = alternatives.filter_map(|alternative| alternative.args.as_ref());
    all.extend(args.flat_map(|args| args.placeholders()).map(|(_, p)| &p.path));
    all
}

/// The tools of a node's fixed calls: its own, and those that may do its work instead (D-18).
fn fixed_tools<'g>(graph: &'g Graph, node: &'g Node) -> impl Iterator<Item = &'g Arc<str>> {
    let own = graph.leaves(node).filter_map(|leaf| match &leaf.act {
        Act::Call(call) => Some(&call.tool),
        _ => None,
    });
    let others = node.recovery.iter().flat_map(|recovery| &recovery.alternatives);
    own.chain(others.map(|alternative| &alternative.tool))
}

/// What a node's result can bring to `runtime_metadata` (D-05). Of what a model may choose in a recovery nothing is
/// said: when that brings more, what ran ahead of it runs again.
pub fn supply(graph: &Graph, node: &Node) -> Supply {
    let mut supply = Supply::default();
    let mut tool = |name: &str| match graph.tools.get(name).and_then(|t| t.output_params.as_ref()) {
        Some(names) => supply.names.extend(names.iter().cloned()),
        None => supply.unknown = true,
    };
    let mut schema_names = Vec::new();
    fixed_tools(graph, node).for_each(|name| tool(name));
    for leaf in graph.leaves(node) {
        match &leaf.act {
            // The texts of a scratch thread are no result.
            Act::Infer(infer) if node.body.thread.is_some() => {
                if infer.offer_tools {
                    node.body.tools.iter().for_each(|name| tool(name));
                }
                if let Some(schema) = &infer.schema {
                    schema_names.extend(schema_properties(&schema.schema));
                }
            }
            _ => {}
        }
    }
    supply.names.extend(schema_names);
    supply.names.sort();
    supply.names.dedup();
    supply
}

/// The property names of a JSON Schema of an object.
pub(crate) fn schema_properties(schema: &serde_json::Value) -> Vec<Arc<str>> {
    let properties = schema.get("properties").and_then(|p| p.as_object());
    properties.map(|p| p.keys().map(|k| Arc::from(k.as_str())).collect()).unwrap_or_default()
}

/// The strongest effects that a node's calls may have.
fn world(graph: &Graph, node: &Node) -> Option<Effects> {
    let offers = graph.leaves(node).any(|l| matches!(&l.act, Act::Infer(i) if i.offer_tools));
    let offered = node.body.tools.iter().filter(|_| offers);
    fixed_tools(graph, node).chain(offered).map(|tool| graph.effects(node, tool)).max()
}

/// How many messages a flow appends to its own thread at least, when it succeeds.
fn least_appended(graph: &Graph, flow: &Flow) -> usize {
    let weight = |leaf: &Leaf| match leaf.act {
        Act::Say(_) | Act::Infer(_) | Act::Brief { .. } => 1,
        Act::Call(_) if flow.thread.is_some() => 2,
        _ => 0,
    };
    let mut best: BTreeMap<LeafIx, usize> = BTreeMap::new();
    let mut least = usize::MAX;
    let mut todo: Vec<(LeafIx, usize)> = flow.leaves.indices().take(1).map(|entry| (entry, 0)).collect();
    while let Some((leaf, before)) = todo.pop() {
        let Some(row) = graph.leaf_of(flow, leaf) else { continue };
        let total = before + weight(row);
        if best.get(&leaf).is_some_and(|known| *known <= total) {
            continue;
        }
        best.insert(leaf, total);
        let next = &row.next;
        todo.extend(next.iter().filter_map(|edge| Some((Graph::target(flow, leaf, edge)?, total))));
        let always = next.iter().any(|edge| edge.when == Guard::Always);
        if !always || next.iter().any(|edge| edge.to.is_none()) {
            least = least.min(total);
        }
    }
    if least == usize::MAX { 0 } else { least }
}

impl Schedule {
    /// Derives the schedule of `graph`; `sequential` makes each node wait for all earlier ones to retire.
    pub fn derive(graph: &Graph, sequential: bool) -> Schedule {
        let mut builder = Builder::new(graph);
        for node in graph.nodes.indices() {
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
    /// Guaranteed number of messages of each thread after each of its writers so far.
    least: Table<ThreadIx, Vec<usize>>,
    /// The last node that declares a name.
    supplier: HashMap<Arc<str>, NodeIx>,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph) -> Self {
        let orders = (0..graph.threads.len() + 3).map(|_| Order::default()).collect();
        let by_id = graph.nodes.iter().map(|(ix, node)| (node.id.clone(), ix)).collect();
        let thread_by_name = graph.threads.iter().map(|(ix, def)| (def.name.clone(), ix)).collect();
        let least = graph.threads.values().map(|def| vec![usize::from(def.first.is_some())]).collect();
        let schedule = Schedule { orders, by_id, thread_by_name, ..Schedule::default() };
        Self { graph, schedule, least, supplier: HashMap::new() }
    }

    fn node(&mut self, ix: NodeIx, sequential: bool) {
        let node = &self.graph.nodes[ix];
        let mut waits = Vec::new();
        if sequential && ix.0 > 0 {
            waits.push(Wait { until: Until::Retired(ix.0), why: "sequential execution".into() });
        }
        self.after(ix, node, &mut waits);
        let opened = self.threads(node, &mut waits);
        let last_supplier = self.scope(ix, node, &mut waits);
        waits.dedup_by(|a, b| a.until == b.until);
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
        self.schedule.reads.push(!reads(self.graph, node).is_empty());
        self.schedule.member.push(Vec::new());
        self.writes(ix, node, world, opened.map_or(0, |(_, least)| least));
    }

    /// Waits for what is said to come first (D-14).
    fn after(&self, ix: NodeIx, node: &Node, waits: &mut Vec<Wait>) {
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
        let mut first = |thread: ThreadIx, count: usize, why: String| {
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                waits.push(Wait { until: Until::First(OrderIx(thread.0), count), why: why.into() });
            }
        };
        if let Some(thread) = node.body.thread {
            let name = &self.graph.threads[thread].name;
            first(thread, self.least[thread].len() - 1, format!("continues thread {name}"));
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
        first(from, count, format!("takes [{}, {}] of thread {name}", show(a), show(b)));
        let sum = least.get(count).copied().unwrap_or(0);
        Some((u32::try_from(count).unwrap_or(u32::MAX), slice_least(slice, sum)))
    }

    /// Waits for what placeholders can see.
    fn scope(&self, ix: NodeIx, node: &Node, waits: &mut Vec<Wait>) -> Vec<(Arc<str>, NodeIx)> {
        let mut suppliers = Vec::new();
        let unknown = unknown_order(self.graph.threads.len());
        let finished = |wait: &Wait| match wait.until {
            Until::Finished(producer) => Some(producer),
            _ => None,
        };
        let mut awaited: HashSet<NodeIx> = waits.iter().filter_map(finished).collect();
        for path in reads(self.graph, node) {
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
            let why: Arc<str> = format!("reads {name}").into();
            if let Some((key, &last)) = self.supplier.get_key_value(name) {
                suppliers.push((key.clone(), last));
                waits.push(Wait { until: Until::Finished(last), why: why.clone() });
            }
            let count = self.schedule.orders[unknown].writers.len();
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                waits.push(Wait { until: Until::First(unknown, count), why });
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
            let sum = self.least[thread].last().copied().unwrap_or(0);
            self.least[thread].push(sum + (opened + least_appended(self.graph, &node.body)) * sure);
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
