//! The frames of a run as reports show them (W-03): one after the other under their names, or one by its name. A look borrows the
//! frames and copies none of their conversations.

use super::{RunStatus, View};
use crate::event::Event;
use crate::fault::Fault;
use crate::graph::{Act, PathsOf};
use crate::ids::{NodeIx, ThreadIx};
use crate::machine::frame::Frame;
use crate::machine::node::Done;
use crate::machine::opened::Children;
use crate::messages::ThreadView;
use crate::place::names::{Names, parts};
use crate::place::{EffectPlace, Instance, Place};
use std::borrow::Cow;
use std::sync::Arc;

/// A frame under its names.
#[derive(Clone, Debug)]
pub(super) struct Named<'s> {
    pub(super) frame: &'s Frame,
    pub(super) names: Names,
    /// Whether its threads are its own: not those of an iteration, nor those of a main path, which the frame around it has.
    own_threads: bool,
    /// Whether its variables are, and nobody else's (W-11).
    pub(super) own_variables: bool,
    /// As people are told of the frame: with the number of an iteration.
    pub(super) told: Arc<str>,
    /// Nodes from here on are hidden.
    pub(super) horizon: u32,
}

impl<'s> Named<'s> {
    /// A node that has a result here.
    pub(super) fn finished(&self, node: NodeIx) -> Option<&'s Done> {
        self.frame.done(node).filter(|done| node.0 < self.horizon && !done.skipped)
    }

    /// The frames that a node of it has opened.
    fn children(&self, node: NodeIx) -> Option<(&'s Children, &'s Act)> {
        self.frame.children(node).filter(|_| node.0 < self.horizon)
    }
}

/// The path of a fork whose threads took the place of those around it, if one's did (W-10).
fn adopted(children: &Children, act: &Act) -> Option<Arc<str>> {
    match (children, act) {
        (Children::Fork(phase), Act::Fork(paths)) => phase.adopted(paths).map(|at| paths.of.id(at)),
        _ => None,
    }
}

