//! Progress on stderr: one line when a node starts and one when it ends, more with `-v` (C-01).

use crate::asks;
use crate::live::text::{cut, width};
use crate::look::events::node_of;
use crate::look::page::wrap;
use crate::printed::message;
use crate::recovery::Words as _;
use crate::recovery::again;
use crate::status::Words as _;
use crate::ui::Ui;
use limited::Limited;
use selvedge_engine::graph::is_operation;
use selvedge_engine::{
    Asked, Body, EffectId, Event, Fault, Outcome, Printed, Record, Request, State, Tokens, Warning,
};
use selvedge_host::text::one_line;
use selvedge_host::timeline::{Ladder, NodeStatus, Nodes, What};
use selvedge_runtime::{Clock, Delta, SystemClock, Watcher};
use selvedge_store::RunInfo;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tells::Told;
use waits::Waits;
use warned::Warned;

mod data;
pub(crate) mod limited;
mod tells;
mod waits;
mod warned;

/// Characters of a value that a line shows.
const SHOWN: usize = 160;
const SHOWN_FIELD: usize = 60;
/// Characters of a line in all, and columns that it takes in the narrowest terminal.
const LONGEST: usize = 400;
const SHORTEST: usize = 12;

/// Prints what happens to a run.
pub(crate) struct Progress {
    ui: Ui,
    /// Whether a live view shows what has started and what waits.
    live: bool,
    /// Whether it tells of a run that another process drives, by the times of its journal.
    told: bool,
    seen: Mutex<Seen>,
    ladder: Arc<Mutex<Ladder>>,
}

/// What earlier events said.
#[derive(Default)]
struct Seen {
    begun: Option<i64>,
    /// The run that this one is a fork of.
    source: Option<Arc<str>>,
    known: Nodes,
    /// What people are told that nodes are that events call otherwise (W-03).
    called: HashMap<Arc<str>, String>,
    nodes: HashMap<Arc<str>, Node>,
    /// Which node an effect belongs to, what it is called, and when it was asked for.
    effects: HashMap<EffectId, (Arc<str>, String, i64)>,
    /// What calls last told of how far they have come.
    told: HashMap<EffectId, Told>,
    limited: Limited,
    waits: Option<Waits>,
    warned: Warned,
}

#[derive(Default)]
struct Node {
    started: i64,
    tokens: Tokens,
    calls: u32,
    /// Calls that took a recorded result, and those that were asked for.
    reused: u32,
    asked: u32,
}

impl Progress {
    /// A watcher that prints, unless nothing is to be printed. What is in flight already, because the run goes
    /// on after a crash or an interrupt, is said at once if it is run `again`. `source`: the run that it is a fork of; `begun`: when
    /// this process began to drive it, by a clock that nobody can set. Under a `live` view only what is worth keeping is.
    pub(crate) fn new(
        ui: &Ui,
        state: &State,
        (source, begun): (Option<&str>, i64),
        live: bool,
        again: bool,
    ) -> Option<Self> {
        if ui.quiet {
            return None;
        }
        let (now, told) = (running_ms(), false);
        let progress = Self { ui: ui.clone(), live, told, seen: Mutex::default(), ladder: Arc::default() };
        let mut seen = Seen { begun: Some(begun), source: source.map(Into::into), ..Seen::default() };
        seen.known.follow(state);
        seen.warned.skip(state);
        for effect in state.pending().keys() {
            let Some((node, what)) = request(state, effect) else { continue };
            seen.call(state, &node);
            let title = seen.title(&node);
            if again {
                progress.line(&seen, now, ("36", "again"), &format!("{title}: {what} was in flight"));
            }
            let name = what.split(' ').next().unwrap_or_default().to_owned();
            seen.effects.insert(effect.clone(), (node, name, now));
            locked(&progress.ladder).in_flight(&seen.known, effect);
        }
        if ui.verbose > 0 {
            seen.waits = Some(Waits::new(state));
        }
        *locked(&progress.seen) = seen;
        Some(progress)
    }

    /// A watcher of a run that another process drives, and by the times of its journal.
    pub(crate) fn follow(ui: &Ui, state: &State, run: &RunInfo, live: bool) -> Option<Self> {
        let source = run.fork.as_ref().map(|fork| fork.run.as_str());
        Some(Self { told: true, ..Self::new(ui, state, (source, run.started_ms), live, false)? })
    }

    /// When something happened: of what this process drives, by a clock that nobody can set.
    fn at(&self, record: &Record) -> i64 {
        if self.told { record.at } else { running_ms() }
    }

    fn line(&self, seen: &Seen, at: i64, mark: (&str, &str), text: &str) {
        self.line_to(seen, at, mark, text, "");
    }

