//! Leaves that nodes of several dialects have in common: a model that may call tools (P-10, P-11, P-14), and how leaves
//! that know each other by name become a flow.

use crate::json::Spanned;
use crate::settings::{Budget, Retry as Written, ToolEffects, ToolLimit};
use selvedge_engine::graph::{
    Act, AtLimit, Between, Draft, Edge, Guard, Infer, Leaf, Retry, Rounds, is_operation,
};
use selvedge_engine::template::Template;
use selvedge_engine::{Effects, Graph, Ix, LeafIx, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What follows the body of a flow.
pub(crate) const OUT: &str = "";
/// Rounds of a tool loop, unless the node says otherwise (P-14).
pub(crate) const MAX_ROUNDS: u32 = 25;

/// A prompt, the model that it is for, and what becomes of the calls of its reply.
pub(crate) struct Talk {
    pub(crate) prompt: Template,
    pub(crate) model: Infer,
    /// Whether the model is asked again with the results of its calls (P-11, E-30).
    pub(crate) in_rounds: bool,
    pub(crate) retry: Retry,
    pub(crate) timeout_s: Option<f64>,
    /// What works on the thread between the rounds.
    pub(crate) between: Option<Between>,
}

impl Talk {
    /// The leaves, the prompt's first. They go on at [`OUT`].
    pub(crate) fn leaves(self) -> Vec<Draft> {
        let Self { prompt, model, in_rounds, retry, timeout_s, between } = self;
        let prompt = Act::AppendText(prompt);
        if in_rounds {
            // Of an agent; to a node that a document names its own questions are put (E-21).
            let takes_messages = between.is_some();
            let rounds =
                Rounds { model, retry, timeout_s, at_limit: AtLimit::Conclude, between, takes_messages };
            let mut drafts = vec![("prompt", prompt, rounds.entry())];
            drafts.extend(rounds.leaves(OUT));
            return drafts;
        }
        vec![
            ("prompt", prompt, vec![(Guard::Always, "model")]),
            ("model", Act::Infer(Box::new(model)), vec![(Guard::Calls, "tools"), (Guard::Always, OUT)]),
            ("tools", Act::Answer { run: true, retry, timeout_s }, vec![(Guard::Always, OUT)]),
        ]
    }
}

/// Names to indices. A leaf without edges goes on to the next one; [`OUT`] is the leaf of that name, or the end.
pub(crate) fn table(drafts: Vec<Draft>, out: &str) -> Table<LeafIx, Leaf> {
    let names: Vec<&str> = drafts.iter().map(|(name, ..)| *name).collect();
    let find = |name: &str| names.iter().position(|known| *known == name).map(LeafIx::new);
    let out = find(out);
    let mut leaves = Table::with_capacity(drafts.len());
    for (at, (name, act, edges)) in drafts.into_iter().enumerate() {
        let next = (at + 1 < names.len()).then(|| LeafIx::new(at + 1));
        let next = match edges.as_slice() {
            [] if next.is_none() => Vec::new(),
            [] => vec![Edge { when: Guard::Always, to: next }],
            edges => {
                let to = |name: &str| if name == OUT { out } else { find(name) };
                edges.iter().map(|(when, name)| Edge { when: *when, to: to(name) }).collect()
            }
        };
        leaves.push(Leaf { name: name.into(), act, next });
    }
    leaves
}

/// Transient retries (P-24, D-17). Unwritten, it is the engine that knows how many there are: it depends on what the
/// tool that is called does to the world.
pub(crate) fn retry(written: Option<&Spanned<Written>>) -> Retry {
    let written = written.map(|retry| retry.value);
    Retry {
        max: written.map(|retry| retry.max),
        backoff_s: written.and_then(|retry| retry.backoff).map(|backoff| backoff.as_secs_f64()),
        is_inherited: false,
    }
}

/// W-18: the `retry` of the node that runs a document is that of the tool calls in it whose nodes say nothing.
pub(crate) fn inherit_retry(graph: &mut Graph, retry: Retry) {
    let nodes = graph.nodes.values_mut().flat_map(|node| node.body.leaves.values_mut());
    let tails = graph.tails.values_mut().flat_map(|tail| Arc::make_mut(tail).leaves.values_mut());
    for leaf in nodes.chain(tails) {
        let own = match &mut leaf.act {
            Act::Call(call) if !is_operation(&call.tool) => &mut call.retry,
            Act::Answer { retry, .. } => retry,
            _ => continue,
        };
        if own.max.is_none() {
            *own = Retry { is_inherited: true, ..retry };
        }
    }
}

pub(crate) fn seconds(written: Option<&Spanned<Duration>>) -> Option<f64> {
    written.map(|time| time.value.as_secs_f64())
}

pub(crate) fn effects_of(effects: ToolEffects) -> Effects {
    match effects {
        ToolEffects::Pure => Effects::Pure,
        ToolEffects::Read => Effects::Read,
        ToolEffects::Idempotent => Effects::Idempotent,
        ToolEffects::Write => Effects::Write,
    }
}

/// Calls of single tools that a flow may make (P-14).
pub(crate) fn call_limits<'l>(limits: impl Iterator<Item = &'l ToolLimit>) -> BTreeMap<Arc<str>, u32> {
    let most = |limit: &ToolLimit| u32::try_from(limit.limit.value).unwrap_or(u32::MAX);
    limits.map(|limit| (limit.tool.value.clone(), most(limit))).collect()
}

/// A budget as the engine has it (E-20).
pub(crate) fn budget_of(written: &Budget) -> selvedge_engine::Budget {
    selvedge_engine::Budget {
        calls: written.calls.as_ref().map(|cap| cap.value),
        tokens: written.tokens.as_ref().map(|cap| cap.value),
        cost: written.cost.as_ref().map(|cap| cap.value),
    }
}