/// What comes next on a walk.
enum Next<'s> {
    /// A frame with all in it.
    Frame(Named<'s>),
    /// The nodes of one from here on.
    Nodes(Named<'s>, NodeIx),
    /// A node behind all in the frames that it opened.
    Node(Named<'s>, NodeIx),
}

impl<'s> View<'s> {
    /// The document's own graph.
    pub(super) fn top(self) -> Named<'s> {
        Named {
            frame: self.root(),
            names: Names::default(),
            own_threads: true,
            own_variables: true,
            told: Arc::default(),
            horizon: self.horizon,
        }
    }

    /// All frames that are known, those around others first.
    pub(super) fn frames(self) -> impl Iterator<Item = Named<'s>> {
        let mut next = vec![self.top()];
        std::iter::from_fn(move || {
            let frame = next.pop()?;
            if !self.state.frames.are_flat() {
                let nodes = frame.frame.nodes.iter().map(|(node, _)| node);
                let inner: Vec<Named<'s>> = nodes.flat_map(|node| self.within(&frame, node)).collect();
                next.extend(inner.into_iter().rev());
            }
            Some(frame)
        })
    }

    /// Nodes with a result, each behind those of the frames that it opened.
    pub(super) fn finished(self) -> impl Iterator<Item = (Named<'s>, NodeIx, &'s Done)> {
        self.nodes().filter_map(|(frame, node)| {
            let done = frame.finished(node)?;
            Some((frame, node, done))
        })
    }

    /// All nodes of all frames, each behind those of the frames that it opened.
    pub(super) fn nodes(self) -> impl Iterator<Item = (Named<'s>, NodeIx)> {
        let mut next = vec![Next::Frame(self.top())];
        std::iter::from_fn(move || {
            loop {
                match next.pop()? {
                    Next::Frame(frame) => next.push(Next::Nodes(frame, NodeIx(0))),
                    Next::Nodes(frame, node) => {
                        if node.0 as usize >= frame.frame.graph.nodes.len() {
                            continue;
                        }
                        let inner = self.within(&frame, node);
                        next.push(Next::Nodes(frame.clone(), NodeIx(node.0 + 1)));
                        next.push(Next::Node(frame, node));
                        next.extend(inner.into_iter().rev().map(Next::Frame));
                    }
                    Next::Node(frame, node) => {
                        #[cfg(test)]
                        crate::work::step();
                        return Some((frame, node));
                    }
                }
            }
        })
    }

    /// The frames that a node of a frame has opened, in order.
    pub(super) fn within(self, around: &Named<'s>, node: NodeIx) -> Vec<Named<'s>> {
        let Some((children, act)) = around.children(node) else { return Vec::new() };
        let adopted = adopted(children, act);
        let known = children.known(act, &self.state.frames).into_iter();
        known
            .map(|(instance, frame)| self.named(around, (node, act), &instance, frame, adopted.as_deref()))
            .collect()
    }

    /// One of the frames that a node of a frame has opened.
    fn instance(self, around: &Named<'s>, node: NodeIx, instance: &Instance<'_>) -> Option<Named<'s>> {
        let (children, act) = around.children(node)?;
        let frame = children.frame(instance, act, &self.state.frames)?;
        Some(self.named(around, (node, act), instance, frame, adopted(children, act).as_deref()))
    }

    /// A frame that a node has opened, under its names. `adopted`: the path whose threads those around it are now.
    fn named(
        self,
        around: &Named<'s>,
        (node, act): (NodeIx, &Act),
        instance: &Instance<'_>,
        frame: &'s Frame,
        adopted: Option<&str>,
    ) -> Named<'s> {
        #[cfg(test)]
        crate::work::step();
        let own_threads = match instance {
            Instance::Path(path) => adopted != Some(&**path),
            Instance::Iteration(_) => false,
            Instance::Sub => true,
        };
        let names = around.names.within(&around.frame.graph.nodes[node].id, act, instance);
        Named {
            frame,
            told: names.frame(instance).into(),
            names,
            own_threads,
            own_variables: *instance == Instance::Sub,
            horizon: self.horizon_in(frame),
        }
    }

    /// Nodes of an inner frame from here on are hidden: only a dataflow has such that ran ahead (P-20).
    fn horizon_in(self, frame: &Frame) -> u32 {
        let failed = frame.head_of_retirement().is_some_and(|done| done.fatal);
        match self.status {
            _ if frame.flow.is_some() || self.all => u32::MAX,
            _ if frame.is_over() && !failed => u32::MAX,
            _ if failed => frame.retired() + 1,
            RunStatus::Running => u32::MAX,
            RunStatus::Waiting => frame.retired() + 1,
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => frame.retired(),
        }
    }

    /// The frame that reports put these parts before the names of, and whether that is so for its nodes, too.
    fn find(self, name: &str) -> Option<(Named<'s>, Cow<'_, str>)> {
        let (parts, last) = parts(name)?;
        let mut at = self.top();
        for part in parts {
            let (around, node) = self.find_node(&at, &part.node)?;
            let instance = part.path.map_or(Instance::Sub, Instance::Path);
            at = self.instance(&around, node, &instance)?;
        }
        Some((at, last))
    }

    /// Where a node is that is called so in a frame, or in those within it whose nodes have no other names.
    fn find_node(self, at: &Named<'s>, id: &str) -> Option<(Named<'s>, NodeIx)> {
        let mut next = vec![at.clone()];
        while let Some(frame) = next.pop() {
            if let Some(node) = frame.frame.by_id(id) {
                return Some((frame, node));
            }
            if self.state.frames.are_flat() {
                return None;
            }
            // Those of paths over a list, of subgraphs and plans have names of their own.
            let shares = |node: &NodeIx| {
                #[cfg(test)]
                crate::work::step();
                frame.children(*node).is_some_and(|(_, act)| match act {
                    Act::Fork(paths) => matches!(paths.of, PathsOf::Listed(_)),
                    act => matches!(act, Act::Loop(_)),
                })
            };
            let nodes = frame.frame.nodes.iter().map(|(node, _)| node).filter(shares);
            next.extend(nodes.flat_map(|node| self.within(&frame, node)));
        }
        None
    }

    /// The node of that name (W-03).
    pub(super) fn node_called(self, name: &str) -> Option<(Named<'s>, NodeIx)> {
        let (at, last) = match self.find_node(&self.top(), name) {
            Some(found) => return Some(found),
            None => self.find(name)?,
        };
        // Paths of listed forks name threads only.
        let (frame, node) = self.find_node(&at, &last)?;
        (*frame.names.node(&frame.frame.graph.nodes[node].id) == *name
            || *frame.names.node(frame.frame.graph.nodes[node].shown_id()) == *name)
            .then_some((frame, node))
    }

    /// The thread of that name, if it exists: of the document's own graph, or of a frame (W-03).
    pub(super) fn thread_called(self, name: &str) -> Option<ThreadView<'s>> {
        let top = self.top();
        if let Some(ix) = top.frame.schedule.thread_by_name.get(name) {
            return self.thread_in(&top, *ix);
        }
        let (frame, last) = self.find(name)?;
        let ix = *frame.frame.schedule.thread_by_name.get(&*last).filter(|_| frame.own_threads)?;
        self.thread_in(&frame, ix)
    }

    /// The threads of a frame that are its own, by name.
    pub(super) fn threads_of(self, frame: Named<'s>) -> impl Iterator<Item = (Cow<'s, str>, ThreadView<'s>)> {
        let threads = frame.frame.graph.threads.iter().filter(move |_| frame.own_threads);
        threads
            .filter_map(move |(ix, def)| Some((frame.names.thread(&def.name), self.thread_in(&frame, ix)?)))
    }

    /// The threads that the last event can have changed, by name: those of the frame that it is about and of the frames around that
    /// (S-31). `before` is the run's status ahead of that event. `None` if it can have changed any thread, or which there are.
    pub fn touched(
        self,
        event: &Event,
        before: RunStatus,
    ) -> Option<impl Iterator<Item = (Cow<'s, str>, ThreadView<'s>)>> {
        // What ends or begins with the run may be in any of its threads.
        if self.state.status() != before {
            return None;
        }
        let place = match event {
            Event::NodeStarted { node, .. }
            | Event::Opened { node, .. }
            | Event::Appended { node, .. }
            | Event::Published { node, .. }
            | Event::Warned { node, .. }
            // One that failed may hide what the nodes behind it did (P-20).
            | Event::NodeFinished { node, fault: None, .. } => Place::parse(node)?,
            Event::Requested { effect, .. }
            | Event::Completed { effect, .. }
            | Event::Retried { effect, .. }
            | Event::Reused { effect, .. }
            | Event::Refused { effect, .. } => EffectPlace::parse(&effect.0)?.place,
            _ => return None,
        };
        let mut at = self.top();
        let mut around = vec![at.clone()];
        for step in place.frames.steps() {
            at = self.instance(&at, at.frame.by_id(&step.node)?, &step.instance)?;
            around.push(at.clone());
        }
        // With its end a path's threads may take the place of others (W-10).
        if matches!(event, Event::NodeFinished { .. }) && !place.frames.is_root() && at.frame.is_over() {
            return None;
        }
        Some(around.into_iter().flat_map(move |frame| self.threads_of(frame)))
    }

    fn thread_in(self, frame: &Named<'s>, thread: ThreadIx) -> Option<ThreadView<'s>> {
        let thread = self.state.visible_thread(frame.frame, thread, frame.horizon)?;
        Some(ThreadView::new(&self.state.messages, thread))
    }
}

