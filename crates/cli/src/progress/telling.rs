//! What there is to say of one event, at the moment of it.

use super::crowd::Crowd;
use super::{Progress, SHOWN, SHOWN_FIELD, Said, data};
use crate::asks;
use crate::durations::duration;
use crate::frames;
use crate::names;
use crate::printed::message;
use crate::recovery::Words as _;
use crate::recovery::{again, because};
use crate::status::Words as _;
use selvedge_engine::graph::is_operation;
use selvedge_engine::{Asked, Body, EffectId, Event, Outcome, Printed, State, Warning};
use selvedge_host::text::{counted, one_line};
use selvedge_host::timeline::{
    Attempt, Call, CallKind, Moment, NodeStatus, NodeTimeline, Timeline, Visit, What,
};
use std::fmt::Write;

/// A moment at which there is something to say.
pub(super) struct Telling<'t> {
    pub(super) lines: &'t Progress,
    pub(super) said: &'t mut Said,
    pub(super) timeline: &'t Timeline,
    pub(super) state: &'t State,
    pub(super) now: Moment,
}

impl Telling<'_> {
    fn line(&self, mark: (&str, &str), text: &str) {
        self.lines.line(self.now.at, mark, text);
    }

    pub(super) fn event(&mut self, event: &Event) {
        let more = self.lines.ui.verbose > 0;
        if more {
            self.resolved(event);
        }
        match event {
            Event::NodeStarted { node, .. } => self.started(node),
            Event::NodeFinished { node, .. } => self.finished(node),
            Event::Requested { effect, .. } if more => {
                if let Some((row, call, _)) = self.timeline.attempt(effect) {
                    self.line(("2", "call "), &format!("{}: {}", self.short(row), request(call)));
                }
            }
            Event::Completed { effect, outcome, printed, .. } => {
                self.completed(effect, outcome, printed.as_deref());
            }
            Event::Retried { effect, after_ms, .. } => self.retried(effect, *after_ms),
            Event::Reused { effect, from, .. } if more => {
                if let Some((row, ..)) = self.timeline.attempt(effect) {
                    let from = names::effect(self.state, from);
                    self.line(("2", "reuse"), &format!("{}: the recorded result of {from}", self.short(row)));
                }
            }
            Event::Refused { effect, fault, .. } if more => {
                let effect = names::effect(self.state, effect);
                self.line(("33", "deny "), &format!("{effect}: {}", fault.message));
            }
            Event::Asked(asked) => self.asked(asked),
            Event::PersonMessage(message) => {
                let by = message.by.as_deref().unwrap_or("a person");
                self.line(("35", "said "), &format!("{by}: {}", self.lines.short(&message.text, SHOWN)));
            }
            Event::Appended { node, body: Body::PersonMessage(_), .. } => {
                if let Some(row) = self.timeline.named(node) {
                    self.line(("35", "hears"), &self.title(row));
                }
            }
            Event::Appended { node, body: Body::Text(_, text), .. } if more && !node.is_empty() => {
                let text = one_line(text, SHOWN);
                self.line(("2", "say  "), &format!("{}: {text}", self.state.told_name(node)));
            }
            _ => {}
        }
        let own = self.said.warned.of(event);
        self.warn(&own);
        self.rung();
    }

    /// Whether there may be a line about a node: there are few about one of many iterations or paths (C-01). One says now and then
    /// how far they have come; `single` is whether there may be one about it alone.
    fn in_crowd(&mut self, row: usize, single: impl FnOnce(&mut Crowd, i64) -> bool) -> bool {
        let (timeline, now) = (self.timeline, self.now.at);
        let Some(node) = timeline.nodes().get(row).filter(|_| self.lines.ui.verbose == 0) else {
            return true;
        };
        let Some((opener, crowd)) = self.said.crowds.of(timeline, node, now) else { return true };
        let (may, due) = (single(crowd, now), crowd.is_due(now));
        if due && !self.lines.live {
            self.count(opener);
        }
        may
    }

    /// Whether nobody is told of a node that does what it should: it has no name.
    fn is_nameless(&self, row: usize) -> bool {
        let def = self.timeline.nodes().get(row).and_then(|node| self.timeline.def(node));
        self.lines.ui.verbose == 0 && def.is_some_and(|def| def.name.is_empty())
    }

    /// How far the iterations or paths of a node have come.
    fn count(&self, opener: usize) {
        let Some(node) = self.timeline.nodes().get(opener) else { return };
        let total = self.state.iterations(&self.timeline.event_name(node));
        let counts = node.current().and_then(|visit| frames::counts(&visit.frames, total));
        if let Some(counts) = counts {
            self.line(("2", "going"), &format!("{}: {counts}", self.title(opener)));
        }
    }

    fn started(&mut self, node: &str) {
        let Some(row) = self.timeline.named(node).filter(|row| !self.is_nameless(*row)) else { return };
        if self.in_crowd(row, |_, _| false) && (self.lines.ui.verbose > 0 || !self.lines.live) {
            self.line(("36", "start"), &self.title(row));
        }
    }

    fn finished(&mut self, name: &str) {
        let Some(row) = self.timeline.named(name) else { return };
        let Some(visit) = self.timeline.nodes().get(row).and_then(NodeTimeline::current) else { return };
        let took = self.took(visit);
        let failed = visit.fault.is_some();
        if !failed && self.is_nameless(row) {
            return;
        }
        let may = self.in_crowd(row, |crowd, now| match failed {
            true => crowd.may_say(now),
            false => crowd.is_slow(took.unwrap_or(0)),
        });
        if !may {
            return;
        }
        let (title, text) = (self.title(row), self.figures(visit, took));
        match visit.fault.as_deref() {
            None => {
                self.lines.line_to(self.now.at, ("32", "done "), &title, &text);
                if self.lines.ui.verbose > 0 {
                    self.synced(name);
                }
            }
            Some(fault) => {
                // What is said of it is said again at the end, in full.
                let said = match self.told_at_the_end(name) {
                    true => one_line(&fault.message, SHOWN_FIELD),
                    false => fault.message.clone(),
                };
                self.line(("31", "fail "), &format!("{title}{text}  {}: {said}", fault.kind.name()));
            }
        }
    }

    /// How long a visit took; one that failed before it started took no time. Of one that an earlier process started, time counts
    /// from when this one began.
    fn took(&self, visit: &Visit) -> Option<i64> {
        let began = visit.started.map(|started| if started.n == 0 { self.lines.begun } else { started.at });
        began.map(|began| self.now.at.saturating_sub(began))
    }

    /// What a visit took and used.
    fn figures(&self, visit: &Visit, took: Option<i64>) -> String {
        let mut text = String::new();
        let Some(took) = took else { return text };
        let _ = write!(text, "  {}", duration(took));
        text.extend(frames::came_to(visit).map(|told| format!(", {told}")));
        if visit.reused > 0 && visit.requested == 0 {
            let source = self.timeline.source().or(self.lines.source.as_ref());
            let _ = write!(text, ", reused from {}", source.map_or("an earlier visit", |source| source));
        }
        if visit.tokens.input > 0 || visit.tokens.output > 0 {
            let _ = write!(text, ", {}+{} tokens", visit.tokens.input, visit.tokens.output);
        }
        match visit.attempts().filter(|(call, attempt)| is_tool_call(call, attempt)).count() {
            0 => {}
            1 => text.push_str(", 1 tool call"),
            calls => drop(write!(text, ", {calls} tool calls")),
        }
        text
    }

    fn retried(&mut self, effect: &EffectId, after_ms: u64) {
        self.told_last(effect);
        let Some((row, call, _)) = self.timeline.attempt(effect) else { return };
        if self.in_crowd(row, Crowd::may_say) {
            let wait = duration(i64::try_from(after_ms).unwrap_or(i64::MAX));
            // Also without -v: a wait of many seconds must not look like a hang.
            let text = again(name(call), &wait, &because(call));
            self.line(("33", "retry"), &format!("{}: {text}", self.short(row)));
        }
    }

    fn asked(&mut self, asked: &Asked) {
        let Some(row) = self.timeline.named(&asked.node) else { return };
        if !self.in_crowd(row, Crowd::may_say) {
            return;
        }
        let open = self.state.asks().get(&asked.ask).map(|ask| asks::prompt(self.state, ask));
        let prompt = self.lines.ui.redacted(open.as_ref().unwrap_or(&asked.prompt)).into_owned();
        let asks = format!("{} {}", self.title(row), NodeStatus::Asking.words());
        // Who sits here is asked, with all of it.
        let text = if self.lines.ui.may_ask { asks } else { format!("{asks}: {prompt}") };
        self.line(("35", "ask  "), &text);
    }

    fn completed(&mut self, effect: &EffectId, outcome: &Outcome, printed: Option<&Printed>) {
        let lines = self.told_last(effect);
        let Some((row, call, attempt)) = self.timeline.attempt(effect) else { return };
        if self.lines.ui.verbose == 0 {
            return;
        }
        let told = match outcome {
            Outcome::Reply(reply) if reply.calls.is_empty() => one_line(&reply.text, SHOWN),
            Outcome::Reply(reply) => {
                let calls: Vec<&str> = reply.calls.iter().map(|call| &*call.name).collect();
                format!("calls {}", calls.join(", "))
            }
            Outcome::Output(output) => one_line(&output.to_string(), SHOWN),
            Outcome::Operated(operated) => one_line(&operated.output.to_string(), SHOWN),
            Outcome::Failed(failure) => {
                format!("{}: {}", failure.fault.kind.name(), message(&failure.fault, printed))
            }
        };
        let took = duration(self.now.at.saturating_sub(attempt.requested.at));
        self.line(("2", "back "), &format!("{}: {} after {took}: {told}", self.short(row), name(call)));
        let again = matches!(outcome, Outcome::Failed(_)) && {
            let node = self.timeline.nodes().get(row);
            node.is_some_and(|node| self.told_at_the_end(&self.timeline.event_name(node)))
        };
        if let Some(printed) = printed.filter(|_| !again) {
            self.lines.printed(printed, &lines);
        }
    }

    /// Says what is done about a fault; ends and retries are said anyway.
    fn rung(&mut self) {
        let rungs = self.timeline.recovery().rungs();
        // Fewer than before: the run has begun another document.
        let new = rungs.get(self.said.rungs..).unwrap_or_default();
        self.said.rungs = rungs.len();
        for rung in new {
            let mark = match &rung.what {
                What::Fault { .. } => ("33", "fault"),
                What::Action { .. } => ("33", "mend "),
                What::Planned { .. } => ("36", "plan "),
                What::Skipped { .. } => ("33", "skip "),
                What::Retry { .. } | What::Ended { .. } => continue,
            };
            self.line(mark, &format!("{}: {}", self.title_of(&rung.node), rung.what.told()));
        }
    }

    /// What the run itself warns of, when it does: of a long run nobody waits for the end to see it.
    pub(super) fn warn(&self, warnings: &[Warning]) {
        for warning in warnings {
            let node = warning.node.as_deref().map(|node| format!("{}: ", self.title_of(node)));
            self.line(("1;33", "warn "), &format!("{}{}", node.unwrap_or_default(), warning.message));
        }
    }

    /// Whether the run has failed of a node: then all about it is told once, at the end.
    fn told_at_the_end(&self, node: &str) -> bool {
        let fault = self.state.ended().and_then(|(_, fault)| fault);
        !self.lines.ui.json && fault.is_some_and(|fault| fault.node.as_deref() == Some(node))
    }

    /// What became of placeholders: as written, and as used.
    fn resolved(&self, event: &Event) {
        let Some(resolved) = data::resolved(self.timeline, event) else { return };
        let data::Resolved { node, what, source, value } = resolved;
        let node = node.map(|row| format!("{}: ", self.short(row))).unwrap_or_default();
        let (source, value) = (self.lines.short(&source, SHOWN), self.lines.short(&value, SHOWN));
        self.line(("2", "param"), &format!("{node}{what} {source} → {value}"));
    }

    /// Metadata that a node's result brought (D-05).
    fn synced(&self, node: &str) {
        let Some(fields) = data::synced(self.state, node) else { return };
        let told: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name} = {}", self.lines.short(&value.to_string(), SHOWN_FIELD)))
            .collect();
        let count = counted(fields.len(), "field");
        self.line(("2", "sync "), &format!("{node}: {count}: {}", told.join(", ")));
    }

    fn title(&self, row: usize) -> String {
        title(self.timeline, row)
    }

    /// The title of the node that an event names.
    fn title_of(&self, name: &str) -> String {
        match self.timeline.named(name) {
            Some(row) => self.title(row),
            None => self.state.told_name(name).into_owned(),
        }
    }

    /// The same without the name.
    fn short(&self, row: usize) -> String {
        short(self.timeline, row)
    }
}

