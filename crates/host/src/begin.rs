//! From what was asked for to a run that this process may drive: prepared, then recorded before anything of it happens (E-04).

use crate::begun::Begun;
use crate::config::Config;
use crate::error::Error;
use crate::fork::{self, ForkOptions, Forkable};
use crate::host::Host;
use crate::library::operations::Bench;
use crate::library::record;
use crate::models::{self, Models};
use crate::options::RunOptions;
use crate::prepare::{self, Prepared, budget};
use crate::ready::{Asked, Begins, Compiled, Composed, Ready, Started, What};
use crate::recorded::LockedRun;
use crate::tools::Pins;
use crate::{compose, resume, secrets};
use selvedge_engine::{Budget, EDITION, Input, Record, Start, State};
use selvedge_runtime::{Clock, SystemClock, graph_to_store};
use selvedge_store::{Commit, DriverLock, Entry, NewRun, RunStatus, Store};
use selvedge_tools::Catalogue;
use std::path::Path;
use std::sync::Arc;

impl Host {
    /// Finds tools and models and compiles the document, if there is one. Whoever drops this on its way has begun nothing.
    ///
    /// # Errors
    /// Whatever a run could not begin or go on with. Nothing of it is recorded yet.
    pub async fn prepare(&self, asked: Asked) -> Result<Ready, Error> {
        let Asked { id, name, parent, config, mut options, what } = asked;
        let (script, hash) = (options.script.clone(), options.script_hash.clone());
        // Boxed, as what begins is below: it is large, and who waits for it may be kept much longer.
        let prepared = Box::pin(self.prepared((what, name, parent), &config, &mut options)).await;
        let (catalogue, models, begins) = prepared.map_err(|error| config.explained(error))?;
        let script_changed = script == options.script && hash.is_some() && hash != options.script_hash;
        Ok(Ready { id, config, options, catalogue, models, script_changed, begins })
    }

    async fn prepared(
        &self,
        (what, called, parent): (What, Option<String>, Option<Arc<str>>),
        config: &Config,
        options: &mut RunOptions,
    ) -> Result<(Catalogue, Models, Begins), Error> {
        match what {
            What::Document { read, state_dir } => {
                let none = Pins::new();
                let prepared = prepare::prepare(read, &none, options, config, &state_dir, &self.observer);
                let Prepared { graph, catalogue, models, warnings, initial, name, dialect, budget } =
                    prepared.await?;
                options.warnings = warnings;
                let name = called.unwrap_or(name);
                let compiled = Compiled { graph, initial, name, dialect, budget, parent };
                Ok((catalogue, models, Begins::New { compiled, state_dir }))
            }
            What::Graph { composed, state_dir } => {
                let Composed { graph, initial, name, dialect } = composed;
                let catalogue = self.recorded_tools(&graph, config, options, &state_dir).await?;
                let roles = models::roles(&graph);
                let models = models::prepare(options, config, &roles, self.environment.http()).await?;
                let compiled = Compiled { graph, initial, name, dialect, budget: Budget::default(), parent };
                Ok((catalogue, models, Begins::New { compiled, state_dir }))
            }
            What::Run { run, lock, inputs } => {
                resume::prepare(self, config, options, (run, lock, inputs)).await
            }
            What::Fork { source, folders, given, read } => {
                let (catalogue, models, changed) = match read {
                    Some(read) => fork::compile(self, config, options, &source, read).await?,
                    None => fork::prepare(self, config, options, &source, given).await?,
                };
                // Who resumes the fork is told again, unless the folder is back.
                options.tools = folders;
                Ok((catalogue, models, Begins::Fork { source, changed }))
            }
        }
    }

    /// Records that it begins: from here on a new run exists, and its first event is durable (E-04).
    ///
    /// # Errors
    /// The state folder can't be written, or the id of a new run is used.
    pub async fn begin(&self, ready: Ready) -> Result<Begun, Error> {
        let Ready { id, config, options, catalogue, models, begins, .. } = ready;
        let limits = config.limits.driver(options.max_parallel, options.timeout_s);
        let Started { store, state, graph, info, lock, inputs, source, fork } = match begins {
            Begins::New { compiled, state_dir } => {
                let store = self.store(&state_dir).map_err(Error::before_run)?;
                start(store, (&id, &options, &config), (&models, &catalogue), compiled).await?
            }
            Begins::Run { run, lock, inputs } => {
                Box::pin(resume::begin((run, lock, inputs), &models, &options.warnings)).await?
            }
            Begins::Fork { source, changed } => {
                let (chosen, with) = ((id.as_str(), &options, &config), (&models, &catalogue));
                Box::pin(fork::begin(chosen, with, source, changed, self.observer.as_ref())).await?
            }
        };
        let children = self.children(&store);
        let bench = Bench::new(Arc::clone(&store), catalogue.clone(), config, children, options.clone());
        let driver = compose::driver(&models, bench, limits);
        let (catalogue, warnings) = (Some(catalogue), options.warnings);
        Ok(Begun { store, id, state, graph, info, warnings, lock, driver, catalogue, inputs, source, fork })
    }

