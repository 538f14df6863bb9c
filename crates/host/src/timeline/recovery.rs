//! The ladder of recovery, as it was climbed (D-22): what failed, what was decided and by whom, what it cost, and what
//! came of it.

use super::Nodes;
use selvedge_engine::graph::{Act, Leaf};
use selvedge_engine::{Action, Body, Chooser, EffectId, Event, Fault, Outcome, Recovered, Tokens};
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One step of the ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// The event that tells it; the last of them, where several do.
    pub n: u64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The node it is about.
    pub node: Arc<str>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A transient fault, tried again as it was (D-17).
    Retry {
        /// Why.
        reason: String,
        /// After so many milliseconds.
        after_ms: u64,
    },
    /// A call, or what a model said about it, ended in a fault that does not end the node.
    Fault {
        /// Of which tool; nothing for a model's answer.
        tool: Option<Arc<str>>,
        /// The fault.
        fault: Fault,
    },
    /// What is done about it.
    Action {
        /// The action.
        action: Action,
        /// Who chose it.
        by: Chooser,
        /// Why.
        reason: String,
        /// The tool to call.
        tool: Option<Arc<str>>,
        /// Its parameters as they were written; nothing where they stay those of the step.
        parameters: Option<Value>,
        /// The intent of a replan (D-20).
        strategy: Option<Arc<str>>,
        /// What was asked of models for it.
        spent: Spent,
    },
    /// Other steps took the place of this one and those after it (D-20, D-21).
    Planned {
        /// Their ids, in list order.
        steps: Vec<Arc<str>>,
        /// Whether there are none, so that the rest of the task is left out.
        none: bool,
        /// What was asked of models for it, beyond the decision.
        spent: Spent,
    },
    /// It does not run (D-16).
    Skipped {
        /// The node that it may depend on.
        because: Arc<str>,
    },
    /// The node ended; after something above.
    Ended {
        /// Why it failed, if it did.
        fault: Option<Fault>,
    },
}

/// What models used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Requests that were answered.
    pub calls: u64,
    /// Tokens and money.
    pub tokens: Tokens,
}

impl Spent {
    /// Both together.
    pub fn add(&mut self, more: &Spent) {
        self.calls = self.calls.saturating_add(more.calls);
        self.tokens.add(&more.tokens);
    }
}

/// The fold.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Ladder {
    rungs: Vec<Rung>,
    #[serde(skip)]
    nodes: HashMap<Arc<str>, Climber>,
    /// Nodes on the ladder that have not succeeded since; a resume may come in between.
    #[serde(skip)]
    open: HashSet<Arc<str>>,
    /// What compilers gave, until it takes a node's place.
    #[serde(skip)]
    compiled: HashMap<EffectId, Arc<Value>>,
}

/// A node that may have to recover.
#[derive(Clone, Debug, Default)]
struct Climber {
    /// What it did last, which a fault is of.
    last: Last,
    /// The tool of the last decision, and its parameters as they were written.
    chosen: Option<Arc<str>>,
    parameters: Option<Value>,
    spent: Spent,
}

/// What a node did last.
#[derive(Clone, Debug, Default, PartialEq)]
enum Last {
    /// Nothing yet: its own call is what it is about to do.
    #[default]
    Nothing,
    /// It called this tool, or decided to.
    Called(Arc<str>),
    /// It asked a model.
    Asked,
}

impl Ladder {
    /// All rungs, in the order of the journal.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Whether a node is on it, and has not succeeded since.
    pub fn is_open(&self, node: &str) -> bool {
        self.open.contains(node)
    }

    /// Takes an event in; `nodes` are those of the run after it, or later. The new rung, if there is one.
    pub fn event(&mut self, nodes: &Nodes, n: u64, at: i64, event: &Event) -> Option<&Rung> {
        let (node, what) = self.rung(nodes, event)?;
        match what {
            What::Ended { fault: None } => drop(self.open.remove(&node)),
            // It did not fail, so it does not succeed after all.
            What::Skipped { .. } => {}
            _ => drop(self.open.insert(node.clone())),
        }
        self.rungs.push(Rung { n, at, node, what });
        self.rungs.last()
    }

    /// The parameters that the last decision about a node wrote down, if it did.
    pub fn parameters(&self, node: &str) -> Option<&Value> {
        self.nodes.get(node)?.parameters.as_ref()
    }

    /// Takes in what was requested before anybody looked on.
    pub fn in_flight(&mut self, nodes: &Nodes, effect: &EffectId) {
        self.called(nodes, effect);
    }

    fn climber(&mut self, node: &Arc<str>) -> &mut Climber {
        self.nodes.entry(node.clone()).or_default()
    }

