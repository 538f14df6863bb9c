//! Strict JSON (RFC 8259) in which every key and value knows its place in the text.
//!
//! [`parse`] reads a [`Source`](crate::Source) into a tree of [`Node`]s that borrow from the text wherever a
//! string has no escapes. Duplicate keys are errors and nesting is limited (`E-28`).

mod escape;
mod number;
mod parse;
mod pointer;

use std::borrow::Cow;

use selvedge_engine::template::normalized;
use serde_json::Value;

pub use escape::{offsets_in_string, place_in_string, places_in_string};
pub use number::{Integer, parse_exactly};
pub use parse::parse;
pub use pointer::pointers;

/// A range of bytes `[start, end)` in a document's text (after its byte-order mark, if it had one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// A span from byte offsets; offsets that 32 bits can't hold are clamped (no document is that long).
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { start: narrow(start), end: narrow(end) }
    }

    /// The span as a range for slicing text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Whether another span lies within this one.
    pub fn holds(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The first byte of the span: the opening brace or bracket when the span is an object's or array's.
    #[must_use]
    pub fn opening(self) -> Self {
        Span { start: self.start, end: self.end.min(self.start.saturating_add(1)) }
    }
}

/// A value together with its place in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Puts `value` at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

/// One JSON value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'s> {
    /// Where the value is written, brackets and quotes included.
    pub span: Span,
    /// The value.
    pub kind: Kind<'s>,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'s> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as `serde_json` reads it.
    Number(serde_json::Number),
    /// A string, escapes resolved.
    String(Cow<'s, str>),
    /// An array.
    Array(Vec<Node<'s>>),
    /// An object, its members in the order in which they are written.
    Object(Vec<Member<'s>>),
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'s> {
    /// The key, escapes resolved.
    pub key: Cow<'s, str>,
    /// Where the key is written, quotes included.
    pub key_span: Span,
    /// The value.
    pub value: Node<'s>,
}

impl Spanned<std::sync::Arc<str>> {
    /// The same name in the form in which names are compared (`D-09`).
    #[must_use]
    pub(crate) fn normalized(self) -> Self {
        let value = normalized(&self.value).into();
        Spanned { value, ..self }
    }
}

impl<'s> Node<'s> {
    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&[Member<'s>]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Node<'s>]> {
        match &self.kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// The value of the member `key`, if this is an object that has it. Linear in the number of members.
    pub fn get(&self, key: &str) -> Option<&Node<'s>> {
        self.as_object()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The value at a JSON pointer (RFC 6901).
    pub fn at(&self, pointer: &str) -> Option<&Node<'s>> {
        pointer.split('/').skip(1).try_fold(self, |node, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match &node.kind {
                Kind::Array(elements) => elements.get(step.parse::<usize>().ok()?),
                _ => node.get(&step),
            }
        })
    }

    /// The value as `serde_json` has it, keys in the document's order.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::String(text) => Value::String(text.to_string()),
            Kind::Array(elements) => Value::Array(elements.iter().map(Node::to_value).collect()),
            Kind::Object(members) => Value::Object(to_map(members)),
        }
    }

    /// The same tree without borrowing from the text, to be kept in a typed document.
    pub fn into_owned(self) -> Node<'static> {
        let kind = match self.kind {
            Kind::Null => Kind::Null,
            Kind::Bool(flag) => Kind::Bool(flag),
            Kind::Number(number) => Kind::Number(number),
            Kind::String(text) => Kind::String(Cow::Owned(text.into_owned())),
            Kind::Array(elements) => Kind::Array(elements.into_iter().map(Node::into_owned).collect()),
            Kind::Object(members) => Kind::Object(members.into_iter().map(Member::into_owned).collect()),
        };
        Node { span: self.span, kind }
    }

    /// What the value is, in words: "null", "a boolean", "a number", "a string", "an array", "an object".
    pub fn type_in_words(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }

    /// Calls `visit` with every string in the tree, keys included, and the place of its literal, in the
    /// document's order. Placeholders may stand in any of them (`D-08`).
    pub fn each_string<'n>(&'n self, visit: &mut dyn FnMut(&'n str, Span)) {
        match &self.kind {
            Kind::String(text) => visit(text, self.span),
            Kind::Array(elements) => elements.iter().for_each(|element| element.each_string(visit)),
            Kind::Object(members) => {
                for member in members {
                    visit(&member.key, member.key_span);
                    member.value.each_string(visit);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }
}

impl Member<'_> {
    fn into_owned(self) -> Member<'static> {
        Member {
            key: Cow::Owned(self.key.into_owned()),
            key_span: self.key_span,
            value: self.value.into_owned(),
        }
    }
}

/// Members of an object as a `serde_json` map, in the document's order.
pub fn to_map(members: &[Member<'_>]) -> serde_json::Map<String, Value> {
    members.iter().map(|member| (member.key.to_string(), member.value.to_value())).collect()
}

#[cfg(test)]
mod tests;
