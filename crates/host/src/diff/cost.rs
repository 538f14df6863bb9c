//! What each node of a run used.

use super::Side;
use crate::timeline::{CallKind, NodeTimeline, Timeline};
use selvedge_engine::{Outcome, Usage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a node used, in all its visits, paths and iterations; in a fork since that left its source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// How often it began.
    pub visits: u64,
    /// Its calls and tokens.
    pub usage: Usage,
    /// How long its calls were under way, in milliseconds.
    pub worked_ms: u64,
    /// Calls that took a recorded outcome (E-29).
    pub reused: u64,
    /// The run whose outcomes it took, or with which it shares what came of it.
    pub reused_from: Option<Arc<str>>,
}

/// By the names that results have (W-03).
pub(super) fn by_node(side: &Side) -> BTreeMap<String, Cost> {
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    for node in side.timeline.nodes() {
        let name = side.state.report_name(&side.timeline.event_name(node)).into_owned();
        costs.entry(name).or_default().add(&side.timeline, node);
    }
    costs
}

impl Cost {
    /// Adds what a node instance used.
    pub(crate) fn add(&mut self, timeline: &Timeline, node: &NodeTimeline) {
        let left = timeline.left_source();
        self.visits += node.visits.len() as u64;
        for visit in &node.visits {
            for (call, attempt) in visit.attempts() {
                let Some(ended) = attempt.ended.filter(|ended| ended.n > left) else { continue };
                if call.reused.is_some() {
                    self.reused += 1;
                    continue;
                }
                match &attempt.outcome {
                    Some(outcome) => self.count(&call.kind, outcome),
                    // One that was ended early counts if it had been sent.
                    None if attempt.was_sent() => self.count_call(&call.kind),
                    None => continue,
                }
                let by_journal = ended.at.saturating_sub(attempt.requested.at);
                let took = attempt.took.map_or(by_journal, |took| i64::from(took.worked_ms));
                self.worked_ms += u64::try_from(took).unwrap_or(0);
            }
        }
        if let Some(reuse) = timeline.reuse(node)
            && let Some(from) = reuse.from
        {
            self.reused_from = Some(from.clone());
        }
    }
    /// Counts what a call came to as the run's usage does (C-02, E-20).
    fn count(&mut self, kind: &CallKind, outcome: &Outcome) {
        if outcome.is_sent() {
            self.count_call(kind);
        }
        if let Some(tokens) = outcome.tokens() {
            self.usage.tokens.add(tokens);
        }
    }
    fn count_call(&mut self, kind: &CallKind) {
        self.usage.tool_calls += u64::from(matches!(kind, CallKind::Tool(_)));
        self.usage.model_calls += u64::from(*kind == CallKind::Model);
    }
}
