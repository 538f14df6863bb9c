//! Steps by hand, a world that answers them, and what holds of every run.

use selvedge_engine::graph::{
    Act, Action, Alternative, Call, Edge, Fact, Flow, Guard, Infer, Leaf, Node, OnError, Recovery, Retry,
    Tail,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{
    Effects, Event, Failure, FaultKind, Graph, Input, LeafIx, ModelReply, Outcome, Past, Record, ReplySchema,
    Request, RunStatus, State, StepResult, TailIx, ToolCall, ToolDef,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A step, as a document would say it.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) after: Vec<String>,
    pub(crate) alternatives: Vec<(String, Option<Value>)>,
    pub(crate) retry: Option<u32>,
    pub(crate) hold: bool,
    pub(crate) on_missing: OnMissing,
    pub(crate) rules: Recovery,
}

/// A step that calls `tool`; no model decides about it.
pub(crate) fn step(id: &str, tool: &str, args: Value) -> Step {
    Step {
        id: id.into(),
        tool: tool.into(),
        args,
        after: Vec::new(),
        alternatives: Vec::new(),
        retry: None,
        hold: false,
        on_missing: OnMissing::Fault,
        rules: Recovery::default(),
    }
}

impl Step {
    pub(crate) fn after(mut self, ids: &[&str]) -> Self {
        self.after = ids.iter().map(|id| (*id).to_owned()).collect();
        self
    }
    pub(crate) fn or(mut self, tool: &str, args: Option<Value>) -> Self {
        self.alternatives.push((tool.into(), args));
        self
    }
    pub(crate) fn model(mut self) -> Self {
        self.rules.model = true;
        self
    }
    pub(crate) fn retry(mut self, retry: u32) -> Self {
        self.retry = Some(retry);
        self
    }
    pub(crate) fn hold(mut self) -> Self {
        self.hold = true;
        self
    }
    pub(crate) fn rules(mut self, change: impl FnOnce(&mut Recovery)) -> Self {
        change(&mut self.rules);
        self
    }

    /// The node that stands for it, with the flow of a step.
    pub(crate) fn node(&self) -> Node {
        let mut rules = self.rules.clone();
        let alternative = |(tool, args): &(String, Option<Value>)| Alternative {
            tool: tool.as_str().into(),
            args: args.as_ref().map(|args| JsonTemplate::parse(args).unwrap()),
        };
        rules.alternatives = self.alternatives.iter().map(alternative).collect();
        let recovers = rules.model || !rules.alternatives.is_empty();
        let retry = Retry { max: self.retry, backoff_s: None };
        let args = JsonTemplate::parse(&self.args).unwrap();
        let call = Act::Call(Call { tool: self.tool.as_str().into(), args, retry, timeout_s: None });
        // The first leaf of the tail comes behind the only one of its own.
        let next = if recovers { vec![(Guard::Fault, 1)] } else { Vec::new() };
        Node {
            id: self.id.as_str().into(),
            name: format!("name of {}", self.id).into(),
            body: Flow {
                leaves: [leaf("call", call, next)].into_iter().collect(),
                tail: recovers.then_some(TailIx(u32::from(rules.model))),
                compiler: Some("selvedge__compile".into()),
                ..Flow::default()
            },
            on_error: if self.hold { OnError::Fail } else { OnError::Finish },
            effects: None,
            on_missing: self.on_missing,
            tool: Some(self.tool.as_str().into()),
            after: self.after.iter().map(|id| Arc::from(id.as_str())).collect(),
            recovery: Some(Arc::new(rules)),
        }
    }
}

const TURN: u32 = 0;
const BRIEF: u32 = 1;
const REFLECT: u32 = 2;
const DECIDE: u32 = 3;
const TRY: u32 = 4;
const COMPILE: u32 = 5;
const ASK: u32 = 6;
const PLAN: u32 = 7;
const SPLICE: u32 = 8;

/// What steps share: without a model, and with one.
fn tails() -> [Arc<Tail>; 2] {
    [DECIDE, BRIEF].map(|entry| Arc::new(Tail { leaves: recovery(entry).into_iter().collect() }))
}

fn leaf(name: &str, act: Act, next: Vec<(Guard, u32)>) -> Leaf {
    let next = next.into_iter().map(|(when, to)| Edge { when, to: Some(LeafIx(to)) }).collect();
    Leaf { name: name.into(), act, next }
}

