//! Batch after batch: from wherever the last process has left it to the end of the data set, or of patience (V-01, V-03).

mod scores;
mod summary;

use crate::arrivals::{Shared, said, used};
use crate::checked::Checked;
use crate::dataset::{DataSet, Part, Task};
use crate::key::Key;
use crate::projections::Projections;
use crate::standing::{Heard, Standing, Stopped, Summary};
use selvedge_dialects::evolve::{BATCH, Optimise, Score, batch};
use selvedge_engine::{Budget, Graph, RunStatus, Tokens};
use selvedge_host::evolve::measures::{Measures, RoleUsage};
use selvedge_host::workers::{Launcher, WorkerPool};
use selvedge_host::{Begun, Composed, Error, Host, Ready, RunOptions};
use selvedge_runtime::{Controls, Halt, Reading, Stop, Watcher};
use selvedge_store::{BlobHash, DriverLock, RunStatus as Stored, Store};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of the library, in that of the evolution.
pub(crate) const LIBRARY: &str = "library";

/// What is to be done with a data set.
#[derive(Clone, Debug)]
pub struct Evolution {
    /// The tasks.
    pub data_set: DataSet,
    /// Which of them.
    pub part: Part,
    /// Where predictions and measures go; else below the state folder.
    pub out: Option<PathBuf>,
    /// Tasks of a batch.
    pub batch_size: usize,
    /// Tasks at a time.
    pub concurrency: usize,
    /// Seconds that a task may take.
    pub task_timeout_s: u64,
    /// How predictions are held against answers.
    pub score: Score,
    /// How the library is optimised after each batch; without it what tasks make stays theirs (V-13).
    pub optimise: Option<Optimise>,
    /// The program that drives tasks in processes of its own, and how many of these there are; without it this process does.
    pub workers: Option<(Launcher, usize)>,
    /// Fields of the agent's document that tasks are run with, besides the query.
    pub agent: Map<String, Value>,
    /// What else runs are begun with.
    pub options: RunOptions,
}

/// An evolution whose models and tools are there, and which nobody else goes on with.
pub struct Prepared {
    host: Host,
    store: Arc<Store>,
    evolution: Evolution,
    id: String,
    out: PathBuf,
    graph: Arc<Graph>,
    _lock: DriverLock,
    /// What a task is run with.
    pub ready: Ready,
}

impl Evolution {
    /// Finds what its tasks need; nothing of them is run yet.
    ///
    /// # Errors
    /// Whatever an agent could not begin with; another process goes on with this evolution.
    pub async fn prepare(self, host: &Host) -> Result<Prepared, Error> {
        let (mut host, store) = host.in_open_store()?;
        if let Some((program, most)) = &self.workers {
            let workers = WorkerPool::new(&host, &store, program.clone(), *most);
            host = host.with_children(Arc::new(workers));
        }
        let id = self.id(&host)?;
        let lock = store.drive(&id).map_err(|error| {
            Error::from(error).help("wait for the end of the process that evolves this data set, or stop it there: it can be gone on with then")
        })?;
        let mut document = self.agent.clone();
        document.insert("query".to_owned(), json!("A task of the data set."));
        let given = Some(Value::Object(document).to_string());
        let file = self.data_set.folder().join("agent.json");
        let options = RunOptions { given, ..self.options.clone() };
        let ready = host.prepare(host.read(&file, options, None)?).await?;
        let settings = &ready.config.agent.settings;
        let graph = batch(self.score, settings, self.optimise);
        let graph = graph.ok_or_else(|| Error::internal("the graph of a batch can't be made"))?;
        let out = match &self.out {
            Some(out) => host.environment.absolute(out),
            None => host.state_dir()?.join("evolutions").join(&id),
        };
        Ok(Prepared { host, store, evolution: self, id, out, graph: Arc::new(graph), _lock: lock, ready })
    }

    /// The id of it: of the data set, and of where it goes if that is said. The same again goes on.
    fn id(&self, host: &Host) -> Result<String, Error> {
        let out = self.out.as_ref().map(|out| host.environment.absolute(out));
        let out = out.map(|out| out.display().to_string()).unwrap_or_default();
        let hash = BlobHash::of(format!("{}\0{out}", self.data_set.path().display()).as_bytes()).to_string();
        Ok(format!("evolve{}", hash.get(..8).unwrap_or(&hash)))
    }
}

