//! Steps that a model wrote, on their way into a run (D-20, D-21): read, checked and lowered as those of a document,
//! or refused in words that the model can act on.

use super::check::{self, Scope};
use super::doc::{Recovery, Siblings, StepsDoc};
use super::lower::Lowering;
use super::read;
use crate::Capabilities;
use crate::ToolSource;
use crate::diagnostic::shown;
use crate::json;
use crate::leaves::effects_of;
use crate::settings::ToolEffects;
use crate::{Diagnostics, DocumentLimits, Finding, Severity, Source};
use selvedge_engine::graph::{INTERNAL, Node, Tail};
use selvedge_engine::{Effects, Outputs, TailIx, ToolDef};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

/// Findings told to the model at a time.
const TOLD: usize = 20;
/// Most names of the first data layer that are handed on; with more, unknown names are left to run time.
const NAMES: usize = 200;

/// The tool that compiles steps; whoever runs tools hands its calls to [`compile_more`].
pub fn compiler() -> Arc<ToolDef> {
    static COMPILER: LazyLock<Arc<ToolDef>> = LazyLock::new(|| {
        Arc::new(ToolDef {
            name: format!("{INTERNAL}compile").into(),
            description: "Turns steps into nodes of the run.".into(),
            input_schema: json!({"type": "object"}),
            output_params: Some(Outputs::default()),
            effects: Some(Effects::Pure),
            // Counts behaviour: what was compiled before is never compiled again.
            version: "selvedge-compile-2".into(),
            source: crate::tool_source::BUILT_IN.into(),
            timeout_s: None,
            approval: false,
        })
    });
    COMPILER.clone()
}

/// What replans are compiled with: constant, and a part of each call of the compiler.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    /// The task, a template.
    pub(super) task: Arc<str>,
    /// Settings of recovery in force.
    pub(super) recovery: Recovery,
    /// Names of the first data layer; `None`: too many, or not known.
    pub(super) names: Option<Vec<String>>,
    /// Most steps (E-28).
    pub(super) nodes: Option<usize>,
}

impl Context {
    /// That of a document whose first layer has these names.
    pub(super) fn of(document: &StepsDoc, names: &HashSet<&str>, capabilities: &Capabilities) -> Self {
        let mut sorted: Vec<String> = names.iter().take(NAMES + 1).map(ToString::to_string).collect();
        sorted.sort_unstable();
        Self {
            task: document.head.task.value.clone(),
            recovery: document.recovery_with(capabilities),
            names: (sorted.len() <= NAMES).then_some(sorted),
            nodes: (capabilities.limits.nodes != DocumentLimits::default().nodes)
                .then_some(capabilities.limits.nodes),
        }
    }

    /// As members of the compiler's arguments.
    pub(super) fn to_map(&self) -> Map<String, Value> {
        let Recovery { model, siblings, retries, repairs, replans, consecutive_failures, reflections } =
            self.recovery;
        let siblings = siblings
            .and_then(|siblings| Siblings::NAMES.into_iter().find(|(_, known)| *known == siblings))
            .map(|(name, _)| name);
        let settings = [
            ("model", model.map(Value::Bool)),
            ("siblings", siblings.map(Value::from)),
            ("retries", retries.map(Value::from)),
            ("repairs", repairs.map(Value::from)),
            ("replans", replans.map(Value::from)),
            ("consecutive_failures", consecutive_failures.map(Value::from)),
            ("reflections", reflections.map(Value::from)),
        ];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut map = Map::new();
        map.insert("task".to_owned(), Value::from(&*self.task));
        map.insert("recovery".to_owned(), Value::Object(settings.collect()));
        for (name, value) in
            [("names", self.names.as_ref().map(|n| json!(n))), ("nodes", self.nodes.map(|n| json!(n)))]
        {
            map.extend(value.map(|value| (name.to_owned(), value)));
        }
        map
    }