fn asks(schema: &str) -> Act {
    let judged = schema == "steps";
    let schema = ReplySchema { name: schema.into(), schema: json!({"type": "object"}) };
    Act::Infer(Infer { schema: Some(schema), judged, ..Infer::default() })
}

fn brief(text: &str, facts: Vec<Fact>) -> Act {
    Act::Brief { text: Template::parse(text).unwrap(), facts }
}

fn compile() -> Act {
    Act::Compile { context: serde_json::Map::new(), tries: 4 }
}

/// The leaves behind the step's own.
fn recovery(entry: u32) -> Vec<Leaf> {
    let told =
        vec![Fact::Step, Fact::Parameters, Fact::Fault, Fact::Tool, Fact::Tools, Fact::Metadata, Fact::Left];
    let act = Guard::Act;
    vec![
        leaf("turn", Act::Turn, vec![(Guard::Exhausted, DECIDE), (Guard::Always, entry)]),
        leaf("brief", brief("What now?", told), vec![(Guard::Always, REFLECT)]),
        leaf("reflect", asks("reflection"), vec![(Guard::Fault, DECIDE), (Guard::Always, DECIDE)]),
        leaf(
            "decide",
            Act::Decide,
            vec![
                (act(Action::RetryWithParams), TRY),
                (act(Action::RetryWithTool), TRY),
                (act(Action::RepairStep), TRY),
                (Guard::Steps, COMPILE),
                (act(Action::Replan), ASK),
            ],
        ),
        leaf("try", Act::Try, vec![(Guard::Fault, TURN)]),
        leaf(
            "compile",
            compile(),
            vec![(Guard::Exhausted, DECIDE), (Guard::Fault, ASK), (Guard::Always, SPLICE)],
        ),
        leaf(
            "ask",
            brief("Other steps?", vec![Fact::Results, Fact::Diagnostics]),
            vec![(Guard::Always, PLAN)],
        ),
        leaf("plan", asks("steps"), vec![(Guard::Fault, DECIDE), (Guard::Always, COMPILE)]),
        leaf("splice", Act::Splice, vec![(Guard::Fault, ASK)]),
    ]
}

/// A task without steps: a node that plans (D-21).
pub(crate) fn planned(tools: bool) -> Node {
    let mut leaves = Vec::new();
    if tools {
        let next = |to| vec![(Guard::Always, to)];
        leaves.push(leaf("names", brief("Which tools?", vec![Fact::ToolNames]), next(1)));
        leaves.push(leaf("choose", asks("tool_choice"), next(2)));
        leaves.push(leaf(
            "brief",
            brief("Plan.", vec![Fact::Task("the task".into()), Fact::Chosen]),
            next(3),
        ));
    } else {
        let facts = vec![Fact::Task("the task".into()), Fact::Tools];
        leaves.push(leaf("brief", brief("Plan.", facts), vec![(Guard::Always, 1)]));
    }
    let at = u32::try_from(leaves.len()).unwrap();
    leaves.push(leaf("plan", asks("steps"), vec![(Guard::Always, at + 1)]));
    let mut compile = leaf(
        "compile",
        compile(),
        vec![(Guard::Exhausted, 0), (Guard::Fault, at + 2), (Guard::Always, at + 3)],
    );
    compile.next[0].to = None;
    leaves.push(compile);
    leaves.push(leaf("again", brief("No.", vec![Fact::Diagnostics]), vec![(Guard::Always, at)]));
    leaves.push(leaf("splice", Act::Splice, Vec::new()));
    let mut node = step("(plan)", "none", json!({})).node();
    (node.body.leaves, node.body.tail) = (leaves.into_iter().collect(), None);
    (node.tool, node.recovery, node.on_error) = (None, None, OnError::Fail);
    node
}

/// A graph of these nodes. Tools are named after their effects; those with a name that begins with `x` declare that
/// they give `x`, `strict` takes an integer `n` only.
pub(crate) fn graph_of(nodes: Vec<Node>) -> Arc<Graph> {
    let def = |name: &str| {
        let effects = match name.trim_start_matches('x') {
            "pure" | "strict" | "selvedge__compile" => Effects::Pure,
            "read" => Effects::Read,
            "idempotent" => Effects::Idempotent,
            _ => Effects::Write,
        };
        let schema = match name {
            "strict" => json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            _ => json!({}),
        };
        let def = ToolDef {
            name: name.into(),
            description: format!("does {name}").into(),
            input_schema: schema,
            output_params: name.starts_with('x').then(|| vec!["x".into()]),
            effects: Some(effects),
            version: format!("1 of {name}").into(),
            source: "test".into(),
            timeout_s: None,
            approval: false,
        };
        (Arc::from(name), Arc::new(def))
    };
    let names =
        ["pure", "read", "idempotent", "write", "xpure", "xread", "xwrite", "strict", "selvedge__compile"];
    Arc::new(Graph {
        nodes: nodes.into_iter().collect(),
        tools: names.into_iter().map(def).collect(),
        tails: tails().into_iter().collect(),
        ..Graph::default()
    })
}

