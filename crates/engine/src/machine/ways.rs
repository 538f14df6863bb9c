//! Flow frames: one node is live at a time, and the ways of a node say which one comes next (E-34).

use super::frame::Frame;
use super::node::{Done, NodePhase, Visit};
use super::opened::Children;
use super::state::State;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Node, OnError, Way, When};
use crate::ids::{FrameIx, NodeIx, NodeRef, ThreadIx};
use crate::message::{Entry, Thread};
use crate::template::{member, normalized};
use serde_json::{Map, Value, json};
use std::sync::Arc;

impl Frame {
    /// Whether a node has done all that it had to, and has only to be finished.
    pub(crate) fn is_through(&self, node: NodeIx) -> bool {
        let row = self.nodes.get(node);
        matches!(row.map(|row| &row.phase), Some(NodePhase::Running(visit)) if visit.has_succeeded())
    }

    /// What the frame comes to, if all goes well.
    pub(crate) fn output(&self) -> &Value {
        let result = |node: NodeIx| self.done(node).filter(|done| !done.skipped);
        let last = match &self.flow {
            Some(flow) => flow.last.and_then(|node| self.done(node)),
            None => self.graph.nodes.indices().rev().find_map(result),
        };
        last.map_or(&Value::Null, |done| &done.output)
    }

    /// A result brings its declared fields, and sets them under the node's id, too (D-05).
    pub(crate) fn set_fields(&mut self, node: NodeIx, object: &Map<String, Value>, names: &[Arc<str>]) {
        let id = self.graph.nodes[node].id.clone();
        let Some(flow) = &mut self.flow else { return };
        object.keys().for_each(|key| flow.brings(normalized(key).into(), node));
        for name in names {
            let Some(value) = member(object, name) else { continue };
            let name = normalized(name);
            flow.set_variable(format!("{id}_{name}").into(), value.clone());
            flow.set_variable(name.into(), value.clone());
        }
    }

    /// A node leaves what it has said on the threads of the frame.
    fn leave_threads(&mut self, node: NodeIx, own: Thread, published: Option<(ThreadIx, Entry)>) {
        if let Some(thread) = self.graph.nodes[node].body.thread {
            *self.threads.open(thread) = own;
        }
        if let Some((thread, entry)) = published {
            self.threads.open(thread).push(entry);
        }
    }
}

impl State {
    /// The flow begins with its first node.
    pub(super) fn begin_flow(&mut self, frame: FrameIx) {
        self.come_to(NodeRef { frame, node: NodeIx(0) });
    }

    fn come_to(&mut self, node: NodeRef) {
        let frame = &mut self.frames[node.frame];
        if let Some(flow) = &mut frame.flow {
            flow.at = node.node;
        }
        frame.nodes.come_to(node.node);
        let row = &mut frame.nodes[node.node];
        row.phase = NodePhase::Waiting(0);
        self.wake(node);
    }

    /// A node of a flow has ended: the way on, if it can be told at once; else it is asked for.
    pub(super) fn flow_on(&mut self, node: NodeRef, own: Thread, published: Option<(ThreadIx, Entry)>) {
        let fault = self.done(node).and_then(|done| done.fault.clone());
        let graph = Arc::clone(&self.of(node).graph);
        let def = &graph.nodes[node.node];
        if fault.is_none() {
            self.frames[node].forget_records();
        }
        let handled = fault.as_ref().map(|_| def.ways.iter().find(|way| way.when == When::Fault));
        let edition = self.start.edition;
        let frame = &mut self.frames[node.frame];
        if let (Some(fault), Some(None), Some(flow)) = (&fault, handled, &mut frame.flow)
            && def.on_error != OnError::Continue
        {
            // What it said is gone once it begins anew.
            (flow.at, flow.ended) = (node.node, true);
            frame.set_fault(fault.clone());
            return;
        }
        if let (Some(fault), NodePhase::Done(done)) = (&fault, &mut frame.nodes[node.node].phase) {
            let error = json!(fault);
            let error = if edition >= 7 { with_paths(error, done, def) } else { error };
            Arc::make_mut(done).output = json!({ "error": error });
        }
        frame.leave_threads(node.node, own, published);
        let Some(flow) = &mut frame.flow else { return };
        if !def.passes && fault.is_none() {
            flow.last = Some(node.node);
        }
        let way = handled.flatten().or_else(|| plain(&def.ways));
        match way {
            Some(way) => self.come_to(node.sibling(way.to)),
            None if def.ways.iter().all(|way| way.when == When::Fault) => flow.ended = true,
            None => flow.between = true,
        }
    }

    /// Whether it has to be told which node comes next.
    pub(super) fn is_between(&self, node: NodeRef) -> bool {
        self.of(node).flow.as_ref().is_some_and(|flow| flow.between && flow.at == node.node)
    }

    /// The node that comes next, by the first way that is open; or why there is none.
    pub(super) fn derive_way(&self, node: NodeRef) -> Event {
        match self.open_way(node) {
            Ok(next) => Event::NodeStarted { node: self.name(node.sibling(next)), warnings: Vec::new() },
            Err(fault) => {
                Event::Unrouted { node: self.name(node), fault: Box::new(fault.at(&self.name(node))) }
            }
        }
    }

