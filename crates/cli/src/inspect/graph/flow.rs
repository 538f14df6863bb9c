//! The drawing of a workflow: nodes, the ways between them, and a lane for each path, loop and inner document (E-34). Lanes lie in
//! each other as what they stand for does.

use super::drawing::MEET;
use super::shapes::{Address, Arrow, Drawing, EACH, Kind, LABEL, Lane, Shape, Why, node_id, shape};
use crate::inspect::page::cut;
use selvedge_engine::expression::Condition;
use selvedge_engine::graph::{Act, Control, Edit, Join, Node, PathsOf, Strategy, Times, When};
use selvedge_engine::schedule::Schedule;
use selvedge_engine::{AskKind, Graph, GraphIx, Ix, NodeIx, ThreadIx};
use selvedge_host::explain::waits;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Drawing {
    /// Draws a graph whose nodes follow ways.
    pub(super) fn of_flow(graph: &Graph) -> Self {
        let name = graph.name.as_ref().map(ToString::to_string);
        let mut pen = Pen { graph, drawing: Drawing { name, ..Drawing::default() }, dots: 0 };
        let drawn = pen.graph(graph, &Within { whole: true, ..Within::default() });
        pen.drawing.loose.extend(drawn.shapes);
        pen.drawing.lanes = drawn.lanes;
        pen.drawing
    }
}

struct Pen<'g> {
    graph: &'g Graph,
    drawing: Drawing,
    dots: usize,
}

/// What a graph is drawn in.
#[derive(Default)]
struct Within {
    /// What the ids of its boxes begin with.
    prefix: String,
    address: Address,
    /// Whether it is a document, with a START of its own, and no path or loop.
    whole: bool,
    /// The node that ends it, and that one's box.
    stop: Option<(Arc<str>, String)>,
}

/// What a graph looks like.
#[derive(Default)]
struct Drawn {
    shapes: Vec<Shape>,
    lanes: Vec<Lane>,
    /// The boxes in which it begins.
    starts: Vec<String>,
    /// The boxes in which it ends.
    ends: Vec<String>,
}

/// A frame that a node opens.
struct Opened {
    graph: GraphIx,
    /// What its lane is called.
    lane: String,
    /// Which of the node's frames it is.
    which: Arc<str>,
}

/// The boxes of one node: where what follows a success begins, and what follows a fault.
struct Exits {
    done: String,
    fault: String,
}

