//! The workloads of workflows: documents that fork and join, compiled and driven as the command line does it.

use crate::measure::{apart, cost, emit, folder, fsync_us, fsyncs, peak_rss_mb, rss_mb, size};
use crate::parts::Flat;
use crate::ports::Echo;
use crate::runs::{row, runtime, start};
use crate::{Result, plans};
use selvedge_engine::expression::Expression;
use selvedge_engine::{End, Graph, Input, Limits, Start, State, ToolRequest};
use selvedge_runtime::{CallContext, Controls, Driver, Journal, Pending, Tools};
use selvedge_store::{Mode, Store};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What the process was when something happened.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    rss_mb: f64,
    bytes: f64,
    commits: u64,
}

/// The tools of W3: `say` makes the conversation, `done` comes right behind the join.
struct Talk {
    store: Arc<Store>,
    length: usize,
    last: Mutex<Option<Moment>>,
    done: Mutex<Option<Moment>>,
}

impl Talk {
    fn now(&self) -> Option<Moment> {
        let bytes = self.store.dir().and_then(|folder| size(folder).ok())? as f64;
        Some(Moment { rss_mb: rss_mb(), bytes, commits: self.store.commits(), at: Instant::now() })
    }
    fn taken(slot: &Mutex<Option<Moment>>) -> Result<Moment> {
        slot.lock().unwrap_or_else(PoisonError::into_inner).ok_or_else(|| "a tool was not called".into())
    }
}

impl Tools for Talk {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        let slot = match (&*request.tool.name, request.args.get("n").and_then(Value::as_u64)) {
            ("done", _) => Some(&self.done),
            (_, Some(n)) if n + 1 == self.length as u64 / 2 => Some(&self.last),
            _ => None,
        };
        if let Some(slot) = slot {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = self.now();
        }
        Box::pin(async { Ok(json!("lorem ipsu ".repeat(73))) })
    }
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "type": kind, "config": config})
}

