//! What is drawn, whatever the language: lanes, boxes and arrows. Its size is linear in that of the document.

use super::shapes::{
    Arrow, DECIDES, Drawing, Kind, LABEL, Lane, PLANNED, Shape, Why, alternative_id, end_id, node_id,
    opening, plans, shape, start_id, takes,
};
use crate::inspect::page::cut;
use selvedge_engine::graph::{Act, Control, Node};
use selvedge_engine::schedule::{Schedule, Until, impure_order, unknown_order};
use selvedge_engine::{Effects, Graph, Ix, NodeIx, OrderIx, ThreadIx};
use selvedge_host::explain::waits::{self, owns};
use std::collections::{BTreeMap, HashMap};

/// So many steps have an arrow each to the model that decides about them when they fail.
const DECIDED: usize = 12;

/// More sources of one group of arrows meet in a dot first.
pub(super) const MEET: usize = 4;

impl Drawing {
    /// Draws a graph.
    pub(super) fn new(graph: &Graph) -> Self {
        if graph.control == Control::Flow {
            return Self::of_flow(graph);
        }
        let schedule = Schedule::derive(graph, false);
        let mut pen = Pen {
            graph,
            schedule: &schedule,
            drawing: Drawing { name: graph.name.as_ref().map(ToString::to_string), ..Drawing::default() },
            dots: 0,
            drawn: HashMap::new(),
        };
        pen.shapes();
        let mut readers = pen.readers();
        for thread in graph.threads.indices() {
            pen.thread(thread, readers.remove(&thread).unwrap_or_default());
        }
        pen.names();
        pen.turns();
        pen.recoveries();
        pen.drawing
    }
}

struct Pen<'g> {
    graph: &'g Graph,
    schedule: &'g Schedule,
    drawing: Drawing,
    dots: usize,
    /// Where the arrow between two boxes is among the arrows.
    drawn: HashMap<(String, String, Why), usize>,
}

