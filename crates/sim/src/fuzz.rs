//! Fuzz targets, one for each parser of input that comes from outside. Each takes any bytes and must neither
//! panic nor break what its parser promises.
//!
//! `fuzz/` holds the same functions as cargo-fuzz targets, and their corpora; `tests/corpora.rs` runs every corpus
//! file, and mutations of it, as an ordinary test. [`canary`] is a target that fails: it shows that a failure
//! is seen.

mod archive;
pub use archive::archive;

use selvedge_dialects::recognise::{Choice, Dialect};
use selvedge_dialects::{Capabilities, Diagnostics, DocumentLimits, NoTools, ToolSource, document, steps};
use selvedge_engine::expression::{BYTES, EvaluationError, Expression};
use selvedge_engine::graph::Node;
use selvedge_engine::place::{AskPlace, CallPlace, EffectPlace, FramePath, FramePathRef, Place};
use selvedge_engine::schema::{self, Schema, Unusable};
use selvedge_engine::template::{JsonTemplate, Layers, OnMissing, StepView, Template};
use selvedge_engine::{Event, Graph, Record, State, ToolDef};
use selvedge_models::scripted::Scripted;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A target: any bytes in, a panic if something is wrong.
pub type Target = fn(&[u8]);

/// Every target, with the name of its folder in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 11] = [
    ("document", document_text),
    ("steps", steps_text),
    ("workflow", workflow_text),
    ("template", template),
    ("parameters", parameters),
    ("script", script),
    ("journal", journal),
    ("schema", schema),
    ("place", place),
    ("expression", expression),
    ("archive", archive),
];

/// A document file: read, checked, lowered. Every finding has a place inside the file; without an error there
/// is a graph, and its schedule is proved.
pub fn document_text(data: &[u8]) {
    compiles(data, Choice::default(), &NoTools);
}

/// The same of a workflow, whose nodes may name tools.
pub fn workflow_text(data: &[u8]) {
    compiles(data, Choice { dialect: Some(Dialect::Workflow), plan: None }, &TwoTools);
}

fn compiles(data: &[u8], choice: Choice<'_>, tools: &dyn ToolSource) {
    let limits = DocumentLimits::default();
    let Ok(source) = document::load("fuzz.json", data.to_vec(), &limits) else { return };
    let mut findings = Diagnostics::new();
    let read = selvedge_dialects::read(&source, choice, &limits, &mut findings);
    let graph = read.and_then(|document| {
        let initial = document.inputs(&Map::new(), &mut findings);
        document.compile(tools, &initial, &Capabilities::default(), &mut findings)
    });
    for finding in findings.report(&source) {
        assert!(finding.line.is_none_or(|line| line >= 1), "{finding:?}");
    }
    assert!(graph.is_some() || findings.has_errors(), "no graph, and nobody says why");
    if let Some(graph) = graph {
        let schedule = selvedge_engine::schedule::Schedule::derive(&graph, false);
        assert_eq!(schedule.prove(&graph), Ok(()));
        let text = serde_json::to_string(&graph).unwrap_or_default();
        let back: Result<Graph, _> = serde_json::from_str(&text);
        assert!(back.is_ok_and(|back| back == graph), "a graph does not survive being written");
    }
}

/// A pure tool `add {a}` that brings `sum`, one `any` that declares nothing, and no other.
struct TwoTools;

impl ToolSource for TwoTools {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        let schema = match name {
            "add" => json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
            "any" => json!({"type": "object"}),
            _ => return None,
        };
        Some(Arc::new(ToolDef {
            name: name.into(),
            description: "a tool".into(),
            input_schema: schema,
            output_params: (name == "add").then(|| ["sum"].into()),
            effects: (name == "add").then_some(selvedge_engine::Effects::Pure),
            version: name.into(),
            source: "fuzz".into(),
            timeout_s: None,
            approval: false,
        }))
    }
    fn names(&self) -> Vec<String> {
        vec!["add".into(), "any".into()]
    }
}

