//! What happened when, by node: the host's timeline as JSON (S-22).

use crate::app::App;
use crate::call::Call;
use crate::look::threads;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_engine::graph::{Act, Node, Strategy, is_operation};
use selvedge_engine::{Outcome, RunStatus};
use selvedge_host::timeline::{
    Attempt, Call as Made, CallKind, Followed, FrameTimeline, Moment, NodeStatus, NodeTimeline, Question,
    Rung, Timeline, Visit,
};
use selvedge_host::{report, time};
use selvedge_runtime::{Clock, SystemClock};
use serde_json::{Map, Value, json};

/// `GET /v1/runs/{id}/timeline`.
pub(crate) fn timeline(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let info = app.store.run(&id)?;
    let after = call.number("after");
    let object = app.kept.look(&id, call.number("at"), |run, events| {
        let shown = Shown { after, ..Shown::of(run, driven, events) };
        let mut object = json!({
            "run_id": id,
            "name": info.name,
            "dialect": info.dialect,
            "status": run.state.status(),
            "driven": driven,
            "at": run.state.events(),
            "events": events,
            "after": after,
            "begun": run.timeline.nodes().len(),
            "zero": time::rfc3339(shown.zero),
            "until": run.timeline.last().map(|last| shown.moment(last)),
            "source": run.timeline.source(),
        });
        if let Some(fields) = object.as_object_mut() {
            fields.insert("threads".to_owned(), threads::all(run).into());
            fields.insert("frames".to_owned(), shown.frames().into());
            fields.insert("nodes".to_owned(), shown.nodes().into());
            fields.insert("recovery".to_owned(), shown.recovery().into());
        }
        Ok(object)
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
        let goes_on = past || driven || run.state.status() != RunStatus::Running;
        Self { run, timeline, zero, now, goes_on, after: None }
    }

    fn moment(&self, moment: Moment) -> Value {
        json!({"n": moment.n, "ms": self.timeline.line(moment).saturating_sub(self.zero)})
    }

    fn maybe(&self, moment: Option<Moment>) -> Value {
        moment.map_or(Value::Null, |moment| self.moment(moment))
    }

    /// Whether what ended then, if it has, is not as it was at the event that is asked for.
    fn has_changed(&self, ended: Option<Moment>) -> bool {
        self.after.is_none_or(|after| ended.is_none_or(|ended| ended.n > after))
    }

    /// With its place in the whole list, where only a part of that is given.
    fn placed(&self, at: usize, mut object: Value) -> Value {
        if let (Some(fields), Some(_)) = (object.as_object_mut(), self.after) {
            fields.insert("index".to_owned(), at.into());
        }
        object
    }

    fn frames(&self) -> Vec<Value> {
        let all = self.timeline.frames().iter().enumerate();
        let changed = all.filter(|(_, frame)| self.has_changed(frame.ended));
        changed.map(|(at, frame)| self.placed(at, self.frame(frame))).collect()
    }

    fn frame(&self, frame: &FrameTimeline) -> Value {
        json!({
            "name": frame.name,
            "path": frame.path,
            "which": frame.which,
            "opener": frame.opener,
            "began": self.maybe(frame.began),
            "ended": self.maybe(frame.ended),
            "status": frame.status,
        })
    }

    /// Those that something has happened to, then the others of the document's own graph.
    fn nodes(&self) -> Vec<Value> {
        let ended = |node: &NodeTimeline| node.visits.last().and_then(|visit| visit.ended);
        let all = self.timeline.nodes().iter().enumerate();
        let changed = all.filter(|(_, node)| self.has_changed(ended(node)));
        let mut nodes: Vec<Value> = changed.map(|(at, node)| self.placed(at, self.node(node))).collect();
        if self.after.is_some() {
            return nodes;
        }
        let graph = self.run.state.graph();
        let others = graph.nodes.values().filter(|def| self.timeline.root(&def.id).is_none());
        nodes.extend(others.map(|def| {
            let mut fields = self.head(&def.id, &def.id, 0, Some(def));
            fields.insert("status".to_owned(), json!(NodeStatus::NotStarted));
            fields.insert("visits".to_owned(), json!([]));
            Value::Object(fields)
        }));
        nodes
    }

    /// What a node is.
    fn head(&self, name: &str, id: &str, frame: usize, def: Option<&Node>) -> Map<String, Value> {
        let position = self.timeline.nodes_of(frame).and_then(|nodes| nodes.position(id));
        let graph = self.timeline.nodes_of(frame).map(|nodes| nodes.graph());
        let thread = def.and_then(|def| graph?.threads.get(def.body.thread?)).map(|thread| &thread.name);
        let fields = [
            ("name", json!(name)),
            ("id", json!(id)),
            ("title", json!(def.map_or(id, |def| &def.name))),
            ("frame", json!(frame)),
            ("position", json!(position.map(selvedge_engine::Ix::get))),
            ("thread", json!(thread)),
            ("does", json!(def.map(does).unwrap_or_default())),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn node(&self, node: &NodeTimeline) -> Value {
        let told = self.timeline.told(node);
        let def = self.timeline.def(node);
        let mut fields = self.head(&told, &node.node, node.within, def);
        let status = self.timeline.standing(Some(node), self.now, self.goes_on);
        let reuse = self.timeline.reuse(node).map(
            |reuse| json!({"from": reuse.from, "calls": reuse.calls, "of": reuse.of, "whole": reuse.whole()}),
        );
        let visits: Vec<Value> = node.visits.iter().map(|visit| self.visit(def, visit)).collect();
        let more = [
            ("status", json!(status)),
            ("skipped", json!(node.skipped)),
            ("reused", json!(reuse)),
            ("goes_on", json!(node.goes_on)),
            ("visits", visits.into()),
        ];
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(fields)
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

    fn visit(&self, def: Option<&Node>, visit: &Visit) -> Value {
        let calls: Vec<Value> = visit.calls.iter().map(|call| self.call(call)).collect();
        let asks: Vec<Value> = visit.questions.iter().map(|question| self.question(question)).collect();
        let tokens = &visit.tokens;
        json!({
            "number": visit.number,
            "began": self.maybe(visit.started),
            "ended": self.maybe(visit.ended),
            "cancelled": visit.cancelled,
            "fault": visit.fault.as_ref().map(|fault| json!({"kind": fault.kind, "message": fault.message})),
            "tokens": {"input": tokens.input, "output": tokens.output, "cost": tokens.shown_cost()},
            "reused": visit.reused,
            "requested": visit.requested,
            "thread": visit.thread,
            "paths": self.paths(def, visit),
            "joined": visit.frames.joined,
            "calls": calls,
            "asks": asks,
        })
    }

    fn call(&self, call: &Made) -> Value {
        let attempts: Vec<Value> = call.attempts.iter().map(|attempt| self.attempt(attempt)).collect();
        let kind = match &call.kind {
            CallKind::Model => "model",
            CallKind::Tool(_) => "tool",
            CallKind::Operation(_) => "operation",
            CallKind::Unknown => "unknown",
        };
        json!({
            "kind": kind,
            "name": call.kind.name(),
            "effects": call.effects,
            "reused_from": call.reused,
            "attempts": attempts,
        })
    }

    fn attempt(&self, attempt: &Attempt) -> Value {
        let fault = match &attempt.outcome {
            Some(Outcome::Failed(failure)) => Some(&failure.fault),
            _ => None,
        };
        let outcome = match (&attempt.outcome, fault, attempt.lost, attempt.ended) {
            (_, Some(_), ..) => Some("failed"),
            (Some(_), ..) => Some("done"),
            (None, _, true, _) => Some("lost"),
            (None, _, false, Some(_)) => Some("dropped"),
            (None, _, false, None) => None,
        };
        json!({
            "effect": attempt.effect,
            "requested": self.moment(attempt.requested),
            "ended": self.maybe(attempt.ended),
            "after_ms": attempt.after_ms,
            "reason": attempt.reason,
            "outcome": outcome,
            "fault": fault.map(|fault| json!({"kind": fault.kind, "message": fault.message})),
            "worked_ms": attempt.took.as_ref().map(|took| took.worked_ms),
            "queued_ms": attempt.took.as_ref().map(|took| took.queued_ms),
        })
    }

    fn question(&self, question: &Question) -> Value {
        json!({
            "ask": question.ask,
            "kind": question.kind,
            "asked": self.moment(question.asked),
            "closed": self.maybe(question.closed),
        })
    }
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