    fn from_args(args: &Value) -> Self {
        let of = |name: &str| args.get("recovery").and_then(|recovery| recovery.get(name));
        let count = |name: &str| of(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let siblings = of("siblings").and_then(Value::as_str);
        let names = args.get("names").and_then(Value::as_array);
        let text = |name: &Value| name.as_str().map(str::to_owned);
        Self {
            task: args.get("task").and_then(Value::as_str).unwrap_or_default().into(),
            recovery: Recovery {
                model: of("model").and_then(Value::as_bool),
                siblings: siblings
                    .and_then(|name| Siblings::NAMES.into_iter().find(|(known, _)| *known == name))
                    .map(|(_, siblings)| siblings),
                retries: count("retries"),
                repairs: count("repairs"),
                replans: count("replans"),
                consecutive_failures: count("consecutive_failures"),
                reflections: count("reflections"),
            },
            names: names.map(|names| names.iter().filter_map(text).collect()),
            nodes: args.get("nodes").and_then(Value::as_u64).and_then(|nodes| usize::try_from(nodes).ok()),
        }
    }
}

/// Answers a call of the tool [`compiler`].
///
/// `args`: `{"steps": […], "strategy"?, "earlier": [{"id", "tool", "success"}]}`, and what lowering put in besides.
/// The answer is `{"nodes": [Node…], "tails": [Tail…], "tools": {name: ToolDef…}}`, or `{"diagnostics": [text…]}` if anything is an
/// error, each text with the place it is about.
pub fn compile_more(args: &Value, tools: &dyn ToolSource) -> Value {
    let context = Context::from_args(args);
    let steps = args.get("steps").cloned().unwrap_or(Value::Null);
    let text = json!({"task": "", "steps": steps}).to_string();
    let source = Source::new("steps", &text);
    let limits = DocumentLimits { nodes: context.nodes.unwrap_or(usize::MAX), ..DocumentLimits::default() };
    let limits = DocumentLimits { nodes: limits.nodes.min(DocumentLimits::default().nodes), ..limits };
    let mut found = Diagnostics::new();
    let document = json::parse(&source, &limits, &mut found)
        .and_then(|root| read::read(&root, &source, &limits, &mut found));
    let nodes = document.and_then(|document| compiled(&document, args, &context, &source, tools, &mut found));
    match nodes {
        Some(Compiled { nodes, tail, tools }) => {
            let tails: Vec<_> = tail.into_iter().collect();
            json!({"nodes": nodes, "tails": tails, "tools": tools})
        }
        None => json!({"diagnostics": words(&found, &source)}),
    }
}

struct Compiled {
    nodes: Vec<Node>,
    /// What the nodes share.
    tail: Option<Arc<Tail>>,
    tools: BTreeMap<Arc<str>, Arc<ToolDef>>,
}

fn compiled(
    document: &StepsDoc,
    args: &Value,
    context: &Context,
    source: &Source,
    tools: &dyn ToolSource,
    found: &mut Diagnostics,
) -> Option<Compiled> {
    let Some(steps) = document.steps.as_ref().filter(|_| document.complete) else {
        if !found.has_errors() {
            let message = "there are no `steps`";
            found
                .push(Finding::error("D-20", "no-steps", document.head.span, message).help("write the list"));
        }
        return None;
    };
    let earlier = args.get("earlier").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let done = |step: &Value| step.get("success").and_then(Value::as_bool).unwrap_or(true);
    let named = |step: &'_ Value, field: &str| step.get(field).and_then(Value::as_str).map(str::to_owned);
    let earlier: Vec<(String, Option<String>)> = earlier
        .iter()
        .filter(|step| done(step))
        .filter_map(|step| Some((named(step, "id")?, named(step, "tool"))))
        .collect();
    // D-21: nothing to do is no plan; a replan may leave out what is left (`skip_steps`).
    if steps.is_empty() && earlier.is_empty() {
        let finding = Finding::error("D-21", "no-steps", document.head.span, "the list of steps is empty");
        found.push(finding.help("write at least one step"));
    }
    let taken: HashSet<&str> = earlier.iter().map(|(id, _)| id.as_str()).collect();
    for step in steps.iter().filter(|step| taken.contains(step.id.value.as_ref())) {
        let message = format!("the id {} is that of a step that has succeeded", shown(&step.id.value));
        let finding = Finding::error("D-20", "step-id-taken", step.id.span, message);
        found.push(
            finding.help("choose another `step_id`; the earlier step's output stays available under its own"),
        );
    }
    let scope = Scope {
        names: context.names.as_ref().map(|names| names.iter().map(String::as_str).collect()),
        earlier: earlier.iter().map(|(id, tool)| (id.as_str(), tool.as_deref())).collect(),
        for_model: true,
        complete: true,
        // What a document of theirs says of its tools was said of the document; the call has the limit that is set.
        schema_steps: None,
    };
    check::check(None, steps, scope, source, tools, found);
    if found.has_errors() {
        return None;
    }
    let lowering = Lowering {
        task: &context.task,
        recovery: context.recovery,
        model: context.recovery.model != Some(false),
        context,
    };
    let tail = lowering.tail(steps);
    let first = tail.as_ref().map(|_| TailIx(0));
    let mut nodes = Vec::with_capacity(steps.len());
    for step in steps {
        let mut node = lowering.step(step, first)?;
        node.effects = weakest(step.effects.as_ref().map(|given| given.value), tools.def(&step.tool.value));
        nodes.push(node);
    }
    let named = document.tools().into_iter().filter_map(|name| Some((name.clone(), tools.def(&name)?)));
    Some(Compiled { nodes, tail, tools: named.collect() })
}

/// A model may say that a call does more to the world than its tool declares, never that it does less (E-22).
fn weakest(given: Option<ToolEffects>, def: Option<Arc<ToolDef>>) -> Option<Effects> {
    let declared = def.and_then(|def| def.effects).unwrap_or_default();
    given.map(effects_of).map(|given| given.max(declared))
}

/// The errors, for a model.
fn words(found: &Diagnostics, source: &Source) -> Vec<String> {
    let errors = found.report(source).into_iter().filter(|finding| finding.severity == Severity::Error);
    let words = errors.take(TOLD).map(|finding| {
        let place = if finding.pointer.is_empty() { "/steps" } else { &finding.pointer };
        match finding.help.is_empty() {
            true => format!("{place}: {}", finding.message),
            false => format!("{place}: {} ({})", finding.message, finding.help),
        }
    });
    words.collect()
}
