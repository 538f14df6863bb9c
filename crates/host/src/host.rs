//! A host: what is asked of Selvedge goes through it, whoever asks.

use crate::child::Children;
use crate::config::Config;
use crate::environment::Environment;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::prepare;
use crate::ready::{Asked, Composed, What};
use crate::recorded::{LockedRun, RecordedRun};
use crate::trust::Gate;
use crate::{document_files, ids, places, secrets, stores, tools};
use selvedge_engine::Graph;
use selvedge_store::{Store, StoreError};
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
    /// Who drives the runs that its runs begin, if that is not this process.
    children: Option<Arc<dyn Children>>,
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
            children: None,
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

    /// The same in the state folder of this store, to whom nobody listens: runs that a run begins (E-39).
    pub(crate) fn within(&self, store: &Arc<Store>) -> Self {
        Self { observer: Arc::new(()), children: None, ..self.clone().sharing(Arc::clone(store)) }
    }

    /// The same with the store of its state folder open, and that store: who begins many runs, or looks at many, opens it once.
    ///
    /// # Errors
    /// It can't be opened or made.
    pub fn in_open_store(&self) -> Result<(Self, Arc<Store>), Error> {
        let store = self.store(&self.state_dir()?)?;
        Ok((self.clone().sharing(Arc::clone(&store)), store))
    }

    /// The same whose runs share one open store, which is that of its state folder: what they write at the same time is written in one
    /// commit.
    #[must_use]
    pub fn sharing(self, store: Arc<Store>) -> Self {
        Self { environment: self.environment.with_store(store), ..self }
    }

    /// Who drives the runs that its runs begin (E-39), in this store.
    pub fn children(&self, store: &Arc<Store>) -> Arc<dyn Children> {
        self.children.clone().unwrap_or_else(|| Arc::new(self.within(store)))
    }

    /// The same, where others drive the runs that its runs begin (E-39).
    #[must_use]
    pub fn with_children(self, children: Arc<dyn Children>) -> Self {
        Self { children: Some(children), ..self }
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
        let mut config = Config::load(&self.environment, files, self.gate, self.observer.as_ref())?;
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
        let mut options = options.recordable()?;
        let id = id.map_or_else(|| Ok(ids::fresh_id()), ids::checked_id)?;
        let config = self.config(&options)?;
        let known = secrets::named_with(&config, options.base_url.as_deref());
        secrets::refuse_choices(&known, Some(&id), &options)?;
        let written = options.input_names();
        let read = prepare::read(file, &mut options, &config, &written)?;
        let given = options.given.is_some();
        options.document_files = document_files::hashes(&self.environment, given, read.sources());
        let what = What::Document { read, state_dir: self.state_dir()? };
        Ok(Asked { id, name: None, parent: None, config, options, what })
    }

    /// A graph that no document was read for, as a new run of this id: its tools and models are those that it names.
    ///
    /// # Errors
    /// Whatever is wrong with the choices or the configuration.
    pub fn composed(&self, composed: Composed, options: RunOptions, id: &str) -> Result<Asked, Error> {
        let options = options.recordable()?;
        let config = self.config(&options)?;
        secrets::refuse_choices(&secrets::named_with(&config, options.base_url.as_deref()), None, &options)?;
        let id = ids::checked_id(id)?;
        let what = What::Graph { composed, state_dir: self.state_dir()? };
        Ok(Asked { id, name: None, parent: None, config, options, what })
    }

    /// A recorded run, as its journal leaves it now. `run` is its id or enough of its beginning.
    ///
    /// # Errors
    /// There is none, or its journal can't be read.
    pub fn load(&self, run: &str) -> Result<RecordedRun, Error> {
        let (dir, store, id) = self.find(run)?;
        RecordedRun::load(dir, store, &id)
    }

    /// The same with the right to drive it.
    ///
    /// # Errors
    /// Another live process drives it (C-12), there is none, or its journal can't be read.
    pub fn lock(&self, run: &str) -> Result<LockedRun, Error> {
        let (dir, store, id) = self.find(run)?;
        LockedRun::take(dir, store, &id)
    }

    /// Where a run is that must exist: its state folder, that folder's store, and its full id.
    pub(crate) fn find(&self, run: &str) -> Result<(PathBuf, Arc<Store>, String), Error> {
        if let Some(store) = self.environment.store() {
            return Ok((self.state_dir()?, Arc::clone(store), stores::find_run(store, run)?));
        }
        let (dir, store) = stores::open_existing(&self.environment, self.state_dir.as_deref(), run)?;
        let id = stores::find_run(&store, run)?;
        Ok((dir, Arc::new(store), id))
    }

    /// The store that new runs are in.
    ///
    /// # Errors
    /// It can't be opened or made.
    pub(crate) fn store(&self, state_dir: &Path) -> Result<Arc<Store>, StoreError> {
        let open = || stores::open_or_make(&self.environment, state_dir).map(Arc::new);
        self.environment.store().map_or_else(open, |store| Ok(Arc::clone(store)))
    }

    /// The tools of a recorded graph, for what goes on from it.
    pub(crate) async fn recorded_tools(
        &self,
        graph: &Graph,
        config: &Config,
        options: &RunOptions,
        dir: &Path,
    ) -> Result<Catalogue, Error> {
        let workspace = places::workspace(&self.environment, &options.document);
        tools::catalogue_of(tools::wanted_by(graph), options, config, dir, &workspace, &self.observer).await
    }
}
