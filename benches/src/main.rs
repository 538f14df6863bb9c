//! The bench binary: `bench WORKLOAD` prints one JSON line a measurement, medians of `BENCH_RUNS` runs.
//!
//! | workload | what |
//! |---|---|
//! | `W1` | nodes on threads of 200, model without delay: journal in memory, and durable |
//! | `W2` | 50 threads × 4 nodes and a summary over HTTP (`BENCH_BASE_URL`), durable, from the sequential plan; and by plain sockets |
//! | `W3` | a conversation of 5,000 messages forked to 64 paths and joined, durable; then 1,000 paths, and a million messages |
//! | `W4` | tool steps, durable |
//! | `W5` | 500 runs × 5 tool rounds over HTTP, journal in memory and durable |
//! | `W5-agent` | the same 500 runs through an agent's executor, with what it looks at between its rounds |
//! | `rounds` | 1,000 rounds of an agent's executor in one thread, model without delay: what one takes at the beginning and at the end |
//! | `tokens` | counting a conversation of a million tokens and cutting its longest output: first, and with one message more |
//! | `W7` | resolving parameters with 10 placeholders against 100 results |
//! | `compile` | reading, checking and lowering a plan of 10,000 nodes |
//! | `resume` | loading a run of 100,000 events up to its first effect |
//! | `replay` | replaying a run of 100,000 events |
//! | `steps` | step tasks: chains of calls whose parameters refer to results, journal in memory |
//! | `frames` | loops, forks, joins, nesting and resumes of the engine alone, journal in memory |
//! | `views` | the last messages of a thread of a run of 100,000 events, and one result, once it is loaded |
//! | `fan` | 1,000 independent steps of 20 ms, 100 at a time, journal in memory |
//! | `compile_steps` | reading, checking and lowering a step task of 10,000 steps |
//! | `resume_steps` | loading a run of 10,000 steps up to its first effect |
//! | `compile_workflow` | reading, checking and lowering workflows of 10,000 nodes |
//! | `race` | 1,000 paths, each in the process of a tool, and the first that completes: how long the others live on |
//! | `resume_flow` | a workflow that failed at its last call but one of 10,000, up to the first request of its resume |
//! | `simulate` | simulated runs of a workflow of 20 nodes, with faults, crashes and other orders |
//! | `fork` | forks of a run of 100,000 events until their first effect, and 1,000 forks of forks |
//! | `diff` | comparing two runs of 100,000 events, and a run and its fork |
//! | `condition` | a million evaluations of an expression |
//! | `mcp` | calls of an MCP server on stdin and stdout, and what they take beyond its own time |
//! | `tools` | Python tools in their sandbox: metadata of 1,000 files, first and warm calls, 8 at a time |
//! | `library` | the tool library of 10,000 versions and 100,000 recorded calls: its fold and what operations of an agent take; 100 recorded calls, repeated |
//! | `evolve` | a data set of a million lines; 500 tasks whose models answer at once; 10,000 tools that are grouped; 1,000 that are published; 1,000 recorded calls, repeated with a merged tool |
//! | `driven` | 10,000 runs driven at once, durable, each asks a model of 200 ms twice |
//! | `answer` | what another process says to a driven run, until it is durable there (`answer-one` is that process) |
//! | `watchers` | `watchers [SECONDS]`: 1,000 who watch one run of 100 events a second of a `selvedge serve` (the binary beside this one, or `BENCH_SELVEDGE`) |
//! | `served` | 1,000 runs driven by `selvedge serve`, model of 50 ms, durable, and the same without a server |
//! | `server` | `selvedge serve`: a list of 100,000 runs, and what it costs when nothing goes on |
//! | `oneshot` | one node over HTTP, durable in `BENCH_STATE`: its time from process start to the first request is W6 |
//! | `W1-one`, `W3-one`, `W5-one`, `steps-one`, `served-one` | one size of one variant, in the process that those start for it |
//! | `all` | all of these, each in a process of its own, over HTTP with `serve` |
//! | `serve` | the model that `all` talks to |
//! | `mcp-server` | the MCP server that `mcp` calls |
//! | `smoke` | all that need no server, at 1 % of their size |

