//! What happened in a run and when, by node: one projection of its events for everybody who shows a run.
//!
//! A [`Timeline`] is fed with records as they become durable, or with a whole journal; both give the same. It knows each node
//! instance by its place (frame, node, visit), and of each visit what it asked for, attempt by attempt, how long it waited for
//! whom, and what came of it. It holds what the events hold, shared where they share it, and costs a constant an event. But for
//! the names of nodes and frames (W-03) it has no words for people.
//!
//! ```
//! use selvedge_engine::{Graph, Input, Record, Start, State};
//! use selvedge_host::timeline::Timeline;
//! use std::sync::Arc;
//!
//! let graph = Arc::new(Graph::default());
//! let (mut state, mut timeline) = (State::new(graph.clone()), Timeline::new(&graph));
//! let event = state.accept(Input::Start(Box::new(Start::default()))).ok_or("it has begun")?;
//! let record = Record { at: 1, event };
//! state.apply_record(&record);
//! timeline.events(&state, &[record]);
//! assert_eq!(timeline.last().map(|moment| moment.n), Some(1));
//! # Ok::<(), &str>(())
//! ```

mod calls;
mod durations;
mod followed;
mod frames;
mod history;
mod made;
mod nodes;
mod recovery;
mod so_far;
mod status;
mod tally;

pub use durations::{Activity, Durations, Interval, Span, intervals};
pub use followed::Followed;
pub use frames::{FrameStatus, FrameTimeline, Inner, Which};
pub use history::{
    Answer, Attempt, Call, CallKind, Moment, NodeTimeline, Opened, Question, Reuse, ThreadUse, Visit,
};
pub use made::Made;
pub use nodes::Nodes;
pub use recovery::{Ladder, Rung, Spent, What};
pub use status::NodeStatus;
pub use tally::Tally;

use selvedge_engine::place::{FramePathRef, Place};
use selvedge_engine::{EffectId, End, Event, FramePath, Graph, GraphIx, Record, State, Table};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What happened in a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// All node instances that something happened to, in the order in which it did.
    nodes: Vec<NodeTimeline>,
    /// The frames that they are in.
    frames: Vec<FrameTimeline>,
    /// The first and the last event.
    from_to: Option<(Moment, Moment)>,
    /// Forks: the event of each, and the time before it in which the run did not exist.
    gaps: Vec<(u64, i64)>,
    /// The event with which a fork left its source, and the source.
    forked: Option<(u64, Arc<str>)>,
    /// What was done about what failed (D-22).
    recovery: Ladder,
    /// How the run ended, if it did.
    ended: Option<End>,
    /// What was used, by who was asked.
    #[serde(skip)]
    roles: BTreeMap<Arc<str>, Spent>,
    #[serde(skip)]
    made: Made,
    /// The last event that may have let a node begin.
    #[serde(skip)]
    released: u64,
    #[serde(skip)]
    by_frame: HashMap<FramePath, usize>,
    /// Nodes of inner graphs.
    #[serde(skip)]
    inner: Table<GraphIx, Nodes>,
    #[serde(skip)]
    calls: HashMap<EffectId, calls::CallAt>,
    #[serde(skip)]
    questions: HashMap<Arc<str>, (usize, usize)>,
    #[serde(skip)]
    graph: Nodes,
    /// The node that the last event was about.
    #[serde(skip)]
    touched: Option<usize>,
    /// Those that it cut off.
    #[serde(skip)]
    cut_off: Vec<usize>,
}

/// What records brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Where the nodes that something happened to are in [`Timeline::nodes`], one for each event that was about one, and
    /// those that were cut off by it.
    pub nodes: Vec<usize>,
    /// Whether nodes may stand elsewhere than before without an event of their own.
    pub moved: bool,
}

impl Timeline {
    /// Of a run of this graph that has not begun.
    pub fn new(graph: &Arc<Graph>) -> Self {
        let inner = graph.graphs.values().map(Nodes::of).collect();
        let (frames, by_frame) = (vec![FrameTimeline::root()], HashMap::from([(FramePath::default(), 0)]));
        Self { graph: Nodes::of(graph), inner, frames, by_frame, ..Self::default() }
    }

    /// What was used by each role of a model, and by each operation that uses models.
    pub fn roles(&self) -> &BTreeMap<Arc<str>, Spent> {
        &self.roles
    }

    /// Takes in the next records, all of one commit: `state` is that after the last of them. What there is new.
    pub fn events(&mut self, state: &State, records: &[Record]) -> News {
        self.follow(state, records, |record| record.at, |_, _, _| {})
    }

