//! Beginning anew in the middle: after a failure (E-05), and in a fork (E-19).

use super::dataflow::{Dataflow, OrderState};
use super::frame::Frame;
use super::node::{Done, LeafPhase, NodeState, Visit};
use super::reuse::cache::ReuseCache;
use super::reuse::places;
use super::reuse::recording::Recording;
use super::stands::Stands;
use super::state::{State, Status};
use crate::effect::ToolDef;
use crate::event::{Body, Event, Fork};
use crate::graph::{Act, Graph, PathsOf};
use crate::ids::{FrameIx, GraphIx, Ix, NodeIx, NodeRef, ROOT, ThreadIx};
use crate::template::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a text stands in a document that was appended to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first message of this thread.
    Thread(Arc<str>),
    /// What this leaf of this node says.
    Leaf(Arc<str>, Arc<str>),
    /// The same of a node of this inner graph, of which there is one frame: a path with its id, a subgraph.
    Inner(GraphIx, Arc<str>, Arc<str>),
    /// The same of a node that each iteration of a loop, or each path over a list, has: no text of the document is that of one alone.
    Shared,
}

impl State {
    /// The node that stands first in line, and all that ran ahead of it, start anew: after a failure, or because
    /// tools have changed (E-05, P-21).
    pub(crate) fn resumed(&mut self, tools: &[ToolDef]) {
        self.unasked = Vec::new();
        self.go_on_with_lineage();
        if self.frames.root().flow.is_some() {
            self.age_pool();
            // What is under way if only tools have changed begins anew, too.
            self.forget_in_flight();
            self.change_tools(tools);
            self.status = Status::Running;
            return self.restart(ROOT);
        }
        let first = NodeRef::root(self.frames.root().first_anew());
        self.fill_pool(first);
        self.change_tools(tools);
        self.restart_from(first);
    }

    /// A dataflow that had failed, or was cut off, goes on: its first node in line begins anew, and so do all that ran ahead
    /// of it.
    pub(super) fn restart_dataflow(&mut self, ix: FrameIx) {
        let first = NodeRef { frame: ix, node: self.frames[ix].first_anew() };
        self.fill_pool(first);
        self.restart_from(first);
    }

    fn restart_from(&mut self, first: NodeRef) {
        // Who fails again may try all of its ways again (D-19).
        if let Some(frame) = &mut self.frames[first.frame].dataflow {
            (frame.replans, frame.replanned, frame.unresolved.in_a_row) = (BTreeMap::new(), 0, 0);
        }
        if self.start.edition > 0 {
            self.forget_warnings(self.begins_anew(first), &Stands::default());
        }
        self.begin_again(first, &Stands::default());
    }

    /// The first node that begins anew where `first` is the one that had not ended: that itself, unless it goes on with the frames
    /// that it had opened.
    fn begins_anew(&self, first: NodeRef) -> NodeRef {
        if self.is_interrupted(first) { first.sibling(NodeIx(first.node.0 + 1)) } else { first }
    }

    /// Whether a node had opened frames when it failed, or was cut off.
    fn is_interrupted(&self, node: NodeRef) -> bool {
        let waits = |visit: &Visit| matches!(visit.phase, LeafPhase::Frames(_));
        let done = self.of(node).graph.nodes.get(node.node).and_then(|_| self.done(node));
        done.is_some_and(Done::is_interrupted) || self.visit(node).is_some_and(waits)
    }

    /// The run leaves its source (E-19): without another graph it goes on from what has retired in the shared
    /// prefix; with one it begins at the beginning. Either way recorded outcomes of the whole source stand for
    /// requests of equal content (E-29).
    pub(crate) fn forked(&mut self, fork: &Fork) {
        let nothing = Arc::new(Recording::default());
        let past = fork.past.as_ref().unwrap_or(&nothing);
        match (&fork.graph, &fork.compiled) {
            (None, _) => self.forked_here(fork, past),
            (Some(hash), Some(graph)) => self.forked_anew(fork, past, hash, graph),
            (Some(hash), None) => {
                return self.poison(format!("the graph of a fork, `{hash}`, is not at hand"));
            }
        }
        self.reuse.doubt(fork.damaged);
    }

