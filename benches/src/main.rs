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
//! | `oneshot` | one node over HTTP, durable in `BENCH_STATE`: its time from process start to the first request is W6 |
//! | `all` | all of these, each in a process of its own, over HTTP with `serve` |
//! | `serve` | the model that `all` talks to |
//! | `smoke` | all that need no server, at 1 % of their size |

mod all;
mod http;
mod measure;
mod parts;
mod plans;
mod ports;
mod runs;
mod serve;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let workload = std::env::args().nth(1).unwrap_or_else(|| "smoke".into());
    let scale = if workload == "smoke" { 0.01 } else { 1.0 };
    match workload.as_str() {
        "W1" => runs::w1(scale),
        "W2" => runs::w2(),
        "W4" => runs::w4(scale),
        "W5" => runs::w5(),
        "W7" => parts::w7(scale),
        "compile" => parts::compile(scale),
        "resume" => parts::resume(scale),
        "oneshot" => runs::oneshot(),
        "all" => all::all(),
        "serve" => serve::serve(),
        "smoke" => {
            runs::w1(scale)?;
            runs::w4(scale)?;
            parts::w7(scale)?;
            parts::compile(scale)?;
            parts::resume(scale)
        }
        other => Err(format!("unknown workload {other}; see the head of benches/src/main.rs").into()),
    }
}