pub(crate) fn graph(steps: &[Step]) -> Arc<Graph> {
    graph_of(steps.iter().map(Step::node).collect())
}

/// What the world does about a call: a function of the call alone, whenever and however often it is made.
pub(crate) type World = fn(&Asked) -> Outcome;

/// A request, as a world sees it.
pub(crate) struct Asked {
    pub(crate) node: String,
    /// The tool, or the name of the schema.
    pub(crate) what: String,
    pub(crate) args: Value,
    /// Of a model: the text of the last message.
    pub(crate) said: String,
    /// Which attempt of its leaf, and which visit of the leaf.
    pub(crate) attempt: u32,
    pub(crate) visit: u32,
}

pub(crate) fn gives(value: Value) -> Outcome {
    Outcome::Output(Arc::new(value))
}
pub(crate) fn says(value: &Value) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: value.to_string(), ..ModelReply::default() }))
}
pub(crate) fn speaks(text: &str) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), ..ModelReply::default() }))
}
/// A reply that calls a tool and says nothing.
pub(crate) fn calls(tool: &str) -> Outcome {
    let call = ToolCall { id: "c1".into(), name: tool.into(), arguments: json!({}) };
    Outcome::Reply(Arc::new(ModelReply { calls: vec![call], ..ModelReply::default() }))
}
pub(crate) fn fails(message: &str) -> Outcome {
    Outcome::Failed(Failure::permanent(FaultKind::ExecutionFailure, message))
}
pub(crate) fn times_out() -> Outcome {
    Outcome::Failed(Failure::transient(FaultKind::Timeout, "too slow"))
}

/// A compiler of steps `{"id", "tool", "args"?, "after"?, "model"?, "shares"?}`; an unknown tool is refused.
fn compiled(args: &Value) -> Value {
    let mut nodes = Vec::new();
    for row in args["steps"].as_array().unwrap() {
        if row["tool"] == "unknown" {
            return json!({"diagnostics": [{"message": "there is no tool `unknown`"}]});
        }
        let mut built = step(row["id"].as_str().unwrap(), row["tool"].as_str().unwrap(), row["args"].clone());
        if row["args"].is_null() {
            built.args = json!({});
        }
        built.rules.model = row["model"] == true;
        built.after =
            row["after"].as_array().into_iter().flatten().map(|id| id.as_str().unwrap().into()).collect();
        let mut node = built.node();
        // In another order than the graph's: places are those of this output.
        node.body.tail = node.body.tail.map(|tail| TailIx(1 - tail.0));
        if let Some(place) = row["shares"].as_u64() {
            node.body.tail = Some(TailIx(u32::try_from(place).unwrap()));
        }
        nodes.push(serde_json::to_value(node).unwrap());
    }
    let [without, with] = tails();
    json!({"nodes": nodes, "tools": {}, "tails": [with, without]})
}

/// A run, with its journal.
pub(crate) struct Run {
    pub(crate) first: Arc<Graph>,
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
    pub(crate) world: World,
    /// Which of several pending effects is answered next.
    pub(crate) last_first: bool,
}

impl Run {
    /// Begins a run and goes on until it ends or waits for a person.
    pub(crate) fn of(graph: &Arc<Graph>, world: World) -> Self {
        Self::ordered(graph, world, false)
    }

    pub(crate) fn ordered(graph: &Arc<Graph>, world: World, last_first: bool) -> Self {
        let state = State::new(Arc::clone(graph));
        let mut run = Self { first: Arc::clone(graph), state, events: Vec::new(), world, last_first };
        run.give(Input::Start(Box::default()));
        run.go_on();
        run
    }

