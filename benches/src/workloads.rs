//! The workloads.

use crate::ports::{Echo, Hundred};
use crate::{Result, emit, median, plans, setting, timed};
use selvedge_adapters::http::Http;
use selvedge_adapters::models::openai::{OpenAi, OpenAiConfig};
use selvedge_engine::template::{JsonTemplate, Layers, OnMissing, StepView};
use selvedge_engine::{Event, Graph, Input, State};
use selvedge_runtime::{Driver, Halt, Journal, Limits, Model, Stop};
use selvedge_store::{Entry, Mode, NewRun, RunStatus, Store};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static RUNS: AtomicU64 = AtomicU64::new(0);

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

fn driver(model: Arc<dyn Model>) -> Driver {
    Driver::new(model, Arc::new(Hundred), Limits { max_parallel: 512, concurrency: 64, run_timeout_s: None })
}

async fn drive(driver: &Driver, graph: &Arc<Graph>, store: Option<&Arc<Store>>) -> Result<State> {
    let id = format!("bench-{}", RUNS.fetch_add(1, Ordering::Relaxed));
    let mut journal = match store {
        None => Journal::Memory(Vec::new()),
        Some(store) => {
            let row = NewRun {
                id: id.clone(),
                name: "bench".into(),
                dialect: "plan".into(),
                status: RunStatus::Running,
                started_ms: 0,
                graph: None,
                scripted: false,
                options: "{}".into(),
                fork: None,
            };
            store.create_run(row, Vec::new()).await?;
            Journal::stored(Arc::clone(store), id.clone(), 0)
        }
    };
    let mut state = State::new(Arc::clone(graph));
    let start = vec![Input::Start(Box::default())];
    let halt = driver.drive(&id, &mut state, &mut journal, start, &Stop::default()).await?;
    match (halt, state.ended()) {
        (Halt::Ended, Some((selvedge_engine::End::Completed, _))) => Ok(state),
        (halt, end) => Err(format!("the run did not complete: {halt:?} {end:?}").into()),
    }
}

fn folder() -> Result<tempfile::TempDir> {
    let base = std::env::var("BENCH_TMP").unwrap_or_else(|_| "/tmp".into());
    Ok(tempfile::Builder::new().prefix("selvedge-bench").tempdir_in(base)?)
}

pub(crate) fn w1(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let driver = driver(Arc::new(Echo));
    for nodes in [200, 2_000, 20_000] {
        let nodes = if scale < 1.0 { nodes / 100 + 2 } else { nodes };
        let graph = plans::compile(&plans::chain(nodes).to_string())?;
        let wall = median(|| timed(|| runtime.block_on(drive(&driver, &graph, None)).map(drop)))?;
        emit(
            "W1",
            json!({"variant": "inproc/memory", "nodes": nodes, "wall_s": wall,
            "us_per_node": wall / nodes as f64 * 1e6}),
        );
        let folder = folder()?;
        let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
        let wall = median(|| timed(|| runtime.block_on(drive(&driver, &graph, Some(&store))).map(drop)))?;
        let bytes = size(folder.path())? as f64 / (nodes as f64 * (setting("BENCH_RUNS", 3.0) + 1.0));
        emit(
            "W1",
            json!({"variant": "inproc/durable", "nodes": nodes, "wall_s": wall,
            "us_per_node": wall / nodes as f64 * 1e6, "bytes_per_node": bytes, "fsync_us": fsync_us(folder.path())?}),
        );
    }
    Ok(())
}

pub(crate) fn w4(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let driver = driver(Arc::new(Echo));
    for steps in [1_000, 10_000, 100_000] {
        let steps = if scale < 1.0 { steps / 100 } else { steps };
        let graph = plans::compile(&plans::steps(steps).to_string())?;
        let folder = folder()?;
        let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
        let start = Instant::now();
        runtime.block_on(drive(&driver, &graph, Some(&store)))?;
        let wall = start.elapsed().as_secs_f64();
        drop(store);
        emit(
            "W4",
            json!({"variant": "durable", "steps": steps, "wall_s": wall, "steps_per_s": steps as f64 / wall,
            "bytes_per_step": size(folder.path())? as f64 / steps as f64, "fsync_us": fsync_us(folder.path())?}),
        );
    }
    Ok(())
}

