//! The rungs of the ladder in words, for people.

use crate::durations::duration;
use crate::failure::is_rate_limit;
use crate::words::command;
use selvedge_engine::graph::is_operation;
use selvedge_engine::{Action, Chooser, Fault, Outcome};
use selvedge_host::text::{counted, one_line};
use selvedge_host::timeline::{Call, Rung, Spent, What};
use std::sync::Arc;

/// Ids that a line lists.
const LISTED: usize = 12;

/// What happened, in words.
pub(crate) trait Words {
    /// The word that stands before it, of at most seven letters.
    fn word(&self) -> &'static str;
    /// What happened, in a line.
    fn told(&self) -> String;
}

impl Words for What {
    fn word(&self) -> &'static str {
        match self {
            What::Retry { .. } => "retry",
            What::Fault { .. } => "fault",
            What::Action { action: Action::GiveUp, .. } => "give up",
            What::Action { .. } => "mend",
            What::Planned { .. } => "plan",
            What::Skipped { .. } => "skip",
            What::Ended { fault: None } => "done",
            What::Ended { fault: Some(_) } => "fail",
        }
    }

    fn told(&self) -> String {
        match self {
            What::Retry { reason, after_ms } => {
                let wait = duration(i64::try_from(*after_ms).unwrap_or(i64::MAX));
                again("", &wait, reason)
            }
            What::Fault { tool, fault } => {
                let of = match tool.as_deref() {
                    None => "the model's answer: ".to_owned(),
                    Some(tool) if is_operation(tool) => "the new steps: ".to_owned(),
                    Some(tool) => format!("{tool}: "),
                };
                format!("{of}{}", self::fault(fault))
            }
            What::Action { action, by, reason, tool, parameters, strategy, spent } => {
                let done = done(*action, tool.as_deref(), parameters.is_some(), strategy.as_deref());
                format!("{done}{}: {reason}{}", chosen(*action, *by), cost(spent))
            }
            What::Planned { none: true, spent, .. } => {
                format!("no steps: this one and all after it are left out{}", cost(spent))
            }
            What::Planned { steps, spent, .. } if steps.is_empty() => {
                format!("other steps from here on{}", cost(spent))
            }
            What::Planned { steps, spent, .. } => {
                let listed: Vec<&str> = steps.iter().take(LISTED).map(|id| &**id).collect();
                let more = if steps.len() > LISTED { ", …" } else { "" };
                format!(
                    "{} from here on: {}{more}{}",
                    counted(steps.len(), "step"),
                    listed.join(", "),
                    cost(spent)
                )
            }
            What::Skipped { because } => format!("may depend on {because}, which has no result"),
            What::Ended { fault: None } => "succeeded after all".to_owned(),
            What::Ended { fault: Some(fault) } => self::fault(fault),
        }
    }
}

/// A call that failed and is tried again after a while: `model again in 2 s: rate limit`.
pub(crate) fn again(what: &str, wait: &str, reason: &str) -> String {
    format!("{what} again in {wait}: {reason}").trim_start().to_owned()
}

/// Why a call is tried again, with what matters most in front: lines are cut.
pub(crate) fn because(call: &Call) -> String {
    let mut attempts = call.attempts.iter().rev();
    let reason = attempts.next().and_then(|last| last.reason.as_deref()).unwrap_or_default();
    let before = attempts.next().and_then(|before| before.outcome.as_ref());
    let limited = matches!(before, Some(Outcome::Failed(failure)) if is_rate_limit(&failure.fault));
    format!("{}{reason}", if limited { "rate limit: " } else { "" })
}

/// What is done, in words.
pub(crate) fn done(action: Action, tool: Option<&str>, parameters: bool, strategy: Option<&str>) -> String {
    let tool = tool.unwrap_or("its tool");
    match (action, strategy) {
        (Action::RetryWithParams, _) if parameters => format!("try {tool} with other parameters"),
        (Action::RetryWithParams, _) => format!("try {tool} again"),
        (Action::RetryWithTool, _) => format!("try {tool} instead"),
        (Action::RepairStep, _) => format!("repair the step, with {tool}"),
        (Action::Replan, Some(strategy)) => format!("replan ({strategy})"),
        (Action::Replan, None) => "replan".to_owned(),
        (Action::GiveUp, _) => "give up".to_owned(),
    }
}

