//! Comparing what a case expects with what came of it.

use super::case::{Diagnostic as Expected, Expect, ToolCall};
use super::messages::{difference, fits, lines};
use super::run::{Seen, Session, node_of};
use selvedge_dialects::Severity;
use selvedge_dialects::diagnostic::Diagnostic;
use selvedge_engine::graph::Control;
use selvedge_engine::{Event, Fault, RunStatus, View};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Findings that differ from the expected ones.
pub fn findings(expected: &[Expected], found: &[Diagnostic]) -> Option<String> {
    let all = expected.is_empty() || expected.iter().any(|finding| finding.severity == "warning");
    let found: Vec<&Diagnostic> =
        found.iter().filter(|finding| all || finding.severity == Severity::Error).collect();
    let fits = |expected: &Expected, found: &Diagnostic| {
        expected.rule == found.rule
            && expected.code == found.code
            && expected.severity == found.severity.as_str()
            && expected.line.is_none_or(|line| Some(line) == found.line)
            && expected.at.as_ref().is_none_or(|at| *at == found.pointer)
            && expected.contains.as_ref().is_none_or(|part| {
                found.message.contains(part.as_str()) || found.help.contains(part.as_str())
            })
    };
    let same = expected.len() == found.len() && expected.iter().zip(&found).all(|(e, f)| fits(e, f));
    (!same).then(|| {
        let found: Vec<Value> = found.iter().map(|finding| json!(finding)).collect();
        format!("diagnostics\n  expected:\n{}\n  got:\n{}", as_lines(expected), lines(&found))
    })
}

/// Every difference between what is expected of a run and what is there.
pub fn run(expect: &Expect, session: &Session, seen: &Seen) -> Vec<String> {
    let view = session.state.view();
    let mut wrong = Vec::new();
    outcome(expect, session, view, &mut wrong);
    threads(expect, view, &mut wrong);
    results(expect, session, view, &mut wrong);
    effects(expect, session, view, seen, &mut wrong);
    events(expect, session, &mut wrong);
    wrong
}

/// What a case says, one entry a line, without what it leaves open.
fn as_lines<T: serde::Serialize>(expected: &[T]) -> String {
    let entries = expected.iter().map(|entry| {
        let mut entry = json!(entry);
        entry.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
        entry
    });
    lines(&entries.collect::<Vec<_>>())
}

fn unequal(what: &str, expected: &Value, got: &Value) -> Option<String> {
    (expected != got).then(|| format!("{what}\n  expected: {expected}\n  got:      {got}"))
}

fn outcome(expect: &Expect, session: &Session, view: View<'_>, wrong: &mut Vec<String>) {
    if let Some(status) = &expect.status {
        let got = json!(view.status());
        let fault = view.fault().map(|fault| format!(" ({}: {})", fault.kind.name(), fault.message));
        if got != json!(status) {
            wrong.push(format!("status: expected {status}, got {got}{}", fault.unwrap_or_default()));
        }
    }
    if let Some(output) = &expect.output {
        wrong.extend(unequal("output", output, view.output()));
    }
    if let Some(expected) = &expect.fault {
        let fits = view.fault().is_some_and(|fault| {
            fault.kind.name() == expected.kind
                && expected.node.as_ref().is_none_or(|node| {
                    fault.node.as_deref().map(|name| session.state.report_name(name)).as_deref() == Some(node)
                })
                && expected.contains.iter().all(|part| text_of(fault).contains(part.as_str()))
        });
        if !fits {
            wrong.push(format!(
                "fault\n  expected: {}\n  got:      {}",
                json!(expected),
                json!(view.fault())
            ));
        }
    }
    if let Some(expected) = &expect.warnings {
        let mut got: Vec<&str> = session.state.warnings().iter().map(|warning| &*warning.code).collect();
        let mut wanted: Vec<&str> = expected.iter().map(String::as_str).collect();
        got.sort_unstable();
        wanted.sort_unstable();
        wrong.extend(unequal("warnings", &json!(wanted), &json!(got)));
    }
    if let Some(expected) = &expect.asks {
        let asks = session.state.asks();
        let fits = expected.len() == asks.len()
            && expected.iter().all(|wanted| {
                asks.values().any(|ask| {
                    *session.state.called(ask.node) == *wanted.node
                        && json!(ask.kind) == json!(wanted.kind)
                        && wanted.contains.as_ref().is_none_or(|part| ask.prompt.contains(part.as_str()))
                })
            });
        if !fits {
            wrong.push(format!("asks\n  expected: {expected:?}\n  got:      {asks:?}"));
        }
    }
    if let Some(expected) = &expect.usage {
        let usage = session.state.usage();
        let got = json!({
            "model_calls": usage.model_calls, "tool_calls": usage.tool_calls,
            "input_tokens": usage.tokens.input, "output_tokens": usage.tokens.output,
            "cost": usage.tokens.cost,
        });
        for (key, value) in expected {
            wrong.extend(unequal(&format!("usage.{key}"), value, &got[key.as_str()]));
        }
    }
}

