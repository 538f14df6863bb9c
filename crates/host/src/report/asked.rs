//! What a person is asked.

use crate::asks::{ask_kind, prompt};
use crate::time;
use selvedge_engine::{Asking, State};
use serde_json::{Map, Value};

/// An open ask as C-02 has it. `now` is the time by which it may have expired (E-37), in milliseconds since 1970; `None` stands for a
/// moment in the past.
pub fn asked(state: &State, id: &str, ask: &Asking, now: Option<i64>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("ask", id.into());
    put("node", state.called(ask.node).to_string().into());
    put("kind", ask_kind(ask.kind).into());
    put("prompt", prompt(state, ask).into());
    if let Some(value) = &ask.value {
        put("value", Value::clone(value));
    }
    if let Some(schema) = state.answer_schema(ask) {
        put("schema", schema.clone());
    }
    if let Some(due) = state.expires(id) {
        put("until", time::rfc3339(due).into());
        if now.is_some_and(|now| due <= now) {
            put("expired", true.into());
        }
    }
    if state.doubted_call(ask).is_some() {
        put("in_doubt", true.into());
    }
    object
}
