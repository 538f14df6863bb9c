//! What was recorded in frames, for forks of the run (E-29, E-36): frames end and are gone, so it is kept as it comes.

use super::any_version;
use crate::effect::{EffectId, Effects};
use crate::graph::Graph;
use crate::ids::{FrameIx, NodeIx, NodeRef, ROOT};
use crate::machine::frame::{Frame, Frames};
use crate::machine::node::{LeafPhase, NodePhase};
use crate::machine::opened::FrameStatus;
use crate::machine::phase::{Slot, SlotState};
use crate::machine::reuse::cache::{Key, Spot};
use crate::machine::reuse::recording::{Inner, NodePlace, Recording};
use crate::machine::state::State;
use crate::place::{FramePath, FramePathRef};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl State {
    /// A state that also remembers what its run recorded, for [`State::past`]. Everything else is as in
    /// [`State::new`].
    pub fn recording(graph: Arc<Graph>) -> State {
        State { recorder: Some(Box::default()), ..State::new(graph) }
    }

    /// What the run has recorded so far. Only a state that began with [`State::recording`] knows of nodes that
    /// have retired.
    pub fn past(mut self) -> Recording {
        self.take_past()
    }

    /// Whether it began with [`State::recording`].
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// The run as it is now, as a state that began with [`State::new`] has it.
    #[must_use]
    pub fn snapshot(&mut self) -> State {
        // What only a recording state keeps is as much as all the rest: it is set aside, and not copied.
        let recorder = self.recorder.take();
        let kept: Vec<_> = self.frames.iter_mut().map(Frame::take_retired).collect();
        let now = self.clone();
        for (frame, kept) in self.frames.iter_mut().zip(kept) {
            frame.keep_retired(kept);
        }
        self.recorder = recorder;
        now
    }

    /// What the run has recorded so far, for a fork of it that leaves it here: its `forked` is to be the next event of this state, which
    /// goes on as the fork's.
    pub fn take_past(&mut self) -> Recording {
        self.keep_all_unknown();
        let recorder = self.recorder.as_mut();
        let mut past = recorder.map(|recorder| std::mem::take(&mut **recorder)).unwrap_or_default();
        past.graph = Arc::clone(self.graph());
        past.in_flight = self.in_flight();
        // Of all others it was kept as it came.
        let stays = self.frames.root().flow.is_none();
        for node in self.frames.root().nodes_from(NodeIx(0)).map(NodeRef::root).filter(|_| stays) {
            self.note_unknown(node);
            let id = self.def(node).id.clone();
            past.kept.extend(self.collect(node).into_iter().map(|kept| (id.clone(), kept)));
            let visits = past.visits.entry(id).or_insert(0);
            *visits = self.frames[node].visit.max(*visits);
        }
        past.doubtful |= self.reuse.is_doubtful();
        self.reuse.age(|_| false);
        let (unmatched, unmatched_unknown) = self.reuse.take_unmatched();
        let (entries, unknown) = std::mem::take(&mut self.reuse).into_parts();
        let id = |node: Spot| self.frames.root().graph.nodes[node.node].id.clone();
        let here = |node: Spot| stays && node.frame == 0;
        let entries = entries.filter(|entry| here(entry.node));
        past.kept.extend(entries.map(|entry| (id(entry.node), entry.kept)));
        let unknown = unknown.into_iter().filter(|(node, _)| here(*node));
        past.unknown.extend(unknown.map(|(node, write)| (id(node), write)));
        past.kept.extend(unmatched);
        past.unknown.extend(unmatched_unknown);
        let prior_visits =
            self.frames.root_mut().dataflow.as_mut().map(|dataflow| &mut dataflow.prior_visits);
        for (id, (visit, ..)) in prior_visits.map(std::mem::take).unwrap_or_default() {
            let visits = past.visits.entry(id).or_insert(0);
            *visits = visit.max(*visits);
        }
        past
    }

    /// Fills the pool with what the source recorded, for the nodes from `first` on. A recording state keeps the
    /// rest for its own forks.
    pub(crate) fn inherit(
        &mut self,
        past: &Recording,
        texts: &BTreeMap<EffectId, Arc<str>>,
        places: &BTreeMap<Arc<str>, NodeIx>,
        first: NodeIx,
    ) {
        let keeps = self.recorder.is_some();
        let mut rest = Recording::default();
        self.reuse.doubt(past.doubtful);
        // Nodes that came and went with splices are found by their ids, unless others stand for those (D-20).
        let taken: BTreeSet<NodeIx> = places.values().copied().collect();
        let root = self.frames.root();
        let place = |id: &Arc<str>| {
            let same = || root.of_id(id).filter(|node| !taken.contains(node));
            places.get(id).copied().or_else(same)
        };
        let begun = past.visits.iter().filter(|(_, visits)| **visits > 0);
        begun.filter_map(|(id, _)| place(id)).for_each(|node| self.reuse.note_begun(Spot { frame: 0, node }));
        for (id, kept) in past.edited(texts) {
            match place(id) {
                Some(node) if node >= first && (kept.is_success() || kept.unknown().is_some()) => {
                    self.reuse.add(Spot { frame: 0, node }, kept.into_owned(), true);
                }
                None => {
                    if let Some(write) = kept.write.filter(|_| kept.is_success()) {
                        self.reuse.add_elsewhere(write);
                    }
                    self.reuse.add_unmatched(id.clone(), kept.into_owned());
                }
                Some(node) => {
                    if let Some(lineage) = self.lineage.as_mut().filter(|_| node < first) {
                        lineage.keeps(&kept.effect, kept.saved().0);
                    }
                    if keeps {
                        rest.kept.push((id.clone(), kept.into_owned()));
                    }
                }
            }
        }
        for (id, write) in &past.unknown {
            match place(id) {
                Some(node) if node >= first => self.reuse.add_unknown(Spot { frame: 0, node }, *write),
                None => {
                    self.reuse.add_elsewhere(*write);
                    self.reuse.add_unmatched_unknown(id.clone(), *write);
                }
                Some(_) => drop(rest.unknown.insert((id.clone(), *write))),
            }
        }
        let frame = self.frames.root_mut();
        for node in frame.nodes_from(NodeIx(0)) {
            let seen = past.visits.get(&frame.graph.nodes[node].id).copied().unwrap_or(0);
            let Some(row) = frame.nodes.get_mut(node) else { break };
            row.visit = row.visit.max(seen);
            row.tries = 0;
        }
        // Those of nodes that are there are in their rows.
        let gone: Vec<_> = past.visits.iter().filter(|(id, _)| frame.of_id(id).is_none()).collect();
        if let Some(dataflow) = &mut frame.dataflow {
            dataflow.prior_visits.values_mut().for_each(|prior| *prior = (prior.0, 0, 0));
            for (id, seen) in gone {
                let prior_visits = dataflow.prior_visits.entry(id.clone()).or_default();
                prior_visits.0 = prior_visits.0.max(*seen);
            }
        }
        if keeps {
            let (visits, renamed) = (past.visits.clone(), past.renamed.clone());
            self.recorder = Some(Box::new(Recording { visits, renamed, ..rest }));
        }
    }
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

    /// Nodes that have asked for something and got nothing yet.
    pub(in crate::machine) fn in_flight(&self) -> BTreeSet<NodePlace> {
        self.pending.values().map(|pending| self.site(pending.node)).collect()
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
        past: &Arc<Recording>,
        texts: &BTreeMap<EffectId, Arc<str>>,
        places: Option<&BTreeMap<Arc<str>, NodeIx>>,
    ) {
        self.reuse.note_source(past);
        let moved =
            |site: &NodePlace| places.map_or_else(|| Some(site.clone()), |places| self.moved(site, places));
        let kept = past.inner.kept.values().map(|(site, kept)| (site, kept));
        let rows: Vec<_> =
            past.edited_of(kept, texts).into_iter().map(|(site, kept)| (moved(site), kept)).collect();
        let unknown: Vec<_> = past.inner.unknown.iter().map(|(site, key)| (moved(site), *key)).collect();
        let visits = past.inner.visits.iter().filter_map(|(site, visits)| Some((moved(site)?, *visits)));
        let visits: BTreeMap<NodePlace, u32> = visits.collect();
        let in_flight: Vec<NodePlace> = past.in_flight.iter().filter_map(moved).collect();
        let mut inner = Inner { visits, ..Inner::default() };
        for (site, kept) in rows {
            match site.as_ref().and_then(|site| self.spot_of(site)).zip(site) {
                Some((spot, site)) => {
                    let stands = self.is_final(&site);
                    if let Some(lineage) = self.lineage.as_mut().filter(|_| stands) {
                        lineage.keeps(&kept.effect, kept.saved().0);
                    }
                    if self.recorder.is_some() {
                        inner.kept.insert(kept.effect.clone(), (site, kept.clone().into_owned()));
                    }
                    if !stands && (kept.is_success() || kept.unknown().is_some()) {
                        self.reuse.add(spot, kept.into_owned(), true);
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
                self.reuse.note_begun(spot);
            }
        }
        for site in in_flight {
            if let Some(spot) = self.spot_of(&site) {
                self.reuse.note_in_flight(spot);
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
                let failed = flow.at == node && flow.has_ended() && self.fault().is_some();
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
