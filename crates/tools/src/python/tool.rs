//! One version of a Python tool: its metadata, its copy in the cache and its schema.

mod hints;
mod modules;
mod schema;
mod sound;
mod unloaded;

use crate::Progress;
use crate::catalogue::CatalogueConfig;
use crate::diag::ToolError;
use crate::failures::{failure, not_allowed};
use crate::library::{LIBRARY, Shelf, restore};
use crate::limits::ToolLimits;
use crate::permissions::{Access, Declared, Granted};
use crate::python::environment::Environments;
use crate::python::index::Index;
use crate::python::keys::Keys;
use crate::python::load::load;
use crate::python::meta::{Metadata, safe_name};
#[cfg(target_os = "linux")]
use crate::python::warm::Warm;
use crate::python::worker::{Ask, Job, work};
use crate::store::{is_hash, keep, sha256};
use selvedge_engine::{Effects, Failure, FaultKind, ToolDef, ToolRequest};
use selvedge_runtime::ports::{CallContext, Printing};
use selvedge_sandbox::configuration::Found as Names;
use selvedge_sandbox::grant::settle;
use selvedge_sandbox::isolation::{Found, Isolation};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The circumstances that all Python tools of a catalogue share.
pub(crate) struct Workshop {
    pub(crate) environments: Environments,
    pub(crate) cache: PathBuf,
    pub(crate) index: Arc<Index>,
    /// What stands in no tool's file.
    pub(crate) keys: Arc<Keys>,
    pub(crate) workspace: PathBuf,
    pub(crate) granted: Granted,
    pub(crate) limits: ToolLimits,
    pub(crate) scratch_root: Option<PathBuf>,
    pub(crate) isolation: Isolation,
    pub(crate) hidden: Vec<PathBuf>,
    /// What Selvedge reads and runs for itself: no tool changes it.
    pub(crate) own: Vec<PathBuf>,
    /// What is not there of it, and not to be made.
    pub(crate) unmade: Vec<PathBuf>,
    /// What is kept from tools by its name.
    pub(crate) names: Names,
    pub(crate) shelf: Option<Arc<dyn Shelf>>,
    pub(crate) replay: bool,
    #[cfg(target_os = "linux")]
    pub(crate) warm: Warm,
    pub(crate) progress: Progress,
}

impl Workshop {
    /// What a configuration says of them.
    pub(crate) fn new(config: &CatalogueConfig, workspace: PathBuf, granted: Granted) -> Self {
        // A sandbox has the places that names lead to, and not all folders that a name goes through (`a/../b`).
        let real = |path: &Path| settle(path).unwrap_or_else(|| path.to_owned());
        Self {
            environments: Environments::new(
                &real(&config.shared_cache),
                config.python.clone(),
                config.uv.clone(),
            ),
            cache: real(&config.tool_cache),
            index: Arc::new(Index::new(&config.tool_cache)),
            keys: Arc::new(Keys::new(config.keys.clone())),
            workspace,
            granted,
            limits: config.limits.clone(),
            scratch_root: config.scratch_root.clone(),
            isolation: config.isolation.clone(),
            hidden: config.hidden.clone(),
            own: config.own(),
            unmade: config.unmade(),
            names: Names::default(),
            shelf: config.shelf.clone(),
            replay: config.replay,
            #[cfg(target_os = "linux")]
            warm: Default::default(),
            progress: config.progress.clone(),
        }
    }
}

/// One version of a Python tool.
#[derive(Debug)]
pub struct PythonTool {
    /// What it says about itself.
    pub meta: Metadata,
    /// The sha256 of its file.
    pub version: Arc<str>,
    /// Where it was found, for people.
    pub source: PathBuf,
    /// The name that documents and models call it by: that of its metadata, or the one that the library gives it.
    bound: Arc<str>,
    schema: OnceLock<Value>,
    /// Its text, where the copy in the cache may not have been made yet: that is when the tool is first prepared.
    text: Option<Arc<[u8]>>,
    cache: PathBuf,
    isolation: Isolation,
}