impl Pen<'_> {
    fn shapes(&mut self) {
        for (ix, thread) in self.graph.threads.iter() {
            let mut shapes = Vec::new();
            if thread.first.is_some() {
                shapes.push(Shape { id: start_id(ix), kind: Kind::Start, lines: vec!["task".to_owned()] });
            }
            self.drawing.lanes.push(Lane { name: cut(&thread.name, LABEL), shapes, lanes: Vec::new() });
        }
        for (ix, node) in self.graph.nodes.iter() {
            let shape = shape(ix, node);
            match node.body.thread.and_then(|thread| self.drawing.lanes.get_mut(thread.get())) {
                Some(lane) => lane.shapes.push(shape),
                None => self.drawing.loose.push(shape),
            }
        }
    }

    fn arrow(&mut self, from: String, to: String, why: Why, label: &str) {
        let label = cut(label, LABEL);
        let at = *self.drawn.entry((from.clone(), to.clone(), why)).or_insert(self.drawing.arrows.len());
        match self.drawing.arrows.get_mut(at) {
            None => self.drawing.arrows.push(Arrow { from, to, why, label }),
            Some(arrow) if arrow.label.is_empty() || label.is_empty() => arrow.label.push_str(&label),
            Some(arrow) if arrow.label.split(", ").any(|known| known == label) => {}
            Some(arrow) => arrow.label = cut(&format!("{}, {label}", arrow.label), 2 * LABEL),
        }
    }

    fn dot(&mut self) -> String {
        self.dots += 1;
        let id = format!("d{}", self.dots);
        self.drawing.loose.push(Shape { id: id.clone(), kind: Kind::Dot, lines: Vec::new() });
        id
    }

    /// The arrows of one thread: to those who continue it, and to those who open another thread from it. A
    /// stretch of it goes from one owner to the next; in between others write to it and take from it.
    fn thread(&mut self, thread: ThreadIx, readers: Vec<Reader>) {
        let writers = self.schedule.orders.get(OrderIx(thread.0)).map_or(&[][..], |order| &order.writers);
        let first = self.graph.threads.get(thread).is_some_and(|thread| thread.first.is_some());
        let mut stretch = Stretch { head: first.then(|| start_id(thread)), ..Stretch::default() };
        let mut next = readers.into_iter().peekable();
        for (at, writer) in writers.iter().enumerate() {
            // Readers that observe the first `at` writers stand before this one.
            while let Some((_, reader)) = next.next_if(|(count, _)| *count <= at) {
                stretch.readers.push((stretch.sent.len(), reader));
            }
            if owns(self.graph, *writer, thread) {
                // Who opens a thread finds nothing on it.
                if !opens(self.graph, *writer) {
                    stretch.readers.push((stretch.sent.len(), (*writer, "continues".to_owned())));
                }
                self.stretch(thread, std::mem::take(&mut stretch));
                stretch.head = Some(node_id(*writer));
            } else {
                stretch.sent.push(*writer);
            }
        }
        for (_, reader) in next {
            stretch.readers.push((stretch.sent.len(), reader));
        }
        let seen = stretch.readers.iter().map(|(seen, _)| *seen).max().unwrap_or_default();
        if seen < stretch.sent.len() {
            let shape = Shape { id: end_id(thread), kind: Kind::End, lines: vec!["result".to_owned()] };
            if let Some(lane) = self.drawing.lanes.get_mut(thread.get()) {
                lane.shapes.push(shape);
            }
            stretch.unseen = Some(seen);
        }
        self.stretch(thread, stretch);
    }

    /// For each thread, those who open another one from it, in the order of what they observe of it.
    fn readers(&self) -> BTreeMap<ThreadIx, Vec<Reader>> {
        let mut readers: BTreeMap<ThreadIx, Vec<Reader>> = BTreeMap::new();
        for (ix, node) in self.graph.nodes.iter() {
            if let Some((from, slice)) = opening(node) {
                let count = self.schedule.open_at.get(ix).copied().unwrap_or_default() as usize;
                readers.entry(from).or_default().push((count, (ix, takes(slice))));
            }
        }
        readers.values_mut().for_each(|list| list.sort_by_key(|(count, (ix, _))| (*count, *ix)));
        readers
    }

    /// The arrows of one stretch of a thread: from its head, and from what was sent to it, to its readers.
    fn stretch(&mut self, thread: ThreadIx, stretch: Stretch) {
        let Stretch { head, sent, readers, unseen } = stretch;
        let many = readers.iter().map(|(seen, _)| *seen).sum::<usize>() > MEET * (1 + sent.len());
        let mut meeting: Option<(String, usize)> = None;
        for (seen, (reader, label)) in readers {
            let to = node_id(reader);
            if let Some(head) = &head {
                self.arrow(head.clone(), to.clone(), Why::Takes, &label);
            }
            // With many arrows, what was sent meets in a dot, and each dot goes on to the next one.
            let direct = if many { &[][..] } else { sent.get(..seen).unwrap_or_default() };
            for from in direct {
                self.arrow(node_id(*from), to.clone(), Why::Sent, &self.sent_label(*from));
            }
            if many && seen > 0 {
                let (dot, known) = match meeting.take() {
                    Some((dot, known)) if known == seen => (dot, known),
                    earlier => {
                        let (dot, known) = (self.dot(), earlier.as_ref().map_or(0, |(_, known)| *known));
                        if let Some((earlier, _)) = earlier {
                            self.arrow(earlier, dot.clone(), Why::Sent, "");
                        }
                        for from in sent.get(known..seen).unwrap_or_default() {
                            self.arrow(node_id(*from), dot.clone(), Why::Sent, &self.sent_label(*from));
                        }
                        (dot, seen)
                    }
                };
                self.arrow(dot.clone(), to, Why::Sent, "");
                meeting = Some((dot, known));
            }
        }
        for from in unseen.and_then(|unseen| sent.get(unseen..)).unwrap_or_default() {
            self.arrow(node_id(*from), end_id(thread), Why::Sent, &self.sent_label(*from));
        }
    }

    /// What a node says before the result that it sends.
    fn sent_label(&self, node: NodeIx) -> String {
        let leaves = self.graph.nodes.get(node).map(|node| node.body.leaves.values());
        let description = leaves.into_iter().flatten().find_map(|leaf| match &leaf.act {
            Act::Publish { description, .. } => Some(description.source().trim().to_owned()),
            _ => None,
        });
        description.filter(|text| !text.is_empty()).unwrap_or_else(|| "data_out".to_owned())
    }

    /// The arrows of placeholders: from the node whose result is read, and from those that may supply a name.
    fn names(&mut self) {
        let unknown = unknown_order(self.graph.threads.len());
        let mut open: BTreeMap<u32, Vec<(NodeIx, String)>> = BTreeMap::new();
        for (ix, waits) in self.schedule.waits.iter() {
            for wait in waits {
                match wait.until {
                    Until::Finished(node) => {
                        let result = wait.why.starts_with("reads the result");
                        let label = if result { "result" } else { &wait.why };
                        // On whom it depends is where the arrow comes from.
                        let label = if label.starts_with("depends on") { "depends on" } else { label };
                        self.arrow(node_id(node), node_id(ix), Why::Takes, label);
                    }
                    Until::First(order, count) if order == unknown => {
                        open.entry(count).or_default().push((ix, wait.why.to_string()));
                    }
                    Until::First(..) | Until::Retired(_) => {}
                }
            }
        }
        let all = waits::all(self.graph, self.schedule, |_| None);
        let mut direct: Vec<(NodeIx, NodeIx, &str)> = Vec::new();
        for (reader, label) in open.values().flatten() {
            let waited = all.get(reader.get()).into_iter().flatten();
            let supplies = waited.filter(|waited| waited.why.split("; ").any(|why| why == label));
            direct.extend(supplies.map(|waited| (waited.node, *reader, label.as_str())));
        }
        if direct.len() <= MEET * self.graph.nodes.len() {
            for (from, to, label) in direct {
                self.arrow(node_id(from), node_id(to), Why::Takes, label);
            }
        } else {
            self.meeting_names(&open);
        }
    }

    /// The same where many may supply many: they meet in dots, of which each goes on to the next.
    fn meeting_names(&mut self, open: &BTreeMap<u32, Vec<(NodeIx, String)>>) {
        let unknown = unknown_order(self.graph.threads.len());
        let writers = self.schedule.orders.get(unknown).map_or(&[][..], |order| &order.writers);
        let mut meeting: Option<(String, usize)> = None;
        for (count, readers) in open {
            let (count, dot) = (*count as usize, self.dot());
            let known = meeting.as_ref().map_or(0, |(_, known)| *known);
            if let Some((earlier, _)) = meeting.take() {
                self.arrow(earlier, dot.clone(), Why::Takes, "");
            }
            for from in writers.get(known..count).unwrap_or_default() {
                self.arrow(node_id(*from), dot.clone(), Why::Takes, "");
            }
            for (reader, label) in readers {
                self.arrow(dot.clone(), node_id(*reader), Why::Takes, label);
            }
            meeting = Some((dot, count));
        }
    }

    /// The arrows of calls that keep their turn, where it does not follow from anything else who comes first.
    fn turns(&mut self) {
        let world = &self.schedule.world;
        // Of a `write` only the order among calls is drawn: that it waits for everything before is the rule.
        let strength = |node: NodeIx| world.get(node).copied().flatten().map(|e| e.min(Effects::Idempotent));
        let all = waits::all(self.graph, self.schedule, strength);
        let order = impure_order(self.graph.threads.len());
        let calls = self.schedule.orders.get(order).map_or(&[][..], |order| &order.writers);
        for node in calls {
            for waited in all.get(node.get()).into_iter().flatten() {
                let turn = strength(*node).and_then(waits::turn).filter(|why| *why == waited.why);
                if let Some(why) = turn.filter(|_| !self.connected(waited.node, *node)) {
                    self.arrow(node_id(waited.node), node_id(*node), Why::Turn, why);
                }
            }
        }
    }

    /// What happens to steps that fail: tools that stand in for one (D-18), or a model that decides (D-17); and steps
    /// that are to be planned (D-21).
    fn recoveries(&mut self) {
        let decided = self.graph.nodes.iter().filter(|(_, node)| decides(node)).count();
        for (ix, node) in self.graph.nodes.iter() {
            if plans(node) {
                let lines = vec!["the steps".to_owned()];
                self.drawing.loose.push(Shape { id: PLANNED.to_owned(), kind: Kind::End, lines });
                self.arrow(node_id(ix), PLANNED.to_owned(), Why::Takes, "become");
            } else if decides(node) && decided <= DECIDED {
                self.arrow(node_id(ix), DECIDES.to_owned(), Why::Fails, "fails");
            } else if let Some(recovery) = node.recovery.as_ref().filter(|recovery| !recovery.model) {
                let mut from = node_id(ix);
                for (at, other) in recovery.alternatives.iter().enumerate() {
                    let id = alternative_id(ix, at);
                    let lines = vec![cut(&format!("tool {}", other.tool), LABEL)];
                    self.drawing.loose.push(Shape { id: id.clone(), kind: Kind::Recovery, lines });
                    self.arrow(from, id.clone(), Why::Fails, "fails");
                    from = id;
                }
            }
        }
        if decided > 0 {
            let whose = if decided > DECIDED { "any step that fails" } else { "recovery" };
            let lines = ["model decides: again, another tool,", "repair, replan, give up"];
            let lines = [whose].into_iter().chain(lines).map(ToOwned::to_owned).collect();
            self.drawing.loose.push(Shape { id: DECIDES.to_owned(), kind: Kind::Recovery, lines });
        }
    }

    fn connected(&self, from: NodeIx, to: NodeIx) -> bool {
        let drawn = |why| self.drawn.contains_key(&(node_id(from), node_id(to), why));
        drawn(Why::Takes) || drawn(Why::Sent)
    }
}

/// How many of a thread's writers a node observes that takes something from it, which node, and what it takes.
type Reader = (usize, (NodeIx, String));

/// A part of a thread between two nodes that work on it.
#[derive(Default)]
struct Stretch {
    /// The node that worked on it last, or what it holds from the start.
    head: Option<String>,
    /// Nodes that sent something to it since.
    sent: Vec<NodeIx>,
    /// Those who take it from here, each with how many of `sent` it sees, in that order.
    readers: Vec<Reader>,
    /// From which of `sent` on nobody reads it: the end of the thread.
    unseen: Option<usize>,
}

/// Whether a model decides when the node's call fails.
fn decides(node: &Node) -> bool {
    !plans(node) && node.recovery.as_ref().is_some_and(|recovery| recovery.model)
}

fn opens(graph: &Graph, node: NodeIx) -> bool {
    graph.nodes.get(node).is_some_and(|node| opening(node).is_some())
}
