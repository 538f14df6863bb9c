//! The drawing of a workflow: nodes, the ways between them, and a lane for each path, loop and inner document (E-34).

use super::shapes::{Arrow, Drawing, Kind, LABEL, Lane, Shape, Why, node_id, shape};
use crate::inspect::page::cut;
use selvedge_engine::expression::Condition;
use selvedge_engine::graph::{Act, Control, Node, PathsOf, Times, When};
use selvedge_engine::{Graph, GraphIx, Ix, NodeIx};

impl Drawing {
    /// Draws a graph whose nodes follow ways.
    pub(super) fn of_flow(graph: &Graph) -> Self {
        let name = graph.name.as_ref().map(ToString::to_string);
        let mut pen = Pen { graph, drawing: Drawing { name, ..Drawing::default() } };
        let (shapes, _) = pen.graph(graph, "");
        pen.drawing.loose = shapes;
        pen.drawing
    }
}

struct Pen<'g> {
    graph: &'g Graph,
    drawing: Drawing,
}

/// A frame that a node opens.
struct Opened {
    graph: GraphIx,
    /// What its lane is called.
    lane: String,
    /// What the arrow into it says.
    label: String,
}

impl Pen<'_> {
    fn arrow(&mut self, from: &str, to: &str, why: Why, label: &str) {
        let (from, to, label) = (from.to_owned(), to.to_owned(), cut(label, LABEL));
        self.drawing.arrows.push(Arrow { from, to, why, label });
    }

    /// The boxes of a graph, and those of them in which it ends.
    fn graph(&mut self, graph: &Graph, prefix: &str) -> (Vec<Shape>, Vec<String>) {
        let (mut shapes, mut ends) = (Vec::new(), Vec::new());
        let flows = graph.control == Control::Flow;
        for (ix, node) in graph.nodes.iter() {
            let id = format!("{prefix}{}", node_id(ix));
            shapes.push(Shape { id: id.clone(), ..shape(ix, node) });
            let last = self.opened(node, &id, &mut shapes);
            if !flows {
                let next = NodeIx::new(ix.get() + 1);
                match graph.nodes.get(next) {
                    Some(_) => self.arrow(&last, &format!("{prefix}{}", node_id(next)), Why::Takes, ""),
                    None => ends.push(last),
                }
                continue;
            }
            for way in &node.ways {
                let to = format!("{prefix}{}", node_id(way.to));
                match &way.when {
                    When::Done => self.arrow(&last, &to, Why::Takes, ""),
                    When::Fault => self.arrow(&last, &to, Why::Fails, "error"),
                    When::Holds(condition) => self.arrow(&last, &to, Why::Takes, &words(condition)),
                }
            }
            if node.ways.iter().all(|way| way.when == When::Fault) {
                ends.push(last);
            }
        }
        (shapes, ends)
    }

    /// The lanes of what a node opens; the box that what comes after it begins at.
    fn opened(&mut self, node: &Node, id: &str, shapes: &mut Vec<Shape>) -> String {
        let opened: Vec<Opened> = node.body.leaves.values().flat_map(|leaf| opens(node, &leaf.act)).collect();
        if opened.is_empty() {
            return id.to_owned();
        }
        let last = match &node.end {
            Some(end) => {
                let last = format!("{id}e");
                shapes.push(Shape { id: last.clone(), kind: Kind::Move, lines: vec![cut(end, LABEL)] });
                last
            }
            None => id.to_owned(),
        };
        for (at, inner) in opened.iter().enumerate() {
            let Some(graph) = self.graph.graphs.get(inner.graph) else { continue };
            let prefix = format!("{id}p{at}_");
            let (boxes, ends) = self.graph(graph, &prefix);
            if let Some(first) = boxes.first() {
                self.arrow(id, &first.id, Why::Takes, &inner.label);
            }
            for end in ends {
                self.arrow(&end, &last, Why::Sent, "");
            }
            self.drawing.lanes.push(Lane { name: cut(&inner.lane, LABEL), shapes: boxes });
        }
        last
    }
}

fn opens(node: &Node, act: &Act) -> Vec<Opened> {
    let id = &node.id;
    match act {
        Act::Fork(paths) => match &paths.of {
            PathsOf::Listed(paths) => {
                let path = |(path, graph): &(std::sync::Arc<str>, GraphIx)| Opened {
                    graph: *graph,
                    lane: format!("{id}[{path}]"),
                    label: path.to_string(),
                };
                paths.iter().map(path).collect()
            }
            PathsOf::Each { graph, item, .. } => {
                vec![Opened { graph: *graph, lane: format!("{id}[…]"), label: format!("each {item}") }]
            }
        },
        Act::Loop(times) => {
            let label = match &times.times {
                Times::Over(_, item) => format!("each {item}"),
                Times::Count(count) => format!("{} times", count.source()),
                Times::While(condition) => format!("while {}", words(condition)),
                Times::Aside => return Vec::new(),
            };
            vec![Opened { graph: times.graph, lane: format!("{id}#…"), label }]
        }
        Act::Sub(sub) => vec![Opened { graph: sub.graph, lane: id.to_string(), label: "runs".to_owned() }],
        _ => Vec::new(),
    }
}

fn words(condition: &Condition) -> String {
    match condition {
        Condition::Expression(expression) => expression.source().to_owned(),
        Condition::Template(template) => template.source().to_string(),
    }
}