    fn forked_here(&mut self, fork: &Fork, past: &Arc<Recording>) {
        if self.frames.root().flow.is_some() {
            return self.forked_in_flow(fork, past);
        }
        self.begin_lineage(None, false);
        let first = NodeRef::root(self.frames.root().first_anew());
        let stands = self.stands(fork, past);
        // Replans of the shared prefix are the fork's, too: asked the same, it comes to the same (E-19).
        if let Some(dataflow) = &mut self.frames.root_mut().dataflow {
            dataflow.unresolved.in_a_row = 0;
        }
        self.reuse = ReuseCache::default();
        self.declined.clear();
        // What is ahead of its turn may yet begin anew, and then takes it. Of what has retired only a state that records asks.
        let from = if self.recorder.is_some() { NodeIx(0) } else { first.node };
        for node in self.frames.root().nodes_from(from).filter(|node| !stands.is_ahead(*node)) {
            self.frames[NodeRef::root(node)].forget_records();
        }
        self.inherit(past, &fork.texts, None, stands.clone());
        self.settle_into(fork);
        self.forget_warnings(self.begins_anew(first), &stands);
        if fork.sequential {
            self.frames.reschedule(true);
        }
        self.change_tools(&fork.tools);
        self.begin_again(first, &stands);
        // What the source had tried is not this run's (D-25).
        let frame = self.frames.root_mut();
        for node in frame.nodes_from(first.node) {
            frame.nodes[node].tries = 0;
        }
    }

    /// Every live frame of a fork is where it stood (E-36); what was under way begins anew, and takes what the source had recorded.
    fn forked_in_flow(&mut self, fork: &Fork, past: &Arc<Recording>) {
        self.begin_lineage(None, false);
        self.reuse = ReuseCache::default();
        self.declined.clear();
        self.forget_in_flight();
        self.inherit(past, &fork.texts, None, Stands::default());
        self.settle_into(fork);
        if fork.sequential {
            self.frames.reschedule(true);
        }
        self.change_tools(&fork.tools);
        self.status = Status::Running;
        self.restart(ROOT);
    }

    fn forked_anew(&mut self, fork: &Fork, past: &Arc<Recording>, hash: &Arc<str>, graph: &Arc<Graph>) {
        let mut new = State::new(Arc::clone(graph));
        (new.now, new.events, new.start) = (self.now, self.events, self.start.clone());
        new.recorder = self.recorder.take();
        *self = new;
        self.begin_lineage(Some(&past.graph), fork.initial.is_some());
        self.start.graph = Arc::clone(hash);
        if let Some(initial) = &fork.initial {
            self.start.initial.clone_from(initial);
        }
        let places = places(&past.graph, graph);
        self.inherit(past, &fork.texts, Some(&places), Stands::default());
        self.settle_into(fork);
        if self.start.sequential {
            self.frames.reschedule(true);
        }
        self.change_tools(&fork.tools);
        self.status = Status::Running;
        self.begin_frame(ROOT);
    }

    /// What the fork chose for itself. It has used nothing yet.
    fn settle_into(&mut self, fork: &Fork) {
        self.reset_usage();
        self.unasked = Vec::new();
        self.start.sequential |= fork.sequential;
        self.start.budget = fork.budget.unwrap_or(self.start.budget);
        self.start.limits = fork.limits.unwrap_or(self.start.limits);
        self.start.models.extend(fork.models.iter().map(|(role, name)| (role.clone(), name.clone())));
    }

    fn change_tools(&mut self, tools: &[ToolDef]) {
        if tools.is_empty() {
            return;
        }
        let sequential = self.start.sequential;
        let frame = self.frames.root_mut();
        let mut graph = Graph::clone(&frame.graph);
        for tool in tools {
            graph.tools.insert(tool.name.clone(), Arc::new(tool.clone()));
        }
        frame.graph = Arc::new(graph);
        self.frames.reschedule(sequential);
    }

