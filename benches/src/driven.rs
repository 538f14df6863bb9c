//! Runs that are driven for others: many at once, and what another process says to one (E-43).

use crate::measure::{cpu_s, emit, folder, fsync_us, fsyncs, peak_rss_mb, rss_mb, setting};
use crate::ports::Hundred;
use crate::runs::{row, runtime, start};
use crate::{Result, plans};
use selvedge_engine::{End, Graph, Input, ModelReply, ModelRequest, State, answered};
use selvedge_runtime::{CallContext, Command, Driver, Journal, Limits, Model, Pending, send_command};
use selvedge_store::{Mode, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers after 200 ms.
struct Slow;

impl Model for Slow {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(ModelReply { text: "h".into(), ..ModelReply::default() })
        })
    }
}

/// Never answers.
struct Silent;

impl Model for Silent {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        Box::pin(std::future::pending())
    }
}

/// 10,000 runs at once, durable, each with its lock and a handle, as a server has them: each asks a model of 200 ms twice.
pub(crate) fn driven(scale: f64) -> Result<()> {
    let runs = (setting("BENCH_DRIVEN", 10_000.0) * scale) as usize;
    let graph = plans::compile(&plans::chain(2).to_string())?;
    let folder = folder()?;
    let disk = fsyncs(folder.path())?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let runtime = runtime()?;
    for wave in 0..setting("BENCH_WAVES", 3.0) as usize {
        let created = Instant::now();
        let new =
            (0..runs).map(|n| store.create_run(row(format!("{wave}-{n}")), Vec::new())).collect::<Vec<_>>();
        new.into_iter().try_for_each(selvedge_store::Commit::wait)?;
        let (created_s, commits, cpu, before) =
            (created.elapsed().as_secs_f64(), store.commits(), cpu_s(), rss_mb());
        let began = Instant::now();
        let mut times = runtime.block_on(all(&store, &graph, wave, runs))?;
        let wall = began.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let at =
            |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).copied().unwrap_or_default();
        emit(
            "driven",
            json!({"runs": runs, "wave": wave, "wave_s": wall, "create_s": created_s, "p50_s": at(0.5),
            "p99_s": at(0.99), "max_s": at(1.0), "max_of_median": at(1.0) / at(0.5), "cpu_s": cpu_s() - cpu,
            "kb_per_run": (peak_rss_mb() - before) * 1024.0 / runs as f64, "peak_rss_mb": peak_rss_mb(),
            "commits": store.commits() - commits}),
        );
    }
    drop(store);
    emit("driven", json!({"fsync_us": fsync_us(disk, folder.path())?}));
    Ok(())
}

/// Drives them all; what each took.
async fn all(store: &Arc<Store>, graph: &Arc<Graph>, wave: usize, runs: usize) -> Result<Vec<f64>> {
    let limits = Limits { max_parallel: runs, concurrency: 64, run_timeout_s: None };
    let driver = Driver::new(Arc::new(Slow), Arc::new(Hundred), limits);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..runs {
        let (driver, store, graph) = (driver.clone(), Arc::clone(store), Arc::clone(graph));
        tasks.spawn(async move {
            let began = Instant::now();
            let run = format!("{wave}-{n}");
            let lock = store.drive(&run).map_err(|error| error.to_string())?;
            let journal = Journal::stored(store, run.as_str(), 0);
            let begin = vec![Input::Start(Box::new(start()))];
            let (_handle, driven) = driver.driven(&run, State::new(graph), journal, begin, Some(lock));
            let driven = driven.await;
            match driven.state.ended() {
                Some((End::Completed, _)) => Ok(began.elapsed().as_secs_f64()),
                end => Err(format!("run {run} did not complete: {end:?} {:?}", driven.halt)),
            }
        });
    }
    let mut times = Vec::with_capacity(runs);
    while let Some(done) = tasks.join_next().await {
        times.push(done??);
    }
    Ok(times)
}

/// So many questions, and a model that never answers: whatever is said comes while a call is under way.
fn questions(count: usize) -> Result<Arc<Graph>> {
    let ask = |n: usize| {
        json!({"id": format!("q{n}"), "name": format!("q{n}"),
               "body": {"leaves": [{"name": "ask", "act": {"ask": ["answer", "?", null]}}]}})
    };
    let model = json!({"id": "m", "name": "m", "body": {"thread": 0, "leaves": [{"name": "model", "act": {"infer": {}}}]}});
    let nodes: Vec<Value> = (0..count).map(ask).chain([model]).collect();
    let graph = json!({"threads": [{"name": "main", "first": "go"}], "tools": {}, "nodes": nodes});
    Ok(Arc::new(serde_json::from_value(graph)?))
}

/// What another process says to a driven run, one word after the other: the time until each is durable here.
pub(crate) fn answer(scale: f64) -> Result<()> {
    let count = ((200.0 * scale) as usize).max(5);
    let folder = folder()?;
    let disk = fsyncs(folder.path())?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    store.create_run(row("r".into()), Vec::new()).wait()?;
    let lock = store.drive("r")?;
    let graph = questions(count)?;
    let driver = Driver::new(Arc::new(Silent), Arc::new(Hundred), Limits::default());
    let mut sender = std::process::Command::new(std::env::current_exe()?);
    sender.arg("answer-one").env("BENCH_STATE", folder.path()).env("BENCH_ASKS", count.to_string());
    let cpu = cpu_s();
    let status = runtime()?.block_on(async {
        let journal = Journal::stored(Arc::clone(&store), "r", 0);
        let begin = vec![Input::Start(Box::new(start()))];
        let (handle, driven) = driver.driven("r", State::new(graph), journal, begin, Some(lock));
        let task = tokio::spawn(driven);
        let mut events = handle.events();
        // It drives as soon as there is an event.
        events.next().await;
        let status = tokio::task::spawn_blocking(move || sender.status()).await??;
        // What polling for commands costs while nothing happens.
        let (idle, seconds) = (cpu_s(), 2.0 * scale.max(0.1));
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        let idle = (cpu_s() - idle) / seconds;
        handle.cancel().await?;
        task.await?.halt?;
        emit("answer", json!({"driver_cpu_s": cpu_s() - cpu, "idle_cpu_share": idle}));
        Ok::<_, Box<dyn std::error::Error>>(status)
    })?;
    emit("answer", json!({"fsync_us": fsync_us(disk, folder.path())?}));
    if status.success() { Ok(()) } else { Err("the process that answers failed".into()) }
}

/// The process that answers.
pub(crate) fn answer_one() -> Result<()> {
    let state = std::env::var_os("BENCH_STATE").ok_or("BENCH_STATE is missing")?;
    let count = setting("BENCH_ASKS", 5.0) as usize;
    let store = Arc::new(Store::open(state.as_ref(), Mode::ReadWrite)?);
    let mut times = runtime()?.block_on(async {
        let mut times = Vec::new();
        for n in 0..count {
            let command =
                Command::Answer { ask: format!("q{n}/ask").into(), value: answered(json!(n), None, None) };
            let began = Instant::now();
            send_command(&store, "r", &command).await??;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok::<_, Box<dyn std::error::Error>>(times)
    })?;
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).copied();
    emit("answer", json!({"answers": count, "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0)}));
    Ok(())
}