    fn open_way(&self, node: NodeRef) -> Result<NodeIx, Fault> {
        let def = self.def(node);
        for way in &def.ways {
            match &way.when {
                When::Fault => {}
                When::Done => return Ok(way.to),
                When::Holds(condition) => {
                    let to = &self.of(node).graph.nodes[way.to].id;
                    let what = format!("the condition of the way from `{}` to `{to}`", def.id);
                    if self.holds(node, condition, &what)? {
                        return Ok(way.to);
                    }
                }
            }
        }
        let message = format!(
            "no way on from `{}` is open: none of its conditions holds, and there is no other",
            def.id
        );
        Err(Fault::new(FaultKind::ExecutionFailure, message))
    }

    /// A node begins: nobody asks any more which one comes next.
    pub(super) fn way_taken(&mut self, node: NodeRef) {
        let frame = &mut self.frames[node.frame];
        let Some(flow) = &mut frame.flow else { return };
        let before = std::mem::replace(&mut flow.at, node.node);
        let was_between = std::mem::take(&mut flow.between);
        frame.nodes.come_to(node.node);
        if was_between {
            self.settle_agenda(node.sibling(before));
        }
    }

    /// There is no way on from a node: its frame has failed.
    pub(super) fn unrouted(&mut self, node: NodeRef, fault: &Fault) {
        let frame = &mut self.frames[node.frame];
        if let Some(flow) = &mut frame.flow {
            flow.ended = true;
            frame.set_fault(Box::new(fault.clone()));
        }
    }
}

/// Going on where a frame stood (E-36): what has finished is final, and the innermost node that failed, or was under way, begins
/// a new visit.
impl State {
    pub(super) fn restart(&mut self, ix: FrameIx) {
        let failed = self.frames[ix].take_fault().is_some();
        if self.frames[ix].next_seed().is_some() {
            self.note_seeding(ix);
        }
        let Some(flow) = &mut self.frames[ix].flow else { return self.restart_dataflow(ix) };
        // A fork of a run that has completed has nothing to do.
        if flow.ended && !failed {
            return;
        }
        flow.ended = false;
        let node = NodeRef { frame: ix, node: flow.at };
        if flow.between {
            return self.wake(node);
        }
        // What has done all it had to is to finish, and not to do it again.
        if self.of(node).is_through(node.node) {
            return self.wake(node);
        }
        if self.resumes_inside(node) {
            return;
        }
        self.recollect(node);
        self.give_messages_back(node);
        // What it had to say it will say again, if it still holds.
        let name = self.name(node);
        self.warnings.retain(|warning| warning.node.as_ref() != Some(&name));
        self.come_to(node);
    }

    /// A node that waited for frames goes on with them, as the visit that it was.
    pub(super) fn resumes_inside(&mut self, node: NodeRef) -> bool {
        let Some(row) = self.frames[node.frame].nodes.get_mut(node.node) else { return false };
        if let NodePhase::Done(done) = &mut row.phase
            && done.is_interrupted()
            && let Some(visit) = Arc::make_mut(done).take_interrupted()
        {
            row.phase = NodePhase::Running(visit);
        }
        // Those that were under way when the run ended, or where a fork leaves its source, stop where they are first.
        for child in self.visit(node).map(Visit::open_children).unwrap_or_default() {
            self.suspend(node, child);
        }
        match self.children_mut(node) {
            Some(Children::Fork(_)) => self.restart_paths(node),
            Some(Children::Loop(_)) => self.restart_loop(node),
            Some(Children::Sub(_)) => self.restart_sub(node),
            None => return false,
        }
        self.wake(node);
        true
    }

    /// What a visit recorded that is to begin anew may be taken by the next.
    fn recollect(&mut self, node: NodeRef) {
        self.note_unknown(node);
        for kept in self.collect(node) {
            // In a fork it is there already, as its source had it.
            let new = !self.reuse.knows(kept.effect());
            if new && kept.concerns_next_visit() {
                let spot = self.spot_for(node);
                self.reuse.add(spot, kept, false);
            }
        }
    }
}

/// The error of a join that was not met has what came of its paths (W-08): `results` and `errors`, by path id.
fn with_paths(mut error: Value, done: &Done, def: &Node) -> Value {
    let visit = done.more.as_ref().and_then(|more| more.interrupted.as_deref());
    if let (Some((Children::Fork(phase), leaf)), Value::Object(error)) =
        (visit.and_then(Visit::children), &mut error)
        && let Some(Act::Fork(paths)) = def.body.leaves.get(leaf).map(|leaf| &leaf.act)
    {
        error.insert("results".to_owned(), phase.results(&paths.of));
        error.insert("errors".to_owned(), phase.errors(&paths.of));
    }
    error
}

/// The way after a success that is open whatever the data are, if nothing has to be asked before it.
fn plain(ways: &[Way]) -> Option<&Way> {
    let way = ways.iter().find(|way| way.when != When::Fault)?;
    (way.when == When::Done).then_some(way)
}
