//! The workloads of step tasks.

use crate::Result;
use crate::measure::{apart, chosen, cost, emit, middle, peak_rss_mb, setting, sizes};
use crate::plans::{self, Refers};
use crate::ports::{Echo, Twenty};
use crate::runs::{drive, driver, runtime};
use selvedge_dialects::{Capabilities, Source};
use selvedge_engine::{Event, Outcome};
use selvedge_runtime::{Driver, Journal, Limits};
use serde_json::{Value, json};
use std::sync::Arc;

const CHAINS: [(&str, Refers, bool); 3] = [
    ("one placeholder", Refers::Before, false),
    ("one placeholder, a model at hand", Refers::Before, true),
    ("ten placeholders", Refers::Ten, false),
];

/// Chains of in-process steps; a step of each size should take as long.
pub(crate) fn steps(scale: f64) -> Result<()> {
    let chosen = CHAINS.iter().enumerate().filter(|(_, (variant, ..))| chosen(variant));
    for (kind, _) in chosen {
        for steps in sizes("BENCH_STEPS", &[1_000, 10_000, 100_000]) {
            if scale < 1.0 {
                chain(kind, steps / 100 + 2)?;
            } else {
                let (kind, steps) = (kind.to_string(), steps.to_string());
                apart("steps-one", &[("BENCH_KIND", &kind), ("BENCH_STEPS", &steps)])?;
            }
        }
    }
    Ok(())
}

/// One size of one kind.
pub(crate) fn steps_one() -> Result<()> {
    chain(setting("BENCH_KIND", 0.0) as usize, setting("BENCH_STEPS", 1_000.0) as usize)
}

fn chain(kind: usize, steps: usize) -> Result<()> {
    let &(variant, refers, model) = CHAINS.get(kind).ok_or("no such kind of chain")?;
    let runtime = runtime()?;
    let driver = driver(Arc::new(Echo));
    let source = Source::new("task.json", &plans::task(steps, refers).to_string());
    let graph =
        plans::lower(&source, &plans::read(&source)?, &Capabilities { model, ..Capabilities::default() })?;
    let cost = cost(|| runtime.block_on(drive(&driver, &graph, None)))?;
    let [us_per_step, cpu_us_per_step] = cost.us_each(steps);
    emit(
        "steps",
        json!({"variant": variant, "steps": steps, "wall_s": cost.wall_s, "us_per_step": us_per_step,
        "first_us_per_step": cost.first_s / steps as f64 * 1e6, "cpu_us_per_step": cpu_us_per_step,
        "peak_rss_mb": peak_rss_mb()}),
    );
    Ok(())
}

/// Independent steps of 20 ms each, 100 at a time.
pub(crate) fn fan(scale: f64) -> Result<()> {
    const AT_A_TIME: usize = 100;
    let steps = ((1_000.0 * scale) as usize).max(AT_A_TIME);
    let runtime = runtime()?;
    let limits = Limits { concurrency: AT_A_TIME, run_timeout_s: None, ..Limits::default() };
    let driver = Driver::new(Arc::new(Echo), Arc::new(Twenty), limits);
    let graph = plans::compile(&plans::task(steps, Refers::Nowhere).to_string())?;
    let mut own = Vec::new();
    let cost = cost(|| {
        let (state, journal) = runtime.block_on(drive(&driver, &graph, None))?;
        let Journal::Memory(records) = journal else { return Err("not in memory".into()) };
        own.extend(records.iter().filter_map(|record| match &record.event {
            Event::Completed { outcome: Outcome::Output(output), .. } => {
                output.get("text").and_then(Value::as_f64)
            }
            _ => None,
        }));
        Ok(state)
    })?;
    emit(
        "fan",
        json!({"steps": steps, "at_a_time": AT_A_TIME, "wall_s": cost.wall_s, "cpu_s": cost.cpu_s,
        "critical_path_s": steps.div_ceil(AT_A_TIME) as f64 * 0.02, "call_ms": middle(own)}),
    );
    Ok(())
}

/// A task of 10,000 steps: what its reading takes, and its checks and lowering.
pub(crate) fn compile(scale: f64) -> Result<()> {
    let steps = (10_000.0 * scale) as usize;
    let kinds = [
        ("no placeholders", Refers::Nowhere, false),
        ("one placeholder", Refers::Before, false),
        ("one placeholder, a model at hand", Refers::Before, true),
        ("ten placeholders", Refers::Ten, false),
    ];
    for (variant, refers, model) in kinds.into_iter().filter(|(variant, ..)| chosen(variant)) {
        let text = plans::task(steps, refers).to_string();
        let source = Source::new("task.json", &text);
        let means = Capabilities { model, ..Capabilities::default() };
        let reading = cost(|| plans::read(&source))?;
        let document = plans::read(&source)?;
        let lowering = cost(|| plans::lower(&source, &document, &means))?;
        // What each run keeps of it in the store.
        let graph = serde_json::to_vec(plans::lower(&source, &document, &means)?.as_ref())?.len();
        emit(
            "compile_steps",
            json!({"variant": variant, "steps": steps, "bytes": text.len(), "graph_bytes": graph, "read_s": reading.wall_s,
            "check_and_lower_s": lowering.wall_s, "wall_s": reading.wall_s + lowering.wall_s,
            "cpu_s": reading.cpu_s + lowering.cpu_s, "check_and_lower_cpu_s": lowering.cpu_s}),
        );
    }
    Ok(())
}
