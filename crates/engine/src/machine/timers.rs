//! Timers: how long asks and what opens frames may take (E-37). When one is due stands in the event that sets it.

use super::node::LeafPhase;
use super::phase::AskPhase;
use super::state::State;
use crate::effect::Wait;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::Act;
use crate::ids::NodeRef;
use crate::place::AskPlace;
use std::borrow::Cow;
use std::sync::Arc;

impl Act {
    /// How long it may take as a whole, in milliseconds, if it says so.
    fn timeout_ms(&self) -> Option<i64> {
        let seconds = match self {
            Self::Ask(.., expects) => expects.as_ref()?.timeout_s,
            Self::Fork(paths) => paths.join.timeout_s,
            Self::Loop(times) => times.timeout_s,
            Self::Sub(sub) => sub.timeout_s,
            _ => None,
        };
        // Rounded up: a time above 0 is none of 0. As many as fit are for ever.
        seconds.filter(|seconds| *seconds > 0.0).map(|seconds| (seconds * 1000.0).ceil() as i64)
    }
}

impl State {
    /// What a running node does.
    pub(super) fn live_act(&self, node: NodeRef) -> Option<&Act> {
        Some(&self.leaf(node, self.visit(node)?.leaf?).act)
    }

    /// When the time of the live leaf of a node is up that begins now, if it has one.
    pub(super) fn due(&self, node: NodeRef) -> Result<Option<i64>, Fault> {
        let Some(ms) = self.live_act(node).and_then(Act::timeout_ms) else { return Ok(None) };
        let limit = self.start.limits.timers;
        if self.timers.len() as u64 >= limit {
            let message =
                format!("the run has {limit} timers, and no more are allowed (`timers` in [limits])");
            return Err(Fault::new(FaultKind::LimitExceeded, message));
        }
        Ok(Some(self.now.saturating_add(ms)))
    }

    /// The time of the live leaf begins.
    pub(super) fn set_timer(&mut self, node: NodeRef, due: Option<i64>) {
        if let Some(until) = due
            && let Some(ms) = self.live_act(node).and_then(Act::timeout_ms)
            && let Some(timer) = self.timer_id(node)
        {
            self.timers.insert(timer, Wait { ms: ms.unsigned_abs(), until });
        }
    }

    /// The same of one that goes on, with all of its time (E-36).
    pub(super) fn set_timer_anew(&mut self, node: NodeRef) {
        let due = self.live_act(node).and_then(Act::timeout_ms).map(|ms| self.now.saturating_add(ms));
        self.set_timer(node, due);
    }

    /// The timer of the live leaf: of one that asks a person it is called as the ask.
    fn timer_id(&self, node: NodeRef) -> Option<Arc<str>> {
        let leaf = Cow::Borrowed(&*self.leaf(node, self.visit(node)?.leaf?).name);
        Some(AskPlace::Leaf { place: self.place(node), leaf }.to_string().into())
    }

    /// The live leaf of a node waits no more.
    pub(super) fn stop_timer(&mut self, node: NodeRef) {
        if !self.timers.is_empty()
            && self.live_act(node).is_some_and(|act| act.timeout_ms().is_some())
            && let Some(timer) = self.timer_id(node)
        {
            self.timers.remove(&timer);
        }
    }

    /// The time of a timer has come.
    pub(super) fn fired(&mut self, timer: &Arc<str>) {
        if self.timers.remove(timer).is_none() {
            return self.misfit(timer);
        }
        let Some(place) = AskPlace::parse(timer) else { return };
        let Some(node) = self.node_at(&place.into_place()) else { return };
        let under_way = self.under_way(Some(node));
        let Some(visit) = self.visit_mut(node) else { return };
        match &mut visit.phase {
            LeafPhase::Ask(phase) => {
                *phase = AskPhase::Expired;
                self.asks.remove(timer);
            }
            LeafPhase::Frames(children) => {
                children.be_late(under_way);
                self.cut_children(node);
            }
            _ => {}
        }
        self.wake(node);
    }

    /// The fault of what has taken longer than it may.
    pub(super) fn too_late(
        &self,
        node: NodeRef,
        (what, under_way): (&str, &str),
        seconds: Option<f64>,
    ) -> Fault {
        let (id, seconds) = (&self.def(node).id, seconds.unwrap_or_default());
        let message = format!("the {what} `{id}` took longer than its limit of {seconds} s{under_way}");
        Fault::new(FaultKind::Timeout, message)
    }

    /// The timer that an event has set which was just applied, if it is still there.
    pub fn timer_set_by(&self, event: &Event) -> Option<(&Arc<str>, Wait)> {
        let set = match event {
            Event::Asked(asked) if asked.due.is_some() => self.timers.get_key_value(&asked.ask),
            Event::Entered { node, due: Some(_), .. } => {
                self.timers.get_key_value(&self.timer_id(self.node_named(node)?)?)
            }
            _ => None,
        };
        set.map(|(timer, wait)| (timer, *wait))
    }

    /// When the first of the timers is due, in milliseconds since 1970.
    pub fn next_due(&self) -> Option<i64> {
        self.timers.values().map(|wait| wait.until).min()
    }

    /// When an open question expires, in milliseconds since 1970: with its own time, or with that of what it is part of, as a fork or a
    /// loop (E-37).
    pub fn expires(&self, ask: &str) -> Option<i64> {
        let mut node = self.asks.get(ask)?.node;
        let mut first = self.timers.get(ask).map(|wait| wait.until);
        while let Some((opener, ..)) = self.of(node).opened_by {
            let around = self.timer_id(opener).and_then(|timer| self.timers.get(&timer));
            first = first.into_iter().chain(around.map(|wait| wait.until)).min();
            node = opener;
        }
        first
    }

    /// Timers that came due before `now` while nobody looked, in the order in which they did.
    pub fn overdue(&self, now: i64) -> Vec<Arc<str>> {
        let due = self.timers.iter().filter(|(_, wait)| wait.left_ms(now) == 0);
        let mut due: Vec<(i64, Arc<str>)> = due.map(|(timer, wait)| (wait.until, timer.clone())).collect();
        due.sort();
        due.into_iter().map(|(_, timer)| timer).collect()
    }

    /// What has not ended of the frames of a node is cut off (W-07, E-38).
    pub(super) fn cut_children(&mut self, node: NodeRef) {
        self.stop_timer(node);
        for frame in self.visit(node).map(super::node::Visit::open_children).unwrap_or_default() {
            self.suspend(node, frame);
        }
    }
}
