//! A run's timeline, node instance by node instance: those of its own graph in list order, each followed by those in the frames that
//! it opened.

use crate::report::Said;
use crate::timeline::{
    Activity, Durations, FrameTimeline, Interval, Moment, NodeTimeline, Reuse, Rung, Span, Timeline, Visit,
    intervals,
};
use selvedge_engine::graph::{Act, Control, Node};
use selvedge_engine::{Effects, Fault, Graph, Ix, NodeIx, Printed};
use std::collections::HashMap;
use std::sync::Arc;

/// A node instance of a story, by its place in it.
pub type At = usize;

/// A run's timeline until some moment.
pub struct Story<'t> {
    /// What happened.
    pub timeline: &'t Timeline,
    pub(super) instances: Vec<Instance>,
    /// For each row of the timeline, which instance it is.
    by_row: Vec<Option<At>>,
    /// For each row, the frames that its current visit opened, in order.
    frames: HashMap<usize, Vec<usize>>,
    /// The nodes of the run's own graph, in list order.
    root: Vec<At>,
    /// The end of the run's times: its last event, or now.
    pub until: Moment,
    /// For each node of the run's own graph, whether all nodes before it had finished, and the last event of that.
    finished_before: Vec<Option<u64>>,
}

/// A node of the run's own graph, or of a frame, to which something happened.
pub(super) struct Instance {
    /// What people are told that it is (W-03).
    pub(super) name: Arc<str>,
    /// The frame that it is in, by its place in the timeline.
    pub(super) frame: usize,
    /// Which node of that frame's graph.
    pub(super) node: NodeIx,
    /// Where it is in the timeline.
    row: Option<usize>,
}

impl<'t> Story<'t> {
    /// Of a timeline and the graph that its run came to; what goes on goes on until `now`, or until the last event.
    pub fn new(timeline: &'t Timeline, graph: &Graph, now: Option<i64>) -> Self {
        let last = timeline.last().unwrap_or(Moment { n: 0, at: 0 });
        let until = Moment { at: now.unwrap_or(last.at).max(last.at), ..last };
        let mut story = Self {
            by_row: vec![None; timeline.nodes().len()],
            frames: frames(timeline),
            timeline,
            instances: Vec::new(),
            root: Vec::new(),
            until,
            finished_before: Vec::new(),
        };
        for (node, def) in graph.nodes.iter() {
            let row = story.timeline.frames().first().and_then(|root| root.node(&def.id));
            story.root.push(story.instances.len());
            story.add(0, node, def.id.clone(), row);
        }
        let mut last = Some(0);
        for node in graph.nodes.indices() {
            story.finished_before.push(last);
            let ended = story.of_root(node).and_then(|at| story.ended(at));
            last = last.zip(ended).map(|(last, ended)| ended.n.max(last));
        }
        story
    }

    /// A node, and behind it those in the frames that it opened.
    fn add(&mut self, frame: usize, node: NodeIx, name: Arc<str>, row: Option<usize>) {
        let at = self.instances.len();
        self.instances.push(Instance { name, frame, node, row });
        let Some(row) = row else { return };
        if let Some(known) = self.by_row.get_mut(row) {
            *known = Some(at);
        }
        // The frames one after the other, each with its nodes in the order in which they began.
        let frames = self
            .frames
            .get(&row)
            .into_iter()
            .flatten()
            .filter_map(|frame| self.timeline.frames().get(*frame));
        let inner: Vec<usize> = frames.flat_map(|frame| frame.nodes.iter().copied()).collect();
        for row in inner {
            let Some(known) = self.timeline.nodes().get(row) else { continue };
            let frame = known.within;
            let node = self.timeline.nodes_of(frame).and_then(|nodes| nodes.position(&known.node));
            let name: Arc<str> = self.timeline.told(known).into();
            if let Some(node) = node {
                self.add(frame, node, name, Some(row));
            }
        }
    }

    /// The instance that a row of the timeline is about.
    pub fn of_row(&self, row: usize) -> Option<At> {
        self.by_row.get(row).copied().flatten()
    }

    /// The instance of a node of the run's own graph.
    pub fn of_root(&self, node: NodeIx) -> Option<At> {
        self.root.get(node.get()).copied()
    }

    /// The nodes of the run's own graph.
    pub fn root(&self) -> impl Iterator<Item = At> {
        self.root.iter().copied()
    }

    /// All instances.
    pub fn all(&self) -> std::ops::Range<At> {
        0..self.instances.len()
    }

    /// Which node of the run's own graph an instance is, if it is one.
    pub fn root_node(&self, at: At) -> Option<NodeIx> {
        self.instances.get(at).filter(|instance| instance.frame == 0).map(|instance| instance.node)
    }

    /// What people are told that it is.
    pub fn name(&self, at: At) -> &str {
        self.instances.get(at).map_or("", |instance| &instance.name)
    }

    /// What it is by the graph of its frame.
    pub fn def(&self, at: At) -> Option<&Node> {
        let instance = self.instances.get(at)?;
        self.graph_of(at)?.nodes.get(instance.node)
    }

    /// The graph of its frame.
    pub fn graph_of(&self, at: At) -> Option<&Graph> {
        Some(self.timeline.nodes_of(self.instances.get(at)?.frame)?.graph())
    }

    /// The frame that it is in.
    pub fn frame(&self, at: At) -> Option<&FrameTimeline> {
        self.timeline.frames().get(self.instances.get(at)?.frame)
    }