    /// The same by another clock than the journal's, which anybody can set: `clock` says when a record happened. After each record
    /// `told` has the timeline as it is then, and the record with its moment.
    pub fn follow(
        &mut self,
        state: &State,
        records: &[Record],
        clock: impl Fn(&Record) -> i64,
        mut told: impl FnMut(&Self, Moment, &Record),
    ) -> News {
        let first = state.events().saturating_sub(records.len() as u64) + 1;
        let mut news = News::default();
        for (n, record) in (first..).zip(records) {
            let now = Moment { n, at: clock(record) };
            news.moved |= self.event(state, now, record);
            news.nodes.extend(self.touched.take().into_iter().chain(self.cut_off.drain(..)));
            told(self, now, record);
        }
        if news.moved {
            self.settle(state);
        }
        self.ended = state.ended().map(|(end, _)| end);
        news
    }

    /// All node instances, in the order in which something happened to them.
    pub fn nodes(&self) -> &[NodeTimeline] {
        &self.nodes
    }

    /// A node of a frame, if anything happened to it.
    pub fn node(&self, frame: &FramePath, id: &str) -> Option<&NodeTimeline> {
        self.nodes.get(self.frames.get(*self.by_frame.get(frame)?)?.node(id)?)
    }

    /// What people are told that a node instance is (W-03): its id behind the frames that it is in.
    pub fn told<'t>(&'t self, node: &'t NodeTimeline) -> Cow<'t, str> {
        match self.frames.get(node.within) {
            Some(frame) => frame.names.told(&node.node),
            None => Cow::Borrowed(&node.node),
        }
    }

    /// What events call a node instance.
    pub fn event_name(&self, node: &NodeTimeline) -> String {
        match self.graph.graph().graphs.is_empty() {
            true => node.node.to_string(),
            false => {
                Place { frames: node.frame.frames(), node: Cow::Borrowed(&node.node), visit: 1 }.to_string()
            }
        }
    }

    /// Where the node that an event names is in [`Timeline::nodes`], if anything happened to it.
    pub fn named(&self, name: &str) -> Option<usize> {
        match self.graph.graph().graphs.is_empty() {
            true => self.frames.first()?.node(name),
            false => {
                let place = Place::parse(name)?;
                self.frames.get(*self.by_frame.get(place.frames.as_str())?)?.node(&place.node)
            }
        }
    }

    /// A node of the document's own graph, if anything happened to it.
    pub fn root(&self, id: &str) -> Option<&NodeTimeline> {
        self.node(&FramePath::default(), id)
    }

    /// The first event.
    pub fn first(&self) -> Option<Moment> {
        self.from_to.map(|(first, _)| first)
    }

    /// The last event.
    pub fn last(&self) -> Option<Moment> {
        self.from_to.map(|(_, last)| last)
    }

    /// How the run ended, if it did.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// What was done about what failed, in the order of the journal (D-22).
    pub fn recovery(&self) -> &Ladder {
        &self.recovery
    }

    /// The run that this one is a fork of.
    pub fn source(&self) -> Option<&Arc<str>> {
        self.forked.as_ref().map(|(_, source)| source)
    }

    /// The last event that is not its own, of a fork; else 0.
    pub fn left_source(&self) -> u64 {
        self.forked.as_ref().map_or(0, |(n, _)| *n)
    }

    /// A moment on the run's line of time: what a fork shares with its source is moved up to it, so that times between
    /// moments are times of the run. A fork may be made long after its source ended.
    pub fn line(&self, moment: Moment) -> i64 {
        let behind = self.gaps.iter().filter(|(gap, _)| moment.n < *gap).map(|(_, gap)| gap);
        moment.at.saturating_add(behind.sum())
    }

