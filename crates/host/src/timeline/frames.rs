//! Frames of a run: paths of forks, iterations of loops, subgraphs; how each stands, and by kind which of those that a visit opened.

use super::Timeline;
use super::history::{Moment, NodeTimeline, Visit};
use super::nodes::Nodes;
use selvedge_engine::graph::{Control, Node, OnError, When};
use selvedge_engine::place::{FrameStep, Instance, Names};
use selvedge_engine::{Event, FaultKind, FramePath, GraphIx, Joined};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A frame: the document's own graph, or what a node opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameTimeline {
    /// Where it is.
    pub path: FramePath,
    /// Which of the frames of its node; nothing for the document's own graph.
    pub which: Option<Which>,
    /// Where the node that opened it is in [`Timeline::nodes`].
    pub opener: Option<usize>,
    /// How many frames of that visit of its node had begun before it.
    pub nth: usize,
    /// What people are told that it is (W-03), with the number of an iteration: `each[3]`, `round#7`; nothing for the document's
    /// own graph.
    #[serde(skip)]
    pub name: Arc<str>,
    /// When the first of it happened.
    pub began: Option<Moment>,
    /// When it was over.
    pub ended: Option<Moment>,
    /// How it stands.
    pub status: FrameStatus,
    /// Where its nodes are in [`Timeline::nodes`], in the order in which something happened to them.
    pub nodes: Vec<usize>,
    /// The node of them that began last.
    pub at: Option<usize>,
    /// What stands before the names of what is in it.
    #[serde(skip)]
    pub(super) names: Names,
    #[serde(skip)]
    by_id: HashMap<Arc<str>, usize>,
    #[serde(skip)]
    graph: Option<GraphIx>,
}

/// Which of the frames of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// A path of a fork, by its id.
    Path(Arc<str>),
    /// An iteration, from 0.
    Iteration(u32),
    /// The only one.
    Sub,
}

/// How a frame stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameStatus {
    /// It goes on.
    #[default]
    Open,
    /// It has done all that it had to.
    Completed,
    /// A fault ended it.
    Failed,
    /// It was cut off (E-38).
    Cancelled,
}

/// The frames that a visit opened, by how they stand: each set has their places in [`Timeline::frames`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inner {
    /// How many paths there are, of a fork.
    pub paths: Option<u32>,
    /// The iteration that began last, of a loop.
    pub iteration: Option<u32>,
    /// Those that go on.
    pub open: BTreeSet<usize>,
    /// Those that have done what they had to.
    pub completed: BTreeSet<usize>,
    /// Those that failed.
    pub failed: BTreeSet<usize>,
    /// Those that were cut off.
    pub cancelled: BTreeSet<usize>,
    /// Those in which people are asked, each with how many questions are open in it and below.
    pub asking: BTreeMap<usize, u32>,
    /// How the join was decided, if it was met.
    pub joined: Option<Box<Joined>>,
}

impl Inner {
    /// Whether a frame, by its place in [`Timeline::frames`], is one of them.
    pub fn has(&self, frame: usize) -> bool {
        [&self.open, &self.completed, &self.failed, &self.cancelled].iter().any(|set| set.contains(&frame))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.paths.is_none() && self.began() == 0
    }

    /// How many frames have begun.
    pub fn began(&self) -> usize {
        self.open.len() + self.completed.len() + self.failed.len() + self.cancelled.len()
    }

    /// Paths that have not begun.
    pub fn not_begun(&self) -> usize {
        let paths = usize::try_from(self.paths.unwrap_or(0)).unwrap_or(usize::MAX);
        paths.saturating_sub(self.began())
    }

    fn put(&mut self, frame: usize, status: FrameStatus) {
        for set in [&mut self.open, &mut self.completed, &mut self.failed, &mut self.cancelled] {
            set.remove(&frame);
        }
        let set = match status {
            FrameStatus::Open => &mut self.open,
            FrameStatus::Completed => &mut self.completed,
            FrameStatus::Failed => &mut self.failed,
            FrameStatus::Cancelled => &mut self.cancelled,
        };
        set.insert(frame);
    }
}

impl FrameTimeline {
    pub(super) fn root() -> Self {
        Self {
            path: FramePath::default(),
            which: None,
            opener: None,
            nth: 0,
            name: "".into(),
            began: None,
            ended: None,
            status: FrameStatus::Open,
            nodes: Vec::new(),
            at: None,
            names: Names::default(),
            by_id: HashMap::new(),
            graph: None,
        }
    }

    /// Where the node of that id is in [`Timeline::nodes`], if anything happened to it.
    pub fn node(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}

impl Which {
    fn of(instance: &Instance<'_>) -> Self {
        match instance {
            Instance::Path(id) => Self::Path((**id).into()),
            Instance::Iteration(n) => Self::Iteration(*n),
            Instance::Sub => Self::Sub,
        }
    }
}

impl Timeline {
    /// All frames, the document's own graph first, in the order in which something happened in them.
    pub fn frames(&self) -> &[FrameTimeline] {
        &self.frames
    }

