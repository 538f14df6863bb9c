//! What was used where, and caps on it (E-20, E-50): of the run, of a node with all below it, of a frame.

use super::frame::Frame;
use super::node::LeafPhase;
use super::opened::Children;
use super::phase::Got;
use super::state::{PendingEffect, State};
use super::usage::{Meter, Meters, Usage};
use crate::effect::{EffectId, Tokens};
use crate::event::{Budget, Event};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::Act;
use crate::ids::NodeRef;
use std::sync::Arc;

impl Budget {
    /// The first cap that is reached: what of, where it is, and what was used of it. A model request under way counts as a call.
    fn reached(&self, used: &Usage, flying: u64) -> Option<(&'static str, String, String)> {
        let tokens = used.tokens.input.saturating_add(used.tokens.output);
        let calls = used.model_calls + flying;
        match (self.calls, self.tokens, self.cost) {
            (Some(cap), _, _) if calls >= cap => Some(("calls", cap.to_string(), calls.to_string())),
            (_, Some(cap), _) if tokens >= cap => Some(("tokens", cap.to_string(), tokens.to_string())),
            (_, _, Some(cap)) if used.tokens.cost >= cap => {
                Some(("cost", cap.to_string(), used.tokens.shown_cost().to_string()))
            }
            _ => None,
        }
    }
}

/// What meters count.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    /// What was used, which is told of each path of a fork.
    Used,
    /// Model requests under way, which only budgets ask for.
    Flying,
}

/// Tells that a budget was exceeded by replies that were larger than what was reserved for them.
const OVERSHOT: &str = "budget-overshot";
/// Tells that what requests used that were ended early is unknown.
const USAGE_UNKNOWN: &str = "usage-unknown";

/// What is capped below the run itself.
#[derive(Clone, Copy)]
enum Capped {
    Node(NodeRef),
    /// The frame that the node is in.
    Frame(NodeRef),
}

impl State {
    /// Whether every request that was sent counts, and parallel ones reserve before they are sent.
    pub(super) fn counts_sent(&self) -> bool {
        self.start.edition >= 7
    }

    /// A model request that was sent has come to an end.
    pub(super) fn charge(&mut self, node: NodeRef, tokens: &Tokens) {
        self.largest_reply = self.largest_reply.max(tokens.output);
        self.usage.add_reply(tokens);
        self.meter(node, Counted::Used, |meter| meter.used.add_reply(tokens));
        self.warn_overshot(node);
    }

    /// An operation has used models (E-40).
    pub(super) fn charge_operation(&mut self, node: NodeRef, tokens: &Tokens) {
        self.usage.tokens.add(tokens);
        self.meter(node, Counted::Used, |meter| meter.used.tokens.add(tokens));
        self.warn_overshot(node);
    }

    /// Nobody waits any more for an effect that was under way: it counts if it was sent.
    pub(super) fn end_early(&mut self, effect: &EffectId, row: PendingEffect) {
        let sent = row.event < self.last_input && row.wait().until <= self.now;
        let (node, counts) = (row.node, sent && self.counts_sent());
        if row.model {
            self.release(node, effect);
        }
        if counts && row.model {
            self.charge(node, &Tokens::default());
            self.warn_unknown(node);
        } else if counts && !self.is_operation(node, row.slot as usize) {
            self.charge_tool(node);
        }
    }

    /// A tool call was sent.
    pub(super) fn charge_tool(&mut self, node: NodeRef) {
        self.usage.tool_calls += 1;
        self.meter(node, Counted::Used, |meter| meter.used.tool_calls += 1);
    }

    /// A model request is under way: it holds one call and, below a cap on tokens or cost, the tokens that it may use.
    pub(super) fn reserve(&mut self, node: NodeRef, effect: &EffectId) {
        let caps = |budget: &Budget| budget.tokens.is_some() || budget.cost.is_some();
        let reserves = self.counts_sent() && self.is_below(node, caps);
        let tokens = if reserves { self.estimated_tokens(node) } else { 0 };
        if reserves {
            self.reserves.insert(effect.clone(), tokens);
        }
        self.pending_models += 1;
        self.pending_tokens = self.pending_tokens.saturating_add(tokens);
        self.meter(node, Counted::Flying, |meter| {
            meter.flying += 1;
            meter.reserved = meter.reserved.saturating_add(tokens);
        });
    }

