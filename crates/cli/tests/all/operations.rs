//! What an agent asks of the tool library (A-14 … A-19, E-40), with real tools in the real sandbox.

mod life;
mod mended;
mod once;
mod optimise;
mod swept;
mod worlds;

use selvedge_dialects::agent::operations as known;
use selvedge_engine::{EffectId, Failure, ToolDef, ToolRequest};
use selvedge_host::library::operations::Bench;
use selvedge_host::{Config, Environment, Host, RunOptions, compose};
use selvedge_runtime::{CallContext, Operations, Tools};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::launcher::Launcher;
use selvedge_store::{Mode, Store};
use selvedge_tools::library::LibrarySource;
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder with a state of its own.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for name in ["state", "work", "scratch", "tools"] {
            std::fs::create_dir(folder.at(name)).unwrap();
        }
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self, store: &Arc<Store>) -> CatalogueConfig {
        let env = ProcessEnv::new(std::env::vars_os(), std::env::current_dir().ok());
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared");
        let mut config =
            CatalogueConfig::new(self.at("work"), self.at("state/cache/tools"), shared, env.clone());
        config.scratch_root = Some(self.at("scratch"));
        config.tool_dirs = vec![self.at("tools")];
        config.isolation = Isolation::new(launcher(), &env);
        config.library = Some(Arc::new(Kept(Arc::clone(store))));
        config
    }
}

fn launcher() -> Launcher {
    Launcher { program: env!("CARGO_BIN_EXE_selvedge").into(), args: vec!["__confine".into()] }
}

/// The texts that a store has.
struct Kept(Arc<Store>);

impl LibrarySource for Kept {
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)> {
        selvedge_host::library::read(&self.0)
            .unwrap()
            .offered(None)
            .into_iter()
            .map(|(name, version)| (name, Arc::clone(&version.hash)))
            .collect()
    }

    fn text(&self, version: &str) -> Option<Vec<u8>> {
        self.0.get_blob(version.parse().ok()?).ok()
    }
}

/// A process that drives a run.
pub(crate) struct Process {
    run: String,
    store: Arc<Store>,
    catalogue: Catalogue,
    operations: Arc<dyn Operations>,
}

/// What operations need, of a store, where a folder is the project's.
fn bench(store: &Arc<Store>, catalogue: &Catalogue, project: PathBuf) -> Bench {
    let environment = Environment::new([], project);
    let (config, children) = (Config::new(&environment), Arc::new(Host::new(environment)));
    Bench::new(Arc::clone(store), catalogue.clone(), config, children, RunOptions::default())
}

impl Process {
    async fn start(folder: &Folder, run: &str) -> Self {
        Self::with(folder, run, |_| ()).await
    }

    async fn with(folder: &Folder, run: &str, edit: impl FnOnce(&mut CatalogueConfig)) -> Self {
        let store = Arc::new(Store::open(&folder.at("state"), Mode::ReadWrite).unwrap());
        let mut config = folder.config(&store);
        edit(&mut config);
        let catalogue = Catalogue::load(config).await.unwrap();
        let operations = Arc::new(compose::operations(bench(&store, &catalogue, folder.at("work"))));
        Self { run: run.to_owned(), store, catalogue, operations }
    }

    /// Asks for an operation as the effect with this id.
    async fn asks(&self, tool: Arc<ToolDef>, effect: &str, args: Value) -> Result<Value, Failure> {
        let effect = EffectId(effect.into());
        let request = ToolRequest { effect, node: "n".into(), tool, args, timeout_s: None };
        let done = self.operations.call(request, CallContext::of(&self.run)).await?;
        Ok(Value::clone(&done.output))
    }

    /// The same in the frame `agent~1`, for its task, where `at` tells calls apart.
    async fn ask(&self, tool: Arc<ToolDef>, at: &str, args: Value) -> Value {
        let asked = self.asks(tool, &format!("agent~1/{at}/call/1/1"), args).await;
        asked.unwrap_or_else(|failure| panic!("{at}: {failure:?}"))
    }

    /// A tool is written for the task.
    async fn draft(&self, at: &str, name: &str, file: &str, more: Value) -> Value {
        let mut args = json!({"depth": 0, "name": name, "file": file, "coder": "model", "model": "m",
                              "request": {"name": name, "description": "what it is for", "output_schema": {"type": "object"}}});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask(known::draft(), at, args).await
    }

    /// Calls a tool as its definition says, and tells of it as a model's loop does.
    async fn call(&self, id: &str, tool: &Value, arguments: Value) -> Value {
        let tool: Arc<ToolDef> = Arc::new(serde_json::from_value(tool.clone()).unwrap());
        let (name, version) = (Arc::clone(&tool.name), Arc::clone(&tool.version));
        let effect = EffectId("agent~1/work/tools.0/1/1".into());
        let request =
            ToolRequest { effect, node: "n".into(), tool, args: arguments.clone(), timeout_s: None };
        let mut call = json!({"id": id, "tool": name, "version": version, "arguments": arguments});
        match self.catalogue.call(request, CallContext::of(&self.run)).await {
            Ok(output) => call["output"] = output,
            Err(failure) => {
                let (kind, message) = (failure.fault.kind.name(), failure.fault.message);
                call["error"] = json!({"type": kind, "message": message});
            }
        }
        call
    }

    /// What became of calls, where a model says the same of each that it is asked about.
    async fn settle(&self, at: &str, calls: &[Value], class: &str) -> (Value, Value) {
        let looked =
            self.ask(known::calls(), &format!("look-{at}"), json!({"depth": 0, "calls": calls})).await;
        let asked: Vec<&Value> = looked["ask"].as_array().unwrap().iter().map(|asked| &asked["id"]).collect();
        let class = |n: usize| (n.to_string(), json!({"class": class, "reason": "as it seems"}));
        let classes: serde_json::Map<String, Value> = (0..asked.len()).map(class).collect();
        let found = json!({"ask": asked, "failed": looked["failed"], "misused": looked["misused"]});
        let args = json!({"depth": 0, "calls": calls, "looked": found, "classes": classes});
        let settled = self.ask(known::settle(), &format!("settle-{at}"), args).await;
        (looked, settled)
    }

    fn library(&self) -> selvedge_engine::library::Library {
        selvedge_host::library::read(&self.store).unwrap()
    }

    /// The stage of a version in the place of the task.
    fn stage(&self, version: &Value) -> Option<&'static str> {
        self.stage_in(&format!("{}/agent~1", self.run), version)
    }

    fn stage_in(&self, task: &str, version: &Value) -> Option<&'static str> {
        let place = selvedge_engine::library::Place::Task(task.into());
        let library = self.library();
        library.version(version.as_str().unwrap())?.stage(&place).map(|stage| stage.name())
    }
}

/// A tool's file with this body.
fn file(name: &str, meta: &str, body: &str) -> String {
    format!(
        "import time\nfrom pydantic import BaseModel\n\n__TOOL_META__ = {{'name': '{name}', 'description': 'Reads dates', \
         'dependencies': [], 'effects': 'pure'{meta}}}\n\n\nclass InputModel(BaseModel):\n    text: str\n\n\n\
         def run(input_model):\n    text = input_model.text\n{body}\n"
    )
}

/// Dates like `1.3.2024`; what is no such date raises.
const DATES: &str = "    day, month, year = text.split('.')\n    print('reading', text)\n    \
                     return {'date': f'{int(year):04d}-{int(month):02d}-{int(day):02d}'}";
