//! The workloads that run plans.

use crate::measure::{
    apart, chill, chosen, cpu_s, emit, folder, fsync_us, fsyncs, median, peak_rss_mb, setting, size, sizes,
    timed, times,
};
use crate::ports::{Echo, Hundred};
use crate::{Result, agents, floor, http, plans};
use selvedge_engine::{Graph, Input, Start, State};
use selvedge_runtime::{Controls, Driver, Halt, Journal, Limits, Model};
use selvedge_store::{Mode, NewRun, RunStatus, Store};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Two threads, as many as the machine that the figures are taken on has processors.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A driver whose limits bind nothing here.
pub(crate) fn driver(model: Arc<dyn Model>) -> Driver {
    Driver::new(model, Arc::new(Hundred), Limits { max_parallel: 512, concurrency: 64, run_timeout_s: None })
}

/// What a run of a bench begins with: its threads may grow, and are measured all the same.
pub(crate) fn start() -> Start {
    let limits = selvedge_engine::Limits { model_request_bytes: u64::MAX, ..Default::default() };
    Start { limits, ..Start::default() }
}

/// What the store is told of a run of a bench.
pub(crate) fn row(id: String) -> NewRun {
    NewRun {
        id,
        name: "bench".into(),
        dialect: "plan".into(),
        status: RunStatus::Running,
        started_ms: 0,
        graph: None,
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    }
}

pub(crate) async fn drive(
    driver: &Driver,
    graph: &Arc<Graph>,
    store: Option<&Arc<Store>>,
) -> Result<(State, Journal)> {
    let id = format!("bench-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let mut journal = match store {
        None => Journal::Memory(Vec::new()),
        Some(store) => {
            store.create_run(row(id.clone()), Vec::new()).await?;
            Journal::stored(Arc::clone(store), id.clone(), 0)
        }
    };
    let mut state = State::new(Arc::clone(graph));
    let begun = vec![Input::Start(Box::new(start()))];
    let halt = driver.drive(&id, &mut state, &mut journal, begun, &mut Controls::default()).await?;
    match (halt, state.ended()) {
        (Halt::Ended, Some((selvedge_engine::End::Completed, _))) => Ok((state, journal)),
        (halt, end) => Err(format!("the run did not complete: {halt:?} {end:?}").into()),
    }
}

const W1: [&str; 2] = ["inproc/memory", "inproc/durable"];

pub(crate) fn w1(scale: f64) -> Result<()> {
    let all = [200, 2_000, 20_000];
    if scale < 1.0 {
        return all
            .iter()
            .try_for_each(|nodes| W1.iter().try_for_each(|variant| one_w1(nodes / 100 + 2, variant)));
    }
    for nodes in sizes("BENCH_NODES", &all) {
        for variant in W1.iter().filter(|variant| chosen(variant)) {
            apart("W1-one", &[("BENCH_NODES", &nodes.to_string()), ("BENCH_VARIANT", variant)])?;
        }
    }
    if std::env::var_os("BENCH_BASE_URL").is_some() && chosen("http/durable") {
        apart("W1-one", &[("BENCH_NODES", "200"), ("BENCH_VARIANT", "http/durable")])?;
    }
    Ok(())
}

/// One size of one variant.
pub(crate) fn w1_one() -> Result<()> {
    let nodes = setting("BENCH_NODES", 200.0) as usize;
    one_w1(nodes, &std::env::var("BENCH_VARIANT").unwrap_or_else(|_| "inproc/memory".into()))
}

fn one_w1(nodes: usize, variant: &str) -> Result<()> {
    let runtime = runtime()?;
    let graph = plans::compile(&plans::chain(nodes).to_string())?;
    match variant {
        "inproc/memory" => {
            let driver = driver(Arc::new(Echo));
            let wall = times(|| timed(|| runtime.block_on(drive(&driver, &graph, None))))?;
            let peak = peak_rss_mb();
            let cold = median(|| {
                chill();
                timed(|| runtime.block_on(drive(&driver, &graph, None)))
            })?;
            let each = |wall: f64| wall / nodes as f64 * 1e6;
            emit(
                "W1",
                json!({"variant": variant, "nodes": nodes, "wall_s": wall.median, "us_per_node": each(wall.median),
                "first_us_per_node": each(wall.first), "cold_us_per_node": each(cold), "peak_rss_mb": peak}),
            );
            Ok(())
        }
        "inproc/durable" => durable(&runtime, &driver(Arc::new(Echo)), &graph, nodes, variant),
        _ => {
            let driver = driver(runtime.block_on(async { http::model("") })?);
            durable(&runtime, &driver, &graph, nodes, variant)
        }
    }
}

/// Runs the nodes on a store, and says what of it each node costs.
fn durable(
    runtime: &tokio::runtime::Runtime,
    driver: &Driver,
    graph: &Arc<Graph>,
    nodes: usize,
    variant: &str,
) -> Result<()> {
    let folder = folder()?;
    let before = fsyncs(folder.path())?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let wall = median(|| timed(|| runtime.block_on(drive(driver, graph, Some(&store)))))?;
    let done = nodes as f64 * (setting("BENCH_RUNS", 3.0) + 1.0);
    let commits = store.commits() as f64;
    drop(store);
    let bytes = size(folder.path())? as f64;
    emit(
        "W1",
        json!({"variant": variant, "nodes": nodes, "wall_s": wall, "us_per_node": wall / nodes as f64 * 1e6,
        "bytes_per_node": bytes / done, "commits_per_node": commits / done, "peak_rss_mb": peak_rss_mb(),
        "fsync_us": fsync_us(before, folder.path())?}),
    );
    Ok(())
}

