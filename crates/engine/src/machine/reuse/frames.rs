//! What was recorded in frames, for forks of the run (E-29, E-36): frames end and are gone, so it is kept as it comes.

use super::any_version;
use super::cache::{Key, RecordedOutcome, Spot};
use super::recording::Recording;
use crate::effect::{EffectId, Effects};
use crate::graph::Graph;
use crate::ids::{FrameIx, NodeIx, NodeRef, ROOT};
use crate::machine::children::FrameStatus;
use crate::machine::frame::{Frame, Frames};
use crate::machine::state::{LeafPhase, NodePhase, Slot, SlotState, State};
use crate::place::{FramePath, FramePathRef};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A node of a flow, or of a frame within another, whatever its visit and those of the nodes around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodePlace {
    frame: FramePath,
    node: Arc<str>,
}

/// What such nodes have recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inner {
    pub(crate) kept: BTreeMap<EffectId, (NodePlace, RecordedOutcome)>,
    /// Writes that were in flight when they were cut off.
    unknown: BTreeSet<(NodePlace, Key)>,
    /// How often each was started, so that no effect id comes twice.
    visits: BTreeMap<NodePlace, u32>,
}

/// As it comes.
impl State {
    /// Whether what a node records is kept at once. Nodes of a dataflow that is in no other frame stay where they are.
    fn keeps_at_once(&self, node: NodeRef) -> bool {
        self.recorder.is_some() && (node.frame != ROOT || self.of(node).flow.is_some())
    }

    fn site(&self, node: NodeRef) -> NodePlace {
        NodePlace { frame: self.of(node).path.without_visits(), node: self.def(node).id.clone() }
    }

    /// A node has recorded what a request came to.
    pub(in crate::machine) fn keep_at_once(&mut self, node: NodeRef) {
        if !self.keeps_at_once(node) {
            return;
        }
        let last = self.visit(node).and_then(|visit| visit.records.iter().next_back()).cloned();
        let Some(kept) = last.and_then(|last| self.recorded(node, last)) else { return };
        let site = self.site(node);
        if let Some(recorder) = &mut self.recorder {
            recorder.inner.kept.insert(kept.effect.clone(), (site, kept));
        }
    }

    /// A node is started.
    pub(in crate::machine) fn keep_visit(&mut self, node: NodeRef) {
        if self.keeps_at_once(node) {
            let (site, visit) = (self.site(node), self.frames[node].visit);
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.visits.insert(site, visit);
            }
        }
    }

    /// Nobody knows what becomes of the writes of a node that are in flight.
    pub(in crate::machine) fn keep_unknown(&mut self, node: NodeRef) {
        if self.keeps_at_once(node) {
            let (site, keys) = (self.site(node), self.writes_in_flight(node));
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.unknown.extend(keys.into_iter().map(|key| (site.clone(), key)));
            }
        }
    }

    /// Calls of a node that may write, and of which nobody knows yet whether they did: nor does the run that this is a fork of.
    pub(in crate::machine) fn writes_in_flight(&self, node: NodeRef) -> Vec<Key> {
        let slots = self.calls(node).map_or(&[][..], |phase| &phase.slots);
        let open = |slot: &&Slot| {
            let in_flight = matches!(slot.state, SlotState::Running | SlotState::Lost(_));
            slot.effects == Effects::Write && in_flight && !self.reuse.knows(&slot.effect)
        };
        slots.iter().filter(open).map(|slot| any_version(&slot.call.name, &slot.call.arguments)).collect()
    }

    /// A person has said that a call may run, or what became of it.
    pub(in crate::machine) fn settle_write(&mut self, node: NodeRef, call: Key) {
        self.reuse.settle(self.spot(node), call);
        if self.keeps_at_once(node) {
            let site = self.site(node);
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.unknown.remove(&(site, call));
            }
        }
    }

    /// What is in flight in frames is unknown to a fork.
    pub(in crate::machine) fn keep_all_unknown(&mut self) {
        let running = |(ix, frame): (FrameIx, &Frame)| {
            let nodes = frame.nodes.iter().filter(|(_, row)| matches!(row.phase, NodePhase::Running(_)));
            nodes.map(move |(node, _)| NodeRef { frame: ix, node }).collect::<Vec<_>>()
        };
        for node in self.frames.numbered().flat_map(running).collect::<Vec<NodeRef>>() {
            self.keep_unknown(node);
        }
    }
}

