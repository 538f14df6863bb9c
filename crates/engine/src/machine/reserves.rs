//! What model requests under way hold of a budget, and which ones wait for room in it (E-50).

use super::budgets::Counted;
use super::node::LeafPhase;
use super::phase::Got;
use super::state::State;
use super::usage::{Meter, Usage};
use crate::effect::EffectId;
use crate::event::Budget;
use crate::graph::Act;
use crate::ids::NodeRef;

impl State {
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
}
