//! What comes to stand on threads: texts, replies, calls, their results, and what nodes publish.

use super::node::LeafPhase;
use super::outcomes::call_id;
use super::phase::{Got, Publication, SlotState};
use super::size::LARGE_OUTPUT;
use super::state::State;
use crate::event::Body;
use crate::graph::Act;
use crate::ids::{MessageIx, NodeRef};
use crate::message::{Entry, Kind, Message, Role, ToolCall};
use std::collections::HashSet;
use std::sync::Arc;

impl State {
    pub(super) fn appended(&mut self, node: NodeRef, body: &Body) {
        match body {
            Body::Text(role, text) => {
                let kind = self.kind_of_data(self.bytes_of_data(node, text));
                self.say_on(node, Message::text(*role, Arc::clone(text)), kind);
                self.move_on(node);
            }
            Body::Reply(_) => self.append_reply(node),
            Body::Call(_) => {
                let call = self.calls_mut(node).and_then(|phase| {
                    phase.call_appended = true;
                    phase.slots.first().map(|slot| slot.call.clone())
                });
                if let Some(call) = call {
                    let mut message = Message::text(Role::Assistant, "");
                    message.tool_calls = vec![call];
                    self.push_message(node, message);
                }
            }
            Body::Output(_) => self.append_output(node),
            Body::Answer(_) => self.append_answer(node),
            Body::PersonMessage(number) => self.append_person_message(node, *number),
        }
    }

    pub(super) fn push_message(&mut self, node: NodeRef, message: Message) {
        let large = message.role == Role::Tool && message.content.len() as u64 >= LARGE_OUTPUT;
        self.say_on(node, message, if large { Kind::Large } else { Kind::Other });
    }

    /// How much of a text that the live leaf says came from data, and not from the document.
    fn bytes_of_data(&self, node: NodeRef, text: &str) -> usize {
        let leaf = self.visit(node).and_then(|visit| visit.leaf).map(|leaf| &self.leaf(node, leaf).act);
        match leaf {
            Some(Act::AppendText(template)) => text.len().saturating_sub(template.source().len()),
            _ => 0,
        }
    }

    /// Very large data in a message count like a tool's output, in runs that know of it.
    pub(super) fn kind_of_data(&self, bytes: usize) -> Kind {
        let large = bytes as u64 >= LARGE_OUTPUT && self.start.edition >= 2;
        if large { Kind::Large } else { Kind::Other }
    }

    pub(super) fn say_on(&mut self, node: NodeRef, message: Message, kind: Kind) -> MessageIx {
        let entry = self.keep_message(Some(node), message, kind);
        if let Some(visit) = self.visit_mut(node) {
            visit.thread.push(entry);
        }
        entry.message
    }

    /// Keeps what a node said, or the document.
    pub(super) fn keep_message(&mut self, by: Option<NodeRef>, message: Message, kind: Kind) -> Entry {
        let bytes = message.bytes();
        let by = by.map(|node| self.name(node));
        if !message.tool_calls.is_empty() {
            let ids = message.tool_calls.iter().map(|call| call.id.clone());
            Arc::make_mut(&mut self.call_ids).extend(ids);
        }
        Entry { message: self.messages.push(Arc::new(message), by), bytes, kind }
    }

    /// Appends the model's reply, with ids that are present and unused (E-10).
    fn append_reply(&mut self, node: NodeRef) {
        let Some(visit) = self.visit_mut(node) else { return };
        let LeafPhase::Model(phase) = &mut visit.phase else { return };
        let Some(Got::Reply(reply)) = phase.got.take() else { return };
        let effect = phase.effect.clone();
        let mut calls = reply.calls.clone();
        let mut used = self.ids_in_use(node, &calls);
        for (at, call) in calls.iter_mut().enumerate() {
            if call.id.is_empty() || !used.insert(Arc::clone(&call.id)) {
                call.id = call_id(self.of(node), &effect, Some(at)).into();
            }
        }
        if self.asks_only(node) {
            // D-17: nobody will answer them.
            calls.clear();
        }
        let mut message = Message::text(Role::Assistant, reply.text.as_str());
        message.tool_calls = calls.clone();
        let ix = self.say_on(node, message, Kind::Reply);
        let scratch = self.def(node).body.thread.is_none();
        if let Some(visit) = self.visit_mut(node) {
            if scratch {
                visit.note_scratch_reply(ix);
            } else if !reply.text.is_empty() {
                visit.last_text = Some(ix);
            }
            visit.note_reply(Arc::clone(&reply), calls);
        }
        self.note_used(node, &reply.tokens);
        self.move_on(node);
    }

