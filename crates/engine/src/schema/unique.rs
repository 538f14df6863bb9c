//! `uniqueItems` in time that whoever chooses the elements can't stretch (E-45).
//!
//! The validator's own way hashes what is in an element and not how it is nested, and numbers as floats: elements that
//! differ by brackets only, or large numbers, all meet in one bucket, and a few megabytes of them take hours.

use super::metered::spend_whole;
use jsonschema::json::cmp::equal;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Whether no element equals another one.
pub(super) fn is_unique(items: &[Value]) -> bool {
    let mut seen: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(items.len());
    items.iter().all(|item| {
        spend_whole(item);
        let alike = seen.entry(hash_of(item)).or_default();
        let new = alike.iter().all(|other| {
            spend_whole(item);
            !equal(item, other)
        });
        alike.push(item);
        new
    })
}

fn hash_of(value: &Value) -> u64 {
    let mut state = DefaultHasher::new();
    std::mem::discriminant(value).hash(&mut state);
    match value {
        Value::Null => {}
        Value::Bool(is) => is.hash(&mut state),
        Value::Number(number) => match whole(number) {
            Some(whole) => whole.hash(&mut state),
            None => number.as_f64().map(f64::to_bits).hash(&mut state),
        },
        Value::String(text) => text.hash(&mut state),
        Value::Array(items) => {
            items.len().hash(&mut state);
            items.iter().for_each(|item| hash_of(item).hash(&mut state));
        }
        Value::Object(fields) => {
            // In whatever order they stand.
            let mut all: Vec<u64> = fields
                .iter()
                .map(|(key, field)| {
                    let mut state = DefaultHasher::new();
                    (key, hash_of(field)).hash(&mut state);
                    state.finish()
                })
                .collect();
            all.sort_unstable();
            all.hash(&mut state);
        }
    }
    state.finish()
}

/// The number as a whole one: 2 and 2.0 are equal.
fn whole(number: &serde_json::Number) -> Option<i128> {
    // Up to there floats and integers can be equal.
    const MOST: f64 = 18_446_744_073_709_551_616.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MOST);
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| float().map(|float| float as i128))
}
