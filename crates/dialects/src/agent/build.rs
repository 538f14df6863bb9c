//! How flows are put together whose nodes know each other by name.

use crate::leaves::{self, OUT};
use selvedge_engine::expression::{Condition, Expression};
use selvedge_engine::graph::{
    Act, Call, Control, Draft, Flow, Infer, Join, Loop, Node, Paths, PathsOf, Retry, Strategy, ThreadDef,
    Times, Told, Way, When,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{Graph, GraphIx, Ix, NodeIx, ReplySchema, Table, ThreadIx, ToolDef};
use serde_json::{Value, json};
use std::sync::Arc;

/// A node, and where it leads.
pub(crate) struct Step {
    node: Node,
    ways: Vec<(On, &'static str)>,
}

/// When a way is taken.
pub(crate) enum On {
    Done,
    Fault,
    /// An expression holds.
    If(String),
}

/// Where a way leads that ends the flow.
pub(crate) const END: &str = "end";

/// The nodes that people are told of, and what they do. The others have no name: progress says nothing of them, unless they fail.
const TOLD: [(&str, &str); 20] = [
    ("rounds", "of the work"),
    ("manager", "decides which tools are needed"),
    ("build", "builds tools"),
    ("write", "has a coder write"),
    ("draft", "checks the file"),
    ("executor", "works on the task"),
    ("class", "tells what became of a call"),
    ("mend", "mends tools"),
    ("replay", "repeats recorded calls"),
    ("equivalence", "compares two outputs"),
    ("findings", "writes down what was found"),
    ("judge", "tells whether that will do"),
    ("failure_report", "tells what failed"),
    ("summary", "sums up a long output"),
    ("compact", "sums up"),
    ("integrate", "gives the answer"),
    ("optimise", "makes the tools of a batch part of the library"),
    ("group", "says which tools do the same"),
    ("merge", "makes one tool of several"),
    ("publish", "publishes tools"),
];

/// A node with these leaves, on a thread of the flow.
pub(crate) fn step(
    id: &str,
    thread: Option<usize>,
    drafts: Vec<Draft>,
    ways: Vec<(On, &'static str)>,
) -> Step {
    let body =
        Flow { thread: thread.map(ThreadIx::new), leaves: leaves::table(drafts, OUT), ..Flow::default() };
    let node = Node {
        id: id.into(),
        name: TOLD.iter().find(|(told, _)| *told == id).map_or("", |(_, name)| name).into(),
        body,
        on_missing: OnMissing::Fault,
        ..Node::default()
    };
    Step { node, ways }
}

impl Step {
    pub(crate) fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// A flow of these nodes; what leads to [`END`] leads to a last node, which says nothing.
pub(crate) fn flow(threads: &[&str], steps: Vec<Step>) -> Option<Graph> {
    let mut graph = Graph { control: Control::Flow, ..Graph::default() };
    for name in threads {
        graph.threads.push(ThreadDef { name: (*name).into(), first: None });
    }
    let names: Vec<Arc<str>> = steps.iter().map(|step| step.node.id.clone()).collect();
    let last = NodeIx::new(names.len());
    let find = |name: &str| match names.iter().position(|known| **known == *name) {
        Some(at) => Some(NodeIx::new(at)),
        None => (name == END).then_some(last),
    };
    for Step { mut node, ways } in steps {
        for (on, to) in ways {
            let when = match on {
                On::Done => When::Done,
                On::Fault => When::Fault,
                On::If(text) => When::Holds(Condition::Expression(Expression::parse(&text).ok()?)),
            };
            node.ways.push(Way { when, to: find(to)? });
        }
        graph.nodes.push(node);
    }
    let end = Node { id: END.into(), ..Node::default() };
    graph.nodes.push(end);
    Some(graph)
}

/// A way taken where an expression holds.
pub(crate) fn when(text: &str, to: &'static str) -> (On, &'static str) {
    (On::If(text.to_owned()), to)
}

pub(crate) fn done(to: &'static str) -> (On, &'static str) {
    (On::Done, to)
}

pub(crate) fn fault(to: &'static str) -> (On, &'static str) {
    (On::Fault, to)
}

/// A leaf that goes on at the next one.
pub(crate) fn leaf(name: &'static str, act: Act) -> Draft {
    (name, act, Vec::new())
}

/// Sets a variable to a value with placeholders.
pub(crate) fn set(name: &'static str, value: Value) -> Option<Draft> {
    Some(leaf(name, Act::Set(name.into(), JsonTemplate::from_value(value).ok()?)))
}

/// Sets a variable to what an expression comes to.
pub(crate) fn compute(name: &'static str, expression: &str) -> Option<Draft> {
    Some(leaf(name, Act::Compute(name.into(), Expression::parse(expression).ok()?)))
}

/// Gives a node its result.
pub(crate) fn give(value: Value) -> Option<Draft> {
    Some(leaf("give", Act::Give(JsonTemplate::from_value(value).ok()?)))
}

/// Calls an operation of these with these arguments.
pub(crate) fn call(operation: &Arc<ToolDef>, args: Value) -> Option<Draft> {
    call_told(operation, args, Told::Nothing)
}

/// The same with what it is told of the rounds between which it works.
pub(super) fn call_told(operation: &Arc<ToolDef>, args: Value, told: Told) -> Option<Draft> {
    let args = JsonTemplate::from_value(args).ok()?;
    let call = Call { tool: operation.name.clone(), args, retry: Retry::default(), timeout_s: None, told };
    Some(leaf("call", Act::Call(call)))
}

/// Tells the user something.
pub(crate) fn warn(code: &'static str, text: &str) -> Option<Draft> {
    Some(leaf("warn", Act::Warn(code.into(), Template::parse(text).ok()?)))
}

/// Asks a model with a prompt, for an answer of this shape.
pub(crate) fn ask(prompt: &str, role: &str, schema: Option<ReplySchema>) -> Option<[Draft; 2]> {
    let infer = Infer { model: Some(role.into()), only_words: true, schema, ..Infer::default() };
    Some([
        leaf("prompt", Act::AppendText(Template::parse(prompt).ok()?)),
        leaf("model", Act::Infer(Box::new(infer))),
    ])
}

/// A path for each element of a list, all at once, each of which has to complete.
pub(crate) fn each(over: &str, item: &str, graph: GraphIx) -> Option<Draft> {
    let over = JsonTemplate::from_value(json!(over)).ok()?;
    let of = PathsOf::Each { over, item: item.into(), graph };
    let join = Join { strategy: Strategy::AllCompleted, timeout_s: None, main: None, exports: Vec::new() };
    Some(leaf("paths", Act::Fork(Box::new(Paths { of, serial: false, join }))))
}

/// Goes round as long as an expression holds, so often at most.
pub(crate) fn while_holds(condition: &str, limit: u32, graph: GraphIx) -> Option<Draft> {
    let times = Times::While(Condition::Expression(Expression::parse(condition).ok()?));
    Some(leaf("loop", Act::Loop(Box::new(Loop { graph, times, limit, timeout_s: None, until: None }))))
}

/// Goes round once for each element of a list.
pub(crate) fn for_each(over: &str, item: &str, limit: u32, graph: GraphIx) -> Option<Draft> {
    let times = Times::Over(JsonTemplate::from_value(json!(over)).ok()?, item.into());
    Some(leaf("loop", Act::Loop(Box::new(Loop { graph, times, limit, timeout_s: None, until: None }))))
}

/// Keeps in a variable what went wrong at the first of these nodes that failed, then does the rest.
pub(crate) fn why(
    id: &str,
    variable: &'static str,
    nodes: &[&str],
    rest: Vec<Draft>,
    ways: Vec<(On, &'static str)>,
) -> Option<Step> {
    let all: Vec<String> = nodes.iter().map(|node| format!("{{{{{node}.error.message}}}}")).collect();
    let mut drafts = vec![
        leaf("all", Act::Set(variable.into(), JsonTemplate::from_value(json!(all)).ok()?)),
        leaf(
            "first",
            Act::Compute(
                variable.into(),
                Expression::parse(&format!("{variable}.filter(one, one != null)[0]")).ok()?,
            ),
        ),
    ];
    drafts.extend(rest);
    let mut step = step(id, None, drafts, ways);
    // What did not fail has said nothing.
    step.node.on_missing = OnMissing::Null;
    Some(step)
}

/// Inner graphs, as they are made.
pub(crate) type Graphs = Table<GraphIx, Arc<Graph>>;