    /// Whether the live leaf asks a question without tools on a scratch thread.
    fn asks_only(&self, node: NodeRef) -> bool {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return false };
        matches!(&self.leaf(node, leaf).act, Act::Infer(infer) if self.only_answers(node, infer))
    }

    /// Call ids in use where the node stands: on its thread only, since what other threads hold depends on
    /// who finished first (E-07, E-10).
    fn ids_in_use(&self, node: NodeRef, calls: &[ToolCall]) -> HashSet<Arc<str>> {
        // Most ids are new to the whole run, and nobody has to look for them on the thread.
        let may_be = calls.iter().any(|call| self.call_ids.contains(&call.id));
        let Some(visit) = self.visit(node).filter(|_| may_be) else { return HashSet::new() };
        let messages = visit.thread.iter().map(|ix| &self.messages[ix]);
        let ids = |m: &Arc<Message>| {
            m.tool_calls.iter().map(|call| &call.id).chain(&m.tool_call_id).cloned().collect::<Vec<_>>()
        };
        messages.flat_map(ids).collect()
    }

    /// Appends the next result in order; after the last one the leaf ends.
    fn append_output(&mut self, node: NodeRef) {
        let leaf = self.visit(node).and_then(|visit| visit.leaf);
        let Some(leaf) = leaf else { return };
        let fixed = self.leaf(node, leaf).act.is_fixed();
        let catches = self.catches(node, leaf);
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get(phase.appended) else { return };
        let SlotState::Done(result) = &slot.state else { return };
        let (call, result) = (slot.call.clone(), result.clone());
        phase.appended += 1;
        let last = phase.appended == phase.slots.len();
        let text = match &result {
            Ok(output) => super::finish::tool_text(output),
            Err(fault) => fault.tool_text(),
        };
        self.push_message(node, Message::tool(&call, text));
        self.note_made(node, &call, &result);
        let Some(visit) = self.visit_mut(node) else { return };
        match result {
            Ok(output) => {
                visit.extra_mut().outputs.push((call.name, output));
                if fixed {
                    visit.call_succeeded();
                }
            }
            // It is the next event's.
            Err(_) if fixed && catches => return,
            Err(fault) if fixed => {
                visit.set_fault(Some(fault));
                visit.leaf = None;
                return;
            }
            Err(_) => {}
        }
        if last {
            self.move_on(node);
        }
    }

    pub(super) fn published(&mut self, node: NodeRef, description: &str) {
        let (Some(visit), Some(key)) = (self.visit(node), self.def(node).body.thread) else { return };
        let Some(leaf) = visit.leaf else { return };
        let Act::Publish { to, label, .. } = &self.leaf(node, leaf).act else { return };
        let (to, label, content) = (*to, label.clone(), self.result(node, visit).text);
        let to = (to != key).then(|| {
            let text = if description.is_empty() {
                Arc::clone(&content)
            } else {
                Arc::from(format!("{description}{content}"))
            };
            let kind = self.kind_of_data(content.len());
            (to, self.keep_message(Some(node), Message::text(Role::Assistant, text), kind))
        });
        if let Some(visit) = self.visit_mut(node) {
            let published = Publication { to, key, label, description: description.into(), content };
            visit.extra_mut().published = Some(Box::new(published));
        }
        self.move_on(node);
    }
}
