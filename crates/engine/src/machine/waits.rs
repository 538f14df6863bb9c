//! Waiting and waking: who may go on because something finished or retired (P-20).

use super::dataflow::Contribution;
use super::frame::Frame;
use super::node::NodePhase;
use super::reuse::records::Records;
use super::state::State;
use crate::effect::Effects;
use crate::ids::{FrameIx, Ix, NodeIx, NodeRef, OrderIx, ThreadIx};
use crate::message::{Entry, Thread};
use crate::schedule::{Until, impure_order, writers_order};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many nodes an empty agenda keeps room for.
const AGENDA_KEPT: usize = 1024;

impl State {
    /// Registers the waits of the nodes from `first` on that have not ended, and one more if there is one, and queues those that have
    /// none left.
    pub(crate) fn await_from(&mut self, first: NodeRef, also: Option<Until>) {
        for node in self.of(first).nodes_from(first.node) {
            if self.of(first).done(node).is_some() {
                continue;
            }
            self.frames[first.frame].register_all(node, also);
            self.wake(first.sibling(node));
        }
    }

    /// One wait of `node` is fulfilled: a node that has not started counts it, a running one looks again.
    fn fulfil(&mut self, node: NodeRef) {
        if let NodePhase::Waiting(missing) = &mut self.frames[node].phase {
            *missing = missing.saturating_sub(1);
        } else {
            self.take_turn(node);
        }
        self.wake(node);
    }

    /// Puts the node on the agenda if it has something to derive.
    pub(crate) fn wake(&mut self, node: NodeRef) {
        if self.frames[node].queued {
            return;
        }
        if matches!(self.frames[node].phase, NodePhase::Waiting(0)) && self.needs_retirement(node) {
            self.frames[node].phase = NodePhase::Waiting(1);
            self.frames[node.frame].register(Until::Retired(node.node.0), node.node);
            return;
        }
        if self.actionable(node) {
            self.frames[node].queued = true;
            self.agenda.push_back(node);
        }
    }

    /// Takes the node off the agenda, or leaves it at the front while it has more to derive.
    pub(crate) fn settle_agenda(&mut self, node: NodeRef) {
        if self.agenda.front() == Some(&node) && !self.actionable(node) {
            self.agenda.pop_front();
            // A fork of thousands of paths needs room that nobody needs again.
            if self.agenda.is_empty() && self.agenda.capacity() > AGENDA_KEPT {
                self.agenda = VecDeque::new();
            }
            self.frames[node].queued = false;
        } else {
            self.wake(node);
        }
    }

    /// Whether nothing earlier in list order forbids a call with these effects now; else what to wait for.
    pub(crate) fn side_effect_gate(&self, node: NodeRef, effects: Effects) -> Option<Until> {
        let frame = self.of(node);
        // A flow has one live node, and whoever opened it had its turn (E-34).
        if frame.flow.is_some() {
            return None;
        }
        let threads = frame.graph.threads.len();
        let (writers, impure) = frame.schedule.world_before[node.node];
        let until = match effects {
            Effects::Pure => return None,
            // Whether a recorded outcome of the node may be reused depends on what ran afresh before (E-29).
            Effects::Read if !self.reuse.has(self.spot(node)) => {
                Until::First(writers_order(threads), writers)
            }
            // What changes the world can't be undone when other steps take the place of its own.
            Effects::Idempotent if frame.schedule.open_ended.is_some_and(|first| first < node.node) => {
                Until::Retired(node.node.0)
            }
            Effects::Read | Effects::Idempotent => Until::First(impure_order(threads), impure),
            Effects::Write => Until::Retired(node.node.0),
        };
        (!frame.holds(until)).then_some(until)
    }

    /// Makes the running node look again once `until` holds.
    pub(crate) fn wait_for_world(&mut self, node: NodeRef, until: Until) {
        self.frames[node.frame].register(until, node.node);
    }

    /// A node finished in a way that later nodes may build on: its places move on.
    pub(crate) fn announce(&mut self, node: NodeRef, own: Thread, published: Option<Entry>) {
        for at in 0..self.of(node).schedule.member[node.node].len() {
            let frame = &mut self.frames[node.frame];
            let Some(&(order, position)) = frame.schedule.member[node.node].get(at) else { continue };
            let whole =
                frame.graph.nodes[node.node].body.thread.map(|thread| OrderIx(thread.0)) == Some(order);
            let contribution =
                if whole { Contribution::Whole(own.clone()) } else { Contribution::Append(published) };
            frame.contribute(order, position, contribution);
            while let Some(waiters) = self.frames[node.frame].due_in(order) {
                self.fulfil_all(node.frame, waiters);
            }
        }
        let dataflow = self.frames[node.frame].dataflow.as_mut();
        let waiters = dataflow.and_then(|dataflow| dataflow.waiters.get_mut(node.node)).map(std::mem::take);
        self.fulfil_all(node.frame, waiters.unwrap_or_default());
    }

