//! What was recorded in frames, for forks of the run (E-29, E-36): frames end and are gone, so it is kept as it comes.

use crate::effect::Effects;
use crate::graph::Graph;
use crate::ids::{FrameIx, NodeIx, NodeRef, ROOT};
use crate::machine::frame::Frame;
use crate::machine::node::NodePhase;
use crate::machine::phase::{Slot, SlotState};
use crate::machine::reuse::recording::{NodePlace, Recording};
use crate::machine::reuse::said::Key;
use crate::machine::reuse::spot::Spot;
use crate::machine::reuse::unknown::UnknownWrite;
use crate::machine::state::State;
use std::collections::BTreeSet;
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
        let now = self.clone();
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
}

/// As it comes.
impl State {
    /// Whether what a node records is kept at once. Nodes of a dataflow that is in no other frame stay where they are.
    pub(super) fn keeps_at_once(&self, node: NodeRef) -> bool {
        self.recorder.is_some() && (node.frame != ROOT || self.of(node).flow.is_some())
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
            // Effects are called by the frame's own path, so their visits are counted there.
            let (site, visit) = (self.site(node), self.frames[node].visit);
            let own = NodePlace { frame: self.of(node).path.without_visits(), ..site.clone() };
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.visits.entry(site).or_insert(0);
                recorder.inner.visits.insert(own, visit);
            }
        }
    }

    /// Nobody knows what becomes of the writes of a node that are in flight.
    pub(in crate::machine) fn keep_unknown(&mut self, node: NodeRef) {
        if self.keeps_at_once(node) {
            let writes = self.writes_in_flight(node);
            self.keep_unknown_writes(node, writes);
        }
    }

    /// The same of these writes of a node.
    pub(in crate::machine) fn keep_unknown_writes(
        &mut self,
        node: NodeRef,
        writes: impl IntoIterator<Item = UnknownWrite>,
    ) {
        if self.keeps_at_once(node) {
            let site = self.site(node);
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.unknown.extend(writes.into_iter().map(|write| (site.clone(), write)));
            }
        }
    }

    /// Calls of a node that may write, and of which nobody knows yet whether they did: nor does the run that this is a fork of.
    pub(in crate::machine) fn writes_in_flight(&self, node: NodeRef) -> Vec<UnknownWrite> {
        let slots = self.calls(node).map_or(&[][..], |phase| &phase.slots);
        let open = |slot: &&Slot| {
            let in_flight = matches!(slot.state, SlotState::Running | SlotState::Lost(_));
            slot.effects == Effects::Write && in_flight && !self.reuse.knows(&slot.effect)
        };
        slots.iter().filter(open).map(|slot| UnknownWrite::of(&slot.call)).collect()
    }

    /// A person has said that a call may run, or what became of it.
    pub(in crate::machine) fn settle_write(&mut self, node: NodeRef, call: Key) {
        self.reuse.settle(self.spot(node), call);
        self.reuse.settle_elsewhere(call);
        if self.keeps_at_once(node) {
            let site = self.site(node);
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.unknown.retain(|(of, write)| *of != site || write.key != call);
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
