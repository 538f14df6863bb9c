//! One version of a Python tool: its metadata, its copy in the cache and its schema.

mod hints;
mod modules;
mod schema;
mod sound;
mod unloaded;

use crate::diag::ToolError;
use crate::failures::{failure, not_allowed};
use crate::library::LIBRARY;
use crate::permissions::{Access, Declared};
use crate::python::context::PythonContext;
use crate::python::load::load;
use crate::python::meta::{Metadata, safe_name};
use crate::python::worker::{Ask, Job, work};
use crate::store::{is_hash, keep, sha256};
use selvedge_engine::{Effects, Failure, FaultKind, ToolDef, ToolRequest};
use selvedge_runtime::ports::{CallContext, Printing};
use selvedge_sandbox::isolation::{Found, Isolation};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

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
    pub(super) fn new(meta: &Metadata, version: String, source: PathBuf, shared: &PythonContext) -> Self {
        Self {
            bound: meta.name.as_str().into(),
            meta: meta.clone(),
            version: version.into(),
            source,
            schema: OnceLock::new(),
            text: None,
            cache: shared.cache.clone(),
            isolation: shared.isolation.clone(),
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
        let shown = copy.clone();
        let keeping = tokio::task::spawn_blocking(move || keep(&copy, &text));
        let kept = keeping.await.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        kept.map_err(|e| ToolError::unkept(&shown, &e))
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
    ///
    /// # Errors
    /// Its copy can't be written.
    pub(crate) async fn at_version(shared: &PythonContext, version: &str) -> Result<Option<Self>, ToolError> {
        if !is_hash(version) {
            return Ok(None);
        }
        let copy = shared.cache.join(format!("{version}.py"));
        // The cache is trusted only as far as its content fits its name.
        if sha256(&tokio::fs::read(&copy).await.unwrap_or_default()) != version {
            match shared.restore(version).await? {
                Some(_) => {}
                None => return Ok(None),
            }
        }
        if let Some(meta) = shared.index.get(version) {
            return Ok(Some(Self::new(&meta, version.to_owned(), copy, shared)));
        }
        let (mut tools, _) = load(shared, vec![copy]).await;
        Ok(tools.pop())
    }

    /// A version as far as the index tells, whether or not its text is there.
    pub(crate) fn indexed(shared: &PythonContext, version: &str) -> Option<Self> {
        let meta = shared.index.get(version).filter(|_| is_hash(version))?;
        let copy = shared.cache.join(format!("{version}.py"));
        Some(Self::new(&meta, version.to_owned(), copy, shared))
    }

    /// The same as a tool of the library, which may give it another name.
    pub(crate) fn of_library(mut self, name: &Arc<str>) -> Self {
        (self.bound, self.source) = (Arc::clone(name), LIBRARY.into());
        self
    }

    /// What it declares to reach; in a replay nothing reaches the network.
    fn declared(&self, shared: &PythonContext) -> Declared {
        let declared = self.meta.declared();
        Declared { network: declared.network && !shared.replay, ..declared }
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
        shared: &PythonContext,
        request: &ToolRequest,
        context: CallContext,
    ) -> Result<Value, Failure> {
        // E-05: a resumed run may have fewer permissions than the one that was prepared.
        let checked = shared.granted.check(&self.meta.name, &self.declared(shared));
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
        let python = shared.environments.python(&dependencies, &shared.progress).await.map_err(unbuilt)?;
        let runtime = shared.environments.runtime(&python).await.map_err(unbuilt)?;
        let copy = self.copy();
        let lost = |lost: String| Failure::permanent(FaultKind::DefinitionChanged, lost);
        let source = self.pinned(shared).await.map_err(lost)?;
        let shown = self.shown(&request.tool.source);
        let mut job = self.job(shared, access, (&copy, &shown), &source, (&python, &request.effect.0)).await;
        job.policy.runtime = runtime;
        (job.watch, job.printing) = (context.watch, context.printing);
        job.timeout = shared.limits.timeout(request.timeout_s, self.meta.timeout);
        let done = work(job, Ask::Call(&request.args)).await;
        done.map_err(|failed| self.hinted(shared, &source, failed))
    }

    /// What was pinned, to the last byte, from the cache or from where it is kept; else what is wrong.
    async fn pinned(&self, shared: &PythonContext) -> Result<Vec<u8>, String> {
        let copy = self.copy();
        let mut source = tokio::fs::read(&copy).await.unwrap_or_default();
        if sha256(&source) != *self.version
            && (self.text.is_some() && self.pin().await.is_ok()
                || shared.restore(&self.version).await.is_ok())
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
        shared: &'a PythonContext,
        access: Access,
        (copy, shown): (&'a Path, &'a str),
        source: &'a [u8],
        (python, effect): (&'a Path, &'a str),
    ) -> Job<'a> {
        let mut policy = shared.limits.closed();
        let env;
        Access { read: policy.read, write: policy.write, env } = access;
        policy.hidden.clone_from(&shared.hidden);
        policy.unmade.clone_from(&shared.unmade);
        shared.names.guard(&mut policy, &shared.own).await;
        let scratch_root = shared.scratch_root(&policy);
        policy.network = self.meta.network && !shared.replay;
        Job {
            name: &self.meta.name,
            file: copy,
            shown,
            source,
            version: &self.version,
            isolation: &shared.isolation,
            #[cfg(target_os = "linux")]
            warm: &shared.warm,
            python,
            effect,
            env,
            policy,
            timeout: shared.limits.timeout(None, self.meta.timeout),
            limits: &shared.limits,
            folder: &shared.workspace,
            scratch_root,
            watch: None,
            printing: Printing::default(),
        }
    }
}
