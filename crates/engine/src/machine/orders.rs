//! Waiting and waking: who may go on because something finished or retired (P-20).

use super::state::{Contribution, NodePhase, State};
use crate::effect::Effects;
use crate::ids::{Ix, NodeIx, OrderIx, ThreadIx};
use crate::message::{Entry, Thread};
use crate::schedule::{Until, impure_order, writers_order};
use std::collections::BTreeMap;

impl State {
    /// Registers the waits of the nodes from `first` on, and one more if there is one, and queues those that have none
    /// left.
    pub(crate) fn await_from(&mut self, first: NodeIx, also: Option<Until>) {
        let nodes: Vec<NodeIx> = self.graph.nodes.indices().skip(first.get()).collect();
        for node in nodes {
            let mut missing = 0;
            if let Some(until) = also.filter(|until| !self.holds(*until)) {
                missing += 1;
                self.register(until, node);
            }
            for at in 0..self.schedule.waits[node].len() {
                let Some(until) = self.schedule.waits[node].get(at).map(|wait| wait.until) else { continue };
                if !self.holds(until) {
                    missing += 1;
                    self.register(until, node);
                }
            }
            self.nodes[node].phase = NodePhase::Waiting(missing);
            self.wake(node);
        }
    }

    fn holds(&self, until: Until) -> bool {
        match until {
            Until::Finished(node) => self.done(node).is_some_and(|done| !done.fatal),
            Until::First(order, count) => self.orders[order].prefix >= count,
            Until::Retired(count) => self.retired >= count,
        }
    }

    fn register(&mut self, until: Until, node: NodeIx) {
        match until {
            Until::Finished(producer) => self.nodes[producer].waiters.push(node),
            Until::First(order, count) => self.orders[order].waiters.entry(count).or_default().push(node),
            Until::Retired(count) => self.on_retired.entry(count).or_default().push(node),
        }
    }

    /// One wait of `node` is fulfilled: a node that has not started counts it, a running one looks again.
    fn fulfil(&mut self, node: NodeIx) {
        if let NodePhase::Waiting(missing) = &mut self.nodes[node].phase {
            *missing = missing.saturating_sub(1);
        } else {
            self.take_turn(node);
        }
        self.wake(node);
    }

    /// Puts the node on the agenda if it has something to derive.
    pub(crate) fn wake(&mut self, node: NodeIx) {
        if self.nodes[node].queued {
            return;
        }
        if matches!(self.nodes[node].phase, NodePhase::Waiting(0)) && self.needs_retirement(node) {
            let missing = NodePhase::Waiting(1);
            self.nodes[node].phase = missing;
            self.register(Until::Retired(node.0), node);
            return;
        }
        if self.actionable(node) {
            self.nodes[node].queued = true;
            self.agenda.push_back(node);
        }
    }

    /// Takes the node off the agenda, or leaves it at the front while it has more to derive.
    pub(crate) fn settle_agenda(&mut self, node: NodeIx) {
        if self.agenda.front() == Some(&node) && !self.actionable(node) {
            self.agenda.pop_front();
            self.nodes[node].queued = false;
        } else {
            self.wake(node);
        }
    }

    /// Whether nothing earlier in list order forbids a call with these effects now; else what to wait for.
    pub(crate) fn world_gate(&self, node: NodeIx, effects: Effects) -> Option<Until> {
        let threads = self.graph.threads.len();
        let (writers, impure) = self.schedule.world_before[node];
        let until = match effects {
            Effects::Pure => return None,
            // Whether a recorded outcome of the node may be reused depends on what ran afresh before (E-29).
            Effects::Read if !self.pool.has(node) => Until::First(writers_order(threads), writers),
            // What changes the world can't be undone when other steps take the place of its own.
            Effects::Idempotent if self.schedule.open_ended.is_some_and(|first| first < node) => {
                Until::Retired(node.0)
            }
            Effects::Read | Effects::Idempotent => Until::First(impure_order(threads), impure),
            Effects::Write => Until::Retired(node.0),
        };
        (!self.holds(until)).then_some(until)
    }

