//! Edits of a node's thread (E-09): what they take away is derived from the thread as it stands, and said by position.

use super::node::Visit;
use super::state::State;
use crate::effect::Effects;
use crate::event::{Event, Replaced, StandIn};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Edit};
use crate::ids::NodeRef;
use crate::message::{Entry, Kind, Message, Role, Slice, Thread};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl State {
    /// The event of an edit.
    pub(super) fn derive_edit(&self, node: NodeRef, visit: &Visit, edit: &Edit) -> Event {
        if self.def(node).body.thread.is_none() {
            let fault = Fault::new(FaultKind::InputError, "a node without a thread has none to edit");
            return self.failed(node, fault);
        }
        let value = match edit.value().map(|value| self.resolved(node, value)).transpose() {
            Ok(value) => value.unwrap_or_default(),
            Err(fault) => return self.failed(node, fault),
        };
        let replaced = match edit {
            Edit::Clear => vec![Replaced::gone(0, visit.thread.len())],
            Edit::Trim { keep } => vec![Replaced::gone(0, self.whole_rounds(&visit.thread, *keep))],
            Edit::Filter { roles } => self.filtered(&visit.thread, roles),
            Edit::RollBack => self.rolled_back(node, &visit.thread),
            Edit::Compact { first, keep, asked } => self.compacted(&visit.thread, *first, *keep, *asked),
            Edit::Drop(_) => self.without(&visit.thread, &value),
            Edit::Shorten(_) => self.shortened(&visit.thread, &value),
        };
        let replaced = replaced.into_iter().filter(|one| one.start < one.end).collect();
        Event::Edited { node: self.name(node), thread: self.own_thread(node), replaced }
    }

    /// The event that takes back the last round of a visit, as the model says nothing more.
    pub(super) fn roll_back_round(&self, node: NodeRef, visit: &Visit) -> Event {
        // What stands there before the first round is not the visit's own.
        let own = visit.rounds > 0;
        let round = if own { self.rolled_back(node, &visit.thread) } else { Vec::new() };
        // What people have said in it stays (E-43).
        let said = |at: &usize| self.at(&visit.thread, *at).is_some_and(|message| message.role == Role::User);
        let mut replaced: Vec<Replaced> = Vec::new();
        for at in
            round.iter().flat_map(|round| round.start as usize..round.end as usize).filter(|at| !said(at))
        {
            match replaced.last_mut().filter(|last| last.end as usize == at) {
                Some(last) => last.end += 1,
                None => replaced.push(Replaced::gone(at, at + 1)),
            }
        }
        Event::Edited { node: self.name(node), thread: self.own_thread(node), replaced }
    }

    /// Where the last `keep` messages begin, so that no result stands there without its call.
    fn whole_rounds(&self, thread: &Thread, keep: u32) -> usize {
        let mut start = thread.len().saturating_sub(keep as usize);
        while start > 0 && self.at(thread, start).is_some_and(|message| message.role == Role::Tool) {
            start -= 1;
        }
        start
    }

    fn at(&self, thread: &Thread, at: usize) -> Option<&Arc<Message>> {
        thread.at(at).map(|ix| &self.messages[ix])
    }

    fn filtered(&self, thread: &Thread, roles: &[Role]) -> Vec<Replaced> {
        let results = roles.contains(&Role::Tool);
        let mut replaced: Vec<Replaced> = Vec::new();
        for (at, ix) in thread.iter().enumerate() {
            let message = &self.messages[ix];
            let loses = !results && !message.tool_calls.is_empty();
            let stays = match message.role {
                Role::Tool => results && roles.contains(&Role::Assistant),
                Role::Assistant if loses && message.content.is_empty() => false,
                role => roles.contains(&role),
            };
            if stays && loses {
                let calls = message.tool_calls.iter().map(|call| call.id.clone());
                replaced.push(Replaced::by(at, at + 1, StandIn::Without(calls.collect())));
            } else if !stays {
                match replaced.last_mut().filter(|last| last.by.is_none() && last.end as usize == at) {
                    Some(last) => last.end += 1,
                    None => replaced.push(Replaced::gone(at, at + 1)),
                }
            }
        }
        replaced
    }

    fn rolled_back(&self, node: NodeRef, thread: &Thread) -> Vec<Replaced> {
        let last = (0..thread.len())
            .rev()
            .find(|at| self.at(thread, *at).is_some_and(|message| message.role == Role::Assistant));
        let Some(start) = last else { return Vec::new() };
        let calls = self.at(thread, start).into_iter().flat_map(|message| &message.tool_calls);
        let known = calls.filter(|call| self.tool(node, &call.name).is_some());
        let writes =
            known.map(|call| self.effects(node, &call.name)).any(|effects| effects == Effects::Write);
        if writes { Vec::new() } else { vec![Replaced::gone(start, thread.len())] }
    }

    fn compacted(&self, thread: &Thread, first: u32, keep: u32, asked: u32) -> Vec<Replaced> {
        let before = thread.len().saturating_sub(asked as usize);
        let nothing = vec![Replaced::gone(before, thread.len())];
        let (Some(reply), Some(end)) = (thread.len().checked_sub(1), before.checked_sub(keep as usize))
        else {
            return nothing;
        };
        let older = thread.slice(Slice(None, i64::try_from(before).ok()));
        let end = self.whole_rounds(&older, u32::try_from(before - end).unwrap_or(u32::MAX));
        let start = first as usize;
        if end <= start {
            return nothing;
        }
        let reply = u32::try_from(reply).unwrap_or(u32::MAX);
        vec![Replaced::by(start, end, StandIn::Summary(reply)), Replaced::gone(before, thread.len())]
    }

    /// The thread without these calls, wherever they stand in it.
    fn without(&self, thread: &Thread, calls: &Value) -> Vec<Replaced> {
        let mut wanted: BTreeSet<&str> =
            calls.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let all = wanted.clone();
        let mut replaced = Vec::new();
        for at in (0..thread.len()).rev() {
            let Some(message) = self.at(thread, at).filter(|_| !wanted.is_empty()) else { break };
            if message.tool_call_id.as_ref().is_some_and(|id| all.contains(&**id)) {
                replaced.push(Replaced::gone(at, at + 1));
            }
            let lost = message.tool_calls.iter().map(|call| &call.id).filter(|id| wanted.contains(&***id));
            let lost: Vec<Arc<str>> = lost.cloned().collect();
            wanted.retain(|id| !lost.iter().any(|lost| **lost == **id));
            if !lost.is_empty() {
                let nothing = lost.len() == message.tool_calls.len() && message.content.is_empty();
                replaced.push(match nothing {
                    true => Replaced::gone(at, at + 1),
                    false => Replaced::by(at, at + 1, StandIn::Without(lost)),
                });
            }
        }
        replaced.reverse();
        replaced
    }

    /// The thread with these texts as results of calls.
    fn shortened(&self, thread: &Thread, texts: &Value) -> Vec<Replaced> {
        let mut wanted: BTreeMap<&str, &str> = BTreeMap::new();
        for (call, text) in texts.as_object().into_iter().flatten() {
            wanted.extend(text.as_str().map(|text| (call.as_str(), text)));
        }
        let mut replaced = Vec::new();
        for at in (0..thread.len()).rev() {
            let Some(message) = self.at(thread, at).filter(|_| !wanted.is_empty()) else { break };
            if let Some(text) = message.tool_call_id.as_ref().and_then(|id| wanted.remove(&**id)) {
                replaced.push(Replaced::by(at, at + 1, StandIn::Text(text.into())));
            }
        }
        replaced.reverse();
        replaced
    }

    /// The thread of a node is another one from here on.
    pub(super) fn edited(&mut self, node: NodeRef, replaced: &[Replaced]) {
        let Some(thread) = self.visit(node).map(|visit| visit.thread.clone()) else { return };
        let mut parts: Vec<(usize, usize, Option<Entry>)> = Vec::with_capacity(replaced.len());
        for one in replaced {
            let by = one.by.as_ref().and_then(|by| {
                let message = self.stand_in(&thread, one.start as usize, by)?;
                Some(self.keep_message(Some(node), message, Kind::Other))
            });
            parts.push((one.start as usize, one.end as usize, by));
        }
        let edited = thread.with(&parts);
        let leaf = self.visit(node).and_then(|visit| visit.leaf);
        let act = leaf.map(|leaf| &self.leaf(node, leaf).act);
        let asked = matches!(act, Some(Act::Infer(_)));
        let back = asked || matches!(act, Some(Act::Edit(Edit::RollBack)));
        let round = parts.first().and_then(|(start, ..)| self.at(&thread, *start));
        let round = round.is_some_and(|message| !message.tool_calls.is_empty());
        if let Some(visit) = self.visit_mut(node) {
            visit.thread = edited;
            // What was taken back is no result.
            visit.last_text = visit.last_text.filter(|_| !back || parts.is_empty());
            if asked {
                visit.extra_mut().rolled_back += 1;
                visit.rounds = visit.rounds.saturating_sub(u32::from(round));
                visit.exhausted = false;
                // The model is asked again.
                return self.enter(node, leaf);
            }
        }
        self.move_on(node);
    }

    fn stand_in(&self, thread: &Thread, at: usize, by: &StandIn) -> Option<Message> {
        Some(match by {
            StandIn::Summary(reply) => {
                Message::text(Role::User, Arc::clone(&self.at(thread, *reply as usize)?.content))
            }
            StandIn::Without(calls) => {
                let mut message = Message::clone(self.at(thread, at)?);
                message.tool_calls.retain(|call| !calls.contains(&call.id));
                message
            }
            StandIn::Text(text) => {
                let mut message = Message::clone(self.at(thread, at)?);
                message.content = Arc::clone(text);
                message
            }
        })
    }
}

impl Replaced {
    fn gone(start: usize, end: usize) -> Self {
        let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: place(start), end: place(end), by: None }
    }
    fn by(start: usize, end: usize, by: StandIn) -> Self {
        Self { by: Some(by), ..Self::gone(start, end) }
    }
}
