//! Frames: loops, forks, joins, nesting and going on after failures, by the engine alone, journal in memory.

use crate::Result;
use crate::measure::{chosen, emit, setting};
use selvedge_engine::{
    Event, Failure, FaultKind, Graph, Input, Limits, ModelReply, Outcome, Request, Start, State,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

struct Run {
    state: State,
    journal: Vec<Event>,
}

impl Run {
    fn begin(graph: &Arc<Graph>) -> Self {
        let mut run = Self { state: State::new(Arc::clone(graph)), journal: Vec::new() };
        let limits = Limits { loop_iterations: u64::MAX, ..Limits::default() };
        run.input(Input::Start(Box::new(Start { limits, ..Start::default() })));
        run
    }
    fn input(&mut self, input: Input) {
        if let Some(event) = self.state.accept(input) {
            self.keep(event);
            while let Some(event) = self.state.step() {
                self.keep(event);
            }
        }
    }
    fn keep(&mut self, event: Event) {
        self.state.apply(&event);
        self.journal.push(event);
    }
    /// Answers what is asked for until nothing is.
    fn answer(&mut self) {
        while let Some(effect) = self.state.pending().keys().next().cloned() {
            let outcome = match self.state.request(&effect) {
                Some(Request::Tool(request)) => Outcome::Output(Arc::new(request.args)),
                _ => reply(),
            };
            self.input(Input::Complete(effect, outcome, 0, None, None));
        }
    }
    fn ended(&self) -> Result<()> {
        match self.state.ended() {
            Some((selvedge_engine::End::Completed, _)) => Ok(()),
            other => Err(format!("the run came to {other:?}").into()),
        }
    }
}

fn reply() -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: "ok".into(), ..ModelReply::default() }))
}

fn graph(nodes: Value, graphs: Value) -> Result<Arc<Graph>> {
    let tool = json!({"name": "echo", "description": "", "input_schema": {}, "effects": "pure", "version": "1", "source": "bench"});
    let root = json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs, "tools": {"echo": tool}});
    Ok(Arc::new(serde_json::from_value(root)?))
}

fn flow(nodes: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "tools": {}})
}

fn node(id: &str, act: Value, next: Option<usize>) -> Value {
    let ways: Vec<Value> = next.into_iter().map(|to| json!({"when": "done", "to": to})).collect();
    json!({"id": id, "name": id, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

fn ask(id: &str, next: Option<usize>) -> Value {
    let ways: Vec<Value> = next.into_iter().map(|to| json!({"when": "done", "to": to})).collect();
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "go on"}, "next": [{"when": "always", "to": 1}]}, {"name": "model", "act": {"infer": {}}}]}})
}

fn call() -> Value {
    json!({"call": {"tool": "echo", "args": {"at": "{{index}}"}}})
}

