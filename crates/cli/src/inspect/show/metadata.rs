//! `show --metadata`: both layers merged, each value with its origin (D-04), and the iteration or path that it is of while that goes on (D-26).

use crate::inspect::page::{BOLD, DIM, Page, Table};
use crate::live::text::cut;
use crate::ui::Ui;
use selvedge_engine::State;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// The origin of values that the run was started with (D-01).
const INITIAL: &str = "initial";
/// That of variables that a workflow sets.
const VARIABLE: &str = "variable";
/// Characters of a value in the table: more would fit into no line.
const SHOWN: usize = 400;

/// Prints `{name: {value, origin, live?}}`, or a table. The table cuts long values; the object has them whole.
pub(super) fn print(state: &State, ui: &Ui) {
    let merged = merged(state);
    if ui.json {
        ui.result(&format!("{}\n", Value::Object(merged)));
        return;
    }
    if merged.is_empty() {
        ui.note("the run has no metadata");
        return;
    }
    let mut rows: Vec<(&String, &Value)> =
        merged.iter().filter(|(name, entry)| !is_echo(name, entry, &merged)).collect();
    // The initial layer as it was given, then step by step.
    let places = state.view().results().enumerate().map(|(place, result)| (result.name, place + 1));
    let places: HashMap<Cow<'_, str>, usize> = places.collect();
    rows.sort_by_key(|(_, entry)| {
        let (node, _) = origin_of(entry).split_once('.').unwrap_or_default();
        places.get(node).copied().unwrap_or_default()
    });
    let mut table = Table::new(&["NAME", "ORIGIN", "VALUE"], 2);
    let echo = rows.iter().find_map(|(name, entry)| {
        let echo = origin_of(entry).replacen('.', "_", 1);
        (echo != **name && merged.contains_key(&echo)).then_some((*name, echo))
    });
    for (name, entry) in &rows {
        let origin = origin_of(entry);
        let value = entry.get("value").map(ToString::to_string).unwrap_or_default();
        let style = if origin == INITIAL { DIM } else { "" };
        // D-02: what a step brought hides what the run was started with.
        let hides = origin != INITIAL && state.initial().contains_key(*name);
        let live = entry.get("live").and_then(Value::as_str).map(|frame| format!(", now in {frame}"));
        let (live, hides) = (live.unwrap_or_default(), if hides { ", over initial" } else { "" });
        let origin = format!("{origin}{live}{hides}");
        // Before it is cut: half a key would be shown as it is (C-06).
        let value = cut(&ui.redacted(&value), SHOWN);
        table.row([((*name).clone(), BOLD), (origin, style), (value, "")]);
    }
    let mut page = Page::new();
    page.table(&table);
    if let Some((name, echo)) = echo {
        page.gap();
        page.labelled(
            "",
            "",
            0,
            &format!("what a step brought has its step's name, too: {name} is also {echo}"),
            2,
        );
    }
    page.print(ui);
}

fn origin_of(entry: &Value) -> &str {
    entry.get("origin").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a name is the long one of a field, of which the short one has a row (D-05).
fn is_echo(name: &str, entry: &Value, merged: &Map<String, Value>) -> bool {
    let origin = origin_of(entry);
    let Some((_, field)) = origin.split_once('.') else { return false };
    field != name && merged.get(field).is_some_and(|short| origin_of(short) == origin)
}

/// The merged view: runtime values go over initial ones (D-02).
fn merged(state: &State) -> Map<String, Value> {
    let entry = |value: &Value, origin: &str| json!({"value": value, "origin": origin});
    let mut merged: Map<String, Value> =
        state.initial().iter().map(|(name, value)| (name.clone(), entry(value, INITIAL))).collect();
    let view = state.view();
    for (name, known) in view.runtime() {
        let origin = match &known.node {
            Some(node) => origin(&name, node, view.result(node).map(|result| result.output)),
            None => VARIABLE.to_owned(),
        };
        let mut entry = entry(known.value, &origin);
        if let (Some(frame), Some(fields)) = (&known.live, entry.as_object_mut()) {
            fields.insert("live".to_owned(), json!(frame));
        }
        merged.insert(name.to_string(), entry);
    }
    merged
}

/// Where a value of the second layer comes from: the node and the field of its output, `step_2.datasource_id`. A name is
/// that of the field, or has the node's id before it (D-05).
fn origin(name: &str, node: &str, output: Option<&Value>) -> String {
    let prefixed = name.strip_prefix(node).and_then(|rest| rest.strip_prefix('_'));
    let has = |field: &str| output.and_then(|output| output.get(field)).is_some();
    let field = match prefixed {
        Some(field) if !has(name) || has(field) => field,
        // What is in a subgraph has its name before it, as its node does (W-03).
        _ => name.rsplit_once('/').filter(|_| node.contains('/')).map_or(name, |(_, own)| own),
    };
    format!("{node}.{field}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_node_and_a_field() {
        let output = json!({"id": 7, "s_odd": 1});
        for (name, shown) in [("id", "s.id"), ("s_id", "s.id"), ("s_odd", "s.s_odd"), ("s_s_odd", "s.s_odd")]
        {
            assert_eq!(origin(name, "s", Some(&output)), shown);
        }
    }
}
