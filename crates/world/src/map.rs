//! The nodes of a document's graphs, and which of them an event is about.

use selvedge_engine::graph::{Node, When};
use selvedge_engine::place::Place;
use selvedge_engine::{Event, Graph, GraphIx, Ix, NodeIx, Record};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A node of a document, whichever instances of it there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot {
    /// The inner graph that it is in.
    pub(crate) graph: Option<GraphIx>,
    pub(crate) node: NodeIx,
}

/// A document's nodes by their ids.
pub(crate) struct Map {
    graph: Arc<Graph>,
    root: HashMap<Arc<str>, NodeIx>,
    inner: Vec<HashMap<Arc<str>, NodeIx>>,
}

fn by_id(graph: &Graph) -> HashMap<Arc<str>, NodeIx> {
    graph.nodes.iter().map(|(ix, node)| (Arc::clone(&node.id), ix)).collect()
}

impl Map {
    pub(crate) fn of(graph: &Arc<Graph>) -> Self {
        let inner = graph.graphs.values().map(|graph| by_id(graph)).collect();
        Self { graph: Arc::clone(graph), root: by_id(graph), inner }
    }

    /// The graph that a node is in.
    pub(crate) fn graph_of(&self, spot: Spot) -> Option<&Graph> {
        match spot.graph {
            None => Some(&self.graph),
            Some(graph) => self.graph.graphs.get(graph).map(|graph| &**graph),
        }
    }

    pub(crate) fn node(&self, spot: Spot) -> Option<&Node> {
        self.graph_of(spot)?.nodes.get(spot.node)
    }

    /// The node that an event names, with the frame that it is in.
    pub(crate) fn spot<'n>(&self, name: &'n str) -> Option<(Spot, &'n str)> {
        if self.graph.graphs.is_empty() {
            return Some((Spot { graph: None, node: *self.root.get(name)? }, ""));
        }
        let place = Place::parse(name)?;
        let mut graph = None;
        for step in place.frames.steps() {
            let around = self.of_graph(graph)?;
            let node = *self.ids(graph)?.get(&*step.node)?;
            let mut acts = around.leaves(around.nodes.get(node)?).map(|leaf| &leaf.act);
            graph = Some(acts.find_map(|act| act.opens(&step.instance))?);
        }
        let node = *self.ids(graph)?.get(&*place.node)?;
        Some((Spot { graph, node }, place.frames.as_str()))
    }

    fn of_graph(&self, graph: Option<GraphIx>) -> Option<&Graph> {
        self.graph_of(Spot { graph, node: NodeIx::new(0) })
    }

    fn ids(&self, graph: Option<GraphIx>) -> Option<&HashMap<Arc<str>, NodeIx>> {
        graph.map_or(Some(&self.root), |graph| self.inner.get(graph.get()))
    }

    /// All nodes.
    fn all(&self) -> impl Iterator<Item = (Spot, &Node)> {
        let root = self.graph.nodes.iter().map(|(node, def)| (Spot { graph: None, node }, def));
        let inner = self.graph.graphs.iter().flat_map(|(ix, graph)| {
            graph.nodes.iter().map(move |(node, def)| (Spot { graph: Some(ix), node }, def))
        });
        root.chain(inner)
    }
}

/// Names that are remembered; a run of very many iterations has very many.
const MOST: usize = 50_000;

/// What runs came by.
#[derive(Default)]
pub(crate) struct Coverage {
    nodes: BTreeSet<Spot>,
    /// Ways on from nodes, by their place among those of the node.
    ways: BTreeSet<(Spot, usize)>,
    names: HashMap<Arc<str>, Option<(Spot, usize)>>,
    frames: HashMap<String, usize>,
    /// Of each frame of the run the node that ended last, and whether it failed.
    last: HashMap<usize, (Spot, bool)>,
}

/// What no run came by, by the ids of the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreached {
    /// Nodes that never started.
    pub nodes: Vec<String>,
    /// Edges that were never taken.
    pub edges: Vec<(String, String)>,
    /// Edges after a fault that were never taken.
    pub handlers: Vec<(String, String)>,
}

impl Coverage {
    /// Takes in a run.
    pub(crate) fn run(&mut self, map: &Map, records: &[Record]) {
        self.last.clear();
        for record in records {
            match &record.event {
                Event::NodeStarted { node, .. } => {
                    let Some((spot, frame)) = self.spot(map, node) else { continue };
                    self.nodes.insert(spot);
                    if let Some((from, failed)) = self.last.remove(&frame) {
                        self.way(map, from, failed, spot.node);
                    }
                }
                Event::NodeFinished { node, fault, .. } => {
                    let Some((spot, frame)) = self.spot(map, node) else { continue };
                    self.last.insert(frame, (spot, fault.is_some()));
                }
                _ => {}
            }
        }
    }

    fn spot(&mut self, map: &Map, name: &Arc<str>) -> Option<(Spot, usize)> {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        if self.names.len() >= MOST {
            self.names.clear();
        }
        let found = map.spot(name).map(|(spot, frame)| {
            let next = self.frames.len();
            let known = self.frames.get(frame).copied();
            (spot, known.unwrap_or_else(|| *self.frames.entry(frame.to_owned()).or_insert(next)))
        });
        self.names.insert(Arc::clone(name), found);
        found
    }

    fn way(&mut self, map: &Map, from: Spot, failed: bool, to: NodeIx) {
        let ways = map.node(from).map(|node| &node.ways).into_iter().flatten();
        let taken = ways.enumerate().filter(|(_, way)| way.to == to && (way.when == When::Fault) == failed);
        self.ways.extend(taken.map(|(at, _)| (from, at)));
    }

    /// What others came by.
    pub(crate) fn and(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.ways.extend(other.ways);
    }

    pub(crate) fn unreached(&self, map: &Map) -> Unreached {
        let mut unreached = Unreached::default();
        for (spot, node) in map.all() {
            if !self.nodes.contains(&spot) {
                unreached.nodes.push(node.id.to_string());
                continue;
            }
            for (at, way) in node.ways.iter().enumerate() {
                let to = map.node(Spot { node: way.to, ..spot });
                if let Some(to) = to.filter(|_| !self.ways.contains(&(spot, at))) {
                    let edge = (node.shown_id().to_string(), to.id.to_string());
                    match way.when {
                        When::Fault => unreached.handlers.push(edge),
                        When::Done | When::Holds(_) => unreached.edges.push(edge),
                    }
                }
            }
        }
        unreached
    }
}