    /// A model request is no longer under way. Requests that wait for room are looked at again.
    pub(super) fn release(&mut self, node: NodeRef, effect: &EffectId) {
        let tokens = self.reserves.remove(effect).unwrap_or(0);
        self.pending_models = self.pending_models.saturating_sub(1);
        self.pending_tokens = self.pending_tokens.saturating_sub(tokens);
        self.meter(node, Counted::Flying, |meter| {
            meter.flying = meter.flying.saturating_sub(1);
            meter.reserved = meter.reserved.saturating_sub(tokens);
        });
        for waiting in std::mem::take(&mut self.for_room) {
            self.wake(waiting);
        }
    }

    /// Takes nodes off the agenda whose model request has to wait until the budget has room for it.
    pub(super) fn hold_back_requests(&mut self) {
        while let Some(node) = self.agenda.front().copied().filter(|node| self.waits_for_room(*node)) {
            self.agenda.pop_front();
            self.frames[node].queued = false;
            self.for_room.push(node);
        }
    }

    /// Whether a node is about to send a model request that does not fit into what requests under way leave of a budget. With none
    /// under way there, or with the budget used up, it does not wait.
    fn waits_for_room(&self, node: NodeRef) -> bool {
        if !self.counts_sent() || self.reserves.is_empty() || !self.is_about_to_ask(node) {
            return false;
        }
        let tokens = self.estimated_tokens(node);
        let run = Meter { used: self.usage, flying: self.pending_models, reserved: self.pending_tokens };
        let below = self.capped(node).map(|(place, budget)| (self.meter_of(place), budget));
        let mut waits = false;
        for (meter, budget) in std::iter::once((run, &self.start.budget)).chain(below) {
            if budget.reached(&meter.used, meter.flying).is_some() {
                return false;
            }
            waits |= meter.flying > 0 && !self.fits(budget, &meter, tokens);
        }
        waits && !self.takes_recorded(node)
    }

    /// Whether a node's next event sends a model request.
    fn is_about_to_ask(&self, node: NodeRef) -> bool {
        let Some(visit) = self.visit(node) else { return false };
        matches!(self.live_act(node), Some(Act::Infer(_)))
            && match &visit.phase {
                LeafPhase::Enter => true,
                LeafPhase::Model(phase) => match &phase.got {
                    Some(Got::Failed(failure, jitter)) => self.model_again(failure, phase, *jitter).is_some(),
                    _ => false,
                },
                _ => false,
            }
    }

    /// Whether a recorded reply stands for a node's next model request, so that nothing is sent (E-29).
    fn takes_recorded(&self, node: NodeRef) -> bool {
        let visit = self.visit(node).filter(|visit| matches!(visit.phase, LeafPhase::Enter));
        let Some((visit, leaf)) = visit.and_then(|visit| Some((visit, visit.leaf?))) else { return false };
        self.reuse.has(self.spot(node)) && self.reusable_model(node, visit, leaf).is_ok()
    }

    /// Whether a request that may use so many tokens fits beside those under way. What a token costs is taken from what the run has
    /// paid so far; before its first request has ended, nothing fits beside another under a cap on the cost.
    fn fits(&self, budget: &Budget, meter: &Meter, tokens: u64) -> bool {
        let reserved = meter.reserved.saturating_add(tokens);
        let Usage { tokens: used, model_calls, .. } = &self.usage;
        let count = used.input.saturating_add(used.output).max(1);
        let price = (*model_calls > 0).then(|| used.cost / count as f64);
        let cost = price.map(|price| meter.used.tokens.cost + reserved as f64 * price);
        let own = &meter.used.tokens;
        budget.tokens.is_none_or(|cap| own.input.saturating_add(own.output).saturating_add(reserved) <= cap)
            && budget.cost.is_none_or(|cap| cost.is_some_and(|cost| cost <= cap))
    }

