//! What was used where, and caps on it (E-20): of the run, of a node with all below it, of a frame.

use super::frame::Frame;
use super::opened::Children;
use super::state::State;
use super::usage::{Meter, Meters, Usage};
use crate::effect::Tokens;
use crate::event::{Budget, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::Act;
use crate::ids::NodeRef;
use std::sync::Arc;

impl Budget {
    /// The first cap that is reached: what of, where it is, and what was used of it. Models that are asked count as calls
    /// before they answer.
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
    /// Models that are asked, which only budgets ask for.
    Flying,
}

/// What is capped below the run itself.
#[derive(Clone, Copy)]
enum Capped {
    Node(NodeRef),
    /// The frame that the node is in.
    Frame(NodeRef),
}

impl State {
    /// A model has answered, or brought figures all the same.
    pub(super) fn charge(&mut self, node: NodeRef, tokens: &Tokens) {
        self.usage.add_reply(tokens);
        self.meter(node, Counted::Used, |meter| meter.used.add_reply(tokens));
    }

    /// An operation has used models (E-40).
    pub(super) fn charge_operation(&mut self, node: NodeRef, tokens: &Tokens) {
        self.usage.tokens.add(tokens);
        self.meter(node, Counted::Used, |meter| meter.used.tokens.add(tokens));
    }

    /// A tool really ran.
    pub(super) fn charge_tool(&mut self, node: NodeRef) {
        self.usage.tool_calls += 1;
        self.meter(node, Counted::Used, |meter| meter.used.tool_calls += 1);
    }

    /// A model is being asked, or no more.
    pub(super) fn count_flying(&mut self, node: NodeRef, more: bool) {
        let change = |flying: u64| if more { flying + 1 } else { flying.saturating_sub(1) };
        self.pending_models = change(self.pending_models);
        self.meter(node, Counted::Flying, |meter| meter.flying = change(meter.flying));
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
        let called: Arc<str> = match place {
            Capped::Node(node) => self.name(node),
            Capped::Frame(node) => self.of(node).path.to_string().into(),
        };
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

    /// Whether tokens are capped where a node is, or where the run is.
    pub(super) fn caps_tokens(&self, node: NodeRef) -> bool {
        let tokens = |budget: &Budget| budget.tokens.is_some();
        tokens(&self.start.budget) || self.capped(node).any(|(_, budget)| tokens(budget))
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

fn said<'w>(what: &'w str, cap: &str) -> &'w str {
    if cap == "1" { what.trim_end_matches('s') } else { what }
}
