//! Which event comes next for a node: a pure look at the state.

use super::node::{LeafPhase, NodePhase, Visit};
use super::scope::Scope;
use super::state::State;
use crate::effect::EffectId;
use crate::event::{Body, Event};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::Act;
use crate::ids::{LeafIx, NodeIx, NodeRef, ROOT};
use crate::message::Role;
use crate::place::{EffectPlace, Place};
use crate::schedule::no_variables;
use crate::template::{OnMissing, Template};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

impl State {
    /// Whether [`Self::derive`] has an event for this node. Cheap: nothing is resolved or built.
    pub(crate) fn actionable(&self, node: NodeRef) -> bool {
        let visit = match &self.frames[node].phase {
            NodePhase::Waiting(missing) => return *missing == 0,
            NodePhase::Done(_) => return self.is_between(node),
            NodePhase::Running(visit) => visit,
        };
        let Some(leaf) = visit.leaf else { return true };
        let act = &self.leaf(node, leaf).act;
        match (act, &visit.phase) {
            (Act::Open { .. } | Act::AppendText(_) | Act::Publish { .. }, _) => true,
            (Act::AppendFacts { .. } | Act::Decide | Act::Splice, _) => true,
            (Act::Set(..) | Act::Compute(..) | Act::Give(_) | Act::Bind(_) | Act::Edit(_), _) => true,
            (Act::Warn(..) | Act::Recall(_) | Act::TakeMessages, _) => true,
            // It goes on with the event that makes it its turn.
            (Act::AwaitRetirement, _) => false,
            (Act::Ask(..), LeafPhase::Enter) => true,
            (Act::Ask(..), LeafPhase::Ask(phase)) => !phase.is_open(),
            (Act::Infer(_), LeafPhase::Model(phase)) => phase.got.is_some(),
            (Act::Infer(_), _) => true,
            (Act::Call(_) | Act::Retry | Act::Compile { .. }, LeafPhase::Enter) => {
                self.fixed_gate(node, visit, leaf).is_none()
            }
            (_, LeafPhase::Calls(phase)) => self.calls_actionable(node, phase),
            (_, LeafPhase::Frames(children)) => children.are_due(),
            (Act::Fork(_) | Act::Loop(_) | Act::Sub(_), _) => true,
            (Act::Call(_) | Act::Retry | Act::Compile { .. }, LeafPhase::Ask(phase)) => !phase.is_open(),
            (Act::Call(_) | Act::Retry | Act::Compile { .. } | Act::Answer { .. } | Act::Ask(..), _) => false,
        }
    }