/// A node that something has happened to, for who begins to look at a run in its middle.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSoFar<'s> {
    /// The visit that counts.
    pub place: Place<'s>,
    /// When it started, in milliseconds since 1970; 0 if it has not.
    pub started: i64,
    /// When it ended, if it has.
    pub ended: Option<i64>,
    /// Why it failed.
    pub fault: Option<&'s Fault>,
    /// It does not run, because of a node that failed (D-16).
    pub skipped: bool,
    /// How many paths it has, of a fork that has begun.
    pub paths: Option<u32>,
    /// Whether the frame that it is in is no more.
    pub gone: bool,
}

impl<'s> View<'s> {
    /// Every node that has started, or was skipped: frames before what nodes in them opened.
    pub fn so_far(self) -> impl Iterator<Item = NodeSoFar<'s>> {
        self.frames().flat_map(move |frame| {
            let frame = frame.frame;
            let open = frame.opened_by.is_none() || self.state.frames.at(frame.path.frames()).is_some();
            frame.nodes.iter().filter_map(move |(node, row)| {
                let done = frame.done(node);
                let skipped = done.is_some_and(|done| done.skipped);
                (row.started_at > 0 || skipped || done.is_some()).then(|| NodeSoFar {
                    place: Place {
                        frames: frame.path.frames(),
                        node: Cow::Borrowed(&frame.graph.nodes[node].id),
                        visit: row.visit.max(1),
                    },
                    started: row.started_at,
                    ended: done.map(|done| done.finished_at),
                    fault: done.and_then(|done| done.fault.as_deref()),
                    skipped,
                    paths: frame.children(node).and_then(|(children, _)| children.paths()),
                    gone: !open,
                })
            })
        })
    }
}
