//! Recorded successes that stand for new requests of equal content (E-29).

use super::state::{Frame, LeafPhase, NodePhase, NodeState, Slot, SlotState, State, Status};
use crate::effect::{EffectId, Effects, ModelReply, Outcome, ToolDef};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Graph};
use crate::ids::{LeafIx, NodeIx};
use crate::message::{Message, ToolCall};
use crate::schedule::Schedule;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Key = [u8; 32];

/// Successes of an earlier part of the run, by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// By the node that asked, so that nobody's turn depends on who is faster (E-07); there in the order of its
    /// requests, and then as they came in.
    by_key: BTreeMap<(NodeIx, Key), BTreeMap<(u32, u64), EffectId>>,
    /// Writes that succeeded, by tool and arguments: another version of the tool would write again.
    written: BTreeSet<(NodeIx, Key)>,
    /// Writes that were in flight when the run ended: nobody knows whether they happened (E-05).
    unknown: BTreeSet<(NodeIx, Key)>,
    added: u64,
    outcomes: BTreeMap<EffectId, ((NodeIx, Key), Outcome)>,
    /// The first node, in list order, whose call that is not `pure` ran afresh since the resume.
    afresh: Option<NodeIx>,
}

/// One success, with what is needed to tell its content.
#[derive(Debug)]
pub(crate) struct Success {
    effect: EffectId,
    /// Its place among the requests of its node.
    order: u32,
    content: Content,
    outcome: Outcome,
}

#[derive(Debug)]
enum Content {
    /// The request, built when it is needed: at most once, when a failed run is resumed.
    Model(LeafIx, crate::message::Thread),
    Tool(ToolCall, Arc<str>),
}

/// What to do about a new call.
pub(crate) enum Reuse {
    /// Run it.
    No,
    /// Take this effect's outcome.
    Take(EffectId),
    /// It is a write that may do harm when it is repeated: a person decides, told why.
    AskFirst(&'static str),
}

impl Pool {
    pub(crate) fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.unknown.is_empty()
    }
    fn find(&self, key: &(NodeIx, Key)) -> Option<&EffectId> {
        self.by_key.get(key)?.values().next()
    }
    pub(crate) fn take(&mut self, effect: &EffectId) -> Option<Outcome> {
        let (key, outcome) = self.outcomes.remove(effect)?;
        if let Some(queue) = self.by_key.get_mut(&key) {
            queue.retain(|_, known| known != effect);
        }
        Some(outcome)
    }
    fn add(&mut self, key: (NodeIx, Key), order: u32, effect: EffectId, outcome: Outcome) {
        self.added += 1;
        self.by_key.entry(key).or_default().insert((order, self.added), effect.clone());
        self.outcomes.insert(effect, (key, outcome));
    }
}

impl State {
    pub(crate) fn record_model(&mut self, node: NodeIx, effect: &EffectId, reply: &Arc<ModelReply>) {
        if super::model::is_empty(reply) {
            return;
        }
        // Nor is a reply a success that its schema refuses: asked again, the model gets both tries (E-33).
        let leaf = self.frame(node).and_then(|frame| frame.leaf);
        if let Some(leaf) = leaf
            && let Act::Infer(infer) = &self.graph.nodes[node].body.leaves[leaf].act
            && self.schema_refusal(node, leaf, infer, reply).is_some()
        {
            return;
        }
        let outcome = Outcome::Reply(Arc::clone(reply));
        if let Some(frame) = self.frame_mut(node)
            && let Some(leaf) = frame.leaf
            && matches!(&frame.phase, LeafPhase::Model(phase) if phase.refused.is_none())
        {
            let content = Content::Model(leaf, frame.thread.clone());
            frame.requests += 1;
            let order = frame.requests;
            frame.records.push(Success { effect: effect.clone(), order, content, outcome });
        }
    }

