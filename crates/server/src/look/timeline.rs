//! What happened when, by node: the host's timeline as JSON (S-22).

use crate::app::App;
use crate::call::Call;
use crate::look::fields::{self, Fields};
use crate::look::threads;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_engine::graph::{Act, Node, Strategy, is_operation};
use selvedge_engine::{Fault, Outcome};
use selvedge_host::timeline::{
    Attempt, Call as Made, CallKind, Followed, Moment, NodeTimeline, Rung, Timeline, Visit,
};
use selvedge_host::{report, time};
use selvedge_runtime::{Clock, SystemClock};
use serde_json::{Value, json};

/// `GET /v1/runs/{id}/timeline`.
pub(crate) fn timeline(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let info = app.store.run(&id)?;
    let (after, brief) = (call.number("after"), call.text("brief") == Some("yes"));
    let object = app.kept.look(&id, call.number("at"), |run, journal| {
        let events = journal.events;
        let shown = Shown { after, ..Shown::of(run, driven, events) };
        Ok(fields::object(brief, |all| {
            all.put("run_id", &id);
            all.put("name", &info.name);
            all.put("dialect", &info.dialect);
            all.put("status", run.state.status());
            all.put("driven", driven);
            all.put("at", run.state.events());
            all.put("events", events);
            all.put("after", after);
            all.put("begun", run.timeline.nodes().len());
            all.put("zero", time::rfc3339(shown.zero));
            shown.maybe(all, "until", run.timeline.last());
            all.put("source", run.timeline.source());
            all.put("threads", threads::all(run));
            shown.frames(all);
            shown.nodes(all);
            all.put("recovery", shown.recovery());
        }))
    })?;
    Ok(Reply::json(object))
}

/// A timeline that is shown.
struct Shown<'t> {
    run: &'t Followed,
    timeline: &'t Timeline,
    /// The beginning of its line of time, in milliseconds since 1970.
    zero: i64,
    now: i64,
    /// Whether what has begun goes on.
    goes_on: bool,
    /// Only what has changed behind this event.
    after: Option<u64>,
}

impl<'t> Shown<'t> {
    fn of(run: &'t Followed, driven: bool, events: u64) -> Self {
        let timeline = &run.timeline;
        let zero = timeline.first().map_or(0, |first| timeline.line(first));
        let past = run.state.events() < events;
        // What was to be tried again after a while was, at a moment of the past, as that had it.
        let now = timeline.last().filter(|_| past).map_or_else(|| SystemClock.now_ms(), |last| last.at);
        Self { run, timeline, zero, now, goes_on: past || driven, after: None }
    }

    fn moment(&self, fields: &mut Fields<'_>, name: &str, moment: Moment) {
        self.maybe(fields, name, Some(moment));
    }

    fn maybe(&self, fields: &mut Fields<'_>, name: &str, moment: Option<Moment>) {
        fields.object(name, moment, |fields, moment| {
            fields.put("n", moment.n);
            fields.put("ms", self.timeline.line(moment).saturating_sub(self.zero));
        });
    }

    /// Whether what ended then, if it has, is not as it was at the event that is asked for.
    fn has_changed(&self, ended: Option<Moment>) -> bool {
        self.after.is_none_or(|after| ended.is_none_or(|ended| ended.n > after))
    }

    /// Its place in the whole list, where only a part of that is given.
    fn placed(&self, fields: &mut Fields<'_>, at: usize) {
        if self.after.is_some() {
            fields.put("index", at);
        }
    }

    fn frames(&self, all: &mut Fields<'_>) {
        let frames = self.timeline.frames().iter().enumerate();
        let changed = frames.filter(|(_, frame)| self.has_changed(frame.ended));
        all.list("frames", changed, |fields, (at, frame)| {
            self.placed(fields, at);
            fields.put("name", &frame.name);
            fields.put("path", &frame.path);
            fields.put("which", &frame.which);
            fields.put("opener", frame.opener);
            self.maybe(fields, "began", frame.began);
            self.maybe(fields, "ended", frame.ended);
            fields.put("status", frame.status);
        });
    }