    /// A line whose end stays when it is cut. On a terminal one line takes one row, except for what somebody has
    /// to read to its end; a pipe gets all of it.
    fn line_to(&self, seen: &Seen, at: i64, mark: (&str, &str), text: &str, end: &str) {
        let since = format!("{:>8}", seconds(at.saturating_sub(seen.begun.unwrap_or(at))));
        let urgent = [
            "fail ", "warn ", "retry", "deny ", "ask  ", "param", "sync ", "fault", "mend ", "plan ", "skip ",
        ]
        .contains(&mark.1);
        let mut text = one_line(text, LONGEST);
        if let Some(columns) = self.ui.columns() {
            let before = since.len() + mark.1.len() + 3;
            let room = columns.saturating_sub(before + width(end)).max(SHORTEST);
            text = match urgent {
                true => wrap(&text, room, usize::MAX).join(&format!("\n{}", " ".repeat(before))),
                false => cut(&text, room),
            };
        }
        let mark = self.ui.paint(mark.0, mark.1);
        self.ui.error_text(&format!("{since}  {mark} {text}{end}\n"));
    }
}

impl Watcher for Progress {
    fn events(&self, state: &State, records: &[Record]) {
        let mut seen = locked(&self.seen);
        seen.known.follow(state);
        let before = state.events().saturating_sub(records.len() as u64);
        for (n, record) in (before + 1..).zip(records) {
            let at = self.at(record);
            if let Event::NodeStarted { node, .. } | Event::NodeFinished { node, .. } = &record.event {
                seen.call(state, node);
            }
            self.event(&mut seen, state, record, at);
            let own = seen.warned.of(&record.event);
            self.warn(&seen, &own, at);
            self.rung(&seen, n, record, at);
        }
        let news = seen.warned.news(state);
        self.warn(&seen, &news, records.last().map(|record| self.at(record)).unwrap_or_default());
        // With -v: what the nodes that could be next wait for (P-20).
        let waits = seen.waits.as_mut().map(|waits| waits.news(state, records)).unwrap_or_default();
        let at = records.last().map(|record| self.at(record)).unwrap_or_default();
        for text in waits {
            self.line(&seen, at, ("2", "wait "), &text);
        }
    }

    /// With -v: how far a call has come, as it tells itself. Not more often than a person reads; the last of it always.
    fn delta(&self, effect: &EffectId, delta: Delta) {
        let Delta::Progress(told) = delta else { return };
        if self.ui.verbose == 0 {
            return;
        }
        let mut seen = locked(&self.seen);
        if seen.effects.contains_key(effect) {
            self.told_now(&mut seen, running_ms(), effect, told);
        }
    }
}

impl Progress {
    /// What was done about what failed, so far (D-22).
    pub(crate) fn ladder(&self) -> Arc<Mutex<Ladder>> {
        Arc::clone(&self.ladder)
    }

    /// Says what is done about a fault; ends and retries are said anyway.
    fn rung(&self, seen: &Seen, n: u64, record: &Record, at: i64) {
        let mut ladder = locked(&self.ladder);
        let Some(rung) = ladder.event(&seen.known, n, record.at, &record.event) else { return };
        let mark = match &rung.what {
            What::Fault { .. } => ("33", "fault"),
            What::Action { .. } => ("33", "mend "),
            What::Planned { .. } => ("36", "plan "),
            What::Skipped { .. } => ("33", "skip "),
            What::Retry { .. } | What::Ended { .. } => return,
        };
        self.line(seen, at, mark, &format!("{}: {}", seen.title(&rung.node), rung.what.told()));
    }