    /// Tells by how much budgets are exceeded that a node is below.
    fn warn_overshot(&mut self, node: NodeRef) {
        if !self.counts_sent() {
            return;
        }
        let run = std::iter::once((None, self.usage, &self.start.budget));
        let below = self.capped(node);
        let below =
            below.map(|(place, budget)| (Some(self.place_name(place)), self.meter_of(place).used, budget));
        let over = run.chain(below).filter_map(|(place, used, budget)| {
            let (used, cap, over, what) = overshot(&used.tokens, budget)?;
            let whose = match &place {
                Some(name) => format!("`{}`", self.report_name(name)),
                None => "the run".to_owned(),
            };
            let message = format!(
                "{whose} has used {used} {what} of its budget of {cap}, {over} too many: replies were larger than what                  was reserved for them (`max_tokens` limits a reply)"
            );
            Some(Warning { code: OVERSHOT.into(), message, node: place })
        });
        let over: Vec<Warning> = over.collect();
        for warning in over {
            self.warn_anew(warning);
        }
    }

    /// Tells that the tokens of requests that were ended early are unknown, where there is a cap on tokens or cost.
    fn warn_unknown(&mut self, node: NodeRef) {
        if !self.is_below(node, |budget| budget.tokens.is_some() || budget.cost.is_some()) {
            return;
        }
        self.uncounted += 1;
        let requests = if self.uncounted == 1 { "model request was" } else { "model requests were" };
        let message = format!(
            "{} {requests} ended early: the tokens used there are unknown, and the budget does not count them",
            self.uncounted
        );
        self.warn_anew(Warning { code: USAGE_UNKNOWN.into(), message, node: None });
    }

    /// A warning that takes the place of an earlier one about the same.
    fn warn_anew(&mut self, warning: Warning) {
        let same = |known: &&mut Warning| known.code == warning.code && known.node == warning.node;
        match self.warnings.iter_mut().find(same) {
            Some(known) => *known = warning,
            None => self.warnings.push(warning),
        }
    }

    /// A fork has used nothing yet.
    pub(super) fn reset_usage(&mut self) {
        self.usage = Usage::default();
        self.resets += 1;
        self.uncounted = 0;
        self.warnings.retain(|warning| !matches!(&*warning.code, OVERSHOT | USAGE_UNKNOWN));
    }

    /// Changes the meters of a node with a budget, of its frame if somebody may ask for it, and of all that these are in. The run has its own.
    fn meter(&mut self, node: NodeRef, counted: Counted, change: impl Fn(&mut Meter)) {
        let resets = self.resets;
        let mut at = Some(node);
        while let Some(node) = at {
            let frame = &mut self.frames[node.frame];
            let capped = frame.graph.nodes.get(node.node).is_some_and(|def| def.budget.is_some());
            let told = counted == Counted::Used && frame.path.is_of_fork();
            let frame_counts = frame.opened_by.is_some() && (told || frame.graph.budget.is_some());
            if capped || frame_counts {
                let meters = frame.meters_mut();
                if meters.resets != resets {
                    *meters = Meters { resets, ..Meters::default() };
                }
                change(&mut meters.all);
                if capped {
                    change(meters.nodes.entry(node.node).or_default());
                }
            }
            at = frame.opened_by.map(|(around, _)| around);
        }
    }

    /// The event that ends what has used up its budget and would ask a model now: the outermost of what `node` is in, the run
    /// before all. Checked before each model call, from the provider's own figures.
    pub(super) fn over_budget(&self, node: NodeRef) -> Option<Event> {
        let flying = self.pending_models;
        if let Some((what, cap, now)) = self.start.budget.reached(&self.usage, flying) {
            let said = said(what, &cap);
            let mut message = format!(
                "the run's budget of {cap} {said} is used up ({now} used; `budget` of the document, or --budget)"
            );
            // Not every run that this happens to has failed, and can be resumed: an agent answers all the same.
            if self.start.edition < 5 {
                message.push_str(&format!("; raise it: resume with --budget {what}=…"));
            }
            return Some(self.failed(node, Fault::new(FaultKind::BudgetExceeded, message)));
        }
        let reached = |(place, budget): (Capped, &Budget)| {
            let meter = self.meter_of(place);
            Some((place, budget.reached(&meter.used, meter.flying)?))
        };
        let (place, (what, cap, now)) = self.capped(node).filter_map(reached).last()?;
        let called = self.place_name(place);
        let said = said(what, &cap);
        let shown = self.report_name(&called);
        let message =
            format!("`{shown}` has used up its budget of {cap} {said} ({now} used there and below)");
        let fault = Fault::new(FaultKind::BudgetExceeded, message);
        Some(match place {
            Capped::Node(capped) if self.def(capped).fails_within => self.failed(node, fault),
            Capped::Node(node) => self.failed(node, fault),
            Capped::Frame(_) => {
                Event::Unrouted { node: format!("{called}/").into(), fault: Box::new(fault.at(&called)) }
            }
        })
    }

