//! A host: what is asked of Selvedge goes through it, whoever asks.

use crate::config::Config;
use crate::environment::Environment;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::prepare;
use crate::ready::{Asked, What};
use crate::recorded::{LockedRun, RecordedRun};
use crate::trust::Gate;
use crate::{ids, places, secrets, stores, tools};
use selvedge_engine::Graph;
use selvedge_store::Store;
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
        let options = options.recordable()?;
        let id = id.map_or_else(|| Ok(ids::fresh_id()), ids::checked_id)?;
        let config = self.config(&options)?;
        let known = secrets::named_with(&config, options.base_url.as_deref());
        secrets::refuse_choices(&known, Some(&id), &options)?;
        secrets::refuse_inputs(&known, &options.inputs)?;
        let read = prepare::read(file, &options, &config, &options.inputs)?;
        let what = What::Document { read, state_dir: self.state_dir()? };
        Ok(Asked { id, config, options, what })
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
        let (dir, store) = stores::open_existing(&self.environment, self.state_dir.as_deref(), run)?;
        let id = stores::find_run(&store, run)?;
        Ok((dir, Arc::new(store), id))
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
