//! What was used where, and caps on it (E-20): of the run, of a node with all below it, of a frame.

use super::frame::Frame;
use super::opened::Children;
use super::state::{EarlyEnd, State};
use super::usage::{Meter, Meters, Usage};
use crate::effect::Tokens;
use crate::event::{Budget, Event};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::Act;
use crate::ids::NodeRef;
use std::sync::Arc;

impl Budget {
    /// The first cap that is reached: what of, where it is, and what was used of it. A model request under way counts as a call.
    pub(super) fn reached(&self, used: &Usage, flying: u64) -> Option<(&'static str, String, String)> {
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
pub(super) enum Counted {
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
pub(super) enum Capped {
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

    /// A tool call was sent.
    pub(super) fn charge_tool(&mut self, node: NodeRef) {
        self.usage.tool_calls += 1;
        self.meter(node, Counted::Used, |meter| meter.used.tool_calls += 1);
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
                "{whose} has used {used} {what} of its budget of {cap}, {over} too many: replies were larger than what was reserved for them (`max_tokens` limits a reply)"
            );
            Some(Warning { code: OVERSHOT.into(), message, node: place })
        });
        let over: Vec<Warning> = over.collect();
        for warning in over {
            self.warn_anew(warning);
        }
    }

    /// Tells that the tokens of so many more requests that were ended early are unknown, where there is a cap on tokens or cost.
    pub(super) fn warn_unknown(&mut self, node: NodeRef, more: i64) {
        if !self.is_below(node, |budget| budget.tokens.is_some() || budget.cost.is_some()) {
            return;
        }
        self.uncounted = self.uncounted.saturating_add_signed(more);
        if self.uncounted == 0 {
            return self.warnings.retain(|warning| &*warning.code != USAGE_UNKNOWN);
        }
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
        self.counts_from = self.events;
        self.uncounted = 0;
        self.unsent.clear();
        self.warnings.retain(|warning| !matches!(&*warning.code, OVERSHOT | USAGE_UNKNOWN));
    }

    /// Changes the meters of a node with a budget, of its frame if somebody may ask for it, and of all that these are in. The run has its own.
    pub(super) fn meter(&mut self, node: NodeRef, counted: Counted, change: impl Fn(&mut Meter)) {
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
    pub(super) fn is_below(&self, node: NodeRef, kind: impl Fn(&Budget) -> bool) -> bool {
        kind(&self.start.budget) || self.capped(node).any(|(_, budget)| kind(budget))
    }

    /// The budgets that a node and its frame have, and all that these are in, from the inside out.
    pub(super) fn capped(&self, node: NodeRef) -> impl Iterator<Item = (Capped, &Budget)> {
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
        let mut used = meters.map(|meters| meters.all.used).unwrap_or_default();
        // A frame that is closed has counted what turned out not to be sent.
        let unsent = |end: &&EarlyEnd| {
            frame.is_some_and(|frame| frame.depth > end.depth && frame.path.within(&end.effect.0).is_some())
        };
        for end in self.unsent.iter().filter(unsent) {
            match end.model {
                true => used.model_calls = used.model_calls.saturating_sub(1),
                false => used.tool_calls = used.tool_calls.saturating_sub(1),
            }
        }
        used
    }

    pub(super) fn meter_of(&self, place: Capped) -> Meter {
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
