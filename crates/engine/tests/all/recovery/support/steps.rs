//! Graphs of steps by hand, and a compiler of steps.

use selvedge_engine::graph::{
    Act, Action, Alternative, Call, Edge, Fact, Flow, Guard, Infer, Leaf, Node, OnError, Recovery, Retry,
    Tail, Told,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{Effects, Graph, LeafIx, ReplySchema, TailIx, ToolDef};
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
        let retry = Retry { max: self.retry, ..Retry::default() };
        let args = JsonTemplate::parse(&self.args).unwrap();
        let call = Act::Call(Call {
            tool: self.tool.as_str().into(),
            args,
            retry,
            timeout_s: None,
            told: Told::Nothing,
        });
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
            on_missing: self.on_missing,
            tool: Some(self.tool.as_str().into()),
            after: self.after.iter().map(|id| Arc::from(id.as_str())).collect(),
            recovery: Some(Arc::new(rules)),
            ..Node::default()
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
    Act::Infer(Box::new(Infer { schema: Some(schema), judged, ..Infer::default() }))
}

fn brief(text: &str, facts: Vec<Fact>) -> Act {
    Act::AppendFacts { text: Template::parse(text).unwrap(), facts }
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
        leaf("turn", Act::AwaitRetirement, vec![(Guard::Exhausted, DECIDE), (Guard::Always, entry)]),
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
        leaf("try", Act::Retry, vec![(Guard::Fault, TURN)]),
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
            output_params: name.starts_with('x').then(|| ["x"].into()),
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

/// A compiler of steps `{"id", "tool", "args"?, "after"?, "model"?, "replans"?, "shares"?, "spins"?}`; an unknown tool is
/// refused.
pub(super) fn compiled(args: &Value) -> Value {
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
        if let Some(replans) = row["replans"].as_u64() {
            built.rules.replans = u32::try_from(replans).unwrap();
        }
        built.after =
            row["after"].as_array().into_iter().flatten().map(|id| id.as_str().unwrap().into()).collect();
        let mut node = built.node();
        // In another order than the graph's: places are those of this output.
        node.body.tail = node.body.tail.map(|tail| TailIx(1 - tail.0));
        if let Some(place) = row["shares"].as_u64() {
            node.body.tail = Some(TailIx(u32::try_from(place).unwrap()));
        }
        if row["spins"] == true {
            node.body.leaves =
                [leaf("turn", Act::AwaitRetirement, vec![(Guard::Always, 0)])].into_iter().collect();
        }
        nodes.push(serde_json::to_value(node).unwrap());
    }
    let [without, with] = tails();
    json!({"nodes": nodes, "tools": {}, "tails": [with, without]})
}