    /// The next event of a node on the agenda.
    pub(crate) fn derive(&self, node: NodeRef) -> Option<Event> {
        let def = self.def(node);
        let visit = match &self.frames[node].phase {
            NodePhase::Waiting(_) => {
                let id = self.name(node);
                return Some(match self.of(node).skip_cause(node.node) {
                    Some(because) => Event::NodeSkipped {
                        node: id,
                        because: self.of(node).graph.nodes[because].id.clone(),
                    },
                    None => {
                        let mut warnings = self.shadowed(node);
                        warnings.extend(self.takes_nothing(node));
                        Event::NodeStarted { node: id, warnings }
                    }
                });
            }
            NodePhase::Done(_) => return self.is_between(node).then(|| self.derive_way(node)),
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
                    node: self.name(node),
                    thread: self.thread_name(node, thread),
                    from: self.thread_name(node, *from),
                    start: place(start),
                    end: place(end),
                })
            }
            Act::AppendText(text) => Some(self.say(node, text)),
            Act::Publish { to, description, .. } => Some(match self.text(node, description) {
                Ok(description) => {
                    Event::Published { node: self.name(node), to: self.thread_name(node, *to), description }
                }
                Err(fault) => self.failed(node, fault),
            }),
            Act::Ask(kind, prompt, expects) => {
                Some(self.derive_ask(node, visit, leaf, (*kind, prompt, expects.as_deref())))
            }
            Act::Infer(infer) => Some(self.derive_model(node, visit, leaf, infer)),
            Act::Call(_) | Act::Retry | Act::Compile { .. } => Some(match &visit.phase {
                LeafPhase::Calls(phase) => self.derive_calls(node, visit, phase),
                _ => self.begin_fixed(node, visit, leaf),
            }),
            Act::Answer { .. } => match &visit.phase {
                LeafPhase::Calls(phase) => Some(self.derive_calls(node, visit, phase)),
                _ => None,
            },
            Act::AwaitRetirement => None,
            Act::AppendFacts { text, facts } => Some(self.brief(node, visit, text, facts)),
            Act::Decide => Some(self.decide(node, visit)),
            Act::Splice => Some(self.derive_splice(node, visit)),
            Act::Fork(_) | Act::Loop(_) | Act::Sub(_) => self.derive_children(node, visit, leaf),
            Act::Edit(edit) => Some(self.derive_edit(node, visit, edit)),
            Act::Bind(tools) => Some(self.derive_bind(node, tools)),
            Act::TakeMessages => self.derive_take(node),
            Act::Warn(code, text) => Some(match self.text(node, text) {
                Ok(text) => {
                    let warning = Box::new(Warning::at(code, &self.name(node), text));
                    Event::Warned { node: self.name(node), warning }
                }
                Err(fault) => self.failed(node, fault),
            }),
            Act::Set(name, _) | Act::Compute(name, _) | Act::Recall(name) if self.of(node).flow.is_none() => {
                Some(self.failed(node, Fault::new(FaultKind::InputError, no_variables(&def.id, name))))
            }
            Act::Give(value) => Some(match self.resolved(node, value) {
                Ok(value) => Event::Given { node: self.name(node), value: Box::new(value) },
                Err(fault) => self.failed(node, fault),
            }),
            Act::Set(name, value) => Some(self.set(node, name, self.resolved(node, value))),
            Act::Recall(name) => Some(self.set(node, name, Ok(self.said_last(visit).into()))),
            Act::Compute(name, value) => {
                let what = format!("the value of the variable `{name}`");
                Some(self.set(node, name, self.computed(node, value, &what)))
            }
        }
    }

    fn set(&self, node: NodeRef, name: &Arc<str>, value: Result<Value, Fault>) -> Event {
        match value {
            Ok(value) => Event::Set { node: self.name(node), name: name.clone(), value: Box::new(value) },
            Err(fault) => self.failed(node, fault),
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
                node: self.name(node),
                thread: self.thread_name(node, thread),
                body: Body::Text(Role::User, text.into()),
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
        let ix = *self.seeding.last()?;
        let frame = &self.frames[ix];
        let def = frame.next_seed()?;
        let place = if ix == ROOT { Arc::from("") } else { format!("{}/", frame.path).into() };
        Some(
            match self.rendered(NodeRef { frame: ix, node: NodeIx(0) }, def.first.as_ref()?, OnMissing::Fault)
            {
                Ok(text) => Event::Appended {
                    node: place,
                    thread: def.name.clone(),
                    body: Body::Text(Role::User, text.into()),
                },
                Err(fault) if ix == ROOT => super::ended(crate::event::End::Failed, Some(fault)),
                Err(fault) => Event::Unrouted { node: place, fault: Box::new(fault) },
            },
        )
    }

    /// Where the node is now (E-35).
    pub(crate) fn place(&self, node: NodeRef) -> Place<'_> {
        let id = Cow::Borrowed(&*self.def(node).id);
        // A flow has no row of a node that it has not come to.
        let visit = self.of(node).nodes.get(node.node).map_or(0, |row| row.visit);
        Place { frames: self.of(node).path.frames(), node: id, visit }
    }

    /// The node that an effect id names.
    pub(crate) fn node_of(&self, effect: &EffectId) -> Option<NodeRef> {
        let first = self.agenda.front().copied().filter(|front| {
            let own = self.of(*front).path.within(&effect.0);
            own.is_some_and(|own| EffectPlace::is_of(own, &self.def(*front).id))
        });
        first.or_else(|| self.node_at(&effect.place()?.place))
    }

    /// The node of a place, if its frame is there.
    pub(crate) fn node_at(&self, place: &Place<'_>) -> Option<NodeRef> {
        let Place { frames, node, .. } = place;
        let frame = self.frames.at(*frames)?;
        self.frames[frame].by_id(node).map(|node| NodeRef { frame, node })
    }

    /// What events call a node: its id, or its place where there are frames (E-35).
    pub(crate) fn name(&self, node: NodeRef) -> Arc<str> {
        let id = &self.def(node).id;
        match self.frames.are_flat() {
            true => id.clone(),
            false => self.of(node).path.name_of(id),
        }
    }

    /// The node that an event names.
    pub fn node_named(&self, name: &Arc<str>) -> Option<NodeRef> {
        // What follows from an input is mostly of the node that stands first on the agenda.
        let is_it = |front: &NodeRef| match self.frames.are_flat() {
            true => Arc::ptr_eq(&self.def(*front).id, name),
            false => {
                let own = self.of(*front).path.within(name);
                own.is_some_and(|own| Place::is_of(own, &self.def(*front).id))
            }
        };
        if let Some(front) = self.agenda.front().copied().filter(is_it) {
            return Some(front);
        }
        if self.frames.are_flat() {
            return self.frames.root().by_id(name).map(NodeRef::root);
        }
        self.node_at(&Place::parse(name)?)
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
        let leaf_visit = visit.visits.of(leaf).unwrap_or(1);
        EffectPlace { place: self.place(node), leaf: name, slot, leaf_visit, attempt }.id()
    }
}
