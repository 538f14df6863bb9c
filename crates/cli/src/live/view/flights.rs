//! Effects in flight: what is requested, has its turn, says something meanwhile, and ends.

use super::View;
use super::standing::Stand;
use crate::asks;
use crate::live::Now;
use crate::recovery::because;
use selvedge_engine::{EffectId, State};
use selvedge_host::timeline::NodeStatus;
use selvedge_runtime::Delta;
use std::sync::Arc;

/// Bytes of streamed text that are kept of a node; half of them go when there are more.
const TEXT: usize = 32 << 10;
/// How long a node keeps the focus at least while others stream too, in milliseconds.
const STICKY_MS: i64 = 1_000;
/// Why a call waits to be tried again, where an earlier process was told.
const AGAIN: &str = "it failed before";

/// What the journal does not say of a node that runs.
#[derive(Debug, Default)]
pub(in crate::live) struct Active {
    /// When it started.
    pub(in crate::live) started: i64,
    /// Which visit of it.
    visit: u32,
    /// Its effects that were requested and have not ended, in that order.
    pub(in crate::live) flying: Vec<Flying>,
    /// What a person is asked, by the ask's id.
    pub(in crate::live) asking: Vec<(Arc<str>, String)>,
    /// Why its next call may not begin yet.
    pub(in crate::live) held: String,
    /// What failed, or what was decided about it.
    pub(in crate::live) recovery: String,
    /// How often a loop goes round, where that is known.
    pub(in crate::live) rounds: Option<u32>,
    /// The end of the text that streams.
    pub(in crate::live) text: String,
    /// The last line of a tool's own progress.
    pub(in crate::live) note: String,
}

/// An effect in flight.
#[derive(Debug)]
pub(in crate::live) struct Flying {
    pub(super) effect: EffectId,
    /// The tool; nothing for a model.
    pub(in crate::live) tool: Option<Arc<str>>,
    /// Whether it has its turn.
    pub(in crate::live) began: bool,
    /// When it is tried again, and why.
    pub(in crate::live) again: Option<(i64, String)>,
}

impl Active {
    /// Where the node stands, and until when: it runs unless a person is asked, or none of its calls has its turn.
    fn status(&self, now: i64) -> (NodeStatus, Option<i64>) {
        let due = |call: &Flying| call.again.as_ref().map(|(at, _)| *at).filter(|at| *at > now);
        match self.flying.as_slice() {
            _ if !self.asking.is_empty() => (NodeStatus::Asking, None),
            flying if flying.is_empty() || flying.iter().any(|call| call.began) => {
                (NodeStatus::Running, None)
            }
            // The first whose time has come waits for its turn.
            flying => match flying.iter().map(due).min().flatten() {
                Some(first) => (NodeStatus::Retrying, Some(first)),
                None => (NodeStatus::Queued, None),
            },
        }
    }
}

impl View {
    /// A node goes on: what it has in flight, and what it asks.
    pub(super) fn goes_on(&mut self, row: usize, number: u32, state: &State, now: Now) {
        let began = Active { started: now.running, visit: number, ..Active::default() };
        let mut active = match self.active.remove(&row) {
            Some(active) if active.visit == number || active.visit == 0 => active,
            _ => began,
        };
        active.visit = number;
        let Some(visit) = self.timeline.nodes().get(row).and_then(|node| node.current()) else { return };
        let mut known = std::mem::take(&mut active.flying);
        for (call, attempt) in visit.under_way() {
            if let Some(at) = known.iter().position(|flying| flying.effect == attempt.effect) {
                active.flying.push(known.swap_remove(at));
                continue;
            }
            let tool = call.kind.name().cloned();
            if tool.is_none() {
                active.text.clear();
            }
            active.note.clear();
            let until = now.running.saturating_add(i64::try_from(attempt.after_ms).unwrap_or(i64::MAX));
            let why = if attempt.reason.is_some() { because(call) } else { AGAIN.to_owned() };
            let again = (attempt.after_ms > 0 || attempt.reason.is_some()).then_some((until, why));
            active.flying.push(Flying { effect: attempt.effect.clone(), tool, began: false, again });
            self.effects.insert(attempt.effect.clone(), row);
        }
        active.asking.retain(|(ask, _)| visit.open_questions().any(|question| question.ask == *ask));
        for question in visit.open_questions() {
            if !active.asking.iter().any(|(ask, _)| *ask == question.ask) {
                let open = state.asks().get(&question.ask).map(|ask| asks::prompt(state, ask));
                let prompt = open.unwrap_or_else(|| question.prompt.to_string());
                active.asking.push((question.ask.clone(), prompt));
            }
        }
        if visit.frames.iteration.is_some() && active.rounds.is_none() {
            let name = self.timeline.nodes().get(row).map(|node| self.timeline.event_name(node));
            active.rounds = name.and_then(|name| state.iterations(&name));
        }
        self.active.insert(row, active);
        known.into_iter().for_each(|gone| self.landed(row, &gone));
    }