    fn event(&self, seen: &mut Seen, state: &State, record: &Record, at: i64) {
        let more = self.ui.verbose > 0;
        if more {
            self.resolved(seen, at, &record.event);
        }
        match &record.event {
            Event::NodeStarted { node, .. } => {
                seen.nodes.insert(node.clone(), Node { started: at, ..Node::default() });
                if more || !self.live {
                    let title = seen.title(node);
                    self.line(seen, at, ("36", "start"), &title);
                }
            }
            Event::NodeFinished { node, fault, .. } => {
                let again = self.told_at_the_end(state, node);
                self.finished(seen, at, node, fault.as_deref(), again);
                if more && fault.is_none() {
                    self.synced(seen, state, at, node);
                }
            }
            Event::Requested { effect, .. } => {
                let Some((node, what)) = request(state, effect) else { return };
                if more {
                    self.line(seen, at, ("2", "call "), &format!("{}: {what}", seen.short(&node)));
                }
                let name = what.split(' ').next().unwrap_or_default().to_owned();
                seen.node(&node, at).asked += 1;
                seen.effects.insert(effect.clone(), (node, name, at));
            }
            Event::Completed { effect, outcome, printed, .. } => {
                let lines = self.told_last(seen, at, effect);
                seen.limited.ended(effect, outcome);
                self.completed(seen, at, effect, outcome, printed.as_deref());
                let again =
                    matches!(outcome, Outcome::Failed(_)) && self.told_at_the_end(state, &node_of(&effect.0));
                if let Some(printed) = printed.as_deref().filter(|_| more && !again) {
                    self.printed(printed, &lines);
                }
            }
            Event::Retried { effect, after_ms, reason } => {
                self.told_last(seen, at, effect);
                if let Some((node, what)) = request(state, effect) {
                    let name = what.split(' ').next().unwrap_or_default().to_owned();
                    let wait = seconds(i64::try_from(*after_ms).unwrap_or(i64::MAX));
                    // Also without -v: a wait of many seconds must not look like a hang.
                    let because = seen.limited.because(effect, reason);
                    let text = format!("{}: {}", seen.short(&node), again(&name, &wait, &because));
                    self.line(seen, at, ("33", "retry"), &text);
                    seen.effects.insert(effect.clone(), (node, name, at));
                }
            }
            Event::Reused { effect, from, .. } => {
                seen.node(&event_name(state, effect), at).reused += 1;
                if more {
                    self.line(seen, at, ("2", "reuse"), &format!("the recorded result of {from}"));
                }
            }
            Event::Refused { effect, fault, .. } if more => {
                self.line(seen, at, ("33", "deny "), &format!("{effect}: {}", fault.message));
            }
            Event::Asked(asked) => {
                let Asked { ask, node, prompt, .. } = &**asked;
                let open = state.asks().get(ask).map(|ask| asks::prompt(state, ask));
                let prompt = self.ui.redacted(open.as_ref().unwrap_or(prompt)).into_owned();
                // Who sits here is asked, with all of it.
                let text = match self.ui.may_ask {
                    true => format!("{} {}", seen.title(node), NodeStatus::Asking.words()),
                    false => format!("{} {}: {prompt}", seen.title(node), NodeStatus::Asking.words()),
                };
                self.line(seen, at, ("35", "ask  "), &text);
            }
            Event::Appended { node, body: Body::Text(_, text), .. } if more && !node.is_empty() => {
                self.line(
                    seen,
                    at,
                    ("2", "say  "),
                    &format!("{}: {}", seen.short(node), one_line(text, SHOWN)),
                );
            }
            _ => {}
        }
    }

    /// What the run itself warns of, when it does: of a long run nobody waits for the end to see it.
    fn warn(&self, seen: &Seen, warnings: &[Warning], at: i64) {
        for warning in warnings {
            let node = warning.node.as_deref().map(|node| format!("{}: ", seen.title(node)));
            self.line(
                seen,
                at,
                ("1;33", "warn "),
                &format!("{}{}", node.unwrap_or_default(), warning.message),
            );
        }
    }

    /// Whether the run has failed of a node: then all about it is told once, at the end.
    fn told_at_the_end(&self, state: &State, node: &str) -> bool {
        let fault = state.ended().and_then(|(_, fault)| fault);
        !self.ui.json && fault.is_some_and(|fault| fault.node.as_deref() == Some(node))
    }

    /// `again`: what is said of its fault is said again, in full.
    fn finished(&self, seen: &mut Seen, at: i64, node: &Arc<str>, fault: Option<&Fault>, again: bool) {
        let title = seen.title(node);
        let mut text = String::new();
        // A node that is reported only here failed before it started, and took no time.
        if fault.is_none() || seen.nodes.contains_key(node) {
            let source = seen.source.clone();
            let known = seen.node(node, at);
            let _ = write!(text, "  {}", seconds(at.saturating_sub(known.started)));
            if known.reused > 0 && known.asked == 0 {
                let _ = write!(text, ", reused from {}", source.as_deref().unwrap_or("an earlier visit"));
            }
            if known.tokens.input > 0 || known.tokens.output > 0 {
                let _ = write!(text, ", {}+{} tokens", known.tokens.input, known.tokens.output);
            }
            match known.calls {
                0 => {}
                1 => text.push_str(", 1 tool call"),
                calls => drop(write!(text, ", {calls} tool calls")),
            }
        }
        match fault {
            None => self.line_to(seen, at, ("32", "done "), &title, &text),
            Some(fault) => {
                let said = if again { one_line(&fault.message, SHOWN_FIELD) } else { fault.message.clone() };
                let text = format!("{title}{text}  {}: {said}", fault.kind.name());
                self.line(seen, at, ("31", "fail "), &text);
            }
        }
    }

