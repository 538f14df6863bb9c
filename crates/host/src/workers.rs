//! Runs that a run begins, driven by other processes (V-01): what ends one of these, a crash or the kernel that takes back memory, ends no other
//! run. A process is given one run at a time, as a line, and answers with a line; it ends when nobody would read that any more.

mod work;

pub use selvedge_sandbox::launcher::Launcher;
pub use work::work;

use crate::child::{Child, Children, Running};
use crate::error::Error;
use crate::host::Host;
use crate::options::RunOptions;
use selvedge_runtime::Controls;
use selvedge_store::{RunInfo, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;

/// How many processes one run may end.
const LIVES: usize = 2;
/// How long a run that a process has left at its end may still be locked, and after how long that is looked at again.
const LOCKED: (u32, Duration) = (300, Duration::from_millis(100));

/// Processes that drive runs, started as they are needed.
pub struct Workers(Arc<Pool>);

struct Pool {
    host: Host,
    store: Arc<Store>,
    program: Launcher,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Worker>>,
}

/// What a process is asked.
#[derive(Serialize, Deserialize)]
struct Job {
    id: String,
    parent: Arc<str>,
    options: RunOptions,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The run has ended.
    Ended,
    /// It could not begin, or not go on.
    Failed {
        message: String,
        help: String,
        /// Whether something is wrong with the state folder.
        state: bool,
    },
}

impl Workers {
    /// So many processes at most, each this program, which is told the state folder (`--state-dir DIR`), for runs of this store.
    pub fn new(host: &Host, store: &Arc<Store>, program: Launcher, most: usize) -> Self {
        let turns = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        let (host, store) = (host.within(store), Arc::clone(store));
        Self(Arc::new(Pool { host, store, program, turns, idle: Mutex::default() }))
    }
}

impl Children for Workers {
    fn run(&self, child: Child) -> Running {
        let pool = Arc::clone(&self.0);
        Box::pin(async move { pool.run(child).await })
    }
}

impl Pool {
    async fn run(&self, child: Child) -> Result<Option<RunInfo>, Error> {
        // It is never closed.
        let _turn = self.turns.acquire().await.ok();
        let Child { id, parent, options } = child;
        let job = Job { id, parent, options };
        let line = serde_json::to_string(&job).map_err(|error| Error::internal(&error.to_string()))? + "\n";
        let mut how = None;
        for _ in 0..LIVES {
            let mut worker = match self.idle() {
                Some(worker) => worker,
                None => Worker::start(&self.program, &self.host.state_dir()?)?,
            };
            // Whoever drops this closes the pipe: the process leaves the run as it is, and ends.
            match worker.does(&line).await {
                Some(answer) => {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                    return self.answered(&job.id, answer);
                }
                None => how = worker.end().await,
            }
        }
        self.given_up(&job.id, how).await.map(Some)
    }

    /// A process that has nothing to do. What has ended one of those is no fault of the next run.
    fn idle(&self) -> Option<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut worker) = idle.pop() {
            if matches!(worker.process.try_wait(), Ok(None)) {
                return Some(worker);
            }
        }
        None
    }

    fn answered(&self, run: &str, answer: Answer) -> Result<Option<RunInfo>, Error> {
        match answer {
            Answer::Ended => Ok(Some(self.store.run(run)?)),
            Answer::Failed { message, help, state } => {
                let code = if state { "state-full" } else { "task-not-begun" };
                Err(Error::environment("V-01", code, &message).help(&help))
            }
        }
    }

    /// Ends a run that has ended every process that drove it.
    async fn given_up(&self, run: &str, how: Option<ExitStatus>) -> Result<RunInfo, Error> {
        let how = how.map(|how| format!(" ({how})")).unwrap_or_default();
        let message = format!("each of the {LIVES} processes that drove it has ended{how}");
        let mut tries = 0;
        let locked = loop {
            match self.host.lock(run) {
                Err(error) if error.is("run-driven") && tries < LOCKED.0 => {
                    tries += 1;
                    tokio::time::sleep(LOCKED.1).await;
                }
                locked => break locked,
            }
        };
        match self.store.run(run) {
            Err(StoreError::UnknownRun { .. }) => {
                return Err(Error::environment("V-01", "task-not-begun", &message)
                    .help("look at what the process has printed, and at the machine's memory"));
            }
            found => drop(found?),
        }
        let locked = locked?;
        if locked.run.state.ended().is_none() {
            let mut begun = locked.poisoned(message)?;
            begun.drive(&mut Controls::default()).await?;
            begun.close().await;
        }
        Ok(self.store.run(run)?)
    }
}

/// A process that drives runs.
struct Worker {
    process: tokio::process::Child,
    asked: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(program: &Launcher, state: &Path) -> Result<Self, Error> {
        let failed = |why: &str| {
            let message = format!("no process for tasks can be started: {why}");
            Error::environment("V-01", "no-worker", &message)
                .help("raise the limits on processes and open files, or leave out --workers")
        };
        let mut command = Command::new(&program.program);
        command
            .args(&program.args)
            .arg("--state-dir")
            .arg(state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Ctrl-C on a terminal is not for it: it ends when its input does.
        command.process_group(0);
        let mut process = command.spawn().map_err(|error| failed(&error.to_string()))?;
        let (Some(asked), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("it has no pipes"));
        };
        Ok(Self { process, asked, answers: BufReader::new(answers).lines() })
    }

    /// What it answers; nothing if it has ended before.
    async fn does(&mut self, line: &str) -> Option<Answer> {
        self.asked.write_all(line.as_bytes()).await.ok()?;
        self.asked.flush().await.ok()?;
        let answer = self.answers.next_line().await.ok()??;
        serde_json::from_str(&answer).ok()
    }

    /// How it has ended.
    async fn end(mut self) -> Option<ExitStatus> {
        // One that has answered nonsense has not.
        let _ = self.process.start_kill();
        self.process.wait().await.ok()
    }
}
