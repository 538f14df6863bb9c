//! `selvedge serve`, the binary beside this one, as its users have it: who watches, what it drives, what it lists, and what it costs
//! when nothing goes on.

use crate::Result;
use crate::measure::{emit, folder, middle};
use selvedge_store::{Mode, NewRun, RunStatus, Store};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A process whose first line is its address, ended with this value.
pub(crate) struct Process {
    child: Child,
    /// What it said.
    pub(crate) line: String,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok(Self { child, line: line.trim().to_owned() })
    }

    /// `selvedge serve` in a folder, without a token; the state folder is there, too.
    pub(crate) fn serve(folder: &Path, more: &[&str]) -> Result<Self> {
        let program = std::env::var_os("BENCH_SELVEDGE").map_or_else(
            || std::env::current_exe().map(|exe| exe.with_file_name("selvedge")),
            |path| Ok(path.into()),
        )?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-token", "--state-dir", "state"]).args(more);
        Self::start(command.current_dir(folder))
    }

    pub(crate) fn address(&self) -> &str {
        self.line.trim_start_matches("http://").trim_end_matches('/')
    }

    /// Asks it something; the body of its answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        ask(self.address(), method, path, body)
    }

    /// The processor time that it has used, in seconds.
    pub(crate) fn cpu_s(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        // After the name: fields 12 and 13 are those of the process, in hundredths of a second.
        let times = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
        Ok(times.sum::<f64>() / 100.0)
    }

    /// How often its threads have gone to sleep: as often as they were woken.
    fn sleeps(&self) -> Result<u64> {
        let mut all = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let status = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            all += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(all)
    }
}

/// A number of kilobytes of `/proc/PID/status`, in megabytes.
fn memory_mb(pid: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kb: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).ok_or("no such line")?;
    Ok(kb / 1024.0)
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(address: &str, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request(address, method, path, body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    body_of(answer)
}

/// The same of one of many who ask at the same time.
pub(crate) async fn ask_beside_others(address: &str, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request(address, method, path, body).as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    body_of(answer)
}

fn request(address: &str, method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The body of an answer that says that something was done.
fn body_of(answer: String) -> Result<String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the server gave no answer")?;
    match head.starts_with("HTTP/1.1 2") {
        true => Ok(body.to_owned()),
        false => Err(answer.into()),
    }
}

/// What `watchers` watches: a question and its answer again and again, in a conversation that begins anew each time, so that the run is as
/// large at its end as at its beginning.
fn rounds(count: u64) -> Value {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let nodes = [
        node("start", "START", json!({})),
        node("each", "LOOP_START", json!({"count": count, "limit": count})),
        node("ask", "LLM", json!({"prompt": "Aye?"})),
        node("forget", "CONTEXT", json!({"op": "clear"})),
        node("each_end", "LOOP_END", json!({"loop": "each"})),
        node("end", "END", json!({})),
    ];
    let ids = nodes.iter().filter_map(|node| node.get("id"));
    let edges: Vec<Value> =
        ids.clone().zip(ids.skip(1)).map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"name": "Rounds", "nodes": nodes, "edges": edges})
}