impl Pen<'_> {
    fn arrow(&mut self, from: &str, to: &str, why: Why, label: &str) {
        let (from, to, label) = (from.to_owned(), to.to_owned(), cut(label, LABEL));
        self.drawing.arrows.push(Arrow { from, to, why, label });
    }

    fn graph(&mut self, graph: &Graph, within: &Within) -> Drawn {
        let mut drawn = Drawn::default();
        let flows = graph.control == Control::Flow;
        let mut done = Vec::new();
        for (ix, node) in graph.nodes.iter() {
            if within.stops_at(node).is_some() {
                continue;
            }
            let id = format!("{}{}", within.prefix, node_id(ix));
            if !within.address.is_empty() {
                let address = within.address.iter().chain([&node.id]).cloned().collect();
                self.drawing.inner.insert(address, id.clone());
            }
            let box_ = match flows {
                true => self.flow_shape((graph, ix), node, within.whole),
                false => shape(ix, node),
            };
            drawn.shapes.push(Shape { id: id.clone(), ..box_ });
            let exits = self.opened(node, &id, within, &mut drawn);
            match flows {
                true => self.ways(graph, node, &exits, within, &mut drawn.ends),
                false => done.push(exits.done),
            }
        }
        match flows {
            true => drawn.starts.extend(drawn.shapes.first().map(|first| first.id.clone())),
            false => self.waits(graph, &within.prefix, &done, &mut drawn),
        }
        drawn
    }

    /// The arrows of a document whose order follows from what its nodes observe; `done`: where each of them ends.
    fn waits(&mut self, graph: &Graph, prefix: &str, done: &[String], drawn: &mut Drawn) {
        let all = waits::all(graph, &Schedule::derive(graph, false), |_| None);
        // More arrows than anybody could follow: then one after the other, as they retire.
        let many = all.iter().map(Vec::len).sum::<usize>() > MEET * all.len();
        let mut last: BTreeSet<usize> = (0..done.len()).collect();
        for (at, waited) in all.iter().enumerate() {
            let to = format!("{prefix}{}", node_id(NodeIx::new(at)));
            let waited: Vec<usize> = match many {
                true => at.checked_sub(1).into_iter().collect(),
                false => waited.iter().map(|waited| waited.node.get()).collect(),
            };
            for from in &waited {
                last.remove(from);
                if let Some(from) = done.get(*from) {
                    self.arrow(from, &to, Why::Takes, "");
                }
            }
            if waited.is_empty() {
                drawn.starts.push(to);
            }
        }
        drawn.ends.extend(last.into_iter().filter_map(|at| done.get(at).cloned()));
    }

    /// The arrows of the ways on from a node; `ends` gets it if it may be the last.
    fn ways(&mut self, graph: &Graph, node: &Node, exits: &Exits, within: &Within, ends: &mut Vec<String>) {
        let chosen = node.ways.iter().any(|way| matches!(way.when, When::Holds(_)));
        for way in &node.ways {
            let stop = graph.nodes.get(way.to).and_then(|to| within.stops_at(to));
            let why = if stop.is_some() { Why::Sent } else { Why::Takes };
            let to = stop.map_or_else(|| format!("{}{}", within.prefix, node_id(way.to)), str::to_owned);
            match &way.when {
                When::Done => self.arrow(&exits.done, &to, why, if chosen { "else" } else { "" }),
                When::Fault => self.arrow(&exits.fault, &to, Why::Fails, "error"),
                When::Holds(condition) => self.arrow(&exits.done, &to, why, &words(condition)),
            }
        }
        if node.ways.iter().all(|way| way.when == When::Fault) {
            ends.push(exits.done.clone());
        }
    }

    /// The lanes of what a node opens, and where what comes after it begins.
    fn opened(&mut self, node: &Node, id: &str, within: &Within, drawn: &mut Drawn) -> Exits {
        let opened: Vec<Opened> = node.body.leaves.values().flat_map(|leaf| opens(node, &leaf.act)).collect();
        let stop = node.end.as_ref().map(|end| (end.clone(), format!("{id}e")));
        if let Some((_, last)) = &stop {
            self.drawing.ends.insert(last.clone(), id.to_owned());
            drawn.shapes.push(Shape { id: last.clone(), ..end_shape(node) });
        }
        let mut ends = Vec::new();
        for (at, inner) in opened.into_iter().enumerate() {
            let Some(graph) = self.graph.graphs.get(inner.graph) else { continue };
            let (prefix, whole) = (format!("{id}p{at}_"), stop.is_none());
            let address = within.address.iter().cloned().chain([node.id.clone(), inner.which]).collect();
            let within = Within { prefix, address, whole, stop: stop.clone() };
            let Drawn { shapes, lanes, starts, ends: inner_ends } = self.graph(graph, &within);
            for start in &starts {
                self.arrow(id, start, Why::Takes, "");
            }
            if let Some((_, last)) = stop.as_ref().filter(|_| starts.is_empty()) {
                // A loop may have nothing in it.
                self.arrow(id, last, Why::Takes, "");
            }
            ends.extend(inner_ends);
            // An empty one would be a box like any other.
            if !shapes.is_empty() {
                drawn.lanes.push(Lane { name: cut(&inner.lane, LABEL), shapes, lanes });
            }
        }
        match stop {
            Some((_, last)) => {
                for end in ends {
                    self.arrow(&end, &last, Why::Sent, "");
                }
                if node.body.leaves.values().any(|leaf| matches!(leaf.act, Act::Loop(_))) {
                    self.arrow(&last, id, Why::Takes, "again");
                }
                Exits { done: last.clone(), fault: last }
            }
            None => Exits { done: self.meet(ends, id, drawn), fault: id.to_owned() },
        }
    }

    /// The box of a node, with what it does in a word or two.
    fn flow_shape(&self, (graph, ix): (&Graph, NodeIx), node: &Node, whole: bool) -> Shape {
        let acts = || node.body.leaves.values().map(|leaf| &leaf.act);
        let thread = node.body.thread.and_then(|thread: ThreadIx| graph.threads.get(thread));
        let thread = thread.map(|thread| &*thread.name).unwrap_or_default();
        let does = acts().find_map(|act| match act {
            Act::Ask(AskKind::Approve, ..) => Some((Kind::Person, "a person approves".to_owned())),
            Act::Ask(AskKind::Answer, ..) => Some((Kind::Person, "a person answers".to_owned())),
            Act::Ask(AskKind::Edit, ..) => Some((Kind::Person, "a person edits".to_owned())),
            Act::Fork(paths) => {
                Some((Kind::Fork, if paths.serial { "serial" } else { "parallel" }.to_owned()))
            }
            Act::Loop(_) => Some((Kind::Loop, String::new())),
            Act::Set(name, value) => Some((Kind::Move, format!("{name} = {}", plain(value.source())))),
            Act::Compute(name, value) => Some((Kind::Move, format!("{name} = {}", value.source()))),
            Act::Recall(name) => Some((Kind::Move, format!("{name} = what was said on {thread}"))),
            Act::Sub(sub) => Some((Kind::Move, self.document(sub.graph))),
            Act::Edit(Edit::Compact { .. }) => Some((Kind::Model, format!("sums up {thread}"))),
            Act::Edit(edit) => Some((Kind::Move, format!("{} {thread}", cuts(edit)))),
            _ => None,
        });
        let ended = node.ways.is_empty();
        let (kind, words) = match does {
            Some((kind, words)) => (kind, Some(words)),
            None if whole && ix.get() == 0 => (Kind::Start, None),
            None if whole && ended && acts().all(|act| matches!(act, Act::Give(_))) => (Kind::End, None),
            None if acts().next().is_none() => (Kind::Choice, None),
            None => return shape(ix, node),
        };
        let mut lines = shape(ix, &Node { body: Default::default(), ..node.clone() }).lines;
        lines.extend(words.filter(|words| !words.is_empty()).map(|words| cut(&words, LABEL)));
        Shape { id: String::new(), kind, lines }
    }

    /// What a node's inner document is: `a plan`, and its name if it has one.
    fn document(&self, graph: GraphIx) -> String {
        let graph = self.graph.graphs.get(graph);
        let kind = match graph.map(|graph| graph.control) {
            Some(Control::Flow) => "a workflow",
            _ => "a plan",
        };
        let name = graph.and_then(|graph| graph.name.as_ref());
        name.map_or_else(|| kind.to_owned(), |name| format!("{kind}: {name}"))
    }

    /// One box for what follows several ends of a document: the only one of them, or a dot where they meet.
    fn meet(&mut self, mut ends: Vec<String>, id: &str, drawn: &mut Drawn) -> String {
        if ends.len() < 2 {
            return ends.pop().unwrap_or_else(|| id.to_owned());
        }
        self.dots += 1;
        let dot = format!("d{}", self.dots);
        drawn.shapes.push(Shape { id: dot.clone(), kind: Kind::Dot, lines: Vec::new() });
        for end in ends {
            self.arrow(&end, &dot, Why::Takes, "");
        }
        dot
    }
}

