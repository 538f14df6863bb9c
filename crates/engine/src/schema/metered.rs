//! JSON values that count how often they are looked at (E-45).
//!
//! The validator asks for everything it wants to know of a value through [`Json`]. Each answer costs steps, by the work
//! that follows from it, and where none are left the validator is unwound: nothing else ends it from outside. The
//! unwinding begins in [`spend`] and ends in [`within`], and nothing but [`Spent`] is stopped there.

use super::unique;
use jsonschema::json::{self, Array, Json, Node, NodeIdentity, Object};
use jsonschema::types::JsonType;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The steps are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent;

/// What looking at texts and members costs under one schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prices {
    /// Steps for 64 bytes of a text that is read.
    pub(super) text: u64,
    /// How many patterns each name of a member may be held against.
    pub(super) names: u64,
    /// Steps of one look: schemas that never look at the value are counted with those that do.
    pub(super) look: u64,
}

#[derive(Clone, Copy)]
struct Meter {
    left: u64,
    prices: Prices,
}

thread_local! {
    /// What the validation that runs on this thread has left.
    static METER: Cell<Meter> = const { Cell::new(Meter { left: u64::MAX, prices: Prices { text: 0, names: 0, look: 1 } }) };
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// All steps that were taken on this thread so far.
pub(super) fn taken() -> u64 {
    TAKEN.get()
}

/// Runs `work` with so many steps, and says how many it took.
pub(super) fn within<T>(steps: u64, prices: Prices, work: impl FnOnce() -> T) -> Result<(T, u64), Spent> {
    let outer = METER.replace(Meter { left: steps, prices });
    let done = catch_unwind(AssertUnwindSafe(work));
    let left = METER.replace(outer).left;
    TAKEN.set(TAKEN.get().wrapping_add(steps - left));
    match done {
        Ok(done) => Ok((done, steps - left)),
        Err(payload) if payload.is::<Spent>() => Err(Spent),
        Err(payload) => resume_unwind(payload),
    }
}

/// Takes steps from what the running validation has left.
pub(super) fn spend(steps: u64) {
    let meter = METER.get();
    match meter.left.checked_sub(steps) {
        Some(left) => METER.set(Meter { left, ..meter }),
        None => resume_unwind(Box::new(Spent)),
    }
}

/// Takes the steps of one look at a value.
fn look() {
    spend(METER.get().prices.look);
}

/// Takes the steps of reading a text.
fn spend_text(text: &str) {
    let price = METER.get().prices.text;
    spend((text.len() as u64).saturating_mul(price) / 64 + 1);
}

/// Takes a step for every value in a value.
pub(super) fn spend_whole(value: &Value) {
    spend(1);
    match value {
        Value::String(text) => spend(text.len() as u64 / 64),
        Value::Array(items) => items.iter().for_each(spend_whole),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            spend(key.len() as u64 / 64);
            spend_whole(field);
        }),
        _ => {}
    }
}

/// [`Value`]s, counted.
pub(super) struct Metered;

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a>(pub(super) &'a Value);

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;
    // As for plain values, so that the same way is taken through the schema.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        look();
        *buffer = Value::String(string.to_owned());
        f(Seen(buffer))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = &'a Map<String, Value>;
    type Array = &'a [Value];
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<&'a Map<String, Value>> {
        look();
        self.0.as_object()
    }

    fn as_array(&self) -> Option<&'a [Value]> {
        look();
        self.0.as_array().map(Vec::as_slice)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(text) = self.0 else {
            look();
            return None;
        };
        spend_text(text);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        look();
        match self.0 {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        look();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        look();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        look();
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str();
        look();
        spend(text.map_or(0, |text| text.len() as u64 / 64));
        text.map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Values of different length are different at once.
        let alike = match (self.0, expected) {
            (Value::Array(these), Value::Array(those)) => these.len() == those.len(),
            (Value::Object(these), Value::Object(those)) => these.len() == those.len(),
            (Value::String(this), Value::String(that)) => this.len() == that.len(),
            _ => false,
        };
        if alike {
            spend_whole(expected)
        } else {
            spend(1)
        }
        json::cmp::equal(self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        look();
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        look();
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self.0) as usize))
    }
}

/// Members of an object, each counted.
pub(super) struct Members<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        let Prices { text, names, look } = METER.get().prices;
        let each = (name.len() as u64).saturating_mul(text) / 64 + 1;
        spend(each.saturating_mul(names).saturating_add(look));
        Some((name, Seen(value)))
    }
}

impl<'a> Object<'a, Metered> for &'a Map<String, Value> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        Map::len(self)
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        look();
        (*self).get(key.as_str()).map(Seen)
    }

    fn members(&self) -> Members<'a> {
        Members((*self).iter())
    }
}

/// Elements of an array, each counted.
pub(super) struct Elements<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        look();
        self.0.next().map(Seen)
    }
}

impl<'a> Array<'a, Metered> for &'a [Value] {
    type Node = Seen<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        <[Value]>::len(self)
    }

    fn elements(&self) -> Elements<'a> {
        Elements((*self).iter())
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self)
    }
}