    fn completed(
        &self,
        seen: &mut Seen,
        at: i64,
        effect: &EffectId,
        outcome: &Outcome,
        printed: Option<&Printed>,
    ) {
        let Some((node, name, asked)) = seen.effects.remove(effect) else { return };
        let known = seen.node(&node, at);
        // Also of an attempt that came to nothing, as in the run's usage (E-20).
        if let Some(tokens) = outcome.tokens() {
            known.tokens.add(tokens);
        }
        let told = match outcome {
            Outcome::Reply(reply) => {
                let calls: Vec<&str> = reply.calls.iter().map(|call| &*call.name).collect();
                match calls.is_empty() {
                    true => one_line(&reply.text, SHOWN),
                    false => format!("calls {}", calls.join(", ")),
                }
            }
            Outcome::Output(output) => {
                known.calls += u32::from(!is_operation(&name));
                one_line(&output.to_string(), SHOWN)
            }
            Outcome::Operated(operated) => one_line(&operated.output.to_string(), SHOWN),
            Outcome::Failed(failure) => {
                known.calls += u32::from(name != "model" && !is_operation(&name) && !failure.unsent);
                format!("{}: {}", failure.fault.kind.name(), message(&failure.fault, printed))
            }
        };
        if self.ui.verbose > 0 {
            let took = seconds(at.saturating_sub(asked));
            self.line(
                seen,
                at,
                ("2", "back "),
                &format!("{}: {name} after {took}: {told}", seen.short(&node)),
            );
        }
    }

    /// What became of placeholders: as written, and as used.
    fn resolved(&self, seen: &Seen, at: i64, event: &Event) {
        let Some(resolved) = data::resolved(&seen.known, &locked(&self.ladder), event) else { return };
        let data::Resolved { node, what, source, value } = resolved;
        let node = if node.is_empty() { String::new() } else { format!("{node}: ") };
        let (source, value) = (self.short(&source, SHOWN), self.short(&value, SHOWN));
        self.line(seen, at, ("2", "param"), &format!("{node}{what} {source} → {value}"));
    }

    /// Metadata that a node's result brought (D-05).
    fn synced(&self, seen: &Seen, state: &State, at: i64, node: &Arc<str>) {
        let Some(fields) = data::synced(state, node) else { return };
        let told: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name} = {}", self.short(&value.to_string(), SHOWN_FIELD)))
            .collect();
        let count = if fields.len() == 1 { "1 field".to_owned() } else { format!("{} fields", fields.len()) };
        self.line(seen, at, ("2", "sync "), &format!("{node}: {count}: {}", told.join(", ")));
    }

    /// The beginning of a value. Keys are taken out before it is cut: half of one would be shown as it is (C-06).
    fn short(&self, text: &str, most: usize) -> String {
        one_line(&self.ui.redacted(text), most)
    }
}

impl Seen {
    /// What is known of a node. For one that an earlier process started, time counts from when this one began.
    fn node(&mut self, node: &Arc<str>, at: i64) -> &mut Node {
        let started = self.begun.unwrap_or(at);
        self.nodes.entry(node.clone()).or_insert_with(|| Node { started, ..Node::default() })
    }

    /// A node's id and, where it says more, its name.
    fn title(&self, node: &str) -> String {
        match self.known.get(node) {
            Some(known) if *known.name != *node => format!("{node} {}", known.name),
            _ => self.short(node).to_owned(),
        }
    }

    /// The same without the name.
    fn short<'n>(&'n self, node: &'n str) -> &'n str {
        self.called.get(node).map_or(node, String::as_str)
    }

    /// Keeps what people are told that a node is.
    fn call(&mut self, state: &State, node: &Arc<str>) {
        if let Cow::Owned(told) = state.told_name(node) {
            self.called.insert(node.clone(), told);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What events call the node of an effect.
fn event_name(state: &State, effect: &EffectId) -> Arc<str> {
    match state.pending().get(effect) {
        Some(pending) => state.event_name(pending.node),
        None => node_of(&effect.0).into(),
    }
}

/// The node that asks for an effect, and what it asks for in words.
fn request(state: &State, effect: &EffectId) -> Option<(Arc<str>, String)> {
    let pending = state.pending().get(effect)?;
    let node = state.event_name(pending.node);
    if pending.model {
        return Some((node, "model".to_owned()));
    }
    match state.request(effect)? {
        Request::Model(_) => Some((node, "model".to_owned())),
        Request::Tool(request) | Request::Operation(request) => {
            let args = one_line(&request.args.to_string(), SHOWN);
            Some((node, format!("{} {args}", request.tool.name)))
        }
    }
}

/// Milliseconds by a clock that nobody can set, and that runs on while the machine is suspended: for how long something
/// takes.
pub(crate) fn running_ms() -> i64 {
    i64::try_from(SystemClock.running().as_millis()).unwrap_or(i64::MAX)
}

/// A time for people: `0.05 s`, `12.3 s`, `4m05s`.
pub(crate) fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..10_000 => format!("{}.{:02} s", ms / 1000, ms % 1000 / 10),
        10_000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        100_000..6_000_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}