    /// Makes the running node look again once `until` holds.
    pub(crate) fn wait_for_world(&mut self, node: NodeIx, until: Until) {
        self.register(until, node);
    }

    /// A node finished in a way that later nodes may build on: its places move on.
    pub(crate) fn announce(&mut self, node: NodeIx, own: Thread, published: Option<Entry>) {
        for at in 0..self.schedule.member[node].len() {
            let Some(&(order, position)) = self.schedule.member[node].get(at) else { continue };
            let thread = (order.get() < self.threads.len()).then(|| ThreadIx::new(order.get()));
            let contribution =
                thread.map(|thread| match self.graph.nodes[node].body.thread == Some(thread) {
                    true => Contribution::Whole(own.clone()),
                    false => Contribution::Append(published),
                });
            if self.orders[order].prefix == position {
                // Most are not ahead of their turn.
                self.orders[order].prefix += 1;
                if let (Some(thread), Some(contribution)) = (thread, contribution) {
                    self.threads[thread].take(contribution);
                }
            } else {
                self.orders[order].ahead.insert(position);
                if let (Some(thread), Some(contribution)) = (thread, contribution) {
                    self.threads[thread].ahead.insert(position, contribution);
                }
            }
            self.advance(order);
        }
        for waiter in std::mem::take(&mut self.nodes[node].waiters) {
            self.fulfil(waiter);
        }
    }

    /// Moves an order's prefix over what has finished, and wakes who waited for it.
    fn advance(&mut self, order: OrderIx) {
        let state = &mut self.orders[order];
        while state.ahead.remove(&state.prefix) {
            if order.get() < self.threads.len() {
                self.threads[ThreadIx::new(order.get())].advance(state.prefix);
            }
            state.prefix += 1;
        }
        let prefix = state.prefix;
        while let Some(waiters) = due(&mut self.orders[order].waiters, prefix) {
            for waiter in waiters {
                self.fulfil(waiter);
            }
        }
    }

    /// Retires what has finished in list order, up to a fault that ends the run.
    pub(crate) fn retire(&mut self) {
        while (self.retired as usize) < self.graph.nodes.len() {
            let node = NodeIx(self.retired);
            if !self.broken.nodes.is_empty() {
                self.count_failure(node);
            }
            match &mut self.nodes[node].phase {
                NodePhase::Done(done) if !done.fatal => {
                    // Behind a failed node, a resumed run begins everything anew.
                    if self.recorder.is_none() && self.broken.nodes.is_empty() {
                        done.records = Box::default();
                    }
                }
                _ => break,
            }
            self.retired += 1;
        }
        while let Some(waiters) = due(&mut self.on_retired, self.retired) {
            for waiter in waiters {
                self.fulfil(waiter);
            }
        }
    }

    /// The thread as a node observes it that has `count` earlier writers.
    pub(crate) fn thread_after(&self, thread: ThreadIx, count: u32) -> Thread {
        let state = &self.threads[thread];
        match (count as usize).checked_sub(1) {
            None => state.base.clone(),
            Some(last) => state.after.get(last).cloned().unwrap_or_default(),
        }
    }
}

/// The next of those who wait for `count`, or for less.
fn due(waiters: &mut BTreeMap<u32, Vec<NodeIx>>, count: u32) -> Option<Vec<NodeIx>> {
    let first = waiters.first_entry()?;
    (*first.key() <= count).then(|| first.remove())
}

impl super::state::ThreadState {
    fn advance(&mut self, position: u32) {
        let contribution = self.ahead.remove(&position).unwrap_or(Contribution::Append(None));
        self.take(contribution);
    }

    /// The next writer's turn.
    fn take(&mut self, contribution: Contribution) {
        let before = self.after.last().unwrap_or(&self.base);
        let value = match contribution {
            Contribution::Whole(thread) => thread,
            Contribution::Append(message) => {
                let mut thread = before.clone();
                message.into_iter().for_each(|message| thread.push(message));
                thread
            }
        };
        self.after.push(value);
    }
}
