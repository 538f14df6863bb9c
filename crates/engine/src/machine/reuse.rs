//! Which recorded outcome stands for a new request (E-29).

pub(super) mod cache;
mod elements;
mod frames;
mod inherited;
mod kept;
mod laid;
pub(super) mod lineage;
mod origins;
pub(super) mod outcome;
mod ran;
pub(super) mod recording;
pub(super) mod records;
pub(super) mod said;
pub(super) mod spot;
pub(super) mod unknown;

use super::node::Visit;
use super::state::State;
use crate::effect::{EffectId, Effects, ModelRequest, ToolDef};
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, is_operation};
use crate::ids::{FrameIx, LeafIx, NodeRef};
use cache::Entry;
pub use lineage::{Afresh, Origin, Saved};
use lineage::{Face, Unlike};
use outcome::RecordedOutcome;
pub use recording::Recording;
pub(crate) use recording::places;
use said::{Key, digest};
pub(super) use said::{any_version, tool_key};
use serde_json::Value;
use sha2::{Digest, Sha256};
use spot::Spot;
use std::collections::BTreeSet;
use std::sync::Arc;
use unknown::UnknownWrite;

/// What to do about a new call.
pub(crate) enum Reuse {
    /// Run it: this is how it differs from what was recorded.
    No(Unlike),
    /// Take this effect's outcome.
    Take(EffectId),
    /// It is a write that may do harm when it is repeated: a person decides, told why. A no leaves what it came to
    /// before, if that is known.
    AskFirst(&'static str, Option<EffectId>, Unlike),
    /// It may do again what this write of unknown outcome did: a person decides (E-55).
    AskUnknown(UnknownWrite, Unlike),
}

impl State {
    /// Which model answers for a role now.
    fn model_of(&self, role: Option<&Arc<str>>) -> Option<Arc<str>> {
        self.start.models.get(role.map_or(super::request::DEFAULT_ROLE, |role| role)).cloned()
    }

    /// A call that was not taken from the pool saw or made another world than the recorded one.
    pub(crate) fn re_executed(&mut self, node: NodeRef, at: usize, effects: Effects) {
        self.note_afresh_call(node, at);
        if self.reuse.is_empty() {
            return;
        }
        if effects >= Effects::Read {
            let (around, changed) = (self.around(node), effects > Effects::Read);
            self.reuse.ran.note(&around, changed);
        }
        let spot = self.spot(node);
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(at)) else { return };
        let Some(tool) = self.tool(node, &slot.call.name) else { return };
        let key = tool_key(&tool.name, &tool.version, &slot.call.arguments);
        let call = any_version(&slot.call.name, &slot.call.arguments);
        let tool_name = Arc::clone(&slot.call.name);
        // What is idempotent and asked for once more leaves the world as it was.
        let repeated = effects == Effects::Idempotent && self.reuse.find(spot, key).is_some();
        if effects >= Effects::Idempotent && !repeated {
            self.reuse.note_changed(spot);
        }
        if effects == Effects::Write {
            self.reuse.done_anew(spot);
        }
        let repeated = self.repeated_write(node, &tool_name, call, effects).map(|write| write.key);
        self.settle_write(node, repeated.unwrap_or(call));
        self.reuse.spend(spot, key, (effects == Effects::Write).then_some(call));
    }