    /// A document becomes a run that has begun.
    ///
    /// # Errors
    /// Those of [`Self::read`], [`Self::prepare`] and [`Self::begin`].
    pub async fn run(&self, file: &Path, options: RunOptions) -> Result<Begun, Error> {
        let asked = self.read(file, options, None)?;
        self.begin(self.prepare(asked).await?).await
    }

    /// A run goes on where its journal ends, with what [`lock`](Self::lock) or [`answer`](Self::answer) gave.
    ///
    /// # Errors
    /// Those of [`Self::take_up`], [`Self::prepare`] and [`Self::begin`].
    pub async fn resume(&self, run: LockedRun, over: &RunOptions) -> Result<Begun, Error> {
        let asked = self.take_up(run, over)?;
        self.begin(self.prepare(asked).await?).await
    }

    /// A run goes on from any of its events as a new one.
    ///
    /// # Errors
    /// Those of [`Self::source`], [`Self::prepare`] and [`Self::begin`].
    pub async fn fork(&self, run: &str, fork: ForkOptions) -> Result<Begun, Error> {
        let asked = self.source(run, fork)?;
        self.begin(self.prepare(asked).await?).await
    }

    /// The same of a run that was folded before ([`Self::forkable`]): where it stands, the fork begins.
    ///
    /// # Errors
    /// Those of [`Self::source_of`], [`Self::prepare`] and [`Self::begin`].
    pub async fn fork_of(&self, run: &Arc<Forkable>, fork: ForkOptions) -> Result<Begun, Error> {
        let asked = self.source_of(run, fork)?;
        self.begin(self.prepare(asked).await?).await
    }
}

/// Creates a run: from here on it exists, and its first event is durable (E-04).
async fn start(
    store: Arc<Store>,
    (id, options, config): (&str, &RunOptions, &Config),
    (models, catalogue): (&Models, &Catalogue),
    compiled: Compiled,
) -> Result<Started, Error> {
    let lock = store.drive(id)?;
    let pinned = compiled.graph.tools.values().map(|tool| &**tool);
    Box::pin(record::pin(&store, catalogue, pinned, &secrets::named(config))).await?;
    let (created, started) = first(store, (id, options, config), models, compiled, lock)?;
    created.await.map_err(Error::before_run)?;
    Ok(started)
}

/// A new run with its first event, and what it is told of when it is durable.
fn first(
    store: Arc<Store>,
    (id, options, config): (&str, &RunOptions, &Config),
    models: &Models,
    compiled: Compiled,
    lock: DriverLock,
) -> Result<(Commit, Started), Error> {
    let Compiled { graph, initial, name, dialect, budget: caps, parent } = compiled;
    let unwritable =
        |error: serde_json::Error| Error::internal(&format!("the run can't be written: {error}"));
    let (hash, stored) = graph_to_store(&store, &graph)?;
    let start = Start {
        graph: hash.to_string().into(),
        initial,
        sequential: options.sequential,
        budget: budget(caps, options, config),
        limits: config.limits.machine(),
        models: models.names.clone(),
        edition: EDITION,
        parent: parent.clone(),
    };
    let mut state = State::new(Arc::clone(&graph));
    let at = state.tick(SystemClock.now_ms());
    let event = state
        .accept(Input::Start(Box::new(start)))
        .ok_or_else(|| Error::internal("a new run can't start"))?;
    let json = serde_json::to_string(&event).map_err(unwritable)?;
    state.apply_record(&Record { at, event });
    let run = NewRun {
        id: id.to_owned(),
        name,
        dialect: dialect.to_owned(),
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(hash),
        scripted: models.scripted,
        options: options.to_stored().map_err(unwritable)?,
        fork: None,
        parent: parent.map(|parent| parent.to_string()),
    };
    let info = run.info();
    let first = vec![Entry { n: 1, at_ms: at, json }];
    let created = match stored {
        Some(stored) => store.create_run_with_graph(run, stored, first),
        None => store.create_run(run, first),
    };
    Ok((created, Started { store, state, graph, info, lock, inputs: Vec::new(), source: None, fork: None }))
}