impl Prepared {
    /// What is done.
    pub fn evolution(&self) -> &Evolution {
        &self.evolution
    }

    /// Caps what all of it may use.
    pub(crate) fn cap(&mut self, budget: Budget) {
        self.evolution.options.budget = budget;
    }

    /// Goes on to the end of the data set, or until it is stopped.
    ///
    /// # Errors
    /// The data set is wrong, the folder of another one, or something can't be read or written. What is recorded stays, and the same again
    /// goes on.
    pub async fn go(&self, heard: &Arc<dyn Heard>, stop: &Stop) -> Result<Summary, Error> {
        self.gone(heard, stop).await.map(|(summary, _)| summary)
    }

    /// The same, with the tasks that are meant.
    pub(crate) async fn gone(
        &self,
        heard: &Arc<dyn Heard>,
        stop: &Stop,
    ) -> Result<(Summary, HashSet<Key>), Error> {
        let evolution = &self.evolution;
        let checked = evolution.data_set.check(evolution.part, Some(&self.out))?;
        let projections = Projections::open(&self.out, &self.id, evolution.data_set.path())?;
        checked.keep(evolution.data_set.path(), projections.dir())?;
        let shared = Arc::new(Shared {
            meant: checked.keys().collect(),
            projections: Mutex::new(projections),
            standing: Mutex::new(Standing { tasks: checked.tasks, ..Standing::default() }),
            heard: Arc::clone(heard),
            failed: Mutex::default(),
            stop: stop.clone(),
            concurrency: evolution.concurrency as u64,
            left: AtomicU64::new(0),
        });
        let mut going = Going {
            host: self.host.clone(),
            shared,
            checked,
            last: None,
            begun: HashSet::new(),
            batches: BTreeMap::new(),
            prepared: self,
            stop,
        };
        going.look()?;
        going.stand();
        heard.begins(&going.shared.standing(), &going.checked.left_out);
        let stopped = going.all().await?;
        going.report()?;
        Ok((going.summary(stopped)?, going.shared.meant.clone()))
    }
}

/// What of these caps is left by what was used; `None` if that is nothing.
pub(crate) fn left<'r>(caps: Budget, used: impl Iterator<Item = &'r RoleUsage>) -> Option<Budget> {
    let (mut calls, mut tokens, mut cost) = (0, 0, 0.0);
    for used in used {
        calls += used.calls;
        tokens += used.tokens.input + used.tokens.output;
        cost += used.tokens.cost;
    }
    let left = Budget {
        calls: caps.calls.map(|cap| cap.saturating_sub(calls)),
        tokens: caps.tokens.map(|cap| cap.saturating_sub(tokens)),
        cost: caps.cost.map(|cap| (cap - cost).max(0.0)),
    };
    let none = left.calls == Some(0) || left.tokens == Some(0) || left.cost.is_some_and(|left| left <= 0.0);
    (!none).then_some(left)
}

struct Going<'p> {
    prepared: &'p Prepared,
    host: Host,
    shared: Arc<Shared>,
    checked: Checked,
    /// What the last batch that is done came to.
    last: Option<Measures>,
    /// Keys of tasks that are in a batch of this process. Those of a batch that is done have their lines.
    begun: HashSet<Key>,
    batches: BTreeMap<u64, Stored>,
    stop: &'p Stop,
}