    /// Where a node records, and the nodes that opened the frames it is in.
    fn around(&mut self, node: NodeRef) -> Vec<Spot> {
        let mut spots = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            spots.push(self.spot_for(node));
            at = self.of(node).opened_by.map(|(around, _)| around);
        }
        spots
    }

    /// A frame that a node had opened is cut off. What only looked at the world in there has come to nothing: that it ran afresh makes
    /// nothing outdated, whoever was faster (E-07).
    pub(super) fn note_cut(&mut self, node: NodeRef, frame: FrameIx) {
        if self.start.edition >= 4 && !self.reuse.ran.is_empty() {
            let (frame, around) = (self.keys.get(&self.known_path(frame)), self.around(node));
            self.reuse.ran.cut(frame, &around);
        }
    }

    /// It goes on.
    pub(super) fn note_going_on(&mut self, node: NodeRef, frame: FrameIx) {
        if !self.reuse.ran.is_empty() {
            let (frame, around) = (self.keys.get(&self.known_path(frame)), self.around(node));
            self.reuse.ran.go_on(frame, &around);
        }
    }

    /// Where a call ran afresh that a request of `node` could have seen. What ran on another path of a fork it could not.
    fn sees_re_executed(&self, node: NodeRef) -> Option<Spot> {
        let (spot, frame) = (self.spot(node), self.of(node));
        if let Some(first) = self.reuse.ran.before(spot, frame.flow.is_some()) {
            return Some(first);
        }
        let mut at = frame.opened_by;
        while let Some((around, _)) = at {
            let (spot, frame) = (self.spot(around), self.of(around));
            // The iterations of a loop come one after the other.
            let in_order = self.start.edition >= 7 && matches!(self.live_act(around), Some(Act::Loop(_)));
            let seen = if in_order {
                self.reuse.ran.before(spot, frame.flow.is_some())
            } else {
                self.reuse.ran.beside(spot, frame.flow.is_some())
            };
            if seen.is_some() {
                return seen;
            }
            at = frame.opened_by;
        }
        None
    }

    /// Where outcomes of the node are recorded, if there are any.
    pub(crate) fn spot(&self, node: NodeRef) -> Spot {
        Spot { frame: self.keys.get(&self.known_path(node.frame)), node: node.node }
    }

    /// The same, to record some.
    pub(crate) fn spot_for(&mut self, node: NodeRef) -> Spot {
        let path = self.known_path(node.frame).into_owned();
        Spot { frame: self.keys.give(&path), node: node.node }
    }

    /// What was recorded before calls ran afresh.
    pub(crate) fn age_pool(&mut self) {
        let flows: BTreeSet<u32> = self
            .frames
            .numbered()
            .filter(|(_, frame)| frame.flow.is_some())
            .map(|(frame, _)| self.keys.get(&self.known_path(frame)))
            .collect();
        self.reuse.age(|frame| flows.contains(&frame));
    }

    /// Takes a recorded outcome for the request `by`, and how many tries come with it: none if they count already.
    pub(crate) fn take_recorded(
        &mut self,
        node: NodeRef,
        from: &EffectId,
        by: &EffectId,
    ) -> Option<(RecordedOutcome, u32)> {
        let Entry { kept, foreign, .. } = self.reuse.take(from)?;
        if let Some(recorder) = &mut self.recorder {
            recorder.renamed.insert(from.clone(), by.clone());
            recorder.inner.kept.remove(from);
        }
        // Tries of a visit that was ahead of its turn count with the one that takes the result (D-25); a fork's own
        // begin with it.
        let counted = kept.turn.0.0 <= self.frames[node].counted;
        let tries = match (foreign, counted) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => kept.attempt,
        };
        Some((kept, tries))
    }

    /// The model request that `event`, the next one of the journal, answers with an outcome that the run's source
    /// recorded: a model that counts requests has not met it in this run (C-07).
    pub fn recalled(&self, event: &Event) -> Option<ModelRequest> {
        let Event::Reused { effect, from, .. } = event else { return None };
        let (node, _) = self.live_leaf(effect).filter(|_| self.reuse.is_foreign(from))?;
        self.model_request(node, self.visit(node)?, None, effect.clone())
    }

    /// The recorded reply that a model's node may take, or how its request differs from what was recorded.
    pub(crate) fn reusable_model(
        &self,
        node: NodeRef,
        visit: &Visit,
        leaf: LeafIx,
    ) -> Result<EffectId, Unlike> {
        let spot = self.spot(node);
        if !self.reuse.has(spot) {
            return Err(self.nothing_of(node));
        }
        let Act::Infer(infer) = &self.leaf(node, leaf).act else { return Err(Unlike::NeverRecorded) };
        let model = self.model_of(infer.model.as_ref());
        let asked = self.model_key(node, leaf, &visit.thread, model.as_ref());
        let Some((key, face)) = asked else { return Err(Unlike::NeverRecorded) };
        match self.reuse.find(spot, key) {
            Some(kept) => Ok(kept.effect.clone()),
            None => Err(self
                .reuse
                .nearest(spot, None, &face)
                .map_or_else(|| self.nothing_of(node), |recorded| face.unlike(&recorded.face))),
        }
    }

    /// Nothing is left of what was recorded of a node.
    fn nothing_of(&self, node: NodeRef) -> Unlike {
        match self.reuse.nothing(self.spot(node)) {
            Unlike::NeverRecorded if self.frames[node].visit > 1 => Unlike::NoResult,
            nothing => nothing,
        }
    }

    /// A call is about to run: why nothing that was recorded stands for it.
    fn note_afresh_call(&mut self, node: NodeRef, at: usize) {
        if self.lineage.is_none() {
            return;
        }
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(at)) else { return };
        let Some(tool) = self.tool(node, &slot.call.name) else { return };
        let unlike = match self.reusable_call(node, tool, &slot.call.arguments, slot.effects) {
            Reuse::No(unlike) | Reuse::AskFirst(_, _, unlike) | Reuse::AskUnknown(_, unlike) => unlike,
            Reuse::Take(_) => Unlike::Taken,
        };
        let effect = slot.effect.clone();
        self.note_afresh(node, &effect, unlike);
    }

    /// Whether a recorded success may stand for a call, and what has to be asked before it runs.
    pub(crate) fn reusable_call(
        &self,
        node: NodeRef,
        tool: &ToolDef,
        args: &Value,
        effects: Effects,
    ) -> Reuse {
        if self.reuse.is_empty() {
            return Reuse::No(self.nothing_of(node));
        }
        // What was in flight was a write, whatever the tool has become since.
        let call = any_version(&tool.name, args);
        let recorded = || self.recorded_call(node, tool, args, effects);
        let Some(unknown) = self.repeated_write(node, &tool.name, call, effects) else { return recorded() };
        let same = unknown.key == call;
        // Runs of earlier editions ask before they look at what was recorded (E-42).
        if same && self.start.edition < 7 {
            return Reuse::AskUnknown(unknown.clone(), Unlike::InFlight);
        }
        match recorded() {
            Reuse::No(unlike) | Reuse::AskFirst(_, None, unlike) => {
                Reuse::AskUnknown(unknown.clone(), if same { Unlike::InFlight } else { unlike })
            }
            reuse => reuse,
        }
    }

    /// Whether a recorded success may stand for a call: its own kind of effects says what must not have
    /// run afresh before it.
    fn recorded_call(&self, node: NodeRef, tool: &ToolDef, args: &Value, effects: Effects) -> Reuse {
        let spot = self.spot(node);
        let write = (effects == Effects::Write).then(|| any_version(&tool.name, args));
        let Some(found) = self.reuse.find(spot, tool_key(&tool.name, &tool.version, args)) else {
            let unlike = self.unlike_call(node, tool, args);
            let Some(write) = write else { return Reuse::No(unlike) };
            if let Some(own) = self.reuse.wrote(spot, write) {
                let own = Some(own.clone());
                return Reuse::AskFirst("ran with success before, and has changed since", own, unlike);
            }
            if self.reuse.wrote_elsewhere(spot, write) {
                return Reuse::AskFirst("ran with success before, at another node", None, unlike);
            }
            if let Some(own) = self.reuse.done_beside(spot) {
                let why = "would do anew what the step has done with success before";
                return Reuse::AskFirst(why, Some(own.clone()), unlike);
            }
            return match self.reuse.is_doubtful() {
                true => Reuse::AskFirst(
                    "may have run behind the damage in the journal of the run that this is a fork of, and running it \
                     twice may do harm",
                    None,
                    unlike,
                ),
                false => Reuse::No(unlike),
            };
        };
        if found.beside && effects == Effects::Write && !self.may_see_change(node) {
            return Reuse::Take(found.effect.clone());
        }
        // What it changed outside is that of the run which asked for it (E-40).
        if effects > Effects::Read && is_operation(&tool.name) && self.reuse.is_foreign(&found.effect) {
            return Reuse::No(Unlike::Operation);
        }
        if !found.is_success() {
            return match self.reuse.done_beside(spot) {
                Some(own) => Reuse::AskFirst(
                    "would do anew what the step has done with success before",
                    Some(own.clone()),
                    Unlike::NoResult,
                ),
                None => Reuse::No(Unlike::NoResult),
            };
        }
        let seen = self.sees_re_executed(node);
        let late = found.outdated || seen.is_some();
        let unlike = seen.map_or(Unlike::Said, Unlike::After);
        match (late && effects != Effects::Pure, effects) {
            (false, _) => Reuse::Take(found.effect.clone()),
            (true, Effects::Write) => {
                let own = Some(found.effect.clone());
                Reuse::AskFirst("ran with success before, and what it builds on has changed", own, unlike)
            }
            (true, _) => Reuse::No(unlike),
        }
    }

    /// How a call differs from those that were recorded of its node.
    fn unlike_call(&self, node: NodeRef, tool: &ToolDef, args: &Value) -> Unlike {
        // Only a run that began anew tells it.
        if self.lineage.is_none() {
            return Unlike::NeverRecorded;
        }
        let face = call_face(&tool.name, &tool.version, args);
        match self.reuse.nearest(self.spot(node), Some(&tool.name), &face) {
            None => self.nothing_of(node),
            Some(recorded) if recorded.face.said != face.said => Unlike::Said,
            Some(recorded) if recorded.face.tools != face.tools => Unlike::Version,
            Some(_) => Unlike::Taken,
        }
    }

    fn model_key(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        thread: &crate::message::Thread,
        model: Option<&Arc<str>>,
    ) -> Option<(Key, Face)> {
        let visit = Visit::new(Some(leaf), thread.clone());
        let request = self.model_request(node, &visit, None, EffectId(Arc::from("")))?;
        // Tools as the model sees them: a repaired one of the same face changes no question.
        let tools: Vec<_> =
            request.tools.iter().map(|t| (&t.name, &t.description, &t.input_schema)).collect();
        let parts = [
            digest(&model),
            digest(&tools),
            digest(&(&request.role, &request.schema, &request.settings)),
            // Runs of earlier editions compare ids of calls, too (E-42).
            self.said.in_request(&request.messages, thread, &self.messages, self.start.edition < 3),
        ];
        let [who, tools, settings, said] = parts.map(Face::part);
        Some((Sha256::digest(parts.concat()).into(), Face { who, tools, settings, said }))
    }
}

/// A write about which nobody knows whether it happened (E-05).
pub(crate) fn unknown_outcome(tool: &str) -> Fault {
    Fault::new(
        FaultKind::UnknownOutcome,
        format!("nobody knows whether `{tool}` ran before the process ended"),
    )
}

/// The parts of a call; what its node says of it is in these.
fn call_face(name: &str, version: &str, args: &Value) -> Face {
    let [who, tools, said] = [digest(&name), digest(&version), digest(args)].map(Face::part);
    Face { who, tools, settings: 0, said }
}
