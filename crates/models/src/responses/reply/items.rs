//! The items of a response: messages and calls of functions. Others (reasoning, the provider's own tools) are not the
//! reply's.

use super::{INCOMPLETE, field};
use crate::protocol::{ByteBudget, ReplyError, arguments_in, arguments_of};
use selvedge_engine::ToolCall;
use serde_json::Value;

/// Where an event belongs.
pub(super) struct Place<'e> {
    /// `output_index`.
    index: Option<u64>,
    /// `item_id`. Some servers give an item another id in every event: only for events without an index.
    id: &'e str,
    /// `content_index`.
    part: u64,
}

impl<'e> Place<'e> {
    /// The place that an event names.
    pub(super) fn of(event: &'e Value) -> Self {
        Self {
            index: field(event, "output_index").as_u64(),
            id: field(event, "item_id").as_str().unwrap_or_default(),
            part: field(event, "content_index").as_u64().unwrap_or(0),
        }
    }
}

/// What a piece of text is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Text of the reply.
    Text,
    /// The model's words when it refuses.
    Refusal,
    /// Arguments of a call, as text of JSON.
    Arguments,
}

/// A part of a message.
#[derive(Default)]
struct Part {
    index: u64,
    text: String,
    refusal: String,
}

/// A call of a function as far as it has come.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came as JSON instead of as text of JSON.
    ready: Option<Value>,
    /// It was cut before it was whole.
    cut: bool,
}

enum Body {
    Message(Vec<Part>),
    Call(Call),
}

impl Body {
    fn is_call(&self) -> bool {
        matches!(self, Self::Call(_))
    }
}

struct Item {
    index: Option<u64>,
    id: String,
    body: Body,
    /// Nothing more comes: another item may have its index.
    done: bool,
}

/// The items so far.
#[derive(Default)]
pub(super) struct Items(Vec<Item>);

impl Items {
    /// An item begins.
    pub(super) fn added(
        &mut self,
        budget: &mut ByteBudget,
        place: &Place<'_>,
        item: &Value,
    ) -> Result<String, ReplyError> {
        let Some(call) = is_call(item) else { return Ok(String::new()) };
        let id = field(item, "id").as_str().unwrap_or_default();
        self.open(budget, place.index, id, call)?.fill(budget, item)
    }

    /// An item is finished.
    pub(super) fn done(
        &mut self,
        budget: &mut ByteBudget,
        place: &Place<'_>,
        item: &Value,
    ) -> Result<String, ReplyError> {
        let Some(call) = is_call(item) else { return Ok(String::new()) };
        let id = field(item, "id").as_str().unwrap_or_default();
        let again = |known: &Item| {
            known.done
                && known.body.is_call() == call
                && known.index == place.index
                && !id.is_empty()
                && known.id == id
        };
        let open = match self.0.iter().rposition(again).and_then(|at| self.0.get_mut(at)) {
            Some(known) => known,
            None => self.open(budget, place.index, id, call)?,
        };
        open.done = true;
        open.fill(budget, item)
    }

    /// A part of a message is finished.
    pub(super) fn part_done(
        &mut self,
        budget: &mut ByteBudget,
        place: &Place<'_>,
        part: &Value,
    ) -> Result<String, ReplyError> {
        match part_kind(part) {
            Some(kind) => self.settle(budget, place, kind, field(part, kind.key())),
            None => Ok(String::new()),
        }
    }

    /// Adds a piece of text.
    pub(super) fn more(
        &mut self,
        budget: &mut ByteBudget,
        place: &Place<'_>,
        kind: Kind,
        piece: &Value,
    ) -> Result<String, ReplyError> {
        let Some(piece) = piece.as_str().filter(|piece| !piece.is_empty()) else { return Ok(String::new()) };
        budget.take(piece.len())?;
        let item = self.open(budget, place.index, place.id, kind == Kind::Arguments)?;
        if let Some(text) = item.text(budget, place.part, kind)? {
            text.push_str(piece);
        }
        Ok(if kind == Kind::Text { piece.to_owned() } else { String::new() })
    }

    /// Takes a text that is whole now, and returns what was not known of it.
    pub(super) fn settle(
        &mut self,
        budget: &mut ByteBudget,
        place: &Place<'_>,
        kind: Kind,
        whole: &Value,
    ) -> Result<String, ReplyError> {
        if whole.is_null() || whole.as_str() == Some("") {
            return Ok(String::new());
        }
        let call = kind == Kind::Arguments;
        // It may come late, after its item is finished.
        let known = place.index.and_then(|_| {
            self.0.iter().rposition(|item| item.index == place.index && item.body.is_call() == call)
        });
        let item = match known.and_then(|at| self.0.get_mut(at)) {
            Some(item) => item,
            None => self.open(budget, place.index, place.id, call)?,
        };
        item.settle(budget, place.part, kind, whole)
    }