impl PythonTool {
    pub(super) fn new(meta: &Metadata, version: String, source: PathBuf, workshop: &Workshop) -> Self {
        Self {
            bound: meta.name.as_str().into(),
            meta: meta.clone(),
            version: version.into(),
            source,
            schema: OnceLock::new(),
            text: None,
            cache: workshop.cache.clone(),
            isolation: workshop.isolation.clone(),
        }
    }

    /// The same with the text that its copy is made of.
    pub(super) fn with_text(self, text: Arc<[u8]>) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Its text, as far as it is at hand.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        self.text.as_deref()
    }

    /// Makes the copy that runs use, with the content that the tool was found with.
    async fn pin(&self) -> Result<(), ToolError> {
        let (Some(text), copy) = (self.text.clone(), self.copy()) else { return Ok(()) };
        let shown = copy.display().to_string();
        let keeping = tokio::task::spawn_blocking(move || keep(&copy, &text));
        let kept = keeping.await.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        kept.map_err(|e| ToolError::environment("A-23", format!("{shown}: {e}")))
    }

    /// E-22: a tool that can reach nothing but what it reads does no more than read.
    fn effects(&self) -> Option<Effects> {
        let held = !self.meta.network
            && self.meta.write_paths.is_empty()
            && self.isolation.known().is_some_and(Found::enforced);
        // One that was pinned before that was wrong writes.
        let declared = self.meta.contradiction().map(|_| Effects::Write).or(self.meta.effects);
        declared.or(held.then_some(Effects::Read))
    }

    /// A pinned version that may be on disk no more, from the cache.
    pub(crate) async fn at_version(workshop: &Workshop, version: &str) -> Option<Self> {
        if !is_hash(version) {
            return None;
        }
        let copy = workshop.cache.join(format!("{version}.py"));
        // The cache is trusted only as far as its content fits its name.
        if sha256(&tokio::fs::read(&copy).await.unwrap_or_default()) != version {
            restore(workshop, version).await?;
        }
        if let Some(meta) = workshop.index.get(version) {
            return Some(Self::new(&meta, version.to_owned(), copy, workshop));
        }
        let (mut tools, _) = load(workshop, vec![copy]).await;
        tools.pop()
    }

    /// A version as far as the index tells, whether or not its text is there.
    pub(crate) fn indexed(workshop: &Workshop, version: &str) -> Option<Self> {
        let meta = workshop.index.get(version).filter(|_| is_hash(version))?;
        let copy = workshop.cache.join(format!("{version}.py"));
        Some(Self::new(&meta, version.to_owned(), copy, workshop))
    }

    /// The same as a tool of the library, which may give it another name.
    pub(crate) fn shelved(mut self, name: &Arc<str>) -> Self {
        (self.bound, self.source) = (Arc::clone(name), LIBRARY.into());
        self
    }

    /// What it declares to reach; in a replay nothing reaches the network.
    fn declared(&self, workshop: &Workshop) -> Declared {
        let declared = self.meta.declared();
        Declared { network: declared.network && !workshop.replay, ..declared }
    }

    /// Its definition, once its schema is known.
    pub fn definition(&self) -> Option<ToolDef> {
        Some(self.with_schema(self.schema()?.clone()))
    }

    /// Its definition as far as its metadata tells: any arguments fit while the schema is not known.
    pub fn sketch(&self) -> ToolDef {
        let any = || serde_json::json!({"type": "object"});
        self.with_schema(self.schema().cloned().unwrap_or_else(any))
    }

    fn with_schema(&self, input_schema: Value) -> ToolDef {
        ToolDef {
            name: self.bound.clone(),
            description: self.meta.description.as_str().into(),
            input_schema,
            output_params: self.meta.output_params.clone(),
            effects: self.effects(),
            version: self.version.clone(),
            source: self.source.display().to_string().into(),
            timeout_s: self.meta.timeout,
            approval: false,
        }
    }

    /// Runs it once.
    pub(crate) async fn call(
        &self,
        workshop: &Workshop,
        request: &ToolRequest,
        context: CallContext,
    ) -> Result<Value, Failure> {
        // E-05: a resumed run may have fewer permissions than the one that was prepared.
        let checked = workshop.granted.check(&self.meta.name, &self.declared(workshop));
        let access = checked.map_err(not_allowed)?;
        let unbuilt = |error: ToolError| {
            failure(
                FaultKind::ToolBuildFailure,
                "tool_execution_error",
                error.to_string(),
                serde_json::Map::new(),
            )
        };
        let dependencies = self.meta.dependencies().map_err(unbuilt)?;
        let python =
            workshop.environments.python(&dependencies, &workshop.progress).await.map_err(unbuilt)?;
        let runtime = workshop.environments.runtime(&python).await.map_err(unbuilt)?;
        let copy = self.copy();
        let lost = |lost: String| Failure::permanent(FaultKind::DefinitionChanged, lost);
        let source = self.pinned(workshop).await.map_err(lost)?;
        let shown = self.shown(&request.tool.source);
        let mut job =
            self.job(workshop, access, (&copy, &shown), &source, (&python, &request.effect.0)).await;
        job.policy.runtime = runtime;
        (job.watch, job.printing) = (context.watch, context.printing);
        job.timeout = workshop.limits.timeout(request.timeout_s, self.meta.timeout);
        let done = work(job, Ask::Call(&request.args)).await;
        done.map_err(|failed| self.hinted(workshop, &source, failed))
    }

    /// What was pinned, to the last byte, from the cache or from where it is kept; else what is wrong.
    async fn pinned(&self, workshop: &Workshop) -> Result<Vec<u8>, String> {
        let copy = self.copy();
        let mut source = tokio::fs::read(&copy).await.unwrap_or_default();
        if sha256(&source) != *self.version
            && (self.text.is_some() && self.pin().await.is_ok()
                || restore(workshop, &self.version).await.is_some())
        {
            source = tokio::fs::read(&copy).await.unwrap_or_default();
        }
        let lost = || {
            let (version, name) = (&self.version, &self.meta.name);
            format!("version {version} of `{name}` is not in the cache any more, or was changed there")
        };
        (sha256(&source) == *self.version).then_some(source).ok_or_else(lost)
    }

    /// What its file is called in tracebacks: as it was found, also where only the copy is left.
    fn shown(&self, source: &str) -> String {
        let named = || format!("{}.py", safe_name(&self.bound));
        if source.ends_with(".py") { source.to_owned() } else { named() }
    }

    fn copy(&self) -> PathBuf {
        self.cache.join(format!("{}.py", self.version))
    }

    async fn job<'a>(
        &'a self,
        workshop: &'a Workshop,
        access: Access,
        (copy, shown): (&'a Path, &'a str),
        source: &'a [u8],
        (python, effect): (&'a Path, &'a str),
    ) -> Job<'a> {
        let mut policy = workshop.limits.closed();
        let env;
        Access { read: policy.read, write: policy.write, env } = access;
        policy.hidden.clone_from(&workshop.hidden);
        policy.unmade.clone_from(&workshop.unmade);
        workshop.names.guard(&mut policy, &workshop.own).await;
        policy.network = self.meta.network && !workshop.replay;
        Job {
            name: &self.meta.name,
            file: copy,
            shown,
            source,
            version: &self.version,
            isolation: &workshop.isolation,
            #[cfg(target_os = "linux")]
            warm: &workshop.warm,
            python,
            effect,
            env,
            policy,
            timeout: workshop.limits.timeout(None, self.meta.timeout),
            limits: &workshop.limits,
            folder: &workshop.workspace,
            scratch_root: workshop.scratch_root.clone(),
            watch: None,
            printing: Printing::default(),
        }
    }
}
