//! A host: what is asked of Selvedge goes through it, whoever asks.

use crate::begin;
use crate::compose;
use crate::config::Config;
use crate::environment::Environment;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::prepare::{self, Prepared, Read};
use crate::tools::Pins;
use crate::trust::Gate;
use crate::{ids, places, secrets, stores};
use selvedge_engine::{Graph, Input, State, Warning};
use selvedge_http::Secret;
use selvedge_runtime::{Controls, DriveError, Driver, Halt, Journal};
use selvedge_store::{DriverLock, Store};
use selvedge_tools::{Catalogue, NativeTool};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where runs are begun and gone on with: an environment, who listens, and what is trusted.
#[derive(Clone)]
pub struct Host {
    /// What the process was started with.
    pub environment: Environment,
    /// Who hears what goes on.
    pub observer: Arc<dyn Observer>,
    /// What may be trusted without a question (C-20).
    pub gate: Gate,
    natives: Vec<NativeTool>,
    state_dir: Option<PathBuf>,
}

/// A document that was read and found to be right by itself, with what it is to be run with.
pub struct Asked {
    /// The id that the run will have.
    pub id: String,
    /// What is configured for it.
    pub config: Config,
    /// What was chosen.
    pub options: RunOptions,
    /// The document.
    pub read: Read,
    state_dir: PathBuf,
}

/// Everything that a run needs and that could fail.
pub struct Ready {
    /// The id that the run will have.
    pub id: String,
    /// What is configured for it.
    pub config: Config,
    /// What was chosen, with what was found out meanwhile.
    pub options: RunOptions,
    /// What was made ready.
    pub prepared: Prepared,
    state_dir: PathBuf,
}

/// A run that this process may drive.
pub struct Begun {
    /// Where its journal is.
    pub store: Arc<Store>,
    /// Its id.
    pub id: String,
    /// Its state, as the journal leaves it.
    pub state: State,
    /// The graph it was started with.
    pub graph: Arc<Graph>,
    /// Whether a script answers (C-07).
    pub scripted: bool,
    /// What the checker and the catalogue said.
    pub warnings: Vec<Warning>,
    /// Held as long as it is driven (C-12).
    pub lock: DriverLock,
    /// What drives it.
    pub driver: Driver,
    /// Its tools, to be closed behind it.
    pub catalogue: Catalogue,
    /// What it is told once it goes on.
    pub inputs: Vec<Input>,
}

