//! Questions to people (E-21): what is asked, and what an answer has to be. Those about a single call are asked with the call.

use super::doubt::ANSWER;
use super::node::{LeafPhase, Visit};
use super::phase::AskPhase;
use super::state::{Asking, State};
use crate::event::{Asked, Body, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, AskKind, Expects};
use crate::ids::{LeafIx, NodeRef};
use crate::message::{Message, Role};
use crate::place::AskPlace;
use crate::schema::{Owner, Refusal, Same};
use crate::template::Template;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Where an answer says when its question was shown.
const SHOWN: &str = "shown";

/// An answer to a question that is no approval, with who gave it and why, as far as that is known: what is journaled (E-21).
/// Without the name a value could not be told from one that comes with these.
pub fn answered(answer: Value, by: Option<&str>, why: Option<&str>) -> Value {
    let more =
        [("by", by), ("why", why)].into_iter().filter_map(|(name, said)| Some((name, Value::from(said?))));
    let fields = std::iter::once((ANSWER, answer)).chain(more);
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// An answer with when its question was shown, in milliseconds since 1970: later than it was asked, at a terminal that asked another one first (E-21).
pub fn shown_at(answer: Value, at: i64) -> Value {
    let mut fields = match answer {
        Value::Object(fields) => fields,
        word => Map::from_iter([(ANSWER.to_owned(), word)]),
    };
    fields.insert(SHOWN.to_owned(), at.into());
    Value::Object(fields)
}

/// The answer itself; `None` of what [`answered`] does not make.
pub(super) fn given(value: &Value) -> Option<&Value> {
    let fields = value.as_object()?;
    let known = |(name, value): (&String, &Value)| match name.as_str() {
        ANSWER => true,
        "by" | "why" => value.is_string(),
        SHOWN => value.is_i64(),
        _ => false,
    };
    fields.iter().all(known).then_some(())?;
    fields.get(ANSWER)
}

/// Characters of a person's reason that a fault's message takes; all of it is in the cause.
const REASON: usize = 2_000;

/// What a leaf asks.
type Question<'g> = (AskKind, &'g Template, Option<&'g Expects>);

impl AskPhase {
    /// Whether nobody has answered yet, and somebody may.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl State {
    /// The next event of a leaf that asks a person.
    pub(super) fn derive_ask(&self, node: NodeRef, visit: &Visit, leaf: LeafIx, ask: Question<'_>) -> Event {
        let (kind, _, expects) = ask;
        match &visit.phase {
            LeafPhase::Ask(AskPhase::Expired) => {
                let seconds = expects.and_then(|expects| expects.timeout_s).unwrap_or_default();
                let message = format!("nobody answered within {seconds} s: {}", self.ask_id(node, leaf));
                self.failed(node, Fault::new(FaultKind::Timeout, message))
            }
            LeafPhase::Ask(AskPhase::Said(said)) if kind == AskKind::Approve => {
                self.failed(node, self.with_reason(Fault::new(FaultKind::Denied, "a person said no"), said))
            }
            LeafPhase::Ask(AskPhase::Said(_)) => Event::Appended {
                node: self.name(node),
                thread: self.own_thread(node),
                body: Body::Answer(self.ask_id(node, leaf)),
            },
            _ => match self.question(node, leaf, ask) {
                Ok(asked) => Event::Asked(Box::new(asked)),
                Err(fault) => self.failed(node, fault),
            },
        }
    }

    /// Adds who said no to the fault of a no, and why, as far as that is known (E-21).
    pub(super) fn with_reason(&self, mut fault: Fault, said: &Value) -> Fault {
        let given = |field: &str| said.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (by, why) = (given("by"), given("why"));
        if self.start.edition < 7 || by.or(why).is_none() {
            return fault;
        }
        if fault.kind == FaultKind::UnknownOutcome {
            fault.message.push_str("; a person said no to running it again");
        }
        if let Some(by) = by {
            fault.message.push_str(&format!(" (by {by})"));
        }
        if let Some(why) = why {
            let (end, more) = match why.char_indices().nth(REASON) {
                Some((end, _)) => (end, "…"),
                None => (why.len(), ""),
            };
            fault.message.push_str(&format!(": {}{more}", why.get(..end).unwrap_or_default()));
        }
        fault.because(json!({"by": by, "why": why}))
    }

    fn ask_id(&self, node: NodeRef, leaf: LeafIx) -> Arc<str> {
        let leaf = Cow::Borrowed(&*self.leaf(node, leaf).name);
        AskPlace::Leaf { place: self.place(node), leaf }.to_string().into()
    }

    fn question(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        (ask_kind, prompt, expects): Question<'_>,
    ) -> Result<Asked, Fault> {
        let (ask, prompt) = (self.ask_id(node, leaf), self.text(node, prompt)?);
        let mut asked = Asked { ask, node: self.name(node), ask_kind, prompt, value: None, due: None };
        let Some(Expects { value, schema, .. }) = expects else { return Ok(asked) };
        let value = value.as_ref().map(|value| self.resolved(node, value)).transpose()?;
        let (owner, steps) = (self.schema_owner(node, leaf), self.start.limits.schema_steps);
        // No answer could ever be taken.
        if let Some(refusal) = schema.as_ref().and_then(|schema| self.checks.unusable(owner, schema, steps)) {
            let (kind, why) = match refusal {
                Refusal::Violates(why) => (FaultKind::InputError, why),
                Refusal::OverLimit(why) => (FaultKind::LimitExceeded, why),
            };
            return Err(Fault::new(
                kind,
                format!("nobody can be asked, as no answer could be checked: {why}"),
            ));
        }
        (asked.value, asked.due) = (value.map(Arc::new), self.due(node)?);
        Ok(asked)
    }

    /// Whose the schema of a leaf is.
    pub(super) fn schema_owner(&self, node: NodeRef, leaf: LeafIx) -> Owner {
        Owner::Leaf(Same(Arc::clone(&self.of(node).graph)), node.node, leaf)
    }

    /// The JSON Schema that the answer to an open ask has to fit, if it says one.
    pub fn answer_schema(&self, ask: &Asking) -> Option<&Value> {
        let leaf = self.visit(ask.node)?.leaf.filter(|_| ask.slot.is_none())?;
        match &self.leaf(ask.node, leaf).act {
            act @ Act::Ask(..) => act.schema(),
            _ => None,
        }
    }

    /// Why `answer` can't be taken for an open ask that is no approval. [`State::accept`] takes none that this refuses, and the ask
    /// stays open.
    pub fn answer_misfit(&self, ask: &Asking, answer: &Value) -> Option<String> {
        if super::finish::tool_text(answer).len() as u64 > self.start.limits.message_bytes {
            return Some(self.too_long("the answer").message);
        }
        let schema = self.answer_schema(ask)?;
        let leaf = self.visit(ask.node)?.leaf?;
        let (owner, steps) = (self.schema_owner(ask.node, leaf), self.start.limits.schema_steps);
        self.checks.refusal(owner, schema, answer, steps).map(Refusal::into_text)
    }

    /// A person has answered: with a thread, the answer is said there next.
    pub(super) fn take_answer(&mut self, node: NodeRef, value: &Value) {
        let Some(answer) = given(value).cloned() else { return };
        if self.def(node).body.thread.is_none() {
            self.give_value(node, answer);
            return self.move_on(node);
        }
        if let Some(visit) = self.visit_mut(node) {
            visit.phase = LeafPhase::Ask(AskPhase::Said(Box::new(answer)));
        }
    }

    /// The answer is said on the node's thread.
    pub(super) fn append_answer(&mut self, node: NodeRef) {
        let Some(visit) = self.visit_mut(node) else { return };
        let LeafPhase::Ask(phase) = &mut visit.phase else { return };
        let AskPhase::Said(answer) = std::mem::replace(phase, AskPhase::Open) else { return };
        let text = super::finish::tool_text(&answer);
        let kind = self.kind_of_data(text.len());
        self.say_on(node, Message::text(Role::User, text), kind);
        self.give_value(node, *answer);
        self.move_on(node);
    }
}