impl Going<'_> {
    /// Looks at the runs that are there, and writes the predictions that are in their journals and in no file yet.
    fn look(&mut self) -> Result<(), Error> {
        let (store, id) = (&self.prepared.store, &self.prepared.id);
        for (run, status) in store.runs_named(&format!("{id}-"))? {
            let number = run.get(id.len() + 1..).and_then(|rest| rest.parse().ok());
            self.batches.extend(number.map(|number: u64| (number, status)));
        }
        let done = self.batches.iter().filter(|(_, status)| **status == Stored::Completed);
        let done: Vec<u64> = done.map(|(number, _)| *number).collect();
        let known = usize::try_from(self.shared.projections().batches()).unwrap_or(usize::MAX);
        // Lines are written in the order of batches: where those that have their measures lack none, only later ones may have more.
        let last =
            known.checked_sub(1).and_then(|at| done.get(at)).filter(|_| self.shared.projections().is_whole());
        let from = last.map_or(0, |last| last + 1);
        let numbers: Vec<u64> = self.batches.range(from..).map(|(number, _)| *number).collect();
        let mut open = Tokens::default();
        for number in numbers {
            let used = self.written(number)?;
            if self.is_open(number) {
                open.add(&used);
            }
        }
        for number in done.iter().skip(known.min(done.len().saturating_sub(1))) {
            self.measured(*number, known)?;
        }
        self.shared.standing_mut().used(&open);
        Ok(())
    }

    /// Whether a batch is still to be gone on with.
    fn is_open(&self, number: u64) -> bool {
        let status = self.batches.get(&number);
        status.is_some_and(|status| !matches!(status, Stored::Completed | Stored::Cancelled))
    }

    /// What a batch came to that is done, which its run says; written unless so many batches have their line already.
    fn measured(&mut self, number: u64, known: usize) -> Result<(), Error> {
        let output = self.prepared.host.load(&self.run(number))?.state.view().output().clone();
        let measures: Measures = serde_json::from_value(output)
            .map_err(|error| Error::internal(&format!("batch {number} has no measures: {error}")))?;
        if measures.batch as usize > known {
            self.shared.projections().measured(&measures)?;
        }
        let mut standing = self.shared.standing_mut();
        (standing.tokens, standing.cost) = (0, 0.0);
        measures.total.roles.values().for_each(|role| standing.used(&role.tokens));
        drop(standing);
        self.last = Some(measures);
        Ok(())
    }

    /// Writes the lines of a batch that its journal has; what was used by all that stands there.
    fn written(&self, number: u64) -> Result<Tokens, Error> {
        let (mut failed, mut all) = (Ok(()), Tokens::default());
        let mut reading = Reading::open(&self.prepared.store, &self.run(number))?;
        let mut projections = self.shared.projections();
        reading.records(1, u64::MAX, |record| {
            let said = said(record);
            all.add(&used(record, said.as_ref()));
            if let (Some(said), Ok(())) = (said, &failed) {
                failed = projections.predicted(&said).map(drop);
            }
        })?;
        failed.map(|()| all)
    }

    /// Counts what is done of the part that is meant.
    fn stand(&self) {
        let (projections, mut standing) = (self.shared.projections(), self.shared.standing_mut());
        for line in self.shared.meant.iter().filter_map(|key| projections.line(*key)) {
            standing.done += 1;
            standing.failed += u64::from(!line.completed);
        }
    }

    fn run(&self, number: u64) -> String {
        format!("{}-{number}", self.prepared.id)
    }

    /// Batch after batch; why it was stopped, if it was.
    async fn all(&mut self) -> Result<Option<Stopped>, Error> {
        let open = self.batches.keys().copied().filter(|number| self.is_open(*number));
        for number in open.collect::<Vec<u64>>() {
            if let Some(stopped) = self.gone_on(number).await? {
                return Ok(Some(stopped));
            }
        }
        let Prepared { evolution, .. } = self.prepared;
        let checked = std::mem::take(&mut self.checked);
        let mut tasks = evolution.data_set.tasks(&checked)?;
        loop {
            let mut next: Vec<Task> = Vec::new();
            while next.len() < evolution.batch_size {
                let projections = self.shared.projections();
                let wanted = |key| !self.begun.contains(&key) && projections.line(key).is_none();
                let Some(task) = tasks.next_task(wanted)? else { break };
                next.push(task);
            }
            self.begun.extend(next.iter().map(|task| task.key));
            if next.is_empty() {
                return Ok(None);
            }
            let Some(budget) = self.budget() else { return Ok(Some(Stopped::Budget)) };
            if self.stop.level() > 0 {
                return Ok(Some(Stopped::Interrupted));
            }
            if let Some(stopped) = self.begin(&next, budget).await? {
                return Ok(Some(stopped));
            }
        }
    }

    /// Goes on with a batch that an earlier process has left.
    async fn gone_on(&mut self, number: u64) -> Result<Option<Stopped>, Error> {
        let host = &self.host;
        let run = host.lock(&self.run(number))?;
        let tasks = run.run.state.initial().get("tasks").and_then(Value::as_array).into_iter().flatten();
        let keys: Vec<Key> = tasks.filter_map(|task| Key::of_run(task.get("key")?.as_str()?)).collect();
        let left = keys.iter().filter(|key| self.shared.projections().line(**key).is_none()).count();
        self.begun.extend(keys);
        let Some(budget) = self.budget() else { return Ok(Some(Stopped::Budget)) };
        // What was chosen now goes over what it was begun with.
        let over = RunOptions { given: None, budget, ..self.prepared.evolution.options.clone() };
        let asked = host.take_up(run, &over)?;
        let begun = host.begin(host.prepare(asked).await?).await?;
        self.driven(begun, number, left).await
    }

    async fn begin(&mut self, tasks: &[Task], budget: Budget) -> Result<Option<Stopped>, Error> {
        let (host, Prepared { evolution, graph, .. }) = (&self.host, self.prepared);
        let number = self.batches.keys().next_back().map_or(1, |last| last + 1);
        let runs: Vec<String> =
            tasks.iter().map(|task| format!("{}-{}", self.run(number), task.key)).collect();
        let settings = json!({
            "agent": evolution.agent,
            "folder": evolution.data_set.folder(),
            "timeout_s": evolution.task_timeout_s,
            "concurrency": evolution.concurrency,
            "tasks": tasks.len(),
            "score": evolution.score.name(),
        });
        let initial = [
            ("tasks", json!(tasks)),
            ("settings", settings),
            ("runs", json!(runs)),
            ("before", json!(self.last)),
        ];
        let initial = initial.map(|(name, value)| (name.to_owned(), value));
        let set = evolution.data_set.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let composed = Composed {
            graph: Arc::clone(graph),
            initial: initial.into_iter().collect(),
            name: format!("{} batch {number}", set.unwrap_or_default()),
            dialect: BATCH,
        };
        let options = RunOptions {
            document: evolution.data_set.path().to_owned(),
            budget,
            ..evolution.options.clone()
        };
        let asked = host.composed(composed, options, &self.run(number))?;
        let begun = host.begin(host.prepare(asked).await?).await?;
        self.batches.insert(number, Stored::Running);
        self.driven(begun, number, tasks.len()).await
    }

    /// What the whole evolution may still use; `None` if that is nothing.
    fn budget(&self) -> Option<Budget> {
        let roles = self.last.iter().flat_map(|last| last.total.roles.values());
        left(self.prepared.evolution.options.budget, roles)
    }

    /// Drives a batch to its end; why it was stopped before, if it was.
    async fn driven(&mut self, mut run: Begun, number: u64, tasks: usize) -> Result<Option<Stopped>, Error> {
        self.shared.heard.batch(&run.id, number);
        self.shared.begins(tasks as u64);
        run.driver.watcher = Some(Arc::clone(&self.shared) as Arc<dyn Watcher>);
        let halt = run.drive(&mut Controls::from(self.stop.clone())).await;
        let (status, fault) = (run.state.status(), run.state.ended().and_then(|(_, fault)| fault).cloned());
        let (id, warnings) = (run.id.clone(), run.state.warnings().to_vec());
        run.close().await;
        self.shared.begins(0);
        if let Some(error) = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        match (halt?, status) {
            (Halt::Ended, RunStatus::Completed) => {
                self.batches.insert(number, Stored::Completed);
                let known = usize::try_from(self.shared.projections().batches()).unwrap_or(usize::MAX);
                self.measured(number, known)?;
                self.shared.heard.measured(number, &self.shared.standing(), &warnings);
                Ok(None)
            }
            (Halt::Interrupted, _) => Ok(Some(Stopped::Interrupted)),
            (_, status) => {
                Ok(Some(Stopped::Batch { run: id, status, why: fault.map(|fault| fault.message) }))
            }
        }
    }
}