fn text_of(fault: &Fault) -> String {
    let cause = fault.cause.as_ref().map(Value::to_string);
    format!("{} {}", fault.message, cause.unwrap_or_default())
}

fn threads(expect: &Expect, view: View<'_>, wrong: &mut Vec<String>) {
    for (name, messages) in expect.threads.iter().flatten() {
        let thread = view.thread(name);
        match (thread, messages.is_null()) {
            (None, true) => {}
            (Some(_), true) => wrong.push(format!("thread {name} exists")),
            (None, false) => wrong.push(format!("thread {name} does not exist")),
            (Some(found), false) => {
                let what = format!("thread {name}");
                wrong.extend(difference(&what, messages, found.iter().map(AsRef::as_ref)));
            }
        }
    }
    if let Some(expected) = &expect.data_out {
        wrong.extend(unequal("data_out", expected, &data_out(view)));
    }
}

/// What was published, in C-02's shape.
pub fn data_out(view: View<'_>) -> Value {
    let rows = view.data_out().into_iter().map(|row| {
        let publication = row.publication;
        let value = json!({
            "node": row.node, "node_type": publication.label,
            "description": publication.description, "content": publication.content,
        });
        (row.thread.to_string(), value)
    });
    Value::Object(rows.collect())
}

/// `runtime_metadata`: each value with the node it came from.
pub fn metadata(view: View<'_>) -> Value {
    let rows = view.runtime().into_iter();
    rows.map(|(name, known)| (name.to_string(), json!([known.value, known.node]))).collect()
}

fn results(expect: &Expect, session: &Session, view: View<'_>, wrong: &mut Vec<String>) {
    if let Some(ran) = &expect.ran {
        let got: Vec<String> = view.results().map(|result| result.name.into_owned()).collect();
        wrong.extend(unequal("nodes with a result", &json!(ran), &json!(got)));
    }
    for (node, fields) in expect.results.iter().flatten() {
        let Some(result) = view.result(node) else {
            wrong.push(format!("node {node} has no result"));
            continue;
        };
        let got = json!(result);
        for (key, value) in fields {
            let what = format!("results.{node}.{key}");
            if key == "error" && value.is_object() {
                let stated = result.error.as_ref().map(|fault| {
                    json!({"error": {"type": fault.kind.name(), "message": text_of(fault)}}).to_string()
                });
                let named =
                    json!({"error": value["kind"], "contains": value.get("contains").unwrap_or(&json!([]))});
                if !stated.as_ref().is_some_and(|stated| fits(&named, stated)) {
                    wrong.push(format!("{what}\n  expected: {value}\n  got:      {}", got["error"]));
                }
            } else {
                wrong.extend(unequal(&what, value, &got[key.as_str()]));
            }
        }
    }
    joins(expect, session, view, wrong);
    if let Some(expected) = &expect.metadata {
        let runtime = view.runtime().into_iter();
        let runtime = runtime.map(|(name, known)| (name.to_string(), known.value.clone()));
        wrong.extend(unequal("runtime_metadata", expected, &Value::Object(runtime.collect())));
    }
    if session.state.status() != view.status() {
        wrong.push("the view and the state disagree on the status".into());
    }
}

/// What came of joins, as far as it is written; of usage the figures that are.
fn joins(expect: &Expect, session: &Session, view: View<'_>, wrong: &mut Vec<String>) {
    let Some(expected) = &expect.joins else { return };
    let got = Value::Object(selvedge_runtime::report::joins(&session.state, view));
    for (join, fields) in expected {
        let Some(got) = got.get(join) else {
            wrong.push(format!("there is no join {join}, but {got}"));
            continue;
        };
        for (key, value) in fields {
            let fits = match (key.as_str(), &got[key.as_str()]) {
                ("errors", Value::Object(got)) => {
                    let same = value.as_object().is_some_and(|wanted| wanted.keys().eq(got.keys()));
                    same && got.iter().all(|(path, fault)| includes(fault, &value[path]))
                }
                ("usage", got) => includes(got, value),
                (_, got) => got == value,
            };
            if !fits {
                wrong.push(format!(
                    "joins.{join}.{key}\n  expected: {value}\n  got:      {}",
                    got[key.as_str()]
                ));
            }
        }
    }
    let (known, all) = (expected.len(), got.as_object().map_or(0, Map::len));
    if known != all {
        wrong.push(format!("expected {known} joins, got {got}"));
    }
}

