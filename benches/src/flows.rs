//! What becomes of workflows when a race is decided, and when a long one is resumed.

use crate::measure::{emit, folder, fsync_us, fsyncs, setting};
use crate::ports::Echo;
use crate::runs::{row, runtime, start};
use crate::tools::config;
use crate::{Result, plans};
use selvedge_engine::{End, Event, Failure, FaultKind, Graph, Input, Start, State, ToolRequest};
use selvedge_runtime::{CallContext, Controls, Driver, Halt, Journal, Limits, Pending, Tools};
use selvedge_store::{Mode, NewRun, Store};
use selvedge_tools::{Catalogue, CommandTool};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A time that is noted once.
#[derive(Default)]
struct Noted(Mutex<Option<Instant>>);

impl Noted {
    fn now(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    }
    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "type": kind, "config": config})
}

fn edge(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

/// 1,000 paths, each in the process of a tool, of which the last one ends once all are there: `ANY_COMPLETED` decides, and the
/// others are ended. From the decision on, until no process is left.
pub(crate) fn race(scale: f64) -> Result<()> {
    let paths = ((setting("BENCH_PATHS", 1_000.0) * scale) as usize).max(2);
    let runtime = runtime()?;
    let graph = plans::compile(&racing(paths).to_string())?;
    let folder = folder()?;
    let syncs = fsyncs(folder.path())?;
    let mut config = config(folder.path())?;
    config.tool_dirs.clear();
    config.commands = vec![CommandTool {
        name: "wait".into(),
        description: "waits".into(),
        command: vec!["sleep".to_owned(), seconds()],
        input_schema: json!({"type": "object"}),
        output_params: None,
        effects: None,
        timeout_s: None,
        env: Vec::new(),
        dir: std::path::PathBuf::new(),
    }];
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let began = Instant::now();
    let (gone_ms, begun_s) = runtime.block_on(async {
        let catalogue = Catalogue::load(config).await?;
        catalogue.prepare(&["wait"]).await?;
        let racers = Arc::new(Racers { catalogue, paths, decided: Noted::default() });
        let gone = std::thread::spawn({
            let racers = Arc::clone(&racers);
            move || racers.gone()
        });
        let limits = Limits { max_parallel: paths + 1, concurrency: paths + 1, run_timeout_s: None };
        let driver = Driver::new(Arc::new(Echo), Arc::<Racers>::clone(&racers), limits);
        store.create_run(row("race".into()), Vec::new()).await?;
        let mut journal = Journal::stored(Arc::clone(&store), "race", 0);
        let mut state = State::new(graph);
        let input = vec![Input::Start(Box::new(start()))];
        let halt = driver.drive("race", &mut state, &mut journal, input, &mut Controls::default()).await?;
        if !matches!(state.ended(), Some((End::Completed, _))) {
            return Err(format!("the race did not end: {halt:?} {:?}", state.ended()).into());
        }
        let (decided, gone) = gone.join().map_err(|_| "the watch over processes failed")??;
        Result::Ok(((gone - decided).as_secs_f64() * 1e3, (decided - began).as_secs_f64()))
    })?;
    emit(
        "race",
        json!({"paths": paths, "gone_ms": gone_ms, "until_decided_s": begun_s, "fsync_us": fsync_us(syncs, folder.path())?}),
    );
    Ok(())
}

/// The tools of a race: `wait` is a process of a program, and `first` wins once all of those are there.
struct Racers {
    catalogue: Catalogue,
    paths: usize,
    decided: Noted,
}

impl Tools for Racers {
    fn call(&self, mut request: ToolRequest, context: CallContext) -> Pending<Value> {
        match &*request.tool.name {
            "wait" => {
                if let Some(def) = self.catalogue.def("wait") {
                    request.tool = def;
                }
                self.catalogue.call(request, context)
            }
            // The join is decided, and its event durable, when the node behind it begins.
            "decided" => {
                self.decided.now();
                Box::pin(async { Ok(Value::Null) })
            }
            _ => {
                let others = self.paths - 1;
                Box::pin(async move {
                    while processes().unwrap_or(others) < others {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    Ok(Value::Null)
                })
            }
        }
    }
}

impl Racers {
    /// When the race was decided, and when none of its processes was left.
    fn gone(&self) -> std::result::Result<(Instant, Instant), String> {
        let late = Instant::now() + Duration::from_secs(300);
        loop {
            match self.decided.get() {
                Some(decided) if processes()? == 0 => return Ok((decided, Instant::now())),
                _ if Instant::now() > late => return Err("the race was not over in 300 s".into()),
                Some(_) => std::thread::sleep(Duration::from_millis(1)),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// How long each process would live: a number by which those of this race are known.
fn seconds() -> String {
    (100_000 + std::process::id()).to_string()
}

/// How many programs of the race there are.
fn processes() -> std::result::Result<usize, String> {
    let ends = format!("sleep\0{}\0", seconds());
    let mut programs = 0;
    for entry in std::fs::read_dir("/proc").map_err(|error| error.to_string())?.flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        // One that ends meanwhile is none.
        let Ok(line) = std::fs::read_to_string(entry.path().join("cmdline")) else { continue };
        // A supervisor has the program in its arguments as well.
        let is_program = line.split('\0').next().is_some_and(|program| program.ends_with("sleep"));
        programs += usize::from(is_program && line.ends_with(&ends));
    }
    Ok(programs)
}

fn racing(paths: usize) -> Value {
    let ids: Vec<String> = (0..paths).map(|n| format!("p{n}")).collect();
    let children: Vec<String> = (0..paths).map(|n| format!("c{n}")).collect();
    let mut nodes = vec![
        node("start", "START", json!({})),
        node(
            "fork",
            "FORK",
            json!({"forkStrategy": "parallel", "forkPathIds": ids, "childNodeIds": children}),
        ),
        node("join", "JOIN", json!({"forkPathIds": ids, "joinStrategy": "ANY_COMPLETED"})),
        node("over", "TOOL", json!({"tool": "decided"})),
        node("end", "END", json!({})),
    ];
    let mut edges = vec![edge("start", "fork"), edge("join", "over"), edge("over", "end")];
    for (n, child) in children.iter().enumerate() {
        let tool = if n + 1 == paths { "first" } else { "wait" };
        nodes.push(node(child, "TOOL", json!({"tool": tool})));
        edges.push(edge(child, "join"));
    }
    json!({"nodes": nodes, "edges": edges})
}

/// A workflow of 10,000 calls of which the last but one failed: from reading its journal until that call is made again, and how
/// many events that takes.
pub(crate) fn resume(scale: f64) -> Result<()> {
    let count = ((10_000.0 * scale) as usize).max(3);
    let runtime = runtime()?;
    let graph = plans::compile(&calls(count).to_string())?;
    let folder = folder()?;
    let syncs = fsyncs(folder.path())?;
    let steps = Arc::new(Steps { fails: count - 2, ..Steps::default() });
    let driver = {
        let limits = Limits { max_parallel: 8, concurrency: 8, run_timeout_s: None };
        Driver::new(Arc::new(Echo), Arc::<Steps>::clone(&steps), limits)
    };
    {
        let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
        runtime.block_on(first(&driver, &store, &graph))?;
    }
    steps.mended.store(true, Ordering::Relaxed);
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let before = store.last_event("calls")?;
    let began = Instant::now();
    let mut state = selvedge_runtime::load(&store, "calls", None, None)?.state;
    let loaded_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut journal = Journal::stored(Arc::clone(&store), "calls", before);
    let input = vec![Input::Resume(Vec::new())];
    runtime.block_on(driver.drive("calls", &mut state, &mut journal, input, &mut Controls::default()))?;
    let asked = steps.again.get().ok_or("the call was not made again")?;
    let mut events = 0;
    for entry in store.journal("calls", before + 1)? {
        events += 1;
        if matches!(serde_json::from_str(&entry?.json)?, Event::Requested { .. }) {
            break;
        }
    }
    if !matches!(state.ended(), Some((End::Completed, _))) {
        return Err(format!("the resumed run did not complete: {:?}", state.ended()).into());
    }
    emit(
        "resume_flow",
        json!({"nodes": count, "events_before": before, "new_events": events, "first_request_ms": (asked - began).as_secs_f64() * 1e3,
        "load_ms": loaded_ms, "calls_again": steps.calls.load(Ordering::Relaxed), "fsync_us": fsync_us(syncs, folder.path())?}),
    );
    Ok(())
}

/// Runs it until it fails.
async fn first(driver: &Driver, store: &Arc<Store>, graph: &Arc<Graph>) -> Result<()> {
    let (hash, commit) = store.put_blob(serde_json::to_vec(graph.as_ref())?);
    commit.await?;
    store.create_run(NewRun { graph: Some(hash), ..row("calls".into()) }, Vec::new()).await?;
    let mut journal = Journal::stored(Arc::clone(store), "calls", 0);
    let mut state = State::new(Arc::clone(graph));
    let input = vec![Input::Start(Box::new(Start { graph: hash.to_string().into(), ..start() }))];
    let halt: Halt = driver.drive("calls", &mut state, &mut journal, input, &mut Controls::default()).await?;
    match state.ended() {
        Some((End::Failed, _)) => Ok(()),
        end => Err(format!("the run was to fail: {halt:?} {end:?}").into()),
    }
}

/// Calls of which one fails until that is mended.
#[derive(Default)]
struct Steps {
    fails: usize,
    mended: AtomicBool,
    again: Noted,
    calls: AtomicUsize,
}

impl Tools for Steps {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        let mended = self.mended.load(Ordering::Relaxed);
        if mended {
            self.again.now();
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let fails = !mended && request.args.get("n").and_then(Value::as_u64) == Some(self.fails as u64);
        Box::pin(async move {
            match fails {
                true => Err(Failure::permanent(FaultKind::ExecutionFailure, "not yet")),
                false => Ok(json!({"text": "done"})),
            }
        })
    }
}

fn calls(count: usize) -> Value {
    let id = |n: usize| format!("n{n}");
    let mut nodes = vec![node("start", "START", json!({})), node("end", "END", json!({}))];
    nodes.extend((0..count).map(|n| node(&id(n), "TOOL", json!({"tool": "step", "args": {"n": n}}))));
    let mut edges = vec![edge("start", "n0"), edge(&id(count - 1), "end")];
    edges.extend((1..count).map(|n| edge(&id(n - 1), &id(n))));
    json!({"nodes": nodes, "edges": edges})
}