    /// Retires what has finished in list order, up to a fault that ends the frame.
    pub(crate) fn retire(&mut self, frame: FrameIx) {
        let keep = self.recorder.is_some();
        self.frames[frame].retire(keep);
        while let Some(waiters) = self.frames[frame].due_retired() {
            self.fulfil_all(frame, waiters);
        }
    }

    fn fulfil_all(&mut self, frame: FrameIx, waiters: Vec<NodeIx>) {
        for node in waiters {
            self.fulfil(NodeRef { frame, node });
        }
    }
}

impl Frame {
    /// Registers a node's waits, and one more if there is one.
    fn register_all(&mut self, node: NodeIx, also: Option<Until>) {
        let mut missing = 0;
        let schedule = Arc::clone(&self.schedule);
        for until in also.into_iter().chain(schedule.waits[node].iter().map(|wait| wait.until)) {
            if !self.holds(until) {
                missing += 1;
                self.register(until, node);
            }
        }
        self.nodes[node].phase = NodePhase::Waiting(missing);
    }

    fn holds(&self, until: Until) -> bool {
        match until {
            Until::Finished(node) => self.done(node).is_some_and(|done| !done.fatal),
            Until::First(order, count) => {
                self.dataflow.as_ref().is_none_or(|dataflow| dataflow.orders[order].prefix >= count)
            }
            Until::Retired(count) => self.retired() >= count,
        }
    }

    fn register(&mut self, until: Until, node: NodeIx) {
        let Some(dataflow) = &mut self.dataflow else { return };
        match until {
            Until::Finished(producer) => dataflow.waiters[producer].push(node),
            Until::First(order, count) => dataflow.orders[order].waiters.entry(count).or_default().push(node),
            Until::Retired(count) => dataflow.on_retired.entry(count).or_default().push(node),
        }
    }

    /// The writer at `position` of an order has finished: the order moves on, as far as its writers have finished in a row.
    fn contribute(&mut self, order: OrderIx, position: u32, contribution: Contribution) {
        let Some(dataflow) = &mut self.dataflow else { return };
        let ix = ThreadIx::new(order.get());
        let mut thread = dataflow.threads.get_mut(ix).map(|thread| (thread, self.threads.base(ix)));
        let state = &mut dataflow.orders[order];
        if state.prefix != position {
            state.ahead.insert(position);
            if let Some((thread, _)) = thread {
                thread.ahead.insert(position, contribution);
            }
            return;
        }
        // Most are not ahead of their turn.
        state.prefix += 1;
        if let Some((thread, base)) = &mut thread {
            thread.take(base, contribution);
        }
        while state.ahead.remove(&state.prefix) {
            if let Some((thread, base)) = &mut thread {
                thread.advance(base, state.prefix);
            }
            state.prefix += 1;
        }
    }

    /// Some of those who wait for no more of an order than has finished.
    fn due_in(&mut self, order: OrderIx) -> Option<Vec<NodeIx>> {
        let state = &mut self.dataflow.as_mut()?.orders[order];
        due(&mut state.waiters, state.prefix)
    }

    fn due_retired(&mut self) -> Option<Vec<NodeIx>> {
        let dataflow = self.dataflow.as_mut()?;
        due(&mut dataflow.on_retired, dataflow.retired)
    }

    /// `keep`: whether what retired nodes recorded may still be asked for.
    fn retire(&mut self, keep: bool) {
        let nodes = self.graph.nodes.len();
        while let Some(dataflow) =
            self.dataflow.as_mut().filter(|dataflow| (dataflow.retired as usize) < nodes)
        {
            let node = NodeIx(dataflow.retired);
            let all_resolved = dataflow.unresolved.nodes.is_empty();
            if !all_resolved {
                self.count_failure(node);
            }
            let row = &mut self.nodes[node];
            if !matches!(&row.phase, NodePhase::Done(done) if !done.fatal) {
                break;
            }
            // Behind a failed node, a resumed run begins everything anew. What another state has, too, is not copied to be forgotten.
            if !keep
                && all_resolved
                && let NodePhase::Done(done) = &mut row.phase
                && let Some(done) = Arc::get_mut(done)
            {
                done.records = Records::default();
            }
            if let Some(dataflow) = &mut self.dataflow {
                dataflow.retired += 1;
            }
        }
    }

    /// The thread as a node observes it that has `count` earlier writers.
    pub(crate) fn thread_after(&self, thread: ThreadIx, count: u32) -> Thread {
        match (count as usize).checked_sub(1) {
            None => self.threads.base(thread).clone(),
            Some(last) => {
                let written = self.dataflow.as_ref().and_then(|dataflow| dataflow.threads.get(thread));
                written.and_then(|written| written.after.get(last)).cloned().unwrap_or_default()
            }
        }
    }
}

/// The next of those who wait for `count`, or for less.
fn due(waiters: &mut BTreeMap<u32, Vec<NodeIx>>, count: u32) -> Option<Vec<NodeIx>> {
    let first = waiters.first_entry()?;
    (*first.key() <= count).then(|| first.remove())
}