/// In a fork.
impl State {
    /// What the source recorded in frames stands for equal requests at the same places, but for what is final here. `places`: in a
    /// fork with another graph, which node stands for one of the source's own graph.
    pub(in crate::machine) fn inherit_frames(
        &mut self,
        past: &Recording,
        texts: &BTreeMap<EffectId, Arc<str>>,
        places: Option<&BTreeMap<Arc<str>, NodeIx>>,
    ) {
        self.reuse.note_answered(past.inner.kept.keys().chain(past.renamed.keys()).cloned());
        let moved =
            |site: &NodePlace| places.map_or_else(|| Some(site.clone()), |places| self.moved(site, places));
        let kept = past.inner.kept.values().map(|(site, kept)| (site.clone(), kept.clone()));
        let kept: Vec<(NodePlace, RecordedOutcome)> = past.edited_of(&kept.collect::<Vec<_>>(), texts);
        let rows: Vec<_> = kept.into_iter().map(|(site, kept)| (moved(&site), kept)).collect();
        let unknown: Vec<_> = past.inner.unknown.iter().map(|(site, key)| (moved(site), *key)).collect();
        let visits = past.inner.visits.iter().filter_map(|(site, visits)| Some((moved(site)?, *visits)));
        let visits: BTreeMap<NodePlace, u32> = visits.collect();
        let mut inner = Inner { visits, ..Inner::default() };
        for (site, kept) in rows {
            match site.as_ref().and_then(|site| self.spot_of(site)).zip(site) {
                Some((spot, site)) => {
                    let open = !self.is_final(&site) && (kept.is_success() || kept.unknown().is_some());
                    inner.kept.insert(kept.effect.clone(), (site, kept.clone()));
                    if open {
                        self.reuse.add(spot, kept, true);
                    }
                }
                None => kept.write.filter(|_| kept.is_success()).into_iter().for_each(|write| {
                    self.reuse.add_elsewhere(write);
                }),
            }
        }
        for (site, key) in unknown {
            match site.as_ref().and_then(|site| self.spot_of(site)).zip(site) {
                Some((spot, site)) => {
                    if !self.is_final(&site) {
                        self.reuse.add_unknown(spot, key);
                    }
                    inner.unknown.insert((site, key));
                }
                None => self.reuse.add_elsewhere(key),
            }
        }
        for (site, visits) in &inner.visits {
            if let Some(spot) = self.spot_of(site) {
                self.prior_visits.insert(spot, *visits);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.inner = inner;
        }
    }

    /// The site in a fork with another graph.
    fn moved(&self, site: &NodePlace, places: &BTreeMap<Arc<str>, NodeIx>) -> Option<NodePlace> {
        let graph = &self.frames.root().graph;
        let id = |old: &str| Some(graph.nodes.get(*places.get(old)?)?.id.clone());
        let mut steps = site.frame.frames().steps();
        let Some(mut first) = steps.next() else {
            return Some(NodePlace { node: id(&site.node)?, ..site.clone() });
        };
        let node = id(&first.node)?;
        first.node = (&*node).into();
        let frame = steps.fold(FramePath::default().with(&first), |path, step| path.with(&step));
        Some(NodePlace { frame, node: site.node.clone() })
    }

    fn spot_of(&mut self, site: &NodePlace) -> Option<Spot> {
        let node = self.frames.find(site.frame.frames(), &site.node)?;
        Some(Spot { frame: self.keys.give(&site.frame), node })
    }

    /// Whether what a site did stands: it is not begun anew.
    fn is_final(&self, site: &NodePlace) -> bool {
        let mut frame = self.frames.root();
        for step in site.frame.frames().steps() {
            let Some(node) = frame.by_id(&step.node) else { return false };
            if frame.is_final(node) {
                return true;
            }
            let Some(row) = frame.nodes.get(node) else { return false };
            let visit = match &row.phase {
                NodePhase::Running(visit) => Some(visit),
                NodePhase::Done(done) => done.more.as_ref().and_then(|more| more.interrupted.as_ref()),
                NodePhase::Waiting(_) => None,
            };
            let Some((LeafPhase::Frames(children), leaf)) =
                visit.and_then(|visit| Some((&visit.phase, visit.leaf?)))
            else {
                return false;
            };
            let act = &frame.graph.leaf(node, leaf).act;
            match children.frame_status(&step.instance, act, &self.frames) {
                FrameStatus::Ended => return true,
                FrameStatus::Alive(inner) => frame = inner,
                FrameStatus::NotBegun => return false,
            }
        }
        frame.by_id(&site.node).is_some_and(|node| frame.is_final(node))
    }

    /// How often a node was started in the run that this one was forked from.
    pub(in crate::machine) fn prior_visits(&self, node: NodeRef) -> u32 {
        match self.prior_visits.is_empty() {
            true => 0,
            false => self.prior_visits.get(&self.spot(node)).copied().unwrap_or(0),
        }
    }
}

impl Frame {
    /// Whether a node has ended and is not begun anew when the frame goes on.
    fn is_final(&self, node: NodeIx) -> bool {
        let ended = self.done(node).is_some();
        match &self.flow {
            Some(flow) => {
                let failed = flow.at == node && flow.has_ended() && self.fault.is_some();
                ended && !failed || self.is_through(node)
            }
            None => ended && node < self.first_anew(),
        }
    }
}

impl Frames {
    /// The node of that id in frames of that path, whether or not there is one now.
    fn find(&self, path: FramePathRef<'_>, id: &str) -> Option<NodeIx> {
        let root = self.root();
        let mut graphs: Vec<(&Graph, &Schedule)> = vec![(&root.graph, &root.schedule)];
        for step in path.steps() {
            let inner = graphs.iter().flat_map(|(graph, schedule)| {
                let node = schedule.by_id.get(&*step.node).and_then(|node| graph.nodes.get(*node));
                let leaves = node.into_iter().flat_map(|node| graph.leaves(node));
                leaves.filter_map(|leaf| self.inner(leaf.act.opens(&step.instance)?))
            });
            graphs = inner.collect();
        }
        graphs.iter().find_map(|(_, schedule)| schedule.by_id.get(id).copied())
    }
}