    /// Those that something has happened to, then the others of the document's own graph.
    fn nodes(&self, all: &mut Fields<'_>) {
        let ended = |node: &NodeTimeline| node.visits.last().and_then(|visit| visit.ended);
        let begun = self.timeline.nodes().iter().enumerate();
        let begun = begun.filter(|(_, node)| self.has_changed(ended(node)));
        let others = self.run.state.graph().nodes.values();
        let others =
            others.filter(|def| self.after.is_none() && self.timeline.root(&def.id).is_none()).map(Told::Def);
        let nodes = begun.map(|(at, node)| Told::Node(at, node)).chain(others);
        all.list("nodes", nodes, |fields, told| match told {
            Told::Node(at, node) => {
                self.placed(fields, at);
                self.node(fields, node);
            }
            Told::Def(def) => {
                self.head(fields, (&def.id, &def.id, 0), Some(def));
                fields.put("status", self.timeline.status(None, self.now));
                fields.put("visits", [(); 0]);
            }
        });
    }

    /// What a node is: its name for people, its id in its own graph, and the frame in which it is.
    fn head(&self, fields: &mut Fields<'_>, (name, id, frame): (&str, &str, usize), def: Option<&Node>) {
        let nodes = self.timeline.nodes_of(frame);
        let title = def.map_or(id, |def| &def.name);
        let thread = def.and_then(|def| nodes.as_ref()?.graph().threads.get(def.body.thread?));
        fields.put("name", name);
        // In a picture it is the name, and the title the id, where it is not there.
        if !fields.brief() || id != name {
            fields.put("id", id);
        }
        if !fields.brief() || title != id {
            fields.put("title", title);
        }
        fields.put("frame", frame);
        fields.more("position", nodes.and_then(|nodes| nodes.position(id)).map(selvedge_engine::Ix::get));
        fields.put("thread", thread.map(|thread| &thread.name));
        fields.put("does", def.map(does).unwrap_or_default());
    }

    fn node(&self, fields: &mut Fields<'_>, node: &NodeTimeline) {
        let def = self.timeline.def(node);
        self.head(fields, (&self.timeline.told(node), &node.node, node.within), def);
        fields.put("status", self.timeline.standing(Some(node), self.now, self.goes_on));
        fields.put("skipped", &node.skipped);
        let reuse = self.timeline.reuse(node);
        let reuse = reuse.map(
            |reuse| json!({"from": reuse.from, "calls": reuse.calls, "of": reuse.of, "whole": reuse.whole()}),
        );
        fields.put("reused", reuse);
        fields.more("goes_on", node.goes_on);
        fields.list("visits", node.visits.iter(), |fields, visit| self.visit(fields, def, visit));
    }

    /// The paths, iterations and subgraphs that a visit opened, by how they stand, and what its join takes (E-38).
    fn paths(&self, def: Option<&Node>, visit: &Visit) -> Value {
        let inner = &visit.frames;
        if inner.is_empty() {
            return Value::Null;
        }
        let join = def.and_then(|def| {
            def.body.leaves.values().find_map(|leaf| match &leaf.act {
                Act::Fork(paths) => Some(&paths.join),
                _ => None,
            })
        });
        json!({
            "of": inner.paths,
            "iteration": inner.iteration,
            "open": inner.open.len(),
            "completed": inner.completed.len(),
            "failed": inner.failed.len(),
            "cancelled": inner.cancelled.len(),
            "not_begun": inner.not_begun(),
            "asking": inner.asking.values().sum::<u32>(),
            "join": join.map(|join| {
                let count = match join.strategy {
                    Strategy::Count(count) => Some(count),
                    _ => None,
                };
                json!({"strategy": join.strategy.name(), "count": count, "main": join.main, "timeout_s": join.timeout_s})
            }),
        })
    }

    /// What was done about faults, as `explain` has it, on the run's line of time (D-22).
    fn recovery(&self) -> Vec<Value> {
        let rungs = self.timeline.recovery().rungs().iter();
        let rung = |rung: &Rung| {
            let mut object = report::rung(rung);
            if let Some(fields) = object.as_object_mut() {
                let moment = Moment { n: rung.n, at: rung.at };
                let ms = self.timeline.line(moment).saturating_sub(self.zero);
                fields.insert("ms".to_owned(), ms.into());
            }
            object
        };
        rungs.map(rung).collect()
    }