/// A step task, with a model and without; and the same text as what a model wrote for a replan. Without an error
/// there is a graph whose schedule is proved; a refused replan says why.
pub fn steps_text(data: &[u8]) {
    let limits = DocumentLimits::default();
    let Ok(source) = document::load("fuzz.json", data.to_vec(), &limits) else { return };
    for model in [false, true] {
        let mut findings = Diagnostics::new();
        let choice = Choice { dialect: Some(Dialect::Steps), plan: None };
        let read = selvedge_dialects::read(&source, choice, &limits, &mut findings);
        let graph = read.and_then(|document| {
            let initial = document.inputs(&Map::new(), &mut findings);
            let capabilities = Capabilities { model, ..Capabilities::default() };
            document.compile(&TwoTools, &initial, &capabilities, &mut findings)
        });
        let length = source.text().len();
        for finding in findings.report(&source) {
            assert!(finding.span.is_none_or(|span| span.end as usize <= length), "{finding:?}");
        }
        assert!(graph.is_some() || findings.has_errors(), "no graph, and nobody says why");
        if let Some(graph) = graph {
            let text = serde_json::to_string(&graph).unwrap_or_default();
            let back: Result<Graph, _> = serde_json::from_str(&text);
            assert!(back.is_ok_and(|back| back == graph), "a graph does not survive being written");
        }
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let written = value.get("steps").cloned().unwrap_or(value);
    let earlier = json!([{"id": "s0", "tool": "add", "success": true}]);
    let answer = steps::compile_more(&json!({"steps": written, "earlier": earlier}), &TwoTools);
    let nodes = answer.get("nodes").map(|nodes| serde_json::from_value::<Vec<Node>>(nodes.clone()).is_ok());
    let said = answer.get("diagnostics").and_then(Value::as_array).is_some_and(|said| !said.is_empty());
    assert!(nodes == Some(true) || said, "{answer}");
}

struct Anything(Value);

impl Layers for Anything {
    fn is_step(&self, id: &str) -> bool {
        id.len().is_multiple_of(2)
    }
    fn step(&self, _: &str) -> StepView<'_> {
        StepView::Output(&self.0)
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        (!name.starts_with('z')).then_some(&self.0)
    }
    fn initial(&self, _: &str) -> Option<&Value> {
        None
    }
    fn fallback(&self, _: &str) -> Option<&Value> {
        None
    }
    fn names(&self) -> Vec<String> {
        vec!["near".into()]
    }
}

/// A text with placeholders: parsed and rendered; its source is what was parsed.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let layers = Anything(json!({"a": [1, {"b": "{{not.again}}"}], "output": "x"}));
    match Template::parse(text) {
        Ok(parsed) => {
            assert_eq!(parsed.source(), text);
            for missing in [OnMissing::Fault, OnMissing::Null, OnMissing::Keep] {
                let _ = parsed.render_text(&layers, missing);
                let _ = parsed.render_value(&layers, missing);
            }
        }
        Err(error) => assert!(error.offset <= text.len()),
    }
}

/// An expression: read, evaluated twice with the same result, and written as it was read.
pub fn expression(data: &[u8]) {
    const COST: u64 = 20_000;
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = match Expression::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return assert!(text.is_char_boundary(error.at) && !error.message.is_empty()),
    };
    assert!(text.len() <= BYTES && parsed.source() == text);
    let layers = Anything(json!({"a": [1, {"b": 2.5}], "t": "text", "n": 3, "f": true}));
    let found = parsed.evaluate(&layers, COST);
    assert_eq!(found, parsed.evaluate(&layers, COST));
    if let Err(EvaluationError::Wrong { at, .. }) = found {
        assert!(at < text.len());
    }
    for path in parsed.paths() {
        assert!(text.contains(&*path.root) || text.contains('\\'), "{path}");
    }
}

/// A JSON value with placeholders in its strings and keys.
pub fn parameters(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let layers = Anything(json!({"a": [1, 2], "output": true}));
    if let Ok(parsed) = JsonTemplate::parse(&value) {
        assert_eq!(parsed.source(), &value);
        let _ = parsed.resolve(&layers, OnMissing::Fault);
        let _ = parsed.resolve(&layers, OnMissing::Keep);
    }
}