fn http_model(query: &str) -> Result<Arc<dyn Model>> {
    let base = std::env::var("BENCH_BASE_URL").unwrap_or_else(|_| "http://127.0.0.1:18080/v1".into());
    Ok(Arc::new(OpenAi::new(OpenAiConfig::new(base, format!("mock{query}")), &Http::new())?))
}

pub(crate) fn w2() -> Result<()> {
    let runtime = runtime()?;
    let driver = driver(runtime.block_on(async { http_model("?latency=50") })?);
    let graph = plans::compile(&plans::fan(50).to_string())?;
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let wall = median(|| timed(|| runtime.block_on(drive(&driver, &graph, Some(&store))).map(drop)))?;
    emit(
        "W2",
        json!({"variant": "sequential plan, durable", "wall_s": wall, "critical_path_s": 0.25,
        "fsync_us": fsync_us(folder.path())?}),
    );
    Ok(())
}

pub(crate) fn w5() -> Result<()> {
    let runs = setting("BENCH_W5_RUNS", 500.0) as usize;
    let runtime = runtime()?;
    let driver = driver(runtime.block_on(async { http_model("?latency=20&tools=5") })?);
    let graph = plans::compile(&plans::looping().to_string())?;
    let folder = folder()?;
    for durable in [false, true] {
        let store = if durable { Some(Arc::new(Store::open(folder.path(), Mode::ReadWrite)?)) } else { None };
        let wall = median(|| {
            timed(|| {
                runtime.block_on(async {
                    let mut tasks = tokio::task::JoinSet::new();
                    for _ in 0..runs {
                        let (driver, graph, store) = (driver.clone(), Arc::clone(&graph), store.clone());
                        tasks.spawn(async move {
                            drive(&driver, &graph, store.as_ref()).await.map(drop).map_err(|e| e.to_string())
                        });
                    }
                    while let Some(result) = tasks.join_next().await {
                        result??;
                    }
                    Ok(())
                })
            })
        })?;
        emit(
            "W5",
            json!({"variant": if durable { "durable" } else { "memory" }, "runs": runs, "wall_s": wall,
            "llm_calls": runs * 6, "peak_rss_mb": peak_rss_mb()}),
        );
    }
    Ok(())
}

pub(crate) fn oneshot() -> Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let driver = driver(http_model("")?);
        let graph = plans::compile(&plans::chain(1).to_string())?;
        drive(&driver, &graph, None).await.map(drop)
    })
}

struct Flat {
    results: HashMap<String, Value>,
    runtime: HashMap<String, Value>,
    initial: HashMap<String, Value>,
}

impl Layers for Flat {
    fn is_step(&self, id: &str) -> bool {
        self.results.contains_key(id)
    }
    fn step(&self, id: &str) -> StepView<'_> {
        self.results.get(id).map_or(StepView::NotRun, StepView::Output)
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.runtime.get(name)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.initial.get(name)
    }
    fn fallback(&self, _: &str) -> Option<&Value> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The parameters of the peers' W7.
fn parameters(i: usize) -> Value {
    let s = |k: usize| format!("step_{}", (i * 7 + k * 13) % 100);
    json!({"a": format!("{{{{{}.outputs.id}}}}", s(0)),
        "b": {"c": format!("{{{{{{{}.outputs.result.data.model_id}}}}}}", s(1)),
              "d": [format!("${{{}.output.n}}", s(2)), format!("{{{{{}.id}}}}", s(3)),
                    {"e": "pre {{project_id}} and {{datasource_id}} post"}]},
        "f": format!("{{{{{}.output.result.data.list}}}}", s(4)), "g": {"h": {"i": "{{file_path}}"}},
        "j": format!("x-{{{{{}_id}}}}-y", s(5)), "k": format!("{{{{{}.outputs.result.data.list.2.k}}}}", s(6)), "lit": 5})
}