    /// The nodes from `first` on that do not stand are as if they had never started, but for their visits and tries; one that had
    /// opened frames goes on with these (E-36).
    pub(crate) fn begin_again(&mut self, first: NodeRef, stands: &Stands) {
        self.status = Status::Running;
        let anew = self.begins_anew(first);
        self.drop_from(anew, first.node, stands);
        if let Some(dataflow) = &mut self.frames[first.frame].dataflow {
            dataflow.retired = dataflow.retired.min(first.node.0);
            dataflow.unresolved.forget_from(first.node);
        }
        self.await_from(anew, None);
        if anew != first {
            self.resumes_inside(first);
        }
    }

    /// What the nodes from `first` on did is undone, but for those that stand. Only these and those before `finished` have finished.
    pub(crate) fn drop_from(&mut self, first: NodeRef, finished: NodeIx, stands: &Stands) {
        self.forget_from(first);
        for node in self.of(first).nodes_from(first.node).filter(|node| !stands.has(*node)) {
            let (tries, counted) = self.tries_so_far(first.sibling(node));
            let row = &mut self.frames[first.sibling(node)];
            *row = NodeState { tries, counted, ..NodeState::new(row.visit) };
        }
        self.frames[first.frame].rewind(first.node, finished, stands);
    }

    /// Where in the document a text stands that `event` appends, the next one of this state's journal (E-19).
    /// `None` if it appends none: what a model or a tool said stands in no document.
    pub fn place_of(&self, event: &Event) -> Option<Place> {
        let Event::Appended { node, thread, body: Body::Text(..) } = event else { return None };
        if node.is_empty() {
            return Some(Place::Thread(Arc::clone(thread)));
        }
        let ix = self.node_named(node)?;
        let leaf = self.leaf(ix, self.visit(ix)?.leaf?).name.clone();
        if self.of(ix).path.is_root() {
            return Some(Place::Leaf(Arc::clone(node), leaf));
        }
        Some(match self.is_one_of_many(ix) {
            true => Place::Shared,
            false => Place::Inner(self.frames.graph_of(ix.frame)?, self.def(ix).id.clone(), leaf),
        })
    }

    /// Whether a node is in an iteration of a loop, or on a path over a list.
    fn is_one_of_many(&self, node: NodeRef) -> bool {
        let mut at = self.of(node).opened_by;
        while let Some((around, _)) = at {
            let def = self.def(around);
            let many = |act: &Act| match act {
                Act::Fork(paths) => !matches!(paths.of, PathsOf::Listed(_)),
                act => matches!(act, Act::Loop(_)),
            };
            if def.body.leaves.values().any(|leaf| many(&leaf.act)) {
                return true;
            }
            at = self.of(around).opened_by;
        }
        false
    }
}

impl State {
    /// What stands in a fork that goes on here: what has retired, and what has finished ahead of its turn. That had waited for all that it
    /// could observe (P-20), so whatever else begins anew does not change it.
    pub(super) fn stands(&self, fork: &Fork, past: &Recording) -> Stands {
        let frame = self.frames.root();
        let first = frame.first_anew();
        let retired = Stands::retired(first);
        // Runs of earlier editions begin it anew, and take what is recorded (E-42).
        let whole = frame.dataflow.as_ref().is_some_and(|dataflow| dataflow.unresolved.nodes.is_empty());
        if self.start.edition < 6 || !whole {
            return retired;
        }
        // Whom other tools, models and turns concern is the same whoever was faster (E-07): all that has not retired.
        if !fork.tools.is_empty() || !fork.models.is_empty() || fork.sequential {
            return retired;
        }
        let same = Arc::ptr_eq(&past.graph, &frame.graph) || past.graph == frame.graph;
        if !same {
            return retired;
        }
        let finished = |node: NodeIx| frame.done(node).is_some_and(|done| !done.fatal);
        let stands = Stands::with(first, frame.nodes_from(first).map(finished));
        // Where the source itself has begun any of it anew since, as after a failure, what that came to counts.
        let laid = past.laid(&self.frames, None);
        let again = |node: NodeIx| laid.seen(node) > frame.nodes[node].visit;
        if stands.ahead().any(again) { retired } else { stands }
    }

