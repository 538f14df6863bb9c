//! The schema of a Python tool: asked of its file once, and kept by its content.

use super::PythonTool;
use super::modules::missing_module;
use super::unloaded::{SCHEMA_TIME, Unloaded};
use crate::diag::ToolError;
use crate::python::context::PythonContext;
use crate::python::worker::{Ask, work};
use selvedge_sandbox::files::write_whole;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Changes when what is kept about a schema changes its meaning.
const FORMAT: u32 = 2;
/// When somebody who waits for a schema is told for which.
const SLOW: Duration = Duration::from_secs(3);

/// What is kept as `<sha256>.json` beside the copy `<sha256>.py`.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    schema: Option<Value>,
    /// Whether it was found to be one, and what is said of outputs too; else it is asked for again.
    #[serde(default)]
    sound: bool,
}

/// The schema of a version, if it is kept.
fn recall(cache: &Path, version: &str) -> Option<Kept> {
    let bytes = std::fs::read(cache.join(format!("{version}.json"))).ok()?;
    serde_json::from_slice::<Kept>(&bytes).ok().filter(|kept| kept.format == FORMAT)
}

fn store(cache: &Path, version: &str, schema: &Value, sound: bool) {
    let kept = Kept { format: FORMAT, schema: Some(schema.clone()), sound };
    if let Ok(bytes) = serde_json::to_vec(&kept) {
        // Only a cache: what could not be kept is found again.
        let _ = write_whole(&cache.join(format!("{version}.json")), &bytes);
    }
}

impl PythonTool {
    /// Its schema, if it is kept or this process has asked for it.
    pub(super) fn schema(&self) -> Option<&Value> {
        if self.schema.get().is_none()
            && let Some(kept) = recall(&self.cache, &self.version)
            && let (Some(kept), true) = (kept.schema, kept.sound || self.is_pinned())
        {
            // Another task may have been first, with the same schema.
            let _ = self.schema.set(kept);
        }
        self.schema.get()
    }

    /// Makes its copy, builds its environment if need be, and asks for its schema if it is not kept (30 s), whatever is
    /// remembered of an attempt: somebody needs it.
    pub(crate) async fn prepare(&self, context: &PythonContext) -> Result<(), ToolError> {
        self.pin().await?;
        let python = self.environment(context).await?;
        #[cfg(target_os = "linux")]
        if let Ok(source) = tokio::fs::read(self.copy()).await {
            context.warm.expect(&python, &source);
        }
        if self.schema().is_some() {
            return Ok(());
        }
        let (why, error) = match self.ask_schema(context, &python, SCHEMA_TIME).await {
            Ok(schema) => {
                Unloaded::forget(&context.cache, &self.version);
                let schema = self.sound(schema).await?;
                store(&context.cache, &self.version, &schema, !self.is_pinned());
                // Another task may have been first, with the same schema.
                let _ = self.schema.set(schema);
                return Ok(());
            }
            Err(unasked) => unasked,
        };
        if let Some(why) = why {
            why.keep(&context.cache, &self.version, &python);
        }
        Err(error)
    }

    /// The same for a model that is told all schemas (D-21): a file that is known not to load is not waited for again.
    pub(crate) async fn prepare_to_offer(&self, context: &PythonContext) -> Result<(), ToolError> {
        if self.schema().is_none() {
            let python = self.environment(context).await?;
            if let Some(why) = self.unloaded(context, &python).filter(Unloaded::is_final) {
                return Err(why.remembered(&self.bound, &self.source));
            }
        }
        self.prepare(context).await
    }

