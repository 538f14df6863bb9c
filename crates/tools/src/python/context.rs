//! What all Python tools of a catalogue share.

use crate::config::CatalogueConfig;
use crate::diag::ToolError;
use crate::library::LibrarySource;
use crate::limits::ToolLimits;
use crate::permissions::Granted;
use crate::progress::Progress;
use crate::python::environment::Environments;
use crate::python::index::Index;
use crate::python::keys::Keys;
#[cfg(target_os = "linux")]
use crate::python::warm::Warm;
use crate::store::{keep, sha256};
use selvedge_sandbox::configuration::Found as Names;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::grant::Resolver;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::scratch_root;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The circumstances that all Python tools of a catalogue share.
pub(crate) struct PythonContext {
    pub(crate) environments: Environments,
    pub(crate) cache: PathBuf,
    pub(crate) index: Arc<Index>,
    /// What stands in no tool's file.
    pub(crate) keys: Arc<Keys>,
    pub(crate) workspace: PathBuf,
    pub(crate) granted: Granted,
    pub(crate) limits: ToolLimits,
    pub(crate) process: ProcessEnv,
    scratch_root: Option<PathBuf>,
    pub(crate) isolation: Isolation,
    pub(crate) hidden: Vec<PathBuf>,
    /// What Selvedge reads and runs for itself: no tool changes it.
    pub(crate) own: Vec<PathBuf>,
    /// What is not there of it, and not to be made.
    pub(crate) unmade: Vec<PathBuf>,
    /// What is kept from tools by its name.
    pub(crate) names: Names,
    pub(crate) library: Option<Arc<dyn LibrarySource>>,
    pub(crate) replay: bool,
    #[cfg(target_os = "linux")]
    pub(crate) warm: Warm,
    pub(crate) progress: Progress,
}

impl PythonContext {
    /// What a configuration says of them.
    pub(crate) fn new(
        config: &CatalogueConfig,
        workspace: PathBuf,
        granted: Granted,
        resolver: &mut Resolver,
    ) -> Self {
        // A sandbox has the places that names lead to, and not all folders that a name goes through (`a/../b`).
        let mut real = |path: &Path| resolver.settle(path).unwrap_or_else(|| path.to_owned());
        let (shared_cache, cache) = (real(&config.shared_cache), real(&config.tool_cache));
        Self {
            environments: Environments::new(
                &shared_cache,
                config.python.clone(),
                config.uv.clone(),
                config.env.clone(),
            ),
            cache,
            index: Arc::new(Index::new(&config.tool_cache)),
            keys: Arc::new(Keys::new(config.keys.clone())),
            workspace,
            granted,
            limits: config.limits.clone(),
            process: config.env.clone(),
            scratch_root: config.scratch_root.clone(),
            isolation: config.isolation.clone(),
            hidden: config.hidden.clone(),
            own: config.own(),
            unmade: config.unmade(resolver),
            names: Names::new(config.env.folder()),
            library: config.library.clone(),
            replay: config.replay,
            #[cfg(target_os = "linux")]
            warm: Default::default(),
            progress: config.progress.clone(),
        }
    }

    /// Where scratch folders are made, whatever is granted.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        self.scratch_root.clone().unwrap_or_else(|| self.process.temporary())
    }

    /// Where scratch folders are made of calls that are granted this.
    pub(crate) fn scratch_root(&self, policy: &Policy) -> PathBuf {
        scratch_root(self.scratch_root.clone(), self.process.temporary(), policy)
    }

    /// Puts a version's text back into the cache from where it is kept. `None` if it is kept nowhere.
    ///
    /// # Errors
    /// It can't be written there.
    pub(crate) async fn restore(&self, version: &str) -> Result<Option<PathBuf>, ToolError> {
        let Some(library) = self.library.clone() else { return Ok(None) };
        let (wanted, copy) = (version.to_owned(), self.cache.join(format!("{version}.py")));
        let restoring = tokio::task::spawn_blocking(move || {
            let text = library.text(&wanted).filter(|text| sha256(text) == wanted);
            let Some(text) = text else { return Ok(None) };
            keep(&copy, &text).map_err(|e| ToolError::unkept(&copy, &e))?;
            Ok(Some(copy))
        });
        // It fails only when the process is being shut down.
        restoring.await.unwrap_or(Ok(None))
    }
}
