//! Parts of the run object that everybody who reports on runs writes alike (C-02).

use selvedge_engine::event::JoinOutcome;
use selvedge_engine::{Fault, FaultKind, JoinView, PathEnd, State, Usage, View};
use serde_json::{Map, Value, json};

/// A run's usage: `{model_calls, tool_calls, input_tokens, output_tokens, cost}`, and where providers tell them apart
/// `cached_tokens` and `reasoning_tokens`, which are parts of the two sums.
pub fn usage(state: &State) -> Value {
    used(&state.usage())
}

/// What was used anywhere, in the same shape.
pub fn used(usage: &Usage) -> Value {
    let mut used = json!({
        "model_calls": usage.model_calls,
        "tool_calls": usage.tool_calls,
        "input_tokens": usage.tokens.input,
        "output_tokens": usage.tokens.output,
        "cost": usage.tokens.shown_cost(),
    });
    let parts = [("cached_tokens", usage.tokens.cached), ("reasoning_tokens", usage.tokens.reasoning)];
    for (name, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        if let Some(used) = used.as_object_mut() {
            used.insert(name.to_owned(), count.into());
        }
    }
    used
}

/// A fault with the ids that the document has for nodes (W-03), also in what a join says of its paths.
pub fn fault(state: &State, fault: &Fault) -> Value {
    let mut value = json!(fault);
    name_nodes(state, &mut value);
    if matches!(fault.kind, FaultKind::JoinUnmet | FaultKind::Timeout) {
        let rows = value.get_mut("cause").and_then(Value::as_object_mut);
        let errors =
            rows.into_iter().flat_map(|rows| rows.values_mut()).filter_map(|row| row.get_mut("error"));
        errors.for_each(|error| name_nodes(state, error));
    }
    value
}

fn name_nodes(state: &State, fault: &mut Value) {
    if let Some(node) = fault.get_mut("node")
        && let Some(name) = node.as_str()
    {
        *node = Value::from(state.report_name(name).into_owned());
    }
}

/// What came of joins, by their names (W-09): `{strategy, outcome, results, errors, cancelled, main, usage}`.
pub fn joins(state: &State, view: View<'_>) -> Map<String, Value> {
    view.joins().map(|row| (row.name.to_string(), join(state, &row))).collect()
}

fn join(state: &State, join: &JoinView<'_>) -> Value {
    let (mut results, mut errors, mut cancelled) = (Map::new(), Map::new(), Vec::new());
    for path in &join.paths {
        match path.end {
            PathEnd::Completed(output) => drop(results.insert(path.id.to_string(), output.clone())),
            PathEnd::Failed(error) => drop(errors.insert(path.id.to_string(), fault(state, error))),
            PathEnd::Cancelled => cancelled.push(&path.id),
        }
    }
    let usage: Map<String, Value> =
        join.paths.iter().map(|path| (path.id.to_string(), used(&path.usage))).collect();
    let outcome = match join.outcome {
        JoinOutcome::Met => "met",
        JoinOutcome::Unmet => "unmet",
        JoinOutcome::Timeout => "timeout",
    };
    json!({
        "strategy": join.strategy.name(), "outcome": outcome, "results": results, "errors": errors,
        "cancelled": cancelled, "main": join.main, "usage": usage,
    })
}
