//! The bench binary: `bench WORKLOAD` prints one JSON line a measurement, medians of `BENCH_RUNS` runs.
//!
//! | workload | what |
//! |---|---|
//! | `W1` | nodes on threads of 200, model without delay: journal in memory, and durable |
//! | `W2` | 50 threads × 4 nodes and a summary over HTTP (`BENCH_BASE_URL`), durable, from the sequential plan |
//! | `W4` | tool steps, durable |
//! | `W5` | 500 runs × 5 tool rounds over HTTP, journal in memory and durable |
//! | `W7` | resolving parameters with 10 placeholders against 100 results |
//! | `compile` | reading, checking and lowering a plan of 10,000 nodes |
//! | `resume` | loading a run of 100,000 events up to its first effect |
//! | `oneshot` | one node over HTTP, for the time from process start to the first request |
//! | `smoke` | all that need no server, at 1 % of their size |
#![allow(clippy::print_stdout, reason = "printing measurements is what it is for")]

mod plans;
mod ports;
mod workloads;

use serde_json::{Value, json};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let workload = std::env::args().nth(1).unwrap_or_else(|| "smoke".into());
    let scale = if workload == "smoke" { 0.01 } else { 1.0 };
    match workload.as_str() {
        "W1" => workloads::w1(scale),
        "W2" => workloads::w2(),
        "W4" => workloads::w4(scale),
        "W5" => workloads::w5(),
        "W7" => workloads::w7(scale),
        "compile" => workloads::compile(scale),
        "resume" => workloads::resume(scale),
        "oneshot" => workloads::oneshot(),
        "smoke" => {
            workloads::w1(scale)?;
            workloads::w4(scale)?;
            workloads::w7(scale)?;
            workloads::compile(scale)?;
            workloads::resume(scale)
        }
        other => Err(format!("unknown workload {other}; see the head of benches/src/main.rs").into()),
    }
}

/// A number from the environment.
fn setting(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The median wall time, in seconds, of `BENCH_RUNS` runs after one that is not counted.
fn median(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let runs = setting("BENCH_RUNS", 3.0) as usize;
    run()?;
    let mut times = (0..runs.max(1)).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

/// Times one piece of work, in seconds.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Prints one measurement.
fn emit(workload: &str, mut fields: Value) {
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("workload".into(), json!(workload));
        fields.insert("peer".into(), json!("selvedge"));
    }
    println!("{fields}");
}
