//! What a fork has of its source: outcomes that it may take, what of it stands, and how often nodes were started (E-19, E-29).

use super::laid::{Ahead, Laid, Places, Row, Standing, moved};
use crate::effect::EffectId;
use crate::graph::Graph;
use crate::ids::{Ix, NodeIx, NodeRef};
use crate::machine::frame::{Frame, Frames};
use crate::machine::node::{LeafPhase, NodePhase};
use crate::machine::opened::FrameStatus;
use crate::machine::reuse::recording::{Inner, NodePlace, Recording};
use crate::machine::reuse::spot::{Keys, Spot};
use crate::machine::stands::Stands;
use crate::machine::state::State;
use crate::place::FramePathRef;
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Recording {
    /// Lays out what it has for forks that leave its run where its graph is that of `state`: each of them finds it so.
    pub fn lay_out(&self, state: &State) {
        self.laid(&state.frames, None);
    }
}

impl State {
    /// What the source recorded stands for equal requests at the same places, but for what is final here: of a run that is a dataflow, the
    /// nodes that stand, and what has ended in frames. `places`: in a fork with another graph, which node stands for one of the source's own.
    pub(crate) fn inherit(
        &mut self,
        past: &Arc<Recording>,
        texts: &BTreeMap<EffectId, Arc<str>>,
        places: Option<&Places>,
        stands: Stands,
    ) {
        self.reuse.doubt(past.doubtful);
        self.reuse.note_source(past);
        let laid = past.laid(&self.frames, places);
        self.number_frames(&laid);
        let standing = Arc::new(Standing::new(Arc::clone(&laid), stands, &self.frames));
        let mut ahead = Ahead::new(Arc::clone(&laid), Arc::clone(&standing));
        let edited = laid.edited(past, texts);
        let spots: BTreeSet<Spot> = edited.iter().map(|row| row.spot).collect();
        spots.iter().for_each(|spot| drop(ahead.come_to(*spot)));
        self.reuse.go_ahead(ahead);
        for row in edited.iter().filter(|row| !standing.has(row)) {
            if row.kept.is_success() || row.kept.unknown().is_some() {
                self.reuse.add(row.spot, row.kept.clone(), true);
            }
        }
        for row in laid.unknown_rows().filter(|row| !spots.contains(&row.spot) && !standing.has(row)) {
            row.kept.unknown().into_iter().for_each(|write| self.reuse.add_unknown(row.spot, write.clone()));
        }
        for (spot, site, own, write) in &laid.unknown {
            if !standing.stands(*own, *spot, site) {
                self.reuse.add_unknown(*spot, write.clone());
            }
        }
        laid.in_flight.iter().for_each(|spot| self.reuse.note_in_flight(*spot));
        self.inherit_unmatched(past, texts, &laid);
        self.inherit_visits(&laid);
        if self.recorder.is_some() {
            let rows = laid.rows().iter().filter(|row| !spots.contains(&row.spot)).chain(&edited);
            let kept = self.kept_for_forks(past, places, rows, (&laid, &standing));
            self.recorder = Some(Box::new(kept));
        }
        if let Some(lineage) = &mut self.lineage {
            lineage.stands(standing);
        }
    }

    /// Frames that the source recorded have their numbers from it.
    fn number_frames(&mut self, laid: &Laid) {
        let before = std::mem::replace(&mut self.keys, Keys::behind(Arc::clone(&laid.numbers)));
        if self.prior_visits.is_empty() {
            return;
        }
        for (spot, visits) in std::mem::take(&mut self.prior_visits) {
            let frame = before.path(spot.frame).map_or(spot.frame, |path| self.keys.give(path));
            self.prior_visits.insert(Spot { frame, ..spot }, visits);
        }
    }

    /// What the source recorded of nodes that are not there.
    fn inherit_unmatched(&mut self, past: &Recording, texts: &BTreeMap<EffectId, Arc<str>>, laid: &Laid) {
        let unmatched = laid.unmatched.iter().map(|(id, kept)| (id, kept));
        for (id, kept) in past.edited_of(unmatched, texts) {
            kept.written_with_success().into_iter().for_each(|write| self.reuse.add_elsewhere(write));
            self.reuse.add_unmatched(id.clone(), kept);
        }
        laid.elsewhere.iter().for_each(|write| self.reuse.add_elsewhere(*write));
        for (id, write) in &laid.unmatched_unknown {
            self.reuse.add_unmatched_unknown(id.clone(), write.clone());
        }
        laid.unknown_elsewhere.iter().for_each(|write| self.reuse.add_unknown_elsewhere(write.clone()));
    }

