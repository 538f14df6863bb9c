//! Events.

use crate::time;
use selvedge_engine::place::Place;
use selvedge_engine::{AskPlace, Record, State};
use selvedge_store::Entry;
use serde_json::{Map, Value, json};

/// A stored event with its number and time in front: `{"n", "at", "kind", …}`, its own text unchanged.
pub fn with_head(entry: &Entry) -> String {
    let head = format!("{{\"n\":{},\"at\":\"{}\"", entry.n, time::rfc3339(entry.at_ms));
    match entry.json.trim_start().strip_prefix('{').map(str::trim_start) {
        Some("}") => format!("{head}}}"),
        Some(fields) => format!("{head},{fields}"),
        // No event: who exports has looked before.
        None => format!("{head},\"event\":{}}}", entry.json),
    }
}

/// C-15's object of a recorded event. `names` is any state of the run's graph: no event is applied to it.
///
/// # Errors
/// It is no event.
pub fn event(names: &State, entry: &Entry) -> serde_json::Result<Value> {
    let fields = selvedge_runtime::recorded(entry.json.as_bytes())?;
    Ok(object_of(names, entry.n, entry.at_ms, fields))
}

/// C-15's object of an event's fields: `{n, at, kind, node?, place?, effect?, …}`. Events of an effect name its node too; a node in a frame
/// is called as people are told that it is (W-03), and as the journal has it (E-35).
fn object_of(names: &State, n: u64, at_ms: i64, mut fields: Map<String, Value>) -> Value {
    let kind = fields.shift_remove("kind");
    let effect = fields.shift_remove("effect");
    let node = fields.shift_remove("node").filter(|node| node.as_str() != Some(""));
    let place = match (node.as_ref().and_then(Value::as_str), effect.as_ref().and_then(Value::as_str)) {
        (Some(node), _) => Some(node.to_owned()),
        (None, effect) => effect.map(name_of),
    };
    let node = place.as_deref().map(|place| Value::from(names.told_name(place)));
    let place = place.map(Value::from).filter(|place| Some(place) != node.as_ref());
    let mut object = Map::new();
    object.insert("n".to_owned(), Value::from(n));
    object.insert("at".to_owned(), Value::from(time::rfc3339(at_ms)));
    for (name, value) in [("kind", kind), ("node", node), ("place", place), ("effect", effect)] {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    }
    object.extend(fields);
    Value::Object(object)
}

/// C-15's objects of a run that is recorded nowhere; `names` is its state.
pub fn events(names: &State, records: &[Record]) -> Vec<Value> {
    let objects = (1..).zip(records).map(|(n, Record { at, event })| {
        let fields = json!(event).as_object().cloned().unwrap_or_default();
        object_of(names, n, *at, fields)
    });
    objects.collect()
}

/// What events call the node that the id of an effect belongs to (E-35).
pub fn name_of(id: &str) -> String {
    match AskPlace::parse(id).map(AskPlace::into_place) {
        Some(place) if place.frames.is_root() => place.node.into_owned(),
        Some(place) => Place { visit: 1, ..place }.to_string(),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_leaves_the_event_as_it_is() {
        let entry = |json: &str| Entry { n: 3, at_ms: 0, json: json.to_owned() };
        let head = "{\"n\":3,\"at\":\"1970-01-01T00:00:00.000Z\"";
        assert_eq!(
            with_head(&entry("{\"kind\":\"x\",\"v\":1.0e2}")),
            format!("{head},\"kind\":\"x\",\"v\":1.0e2}}")
        );
        assert_eq!(with_head(&entry("{}")), format!("{head}}}"));
    }
}