    /// The nodes, by id, that have finished ahead of their turn and stand in a fork that goes on here all the same.
    pub fn standing_ahead(&self, fork: &Fork) -> BTreeSet<Arc<str>> {
        let stands = fork.past.as_ref().filter(|_| fork.graph.is_none()).map(|past| self.stands(fork, past));
        let id = |node: NodeIx| self.frames.root().graph.nodes[node].id.clone();
        stands.iter().flat_map(Stands::ahead).map(id).collect()
    }
}

impl Dataflow {
    fn rewind(&mut self, first: NodeIx, stands: &Stands) {
        self.on_retired.clear();
        self.waiters.values_mut().for_each(Vec::clear);
        self.unresolved.forget_from(first);
        self.replans.split_off(&first);
        let stays = |node: NodeIx| node < first || stands.has(node);
        self.runtime.values_mut().for_each(|nodes| nodes.retain(|node, _| stays(*node)));
        self.fields.values_mut().for_each(|nodes| nodes.retain(|node, ()| stays(*node)));
    }
}

impl Frame {
    /// What others know of the nodes from `first` on is forgotten.
    fn rewind(&mut self, first: NodeIx, finished: NodeIx, stands: &Stands) {
        self.rewind_orders(finished, stands);
        if let Some(dataflow) = &mut self.dataflow {
            dataflow.rewind(first, stands);
        }
    }

    /// Orders and threads as they were when only the nodes before `first`, and those that stand, had finished.
    fn rewind_orders(&mut self, first: NodeIx, stands: &Stands) {
        let Some(dataflow) = &mut self.dataflow else { return };
        let prefixes =
            self.schedule.orders.indices().map(|order| (order, self.schedule.before(order, first)));
        for ((order, prefix), state) in prefixes.zip(dataflow.orders.values_mut()) {
            // All that has finished stands, or nothing from `first` on.
            let ahead = std::mem::take(&mut state.ahead);
            *state = match stands.any_ahead() {
                true => OrderState { prefix: state.prefix, ahead, ..OrderState::default() },
                false => OrderState { prefix, ..OrderState::default() },
            };
            let ix = ThreadIx::new(order.get());
            let prefix = state.prefix;
            if let Some(written) = dataflow.threads.get_mut(ix) {
                written.rewind(prefix as usize);
                written.ahead.retain(|at, _| state.ahead.contains(at));
                self.threads.rewind(ix, prefix > 0);
            }
        }
    }
}

impl Graph {
    /// The graph with exactly `text` at a place; `None` if it has no such place.
    pub fn with_text(&self, place: &Place, text: &str) -> Option<Graph> {
        let mut graph = self.clone();
        match place {
            Place::Thread(name) => {
                let thread = graph.threads.values_mut().find(|thread| thread.name == *name)?;
                thread.first.as_ref()?;
                thread.first = Some(Template::exactly(text));
            }
            Place::Leaf(node, name) => say(&mut graph, node, name, text)?,
            Place::Inner(ix, node, name) => {
                let inner = graph.graphs.get_mut(*ix)?;
                let mut edited = Graph::clone(inner);
                say(&mut edited, node, name, text)?;
                *inner = Arc::new(edited);
            }
            Place::Shared => return None,
        }
        Some(graph)
    }
}

/// Has a leaf of a node say exactly this.
fn say(graph: &mut Graph, node: &str, name: &str, text: &str) -> Option<()> {
    let node = graph.nodes.values_mut().find(|known| *known.id == *node)?;
    let leaf = node.body.leaves.values_mut().find(|leaf| *leaf.name == *name)?;
    let Act::AppendText(said) = &mut leaf.act else { return None };
    *said = Template::exactly(text);
    Some(())
}
