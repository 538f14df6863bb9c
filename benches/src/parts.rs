//! The workloads that take one part: parameters, the compiler, the fold of a journal.

use crate::measure::{cost, emit, folder, median, setting, timed};
use crate::plans::Refers;
use crate::ports::Echo;
use crate::runs::{driver, row, runtime, start};
use crate::{Result, plans};
use selvedge_engine::template::{JsonTemplate, Layers, OnMissing, StepView};
use selvedge_engine::{Event, Graph, Input, Start, State};
use selvedge_runtime::{Controls, Journal, Reading};
use selvedge_store::{Entry, Mode, NewRun, Store};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Flat {
    results: HashMap<String, Value>,
    runtime: HashMap<String, Value>,
    initial: HashMap<String, Value>,
}

impl Flat {
    /// The results of some steps, and variables; both are objects.
    pub(crate) fn of(results: Value, variables: Value) -> Self {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default().into_iter().collect();
        Self { results: map(results), runtime: map(variables), initial: HashMap::new() }
    }
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
    let wall = median(|| timed(|| plans::compile(&text)))?;
    emit("compile", json!({"nodes": nodes, "bytes": text.len(), "wall_s": wall}));
    Ok(())
}

/// A run of so many events that died with its last effect in flight.
pub(crate) fn resume(scale: f64) -> Result<()> {
    let events = (100_000.0 * scale) as usize;
    let graph = plans::compile(&plans::chain(events / 6 + 1).to_string())?;
    resumed("resume", &graph)
}

/// The same of a step task of 10,000 steps.
pub(crate) fn resume_steps(scale: f64) -> Result<()> {
    let graph = plans::compile(&plans::task((10_000.0 * scale) as usize, Refers::Before).to_string())?;
    resumed("resume_steps", &graph)
}

/// Replaying a run of so many events.
pub(crate) fn replay(scale: f64) -> Result<()> {
    let events = (100_000.0 * scale) as usize;
    let graph = plans::compile(&plans::chain(events / 6 + 1).to_string())?;
    let (_folder, store, events) = recorded(&graph)?;
    let cost = cost(|| {
        let replayed = selvedge_runtime::replay(&mut Reading::open(&store, "long")?)?;
        match replayed.diverged {
            None => Ok(replayed),
            Some(other) => Err(format!("the replay diverges: {other:?}").into()),
        }
    })?;
    let rate = events as f64 / cost.wall_s;
    emit(
        "replay",
        json!({"events": events, "wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "events_per_s": rate}),
    );
    Ok(())
}

fn resumed(workload: &str, graph: &Arc<Graph>) -> Result<()> {
    let (_folder, store, events) = recorded(graph)?;
    let cost = cost(|| {
        let loaded = selvedge_runtime::load(&store, "long", None, None)?;
        let effect = loaded.state.pending().keys().next().cloned().ok_or("nothing pending")?;
        std::hint::black_box(loaded.state.request(&effect));
        Ok(loaded)
    })?;
    let nodes = graph.nodes.len();
    emit(workload, json!({"nodes": nodes, "events": events, "wall_s": cost.wall_s, "cpu_s": cost.cpu_s}));
    Ok(())
}

/// A run of a graph, `long`, up to its last request; how many events that is.
fn recorded(graph: &Arc<Graph>) -> Result<(TempDir, Arc<Store>, usize)> {
    let runtime = runtime()?;
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let bytes = serde_json::to_vec(graph.as_ref())?;
    let (hash, commit) = store.put_blob(bytes);
    commit.wait()?;
    let mut state = State::new(Arc::clone(graph));
    let mut journal = Journal::Memory(Vec::new());
    let begun = vec![Input::Start(Box::new(Start { graph: hash.to_string().into(), ..start() }))];
    runtime.block_on(driver(Arc::new(Echo)).drive(
        "x",
        &mut state,
        &mut journal,
        begun,
        &mut Controls::default(),
    ))?;
    let Journal::Memory(mut records) = journal else { return Err("not in memory".into()) };
    let last = records.iter().rposition(|record| matches!(record.event, Event::Requested { .. }));
    records.truncate(last.map_or(0, |last| last + 1));
    let entries = (1..)
        .zip(&records)
        .map(|(n, record)| Ok(Entry { n, at_ms: record.at, json: serde_json::to_string(&record.event)? }));
    let row = NewRun { graph: Some(hash), ..row("long".into()) };
    store.create_run(row, entries.collect::<Result<Vec<_>>>()?).wait()?;
    Ok((folder, store, records.len()))
}
