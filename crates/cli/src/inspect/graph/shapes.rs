//! The parts of a drawing, and what a node looks like in it.

use crate::inspect::page::cut;
use crate::status::Words as _;
use selvedge_engine::graph::{Act, Node};
use selvedge_engine::{Ix, NodeIx, Slice, ThreadIx};
use selvedge_host::timeline::NodeStatus;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Characters of a label.
pub(super) const LABEL: usize = 48;

/// A drawing.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    /// The document's name.
    pub(super) name: Option<String>,
    /// The threads, each with its boxes in list order.
    pub(super) lanes: Vec<Lane>,
    /// Boxes that are in no lane: nodes without a thread, and dots where many arrows meet.
    pub(super) loose: Vec<Shape>,
    /// The arrows.
    pub(super) arrows: Vec<Arrow>,
    /// Of a run: where the nodes behind boxes stand.
    pub(super) fates: BTreeMap<String, NodeStatus>,
    /// Boxes that are the second one of a node: where a fork is joined, and where a loop ends. Each with the first one.
    pub(super) ends: BTreeMap<String, String>,
    /// What is in frames: for each of its addresses there the box.
    pub(super) inner: HashMap<Address, String>,
}

/// Where a node is in a drawing: the nodes that opened the frames around it, each with which of its frames, and its own id.
pub(super) type Address = Vec<Arc<str>>;

/// Which frame it is where all frames of a node are drawn as one: the paths of a fork over a list, the iterations of a loop.
pub(super) const EACH: &str = "";

impl Drawing {
    /// Colours the nodes of a run, and says in their boxes what became of them.
    pub(super) fn colour(&mut self, fates: &[(NodeStatus, String)]) {
        let known = fates.iter().enumerate();
        self.fates = known.map(|(at, (fate, _))| (node_id(NodeIx::new(at)), *fate)).collect();
        let words: BTreeMap<String, &String> =
            fates.iter().enumerate().map(|(at, (_, words))| (node_id(NodeIx::new(at)), words)).collect();
        self.each_shape(&mut |shape| {
            let words = words.get(&shape.id).filter(|words| !words.is_empty());
            shape.lines.extend(words.map(|words| cut(words, LABEL)));
        });
    }

    /// Colours the nodes in a run's frames, too. Of those that are drawn as one the box says how many stand how, and has
    /// the colour of the most pressing. `untouched` is where nodes stand that no frame came to.
    pub(super) fn colour_inner(
        &mut self,
        instances: impl Iterator<Item = (Address, NodeStatus)>,
        untouched: NodeStatus,
    ) {
        let mut boxes: BTreeMap<String, Vec<NodeStatus>> = BTreeMap::new();
        for (address, fate) in instances {
            if let Some(id) = self.inner.get(&address) {
                boxes.entry(id.clone()).or_default().push(fate);
            }
        }
        let none = self.inner.values().filter(|id| !boxes.contains_key(*id)).cloned();
        let none: Vec<(String, NodeStatus)> = none.map(|id| (id, untouched)).collect();
        self.fates.extend(none);
        for (id, fates) in &boxes {
            let pressing = PRESSING.into_iter().find(|fate| fates.contains(fate));
            self.fates.insert(id.clone(), pressing.unwrap_or(NodeStatus::Done));
        }
        let fates = std::mem::take(&mut self.fates);
        let inner: std::collections::HashSet<&String> = self.inner.values().collect();
        let words = |id: &String| match boxes.get(id) {
            Some(many) if many.len() > 1 => counted(many),
            _ => fates.get(id).map(|fate| fate.words().to_owned()).unwrap_or_default(),
        };
        let words: BTreeMap<String, String> = inner.into_iter().map(|id| (id.clone(), words(id))).collect();
        self.each_shape(&mut |shape| {
            shape.lines.extend(words.get(&shape.id).map(|words| cut(words, LABEL)));
        });
        self.fates = fates;
    }

    fn each_shape(&mut self, change: &mut dyn FnMut(&mut Shape)) {
        self.loose.iter_mut().for_each(&mut *change);
        self.lanes.iter_mut().for_each(|lane| lane.each_shape(change));
    }