impl Host {
    /// A host in this environment, to which nobody listens and which trusts nothing that was not trusted before.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            observer: Arc::new(()),
            gate: Gate::default(),
            natives: Vec::new(),
            state_dir: None,
        }
    }

    /// The same with a listener, who may be asked whether to trust something if `gate` says so.
    #[must_use]
    pub fn heard_by(self, observer: Arc<dyn Observer>, gate: Gate) -> Self {
        Self { observer, gate, ..self }
    }

    /// The same with its runs in this folder, which is trusted then (C-01, C-20).
    #[must_use]
    pub fn in_state_dir(self, dir: Option<&Path>) -> Self {
        let state_dir = dir.map(Path::to_owned);
        Self { environment: self.environment.in_state_dir(dir), state_dir, ..self }
    }

    /// The same with a tool of the program itself, which documents name as any other.
    #[must_use]
    pub fn with_tool(mut self, tool: NativeTool) -> Self {
        self.natives.push(tool);
        self
    }

    /// What is configured in the folder of these choices, with what they say over it.
    ///
    /// # Errors
    /// All that is wrong with a file.
    pub fn config(&self, options: &RunOptions) -> Result<Config, Error> {
        let files = places::config_files(&self.environment, &options.cwd);
        let mut config = Config::load(&self.environment, &files, self.gate, self.observer.as_ref())?;
        config.add_options(options, self.observer.as_ref())?;
        config.natives.clone_from(&self.natives);
        Ok(config)
    }

    /// The state folder.
    ///
    /// # Errors
    /// There is no such place, or something that is no folder (C-14).
    pub fn state_dir(&self) -> Result<PathBuf, Error> {
        places::state_dir(&self.environment, self.state_dir.as_deref())
    }

    /// Reads the document `file` of `options`, and nothing else: no tool is looked for and no model asked.
    ///
    /// # Errors
    /// Whatever is wrong with the choices, the configuration or the document itself.
    pub fn read(&self, file: &Path, options: RunOptions, id: Option<&str>) -> Result<Asked, Error> {
        let mut options = options;
        options.document = self.environment.absolute(file);
        let options = options.recordable()?;
        let id = id.map_or_else(|| Ok(ids::fresh_id()), ids::checked_id)?;
        let config = self.config(&options)?;
        let known = secrets::named_with(&config, options.base_url.as_deref());
        secrets::refuse_choices(&known, Some(&id), &options)?;
        secrets::refuse_inputs(&known, &options.inputs)?;
        let read = prepare::read(file, &options, &config, &options.inputs)?;
        Ok(Asked { id, config, options, read, state_dir: self.state_dir()? })
    }

    /// Finds tools and models and compiles the document.
    ///
    /// # Errors
    /// Whatever a run could not begin with. Nothing is recorded yet.
    pub async fn prepare(&self, asked: Asked) -> Result<Ready, Error> {
        let Asked { id, config, mut options, read, state_dir } = asked;
        let none = Pins::new();
        let prepared = prepare::prepare(read, &none, &mut options, &config, &state_dir, &self.observer).await;
        let prepared = prepared.map_err(|error| config.explained(error))?;
        options.warnings.clone_from(&prepared.warnings);
        Ok(Ready { id, config, options, prepared, state_dir })
    }

    /// Records the run: from here on it exists, and its first event is durable (E-04).
    ///
    /// # Errors
    /// The state folder can't be written, or the id is used.
    pub async fn begin(&self, ready: Ready) -> Result<Begun, Error> {
        let Ready { id, config, options, prepared, state_dir } = ready;
        let store = stores::open_or_make(&self.environment, &state_dir).map_err(Error::before_run)?;
        let store = Arc::new(store);
        let limits = config.limits.driver(options.max_parallel, options.timeout_s);
        let (state, lock) = begin::record(&store, &id, &options, &config, &prepared).await?;
        let Prepared { graph, catalogue, models, warnings, .. } = prepared;
        let driver = compose::driver(&models, &catalogue, limits, &self.environment);
        let (scripted, inputs) = (models.scripted, Vec::new());
        Ok(Begun { store, id, state, graph, scripted, warnings, lock, driver, catalogue, inputs })
    }

    /// All three: a document becomes a run that has begun.
    ///
    /// # Errors
    /// Those of [`Self::read`], [`Self::prepare`] and [`Self::begin`].
    pub async fn run(&self, file: &Path, options: RunOptions) -> Result<Begun, Error> {
        let asked = self.read(file, options, None)?;
        self.begin(self.prepare(asked).await?).await
    }
}

impl Ready {
    /// Keys in use, which nothing shows (C-06).
    pub fn secrets(&self) -> &[Secret] {
        &self.prepared.models.secrets
    }
}

impl Begun {
    /// Drives the run until it ends, waits for a person or is stopped; `controls` are what reaches it meanwhile (E-43). What it came to is in [`Self::state`].
    ///
    /// # Errors
    /// The journal can't be written. What is in it is the run, and it can be gone on with.
    pub async fn drive(&mut self, controls: &mut Controls) -> Result<Halt, DriveError> {
        let events = self.state.events();
        let mut journal = Journal::stored(Arc::clone(&self.store), self.id.as_str(), events);
        let inputs = std::mem::take(&mut self.inputs);
        self.driver.drive(&self.id, &mut self.state, &mut journal, inputs, controls).await
    }
}