/// Whether a value has all that is written of it.
fn includes(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (Value::Object(got), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| got.get(key).is_some_and(|got| includes(got, wanted)))
        }
        (got, wanted) => got == wanted,
    }
}

/// The nodes whose effects can be observed, in order: of a failed run, only those up to the last that has a result
/// (P-20). A node that made way for others stands before the first of them (D-20).
pub fn observable(session: &Session, view: View<'_>) -> HashMap<String, usize> {
    let nodes = session.state.graph().all_nodes().enumerate();
    let mut order: HashMap<String, usize> =
        nodes.map(|(at, node)| (node.id.to_string(), 2 * at + 1)).collect();
    // In a flow nothing runs ahead.
    if view.status() == RunStatus::Failed && session.state.graph().control == Control::Dataflow {
        let place = |result: selvedge_engine::StepResult<'_>| order.get(result.step_id).copied();
        let last = view.results().filter_map(place).max().unwrap_or(0);
        order.retain(|_, at| *at <= last);
    }
    for record in &session.records {
        if let Event::Spliced { node, .. } = &record.event {
            let at = session.graph.nodes.values().position(|known| known.id == *node).unwrap_or_default();
            order.entry(node.to_string()).or_insert(2 * at);
        }
    }
    order
}

fn effects(expect: &Expect, session: &Session, view: View<'_>, seen: &Seen, wrong: &mut Vec<String>) {
    let order = observable(session, view);
    if let Some(expected) = &expect.requests {
        let mut got: Vec<_> = seen.requests.iter().filter(|r| order.contains_key(&*r.node)).collect();
        got.sort_by_key(|request| order.get(&*request.node));
        if got.len() != expected.len() {
            let nodes: Vec<&str> = got.iter().map(|request| &*request.node).collect();
            wrong.push(format!(
                "expected {} model requests, got {} of nodes {nodes:?}",
                expected.len(),
                got.len()
            ));
        }
        for (at, (wanted, request)) in expected.iter().zip(got).enumerate() {
            let what = format!("request {} of node {}", at + 1, request.node);
            wrong.extend(unequal(&what, &json!(wanted.node), &json!(request.node)));
            if let Some(messages) = &wanted.messages {
                wrong.extend(difference(&what, messages, request.messages.iter().map(AsRef::as_ref)));
            }
            if let Some(tools) = &wanted.tools {
                let offered: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
                wrong.extend(unequal(&format!("{what}: tools"), &json!(tools), &json!(offered)));
            }
            if let Some(schema) = &wanted.schema {
                let asked = request.schema.as_ref().map(|schema| &schema.name);
                wrong.extend(unequal(&format!("{what}: schema"), schema, &json!(asked)));
            }
            if let Some(role) = &wanted.role {
                wrong.extend(unequal(&format!("{what}: role"), &json!(role), &json!(request.role)));
            }
            if let Some(settings) = &wanted.settings {
                wrong.extend(unequal(&format!("{what}: settings"), settings, &settings_of(request)));
            }
        }
    }
    if let Some(expected) = &expect.calls {
        let mut got: Vec<_> = seen.calls.iter().filter(|call| order.contains_key(&*call.node)).collect();
        got.sort_by_key(|call| order.get(&*call.node));
        let same = |wanted: &ToolCall, call: &selvedge_engine::ToolRequest| {
            *wanted.tool == *call.tool.name
                && wanted.args.as_ref().is_none_or(|args| *args == call.args)
                && wanted.node.as_ref().is_none_or(|node| **node == *call.node)
        };
        if got.len() != expected.len() || !expected.iter().zip(&got).all(|(wanted, call)| same(wanted, call))
        {
            let got: Vec<Value> = got
                .iter()
                .map(|call| json!({"tool": call.tool.name, "args": call.args, "node": call.node}))
                .collect();
            wrong.push(format!("tool calls\n  expected:\n{}\n  got:\n{}", as_lines(expected), lines(&got)));
        }
    }
}