    /// Asks for its schema, if it is not kept and its environment is there: else its first call builds that. A file that
    /// takes longer than `patience` is offered without its schema (D-17), and is not waited for by the next run.
    pub(crate) async fn prepare_lightly(
        &self,
        context: &PythonContext,
        patience: Duration,
    ) -> Result<(), ToolError> {
        if self.schema().is_some() {
            return Ok(());
        }
        let dependencies = self.meta.dependencies().map_err(|error| self.placed(error))?;
        if !context.environments.has(&dependencies).await.map_err(|error| self.placed(error))? {
            return Ok(());
        }
        let python = self.environment(context).await?;
        match self.unloaded(context, &python) {
            Some(why) if why.is_final() => return Err(why.remembered(&self.bound, &self.source)),
            Some(why) if why.outlasts(patience) => return Ok(()),
            _ => {}
        }
        match tokio::time::timeout(patience, self.prepare(context)).await {
            Ok(done) => done,
            Err(_) => {
                Unloaded::Slow(patience.as_secs_f64()).keep(&context.cache, &self.version, &python);
                Ok(())
            }
        }
    }

    fn unloaded(&self, context: &PythonContext, python: &Path) -> Option<Unloaded> {
        Unloaded::recall(&context.cache, &self.version, python)
    }

    /// The `python` of its environment, which is built if need be.
    async fn environment(&self, context: &PythonContext) -> Result<PathBuf, ToolError> {
        let dependencies = self.meta.dependencies().map_err(|error| self.placed(error))?;
        let python = context.environments.python(&dependencies, &context.progress).await;
        python.map_err(|error| self.placed(error))
    }

    /// An error that names its file.
    fn placed(&self, error: ToolError) -> ToolError {
        if error.file.is_none() { error.at(&self.source, None) } else { error }
    }

    /// Has the file loaded and asks for its schema; else the error, with what is to be remembered of it.
    async fn ask_schema(
        &self,
        context: &PythonContext,
        python: &Path,
        patience: Duration,
    ) -> Result<Value, (Option<Unloaded>, ToolError)> {
        let placed = |error| (None, self.placed(error));
        let runtime = context.environments.runtime(python).await.map_err(placed)?;
        let copy = self.copy();
        let lost = |lost| placed(ToolError::environment("A-23", lost));
        let source = self.pinned(context).await.map_err(lost)?;
        // A file may be looked at whose calls would be refused.
        let access = context.granted.allowed(&self.declared(context));
        // What is not given may be why it does not load: that is nothing to remember of the file.
        let given = access.env.len() == self.meta.env.len();
        let shown = self.shown(&self.source.display().to_string());
        let mut job = self.job(context, access, (&copy, &shown), &source, (python, "schema")).await;
        job.policy.runtime = runtime;
        job.timeout = patience;
        let mut working = std::pin::pin!(work(job, Ask::Schema));
        let done = tokio::select! {
            done = &mut working => done,
            () = tokio::time::sleep(SLOW) => {
                (context.progress)(&format!("waiting for {}, which is slow to load", self.source.display()));
                working.await
            }
        };
        let schema = done.map_err(|failed| {
            let module = missing_module(&failed.fault.message, &self.source).is_some();
            let failed = if module { failed } else { self.hinted(context, &source, failed) };
            let why = Unloaded::of(&failed).filter(|_| given);
            let shown = why.clone().unwrap_or(Unloaded::Broken(failed.fault.message));
            (why, shown.error(&self.meta.name, &self.source))
        })?;
        object_schema(schema).ok_or_else(|| {
            let message = format!("the InputModel of `{}` is no object with fields", self.meta.name);
            placed(ToolError::document("A-08", message).help("derive it from BaseModel"))
        })
    }
}

/// A schema of an object, spelled out at the top: of a recursive model pydantic only gives a reference there,
/// which model providers refuse. `None` if it is the schema of something else.
fn object_schema(schema: Value) -> Option<Value> {
    let Value::Object(mut top) = schema else { return None };
    let name = top.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    if let Some(Value::Object(target)) = name.and_then(|name| top.get("$defs")?.get(name)).cloned() {
        top.shift_remove("$ref");
        top.extend(target);
    }
    (top.get("type").and_then(Value::as_str) == Some("object")).then_some(Value::Object(top))
}