/// A file of the scripted model's rules.
pub fn script(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Err(error) = Scripted::parse("fuzz.yaml", text)
    {
        assert!(!error.to_string().is_empty());
    }
}

/// A journal from anywhere: events in any order, one JSON object a line, applied to a run of a small plan. An event
/// that does not fit changes nothing; the machine stays able to say what comes next.
pub fn journal(data: &[u8]) {
    const LINES: usize = 200;
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut state = State::new(small());
    for line in text.lines().take(LINES) {
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        state.apply_record(&Record { at: 1, event });
        let _ = state.step();
    }
    let _ = state.view();
    let pending: Vec<_> = state.pending().keys().cloned().collect();
    for effect in pending {
        let _ = state.request(&effect);
    }
}

fn small() -> Arc<Graph> {
    let plan = json!({"task": "t", "nodes": [
        {"node_type": "llm-first", "node_name": "a", "thread_id": "x", "task_prompt": "p", "data_out": true},
        {"node_type": "llm-first", "node_name": "b", "thread_id": "x", "task_prompt": "{{n1.output}}"}]});
    let source = selvedge_dialects::Source::new("small.json", &plan.to_string());
    let mut findings = Diagnostics::new();
    let limits = DocumentLimits::default();
    let read = selvedge_dialects::read(&source, Choice::default(), &limits, &mut findings);
    let graph = read.and_then(|document| {
        document.compile(&NoTools, &Map::new(), &Capabilities::default(), &mut findings)
    });
    Arc::new(graph.unwrap_or_default())
}

/// A JSON Schema and a value, as `{"schema", "value"}`: both are somebody else's. What is found is found within the steps,
/// twice the same, and in words.
pub fn schema(data: &[u8]) {
    const STEPS: u64 = 20_000;
    let Ok(mut given) = serde_json::from_slice::<Value>(data) else { return };
    let value = given.get_mut("value").map(Value::take).unwrap_or_default();
    let schema = given.get_mut("schema").map(Value::take).unwrap_or(given);
    let looked = schema::look(&schema, STEPS);
    let read = Schema::new(&schema, STEPS);
    match &read {
        Ok(read) => assert_eq!(looked.as_deref(), Ok(read.unchecked())),
        Err(Unusable::OverLimit(words)) => assert!(!words.is_empty()),
        Err(Unusable::Invalid { message, place, .. }) => {
            assert!(!message.is_empty() && schema.pointer(place).is_some())
        }
    }
    let Ok(read) = read else { return };
    let (fits, violations) = (read.fits(&value), read.violations(&value, 3));
    assert_eq!(violations, read.violations(&value, 3));
    match violations {
        Ok(violations) => {
            assert_eq!(fits, Ok(violations.is_empty()));
            assert!(violations.iter().all(|found| value.pointer(&found.place).is_some()));
        }
        Err(excess) => assert_eq!(fits, Err(excess)),
    }
}

/// Ids and frame paths (E-35), one a line: what is read is written again as it was, and so no two places have one text.
pub fn place(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for line in text.lines() {
        let effect = EffectPlace::parse(line);
        let ask = AskPlace::parse(line).map(|ask| ask.to_string());
        let call = CallPlace::parse(line).map(|call| call.to_string());
        let place = Place::parse(line).map(|place| place.to_string());
        let frames = FramePathRef::parse(line).map(|frames| {
            frames.steps().fold(FramePath::default(), |frame, step| frame.with(&step)).to_string()
        });
        if let Some(effect) = &effect {
            assert_eq!(*effect.id().0, *line);
            let as_ask = AskPlace::parse(line);
            assert!(matches!(as_ask, Some(AskPlace::Call(ask)) if ask == *effect), "{line} is two things");
            assert!(frames.is_none() && place.is_none(), "{line} is two things");
        }
        for written in [ask, call, place, frames].into_iter().flatten() {
            assert_eq!(written, line);
        }
    }
}

/// A target that fails on one word.
pub fn canary(data: &[u8]) {
    assert!(!data.windows(4).any(|window| window == b"bird"), "the canary heard a bird");
}