/// Settings as a document writes them: those that only some providers know beside the others.
fn settings_of(request: &selvedge_engine::ModelRequest) -> Value {
    let mut settings = json!(request.settings);
    if let Some(fields) = settings.as_object_mut() {
        fields.remove("extra");
        fields.extend(request.settings.extra.clone());
    }
    settings
}

fn events(expect: &Expect, session: &Session, wrong: &mut Vec<String>) {
    let events: Vec<Value> = session
        .records
        .iter()
        .map(|record| serde_json::to_value(&record.event).unwrap_or_default())
        .collect();
    let kind = |event: &Value| event.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (wanted, count) in expect.events.iter().flatten() {
        let got = events.iter().filter(|event| kind(event) == *wanted).count();
        if got != *count {
            wrong.push(format!("expected {count} events {wanted}, got {got}"));
        }
    }
    if let Some(expected) = &expect.recovered {
        let got: Vec<&Value> = events.iter().filter(|event| kind(event) == "recovered").collect();
        let fits = |wanted: &Map<String, Value>, got: &Value| {
            wanted.iter().all(|(key, value)| match (value, &got[key.as_str()]) {
                (Value::Object(_), Value::String(text)) => fits(value, text),
                (value, got) => value == got,
            })
        };
        let same = got.len() == expected.len() && expected.iter().zip(&got).all(|(w, g)| fits(w, g));
        if !same {
            let got: Vec<Value> = got.into_iter().cloned().collect();
            wrong.push(format!("recovered\n  expected:\n{}\n  got:\n{}", as_lines(expected), lines(&got)));
        }
    }
    if let Some(expected) = &expect.skipped {
        let skipped = events.iter().filter(|event| kind(event) == "node_skipped");
        let got: Map<String, Value> = skipped
            .map(|event| (event["node"].as_str().unwrap_or_default().to_owned(), event["because"].clone()))
            .collect();
        wrong.extend(unequal("skipped", &json!(expected), &Value::Object(got)));
    }
    if let Some(journal) = &expect.journal {
        let kinds: Vec<String> = events.iter().map(kind).collect();
        wrong.extend(unequal("journal", &json!(journal), &json!(kinds)));
    }
    let spans = Spans::of(&events);
    let pairs = [
        (&expect.before, &spans.nodes, true, "the node"),
        (&expect.overlap, &spans.nodes, false, "the node"),
        (&expect.calls_before, &spans.calls, true, "the calls of"),
        (&expect.calls_overlap, &spans.calls, false, "the calls of"),
    ];
    for (pairs, spans, apart, what) in pairs {
        for (first, second) in pairs {
            let (Some(a), Some(b)) = (spans.get(first), spans.get(second)) else {
                wrong.push(format!("{what} {first} or {second}: nothing happened"));
                continue;
            };
            let holds = if apart { a.1 < b.0 } else { a.0 < b.1 && b.0 < a.1 };
            if !holds {
                let relation = if apart { "end before" } else { "overlap" };
                wrong
                    .push(format!("{what} {first} (events {a:?}) should {relation} {second} (events {b:?})"));
            }
        }
    }
}

/// From which event to which, by node.
struct Spans {
    nodes: HashMap<String, (usize, usize)>,
    calls: HashMap<String, (usize, usize)>,
}

impl Spans {
    fn of(events: &[Value]) -> Self {
        let mut spans = Self { nodes: HashMap::new(), calls: HashMap::new() };
        let mut requested = HashMap::new();
        for (at, event) in events.iter().enumerate() {
            let Some(node) = node_of(event) else { continue };
            let effect = event["effect"].as_str().unwrap_or_default();
            let is_call = event["outcome"].get("reply").is_none();
            match event.get("kind").and_then(Value::as_str).unwrap_or_default() {
                "node_started" => drop(spans.nodes.insert(node, (at, usize::MAX))),
                "node_finished" => {
                    spans.nodes.entry(node).and_modify(|span| span.1 = at);
                }
                "requested" | "retried" => drop(requested.insert(effect, at)),
                "completed" if is_call => {
                    let from = requested.get(effect).copied().unwrap_or(at);
                    let span = spans.calls.entry(node).or_insert((from, at));
                    *span = (span.0.min(from), at);
                }
                _ => {}
            }
        }
        spans
    }
}
