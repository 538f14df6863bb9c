//! Looking at a part of a long run, and of one with many paths, once it is loaded.

use crate::measure::{emit, median, timed};
use crate::ports::Echo;
use crate::runs::{driver, runtime, start};
use crate::{Result, plans};
use selvedge_engine::{Input, RunStatus, Slice, State, ThreadView};
use selvedge_runtime::{Controls, Journal};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;

/// How often each look is repeated for one measurement.
const LOOKS: u32 = 100;

pub(crate) fn views(scale: f64) -> Result<()> {
    let events = (100_000.0 * scale) as usize;
    let graph = plans::compile(&plans::steps(events / 6 + 1).to_string())?;
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let begun = vec![Input::Start(Box::new(start()))];
    let mut controls = Controls::default();
    runtime()?.block_on(driver(Arc::new(Echo)).drive("x", &mut state, &mut journal, begun, &mut controls))?;
    let name = "log";
    let thread = state.view().thread(name).ok_or("no thread")?;
    let node = &graph.nodes.values().last().ok_or("no node")?.id;
    let last = median(|| looks(|| state.view().thread(name).map(|thread| thread.last(20).iter().count())))?;
    let result = median(|| looks(|| state.view().result(node).map(|result| result.output)))?;
    emit(
        "views",
        json!({"events": state.events(), "messages": thread.len(), "last_20_messages_us": last, "result_us": result}),
    );
    of_paths((1_000.0 * scale) as usize + 1, (2_500.0 * scale) as usize + 1)
}

/// A conversation of `rounds` times two messages that a fork takes to so many paths, each of which says two more.
fn of_paths(paths: usize, rounds: usize) -> Result<()> {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let items: Vec<usize> = (0..paths).collect();
    let nodes = json!([
        node("start", "START", json!({})),
        node("talk", "LOOP_START", json!({"count": rounds, "limit": rounds})),
        node("say", "LLM", json!({"prompt": "Say it"})),
        node("talked", "LOOP_END", json!({"loop": "talk"})),
        node("list", "VARIABLE", json!({"name": "items", "value": items})),
        node(
            "each",
            "FORK",
            json!({"forkStrategy": "parallel", "forEach": "{{items}}", "childNodeIds": ["argue"]})
        ),
        node("argue", "LLM", json!({"prompt": "Argue"})),
        node("all", "JOIN", json!({"joinStrategy": "ALL_COMPLETED"})),
        node("end", "END", json!({})),
    ]);
    let ways = ["start talk", "talk say", "say talked", "talked list", "list each", "argue all", "all end"];
    let edges = ways.iter().filter_map(|way| way.split_once(' '));
    let edges: Vec<Value> = edges.map(|(from, to)| json!({"from": from, "to": to})).collect();
    let graph = plans::compile(&json!({"nodes": nodes, "edges": edges}).to_string())?;
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let mut start = start();
    start.limits.loop_iterations = rounds as u64 + 1;
    start.limits.fanout = paths as u64 + 1;
    let begun = vec![Input::Start(Box::new(start))];
    let mut controls = Controls::default();
    runtime()?.block_on(driver(Arc::new(Echo)).drive("x", &mut state, &mut journal, begun, &mut controls))?;
    if state.status() != RunStatus::Completed {
        return Err(format!("the run has not completed: {:?}", state.ended()).into());
    }
    let (thread, node) = (format!("each[{}]/main", paths - 1), format!("each[{}]/argue", paths - 1));
    let (view, from) = (state.view(), i64::try_from(rounds)?);
    let length = view.thread(&thread).ok_or("no thread")?.len();
    let part = Slice(Some(from), Some(from + 20));
    let shown = |thread: ThreadView<'_>| thread.slice(part).iter().count();
    let range = median(|| looks(|| view.thread(&thread).map(shown)))?;
    let last = median(|| looks(|| view.thread(&thread).map(|thread| thread.last(20).iter().count())))?;
    let result = median(|| looks(|| view.result(&node).map(|result| result.output)))?;
    emit(
        "views",
        json!({"events": state.events(), "paths": paths, "messages": length, "range_of_20_us": range, "last_20_messages_us": last, "result_us": result}),
    );
    Ok(())
}

/// Microseconds of one look.
fn looks<T>(look: impl Fn() -> Option<T>) -> Result<f64> {
    let wall = timed(|| {
        for _ in 0..LOOKS {
            black_box(look()).ok_or("nothing to be seen")?;
        }
        Ok(())
    })?;
    Ok(wall / f64::from(LOOKS) * 1e6)
}