/// Why it is that which is done, in words that follow it: who chose, or by which rule (D-17, D-18).
pub(crate) fn chosen(action: Action, by: Chooser) -> &'static str {
    match (by, action) {
        (Chooser::Model, _) => ", by the model",
        (Chooser::Ladder, Action::GiveUp) => "",
        (Chooser::Ladder, _) => ", the next of its `alternatives`",
        (Chooser::Default, _) => ", as the model's answer can't be read",
    }
}

fn fault(fault: &Fault) -> String {
    format!("{}: {}", fault.kind.name(), fault.message)
}

/// ` (1 model call, 300+40 tokens, cost 0.01)`; nothing if no model was asked.
fn cost(spent: &Spent) -> String {
    if spent.calls == 0 { String::new() } else { format!(" ({})", used(spent)) }
}

/// What models used, in words.
fn used(spent: &Spent) -> String {
    let mut text = counted(spent.calls, "model call");
    if spent.tokens.input > 0 || spent.tokens.output > 0 {
        text.push_str(&format!(", {}+{} tokens", spent.tokens.input, spent.tokens.output));
    }
    if spent.tokens.cost > 0.0 {
        text.push_str(&format!(", cost {}", spent.tokens.shown_cost()));
    }
    text
}

/// Characters of a fault in the digest; nodes that it lists.
const SHORT: usize = 100;
const NODES: usize = 10;

/// What was done about what failed, a line for each node, for the end of a run: which step failed, what was done, what
/// it cost (D-22).
pub(crate) fn digest(rungs: &[Rung], run: &str) -> Vec<String> {
    let mut nodes: Vec<(&Arc<str>, Vec<&What>)> = Vec::new();
    let mut skipped: Vec<&str> = Vec::new();
    for rung in rungs {
        match (&rung.what, nodes.iter_mut().find(|(node, _)| **node == rung.node)) {
            (What::Skipped { .. }, _) => skipped.push(&rung.node),
            (what, Some((_, whats))) => whats.push(what),
            (what, None) => nodes.push((&rung.node, vec![what])),
        }
    }
    // A task that was planned has not failed, and the plan has been told; so has a fault about which nothing was done.
    nodes.retain(|(_, whats)| {
        !whats.iter().all(|what| matches!(what, What::Planned { .. } | What::Ended { fault: Some(_) }))
    });
    let mut lines: Vec<String> =
        nodes.iter().take(NODES).map(|(node, whats)| format!("{node}: {}", of_node(whats))).collect();
    if !skipped.is_empty() {
        let more = if skipped.len() > LISTED { ", …" } else { "" };
        let listed = skipped.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
        lines.push(format!("skipped, because they may depend on what failed: {listed}{more}"));
    }
    if nodes.len() > NODES {
        lines.push(format!("… {} more nodes: {}", nodes.len() - NODES, command(&["explain", run])));
    }
    lines
}

/// The way of one node: its first fault, what was done, how it ended, what it cost.
fn of_node(whats: &[&What]) -> String {
    let (mut parts, mut spent) = (Vec::new(), Spent::default());
    let (mut failed, mut again) = (false, false);
    for what in whats {
        match what {
            // However often.
            What::Retry { .. } if again => {}
            What::Retry { reason, .. } => {
                again = true;
                parts.push(format!("tried again ({})", one_line(reason, SHORT)));
            }
            What::Fault { tool: Some(tool), fault } if !failed && !is_operation(tool) => {
                failed = true;
                parts.push(format!("{tool} failed ({})", one_line(&self::fault(fault), SHORT)));
            }
            What::Fault { .. } | What::Skipped { .. } => {}
            What::Action { action, tool, parameters, strategy, spent: more, .. } => {
                spent.add(more);
                parts.push(done(*action, tool.as_deref(), parameters.is_some(), strategy.as_deref()));
            }
            What::Planned { steps, none, spent: more } => {
                spent.add(more);
                parts.push(match (none, steps.is_empty()) {
                    (true, _) => "no steps: the rest is left out".to_owned(),
                    (false, true) => "other steps".to_owned(),
                    (false, false) => format!("{} planned", counted(steps.len(), "step")),
                });
            }
            What::Ended { fault: None } => parts.push("succeeded".to_owned()),
            What::Ended { fault: Some(_) } => parts.push("failed".to_owned()),
        }
    }
    let cost = if spent.calls == 0 { String::new() } else { format!("; {}", used(&spent)) };
    format!("{}{cost}", parts.join(" → "))
}