/// A node's id and, where it says more, its name.
pub(super) fn title(timeline: &Timeline, row: usize) -> String {
    let def = timeline.nodes().get(row).and_then(|node| timeline.def(node));
    match def.filter(|def| def.name != def.id && !def.name.is_empty()) {
        Some(def) => format!("{} {}", short(timeline, row), def.name),
        None => short(timeline, row),
    }
}

pub(super) fn short(timeline: &Timeline, row: usize) -> String {
    timeline.nodes().get(row).map(|node| timeline.told(node).into_owned()).unwrap_or_default()
}

/// What is called.
pub(super) fn name(call: &Call) -> &str {
    call.kind.name().map_or("model", |name| name)
}

/// The same with its arguments.
pub(super) fn request(call: &Call) -> String {
    match (&call.kind, &call.arguments) {
        (CallKind::Tool(name) | CallKind::Operation(name), Some(arguments)) => {
            format!("{name} {}", one_line(&arguments.to_string(), SHOWN))
        }
        _ => name(call).to_owned(),
    }
}

/// Whether an attempt was a call of a tool that was made.
fn is_tool_call(call: &Call, attempt: &Attempt) -> bool {
    let made = match &attempt.outcome {
        Some(Outcome::Output(_)) => true,
        Some(Outcome::Failed(failure)) => !failure.unsent,
        _ => false,
    };
    let tool = matches!(&call.kind, CallKind::Tool(name) if !is_operation(name));
    made && tool && !attempt.lost && call.reused.is_none()
}