    pub(crate) fn record_call(&mut self, node: NodeIx, slot: usize, output: &Arc<Value>) {
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(slot)) else { return };
        let Some(tool) = self.graph.tools.get(&slot.call.name) else { return };
        let content = Content::Tool(slot.call.clone(), tool.version.clone());
        let success = Success {
            effect: slot.effect.clone(),
            order: slot.order,
            content,
            outcome: Outcome::Output(Arc::clone(output)),
        };
        if let Some(frame) = self.frame_mut(node) {
            frame.records.push(success);
        }
    }

    /// What a person's no means for a call: nobody knows about a write that was in flight (C-13).
    pub(crate) fn refused_by_person(&self, node: NodeIx, call: &ToolCall) -> Fault {
        if self.pool.unknown.contains(&(node, any_version(&call.name, &call.arguments))) {
            return unknown_outcome(&call.name);
        }
        Fault::new(FaultKind::Denied, format!("a person said no to running `{}`", call.name))
    }

    /// A call that was not taken from the pool saw or made another world than the recorded one.
    pub(crate) fn ran_afresh(&mut self, node: NodeIx, at: usize, effects: Effects) {
        if effects == Effects::Write
            && let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(at))
        {
            let key = (node, any_version(&slot.call.name, &slot.call.arguments));
            self.pool.written.remove(&key);
            self.pool.unknown.remove(&key);
        }
        if effects >= Effects::Read {
            self.pool.afresh = Some(self.pool.afresh.map_or(node, |known| known.min(node)));
        }
    }

    pub(crate) fn reusable_model(&self, node: NodeIx, frame: &Frame, leaf: LeafIx) -> Option<EffectId> {
        let key = self.model_key(node, leaf, &frame.thread)?;
        self.pool.find(&(node, key)).cloned()
    }

    /// Whether a recorded success may stand for a call: its own kind of effects says what must not have
    /// run afresh before it.
    pub(crate) fn reusable_call(
        &self,
        node: NodeIx,
        tool: &ToolDef,
        args: &Value,
        effects: Effects,
    ) -> Reuse {
        if self.pool.is_empty() {
            return Reuse::No;
        }
        let any = (node, any_version(&tool.name, args));
        if effects == Effects::Write && self.pool.unknown.contains(&any) {
            return Reuse::AskFirst(
                "may or may not have run before the run ended, and running it twice may do harm",
            );
        }
        let Some(found) = self.pool.find(&(node, tool_key(&tool.name, &tool.version, args))) else {
            return match effects == Effects::Write && self.pool.written.contains(&any) {
                true => Reuse::AskFirst("ran with success before, and has changed since"),
                false => Reuse::No,
            };
        };
        let blocker = match effects {
            Effects::Pure => None,
            Effects::Read | Effects::Idempotent | Effects::Write => self.pool.afresh,
        };
        match (blocker.is_some_and(|first| first <= node), effects) {
            (false, _) => Reuse::Take(found.clone()),
            (true, Effects::Write) => {
                Reuse::AskFirst("ran with success before, and what it builds on has changed")
            }
            (true, _) => Reuse::No,
        }
    }

    fn model_key(&self, node: NodeIx, leaf: LeafIx, thread: &crate::message::Thread) -> Option<Key> {
        let frame = Frame::new(Some(leaf), thread.clone());
        let request = self.model_request(node, &frame, None, EffectId(Arc::from("")))?;
        let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
        // Tools as the model sees them: a repaired one of the same face changes no question.
        let tools: Vec<_> =
            request.tools.iter().map(|t| json!([t.name, t.description, t.input_schema])).collect();
        let content = json!({
            "messages": messages, "tools": tools, "role": request.role,
            "model": self.start.models.get(&request.role),
            "schema": request.schema, "settings": request.settings,
        });
        Some(digest(&content))
    }

    /// The node that stands first in line, and all that ran ahead of it, start anew: after a failure, or because
    /// tools have changed (E-05, P-21).
    pub(crate) fn resumed(&mut self, tools: &[ToolDef]) {
        let first = NodeIx(self.retired);
        self.fill_pool(first);
        if !tools.is_empty() {
            let mut graph = Graph::clone(&self.graph);
            for tool in tools {
                graph.tools.insert(tool.name.clone(), Arc::new(tool.clone()));
            }
            self.graph = Arc::new(graph);
            self.schedule = Schedule::derive(&self.graph, self.start.sequential);
        }
        self.status = Status::Running;
        self.forget_in_flight();
        self.on_retired.clear();
        self.rewind_orders(first);
        for nodes in self.runtime.values_mut() {
            nodes.split_off(&first);
        }
        for nodes in self.fields.values_mut() {
            nodes.split_off(&first);
        }
        for node in self.graph.nodes.indices().skip(self.retired as usize) {
            self.nodes[node] = NodeState::new(self.nodes[node].visit);
        }
        for row in self.nodes.values_mut() {
            row.waiters.clear();
        }
        self.await_from(first);
    }

    fn fill_pool(&mut self, first: NodeIx) {
        let nodes: Vec<NodeIx> = self.graph.nodes.indices().skip(first.0 as usize).collect();
        for node in nodes {
            let records = match &mut self.nodes[node].phase {
                NodePhase::Running(frame) => std::mem::take(&mut frame.records),
                NodePhase::Done(done) => std::mem::take(&mut done.records),
                NodePhase::Waiting(_) => continue,
            };
            self.note_unknown(node);
            for Success { effect, order, content, outcome } in records {
                if let Content::Tool(call, _) = &content
                    && self.graph.effects(&self.graph.nodes[node], &call.name) == Effects::Write
                {
                    self.pool.written.insert((node, any_version(&call.name, &call.arguments)));
                }
                let key = match &content {
                    Content::Model(leaf, thread) => self.model_key(node, *leaf, thread),
                    Content::Tool(call, version) => Some(tool_key(&call.name, version, &call.arguments)),
                };
                if let Some(key) = key {
                    self.pool.add((node, key), order, effect, outcome);
                }
            }
        }
        self.pool.afresh = None;
    }

    /// Writes of a node that were in flight, or lost before, when the run ended.
    fn note_unknown(&mut self, node: NodeIx) {
        let slots = self.calls(node).map_or(&[][..], |phase| &phase.slots);
        let open = |slot: &&Slot| {
            slot.effects == Effects::Write && matches!(slot.state, SlotState::Running | SlotState::Lost(_))
        };
        let key = |slot: &Slot| (node, any_version(&slot.call.name, &slot.call.arguments));
        let keys: Vec<(NodeIx, Key)> = slots.iter().filter(open).map(key).collect();
        self.pool.unknown.extend(keys);
    }

    /// Orders and threads as they were when only the nodes before `first` had finished.
    fn rewind_orders(&mut self, first: NodeIx) {
        let ids: Vec<crate::ids::OrderIx> = self.schedule.orders.indices().collect();
        for order in ids {
            let prefix = self.schedule.before(order, first);
            let state = &mut self.orders[order];
            *state = super::state::OrderState { prefix, ..Default::default() };
            if (order.0 as usize) < self.threads.len() {
                let thread = &mut self.threads[crate::ids::ThreadIx(order.0)];
                thread.after.truncate(prefix as usize);
                thread.ahead.clear();
                thread.exists = prefix > 0 || !thread.base.is_empty();
            }
        }
    }
}

/// A write about which nobody knows whether it happened (E-05).
pub(crate) fn unknown_outcome(tool: &str) -> Fault {
    Fault::new(
        FaultKind::UnknownOutcome,
        format!("nobody knows whether `{tool}` ran before the process ended"),
    )
}

/// A call whatever the tool's version: what was written was written.
fn any_version(name: &str, args: &Value) -> Key {
    tool_key(name, "", args)
}

fn tool_key(name: &str, version: &str, args: &Value) -> Key {
    digest(&json!([name, version, args]))
}

fn digest(content: &Value) -> Key {
    Sha256::digest(content.to_string().as_bytes()).into()
}
