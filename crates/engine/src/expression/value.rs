//! What parts of an expression come to. What comes out of JSON is borrowed; what is made is shared.

use super::numbers;
use serde_json::Value;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    /// A list of JSON.
    Array(&'a [Value]),
    /// A map of JSON.
    Object(&'a serde_json::Map<String, Value>),
    /// A list that the expression makes.
    List(Rc<Vec<Val<'a>>>),
    /// A map that it makes, in the order of the text; keys differ.
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
}

#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Read(&'a str),
    Made(Rc<str>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Read(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> From<&'a Value> for Val<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(Text::Read(text)),
            Value::Array(items) => Self::Array(items),
            Value::Object(members) => Self::Object(members),
        }
    }
}

impl<'a> Val<'a> {
    pub(super) fn made(text: String) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an int",
            Self::Uint(_) => "a uint",
            Self::Double(_) => "a double",
            Self::Text(_) => "text",
            Self::Array(_) | Self::List(_) => "a list",
            Self::Object(_) | Self::Map(_) => "a map",
        }
    }

    /// How many elements a list has.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::Array(items) => Some(items.len()),
            Self::List(items) => Some(items.len()),
            _ => None,
        }
    }
    pub(super) fn item(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Array(items) => items.get(index).map(Val::from),
            Self::List(items) => items.get(index).cloned(),
            _ => None,
        }
    }

    /// How many members a map has.
    pub(super) fn members(&self) -> Option<usize> {
        match self {
            Self::Object(members) => Some(members.len()),
            Self::Map(members) => Some(members.len()),
            _ => None,
        }
    }
    /// What finding a member costs.
    pub(super) fn search(&self) -> usize {
        if let Self::Map(members) = self { members.len() } else { 1 }
    }
    /// The member of a key.
    pub(super) fn member(&self, key: &Val<'_>) -> Option<Val<'a>> {
        match (self, key) {
            (Self::Object(members), Val::Text(key)) => members.get(key.as_str()).map(Val::from),
            (Self::Map(members), _) => {
                members.iter().find(|(known, _)| known.is_key(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }
    /// All members of a map.
    pub(super) fn entries(&self) -> Vec<(Val<'a>, Val<'a>)> {
        match self {
            Self::Object(members) => {
                let entry =
                    |(key, value): (&'a String, &'a Value)| (Val::Text(Text::Read(key)), Val::from(value));
                members.iter().map(entry).collect()
            }
            Self::Map(members) => members.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Whether two keys are the same: numbers are by value.
    pub(super) fn is_key(&self, other: &Val<'_>) -> bool {
        match (self, other) {
            (Val::Bool(own), Val::Bool(other)) => own == other,
            (Val::Text(own), Val::Text(other)) => own.as_str() == other.as_str(),
            _ => numbers::compare(self, other) == Some(Some(std::cmp::Ordering::Equal)),
        }
    }
    /// Whether it can be a key.
    pub(super) fn can_be_key(&self) -> bool {
        matches!(self, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Text(_))
    }
}