fn edge(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

/// A conversation of so many messages, so many paths of two questions each, and a join.
fn debate(messages: usize, paths: usize) -> Value {
    let id = |kind: &str, n: usize| format!("{kind}{n}");
    let ids: Vec<String> = (0..paths).map(|n| id("p", n)).collect();
    let children: Vec<String> = (0..paths).map(|n| id("a", n)).collect();
    let rounds = messages / 2;
    let mut nodes = vec![
        node("start", "START", json!({})),
        node("talk", "LOOP_START", json!({"count": rounds, "limit": rounds})),
        node("say", "TOOL", json!({"tool": "say", "args": {"n": "{{index}}"}, "thread": "main"})),
        node("talked", "LOOP_END", json!({"loop": "talk"})),
        node(
            "fork",
            "FORK",
            json!({"forkStrategy": "parallel", "forkPathIds": ids, "childNodeIds": children}),
        ),
        node(
            "join",
            "JOIN",
            json!({"forkPathIds": ids, "joinStrategy": "ALL_COMPLETED", "mainPathId": "p0"}),
        ),
        node("done", "TOOL", json!({"tool": "done"})),
        node("end", "END", json!({})),
    ];
    let mut edges: Vec<Value> = ["start", "talk", "say", "talked", "fork"]
        .windows(2)
        .filter_map(|pair| Some(edge(pair.first()?, pair.get(1)?)))
        .collect();
    edges.extend([edge("join", "done"), edge("done", "end")]);
    for n in 0..paths {
        let (first, second) = (id("a", n), id("b", n));
        nodes.push(node(&first, "LLM", json!({"prompt": "q"})));
        nodes.push(node(&second, "LLM", json!({"prompt": "q"})));
        edges.extend([edge(&first, &second), edge(&second, "join")]);
    }
    json!({"nodes": nodes, "edges": edges})
}

/// 5,000 messages forked to 64 paths of four messages each, and joined; then 1,000 paths, and 1,000 of a million messages.
pub(crate) fn w3(scale: f64) -> Result<()> {
    if scale < 1.0 {
        return one(50, 8);
    }
    for (messages, paths) in [(5_000, 64), (5_000, 1_000), (1_000_000, 1_000)] {
        let sizes = [("BENCH_MESSAGES", messages.to_string()), ("BENCH_PATHS", paths.to_string())];
        apart("W3-one", &sizes.each_ref().map(|(name, size)| (*name, size.as_str())))?;
    }
    Ok(())
}

/// One size.
pub(crate) fn w3_one() -> Result<()> {
    let setting = |name, default| crate::measure::setting(name, default) as usize;
    one(setting("BENCH_MESSAGES", 5_000.0), setting("BENCH_PATHS", 64.0))
}

fn one(messages: usize, paths: usize) -> Result<()> {
    let runtime = runtime()?;
    let graph = plans::compile(&debate(messages, paths).to_string())?;
    let folder = folder()?;
    let syncs = fsyncs(folder.path())?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let talk =
        Arc::new(Talk { store: Arc::clone(&store), length: messages, last: None.into(), done: None.into() });
    let limits = selvedge_runtime::Limits { max_parallel: paths, concurrency: paths, run_timeout_s: None };
    let driver = Driver::new(Arc::new(Echo), Arc::<Talk>::clone(&talk), limits);
    runtime.block_on(run(&driver, &store, &graph))?;
    let (last, done) = (Talk::taken(&talk.last)?, Talk::taken(&talk.done)?);
    let peak = peak_rss_mb();
    drop(talk);
    drop(store);
    let wall = (done.at - last.at).as_secs_f64();
    emit(
        "W3",
        json!({"variant": "durable", "children": paths, "parent_messages": messages, "wall_s": wall,
        "us_per_path": wall / paths as f64 * 1e6, "base_rss_mb": last.rss_mb, "peak_rss_mb": peak,
        "more_rss_mb": peak - last.rss_mb, "disk_mb": (done.bytes - last.bytes) / 1e6,
        "commits": done.commits - last.commits, "fsync_us": fsync_us(syncs, folder.path())?}),
    );
    Ok(())
}

async fn run(driver: &Driver, store: &Arc<Store>, graph: &Arc<Graph>) -> Result<()> {
    store.create_run(row("talk".into()), Vec::new()).await?;
    let mut journal = Journal::stored(Arc::clone(store), "talk", 0);
    let mut state = State::new(Arc::clone(graph));
    let limits = Limits { events: u64::MAX, loop_iterations: u64::MAX, ..start().limits };
    let begun = vec![Input::Start(Box::new(Start { limits, ..Start::default() }))];
    let halt = driver.drive("talk", &mut state, &mut journal, begun, &mut Controls::default()).await?;
    match state.ended() {
        Some((End::Completed, _)) => Ok(()),
        end => Err(format!("the run did not complete: {halt:?} {end:?}").into()),
    }
}

/// A workflow of 10,000 nodes: reading, checking, lowering. A line of them, forks of 100 paths, and loops in loops.
pub(crate) fn compile(scale: f64) -> Result<()> {
    let size = (10_000.0 * scale) as usize;
    for (variant, text) in [("line", line(size)), ("forks of 98", forks(size / 100))] {
        let cost = cost(|| plans::compile(&text))?;
        emit(
            "compile_workflow",
            json!({"variant": variant, "nodes": size, "bytes": text.len(), "wall_s": cost.wall_s, "cpu_s": cost.cpu_s}),
        );
    }
    Ok(())
}

/// Model nodes one after the other, each of which sees the one before.
fn line(count: usize) -> String {
    let prompt = |n: usize| if n == 0 { "go".to_owned() } else { format!("after {{{{n{}}}}}", n - 1) };
    let mut nodes = vec![node("start", "START", json!({}))];
    nodes.extend((0..count).map(|n| node(&format!("n{n}"), "LLM", json!({"prompt": prompt(n)}))));
    nodes.push(node("end", "END", json!({})));
    let mut edges = vec![edge("start", "n0"), edge(&format!("n{}", count.max(1) - 1), "end")];
    edges.extend((1..count).map(|n| edge(&format!("n{}", n - 1), &format!("n{n}"))));
    json!({"nodes": nodes, "edges": edges}).to_string()
}

/// So many forks of 98 paths one after the other, each joined.
fn forks(count: usize) -> String {
    const PATHS: usize = 98;
    let mut nodes = vec![node("start", "START", json!({}))];
    let mut edges = Vec::new();
    let mut before = "start".to_owned();
    for n in 0..count.max(1) {
        let child = |path: usize| format!("c{n}-{path}");
        let (fork, join) = (format!("f{n}"), format!("j{n}"));
        let ids: Vec<String> = (0..PATHS).map(|path| format!("p{n}-{path}")).collect();
        let children: Vec<String> = (0..PATHS).map(child).collect();
        edges.push(edge(&before, &fork));
        nodes.push(node(
            &fork,
            "FORK",
            json!({"forkStrategy": "parallel", "forkPathIds": ids, "childNodeIds": children}),
        ));
        for child in &children {
            nodes.push(node(child, "LLM", json!({"prompt": "q"})));
            edges.push(edge(child, &join));
        }
        nodes.push(node(&join, "JOIN", json!({"forkPathIds": ids, "joinStrategy": "ALL_COMPLETED"})));
        before = join;
    }
    nodes.push(node("end", "END", json!({})));
    edges.push(edge(&before, "end"));
    json!({"nodes": nodes, "edges": edges}).to_string()
}

/// A condition, evaluated a million times.
pub(crate) fn condition(scale: f64) -> Result<()> {
    let times = (1_000_000.0 * scale) as usize;
    let layers = Flat::of(json!({"n1": {"score": 4, "text": "fine"}}), json!({"flag": true}));
    for text in
        ["n1.output.score > 3 && flag", "n1.output.text.startsWith('f') ? n1.output.score + 1 == 5 : false"]
    {
        let expression = Expression::parse(text).map_err(|error| format!("{error:?}"))?;
        let cost = cost(|| {
            for _ in 0..times {
                let value = expression.evaluate(&layers, 10_000).map_err(|error| format!("{error:?}"))?;
                std::hint::black_box(value);
            }
            Ok(())
        })?;
        let [us_each, cpu_us_each] = cost.us_each(times);
        emit(
            "condition",
            json!({"variant": text, "evaluations": times, "us_each": us_each, "cpu_us_each": cpu_us_each}),
        );
    }
    Ok(())
}
