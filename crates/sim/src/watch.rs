//! What must hold after every event, whatever the schedule.

use crate::canon::Msg;
use crate::plan::SimPlan;
use selvedge_engine::{EffectId, Effects, Event, Fault, FaultKind, Message, Outcome, State};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A tool call that looks at the world or changes it, from its request to its end.
#[derive(Debug)]
struct Span {
    node: usize,
    effects: Effects,
    from: u64,
    to: Option<u64>,
}

/// The record of a run that the rules are checked against.
#[derive(Debug, Default)]
pub struct Watch {
    requested: BTreeSet<EffectId>,
    succeeded: BTreeSet<EffectId>,
    published: BTreeSet<String>,
    spans: BTreeMap<EffectId, Span>,
    threads: BTreeMap<Arc<str>, Vec<Arc<Message>>>,
    retired: usize,
}

impl Watch {
    /// Checks `event`, which `state` has just applied.
    ///
    /// # Errors
    /// The rule that does not hold, in words.
    pub fn event(&mut self, plan: &SimPlan, state: &State, event: &Event) -> Result<(), String> {
        let at = state.events();
        match event {
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                self.request(plan, state, effect, at)?
            }
            Event::Completed { effect, outcome, .. } => {
                if !matches!(outcome, Outcome::Failed(_)) {
                    self.succeeded.insert(effect.clone());
                }
                self.close(effect, at);
            }
            Event::Lost { effect } => self.close(effect, at),
            Event::Refused { effect, fault, .. } => refusal(plan, effect, fault)?,
            Event::Published { node, .. } if !self.published.insert(node.to_string()) => {
                return Err(format!("P-18: node {node} published twice"));
            }
            Event::Resumed { .. } => {
                self.threads.clear();
                let (retired, _) = state.progress();
                let kept: BTreeSet<&str> = plan.nodes.iter().take(retired).map(|n| n.id.as_str()).collect();
                self.published.retain(|node| kept.contains(node.as_str()));
            }
            Event::Forked(_) => {
                let (retired, _) = state.progress();
                let ended = state.node_views().filter(|view| view.ended.is_some());
                let kept: BTreeSet<String> = ended.map(|view| view.node.to_string()).collect();
                self.published.retain(|node| kept.contains(node));
                (self.threads, self.spans, self.retired) = (BTreeMap::new(), BTreeMap::new(), retired);
            }
            Event::Ended { .. } => self.ended(state, at)?,
            _ => {}
        }
        self.order(state)?;
        match event {
            Event::Appended { .. } | Event::Opened { .. } | Event::NodeFinished { .. } => self.growth(state),
            _ => Ok(()),
        }
    }

    fn close(&mut self, effect: &EffectId, at: u64) {
        if let Some(span) = self.spans.get_mut(effect) {
            span.to = Some(at);
        }
    }

    fn ended(&mut self, state: &State, at: u64) -> Result<(), String> {
        self.threads.clear();
        for span in self.spans.values_mut() {
            span.to = span.to.or(Some(at));
        }
        if !state.pending().is_empty() || !state.asks().is_empty() {
            return Err("an ended run has pending effects or asks".into());
        }
        if let Some(next) = state.step() {
            return Err(format!("an ended run derives {next:?}"));
        }
        Ok(())
    }

    /// E-05 (no success is asked for again), E-22 and P-20 (order of effects).
    fn request(&mut self, plan: &SimPlan, state: &State, effect: &EffectId, at: u64) -> Result<(), String> {
        if self.succeeded.contains(effect) {
            return Err(format!("E-05: {effect} succeeded before and is requested again"));
        }
        if !self.requested.insert(effect.clone()) {
            return Err(format!("E-06: {effect} is requested twice"));
        }
        let Some(pending) = state.pending().get(effect) else {
            return Err(format!("{effect} is requested and not pending"));
        };
        if pending.model {
            return Ok(());
        }
        let Some(selvedge_engine::Request::Tool(request)) = state.request(effect) else {
            return Err(format!("{effect} has no request"));
        };
        let Some((node, def)) = plan.node(&request.node) else {
            return Err(format!("{effect} is of no node"));
        };
        let effects = plan.effects(def, &request.tool.name);
        let (retired, _) = state.progress();
        if effects == Effects::Write && retired < node {
            return Err(format!(
                "P-20: the write {effect} with only {retired} of {node} earlier nodes retired"
            ));
        }
        for (other, span) in self.spans.iter().filter(|(_, span)| conflict(span.effects, effects)) {
            if span.to.is_none() {
                return Err(format!("E-22: {effect} overlaps {other}"));
            }
        }
        if effects != Effects::Pure {
            self.spans.insert(effect.clone(), Span { node, effects, from: at, to: None });
        }
        Ok(())
    }

    /// P-20: calls of different nodes that conflict begin and end in list order. For runs that were not
    /// resumed after a failure.
    ///
    /// # Errors
    /// The two calls that do not.
    pub fn in_list_order(&self) -> Result<(), String> {
        for (a, first) in &self.spans {
            for (b, second) in &self.spans {
                let late = first.to.is_none_or(|to| to > second.from);
                if first.node < second.node && conflict(first.effects, second.effects) && late {
                    return Err(format!("P-20: {b} began before {a} had ended"));
                }
            }
        }
        Ok(())
    }

    fn order(&mut self, state: &State) -> Result<(), String> {
        let (retired, _) = state.progress();
        if retired < self.retired {
            return Err(format!("P-20: {} nodes were retired, now {retired}", self.retired));
        }
        self.retired = retired;
        match state.node_views().take(retired).find(|view| view.ended.is_none() || !view.retired) {
            Some(view) => Err(format!("P-20: {} retired and has not finished", view.node)),
            None => Ok(()),
        }
    }

    /// E-08, E-09: a thread of a live run only grows, and its messages stay the same.
    fn growth(&mut self, state: &State) -> Result<(), String> {
        if state.ended().is_some() {
            return Ok(());
        }
        for (name, now) in state.live_view().threads() {
            let now: Vec<_> = now.iter().cloned().collect();
            if let Some(before) = self.threads.get(&*name) {
                let same = before.iter().zip(&now).all(|(a, b)| Arc::ptr_eq(a, b));
                if !same || now.len() < before.len() {
                    return Err(format!(
                        "E-08: thread {name} had {} messages and did not just grow to {}",
                        before.len(),
                        now.len()
                    ));
                }
            }
            self.threads.insert(name.as_ref().into(), now);
        }
        Ok(())
    }
}

