//! Which event comes next for a node: a pure look at the state.

use super::scope::Scope;
use super::state::{Frame, LeafPhase, NodePhase, State};
use crate::event::{Body, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Leaf};
use crate::ids::{LeafIx, NodeIx};
use crate::message::Role;
use crate::template::{OnMissing, Template};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

impl State {
    /// Whether [`Self::derive`] has an event for this node. Cheap: nothing is resolved or built.
    pub(crate) fn actionable(&self, node: NodeIx) -> bool {
        let frame = match &self.nodes[node].phase {
            NodePhase::Waiting(missing) => return *missing == 0,
            NodePhase::Done(_) => return false,
            NodePhase::Running(frame) => frame,
        };
        let Some(leaf) = frame.leaf else { return true };
        let act = &self.graph.leaf(node, leaf).act;
        match (act, &frame.phase) {
            (Act::Open { .. } | Act::Say(_) | Act::Publish { .. }, _) => true,
            (Act::Brief { .. } | Act::Decide | Act::Splice, _) => true,
            // It goes on with the event that makes it its turn.
            (Act::Turn, _) => false,
            (Act::Ask(..), LeafPhase::Enter) => true,
            (Act::Ask(..), LeafPhase::Ask(answer)) => answer.is_some(),
            (Act::Infer(_), LeafPhase::Model(phase)) => phase.got.is_some(),
            (Act::Infer(_), _) => true,
            (Act::Call(_) | Act::Try | Act::Compile { .. }, LeafPhase::Enter) => {
                self.fixed_gate(node, frame, leaf).is_none()
            }
            (_, LeafPhase::Calls(phase)) => self.calls_actionable(node, phase),
            (Act::Call(_) | Act::Try | Act::Compile { .. }, LeafPhase::Ask(answer)) => answer.is_some(),
            (Act::Call(_) | Act::Try | Act::Compile { .. } | Act::Answer { .. } | Act::Ask(..), _) => false,
        }
    }

    /// The next event of a node on the agenda.
    pub(crate) fn derive(&self, node: NodeIx) -> Option<Event> {
        let def = &self.graph.nodes[node];
        let frame = match &self.nodes[node].phase {
            NodePhase::Waiting(_) => {
                let id = def.id.clone();
                return Some(match self.skip_cause(node) {
                    Some(because) => {
                        Event::NodeSkipped { node: id, because: self.graph.nodes[because].id.clone() }
                    }
                    None => Event::NodeStarted { node: id, warnings: self.shadowed(node) },
                });
            }
            NodePhase::Done(_) => return None,
            NodePhase::Running(frame) => frame,
        };
        let Some(leaf) = frame.leaf else { return Some(self.finished(node, frame)) };
        let act = self.graph.leaf(node, leaf);
        match &act.act {
            Act::Open { from, slice } => {
                let source = self.thread_after(*from, self.schedule.open_at[node]);
                let (start, end) = slice.bounds(source.len());
                let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
                let thread = def.body.thread?;
                Some(Event::Opened {
                    node: def.id.clone(),
                    thread: self.graph.threads[thread].name.clone(),
                    from: self.graph.threads[*from].name.clone(),
                    start: place(start),
                    end: place(end),
                })
            }
            Act::Say(text) => Some(self.say(node, text)),
            Act::Publish { to, description, .. } => Some(match self.text(node, description) {
                Ok(description) => Event::Published {
                    node: def.id.clone(),
                    to: self.graph.threads[*to].name.clone(),
                    description,
                },
                Err(fault) => self.failed(node, fault),
            }),
            Act::Ask(kind, prompt) => Some(self.ask(node, frame, act, *kind, prompt)),
            Act::Infer(infer) => Some(self.derive_model(node, frame, leaf, infer)),
            Act::Call(_) | Act::Try | Act::Compile { .. } => Some(match &frame.phase {
                LeafPhase::Calls(phase) => self.derive_calls(node, frame, phase),
                _ => self.begin_fixed(node, frame, leaf),
            }),
            Act::Answer { .. } => match &frame.phase {
                LeafPhase::Calls(phase) => Some(self.derive_calls(node, frame, phase)),
                _ => None,
            },
            Act::Turn => None,
            Act::Brief { text, facts } => Some(self.brief(node, frame, text, facts)),
            Act::Decide => Some(self.decide(node, frame)),
            Act::Splice => Some(self.derive_splice(node, frame)),
        }
    }

