//! What a graph is given that works between the rounds of a model and its tools: what was called since it did so last,
//! and how large the conversation has become.

use super::node::Visit;
use super::reuse::said::digest;
use super::since::{Made, Since, TOKENS_AROUND};
use super::state::State;
use crate::effect::{Outcome, Tokens};
use crate::fault::Fault;
use crate::graph::{Act, Call, Over, Told, hex};
use crate::ids::{LeafIx, NodeRef};
use crate::message::ToolCall;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

impl State {
    /// Whether a graph works between the rounds of a node.
    fn looks_between(&self, node: NodeRef) -> bool {
        let aside = |act: &Act| matches!(act, Act::Loop(times) if times.times.is_aside());
        self.leaves(node).any(|leaf| aside(&leaf.act))
    }

    /// The result of a call of a model's is on the thread. What no tool was called for says nothing about one.
    pub(super) fn note_made(
        &mut self,
        node: NodeRef,
        call: &ToolCall,
        result: &Result<Arc<Value>, Box<Fault>>,
    ) {
        if !self.looks_between(node) {
            return;
        }
        let Some(version) = self.tool(node, &call.name).map(|tool| Arc::clone(&tool.version)) else { return };
        let made = Made { sent: false, call: call.clone(), version, result: result.clone() };
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().since.get_or_insert_default().calls.push(made);
        }
    }

    /// What a reply took, with all that it answers.
    pub(super) fn note_used(&mut self, node: NodeRef, tokens: &Tokens) {
        if !self.looks_between(node) {
            return;
        }
        let sent = self.start.edition >= 5;
        if let Some(visit) = self.visit_mut(node) {
            let (thread, used) = (visit.thread.clone(), tokens.input.saturating_add(tokens.output));
            let since = visit.extra_mut().since.get_or_insert_default();
            since.used = (used > 0).then_some((thread, used));
            since.calls.iter_mut().for_each(|made| made.sent = sent);
        }
    }

    /// Whether somebody has to look how large the thread of a visit is.
    pub(super) fn has_outgrown(visit: &Visit, over: Over) -> bool {
        let size = Size::of(visit);
        size.tokens > over.tokens.into() || size.new > over.new.into()
    }

    /// What the graph is given, by name. What it is told of calls is told once.
    pub(super) fn between_rounds(&mut self, node: NodeRef, last: bool) -> Vec<(Arc<str>, Value)> {
        let Some(visit) = self.visit_mut(node) else { return Vec::new() };
        let (rounds, bytes, size) = (visit.rounds, visit.thread.bytes(), Size::of(visit));
        let since = visit.extra_mut().since.get_or_insert_default();
        since.told = std::mem::take(&mut since.calls);
        let given = [
            ("calls", since.told.len().into()),
            ("rounds", rounds.into()),
            ("last", last.into()),
            ("bytes", bytes.into()),
            ("tokens", size.tokens.into()),
            ("new", size.new.into()),
            ("used", since.used().into()),
        ];
        given.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// What the operation of a leaf is told, and of whom: the node between whose rounds it works.
    fn told(&self, node: NodeRef, leaf: LeafIx) -> Option<(Told, NodeRef)> {
        let Act::Call(Call { told, .. }) = &self.leaf(node, leaf).act else { return None };
        let (around, _) = self.of(node).opened_by.filter(|_| *told != Told::Nothing)?;
        matches!(self.live_act(around), Some(Act::Loop(times)) if times.times.is_aside())
            .then_some((*told, around))
    }

    /// Arguments of an operation, with a digest of what it is told beside them: other calls are another request (E-29).
    pub(super) fn with_digest(&self, node: NodeRef, leaf: LeafIx, mut args: Value) -> Value {
        if let (Some((told, of)), Some(members)) = (self.told(node, leaf), args.as_object_mut())
            && let Some(visit) = self.visit(of)
        {
            let texts =
                self.tells_texts(told, visit).then(|| self.said.in_thread(&visit.thread, &self.messages));
            let digest = digest(&(Row::of(visit), texts));
            members.insert("told".to_owned(), hex(&digest).into());
        }
        args
    }

    /// The same with what it is told in full, as whoever operates gets it.
    pub(super) fn with_told(&self, node: NodeRef, leaf: LeafIx, mut args: Value) -> Value {
        if let (Some((told, of)), Some(members)) = (self.told(node, leaf), args.as_object_mut())
            && let Some(visit) = self.visit(of)
        {
            members.insert("calls".to_owned(), json!(Row::of(visit)));
            if self.tells_texts(told, visit) {
                let (new, counted) = match since(visit) {
                    Some(since) => since.uncounted(&visit.thread),
                    None => (visit.thread.iter().collect(), None),
                };
                let texts = new.into_iter().map(|ix| json!(self.messages[ix].content));
                members.insert("texts".to_owned(), texts.collect());
                members.extend(counted.map(|counted| ("counted".to_owned(), counted.clone())));
            }
        }
        args
    }

    /// What the operation of a leaf has counted of a conversation is said to the next one, in place of what it has counted.
    pub(super) fn note_counted(&mut self, node: NodeRef, leaf: LeafIx, outcome: &Outcome) {
        let Some(output) = outcome.output() else { return };
        let Some((Told::Conversation, around)) = self.told(node, leaf) else { return };
        if let (Some(counted), Some(visit)) = (output.get("counted"), self.visit_mut(around)) {
            let counted = (visit.thread.clone(), counted.clone());
            visit.extra_mut().since.get_or_insert_default().counted = Some(counted);
        }
    }

    /// Whether nobody has counted what is said.
    fn tells_texts(&self, told: Told, visit: &Visit) -> bool {
        told == Told::Conversation && since(visit).is_none_or(|since| since.used.is_none())
    }
}

/// How large the thread of a visit may be.
#[derive(Clone, Copy)]
struct Size {
    /// At most so many tokens.
    tokens: u64,
    /// Bytes that have come since its tokens were known; all of them, if they are not known, or it was edited.
    new: u64,
}

impl Size {
    /// Of a few sums, however long the conversation is.
    fn of(visit: &Visit) -> Self {
        let beyond = since(visit)
            .and_then(Since::known)
            .and_then(|(before, tokens)| Some((tokens, visit.thread.beyond(before)?)));
        let (tokens, (messages, new)) =
            beyond.unwrap_or_else(|| (0, (visit.thread.len() as u64, visit.thread.bytes())));
        let around = messages.saturating_mul(TOKENS_AROUND);
        Self { tokens: tokens.saturating_add(new).saturating_add(around), new }
    }
}

fn since(visit: &Visit) -> Option<&Since> {
    visit.extra.as_ref()?.since.as_deref()
}

/// A call as an operation is told of it.
#[derive(Serialize)]
struct Row<'m> {
    id: &'m str,
    tool: &'m str,
    version: &'m str,
    arguments: &'m Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'m Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
}

impl<'m> Row<'m> {
    fn of(visit: &'m Visit) -> Vec<Self> {
        since(visit).into_iter().flat_map(|since| &since.told).map(Self::made).collect()
    }

    fn made(made: &'m Made) -> Self {
        let error = |fault: &Fault| json!({"type": fault.kind.name(), "message": fault.message});
        Self {
            id: &made.call.id,
            tool: &made.call.name,
            version: &made.version,
            arguments: &made.call.arguments,
            output: made.result.as_deref().ok(),
            error: made.result.as_ref().err().map(|fault| error(fault)),
            sent: made.sent,
        }
    }
}