    fn rung(&mut self, nodes: &Nodes, event: &Event) -> Option<(Arc<str>, What)> {
        match event {
            Event::NodeStarted { node, .. } => {
                self.nodes.remove(node);
                None
            }
            Event::Requested { effect, .. }
            | Event::Reused { effect, .. }
            | Event::Refused { effect, .. } => {
                self.called(nodes, effect);
                None
            }
            Event::Completed { effect, outcome, .. } => {
                self.completed(nodes, effect, outcome);
                None
            }
            Event::Retried { effect, after_ms, reason } => {
                let (node, leaf) = step_of(nodes, effect)?;
                let calls = leaf.is_some_and(|leaf| matches!(leaf.act, Act::Call(_) | Act::Retry));
                calls.then(|| (node, What::Retry { reason: reason.clone(), after_ms: *after_ms }))
            }
            // Of a node that may recover: what it says is for a model.
            Event::Appended { node, body: Body::Text(..), .. } => {
                if let Some(climber) = self.nodes.get_mut(node) {
                    climber.last = Last::Asked;
                }
                None
            }
            Event::Caught { node, fault } => {
                let tool = match &self.climber(node).last {
                    Last::Nothing => nodes.get(node).and_then(|known| known.tool.clone()),
                    Last::Called(tool) => Some(tool.clone()),
                    Last::Asked => None,
                };
                Some((node.clone(), What::Fault { tool, fault: Fault::clone(fault) }))
            }
            Event::Recovered(recovered) => {
                let Recovered { node, action, by, reason, tool, parameters, step, strategy, .. } =
                    &**recovered;
                let climber = self.climber(node);
                climber.chosen = tool.clone().or(climber.chosen.take());
                climber.last = tool.clone().map_or(Last::Asked, Last::Called);
                let repaired = step.as_ref().and_then(|step| step.get("parameters"));
                climber.parameters = parameters.as_ref().or(repaired).cloned();
                let spent = std::mem::take(&mut climber.spent);
                let parameters = climber.parameters.clone();
                let (tool, strategy, reason) = (tool.clone(), strategy.clone(), reason.clone());
                let what =
                    What::Action { action: *action, by: *by, reason, tool, parameters, strategy, spent };
                Some((node.clone(), what))
            }
            Event::Spliced { node, effect, warnings } => {
                let none = warnings.iter().any(|warning| &*warning.code == "steps-left-out");
                let spent = self.nodes.remove(node).unwrap_or_default().spent;
                let steps = self.compiled.remove(effect).map(|output| steps(&output)).unwrap_or_default();
                Some((node.clone(), What::Planned { steps, none, spent }))
            }
            Event::NodeSkipped { node, because } => {
                Some((node.clone(), What::Skipped { because: because.clone() }))
            }
            Event::NodeFinished { node, fault, .. } => {
                self.nodes.remove(node);
                // Also a step about whose fault nothing could be done.
                let step = || nodes.get(node).is_some_and(|known| known.recovery.is_some());
                let told = self.open.contains(node) || (fault.is_some() && step());
                told.then(|| (node.clone(), What::Ended { fault: fault.as_deref().cloned() }))
            }
            _ => None,
        }
    }

    /// What a node calls now.
    fn called(&mut self, nodes: &Nodes, effect: &EffectId) {
        let Some((node, leaf)) = step_of(nodes, effect) else { return };
        let known = nodes.get(&node);
        let own = known.and_then(|known| known.tool.clone());
        let compiler = known.and_then(|known| known.body.compiler.clone());
        let climber = self.climber(&node);
        let tool = match leaf.map(|leaf| &leaf.act) {
            Some(Act::Call(call)) => Some(call.tool.clone()),
            Some(Act::Retry) => climber.chosen.clone().or(own),
            Some(Act::Compile { .. }) => compiler,
            _ => None,
        };
        climber.last = tool.map_or(Last::Asked, Last::Called);
    }

    fn completed(&mut self, nodes: &Nodes, effect: &EffectId, outcome: &Outcome) {
        let Some((node, _)) = step_of(nodes, effect) else { return };
        // Also of an attempt that came to nothing, as in the run's usage (E-20).
        if let Some(tokens) = outcome.tokens() {
            self.climber(&node).spent.add(&Spent { calls: 1, tokens: *tokens });
        }
        if let Outcome::Output(output) = outcome
            && output.get("nodes").is_some_and(Value::is_array)
        {
            self.compiled.insert(effect.clone(), Arc::clone(output));
        }
    }
}

/// The ids of compiled nodes.
fn steps(output: &Value) -> Vec<Arc<str>> {
    let nodes = output.get("nodes").and_then(Value::as_array).into_iter().flatten();
    nodes.filter_map(|node| node.get("id")?.as_str().map(Arc::from)).collect()
}

/// The node of an effect and its leaf, if the node may recover: it works on no thread. One that another has taken the
/// place of is not in the graph any more.
fn step_of<'g>(nodes: &'g Nodes, effect: &EffectId) -> Option<(Arc<str>, Option<&'g Leaf>)> {
    if !nodes.threadless() {
        return None;
    }
    let place = effect.place()?;
    let id = &*place.place.node;
    let Some(node) = nodes.get(id) else { return Some((id.into(), None)) };
    if node.body.thread.is_some() {
        return None;
    }
    let leaf = nodes.graph().leaves(node).find(|known| *known.name == *place.leaf);
    Some((node.id.clone(), leaf))
}