    /// The instances of a frame, in the order in which they began.
    pub fn within<'s>(&'s self, frame: &'s FrameTimeline) -> impl Iterator<Item = At> + 's {
        frame.nodes.iter().filter_map(|row| self.of_row(*row))
    }

    /// The instance that opened a frame.
    pub fn opener(&self, frame: &FrameTimeline) -> Option<At> {
        self.of_row(frame.opener?)
    }

    /// The frames that it has opened, in order.
    pub fn opened(&self, at: At) -> &[usize] {
        let row = self.instances.get(at).and_then(|instance| instance.row);
        row.and_then(|row| self.frames.get(&row)).map_or(&[], |frames| frames)
    }

    /// A frame, by its place in the timeline.
    pub fn frame_at(&self, frame: usize) -> Option<&FrameTimeline> {
        self.timeline.frames().get(frame)
    }

    /// What is known of it, if anything happened to it.
    pub fn node(&self, at: At) -> Option<&NodeTimeline> {
        self.timeline.nodes().get(self.instances.get(at)?.row?)
    }

    /// Its last visit, unless it is to begin anew.
    pub fn visit(&self, at: At) -> Option<&Visit> {
        self.node(at)?.current()
    }

    /// When it started.
    pub fn started(&self, at: At) -> Option<Moment> {
        self.visit(at)?.started
    }

    /// When it had ended.
    pub fn ended(&self, at: At) -> Option<Moment> {
        self.visit(at)?.ended
    }

    /// Why it failed.
    pub fn fault(&self, at: At) -> Option<(&Fault, Option<&Arc<Printed>>)> {
        let visit = self.visit(at)?;
        Some((visit.fault.as_deref()?, visit.printed_by_failed()))
    }

    /// The node for which it does not run (D-16).
    pub fn skipped(&self, at: At) -> Option<&Arc<str>> {
        self.node(at)?.skipped.as_ref()
    }

    /// What people said to its questions.
    pub fn answers(&self, at: At) -> impl Iterator<Item = Said> {
        let answers = self.node(at).into_iter().flat_map(|node| &node.answers);
        answers.map(|answer| Said::new(&answer.ask, &answer.value))
    }

    /// What goes on in it now, if it has not ended: a call, or a question to a person.
    pub fn now(&self, at: At) -> Option<Activity> {
        self.timeline.activity(self.node(at)?, self.until)
    }

    /// When its visit began and ended on the line of time; one that goes on ends with the run's times.
    pub fn extent(&self, at: At) -> Option<(i64, i64)> {
        self.timeline.extent(self.node(at)?, self.until)
    }

    /// What it did one after the other.
    pub fn intervals(&self, at: At) -> Vec<Interval> {
        self.node(at).map(|node| self.timeline.intervals(node, self.until)).unwrap_or_default()
    }

    /// What was done one after the other in a frame, from its beginning to its end, and when these were.
    pub fn of_frame(&self, frame: &FrameTimeline) -> Option<((i64, i64), Vec<Interval>)> {
        let from = self.timeline.line(frame.began?);
        let to = self.timeline.line(frame.ended.unwrap_or(self.until)).max(from);
        let nodes = frame.nodes.iter().filter_map(|row| self.timeline.nodes().get(*row));
        let spans: Vec<Span> = nodes.flat_map(|node| self.timeline.spans(node, self.until)).collect();
        Some(((from, to), intervals(&spans, from, to, |at| self.timeline.line(at))))
    }

    /// What its time went into.
    pub fn durations(&self, at: At) -> Durations {
        Durations::of(&self.intervals(at))
    }

    /// The strongest effects of the calls it makes, as far as they are known.
    pub fn effects(&self, at: At) -> Option<Effects> {
        let (graph, own) = (self.graph_of(at)?, self.def(at)?);
        let fixed = own.body.leaves.values().filter_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(graph.effects(own, &call.tool)),
            _ => None,
        });
        fixed.max().max(self.visit(at).and_then(Visit::effects))
    }

    /// How much of it comes from another run or an earlier visit.
    pub fn reused(&self, at: At) -> Option<Reuse<'_>> {
        self.timeline.reuse(self.node(at)?)
    }

    /// What was done about what failed (D-22).
    pub fn rungs(&self) -> &[Rung] {
        self.timeline.recovery().rungs()
    }

    /// When something was done about a fault, on the line of time.
    pub fn line(&self, rung: &Rung) -> i64 {
        self.timeline.line(Moment { n: rung.n, at: rung.at })
    }

    /// When the run began, on the line of time.
    pub fn begun(&self) -> Option<i64> {
        self.timeline.first().map(|first| self.timeline.line(first))
    }

    /// Whether a node started before an earlier one had finished.
    pub fn ran_ahead(&self, at: At) -> bool {
        if self.graph_of(at).is_none_or(|graph| graph.control == Control::Flow) {
            return false;
        }
        let before = self.root_node(at).and_then(|node| self.finished_before.get(node.get()));
        let ahead =
            |started: Moment| before.is_some_and(|before| before.is_none_or(|before| before > started.n));
        self.started(at).is_some_and(ahead)
    }
}

/// The frames that each row's current visit opened, in order.
fn frames(timeline: &Timeline) -> HashMap<usize, Vec<usize>> {
    let mut frames: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, frame) in timeline.frames().iter().enumerate() {
        let visit = frame.opener.and_then(|row| timeline.nodes().get(row)?.current());
        if let Some(row) = frame.opener.filter(|_| visit.is_some_and(|visit| visit.frames.has(at))) {
            frames.entry(row).or_default().push(at);
        }
    }
    frames
}
