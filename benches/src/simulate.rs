//! Simulated runs of a workflow of 20 nodes (C-18): how many a second, of all kinds of luck, on one thread and on all.

use crate::measure::{emit, median, setting, timed};
use crate::{Result, plans};
use selvedge_engine::{EDITION, Start};
use selvedge_world::{Search, World, search};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

/// Models, conditions, a fork of three paths with a join, a loop and a question with a time: 20 nodes.
fn document() -> Value {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let say = |id: &str| node(id, "LLM", json!({"prompt": format!("Say {id}.")}));
    let score =
        json!({"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}});
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    let nodes = json!([
        {"id": "start", "type": "START"},
        say("facts"),
        node("zero", "VARIABLE", json!({"name": "score", "value": 0})),
        node("fork", "FORK", json!({"forkStrategy": "parallel", "forkPathIds": ["a", "b", "c"],
            "childNodeIds": ["a1", "b1", "c1"]})),
        say("a1"), say("a2"), say("b1"), say("b2"), say("c1"),
        node("join", "JOIN", json!({"forkPathIds": ["a", "b", "c"], "joinStrategy": "ALL_COMPLETED"})),
        node("loop", "LOOP_START", json!({"over": [1, 2], "as": "round", "limit": 2})),
        node("judge", "LLM", json!({"prompt": "How good is {{join.output.b}}?", "output_schema": score})),
        node("keep", "VARIABLE", json!({"name": "score", "expression": "judge.output.score"})),
        node("done", "LOOP_END", json!({"loop": "loop"})),
        node("way", "ROUTE", json!({"branches": [{"when": "score > 5", "to": "sure"}], "default": "weak"})),
        node("sure", "USER_INTERACTION", json!({"kind": "approve", "prompt": "Go on?", "timeout": 60})),
        say("write"),
        say("weak"),
        node("end", "END", json!({"output": "{{score}}"})),
        node("late", "END", json!({"output": "nobody"})),
    ]);
    let mut edges: Vec<Value> = [
        ("start", "facts"),
        ("facts", "zero"),
        ("zero", "fork"),
        ("a1", "a2"),
        ("a2", "join"),
        ("b1", "b2"),
        ("b2", "join"),
        ("c1", "join"),
        ("join", "loop"),
        ("loop", "judge"),
        ("judge", "keep"),
        ("keep", "done"),
        ("done", "way"),
        ("sure", "write"),
        ("write", "end"),
        ("weak", "end"),
    ]
    .map(|(from, to)| edge(from, to))
    .into();
    edges.push(json!({"from": "sure", "to": "late", "when": "error"}));
    json!({"task": "Find out.", "nodes": nodes, "edges": edges})
}

/// Runs a second: those of the seeds, and the second ones that they are held against.
pub(crate) fn simulate(scale: f64) -> Result<()> {
    let seeds = ((setting("BENCH_SEEDS", 10_000.0) * scale) as u64).max(20);
    let graph = plans::compile(&document().to_string())?;
    let world = World::new(graph, Start { edition: EDITION, ..Start::default() });
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, all] {
        let (mut runs, mut events) = (0, 0);
        let wall = median(|| {
            timed(|| {
                let stop = AtomicBool::new(false);
                let report = search(&world, &Search { seeds, threads, stop: &stop, progress: &|_| {} });
                if !report.findings.is_empty() {
                    return Err(format!("{} findings in a sound workflow", report.findings.len()).into());
                }
                (runs, events) = (report.runs, report.events);
                Ok(report)
            })
        })?;
        emit(
            "simulate",
            json!({"threads": threads, "nodes": 20, "seeds": seeds, "runs": runs, "events": events, "wall_s": wall,
                "runs_per_s": runs as f64 / wall, "events_per_s": events as f64 / wall}),
        );
    }
    Ok(())
}
