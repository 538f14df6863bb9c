//! `show --metadata`: both layers merged, each value with its origin (D-04).

use crate::look::page::{BOLD, DIM, Page, Table};
use crate::ui::Ui;
use selvedge_engine::State;
use serde_json::{Map, Value, json};

/// The origin of values that the run was started with (D-01).
const INITIAL: &str = "initial";

/// Prints `{name: {value, origin}}`, or a table.
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
    let mut table = Table::new(&["NAME", "ORIGIN", "VALUE"], 2);
    for (name, entry) in &merged {
        let origin = entry.get("origin").and_then(Value::as_str).unwrap_or_default();
        let value = entry.get("value").cloned().unwrap_or_default();
        let style = if origin == INITIAL { DIM } else { "" };
        table.row([(name.clone(), BOLD), (origin.to_owned(), style), (value.to_string(), "")]);
    }
    let mut page = Page::new();
    page.table(&table);
    page.print(ui);
}

/// The merged view: runtime values go over initial ones (D-02).
fn merged(state: &State) -> Map<String, Value> {
    let entry = |value: &Value, origin: &str| json!({"value": value, "origin": origin});
    let mut merged: Map<String, Value> =
        state.initial().iter().map(|(name, value)| (name.clone(), entry(value, INITIAL))).collect();
    for (name, (value, origin)) in state.view().runtime {
        merged.insert(name.to_string(), entry(&value, &origin));
    }
    merged
}