    /// The unfinished item at a place, or a new one.
    fn open(
        &mut self,
        budget: &mut ByteBudget,
        index: Option<u64>,
        id: &str,
        call: bool,
    ) -> Result<&mut Item, ReplyError> {
        let here = |item: &Item| match index {
            Some(_) => item.index == index,
            None => id.is_empty() || item.id.is_empty() || item.id == id,
        };
        let known = self.0.iter().rposition(|item| !item.done && item.body.is_call() == call && here(item));
        let at = match known {
            Some(at) => at,
            None => {
                // A flood of empty items must meet the limit too.
                budget.take(size_of::<Item>())?;
                self.0.push(Item::new(index, id, call));
                self.0.len() - 1
            }
        };
        // It is there: found, or just pushed.
        self.0.get_mut(at).ok_or(ReplyError::TooLong)
    }

    /// Puts the output of the finished response in the place of what came before it, as far as it has any, and
    /// returns the text that was not known.
    pub(super) fn replace(
        &mut self,
        budget: &mut ByteBudget,
        output: Option<&Value>,
    ) -> Result<String, ReplyError> {
        let mut last = Self::default();
        let mut fresh = ByteBudget::new(usize::MAX);
        for item in output.and_then(Value::as_array).into_iter().flatten() {
            if let Some(call) = is_call(item) {
                // Ids may repeat (E-10): each is an item of its own.
                let mut own = Item::new(None, "", call);
                own.fill(&mut fresh, item)?;
                last.0.push(own);
            }
        }
        self.sort();
        let (before, after) = (self.words(Kind::Text), last.words(Kind::Text));
        let size = |items: &Self| items.0.iter().map(Item::size).sum::<usize>();
        budget.take(size(&last).saturating_sub(size(self)))?;
        let has_words = !after.is_empty() || !last.words(Kind::Refusal).is_empty();
        let has_calls = last.0.iter().any(|item| item.body.is_call());
        // Some servers send an empty list of what they have streamed.
        self.0.retain(|item| if item.body.is_call() { !has_calls } else { !has_words });
        self.0.extend(last.0.into_iter().filter(|item| item.body.is_call() || has_words));
        Ok(after.strip_prefix(&*before).unwrap_or_default().to_owned())
    }

    /// In the order of their indices, if they have any.
    fn sort(&mut self) {
        if self.0.iter().all(|item| item.index.is_some()) {
            self.0.sort_by_key(|item| item.index);
        }
    }

    /// All text of a kind.
    fn words(&self, kind: Kind) -> String {
        let parts = self.0.iter().filter_map(|item| match &item.body {
            Body::Message(parts) => Some(parts),
            Body::Call(_) => None,
        });
        parts.flatten().map(|part| if kind == Kind::Text { &*part.text } else { &*part.refusal }).collect()
    }

    /// Whether nothing came.
    pub(super) fn is_empty(&self) -> bool {
        let called = self.0.iter().any(|item| item.body.is_call());
        !called && self.words(Kind::Text).is_empty() && self.words(Kind::Refusal).is_empty()
    }

    /// Whether a call was cut before it was whole.
    pub(super) fn has_cut_call(&self) -> bool {
        self.0.iter().any(|item| matches!(&item.body, Body::Call(call) if call.cut))
    }

    /// Text and calls. A refusal is text like any other: the run shows it instead of an empty reply.
    pub(super) fn finish(mut self) -> (String, Vec<ToolCall>) {
        self.sort();
        let text = self.words(Kind::Text);
        let text = if text.is_empty() { self.words(Kind::Refusal) } else { text };
        let calls = self.0.into_iter().filter_map(|item| match item.body {
            Body::Call(call) => call.close(),
            Body::Message(_) => None,
        });
        (text, calls.collect())
    }
}

impl Item {
    fn new(index: Option<u64>, id: &str, call: bool) -> Self {
        let body = if call { Body::Call(Call::default()) } else { Body::Message(Vec::new()) };
        Self { index, id: id.to_owned(), body, done: false }
    }