    fn say(&self, node: NodeIx, text: &Template) -> Event {
        let def = &self.graph.nodes[node];
        let Some(thread) = def.body.thread else {
            return self
                .failed(node, Fault::new(FaultKind::InputError, "a node without a thread can't speak"));
        };
        match self.text(node, text) {
            Ok(text) => Event::Appended {
                node: def.id.clone(),
                thread: self.graph.threads[thread].name.clone(),
                body: Body::Text(Role::User, text.into()),
            },
            Err(fault) => self.failed(node, fault),
        }
    }

    fn ask(
        &self,
        node: NodeIx,
        frame: &Frame,
        leaf: &Leaf,
        kind: crate::AskKind,
        prompt: &Template,
    ) -> Event {
        let def = &self.graph.nodes[node];
        if let LeafPhase::Ask(Some(_)) = &frame.phase {
            let fault = Fault::new(FaultKind::Denied, "a person said no");
            return self.failed(node, fault);
        }
        match self.text(node, prompt) {
            Ok(prompt) => Event::Asked {
                ask: format!("{}/{}", self.path(node), leaf.name).into(),
                node: def.id.clone(),
                ask_kind: kind,
                prompt,
            },
            Err(fault) => self.failed(node, fault),
        }
    }

    /// A text of the document, resolved where `node` stands.
    pub(crate) fn text(&self, node: NodeIx, text: &Template) -> Result<String, Fault> {
        self.rendered(node, text, self.graph.nodes[node].on_missing)
    }

    /// A text within the limit on messages, which is measured first: placeholders can make it any number of
    /// times longer than the document (E-28).
    fn rendered(&self, node: NodeIx, text: &Template, missing: OnMissing) -> Result<String, Fault> {
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
        let def = self.graph.threads.values().nth(self.seeded)?;
        Some(match self.rendered(NodeIx(0), def.first.as_ref()?, OnMissing::Fault) {
            Ok(text) => Event::Appended {
                node: Arc::from(""),
                thread: def.name.clone(),
                body: Body::Text(Role::User, text.into()),
            },
            Err(fault) => super::ended(crate::event::End::Failed, Some(fault)),
        })
    }

    /// The node's place in effect ids: its id, and its visit from the second on (E-06).
    pub(crate) fn path(&self, node: NodeIx) -> Cow<'_, str> {
        let id = &self.graph.nodes[node].id;
        let id = match id.contains(['%', '/', '~']) {
            true => Cow::Owned(id.replace('%', "%25").replace('/', "%2F").replace('~', "%7E")),
            false => Cow::Borrowed(&**id),
        };
        match self.nodes[node].visit {
            0 | 1 => id,
            visit => Cow::Owned(format!("{id}~{visit}")),
        }
    }

    /// The node that an effect id names.
    pub(crate) fn node_of(&self, effect: &crate::EffectId) -> Option<NodeIx> {
        let path = effect.0.split('/').next()?;
        let id = path.split('~').next()?;
        // Ids are escaped in effect ids, always: another node's id may look like this one's escaped form.
        if !id.contains('%') {
            let front = self.agenda.front().filter(|node| *self.graph.nodes[**node].id == *id);
            return front.or_else(|| self.schedule.by_id.get(id)).copied();
        }
        let id = id.replace("%7E", "~").replace("%2F", "/").replace("%25", "%");
        self.schedule.by_id.get(id.as_str()).copied()
    }

    /// The id of an effect of the live leaf.
    pub(crate) fn effect_id(
        &self,
        node: NodeIx,
        frame: &Frame,
        leaf: LeafIx,
        slot: Option<usize>,
        attempt: u32,
    ) -> crate::EffectId {
        let name = &self.graph.leaf(node, leaf).name;
        let visit = frame.visits.get(&leaf).copied().unwrap_or(1);
        let path = self.path(node);
        // Room for three numbers: each request has an id.
        let mut id = String::with_capacity(path.len() + name.len() + 32);
        let written = match slot {
            None => write!(id, "{path}/{name}/{visit}/{attempt}"),
            Some(slot) => write!(id, "{path}/{name}.{slot}/{visit}/{attempt}"),
        };
        debug_assert!(written.is_ok(), "a text takes what is written to it");
        crate::EffectId(id.into())
    }
}
