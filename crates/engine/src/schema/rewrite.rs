//! A schema as the validator gets it: with what counts where the value itself does not, and without patterns that can't be
//! checked (E-45).

use super::pattern::{self, Pattern};
use super::survey::{REFERENCES, Survey, UNEVALUATED};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// The schema to compile.
///
/// A schema whose only work is to hold the value against other schemas never looks at the value, and is not counted. So
/// those that can be come to again and again, by references, get something to look at that every value fits.
pub(super) fn rewritten<'s>(schema: &'s Value, survey: &Survey<'s>) -> Cow<'s, Value> {
    let all = survey.addressed || survey.spots.iter().any(|spot| spot.has(&UNEVALUATED));
    let spots = survey.spots.iter().enumerate();
    let counted = spots.filter(|(at, _)| all || survey.targets.contains(at));
    let counted: HashSet<_> = counted.filter_map(|(_, spot)| spot.address()).collect();
    if counted.is_empty() && survey.unchecked.is_empty() {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(Rewriting { survey, counted }.value(schema))
}

struct Rewriting<'a, 's> {
    survey: &'a Survey<'s>,
    counted: HashSet<*const Map<String, Value>>,
}

impl Rewriting<'_, '_> {
    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::Object(fields) => {
                let mut out: Map<String, Value> =
                    fields.iter().map(|(key, field)| (key.clone(), self.value(field))).collect();
                if !self.survey.unchecked.is_empty()
                    && self.survey.found.contains_key(&std::ptr::from_ref(fields))
                {
                    forgive(fields, &mut out);
                }
                if self.counted.contains(&std::ptr::from_ref(fields)) {
                    // It is looked at before anything that applies other schemas.
                    out.entry("minProperties").or_insert_with(|| 0.into());
                }
                Value::Object(out)
            }
            other => other.clone(),
        }
    }
}

/// Takes out patterns that can't be checked, and whatever would refuse a value because they are gone: what is not
/// checked refuses nothing.
fn forgive(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
    if schema.get("pattern").is_some_and(|pattern| pattern.as_str().is_some_and(is_beyond)) {
        out.shift_remove("pattern");
    }
    if let Some(Value::Object(patterns)) = out.get_mut("patternProperties") {
        let before = patterns.len();
        patterns.retain(|pattern, _| !is_beyond(pattern));
        if patterns.len() < before {
            // Any name may be one of its names, of which `additionalProperties` says nothing.
            patterns.entry("").or_insert(Value::Bool(true));
        }
    }
    let is_open = |keyword: &str| schema.get(keyword).is_some_and(is_open);
    if is_open("not") {
        out.shift_remove("not");
    }
    if is_open("if") {
        ["if", "then", "else"].iter().for_each(|keyword| drop(out.shift_remove(*keyword)));
    }
    if is_open("contains") {
        out.shift_remove("maxContains");
    }
    if is_open("oneOf")
        && let Some(some) = out.shift_remove("oneOf")
    {
        let any = Value::Object(Map::from_iter([("anyOf".to_owned(), some)]));
        if let Some(all) = out.entry("allOf").or_insert_with(|| Value::Array(Vec::new())).as_array_mut() {
            all.push(any);
        }
    }
}

/// Whether a schema may accept more than it says: it has a pattern that is not checked, or refers to who knows where.
fn is_open(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_open),
        Value::Object(fields) => fields.iter().any(|(key, field)| {
            REFERENCES.contains(&key.as_str())
                || (key == "pattern" && field.as_str().is_some_and(is_beyond))
                || (key == "patternProperties"
                    && field.as_object().is_some_and(|patterns| patterns.keys().any(|key| is_beyond(key))))
                || is_open(field)
        }),
        _ => false,
    }
}

fn is_beyond(pattern: &str) -> bool {
    pattern::read(pattern) == Pattern::Beyond
}