    /// What a node is by the graph of its frame.
    pub fn def(&self, node: &NodeTimeline) -> Option<&Node> {
        self.nodes_of(node.within)?.get(&node.node)
    }

    /// The frames that a node is in but the document's own graph, the nearest first.
    pub fn around<'t>(&'t self, node: &NodeTimeline) -> impl Iterator<Item = &'t FrameTimeline> {
        let mut at = Some(node.within);
        std::iter::from_fn(move || {
            let frame = self.frames.get(at?)?;
            at = Some(self.nodes.get(frame.opener?)?.within);
            Some(frame)
        })
    }

    /// The nodes of the graph of a frame, by its place in [`Timeline::frames`].
    pub fn nodes_of(&self, frame: usize) -> Option<&Nodes> {
        match self.frames.get(frame)? {
            FrameTimeline { opener: None, .. } => Some(&self.graph),
            FrameTimeline { graph, .. } => self.inner.get((*graph)?),
        }
    }

    /// Where the row of a frame is, made where there is none.
    pub(super) fn frame_at(&mut self, path: &FramePath, now: Moment) -> Option<usize> {
        if let Some(at) = self.by_frame.get(path) {
            return Some(*at);
        }
        let (around, FrameStep { node, instance, .. }) = path.parent()?;
        let around = self.frame_at(&around, now)?;
        let opener = self.row(around, &node);
        let opened = self.nodes_of(around).zip(self.frames.get(around)).and_then(|(nodes, around)| {
            let mut acts = nodes.graph().leaves(nodes.get(&node)?).map(|leaf| &leaf.act);
            let (act, graph) = acts.find_map(|act| Some((act, act.opens(&instance)?)))?;
            Some((graph, around.names.within(&node, act, &instance), around.names.told("")))
        });
        let name = opened.as_ref().map(|(_, names, before)| named(names.frame(&instance), before));
        let (graph, names) = opened.map(|(graph, names, _)| (graph, names)).unzip();
        let nth =
            self.nodes.get(opener).and_then(NodeTimeline::current).map_or(0, |visit| visit.frames.began());
        let at = self.frames.len();
        self.frames.push(FrameTimeline {
            path: path.clone(),
            which: Some(Which::of(&instance)),
            opener: Some(opener),
            nth,
            name: name.unwrap_or_default().into(),
            names: names.unwrap_or_default(),
            began: Some(now),
            graph,
            ..FrameTimeline::root()
        });
        self.by_frame.insert(path.clone(), at);
        if let Some(visit) = self.nodes.get_mut(opener).and_then(NodeTimeline::current_mut) {
            visit.frames.put(at, FrameStatus::Open);
            if let Instance::Iteration(n) = instance {
                visit.frames.iteration = Some(n);
            }
        }
        Some(at)
    }

    /// Where the row of a node of a frame is, made where there is none.
    pub(super) fn row(&mut self, frame: usize, id: &str) -> usize {
        let Some(known) = self.frames.get(frame) else { return usize::MAX };
        if let Some(at) = known.node(id) {
            return at;
        }
        let (at, path, opener) = (self.nodes.len(), known.path.clone(), known.opener);
        let node: Arc<str> = id.into();
        if let Some(visit) = opener.and_then(|opener| self.nodes.get_mut(opener)?.current_mut()) {
            visit.inner.push(at);
        }
        self.nodes.push(NodeTimeline::new(path, frame, node.clone()));
        if let Some(known) = self.frames.get_mut(frame) {
            known.nodes.push(at);
            known.by_id.insert(node, at);
        }
        at
    }
}

/// What becomes of them.
impl Timeline {
    /// A node began: what it is in goes on, if that had ended, as after a resume (E-36).
    pub(super) fn frame_goes_on(&mut self, row: usize) {
        let mut within = self.nodes.get(row).map(|node| node.within);
        if let Some(frame) = within.and_then(|frame| self.frames.get_mut(frame)) {
            frame.at = Some(row);
        }
        while let Some(at) = within {
            let Some(frame) = self.frames.get_mut(at).filter(|frame| frame.opener.is_some()) else { return };
            if frame.status == FrameStatus::Open {
                return;
            }
            (frame.status, frame.ended) = (FrameStatus::Open, None);
            let opener = frame.opener;
            let Some(opener) = opener.and_then(|opener| self.nodes.get_mut(opener)) else { return };
            within = Some(opener.within);
            if let Some(visit) = opener.current_mut() {
                visit.frames.put(at, FrameStatus::Open);
                (visit.ended, visit.fault, visit.cancelled) = (None, None, false);
                visit.frames.joined = None;
            }
        }
    }