    /// How much of the current visit of a node was taken over from another run or an earlier visit.
    pub fn reuse(&self, node: &NodeTimeline) -> Option<Reuse<'_>> {
        let visit = node.current()?;
        let from = self.source();
        let shared = self.forked.as_ref().is_some_and(|(n, _)| visit.ended.is_some_and(|ended| ended.n < *n));
        match (shared, visit.reused) {
            (true, _) => Some(Reuse { from, calls: 0, of: 0 }),
            (false, 0) => None,
            (false, calls) => Some(Reuse { from, calls, of: calls.saturating_add(visit.requested) }),
        }
    }

    /// Takes an event in; whether it may have undone what had happened.
    fn event(&mut self, state: &State, now: Moment, record: &Record) -> bool {
        let n = now.n;
        if let Event::Forked(fork) = &record.event {
            if fork.graph.is_some() {
                // A fork that began another document: what was told was told of the one before (E-19).
                *self = Self::new(state.graph());
            }
            let last = self.last().unwrap_or(now);
            self.gaps.push((n, now.at.saturating_sub(last.at).max(0)));
            self.forked = Some((n, fork.source.clone()));
        }
        self.from_to = Some((self.first().unwrap_or(now), now));
        if matches!(&record.event, Event::Resumed { .. } | Event::Forked(_) | Event::Spliced { .. }) {
            self.graph.follow(state);
            if self.inner.len() != state.graph().graphs.len() {
                self.inner = state.graph().graphs.values().map(Nodes::of).collect();
            }
        }
        let climbing =
            matches!(&record.event, Event::NodeFinished { node, .. } if self.recovery.is_open(node));
        self.recovery.event(&self.graph, n, now.at, &record.event);
        self.touched = None;
        self.node_event(now, &record.event);
        self.frame_event(self.touched, now, &record.event);
        self.call_event(state, now, &record.event);
        if releases(&record.event) {
            self.released = n;
        }
        climbing
            || matches!(
                &record.event,
                Event::Resumed { .. } | Event::Forked(_) | Event::Spliced { .. } | Event::Recovered(_)
            )
    }

    /// What begins, ends and is said.
    fn node_event(&mut self, now: Moment, event: &Event) {
        match event {
            Event::NodeStarted { node, .. } => {
                let released = self.released;
                if let Some(row) = self.make(node, now) {
                    row.begin(released, Some(now));
                }
                self.touched.into_iter().for_each(|row| self.frame_goes_on(row));
            }
            Event::NodeFinished { node, fault, .. } => {
                let released = self.released;
                let Some(row) = self.make(node, now) else { return };
                if row.current().is_none() {
                    // It failed before it could start.
                    row.begin(released, None);
                }
                if let Some(visit) = row.current_mut() {
                    (visit.ended, visit.fault) = (Some(now), fault.clone());
                }
                self.cut_off_within(node, now);
            }
            Event::NodeSkipped { node, because } => {
                if let Some(row) = self.make(node, now) {
                    row.skipped = Some(because.clone());
                }
            }
            Event::Left { node, .. } => self.cut_off_within(node, now),
            Event::Entered { node, .. } => drop(self.make(node, now)),
            Event::Unrouted { node, .. } if !is_frame(node) => drop(self.make(node, now)),
            Event::Opened { node, from, start, end, .. } => {
                if let Some(visit) = self.make(node, now).and_then(NodeTimeline::current_mut) {
                    visit.thread.opened = Some(Opened { from: from.clone(), start: *start, end: *end });
                }
            }
            Event::Appended { node, .. } if !is_frame(node) => {
                if let Some(visit) = self.make(node, now).and_then(NodeTimeline::current_mut) {
                    visit.thread.appended += 1;
                }
            }
            Event::Published { node, to, .. } => {
                if let Some(visit) = self.make(node, now).and_then(NodeTimeline::current_mut) {
                    visit.thread.published = Some(to.clone());
                }
            }
            _ => {}
        }
    }

    /// What still ran in the frames that a node has left was cut off.
    fn cut_off_within(&mut self, node: &str, now: Moment) {
        let inner = |row: &NodeTimeline| row.current().map(|visit| visit.inner.clone()).unwrap_or_default();
        let mut rows = self.make(node, now).map(|row| inner(row)).unwrap_or_default();
        while let Some(at) = rows.pop() {
            let Some(row) = self.nodes.get_mut(at) else { continue };
            if let Some(visit) = row.current_mut().filter(|visit| visit.ended.is_none()) {
                (visit.ended, visit.cancelled) = (Some(now), true);
                rows.extend(inner(row));
                self.cut_off.push(at);
            }
        }
    }

    /// What is to begin anew has not started yet (P-21), nor has what ran ahead of a recovery and was undone (D-16): the state
    /// knows.
    fn settle(&mut self, state: &State) {
        for view in state.node_views().filter(|view| view.started == 0 && view.ended.is_none()) {
            let at = self.frames.first().and_then(|root| root.node(view.node));
            if let Some(row) = at.and_then(|at| self.nodes.get_mut(at)) {
                (row.goes_on, row.skipped) = (false, None);
            }
        }
    }

    /// The row of the node that an event names, made where there is none.
    fn make(&mut self, name: &str, now: Moment) -> Option<&mut NodeTimeline> {
        let at = match self.graph.graph().graphs.is_empty() {
            true => self.row(0, name),
            false => {
                let place = Place::parse(name)?;
                let frame = self.frame_of(place.frames, now)?;
                self.row(frame, &place.node)
            }
        };
        self.touched = Some(at);
        self.nodes.get_mut(at)
    }

    /// Where the row of a frame is.
    fn frame_of(&mut self, path: FramePathRef<'_>, now: Moment) -> Option<usize> {
        match self.by_frame.get(path.as_str()) {
            Some(at) => Some(*at),
            None => self.frame_at(&path.to_path(), now),
        }
    }
}

/// Whether an event is about a frame and not about a node.
fn is_frame(name: &str) -> bool {
    name.is_empty() || name.ends_with('/')
}

/// Whether a node may begin because of it.
fn releases(event: &Event) -> bool {
    matches!(
        event,
        Event::Started(_)
            | Event::Resumed { .. }
            | Event::Forked(_)
            | Event::Answered { .. }
            | Event::NodeFinished { .. }
            | Event::NodeSkipped { .. }
            | Event::Entered { .. }
            | Event::Spliced { .. }
    )
}

#[cfg(test)]
mod tests;