fn conflict(a: Effects, b: Effects) -> bool {
    a != Effects::Pure && b != Effects::Pure && (a >= Effects::Idempotent || b >= Effects::Idempotent)
}

/// P-14 and P-15: what a refusal has to say.
fn refusal(plan: &SimPlan, effect: &EffectId, fault: &Fault) -> Result<(), String> {
    let node = fault.node.as_deref().and_then(|id| plan.node(id));
    if fault.kind == FaultKind::UnknownTool
        && let Some((_, def)) = node
        && let Some(tool) = def.tools.iter().find(|tool| !fault.message.contains(tool.as_str()))
    {
        return Err(format!("P-15: the refusal {effect} does not name {tool}: {}", fault.message));
    }
    Ok(())
}

/// E-10: in what is sent, every call has exactly one result with its id, in order, before anything else.
///
/// # Errors
/// The message that breaks it.
pub fn valid_conversation(sent: &[Msg]) -> Result<(), String> {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in sent.iter().enumerate() {
        match &message.of {
            Some((id, _)) => {
                if open.first() != Some(&id.as_str()) {
                    return Err(format!("E-10: message {at} answers {id}, open are {open:?}"));
                }
                open.remove(0);
            }
            None if !open.is_empty() => return Err(format!("E-10: message {at} leaves {open:?} unanswered")),
            None => {}
        }
        for call in &message.calls {
            if call.id.is_empty() || !ids.insert(call.id.as_str()) {
                return Err(format!("E-10: message {at} has the id `{}`, which is empty or in use", call.id));
            }
            open.push(&call.id);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("E-10: {open:?} unanswered at the end")) }
}