    /// What events call a place that has a budget.
    fn place_name(&self, place: Capped) -> Arc<str> {
        match place {
            Capped::Node(node) => self.name(node),
            Capped::Frame(node) => self.of(node).path.to_string().into(),
        }
    }

    /// Whether tokens are capped where a node is, or where the run is.
    pub(super) fn caps_tokens(&self, node: NodeRef) -> bool {
        self.is_below(node, |budget| budget.tokens.is_some())
    }

    /// Whether a node is below a budget of a kind: the run's, or one of [`Self::capped`].
    fn is_below(&self, node: NodeRef, kind: impl Fn(&Budget) -> bool) -> bool {
        kind(&self.start.budget) || self.capped(node).any(|(_, budget)| kind(budget))
    }

    /// The budgets that a node and its frame have, and all that these are in, from the inside out.
    fn capped(&self, node: NodeRef) -> impl Iterator<Item = (Capped, &Budget)> {
        let around = |node: &NodeRef| self.of(*node).opened_by.map(|(around, _)| around);
        std::iter::successors(Some(node), around).flat_map(|node| {
            let frame = self.of(node);
            let own = frame.graph.nodes.get(node.node).and_then(|def| def.budget.as_deref());
            let whole = frame.graph.budget.as_deref().filter(|_| frame.opened_by.is_some());
            let own = own.map(|budget| (Capped::Node(node), budget));
            own.into_iter().chain(whole.map(|budget| (Capped::Frame(node), budget)))
        })
    }

    /// What the paths of a fork have used, each with all below it (W-02); empty for what is none, or has not opened them.
    pub fn path_usage(&self, node: &Arc<str>) -> Vec<(Arc<str>, Usage)> {
        let children = self.node_named(node).and_then(|node| self.of(node).children(node.node));
        let Some((Children::Fork(phase), Act::Fork(paths))) = children else { return Vec::new() };
        let rows = phase.frames(&self.frames).enumerate();
        rows.map(|(at, frame)| (paths.of.id(at), self.used_in(frame))).collect()
    }

    /// What was used in a frame, and below it.
    pub(super) fn used_in(&self, frame: Option<&Frame>) -> Usage {
        let meters = frame.and_then(Frame::meters);
        let meters = meters.filter(|meters| meters.resets == self.resets);
        meters.map(|meters| meters.all.used).unwrap_or_default()
    }

    fn meter_of(&self, place: Capped) -> Meter {
        let (Capped::Node(node) | Capped::Frame(node)) = place;
        let Some(meters) = self.of(node).meters().filter(|meters| meters.resets == self.resets) else {
            return Meter::default();
        };
        match place {
            Capped::Node(node) => meters.nodes.get(&node.node).copied().unwrap_or_default(),
            Capped::Frame(_) => meters.all,
        }
    }
}

/// By how much tokens or cost exceed a budget: what was used, the cap, the difference, and what of.
fn overshot(used: &Tokens, budget: &Budget) -> Option<(String, String, String, &'static str)> {
    let tokens = used.input.saturating_add(used.output);
    match (budget.tokens, budget.cost) {
        (Some(cap), _) if tokens > cap => {
            Some((tokens.to_string(), cap.to_string(), (tokens - cap).to_string(), "tokens"))
        }
        (_, Some(cap)) if used.cost > cap => {
            let over = Tokens { cost: used.cost - cap, ..Tokens::default() };
            Some((used.shown_cost().to_string(), cap.to_string(), over.shown_cost().to_string(), "of cost"))
        }
        _ => None,
    }
}

fn said<'w>(what: &'w str, cap: &str) -> &'w str {
    if cap == "1" { what.trim_end_matches('s') } else { what }
}