pub(crate) fn w7(scale: f64) -> Result<()> {
    let rounds = (setting("BENCH_N", 100_000.0) * scale) as usize;
    for store in [100, 10_000] {
        let result = |i: usize| {
            json!({"id": format!("id_{i}"), "n": i,
                "result": {"data": {"model_id": format!("m{i}"), "list": [1, 2, {"k": i}]}}})
        };
        let layers = Flat {
            results: (0..store).map(|i| (format!("step_{i}"), result(i))).collect(),
            runtime: (0..store)
                .map(|i| (format!("step_{i}_id"), json!(format!("id_{i}"))))
                .chain([("datasource_id".to_owned(), json!("ds_001"))])
                .collect(),
            initial: HashMap::from([
                ("project_id".to_owned(), json!("proj_001")),
                ("file_path".to_owned(), json!("/data/load.csv")),
            ]),
        };
        let templates = (0..100)
            .map(|i| JsonTemplate::parse(&parameters(i)).map_err(|error| format!("{error:?}").into()))
            .collect::<Result<Vec<_>>>()?;
        let wall = median(|| {
            timed(|| {
                for template in templates.iter().cycle().take(rounds) {
                    std::hint::black_box(template.resolve(&layers, OnMissing::Fault)?);
                }
                Ok(())
            })
        })?;
        emit(
            "W7",
            json!({"results": store, "resolutions": rounds, "wall_s": wall,
            "us_per_resolution": wall / rounds as f64 * 1e6}),
        );
    }
    Ok(())
}

pub(crate) fn compile(scale: f64) -> Result<()> {
    let nodes = (10_000.0 * scale) as usize;
    let text = plans::chain(nodes).to_string();
    let wall = median(|| timed(|| plans::compile(&text).map(drop)))?;
    emit("compile", json!({"nodes": nodes, "bytes": text.len(), "wall_s": wall}));
    Ok(())
}

/// A run of so many events that died with its last effect in flight.
pub(crate) fn resume(scale: f64) -> Result<()> {
    let events = (100_000.0 * scale) as usize;
    let runtime = runtime()?;
    let graph = plans::compile(&plans::chain(events / 6 + 1).to_string())?;
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let bytes = serde_json::to_vec(graph.as_ref())?;
    let (hash, commit) = store.put_blob(bytes);
    commit.wait()?;
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let start = vec![Input::Start(Box::default())];
    runtime.block_on(driver(Arc::new(Echo)).drive("x", &mut state, &mut journal, start, &Stop::default()))?;
    let Journal::Memory(mut records) = journal else { return Err("not in memory".into()) };
    let last = records.iter().rposition(|record| matches!(record.event, Event::Requested { .. }));
    records.truncate(last.map_or(0, |last| last + 1));
    let entries = (1..)
        .zip(&records)
        .map(|(n, record)| Ok(Entry { n, at_ms: record.at, json: serde_json::to_string(&record.event)? }));
    let row = NewRun {
        id: "long".into(),
        name: "bench".into(),
        dialect: "plan".into(),
        status: RunStatus::Running,
        started_ms: 0,
        graph: Some(hash),
        scripted: false,
        options: "{}".into(),
        fork: None,
    };
    store.create_run(row, entries.collect::<Result<Vec<_>>>()?).wait()?;
    let wall = median(|| {
        timed(|| {
            let loaded = selvedge_runtime::load(&store, "long", None, None)?;
            let effect = loaded.state.pending().keys().next().cloned().ok_or("nothing pending")?;
            std::hint::black_box(loaded.state.request(&effect));
            Ok(())
        })
    })?;
    emit("resume", json!({"events": records.len(), "wall_s": wall}));
    Ok(())
}

fn size(folder: &std::path::Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            total += entry.metadata()?.len();
        }
    }
    Ok(total)
}

/// What one synced append of 4 KiB costs on this disk, in microseconds.
fn fsync_us(folder: &std::path::Path) -> Result<f64> {
    use std::io::Write;
    let mut file = std::fs::File::create(folder.join("fsync"))?;
    let mut times = Vec::new();
    for _ in 0..100 {
        file.write_all(&[0; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(folder.join("fsync"))?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

/// The process's peak resident memory, in MiB.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}