    /// Keeps where a node stands.
    pub(super) fn stands(&mut self, row: usize, now: i64) {
        let stand = self.active.get(&row).map(|active| {
            let (status, until) = active.status(now);
            let opens = self.visit(row).is_some_and(|visit| !visit.frames.is_empty());
            let lane = self.track.node_at(&self.timeline, row).and_then(|node| self.track.lane_of(node));
            Stand { status, until, counts: !opens, lane }
        });
        self.standing.put(row, stand);
    }

    /// A node has ended, and nothing of it is in flight.
    pub(super) fn land_all(&mut self, row: usize) {
        let Some(active) = self.active.remove(&row) else { return };
        active.flying.iter().for_each(|gone| self.landed(row, gone));
        if self.focus.is_some_and(|(focus, _)| focus == row) {
            self.focus = None;
        }
    }

    fn landed(&mut self, row: usize, gone: &Flying) {
        self.effects.remove(&gone.effect);
        if gone.began {
            self.count(row, |count| count.saturating_sub(1));
        }
    }

    /// Calls have their turn in a node, or no more: the frames that it is in know.
    fn count(&mut self, row: usize, change: impl Fn(u32) -> u32) {
        let mut at = self.timeline.nodes().get(row).map(|node| node.within);
        while let Some(frame) = at
            && let Some(opener) = self.timeline.frames().get(frame).and_then(|frame| frame.opener)
        {
            let working = self.working.entry(opener).or_default();
            match change(working.get(&frame).copied().unwrap_or(0)) {
                0 => drop(working.remove(&frame)),
                count => drop(working.insert(frame, count)),
            }
            at = self.timeline.nodes().get(opener).map(|node| node.within);
        }
    }

    /// An effect has its turn.
    pub(in crate::live) fn began(&mut self, effect: &EffectId, now: i64) {
        let Some(&row) = self.effects.get(effect) else { return };
        let active = self.active.get_mut(&row);
        let flying = active.and_then(|active| active.flying.iter_mut().find(|f| f.effect == *effect));
        if let Some(flying) = flying.filter(|flying| !flying.began) {
            (flying.began, flying.again) = (true, None);
            self.count(row, |count| count + 1);
            self.stands(row, now);
        }
    }

    /// A piece of what an effect says while it goes on.
    pub(in crate::live) fn delta(&mut self, effect: &EffectId, delta: Delta, now: i64) {
        let Some(&row) = self.effects.get(effect) else { return };
        let Some(active) = self.active.get_mut(&row) else { return };
        match delta {
            Delta::Progress(line) => active.note = line,
            Delta::Text(piece) => {
                self.streamed = true;
                active.text.push_str(&piece);
                if active.text.len() > TEXT {
                    let from = active.text.ceil_char_boundary(active.text.len() - TEXT / 2);
                    active.text.drain(..from);
                }
                let kept = self.focus.is_some_and(|(focus, since)| {
                    focus == row || (now < since + STICKY_MS && self.active.contains_key(&focus))
                });
                if !kept {
                    self.focus = Some((row, now));
                }
            }
        }
    }
}

#[cfg(test)]
impl View {
    /// Where nodes stand is kept up as it would be counted.
    #[track_caller]
    pub(in crate::live) fn counts_as_recounted(&self, now: i64) {
        for status in [NodeStatus::Asking, NodeStatus::Running, NodeStatus::Retrying, NodeStatus::Queued] {
            let rows = self.active.iter().filter(|(_, active)| active.status(now).0 == status);
            let opens = |row: usize| self.visit(row).is_some_and(|visit| !visit.frames.is_empty());
            let counted = rows.clone().filter(|(row, _)| !opens(**row)).count();
            assert_eq!(self.standing(status), counted, "{status:?}");
            let lane = |row: usize| self.track.lane_of(self.track.node_at(&self.timeline, row)?);
            let lanes: std::collections::BTreeSet<usize> = rows.filter_map(|(row, _)| lane(*row)).collect();
            assert_eq!(self.busy(status).cloned().unwrap_or_default(), lanes, "{status:?}");
        }
    }
}
