//! Every workload, each in a process of its own, so that one's memory is not another's.

use crate::Result;
use crate::measure::{apart, emit, folder, setting};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

const WORKLOADS: [&str; 31] = [
    "W1",
    "W2",
    "W3",
    "W4",
    "W5",
    "W5-agent",
    "rounds",
    "tokens",
    "W7",
    "compile",
    "resume",
    "replay",
    "views",
    "steps",
    "fan",
    "frames",
    "compile_steps",
    "resume_steps",
    "compile_workflow",
    "condition",
    "simulate",
    "fork",
    "diff",
    "driven",
    "answer",
    "watchers",
    "served",
    "server",
    "mcp",
    "tools",
    "evolve",
];

/// The model that the workloads over HTTP talk to, ended with this value.
struct Model {
    process: Child,
    url: String,
}

impl Model {
    fn start() -> Result<Self> {
        let mut process =
            Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }

    /// Asks the server itself something.
    fn ask(&self, request: &str) -> Result<Value> {
        let address = self.url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "{request} HTTP/1.1\r\nhost: {address}\r\n\r\n")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("the model's server gave no answer")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs `W1` to `tools` and `W6` one after the other.
pub(crate) fn all() -> Result<()> {
    let model = Model::start()?;
    for workload in WORKLOADS {
        apart(workload, &[("BENCH_BASE_URL", &model.url)])?;
    }
    w6(&model)
}

/// From the start of a process to its first request to the model, with a state folder that exists.
fn w6(model: &Model) -> Result<()> {
    let state = folder()?;
    let mut times = Vec::new();
    for _ in 0..setting("BENCH_RUNS", 3.0) as usize + 1 {
        model.ask("POST /reset")?;
        let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let mut command = Command::new(std::env::current_exe()?);
        let command =
            command.arg("oneshot").env("BENCH_BASE_URL", &model.url).env("BENCH_STATE", state.path());
        if !command.status()?.success() {
            return Err("oneshot failed".into());
        }
        let first = model.ask("GET /stats")?.get("first_ns").and_then(Value::as_u64).unwrap_or_default();
        times.push(u128::from(first).saturating_sub(start) as f64 / 1e6);
    }
    // The first one made the folder.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    emit("W6", json!({"ms_to_first_request": times.get(times.len() / 2)}));
    Ok(())
}
