//! Random values that fit a JSON Schema: what tools, models and people say where nothing else does.
//!
//! Every keyword that tools' and documents' schemas use commonly is made to fit. What can't be (`not`, look-around in a
//! pattern) is left to whoever holds the value against its schema: [`fits`] does.

mod pattern;

use crate::rng::Rng;
use crate::words::Words;
use selvedge_engine::schema::{STEPS, Schema};
use serde_json::{Map, Number, Value, json};

/// Schemas inside each other that are gone into; what would be deeper is left out where it may be.
const DEEP: usize = 8;
/// Values of one value: a schema that multiplies itself makes no more.
const MANY: usize = 2_000;

/// A value that fits `schema`.
pub fn fitting(schema: &Value, words: &Words, rng: &mut Rng) -> Value {
    Maker { root: schema, words, rng, left: MANY }.value(schema, 0)
}

/// Any value: a text, a number, a list, or an object with fields that the document reads.
pub fn any(words: &Words, rng: &mut Rng) -> Value {
    Maker { root: &Value::Null, words, rng, left: MANY }.any(0)
}

/// An object with all fields that the document reads somewhere.
pub fn object(words: &Words, rng: &mut Rng) -> Value {
    let mut maker = Maker { root: &Value::Null, words, rng, left: MANY };
    let fields = words.fields.iter().map(|name| (name.clone(), maker.scalar()));
    Value::Object(fields.collect())
}

/// Words: one of the document's own, or others.
pub fn text(words: &Words, rng: &mut Rng) -> String {
    match rng.pick(&words.texts) {
        Some(known) if rng.chance(60) => known.clone(),
        _ => format!("text {}", rng.below(1_000)),
    }
}

/// Whether a value fits a schema, as far as that can be found out.
pub fn fits(schema: &Value, value: &Value) -> bool {
    Schema::new(schema, STEPS).is_ok_and(|schema| schema.fits(value).unwrap_or(false))
}