    /// Where the node behind a box stands.
    pub(super) fn fate(&self, id: &str) -> Option<NodeStatus> {
        self.fates.get(self.ends.get(id).map_or(id, String::as_str)).copied()
    }

    /// What the colours stand for: each that occurs, with how many nodes have it.
    pub(super) fn legend(&self) -> Vec<(NodeStatus, String)> {
        let count = |fate: NodeStatus| self.fates.values().filter(|known| **known == fate).count();
        let counted =
            crate::status::ALL.into_iter().map(|fate| (fate, count(fate))).filter(|(_, count)| *count > 0);
        counted.map(|(fate, count)| (fate, format!("{}: {count}", fate.words()))).collect()
    }
}

/// Of several nodes in one box the first that one of them has.
const PRESSING: [NodeStatus; 13] = [
    NodeStatus::Failed,
    NodeStatus::Asking,
    NodeStatus::Stopped,
    NodeStatus::Waiting,
    NodeStatus::Retrying,
    NodeStatus::Running,
    NodeStatus::Queued,
    NodeStatus::Done,
    NodeStatus::Reused,
    NodeStatus::Skipped,
    NodeStatus::Cancelled,
    NodeStatus::NotStarted,
    NodeStatus::NotTaken,
];

/// `27 ran, 3 failed`.
fn counted(fates: &[NodeStatus]) -> String {
    let count = |fate: NodeStatus| fates.iter().filter(|known| **known == fate).count();
    let counts = crate::status::ALL.into_iter().map(|fate| (fate, count(fate)));
    let words = counts.filter(|(_, count)| *count > 0).map(|(fate, count)| fate.counted(count));
    words.collect::<Vec<String>>().join(", ")
}

/// The colours of a box, of its inside and of its border, of which the words in it speak, too.
pub(super) fn colours(fate: NodeStatus) -> (&'static str, &'static str) {
    match fate {
        NodeStatus::Done => ("#d3f9d8", "#2b8a3e"),
        NodeStatus::Reused => ("#d0ebff", "#1864ab"),
        NodeStatus::Failed => ("#ffc9c9", "#c92a2a"),
        NodeStatus::Running => ("#c5f6fa", "#0b7285"),
        NodeStatus::Stopped => ("#ffe8cc", "#d9480f"),
        NodeStatus::Retrying => ("#ffec99", "#f08c00"),
        NodeStatus::Asking | NodeStatus::Waiting => ("#eebefa", "#862e9c"),
        NodeStatus::Queued | NodeStatus::NotStarted | NodeStatus::NotTaken | NodeStatus::Cancelled => {
            ("#f1f3f5", "#868e96")
        }
        NodeStatus::Skipped => ("#fff3bf", "#e67700"),
    }
}

/// A thread, or what a node of a workflow opens.
#[derive(Debug)]
pub(super) struct Lane {
    /// Its name.
    pub(super) name: String,
    /// What stands in it.
    pub(super) shapes: Vec<Shape>,
    /// What is opened in it.
    pub(super) lanes: Vec<Lane>,
}

impl Lane {
    fn each_shape(&mut self, change: &mut dyn FnMut(&mut Shape)) {
        self.shapes.iter_mut().for_each(&mut *change);
        self.lanes.iter_mut().for_each(|lane| lane.each_shape(change));
    }
}

/// A box.
#[derive(Debug, PartialEq)]
pub(super) struct Shape {
    /// What arrows call it: of letters and digits, and unique.
    pub(super) id: String,
    /// How it looks.
    pub(super) kind: Kind,
    /// The lines of its text.
    pub(super) lines: Vec<String>,
}

/// How a box looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What a thread holds from the start.
    Start,
    /// What a thread ends as, where a result was sent to it that no node takes up.
    End,
    /// A node that asks a model.
    Model,
    /// A node that runs a tool first, or only.
    Tool,
    /// A node that only moves messages, or sets a variable.
    Move,
    /// A node that asks a person.
    Person,
    /// A node that only chooses the way.
    Choice,
    /// Where paths begin.
    Fork,
    /// Where they come together.
    Join,
    /// Where a loop begins, and where it ends.
    Loop,
    /// What happens to a step that failed.
    Recovery,
    /// A dot where arrows meet.
    Dot,
}

