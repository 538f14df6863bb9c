//! Which event comes next for a node: a pure look at the state.

use super::scope::Scope;
use super::state::{LeafPhase, NodePhase, State, Visit};
use crate::effect::EffectId;
use crate::event::{Body, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Leaf};
use crate::ids::{LeafIx, NodeIx, NodeRef, ROOT};
use crate::message::Role;
use crate::place::{AskPlace, EffectPlace, FramePathRef, Place};
use crate::template::{OnMissing, Template};
use std::borrow::Cow;
use std::sync::Arc;

impl State {
    /// Whether [`Self::derive`] has an event for this node. Cheap: nothing is resolved or built.
    pub(crate) fn actionable(&self, node: NodeRef) -> bool {
        let visit = match &self.frames[node].phase {
            NodePhase::Waiting(missing) => return *missing == 0,
            NodePhase::Done(_) => return false,
            NodePhase::Running(visit) => visit,
        };
        let Some(leaf) = visit.leaf else { return true };
        let act = &self.leaf(node, leaf).act;
        match (act, &visit.phase) {
            (Act::Open { .. } | Act::Say(_) | Act::Publish { .. }, _) => true,
            (Act::Brief { .. } | Act::Decide | Act::Splice, _) => true,
            // It goes on with the event that makes it its turn.
            (Act::Turn, _) => false,
            (Act::Ask(..), LeafPhase::Enter) => true,
            (Act::Ask(..), LeafPhase::Ask(answer)) => answer.is_some(),
            (Act::Infer(_), LeafPhase::Model(phase)) => phase.got.is_some(),
            (Act::Infer(_), _) => true,
            (Act::Call(_) | Act::Try | Act::Compile { .. }, LeafPhase::Enter) => {
                self.fixed_gate(node, visit, leaf).is_none()
            }
            (_, LeafPhase::Calls(phase)) => self.calls_actionable(node, phase),
            (Act::Call(_) | Act::Try | Act::Compile { .. }, LeafPhase::Ask(answer)) => answer.is_some(),
            (Act::Call(_) | Act::Try | Act::Compile { .. } | Act::Answer { .. } | Act::Ask(..), _) => false,
        }
    }

    /// The next event of a node on the agenda.
    pub(crate) fn derive(&self, node: NodeRef) -> Option<Event> {
        let def = self.def(node);
        let visit = match &self.frames[node].phase {
            NodePhase::Waiting(_) => {
                let id = def.id.clone();
                return Some(match self.of(node).skip_cause(node.node) {
                    Some(because) => Event::NodeSkipped {
                        node: id,
                        because: self.of(node).graph.nodes[because].id.clone(),
                    },
                    None => Event::NodeStarted { node: id, warnings: self.shadowed(node) },
                });
            }
            NodePhase::Done(_) => return None,
            NodePhase::Running(visit) => visit,
        };
        let Some(leaf) = visit.leaf else { return Some(self.finished(node, visit)) };
        let act = self.leaf(node, leaf);
        match &act.act {
            Act::Open { from, slice } => {
                let frame = self.of(node);
                let source = frame.thread_after(*from, frame.schedule.open_at[node.node]);
                let (start, end) = slice.bounds(source.len());
                let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
                let thread = def.body.thread?;
                Some(Event::Opened {
                    node: def.id.clone(),
                    thread: self.thread_name(node, thread),
                    from: self.thread_name(node, *from),
                    start: place(start),
                    end: place(end),
                })
            }
            Act::Say(text) => Some(self.say(node, text)),
            Act::Publish { to, description, .. } => Some(match self.text(node, description) {
                Ok(description) => {
                    Event::Published { node: def.id.clone(), to: self.thread_name(node, *to), description }
                }
                Err(fault) => self.failed(node, fault),
            }),
            Act::Ask(kind, prompt) => Some(self.ask(node, visit, act, *kind, prompt)),
            Act::Infer(infer) => Some(self.derive_model(node, visit, leaf, infer)),
            Act::Call(_) | Act::Try | Act::Compile { .. } => Some(match &visit.phase {
                LeafPhase::Calls(phase) => self.derive_calls(node, visit, phase),
                _ => self.begin_fixed(node, visit, leaf),
            }),
            Act::Answer { .. } => match &visit.phase {
                LeafPhase::Calls(phase) => Some(self.derive_calls(node, visit, phase)),
                _ => None,
            },
            Act::Turn => None,
            Act::Brief { text, facts } => Some(self.brief(node, visit, text, facts)),
            Act::Decide => Some(self.decide(node, visit)),
            Act::Splice => Some(self.derive_splice(node, visit)),
        }
    }