/// The processor time of what is done, in microseconds.
fn micros(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

/// Bytes of memory that the process has.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

pub(crate) fn frames(scale: f64) -> Result<()> {
    if chosen("loop") {
        loops((setting("BENCH_N", 100_000.0) * scale) as usize)?;
    }
    if chosen("fork") {
        forks(((1_000.0 * scale) as usize).max(10), ((5_000.0 * scale) as usize).max(10))?;
    }
    if chosen("waiting") {
        waiting(((10_000.0 * scale) as usize).max(100))?;
    }
    if chosen("nesting") {
        nesting((setting("BENCH_N", 20_000.0) * scale) as usize)?;
    }
    if chosen("resume") {
        resumes((10_000.0 * scale) as usize)?;
    }
    Ok(())
}

fn loops(rounds: usize) -> Result<()> {
    let times = json!({"graph": 0, "times": {"count": rounds}, "limit": rounds});
    let graph = graph(
        json!([node("each", json!({"loop": times}), None)]),
        json!([flow(json!([node("call", call(), None)]))]),
    )?;
    let mut run = Run::begin(&graph);
    let wall = micros(|| run.answer());
    run.ended()?;
    emit(
        "frames-loop",
        json!({"iterations": rounds, "us_per_iteration": wall / rounds as f64,
        "events_per_iteration": run.journal.len() as f64 / rounds as f64}),
    );
    Ok(())
}

fn forks(paths: usize, messages: usize) -> Result<()> {
    let before = json!({"graph": 0, "times": {"count": messages / 2}, "limit": messages});
    let all: Vec<usize> = (0..paths).collect();
    let fork = json!({"of": {"each": {"over": all, "item": "it", "graph": 0}}, "join": {"strategy": "all_completed", "main": "0"}});
    let nodes =
        json!([node("talk", json!({"loop": before}), Some(1)), node("fork", json!({"fork": fork}), None)]);
    let graph = graph(nodes, json!([flow(json!([ask("say", None)]))]))?;
    let mut run = Run::begin(&graph);
    while !run.state.pending().keys().any(|effect| effect.0.starts_with("fork")) {
        // The last answer before the fork is followed by hand.
        let Some(effect) = run.state.pending().keys().next().cloned() else { return Err("no fork".into()) };
        let last =
            run.state.pending().len() == 1 && effect.0.starts_with(&format!("talk~1#{}/", messages / 2 - 1));
        if !last {
            run.input(Input::Complete(effect, reply(), 0, None, None));
            continue;
        }
        let Some(event) = run.state.accept(Input::Complete(effect, reply(), 0, None, None)) else {
            return Err("late".into());
        };
        run.keep(event);
        let (mut forked, mut first) = (0.0, 0.0);
        let resident_before = resident();
        while let Some(event) = run.state.step() {
            let opens = matches!(&event, Event::Entered { paths: Some(_), .. });
            let took = micros(|| run.keep(event));
            if opens { forked = took } else { first += took }
        }
        let bytes = (resident() - resident_before) / paths as f64;
        emit(
            "frames-fork",
            json!({"paths": paths, "messages": messages, "fork_us": forked,
            "us_per_path_until_its_request": first / paths as f64, "resident_bytes_per_waiting_path": bytes}),
        );
    }
    let effects: Vec<_> = run.state.pending().keys().cloned().collect();
    let wall = micros(|| {
        for effect in effects {
            run.input(Input::Complete(effect, reply(), 0, None, None));
        }
    });
    run.ended()?;
    emit(
        "frames-join",
        json!({"completions": paths, "us_in_all": wall, "us_per_completion": wall / paths as f64}),
    );
    Ok(())
}

/// What paths take that wait for a model and have said nothing, with neither their journal nor the list that they are over.
fn waiting(paths: usize) -> Result<()> {
    let asks = json!({"id": "ask", "name": "ask", "body": {"thread": 0, "leaves": [{"name": "model", "act": {"infer": {}}}]}});
    let all: Vec<usize> = (0..paths).collect();
    let fork = json!({"of": {"each": {"over": "{{all}}", "item": "it", "graph": 0}}, "join": {"strategy": "all_completed"}});
    let graph = graph(json!([node("fork", json!({"fork": fork}), None)]), json!([flow(json!([asks]))]))?;
    let mut state = State::new(Arc::clone(&graph));
    let initial = [("all".to_owned(), json!(all))].into_iter().collect();
    let start = Input::Start(Box::new(Start { initial, ..Start::default() }));
    let mut next = state.accept(start);
    let before = resident();
    while let Some(event) = next {
        state.apply(&event);
        next = state.step();
    }
    if state.pending().len() != paths {
        return Err("not all paths wait for a model".into());
    }
    emit(
        "frames-waiting",
        json!({"paths": paths, "resident_bytes_per_path": (resident() - before) / paths as f64}),
    );
    Ok(())
}

fn nesting(rounds: usize) -> Result<()> {
    let mut each = Vec::new();
    for depth in [1, 31] {
        // A loop of calls, within so many subgraphs.
        let mut graphs = vec![flow(json!([node("call", call(), None)]))];
        let times = json!({"graph": 0, "times": {"count": rounds}, "limit": rounds});
        graphs.push(flow(json!([node("each", json!({"loop": times}), None)])));
        for below in 1..depth {
            graphs.push(flow(json!([node("sub", json!({"sub": {"graph": below}}), None)])));
        }
        let graph =
            graph(json!([node("sub", json!({"sub": {"graph": graphs.len() - 1}}), None)]), json!(graphs))?;
        let mut run = Run::begin(&graph);
        let wall = micros(|| run.answer());
        run.ended()?;
        each.push(wall / run.journal.len() as f64);
        emit(
            "frames-nesting",
            json!({"depth": depth + 1, "us_per_event": wall / run.journal.len() as f64,
            "ratio": each.last().copied().unwrap_or_default() / each.first().copied().unwrap_or(1.0)}),
        );
    }
    Ok(())
}

fn resumes(nodes: usize) -> Result<()> {
    let last = nodes.max(2) - 1;
    let rows: Vec<Value> =
        (0..=last).map(|at| ask(&format!("n{at}"), (at < last).then_some(at + 1))).collect();
    let graph = graph(json!(rows), json!([]))?;
    let mut run = Run::begin(&graph);
    for _ in 0..last {
        let Some(effect) = run.state.pending().keys().next().cloned() else {
            return Err("nothing is asked".into());
        };
        run.input(Input::Complete(effect, reply(), 0, None, None));
    }
    let (mut most, mut wall) = (0, 0.0);
    for _ in 0..100 {
        let Some(effect) = run.state.pending().keys().next().cloned() else {
            return Err("nothing is asked".into());
        };
        run.input(Input::Complete(
            effect,
            Failure::permanent(FaultKind::ProviderError, "no").into(),
            0,
            None,
            None,
        ));
        let before = run.journal.len();
        wall += micros(|| run.input(Input::Resume(Vec::new())));
        most = most.max(run.journal.len() - before);
    }
    emit(
        "frames-resume",
        json!({"nodes": nodes, "most_events_of_a_resume": most, "us_per_resume": wall / 100.0}),
    );
    Ok(())
}