/// An arrow.
#[derive(Debug, PartialEq)]
pub(super) struct Arrow {
    /// From which box.
    pub(super) from: String,
    /// To which box.
    pub(super) to: String,
    /// What it stands for.
    pub(super) why: Why,
    /// Why, in a word or two; may be empty.
    pub(super) label: String,
}

/// What an arrow stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    /// Messages are taken over, or a result is read.
    Takes,
    /// A result was sent to another thread.
    Sent,
    /// Calls that keep their turn.
    Turn,
    /// What stands in for a step that failed.
    Fails,
}

/// The box of a node.
pub(super) fn node_id(node: NodeIx) -> String {
    format!("n{}", node.get())
}
/// The box of what a thread holds from the start.
pub(super) fn start_id(thread: ThreadIx) -> String {
    format!("s{}", thread.get())
}
/// The box of what a thread ends as.
pub(super) fn end_id(thread: ThreadIx) -> String {
    format!("e{}", thread.get())
}

/// The box of a node's alternative (D-18).
pub(super) fn alternative_id(node: NodeIx, at: usize) -> String {
    format!("n{}a{at}", node.get())
}
/// The box of the model that decides about failed steps (D-17).
pub(super) const DECIDES: &str = "recovery";
/// The box of steps that a model is to plan (D-21).
pub(super) const PLANNED: &str = "planned";

/// Whether a model is to plan the steps that take a node's place.
pub(super) fn plans(node: &Node) -> bool {
    let calls = node.body.leaves.values().any(|leaf| matches!(leaf.act, Act::Call(_)));
    !calls && node.body.leaves.values().any(|leaf| matches!(leaf.act, Act::Splice))
}

/// What a node opens its thread with.
pub(super) fn opening(node: &Node) -> Option<(ThreadIx, Slice)> {
    node.body.leaves.values().find_map(|leaf| match leaf.act {
        Act::Open { from, slice } => Some((from, slice)),
        _ => None,
    })
}

/// A slice in a word or two.
pub(super) fn takes(Slice(start, end): Slice) -> String {
    let text = |end: Option<i64>| end.map_or_else(|| "null".to_owned(), |end| end.to_string());
    match (start, end) {
        (None | Some(0), None) => "takes all".to_owned(),
        (Some(-1), None) => "takes the last".to_owned(),
        (None | Some(0), Some(1)) => "takes the first".to_owned(),
        _ => format!("takes [{}, {}]", text(start), text(end)),
    }
}

/// The box of a node, with its text.
pub(super) fn shape(ix: NodeIx, node: &Node) -> Shape {
    let acts = || node.body.leaves.values().map(|leaf| &leaf.act);
    let call = acts().find_map(|act| match act {
        Act::Call(call) => Some(&call.tool),
        _ => None,
    });
    // What a model says to the fault of a step is drawn as a way of its own.
    let infer = acts().filter(|_| call.is_none() || node.recovery.is_none()).find_map(|act| match act {
        Act::Infer(infer) => Some(infer.as_ref()),
        _ => None,
    });
    let mut lines = vec![cut(&node.id, LABEL)];
    if node.name != node.id && !node.name.is_empty() {
        lines.push(cut(&node.name, LABEL));
    }
    let mut does: Vec<String> = call.iter().map(|tool| format!("tool {tool}")).collect();
    if let Some(infer) = infer {
        let model = infer.model.as_ref().map_or_else(|| "model".to_owned(), |model| format!("model {model}"));
        let tools: Vec<&str> = node.body.tools.iter().map(|tool| &**tool).collect();
        does.push(if tools.is_empty() { model } else { format!("{model} with {}", tools.join(", ")) });
    }
    lines.extend((!does.is_empty()).then(|| cut(&does.join(", then "), LABEL)));
    if let Some(recovery) = node.recovery.as_ref().filter(|recovery| recovery.model) {
        let names: Vec<&str> = recovery.alternatives.iter().map(|other| &*other.tool).collect();
        lines.extend((!names.is_empty()).then(|| cut(&format!("or {}", names.join(", ")), LABEL)));
    }
    let kind = match (call, infer) {
        (Some(_), _) => Kind::Tool,
        (None, Some(_)) => Kind::Model,
        (None, None) => Kind::Move,
    };
    Shape { id: node_id(ix), kind, lines }
}