    /// A frame is over.
    pub(super) fn frame_ends(&mut self, at: usize, status: FrameStatus, now: Moment) {
        let Some(frame) = self.frames.get_mut(at).filter(|frame| frame.status == FrameStatus::Open) else {
            return;
        };
        (frame.status, frame.ended) = (status, Some(now));
        let Some(opener) = frame.opener else { return };
        let visit = self.nodes.get_mut(opener).and_then(NodeTimeline::current_mut);
        let asked = visit.and_then(|visit| {
            visit.frames.put(at, status);
            visit.frames.asking.remove(&at)
        });
        if let Some((asked, around)) = asked.zip(self.nodes.get(opener).map(|opener| opener.within)) {
            self.count_asking(around, |count| count.saturating_sub(asked));
        }
    }

    /// Questions are asked in a frame, or no more: what is around it knows.
    pub(super) fn count_asking(&mut self, frame: usize, change: impl Fn(u32) -> u32) {
        let mut at = Some(frame);
        while let Some(frame) = at
            && let Some(opener) = self.frames.get(frame).and_then(|frame| frame.opener)
            && let Some(opener) = self.nodes.get_mut(opener)
        {
            at = Some(opener.within);
            let Some(visit) = opener.current_mut() else { return };
            let count = change(visit.frames.asking.get(&frame).copied().unwrap_or(0));
            match count {
                0 => drop(visit.frames.asking.remove(&frame)),
                count => drop(visit.frames.asking.insert(frame, count)),
            }
        }
    }

    /// What an event says of frames; of those about nodes, after it was taken in.
    pub(super) fn frame_event(&mut self, row: Option<usize>, now: Moment, event: &Event) {
        match event {
            Event::Entered { paths, iteration, .. } => {
                let Some(row) = row else { return };
                let before = self.opened_frames(row);
                if iteration.is_some() {
                    before.into_iter().for_each(|at| self.frame_ends(at, FrameStatus::Completed, now));
                }
                if let Some(visit) = self.nodes.get_mut(row).and_then(NodeTimeline::current_mut) {
                    visit.frames.paths = paths.or(visit.frames.paths);
                    visit.frames.iteration = iteration.or(visit.frames.iteration);
                }
            }
            Event::Left { joined, .. } => {
                let Some(row) = row else { return };
                let status = if joined.is_some() { FrameStatus::Cancelled } else { FrameStatus::Completed };
                self.opened_frames(row).into_iter().for_each(|at| self.frame_ends(at, status, now));
                if let Some(visit) = self.nodes.get_mut(row).and_then(NodeTimeline::current_mut) {
                    visit.frames.joined.clone_from(joined);
                }
            }
            Event::NodeFinished { fault, .. } => {
                let Some(row) = row else { return };
                let forks = self.visit_at(row).is_some_and(|visit| visit.frames.paths.is_some());
                let timely = fault.as_ref().is_none_or(|fault| fault.kind != FaultKind::Timeout);
                let status = if timely && !forks { FrameStatus::Failed } else { FrameStatus::Cancelled };
                self.opened_frames(row).into_iter().for_each(|at| self.frame_ends(at, status, now));
                let node = self.nodes.get(row);
                if let Some((within, status)) = node.and_then(|node| self.ends(node, fault.is_some())) {
                    self.frame_ends(within, status, now);
                }
            }
            Event::Unrouted { node, .. } => {
                let frame = match node.strip_suffix('/').and_then(|path| path.parse::<FramePath>().ok()) {
                    Some(path) => self.frame_at(&path, now),
                    None => row.and_then(|row| self.nodes.get(row)).map(|node| node.within),
                };
                frame.into_iter().for_each(|at| self.frame_ends(at, FrameStatus::Failed, now));
            }
            _ => {}
        }
    }

    fn visit_at(&self, row: usize) -> Option<&Visit> {
        self.nodes.get(row)?.current()
    }

    fn opened_frames(&self, row: usize) -> Vec<usize> {
        self.visit_at(row).map(|visit| visit.frames.open.iter().copied().collect()).unwrap_or_default()
    }

    /// The frame that ends with a node of it that has ended, and how. One whose nodes wait for each other ends with the node that opened
    /// it.
    pub(super) fn ends(&self, node: &NodeTimeline, failed: bool) -> Option<(usize, FrameStatus)> {
        let def = self.def(node).filter(|_| node.within > 0)?;
        let flows = self.nodes_of(node.within)?.graph().control == Control::Flow;
        let handled = def.on_error == OnError::Continue || def.ways.iter().any(|way| way.when == When::Fault);
        let last = def.ways.iter().all(|way| way.when == When::Fault);
        match failed {
            true if !handled && flows => Some((node.within, FrameStatus::Failed)),
            false if last && flows => Some((node.within, FrameStatus::Completed)),
            _ => None,
        }
    }
}

/// What people are told that a frame is: its name in reports, behind the iterations that it is in.
fn named(frame: &str, before: &str) -> String {
    let last = frame.rsplit('/').next().unwrap_or(frame);
    format!("{before}{last}")
}