struct Maker<'a> {
    root: &'a Value,
    words: &'a Words,
    rng: &'a mut Rng,
    left: usize,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, deep: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        let Value::Object(fields) = schema else { return self.any(deep) };
        if let Some(value) = fields.get("const") {
            return value.clone();
        }
        if let Some(value) = fields.get("enum").and_then(Value::as_array).and_then(|all| self.rng.pick(all)) {
            return value.clone();
        }
        if let Some(merged) = self.merged(fields, deep) {
            return self.value(&Value::Object(merged), deep + 1);
        }
        match self.kind(fields) {
            "object" => self.object(fields, deep),
            "array" => self.array(fields, deep),
            "string" => self.string(fields).into(),
            "integer" => self.integer(fields).into(),
            "number" => self.number(fields),
            "boolean" => self.rng.chance(50).into(),
            "null" => Value::Null,
            _ => self.any(deep),
        }
    }

    /// The schema with one of what it leaves open, and all that it demands, written into it; nothing of one that is plain.
    fn merged(&mut self, fields: &Map<String, Value>, deep: usize) -> Option<Map<String, Value>> {
        const OPEN: [&str; 5] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"];
        if deep > 4 * DEEP || !OPEN.iter().any(|name| fields.contains_key(*name)) {
            return None;
        }
        let mut merged = fields.clone();
        for name in OPEN {
            let Some(open) = merged.shift_remove(name) else { continue };
            match (name, &open) {
                ("$ref" | "$dynamicRef", Value::String(to)) => {
                    let there = to.strip_prefix('#').and_then(|place| self.root.pointer(place)).cloned();
                    there.iter().for_each(|schema| merge(&mut merged, schema));
                }
                ("allOf", Value::Array(all)) => all.iter().for_each(|schema| merge(&mut merged, schema)),
                (_, Value::Array(some)) => {
                    // Deep in a schema that contains itself the first is the one that ends.
                    let one = if deep > DEEP { some.first() } else { self.rng.pick(some) };
                    one.into_iter().for_each(|schema| merge(&mut merged, schema));
                }
                _ => {}
            }
        }
        Some(merged)
    }

    /// The type of what fits, as the schema says it or as its other keywords let guess.
    fn kind(&mut self, fields: &Map<String, Value>) -> &'static str {
        const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
        const SAID: [(&str, &str); 12] = [
            ("properties", "object"),
            ("required", "object"),
            ("additionalProperties", "object"),
            ("items", "array"),
            ("prefixItems", "array"),
            ("minItems", "array"),
            ("pattern", "string"),
            ("minLength", "string"),
            ("maxLength", "string"),
            ("format", "string"),
            ("minimum", "number"),
            ("maximum", "number"),
        ];
        let named = |name: &str| TYPES.into_iter().find(|kind| *kind == name);
        match fields.get("type") {
            Some(Value::String(name)) => named(name).unwrap_or("any"),
            Some(Value::Array(names)) => {
                self.rng.pick(names).and_then(Value::as_str).and_then(named).unwrap_or("any")
            }
            _ => SAID.iter().find(|(name, _)| fields.contains_key(*name)).map_or("any", |(_, kind)| kind),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, deep: usize) -> Value {
        let required = fields.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let has = required.contains(&name.as_str())
                || deep < DEEP && self.left > 0 && self.rng.chance(75) && *schema != Value::Bool(false);
            if has {
                object.insert(name.clone(), self.value(schema, deep + 1));
            }
        }
        let others = fields.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(&others, deep + 1));
            }
        }
        let least = count(fields, "minProperties").unwrap_or(0).min(MANY);
        while object.len() < least {
            let name = format!("field{}", object.len());
            object.insert(name, self.value(&others, deep + 1));
        }
        Value::Object(object)
    }

    fn array(&mut self, fields: &Map<String, Value>, deep: usize) -> Value {
        let least = count(fields, "minItems").unwrap_or(0).min(MANY);
        let most = count(fields, "maxItems").unwrap_or(least.max(1) + 2);
        let long = if deep >= DEEP || self.left == 0 {
            least
        } else {
            least + self.rng.below(most.saturating_sub(least).min(4) + 1)
        };
        let first = fields.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
        let items = fields.get("items").cloned().unwrap_or(Value::Bool(true));
        let unique = fields.get("uniqueItems") == Some(&Value::Bool(true));
        let mut list: Vec<Value> = Vec::new();
        for at in 0..long {
            let schema = first.get(at).unwrap_or(&items);
            let mut item = self.value(schema, deep + 1);
            for _ in 0..20 {
                if !unique || !list.contains(&item) {
                    break;
                }
                item = self.value(schema, deep + 1);
            }
            if !unique || !list.contains(&item) {
                list.push(item);
            }
        }
        list.into()
    }

    fn string(&mut self, fields: &Map<String, Value>) -> String {
        let made = fields.get("pattern").and_then(Value::as_str).and_then(|it| pattern::text(it, self.rng));
        if let Some(made) = made {
            return made;
        }
        let small = |rng: &mut Rng, low, high| rng.within(low, high);
        let text = match fields.get("format").and_then(Value::as_str) {
            Some("date") => format!("2026-{:02}-{:02}", small(self.rng, 1, 12), small(self.rng, 1, 28)),
            Some("time") => format!("{:02}:{:02}:00Z", small(self.rng, 0, 23), small(self.rng, 0, 59)),
            Some("date-time") => {
                format!("2026-{:02}-{:02}T12:00:00Z", small(self.rng, 1, 12), small(self.rng, 1, 28))
            }
            Some("email") => format!("user{}@example.org", self.rng.below(100)),
            Some("uri" | "url" | "iri") => format!("https://example.org/{}", self.rng.below(100)),
            Some("uuid") => format!("00000000-0000-4000-8000-{:012x}", self.rng.bits() >> 16),
            Some("ipv4") => format!("192.0.2.{}", self.rng.below(255)),
            Some("hostname") => format!("host{}.example.org", self.rng.below(100)),
            _ => text(self.words, self.rng),
        };
        let least = count(fields, "minLength").unwrap_or(0).min(1 << 16);
        let most = count(fields, "maxLength").unwrap_or(usize::MAX).max(least);
        let mut text: String = text.chars().take(most).collect();
        let short = least.saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('x', short));
        text
    }

    fn integer(&mut self, fields: &Map<String, Value>) -> i64 {
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let low = number("minimum").map(f64::ceil);
        let low = low.or(number("exclusiveMinimum").map(|low| low.floor() + 1.0));
        let high = number("maximum").map(f64::floor);
        let high = high.or(number("exclusiveMaximum").map(|high| high.ceil() - 1.0));
        let (low, high) = match (low, high) {
            (Some(low), Some(high)) => (low, high.max(low)),
            (Some(low), None) => (low, low + 20.0),
            (None, Some(high)) => (high - 20.0, high),
            (None, None) => (0.0, 9.0),
        };
        let within = |number: &f64| (low..=high).contains(number);
        let known: Vec<f64> =
            self.words.numbers.iter().filter_map(Number::as_f64).filter(|it| within(it)).collect();
        let made = match self.rng.pick(&known) {
            Some(known) if self.rng.chance(40) => *known as i64,
            _ => self.rng.within(low as i64, high as i64),
        };
        match number("multipleOf").map(|of| of as i64).filter(|of| *of > 1) {
            Some(of) => {
                let down = made.div_euclid(of).saturating_mul(of);
                if (down as f64) < low { down.saturating_add(of) } else { down }
            }
            None => made,
        }
    }

    fn number(&mut self, fields: &Map<String, Value>) -> Value {
        let whole = self.integer(fields);
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let above = whole as f64 + 0.5;
        let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 0.5));
        let plain = number("multipleOf").is_some() || most.is_some_and(|most| above > most);
        if plain || self.rng.chance(50) { whole.into() } else { json!(above) }
    }

    fn scalar(&mut self) -> Value {
        match self.rng.below(6) {
            0 | 1 => self.integer(&Map::new()).into(),
            2 => self.rng.chance(50).into(),
            _ => text(self.words, self.rng).into(),
        }
    }

    fn any(&mut self, deep: usize) -> Value {
        match self.rng.below(8) {
            0 if deep < DEEP && self.left > 0 => {
                let many = self.rng.below(4);
                (0..many).map(|_| self.scalar()).collect()
            }
            1 if deep < DEEP && self.left > 0 => object(self.words, self.rng),
            _ => self.scalar(),
        }
    }
}

fn count(fields: &Map<String, Value>, name: &str) -> Option<usize> {
    fields.get(name)?.as_u64().and_then(|count| usize::try_from(count).ok())
}

/// Writes what a schema demands into another: properties and requirements of both, and else what it says itself.
fn merge(into: &mut Map<String, Value>, schema: &Value) {
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), into.get_mut(name), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                known.extend(more.clone());
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                let new: Vec<Value> = more.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(new);
            }
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