    /// Takes what an item says of itself, and returns the text that was not known.
    fn fill(&mut self, budget: &mut ByteBudget, item: &Value) -> Result<String, ReplyError> {
        if let Some(id) = field(item, "id").as_str().filter(|_| self.id.is_empty()) {
            budget.take(id.len())?;
            id.clone_into(&mut self.id);
        }
        if let Body::Call(call) = &mut self.body {
            call.cut = field(item, "status") == INCOMPLETE;
            let read = |name: &str| field(item, name).as_str().filter(|text| !text.is_empty());
            for (mine, theirs) in [(&mut call.id, read("call_id")), (&mut call.name, read("name"))] {
                if let Some(text) = theirs {
                    budget.take(text.len().saturating_sub(mine.len()))?;
                    text.clone_into(mine);
                }
            }
            return self.settle(budget, 0, Kind::Arguments, field(item, "arguments"));
        }
        let mut added = String::new();
        match field(item, "content") {
            text @ Value::String(_) => added = self.settle(budget, 0, Kind::Text, text)?,
            Value::Array(parts) => {
                for (number, part) in (0..).zip(parts) {
                    if let Some(kind) = part_kind(part) {
                        added.push_str(&self.settle(budget, number, kind, field(part, kind.key()))?);
                    }
                }
            }
            _ => {}
        }
        Ok(added)
    }

    /// The text of a kind, which is made if there is none; `None` for a kind that the item does not have.
    fn text(
        &mut self,
        budget: &mut ByteBudget,
        part: u64,
        kind: Kind,
    ) -> Result<Option<&mut String>, ReplyError> {
        let parts = match &mut self.body {
            Body::Call(call) => return Ok((kind == Kind::Arguments).then_some(&mut call.arguments)),
            Body::Message(parts) => parts,
        };
        let at = match parts.binary_search_by_key(&part, |known| known.index) {
            Ok(at) => at,
            Err(at) => {
                budget.take(size_of::<Part>())?;
                parts.insert(at, Part { index: part, ..Part::default() });
                at
            }
        };
        let part = parts.get_mut(at);
        Ok(part.map(|part| if kind == Kind::Refusal { &mut part.refusal } else { &mut part.text }))
    }

    fn settle(
        &mut self,
        budget: &mut ByteBudget,
        part: u64,
        kind: Kind,
        whole: &Value,
    ) -> Result<String, ReplyError> {
        let whole = match whole {
            Value::Null => return Ok(String::new()),
            Value::String(text) => text,
            // Arguments as JSON.
            value => {
                budget.take(value.to_string().len())?;
                if let (Body::Call(call), Kind::Arguments) = (&mut self.body, kind) {
                    call.ready = Some(value.clone());
                }
                return Ok(String::new());
            }
        };
        if whole.is_empty() {
            return Ok(String::new());
        }
        let Some(known) = self.text(budget, part, kind)? else { return Ok(String::new()) };
        budget.take(whole.len().saturating_sub(known.len()))?;
        let added = if kind == Kind::Text { whole.strip_prefix(&**known) } else { None };
        let added = added.unwrap_or_default().to_owned();
        whole.clone_into(known);
        Ok(added)
    }

    fn size(&self) -> usize {
        match &self.body {
            Body::Call(call) => {
                let ready = call.ready.as_ref().map_or(0, |value| value.to_string().len());
                call.id.len() + call.name.len() + call.arguments.len() + ready
            }
            Body::Message(parts) => parts.iter().map(|part| part.text.len() + part.refusal.len()).sum(),
        }
    }
}

impl Call {
    /// E-10; `None` for an item that nothing was ever said about.
    fn close(self) -> Option<ToolCall> {
        let nothing =
            self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty() && self.ready.is_none();
        let arguments = match self.ready {
            Some(value) => arguments_in(value),
            None => arguments_of(self.arguments),
        };
        // What looks whole is not: it stays text, and is not run.
        let arguments = match arguments {
            Value::Object(_) if self.cut => Value::String(arguments.to_string()),
            arguments => arguments,
        };
        (!nothing).then(|| ToolCall { id: self.id.into(), name: self.name.into(), arguments })
    }
}

impl Kind {
    /// The field of a part that has it.
    fn key(self) -> &'static str {
        if self == Self::Refusal { "refusal" } else { "text" }
    }
}

/// Whether an item is a call or a message; `None` for others.
fn is_call(item: &Value) -> Option<bool> {
    match field(item, "type").as_str()? {
        "function_call" => Some(true),
        "message" => Some(false),
        _ => None,
    }
}

fn part_kind(part: &Value) -> Option<Kind> {
    match field(part, "type").as_str()? {
        "output_text" | "text" => Some(Kind::Text),
        "refusal" => Some(Kind::Refusal),
        _ => None,
    }
}