    fn visit(&self, fields: &mut Fields<'_>, def: Option<&Node>, visit: &Visit) {
        fields.more("number", visit.number);
        self.maybe(fields, "began", visit.started);
        self.maybe(fields, "ended", visit.ended);
        fields.put("cancelled", visit.cancelled);
        fields.put("fault", visit.fault.as_deref().map(fault));
        fields.object("tokens", Some(&visit.tokens), |fields, tokens| {
            fields.count("input", tokens.input);
            fields.count("output", tokens.output);
            fields.more("cost", tokens.shown_cost());
        });
        fields.count("reused", visit.reused.into());
        fields.count("requested", visit.requested.into());
        fields.object("thread", Some(&visit.thread), |fields, thread| {
            fields.put("opened", &thread.opened);
            fields.more("appended", thread.appended);
            fields.put("published", &thread.published);
        });
        fields.put("paths", self.paths(def, visit));
        fields.put("joined", &visit.frames.joined);
        fields.list("calls", visit.calls.iter(), |fields, call| self.call(fields, call));
        fields.list("asks", visit.questions.iter(), |fields, question| {
            fields.put("ask", &question.ask);
            fields.put("kind", question.kind);
            self.moment(fields, "asked", question.asked);
            self.maybe(fields, "closed", question.closed);
        });
    }

    fn call(&self, fields: &mut Fields<'_>, call: &Made) {
        let kind = match &call.kind {
            CallKind::Model => "model",
            CallKind::Tool(_) => "tool",
            CallKind::Operation(_) => "operation",
            CallKind::Unknown => "unknown",
        };
        fields.put("kind", kind);
        fields.put("name", call.kind.name());
        fields.more("effects", call.effects);
        fields.put("reused_from", &call.reused);
        fields.list("attempts", call.attempts.iter(), |fields, attempt| self.attempt(fields, attempt));
    }

    fn attempt(&self, fields: &mut Fields<'_>, attempt: &Attempt) {
        let failed = match &attempt.outcome {
            Some(Outcome::Failed(failure)) => Some(&failure.fault),
            _ => None,
        };
        let outcome = match (&attempt.outcome, failed, attempt.lost, attempt.ended) {
            (_, Some(_), ..) => Some("failed"),
            (Some(_), ..) => Some("done"),
            (None, _, true, _) => Some("lost"),
            (None, _, false, Some(_)) => Some("dropped"),
            (None, _, false, None) => None,
        };
        fields.more("effect", &attempt.effect);
        self.moment(fields, "requested", attempt.requested);
        self.maybe(fields, "ended", attempt.ended);
        fields.count("after_ms", attempt.after_ms);
        fields.put("reason", &attempt.reason);
        fields.put("outcome", outcome);
        fields.more("fault", failed.map(fault));
        fields.more("worked_ms", attempt.took.as_ref().map(|took| took.worked_ms));
        fields.more("queued_ms", attempt.took.as_ref().map(|took| took.queued_ms));
    }
}

/// A node of the list.
enum Told<'t> {
    Node(usize, &'t NodeTimeline),
    Def(&'t Node),
}

fn fault(fault: &Fault) -> Value {
    json!({"kind": fault.kind, "message": fault.message})
}

/// What the body of a node can do, each word once.
fn does(node: &Node) -> Vec<&'static str> {
    let mut words = Vec::new();
    let offers = |act: &Act| matches!(act, Act::Infer(infer) if infer.offer_tools);
    let offers = node.body.leaves.values().any(|leaf| offers(&leaf.act));
    for leaf in node.body.leaves.values() {
        let word = match &leaf.act {
            Act::Infer(_) => "model",
            Act::Call(call) if is_operation(&call.tool) => "operation",
            Act::Call(_) | Act::Retry => "tool",
            Act::Answer { .. } if offers => "tool",
            Act::Ask(..) => "ask",
            Act::Fork(_) => "fork",
            Act::Loop(_) => "loop",
            Act::Sub(_) => "sub",
            Act::Set(..) | Act::Compute(..) | Act::Recall(_) | Act::Give(_) => "set",
            _ => continue,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}
