//! What nodes keep of what they asked for, until they retire or it may be taken again (E-29).

use super::outcome::RecordedOutcome;
use super::records::{Content, Recorded};
use super::unknown::{UnknownWrite, is_unknown};
use super::{any_version, call_face, tool_key};
use crate::effect::{EffectId, Effects, ModelReply, Outcome};
use crate::graph::Act;
use crate::ids::{NodeIx, NodeRef, ROOT};
use crate::machine::node::LeafPhase;
use crate::machine::state::State;
use std::cmp::Reverse;
use std::sync::Arc;

impl State {
    /// Keeps a reply that the node accepts, as the answer to its question; also one that came after others that
    /// its schema refused (E-33), or that were empty (E-27).
    pub(crate) fn record_model(&mut self, node: NodeRef, effect: &EffectId, reply: &Arc<ModelReply>) {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return };
        let Act::Infer(infer) = &self.leaf(node, leaf).act else { return };
        if infer.says_nothing(reply) {
            return;
        }
        // A refused reply is none: asked again, the model gets both tries.
        if self.unfit(node, leaf, infer, reply).is_some() {
            return;
        }
        let (model, worked_ms) = (self.model_of(infer.model.as_ref()), self.worked_ms);
        let outcome = Outcome::Reply(Arc::clone(reply));
        if let Some(visit) = self.visit_mut(node)
            && let LeafPhase::Model(phase) = &visit.phase
        {
            let second = phase.refused().is_some();
            let content = Content::Model(leaf, visit.thread.clone(), model);
            visit.requests += 1;
            let order = visit.requests;
            let (effect, attempt) = (effect.clone(), 1);
            visit.records.push(Recorded { effect, order, content, outcome, attempt, worked_ms, second });
            self.keep_at_once(node);
        }
    }

    /// The steps of the last reply can't be used: if it was asked for steps, it is none that may be taken again.
    pub(crate) fn forget_reply(&mut self, node: NodeRef) {
        let reply = |recorded: &Recorded| match recorded.content {
            Content::Model(leaf, ..) => Some((recorded.effect.clone(), leaf)),
            Content::Tool(_) => None,
        };
        let last = self.visit(node).and_then(|visit| visit.records.iter().rev().find_map(reply));
        let Some((effect, leaf)) = last else { return };
        let judged = matches!(&self.leaf(node, leaf).act, Act::Infer(infer) if infer.judged);
        if let Some(visit) = self.visit_mut(node).filter(|_| judged) {
            visit.records.remove(&effect);
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.kept.remove(&effect);
            }
        }
    }

    /// Keeps what a call came to; a failure, too, which is reused only when its message is edited (E-19).
    pub(crate) fn record_call(&mut self, node: NodeRef, slot: usize, outcome: Outcome) {
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(slot)) else { return };
        let Some(tool) = self.tool(node, &slot.call.name) else { return };
        let content = Content::Tool(Box::new((slot.call.clone(), tool.version.clone())));
        let (effect, order, attempt) = (slot.effect.clone(), slot.order, slot.attempt);
        let worked_ms = self.worked_ms;
        let recorded = Recorded { effect, order, content, outcome, attempt, worked_ms, second: false };
        if let Some(visit) = self.visit_mut(node) {
            visit.records.push(recorded);
            self.keep_at_once(node);
        }
    }

    /// What the nodes from `first` on recorded may be taken from here on. A recording state keeps what the others
    /// did, as their tools were.
    pub(crate) fn fill_pool(&mut self, first: NodeRef) {
        self.age_pool();
        for node in self.of(first).nodes_from(NodeIx(0)) {
            let node = first.sibling(node);
            if node < first {
                if self.recorder.is_some() {
                    let kept = self.collect(node);
                    self.keep_aside(node, kept);
                }
                continue;
            }
            self.note_unknown(node);
            let beside =
                node > first && self.done(node).is_some_and(|done| done.fault.is_none() && !done.skipped);
            for mut kept in self.collect(node) {
                kept.beside = beside && kept.write.is_some() && !is_unknown(&kept.outcome);
                if !(kept.is_success() || kept.beside) || kept.second {
                    self.keep_aside(node, vec![kept.clone()]);
                }
                if !kept.second {
                    let spot = self.spot_for(node);
                    self.reuse.add(spot, kept, false);
                }
            }
        }
    }

    fn keep_aside(&mut self, node: NodeRef, kept: Vec<RecordedOutcome>) {
        // Of other frames it is kept already.
        if node.frame != ROOT {
            return;
        }
        let id = self.def(node).id.clone();
        if let Some(recorder) = &mut self.recorder {
            recorder.kept.extend(kept.into_iter().map(|kept| (id.clone(), kept)));
        }
    }

    /// Takes what a node has recorded, each with the digest of what was asked.
    pub(crate) fn collect(&mut self, node: NodeRef) -> Vec<RecordedOutcome> {
        let records = self.frames[node].take_records();
        records.into_iter().filter_map(|recorded| self.recorded(node, recorded)).collect()
    }

    /// With the digest of what was asked.
    pub(crate) fn recorded(&self, node: NodeRef, recorded: Recorded) -> Option<RecordedOutcome> {
        let Recorded { effect, order, content, outcome, attempt, worked_ms, second } = recorded;
        let ((key, face), write, tool) = match &content {
            Content::Model(leaf, thread, model) => {
                (self.model_key(node, *leaf, thread, model.as_ref())?, None, None)
            }
            Content::Tool(called) => {
                let (call, version) = &**called;
                let effects = self.effects(node, &call.name);
                let write = (effects == Effects::Write).then(|| any_version(&call.name, &call.arguments));
                let key = tool_key(&call.name, version, &call.arguments);
                let face = call_face(&call.name, version, &call.arguments);
                ((key, face), write, Some(call.name.clone()))
            }
        };
        let turn = (Reverse(self.frames[node].visit), order);
        // Later editions note it as it comes (E-55).
        let unknown = match &content {
            Content::Tool(called) if write.is_some() && self.start.edition < 7 && is_unknown(&outcome) => {
                Some(UnknownWrite::of(&called.0))
            }
            _ => None,
        };
        Some(RecordedOutcome {
            effect,
            key,
            face,
            write,
            turn,
            outcome,
            attempt,
            worked_ms,
            outdated: false,
            beside: false,
            edited: false,
            tool,
            unknown,
            second,
        })
    }

    /// Writes of a node that were in flight, or lost before, when the run ended.
    pub(crate) fn note_unknown(&mut self, node: NodeRef) {
        for write in self.writes_in_flight(node) {
            let spot = self.spot_for(node);
            self.reuse.add_unknown(spot, write);
        }
    }
}