mod agents;
mod all;
mod driven;
mod evolve;
mod floor;
mod flows;
mod frames;
mod http;
mod library;
mod mcp;
mod measure;
mod parts;
mod plans;
mod ports;
mod runs;
mod serve;
mod served;
mod server;
mod simulate;
mod steps;
mod tools;
mod travel;
mod views;
mod workflows;

/// That of the binary which is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> std::process::ExitCode {
    // What tools are started with: it sets up the rest of their sandbox and becomes the tool.
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == tools::CONFINE) {
        return selvedge_sandbox::isolation::confine::main(std::env::args_os().skip(2));
    }
    match bench() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            measure::complain(&error.to_string());
            std::process::ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<()> {
    let workload = std::env::args().nth(1).unwrap_or_else(|| "smoke".into());
    let scale = if workload == "smoke" { 0.01 } else { 1.0 };
    match workload.as_str() {
        "W1" => runs::w1(scale),
        "W1-one" => runs::w1_one(),
        "W2" => runs::w2(),
        "W3" => workflows::w3(scale),
        "W3-one" => workflows::w3_one(),
        "W4" => runs::w4(scale),
        "W5" => runs::w5(),
        "W5-one" => runs::w5_one(),
        "W5-agent" => runs::w5_agent(),
        "rounds" => agents::rounds(scale),
        "tokens" => agents::tokens(scale),
        "W7" => parts::w7(scale),
        "compile" => parts::compile(scale),
        "resume" => parts::resume(scale),
        "replay" => parts::replay(scale),
        "views" => views::views(scale),
        "steps" => steps::steps(scale),
        "steps-one" => steps::steps_one(),
        "fan" => steps::fan(scale),
        "frames" => frames::frames(scale),
        "compile_workflow" => workflows::compile(scale),
        "race" => flows::race(scale),
        "resume_flow" => flows::resume(scale),
        "simulate" => simulate::simulate(scale),
        "condition" => workflows::condition(scale),
        "fork" => travel::fork(scale),
        "diff" => travel::diff(scale),
        "compile_steps" => steps::compile(scale),
        "resume_steps" => parts::resume_steps(scale),
        "mcp" => mcp::mcp(scale),
        "mcp-server" => mcp::serve(),
        "tools" => tools::tools(scale),
        "library" => library::library(scale),
        "evolve" => evolve::evolve(scale),
        "driven" => driven::driven(scale),
        "answer" => driven::answer(scale),
        "answer-one" => driven::answer_one(),
        "watchers" => server::watchers(),
        "served" => served::served(scale),
        "served-one" => served::one(),
        "server" => server::server(scale),
        "oneshot" => runs::oneshot(),
        "all" => all::all(),
        "serve" => serve::serve(),
        "smoke" => {
            runs::w1(scale)?;
            workflows::w3(scale)?;
            workflows::compile(scale)?;
            workflows::condition(scale)?;
            simulate::simulate(scale)?;
            flows::race(scale)?;
            flows::resume(scale)?;
            travel::fork(scale)?;
            travel::diff(scale)?;
            runs::w4(scale)?;
            parts::w7(scale)?;
            parts::compile(scale)?;
            parts::resume(scale)?;
            parts::replay(scale)?;
            views::views(scale)?;
            steps::steps(scale)?;
            steps::fan(scale)?;
            frames::frames(scale)?;
            steps::compile(scale)?;
            parts::resume_steps(scale)?;
            driven::driven(scale)?;
            driven::answer(scale)?;
            mcp::mcp(scale)?;
            library::library(scale)?;
            evolve::evolve(scale)?;
            agents::rounds(scale)?;
            agents::tokens(scale)?;
            tools::tools(scale)
        }
        other => Err(format!("unknown workload {other}; see the head of benches/src/main.rs").into()),
    }
}
