//! Runs that a run begins, driven by other processes (V-01): what ends one of these, a crash or the kernel that takes back memory, ends no other
//! run. A process is given one run at a time, as a line, and says in a line that it has it and in another one what became of it; it ends when
//! nobody would read that any more.

mod work;

pub use selvedge_sandbox::launcher::Launcher;
pub use work::work;

use crate::child::{Child, Children, Running};
use crate::error::{Error, NO_WORKER};
use crate::host::Host;
use crate::options::RunOptions;
use selvedge_runtime::Controls;
use selvedge_store::{RunInfo, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;

/// How many processes one run may end.
const LIVES: usize = 2;
/// How many processes in a row may end before they have a run, so that it is none of its doing.
const STARTS: usize = 3;
/// How long a run that a process has left at its end may still be locked, and after how long that is looked at again.
const LOCKED: (u32, Duration) = (300, Duration::from_millis(100));

/// A pool of processes that drive runs, started as they are needed.
#[derive(Clone)]
pub struct WorkerPool {
    host: Host,
    store: Arc<Store>,
    program: Launcher,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Worker>>>,
}

/// What a process is asked.
#[derive(Serialize, Deserialize)]
struct Job {
    id: String,
    name: String,
    parent: Arc<str>,
    options: RunOptions,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// It has read what it is asked: what ends it from here on may be the run's doing.
    Taken,
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

impl WorkerPool {
    /// So many processes at most, each this program, which is told the state folder (`--state-dir DIR`), for runs of this store.
    pub fn new(host: &Host, store: &Arc<Store>, program: Launcher, most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        let (host, store) = (host.within(store), Arc::clone(store));
        Self { host, store, program, permits, idle: Arc::default() }
    }

    async fn drive(&self, child: Child) -> Result<Option<RunInfo>, Error> {
        // It is never closed.
        let _permit = self.permits.acquire().await.ok();
        let Child { id, name, parent, options } = child;
        let job = Job { id, name, parent, options };
        let line = serde_json::to_string(&job).map_err(|error| Error::internal(&error.to_string()))? + "\n";
        let mut ends = Vec::new();
        while ends.len() < LIVES {
            let mut worker = self.given(&line).await?;
            // Whoever drops this closes the pipe: the process leaves the run as it is, and ends.
            match worker.answer().await {
                Some(answer) => {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                    return self.answered(&job.id, answer);
                }
                None => ends.push(worker.end().await),
            }
        }
        self.given_up(&job.id, &ends).await.map(Some)
    }

    /// A process that has read what it is to do. One that ends before, as it starts or while it was idle, has not had the run.
    async fn given(&self, line: &str) -> Result<Worker, Error> {
        let mut starts = 0;
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let new = idle.is_none();
            let mut worker = match idle {
                Some(worker) => worker,
                None => Worker::start(&self.program, &self.host.state_dir()?)?,
            };
            if worker.takes(line).await {
                return Ok(worker);
            }
            let end = worker.end().await;
            starts += usize::from(new);
            if starts == STARTS {
                return Err(no_worker(&format!(
                    "{STARTS} have ended as they started, the last one by {end}"
                )));
            }
        }
    }

    fn answered(&self, run: &str, answer: Answer) -> Result<Option<RunInfo>, Error> {
        match answer {
            Answer::Taken | Answer::Ended => Ok(Some(self.store.run(run)?)),
            Answer::Failed { message, help, state } => {
                let code = if state { "state-full" } else { "task-not-begun" };
                Err(Error::environment("V-01", code, &message).help(&help))
            }
        }
    }

    /// Ends a run that has ended every process that drove it.
    async fn given_up(&self, run: &str, ends: &[String]) -> Result<RunInfo, Error> {
        let message =
            format!("each of the {} processes that drove it was ended: {}", ends.len(), ends.join(", then "));
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

impl Children for WorkerPool {
    fn run(&self, child: Child) -> Running {
        let pool = self.clone();
        Box::pin(async move { pool.drive(child).await })
    }
}

/// No process can be had: that is no run's outcome.
fn no_worker(why: &str) -> Error {
    let message = format!("no process for tasks can be started: {why}");
    Error::environment("V-01", NO_WORKER, &message).help(
        "look at what they have printed, at the machine's memory and at the limits on processes and open files, or leave out --workers",
    )
}

/// A process that drives runs.
struct Worker {
    process: tokio::process::Child,
    asked: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(program: &Launcher, state: &Path) -> Result<Self, Error> {
        let mut command = Command::new(&program.program);
        command
            .args(&program.args)
            .arg("--state-dir")
            .arg(state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Ctrl-C on a terminal is not for it: it ends when its input does.
        command.process_group(0);
        let mut process = command.spawn().map_err(|error| no_worker(&error.to_string()))?;
        let (Some(asked), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(no_worker("it has no pipes"));
        };
        Ok(Self { process, asked, answers: BufReader::new(answers).lines() })
    }

    /// Asks it; whether it has read that.
    async fn takes(&mut self, line: &str) -> bool {
        let asked = self.asked.write_all(line.as_bytes()).await.is_ok() && self.asked.flush().await.is_ok();
        asked && matches!(self.answer().await, Some(Answer::Taken))
    }

    /// What it answers; nothing if it has ended before.
    async fn answer(&mut self) -> Option<Answer> {
        let answer = self.answers.next_line().await.ok()??;
        serde_json::from_str(&answer).ok()
    }

    /// How it has ended.
    async fn end(mut self) -> String {
        // One that has answered nonsense has not.
        let _ = self.process.start_kill();
        self.process.wait().await.map_or_else(|error| error.to_string(), |end| end.to_string())
    }
}

#[cfg(test)]
mod tests;