    fn say(&self, node: NodeRef, text: &Template) -> Event {
        let def = self.def(node);
        let Some(thread) = def.body.thread else {
            return self
                .failed(node, Fault::new(FaultKind::InputError, "a node without a thread can't speak"));
        };
        match self.text(node, text) {
            Ok(text) => Event::Appended {
                node: def.id.clone(),
                thread: self.thread_name(node, thread),
                body: Body::Text(Role::User, text.into()),
            },
            Err(fault) => self.failed(node, fault),
        }
    }

    fn ask(
        &self,
        node: NodeRef,
        visit: &Visit,
        leaf: &Leaf,
        kind: crate::AskKind,
        prompt: &Template,
    ) -> Event {
        let def = self.def(node);
        if let LeafPhase::Ask(Some(_)) = &visit.phase {
            let fault = Fault::new(FaultKind::Denied, "a person said no");
            return self.failed(node, fault);
        }
        match self.text(node, prompt) {
            Ok(prompt) => Event::Asked {
                ask: AskPlace::Leaf { place: self.place(node), leaf: Cow::Borrowed(&*leaf.name) }
                    .to_string()
                    .into(),
                node: def.id.clone(),
                ask_kind: kind,
                prompt,
            },
            Err(fault) => self.failed(node, fault),
        }
    }

    /// A text of the document, resolved where `node` stands.
    pub(crate) fn text(&self, node: NodeRef, text: &Template) -> Result<String, Fault> {
        self.rendered(node, text, self.def(node).on_missing)
    }

    /// A text within the limit on messages, which is measured first: placeholders can make it any number of
    /// times longer than the document (E-28).
    fn rendered(&self, node: NodeRef, text: &Template, missing: OnMissing) -> Result<String, Fault> {
        let scope = Scope { state: self, at: node };
        let limit = self.start.limits.message_bytes;
        if text.measure(&scope, missing, limit)? > limit {
            return Err(self.too_long("a message"));
        }
        Ok(text.render_text(&scope, missing)?)
    }

    /// E-28's limit on messages, reached by `what`.
    pub(crate) fn too_long(&self, what: &str) -> Fault {
        let limit = self.start.limits.message_bytes;
        let message = format!("{what} is over the limit of {limit} bytes; see `message_bytes` in [limits]");
        Fault::new(FaultKind::LimitExceeded, message)
    }

    /// The first messages of threads, before any node starts (P-02).
    pub(crate) fn next_seed(&self) -> Option<Event> {
        let root = self.frames.root();
        let def = root.graph.threads.values().nth(root.seeded)?;
        Some(match self.rendered(NodeRef::root(NodeIx(0)), def.first.as_ref()?, OnMissing::Fault) {
            Ok(text) => Event::Appended {
                node: Arc::from(""),
                thread: def.name.clone(),
                body: Body::Text(Role::User, text.into()),
            },
            Err(fault) => super::ended(crate::event::End::Failed, Some(fault)),
        })
    }

    /// Where the node is now (E-35).
    pub(crate) fn place(&self, node: NodeRef) -> Place<'_> {
        let id = Cow::Borrowed(&*self.def(node).id);
        Place { frames: FramePathRef::default(), node: id, visit: self.frames[node].visit }
    }

    /// The node that an effect id names.
    pub(crate) fn node_of(&self, effect: &EffectId) -> Option<NodeRef> {
        let Place { frames, node, .. } = effect.place()?.place;
        if !frames.is_root() {
            return None;
        }
        let is_it = |front: &NodeRef| front.frame == ROOT && *self.def(*front).id == *node;
        let front = self.agenda.front().copied().filter(is_it);
        front.or_else(|| self.frames.root().by_id(&node).map(NodeRef::root))
    }

    /// The node that an event names.
    pub(crate) fn node_named(&self, name: &Arc<str>) -> Option<NodeRef> {
        // What follows from an input is mostly of the node that stands first on the agenda.
        let front = self.agenda.front().copied().filter(|node| Arc::ptr_eq(&self.def(*node).id, name));
        front.or_else(|| self.frames.root().by_id(name).map(NodeRef::root))
    }

    /// The id of an effect of the live leaf.
    pub(crate) fn effect_id(
        &self,
        node: NodeRef,
        visit: &Visit,
        leaf: LeafIx,
        slot: Option<usize>,
        attempt: u32,
    ) -> EffectId {
        let name = Cow::Borrowed(&*self.leaf(node, leaf).name);
        let leaf_visit = visit.visits.get(&leaf).copied().unwrap_or(1);
        EffectPlace { place: self.place(node), leaf: name, slot, leaf_visit, attempt }.id()
    }
}