impl Within {
    /// The box of the node that ends it, if it is this one.
    fn stops_at(&self, node: &Node) -> Option<&str> {
        let (id, at) = self.stop.as_ref()?;
        (node.passes && node.id == *id && node.body.leaves.is_empty()).then_some(at)
    }
}

/// What an edit does to a thread, whose name follows.
fn cuts(edit: &Edit) -> String {
    match edit {
        Edit::Clear => "clears".to_owned(),
        Edit::Trim { keep } | Edit::Compact { keep, .. } => format!("keeps the last {keep} of"),
        Edit::Filter { .. } => "keeps some roles of".to_owned(),
        Edit::RollBack | Edit::Drop(_) => "takes back what failed on".to_owned(),
        Edit::Shorten(_) => "shortens results on".to_owned(),
    }
}

/// The box where a fork is joined, or a loop ends.
fn end_shape(node: &Node) -> Shape {
    let mut lines: Vec<String> = node.end.iter().chain(&node.end_name).map(|line| cut(line, LABEL)).collect();
    let join = node.body.leaves.values().find_map(|leaf| match &leaf.act {
        Act::Fork(paths) => Some(&paths.join),
        _ => None,
    });
    lines.extend(join.into_iter().flat_map(join_words).map(|line| cut(&line, LABEL)));
    let kind = if join.is_some() { Kind::Join } else { Kind::Loop };
    Shape { id: String::new(), kind, lines }
}

fn join_words(join: &Join) -> Vec<String> {
    let name = join.strategy.name();
    let count = match join.strategy {
        Strategy::Count(count) => Some(format!("at least {count}")),
        _ => None,
    };
    let main = join.main.as_ref().map(|main| format!("main path {main}"));
    [name.to_owned()].into_iter().chain(count).chain(main).collect()
}

fn opens(node: &Node, act: &Act) -> Vec<Opened> {
    match act {
        Act::Fork(paths) => match &paths.of {
            PathsOf::Listed(paths) => {
                let path = |(path, graph): &(Arc<str>, GraphIx)| Opened {
                    graph: *graph,
                    lane: format!("path {path}"),
                    which: path.clone(),
                };
                paths.iter().map(path).collect()
            }
            PathsOf::Each { graph, item, over } => {
                let lane = format!("each {item} of {}", plain(over.source()));
                vec![Opened { graph: *graph, lane, which: EACH.into() }]
            }
        },
        Act::Loop(times) => {
            let lane = match &times.times {
                Times::Over(list, item) => format!("each {item} of {}", plain(list.source())),
                Times::Count(count) => format!("{} times", plain(count.source())),
                Times::While(condition) => format!("while {}", words(condition)),
                Times::Aside { .. } => return Vec::new(),
            };
            let until = times.until.as_ref().map(|until| format!(", until {}", words(until)));
            let lane = lane + &until.unwrap_or_default();
            vec![Opened { graph: times.graph, lane, which: EACH.into() }]
        }
        Act::Sub(sub) => {
            vec![Opened { graph: sub.graph, lane: node.id.to_string(), which: EACH.into() }]
        }
        _ => Vec::new(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn words(condition: &Condition) -> String {
    match condition {
        Condition::Expression(expression) => expression.source().to_owned(),
        Condition::Template(template) => plain(template.source()),
    }
}