    /// No effect's id comes twice: visits are counted on. Those of nodes of frames are looked up ([`Self::come_to_recorded`]).
    fn inherit_visits(&mut self, laid: &Laid) {
        let frame = self.frames.root_mut();
        let Some(dataflow) = &mut frame.dataflow else { return };
        for node in (0..laid.seen.len()).map(NodeIx::new) {
            let Some(row) = frame.nodes.get_mut(node) else { break };
            row.visit = row.visit.max(laid.seen(node));
            row.tries = 0;
        }
        dataflow.prior_visits.values_mut().for_each(|prior| *prior = (prior.0, 0, 0));
        for (id, seen) in &laid.gone {
            let prior_visits = dataflow.prior_visits.entry(id.clone()).or_default();
            prior_visits.0 = prior_visits.0.max(*seen);
        }
    }

    /// What a recording state keeps of its source for its own forks: what may be taken by nodes of its dataflow is found with what is left
    /// of it then.
    fn kept_for_forks<'r>(
        &self,
        past: &Recording,
        places: Option<&Places>,
        rows: impl Iterator<Item = &'r Row>,
        (laid, standing): (&Laid, &Standing),
    ) -> Recording {
        let mut recorder = Recording { renamed: past.renamed.clone(), ..Recording::default() };
        if places.is_some() || self.frames.root().flow.is_none() {
            recorder.visits.clone_from(&past.visits);
        }
        let moved = |site: &NodePlace| moved(site, &self.frames, places);
        let visits = past.inner.visits.iter().filter_map(|(site, visits)| Some((moved(site)?, *visits)));
        let elements = past.inner.elements.iter().filter_map(|(site, all)| Some((moved(site)?, all.clone())));
        recorder.inner = Inner { visits: visits.collect(), elements: elements.collect(), ..Inner::default() };
        for row in rows {
            let kept = row.kept.clone();
            match row.own {
                true if !standing.has(row) && (kept.is_success() || kept.unknown().is_some()) => {}
                true if standing.is_ahead(row) && self.has_record(row.spot.node, kept.effect()) => {}
                true => recorder.kept.push((row.site.node.clone(), kept)),
                false => drop(recorder.inner.kept.insert(kept.effect().clone(), (row.site.clone(), kept))),
            }
        }
        for (spot, site, own, write) in &laid.unknown {
            match own {
                true if !standing.stands(true, *spot, site) => {}
                true => drop(recorder.unknown.insert((site.node.clone(), write.clone()))),
                false => drop(recorder.inner.unknown.insert((site.clone(), write.clone()))),
            }
        }
        recorder
    }

    /// Whether a node of the run's own graph has what an effect came to.
    fn has_record(&self, node: NodeIx, effect: &EffectId) -> bool {
        let done = self.frames.root().done(node);
        done.is_some_and(|done| done.records.iter().any(|recorded| recorded.effect == *effect))
    }

    /// A node is about to start: of a fork, what its source had recorded there is placed. How often it was started there.
    pub(in crate::machine) fn come_to_recorded(&mut self, node: NodeRef) -> u32 {
        if self.prior_visits.is_empty() && !self.reuse.is_of_fork() {
            return 0;
        }
        let spot = self.spot(node);
        self.reuse.come_to(spot);
        let spot = Spot { frame: self.keys.get(&self.of(node).path), ..spot };
        self.reuse.visits(spot).or_else(|| self.prior_visits.get(&spot).copied()).unwrap_or(0)
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
    /// Whether what a site did stands: it is not begun anew. `stands`: nodes of the run's own dataflow.
    pub(super) fn is_final(&self, site: &NodePlace, stands: &Stands) -> bool {
        let mut frame = self.root();
        let Some(path) = self.moved.own(&site.frame) else { return false };
        let first = path.frames().steps().next();
        if first.and_then(|step| frame.by_id(&step.node)).is_some_and(|node| stands.is_ahead(node)) {
            return true;
        }
        for step in path.frames().steps() {
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
            match children.frame_status(&step.instance, act, self) {
                FrameStatus::Ended => return true,
                FrameStatus::Alive(inner) => frame = inner,
                FrameStatus::NotBegun => return false,
            }
        }
        frame.by_id(&site.node).is_some_and(|node| frame.is_final(node))
    }

    /// The node of that id in frames of that path, whether or not there is one now.
    pub(super) fn find(&self, path: FramePathRef<'_>, id: &str) -> Option<NodeIx> {
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