/// `watchers [SECONDS]`: one run of about 100 events a second, and 1,000 who watch it from its beginning on: each has to get each event
/// once and in order.
pub(crate) fn watchers() -> Result<()> {
    const WATCHERS: usize = 1_000;
    /// Events of a round, and what it takes at 100 of them a second.
    const EVENTS: u64 = 10;
    const ROUND_MS: u64 = 1_000 * EVENTS / 100;
    let seconds = std::env::args().nth(2).map_or(Ok(10), |seconds| seconds.parse::<u64>())?;
    let folder = folder()?;
    std::fs::write(
        folder.path().join("slow.yaml"),
        format!("- when: {{}}\n  reply: {{text: Aye., delay_ms: {}}}\n", ROUND_MS - 2),
    )?;
    std::fs::write(folder.path().join("selvedge.toml"), "[limits]\nloop_iterations = 1000000\n")?;
    let server = Process::serve(folder.path(), &["--script", "slow.yaml"])?;
    let workflow = rounds((seconds * 1_000 / ROUND_MS).max(1));
    let start = json!({"document": workflow, "run_id": "watched"}).to_string();
    let address = server.address().to_owned();
    server.ask("POST", "/v1/runs", &start)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (began, cpu) = (Instant::now(), server.cpu_s()?);
    let bytes = Arc::new(AtomicU64::new(0));
    // Whether it grows: its memory at each tenth of the time.
    let grown = Arc::new(Mutex::new(Vec::new()));
    let (pid, noted) = (server.child.id(), Arc::clone(&grown));
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(seconds.saturating_mul(100).max(100))).await;
            if let (Ok(mb), Ok(mut noted)) = (memory_mb(pid, "VmRSS"), noted.lock()) {
                noted.push(mb.round());
            }
        }
    });
    let seen = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..WATCHERS {
            let (address, bytes) = (address.clone(), Arc::clone(&bytes));
            tasks.spawn(async move { watch(&address, &bytes).await.map_err(|error| error.to_string()) });
        }
        let mut seen = Vec::new();
        while let Some(done) = tasks.join_next().await {
            seen.push(done??);
        }
        Ok::<_, Box<dyn std::error::Error>>(seen)
    })?;
    let wall = began.elapsed().as_secs_f64();
    let (cores, peak) = ((server.cpu_s()? - cpu) / wall, memory_mb(pid, "VmHWM")?);
    // A look at the run, which folds all of it, is none of a watcher's.
    let run: Value = serde_json::from_str(&server.ask("GET", "/v1/runs/watched", "")?)?;
    let events = run.get("events").and_then(Value::as_u64).unwrap_or(0);
    let complete = seen.iter().filter(|last| **last == events).count();
    emit(
        "watchers",
        json!({"watchers": WATCHERS, "got_every_event_once_in_order": complete, "events": events, "seconds": wall,
               "events_a_second": events as f64 / wall, "mb_sent": bytes.load(Ordering::Relaxed) as f64 / 1e6,
               "server_peak_rss_mb": peak, "looked_at_rss_mb": memory_mb(pid, "VmRSS")?,
               "rss_mb_by_tenths": grown.lock().map(|grown| grown.clone()).unwrap_or_default(),
               "server_cores": cores}),
    );
    match complete == WATCHERS {
        true => Ok(()),
        false => Err(format!("{} watchers did not get all events", WATCHERS - complete).into()),
    }
}

/// Watches until the run has ended; the last event that came. Each has to be the next one.
async fn watch(address: &str, bytes: &AtomicU64) -> Result<u64> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!("GET /v1/runs/watched/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut buffer, mut rest, mut last) = (vec![0; 16 * 1024], Vec::new(), 0);
    loop {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut buffer)).await??;
        if read == 0 {
            return Err(format!("the stream broke off after event {last}").into());
        }
        bytes.fetch_add(read as u64, Ordering::Relaxed);
        rest.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        for line in rest.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
            if let Some(id) = line.strip_prefix(b"id: ") {
                let n: u64 = std::str::from_utf8(id)?.trim().parse()?;
                if n != last + 1 {
                    return Err(format!("event {n} came after event {last}").into());
                }
                last = n;
            } else if line.starts_with(b"data: {\"status\":\"completed\"") {
                return Ok(last);
            }
        }
        rest.drain(..=end);
    }
}

/// What a list of 100,000 runs takes, and a server of whom nobody wants anything.
pub(crate) fn server(scale: f64) -> Result<()> {
    let runs = ((100_000.0 * scale) as usize).max(1);
    let folder = folder()?;
    let state = folder.path().join("state");
    std::fs::create_dir(&state)?;
    let store = Store::open(&state, Mode::ReadWrite)?;
    let run = |n: usize| NewRun {
        id: format!("run-{n}"),
        name: format!("Run {n}"),
        dialect: "plan".into(),
        status: if n.is_multiple_of(10) { RunStatus::Failed } else { RunStatus::Completed },
        started_ms: n as i64,
        graph: None,
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    };
    let made: Vec<_> = (0..runs).map(|n| store.create_run(run(n), Vec::new())).collect();
    made.into_iter().try_for_each(selvedge_store::Commit::wait)?;
    drop(store);
    let server = Process::serve(folder.path(), &[])?;
    let list = |path: &str| -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            server.ask("GET", path, "")?;
            times.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(middle(times))
    };
    let (first, failed) = (list("/v1/runs")?, list("/v1/runs?status=failed&limit=500")?);
    let (found, none) = (list("/v1/runs?text=run-77")?, list("/v1/runs?text=nothing")?);
    emit(
        "server",
        json!({"runs": runs, "list_ms": first, "500_failed_ms": failed, "found_ms": found, "none_found_ms": none}),
    );
    drop(server);

    let folder = self::folder()?;
    let server = Process::serve(folder.path(), &[])?;
    let seconds = (30.0 * scale).max(1.0);
    // Until the threads that started it have ended, whose sleeps would be missing then.
    std::thread::sleep(Duration::from_secs(12));
    let (sleeps, cpu) = (server.sleeps()?, server.cpu_s()?);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    emit(
        "server",
        json!({"idle_s": seconds, "wakeups_a_second": server.sleeps()?.saturating_sub(sleeps) as f64 / seconds, "cpu_s": server.cpu_s()? - cpu,
               "rss_mb": memory_mb(server.child.id(), "VmRSS")?}),
    );
    Ok(())
}