    pub(crate) fn give(&mut self, input: Input) {
        let mut next = self.state.accept(input);
        assert!(next.is_some(), "an input that changes something");
        while let Some(event) = next {
            self.state.apply(&event);
            self.events.push(event);
            assert!(self.events.len() < 5000, "it never ends: {:?}", &self.events[self.events.len() - 10..]);
            next = self.state.step();
        }
    }

    /// Answers everything until the run ends or waits.
    pub(crate) fn go_on(&mut self) {
        while let Some(effect) = self.next_effect() {
            let asked = self.asked(&effect);
            let outcome = match asked.what.as_str() {
                "selvedge__compile" => gives(compiled(&asked.args)),
                _ => (self.world)(&asked),
            };
            self.give(Input::Complete(effect, outcome, 0));
        }
    }

    fn next_effect(&self) -> Option<selvedge_engine::EffectId> {
        let mut pending = self.state.pending().keys();
        if self.last_first { pending.next_back() } else { pending.next() }.cloned()
    }

    fn asked(&self, effect: &selvedge_engine::EffectId) -> Asked {
        let parts: Vec<&str> = effect.0.split('/').collect();
        let (visit, attempt) = (parts[2].parse().unwrap(), parts[3].parse().unwrap());
        match self.state.request(effect).unwrap() {
            Request::Model(request) => Asked {
                node: request.node.to_string(),
                what: request.schema.as_ref().map(|schema| schema.name.to_string()).unwrap_or_default(),
                args: Value::Null,
                said: request.messages.last().map(|message| message.content.to_string()).unwrap_or_default(),
                attempt,
                visit,
            },
            Request::Tool(request) => Asked {
                node: request.node.to_string(),
                what: request.tool.name.to_string(),
                args: request.args,
                said: String::new(),
                attempt,
                visit,
            },
        }
    }

    pub(crate) fn resume(&mut self) {
        self.give(Input::Resume(Vec::new()));
        self.go_on();
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.state.status()
    }

    pub(crate) fn row(&self, id: &str) -> Option<StepResult> {
        self.state.view().results.into_iter().find(|row| &*row.step_id == id)
    }

    /// Ids, whether they succeeded, and attempts.
    pub(crate) fn rows(&self) -> Vec<(String, bool, u32)> {
        let rows = self.state.view().results.into_iter();
        rows.map(|row| (row.step_id.to_string(), row.is_success, row.attempts)).collect()
    }

    pub(crate) fn output(&self, id: &str) -> Value {
        self.row(id).unwrap_or_else(|| panic!("no result of {id}")).output
    }

    /// Effects that were sent.
    pub(crate) fn sent(&self, from: usize) -> Vec<String> {
        let sent = self.events.iter().skip(from).filter_map(|event| match event {
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => Some(effect.to_string()),
            _ => None,
        });
        sent.collect()
    }

    /// Actions, who chose them, and tools.
    pub(crate) fn ladder(&self) -> Vec<(String, &'static str, String)> {
        let rows = self.events.iter().filter_map(|event| match event {
            Event::Recovered { node, action, by, tool, .. } => {
                let by = serde_json::to_value(by).unwrap().as_str().unwrap().to_owned();
                let tool = tool.as_deref().unwrap_or_default();
                Some((node.to_string(), action.name(), format!("{by} {tool}").trim_end().to_owned()))
            }
            _ => None,
        });
        rows.collect()
    }

    pub(crate) fn fault(&self) -> selvedge_engine::Fault {
        self.state.view().fault.expect("the run failed")
    }

    pub(crate) fn place(&self, find: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().position(find).expect("such an event")
    }

    /// The texts of the messages that were written for models.
    pub(crate) fn briefs(&self) -> Vec<String> {
        let rows = self.events.iter().filter_map(|event| match event {
            Event::Appended { body: selvedge_engine::Body::Text(_, text), .. } => Some(text.to_string()),
            _ => None,
        });
        rows.collect()
    }

    pub(crate) fn past(&self) -> Arc<Past> {
        let mut state = State::recording(Arc::clone(&self.first));
        for event in &self.events {
            state.apply_record(&Record { at: 0, event: event.clone() });
        }
        Arc::new(state.past())
    }

    /// What can be seen of the end.
    pub(crate) fn seen(&self) -> String {
        seen(&self.state)
    }
}

pub(crate) fn seen(state: &State) -> String {
    let view = state.view();
    format!("{:?} {:?} {:#?} {:#?} {:?}", view.status, view.fault, view.results, view.runtime, view.threads)
}
