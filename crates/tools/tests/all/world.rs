//! A catalogue over temporary folders. Environments and `uv` are shared by all tests of a checkout.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses its part")]

use selvedge_engine::{EffectId, Failure, Fault, FaultKind, ToolRequest};
use selvedge_runtime::ports::{CallContext, Tools};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::launcher::Launcher;
use selvedge_tools::{Catalogue, CatalogueConfig, CatalogueErrors};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The folders of one test.
pub struct World {
    pub root: tempfile::TempDir,
    pub said: Arc<Mutex<Vec<String>>>,
}

/// What is said about a tool file in the short form of [`World::tool`].
pub fn source(name: &str, meta: &str, body: &str) -> String {
    format!(
        "import os, sys, time, json\nfrom pydantic import BaseModel\n\
         __TOOL_META__ = {{'name': '{name}', 'description': 'd', 'dependencies': []{meta}}}\n\
         class InputModel(BaseModel):\n    x: int = 0\n    text: str = ''\n{body}\n"
    )
}

impl World {
    pub fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap(), said: Arc::default() };
        for folder in ["tools", "state", "document", "scratch"] {
            std::fs::create_dir(world.path(folder)).unwrap();
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds a Python tool `name` with more metadata (`, 'network': True`) and a body that defines `run`.
    pub fn tool(&self, name: &str, meta: &str, body: &str) -> PathBuf {
        self.write(&format!("tools/{name}.py"), &source(name, meta, body))
    }

    pub fn config(&self) -> CatalogueConfig {
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared");
        let mut config =
            CatalogueConfig::new(self.path("document"), self.path("state/cache/tools"), shared, env());
        config.tool_dirs.push(self.path("tools"));
        config.scratch_root = Some(self.path("scratch"));
        config.isolation = isolation();
        let said = self.said.clone();
        config.progress = Arc::new(move |line| said.lock().unwrap().push(line.to_owned()));
        config
    }

    pub async fn load(&self) -> Catalogue {
        Catalogue::load(self.config()).await.unwrap()
    }

    /// Loads a catalogue and prepares all its Python tools.
    pub async fn ready(&self) -> Catalogue {
        let catalogue = self.load().await;
        prepare_all(&catalogue).await.unwrap();
        catalogue
    }

    /// Whether no call has left anything: the folders of warm interpreters stay, empty.
    pub fn scratch_is_empty(&self) -> bool {
        let entries = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries(self.path("scratch")).all(|path| {
            path.display().to_string().contains("selvedge-warm-") && entries(path).next().is_none()
        })
    }
}

/// The environment of this test.
pub fn env() -> ProcessEnv {
    ProcessEnv::new(std::env::vars_os(), std::env::current_dir().ok())
}

/// Isolation as the binary has it.
pub fn isolation() -> Isolation {
    Isolation::new(
        Launcher { program: env!("CARGO_BIN_EXE_selvedge-confine").into(), args: Vec::new() },
        &env(),
    )
}

pub async fn prepare_all(catalogue: &Catalogue) -> Result<(), CatalogueErrors> {
    let names: Vec<_> = catalogue.names().map(|name| name.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    catalogue.prepare(&names).await
}

pub fn request(catalogue: &Catalogue, name: &str, args: Value) -> ToolRequest {
    ToolRequest {
        effect: EffectId("main/n/1/1".into()),
        node: "n".into(),
        tool: catalogue.def(name).unwrap(),
        args,
        timeout_s: None,
    }
}

pub fn context() -> CallContext {
    CallContext::of("r")
}

pub async fn call(catalogue: &Catalogue, name: &str, args: Value) -> Result<Value, Failure> {
    catalogue.call(request(catalogue, name, args), context()).await
}

pub async fn call_within(
    catalogue: &Catalogue,
    name: &str,
    args: Value,
    seconds: f64,
) -> Result<Value, Failure> {
    let mut request = request(catalogue, name, args);
    request.timeout_s = Some(seconds);
    catalogue.call(request, context()).await
}

/// The fault of a failed call, with A-21's name of its cause.
pub fn fault(result: Result<Value, Failure>, kind: FaultKind, class: &str) -> Fault {
    let failure = result.unwrap_err();
    assert_eq!(failure.fault.kind, kind, "{failure:?}");
    let cause = failure.fault.cause.clone().unwrap_or_default();
    assert_eq!(cause["error"]["type"].as_str().unwrap_or_default(), class, "{failure:?}");
    failure.fault
}

/// Waits until something holds; a machine under load has a minute for it.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within a minute");
}

/// An argument for `sleep` that only one test uses: a process with it can be found from outside of its sandbox.
pub fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("77.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a process with such an argument lives, in whatever namespace.
pub fn anyone(mark: &str) -> bool {
    !marked(mark).is_empty()
}

/// How many such processes live.
pub fn count(mark: &str) -> usize {
    marked(mark).len()
}

/// Ends the processes with such an argument.
pub fn end(mark: &str) {
    for pid in marked(mark) {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

fn marked(mark: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let with = |entry: std::fs::DirEntry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (line.starts_with("sleep\0") && line.contains(mark)).then_some(pid)
    };
    processes.filter_map(with).collect()
}

/// The folder of what `scripts/test-means.sh` has installed from npm under this word; nothing where it can't be had, which is said.
pub fn from_npm(what: &str, absent: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test-means.sh");
    let _ = std::process::Command::new("bash").arg(script).arg(what).output();
    let cache = std::env::var_os("SELVEDGE_TEST_CACHE").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .map(|c| c.join("selvedge-tests"))
    })?;
    let folders =
        std::fs::read_dir(cache).into_iter().flatten().filter_map(|folder| Some(folder.ok()?.path()));
    let named = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(what).is_some_and(|rest| rest.starts_with('-')) && folder.join("ready").exists()
    };
    let ready = folders.into_iter().find(named);
    if ready.is_none() {
        eprintln!("left out: {absent} (scripts/test-means.sh installs them)");
    }
    ready
}