pub(crate) fn w4(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let driver = driver(Arc::new(Echo));
    for steps in sizes("BENCH_STEPS", &[1_000, 10_000, 100_000]) {
        let steps = if scale < 1.0 { steps / 100 } else { steps };
        let graph = plans::compile(&plans::steps(steps).to_string())?;
        let folder = folder()?;
        let before = fsyncs(folder.path())?;
        let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
        let start = Instant::now();
        runtime.block_on(drive(&driver, &graph, Some(&store)))?;
        let wall = start.elapsed().as_secs_f64();
        let commits = store.commits();
        drop(store);
        let bytes = size(folder.path())? as f64;
        let fsync = fsync_us(before, folder.path())?;
        let per_s = steps as f64 / wall;
        emit(
            "W4",
            json!({"variant": "durable", "steps": steps, "wall_s": wall, "steps_per_s": per_s,
            "of_fsync_rate": fsync.map(|us| per_s * us / 1e6), "bytes_per_step": bytes / steps as f64,
            "commits_per_step": commits as f64 / steps as f64, "fsync_us": fsync}),
        );
    }
    Ok(())
}

pub(crate) fn w2() -> Result<()> {
    let runtime = runtime()?;
    let driver = driver(runtime.block_on(async { http::model("?latency=50") })?);
    let graph = plans::compile(&plans::fan(50).to_string())?;
    let folder = folder()?;
    let syncs = fsyncs(folder.path())?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let before = cpu_s();
    let wall = times(|| timed(|| runtime.block_on(drive(&driver, &graph, Some(&store)))))?;
    let runs = setting("BENCH_RUNS", 3.0) + 1.0;
    let cpu = (cpu_s() - before) / runs;
    emit(
        "W2",
        json!({"variant": "sequential plan, durable", "wall_s": wall.median, "first_s": wall.first, "critical_path_s": 0.25,
        "by_hand_s": floor::waves(50, 4, false)?, "by_hand_streamed_s": floor::waves(50, 4, true)?,
        "cpu_s": cpu, "commits": store.commits() as f64 / runs, "fsync_us": fsync_us(syncs, folder.path())?}),
    );
    Ok(())
}

pub(crate) fn w5() -> Result<()> {
    let mut variants = ["memory", "durable"].into_iter().filter(|variant| chosen(variant));
    variants.try_for_each(|variant| apart("W5-one", &[("BENCH_VARIANT", variant)]))
}

/// The same runs through an agent's executor.
pub(crate) fn w5_agent() -> Result<()> {
    let mut variants = ["agent/memory", "agent/durable"].into_iter().filter(|variant| chosen(variant));
    variants.try_for_each(|variant| apart("W5-one", &[("BENCH_VARIANT", variant)]))
}

/// One variant.
pub(crate) fn w5_one() -> Result<()> {
    let variant = std::env::var("BENCH_VARIANT").unwrap_or_else(|_| "memory".into());
    let runs = setting("BENCH_W5_RUNS", 500.0) as usize;
    let runtime = runtime()?;
    let model = runtime.block_on(async { http::model("?latency=20&tools=5") })?;
    let folder = folder()?;
    let durable = variant.ends_with("durable");
    let store = if durable { Some(Arc::new(Store::open(folder.path(), Mode::ReadWrite)?)) } else { None };
    let (driver, graph) = if variant.starts_with("agent") {
        let library = store.clone().map_or_else(|| Store::memory().map(Arc::new), Ok)?;
        let driver = runtime.block_on(agents::driver(model, &library, folder.path()))?;
        (driver, plans::compile(&agents::executor(10).to_string())?)
    } else {
        (driver(model), plans::compile(&plans::looping().to_string())?)
    };
    let mut each = Vec::new();
    let before = cpu_s();
    let mut first_peak = None;
    let wall = times(|| {
        let wall = timed(|| runtime.block_on(all(&driver, &graph, store.as_ref(), runs, &mut each)))?;
        first_peak.get_or_insert_with(peak_rss_mb);
        Ok(wall)
    })?;
    each.sort_by(f64::total_cmp);
    let at = |share: f64| each.get(((each.len() - 1) as f64 * share) as usize).copied();
    emit(
        "W5",
        json!({"variant": variant, "runs": runs, "wall_s": wall.median,
        "first_s": wall.first, "p50_s": at(0.5), "p99_s": at(0.99),
        "cpu_s": (cpu_s() - before) / (setting("BENCH_RUNS", 3.0) + 1.0), "llm_calls": runs * 6,
        "first_peak_rss_mb": first_peak, "peak_rss_mb": peak_rss_mb()}),
    );
    Ok(())
}

/// So many runs of one plan at a time; `times` gets what each took.
async fn all(
    driver: &Driver,
    graph: &Arc<Graph>,
    store: Option<&Arc<Store>>,
    runs: usize,
    times: &mut Vec<f64>,
) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..runs {
        let (driver, graph, store) = (driver.clone(), Arc::clone(graph), store.cloned());
        tasks.spawn(async move {
            let start = Instant::now();
            let run = drive(&driver, &graph, store.as_ref()).await;
            run.map(|_| start.elapsed().as_secs_f64()).map_err(|error| error.to_string())
        });
    }
    while let Some(result) = tasks.join_next().await {
        times.push(result??);
    }
    Ok(())
}

pub(crate) fn oneshot() -> Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let state = std::env::var_os("BENCH_STATE");
        let store =
            state.map(|state| Store::open(state.as_ref(), Mode::ReadWrite).map(Arc::new)).transpose()?;
        let driver = driver(http::model("")?);
        let graph = plans::compile(&plans::chain(1).to_string())?;
        drive(&driver, &graph, store.as_ref()).await.map(drop)
    })
}
