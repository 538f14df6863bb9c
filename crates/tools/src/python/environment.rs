//! One `uv` environment per set of dependencies, shared by all tools with that set.
//!
//! `envs/<hash>.txt` is the set, resolved once and locked with hashes; `envs/<hash>/` the environment, made beside
//! its place and renamed into it, so that it is there whole or not at all. File locks keep builders apart, and who
//! uses an environment from who removes unused ones (`kept`).

mod dependencies;
mod kept;

use crate::diag::ToolError;
use crate::progress::Progress;
use crate::python::interpreter::{self, Interpreter};
use crate::python::uv::{self, PATIENCE, lock};
use crate::store::sha256;
pub use dependencies::{Dependencies, Refused};
pub use kept::{Stored, stored};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::files::write_whole;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{End, Finished, Launch, run};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Changes when environments have to be built anew for reasons of ours.
const FORMAT: u32 = 1;
/// How long compiling packages may take, and the memory of each process that does it: the rest is left to who imports it.
const COMPILING: Duration = Duration::from_secs(300);
const COMPILING_BYTES: u64 = 2 << 30;
/// How long the search for versions that fit together may take: of a few packages it takes seconds.
const RESOLVING: Duration = Duration::from_secs(180);

/// What one process knows about a set of dependencies.
#[derive(Debug, Default)]
struct Set {
    /// Why it can't be had: not tried again by this process.
    failed: Option<ToolError>,
    /// The mark of its use.
    _mark: Option<File>,
}

/// The environments of one machine.
#[derive(Debug)]
pub struct Environments {
    folder: PathBuf,
    python: Option<PathBuf>,
    env: ProcessEnv,
    interpreter: OnceCell<Interpreter>,
    sets: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<Set>>>>,
    uv: OnceCell<PathBuf>,
    resolving: Duration,
    keep: kept::Keep,
}

impl Environments {
    /// Environments under `folder`, with the configured `python` or the first usable one, and with the configured `uv` or the
    /// one that is found or fetched.
    pub fn new(folder: &Path, python: Option<PathBuf>, uv: Option<PathBuf>, env: ProcessEnv) -> Self {
        Self {
            folder: folder.to_owned(),
            python,
            env,
            interpreter: OnceCell::new(),
            sets: Mutex::default(),
            uv: uv.map(OnceCell::from).unwrap_or_default(),
            resolving: RESOLVING,
            keep: kept::Keep::default(),
        }
    }

    /// The interpreter they are made from.
    ///
    /// # Errors
    /// No usable Python on this machine.
    pub async fn interpreter(&self) -> Result<&Interpreter, ToolError> {
        let find = || interpreter::find(self.python.as_deref(), &self.folder, &self.env);
        self.interpreter.get_or_try_init(find).await
    }

    /// The `python` of the environment of a set of dependencies, built if it is not there. One that is there is used
    /// as it is: without `uv` and without the network.
    ///
    /// # Errors
    /// Dependencies that cannot be resolved (`Document`), or no Python, no `uv`, no network (`Environment`). What failed once is
    /// not tried again by this process.
    pub async fn python(
        &self,
        dependencies: &Dependencies,
        progress: &Progress,
    ) -> Result<PathBuf, ToolError> {
        let interpreter = self.interpreter().await?;
        let place = self.place(dependencies, interpreter);
        let python = place.join("bin").join("python");
        let slot = {
            let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            let marked = || Set { _mark: kept::mark(&place), ..Set::default() };
            sets.entry(place.clone()).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(marked()))).clone()
        };
        // It was marked before it is looked for: from here on nobody removes it.
        if python.exists() {
            return Ok(python);
        }
        let mut set = slot.lock().await;
        if let Some(failed) = &set.failed {
            return Err(failed.clone());
        }
        let made = self.make(interpreter, dependencies, &place, progress).await;
        if set._mark.is_none() {
            set._mark = kept::mark(&place);
        }
        set.failed = made.as_ref().err().cloned();
        made.map(|()| python)
    }

    /// Whether the environment of a set of dependencies is there, so that nobody has to wait for it.
    ///
    /// # Errors
    /// No usable Python on this machine.
    pub async fn has(&self, dependencies: &Dependencies) -> Result<bool, ToolError> {
        let interpreter = self.interpreter().await?;
        Ok(self.place(dependencies, interpreter).join("bin").join("python").exists())
    }

    /// Builds an environment, unless another process has done so meanwhile.
    async fn make(
        &self,
        interpreter: &Interpreter,
        dependencies: &Dependencies,
        place: &Path,
        progress: &Progress,
    ) -> Result<(), ToolError> {
        let broken = |e: std::io::Error| {
            let message = format!("no environment can be made in {}: {e}", self.folder.display());
            ToolError::environment("A-20", message)
        };
        let _lock = lock(&place.with_extension("lock"), progress).await.map_err(broken)?;
        if place.join("bin").join("python").exists() {
            return Ok(());
        }
        let uv =
            self.uv.get_or_try_init(|| uv::ensure(&self.folder, interpreter, progress, &self.env)).await?;
        progress(&format!("preparing a Python environment with {dependencies}"));
        let lockfile = place.with_extension("txt");
        if !lockfile.exists() {
            self.resolve(uv, interpreter, dependencies, &lockfile).await?;
        }
        self.build(uv, interpreter, &lockfile, place).await?;
        let (envs, keep) = (self.folder.join("envs"), self.keep);
        // Nobody waits for it.
        drop(tokio::task::spawn_blocking(move || kept::sweep(&envs, keep)));
        Ok(())
    }

    /// What running a `python` of these environments takes: the environment, and what it was made from.
    ///
    /// # Errors
    /// No usable Python on this machine.
    pub async fn runtime(&self, python: &Path) -> Result<Vec<PathBuf>, ToolError> {
        let interpreter = self.interpreter().await?;
        let environment = python.parent().and_then(Path::parent).map(Path::to_owned);
        Ok(environment
            .into_iter()
            .chain(interpreter.homes.iter().cloned())
            .chain([interpreter.path.clone()])
            .collect())
    }

    fn place(&self, dependencies: &Dependencies, interpreter: &Interpreter) -> PathBuf {
        let (major, minor) = interpreter.version;
        let machine = (std::env::consts::OS, std::env::consts::ARCH);
        let path = interpreter.path.display();
        let identity = format!("{FORMAT} {major}.{minor} {path} {machine:?}\n{}", dependencies.text());
        let hash = sha256(identity.as_bytes());
        self.folder.join("envs").join(hash.get(..32).unwrap_or(&hash))
    }

    /// Fixes versions and hashes, wheels only: no package runs code of its own while being installed.
    async fn resolve(
        &self,
        uv: &Path,
        interpreter: &Interpreter,
        dependencies: &Dependencies,
        lockfile: &Path,
    ) -> Result<(), ToolError> {
        let mut args: Vec<OsString> = [
            "pip",
            "compile",
            "-",
            "--generate-hashes",
            "--only-binary",
            ":all:",
            "--no-header",
            "--no-annotate",
        ]
        .map(Into::into)
        .into();
        args.extend(["--quiet".into(), "--python".into(), interpreter.path.clone().into()]);
        let input = dependencies.text().into_bytes();
        let mut finished = self.uv(uv, args.clone(), input.clone(), self.resolving).await?;
        if finished.end != End::Exited(0) && is_network(&finished) {
            // Without the network, uv's own cache may know enough.
            args.push("--offline".into());
            let offline = self.uv(uv, args, input, self.resolving).await?;
            if offline.end == End::Exited(0) {
                finished = offline;
            }
        }
        self.resolved(&finished, dependencies)?;
        write_whole(lockfile, &finished.stdout)
            .map_err(|e| ToolError::environment("A-20", format!("{}: {e}", lockfile.display())))
    }

    async fn build(
        &self,
        uv: &Path,
        interpreter: &Interpreter,
        lockfile: &Path,
        place: &Path,
    ) -> Result<(), ToolError> {
        let envs = self.folder.join("envs");
        let broken = |e: std::io::Error| ToolError::environment("A-20", format!("{}: {e}", envs.display()));
        let fresh = tempfile::Builder::new().prefix(".new-").tempdir_in(&envs).map_err(broken)?;
        // What uv has in its own cache needs no network; it takes moments to find out.
        let mut target = fresh.path().join("offline");
        let mut filled = self.fill(uv, interpreter, lockfile, &target, &["--offline"]).await?;
        if filled.end != End::Exited(0) {
            target = fresh.path().join("env");
            filled = self.fill(uv, interpreter, lockfile, &target, &[]).await?;
        }
        installed(&filled)?;
        compile(interpreter, &target).await;
        // One whose interpreter has gone lies in the way.
        let _ = std::fs::remove_dir_all(place);
        std::fs::rename(&target, place).map_err(broken)
    }

    /// One attempt to make an environment, always anew: uv starts the interpreter of what is there, and a package that an
    /// earlier attempt has left may have made that its own.
    async fn fill(
        &self,
        uv: &Path,
        interpreter: &Interpreter,
        lockfile: &Path,
        target: &Path,
        more: &[&str],
    ) -> Result<Finished, ToolError> {
        let mut args: Vec<OsString> =
            ["venv", "--relocatable", "--no-project", "--quiet", "--python"].map(Into::into).into();
        args.extend([interpreter.path.clone().into(), target.into()]);
        installed(&self.uv(uv, args, Vec::new(), PATIENCE).await?)?;
        // Compiled by the environment's own interpreter, files `.pth` of packages would run, outside of any sandbox and
        // with the user's variables: `compile` does it.
        let mut args: Vec<OsString> = [
            "pip",
            "sync",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--no-compile-bytecode",
            "--quiet",
            "--python",
        ]
        .map(Into::into)
        .into();
        args.extend([target.join("bin").join("python").into(), lockfile.into()]);
        args.extend(more.iter().map(Into::into));
        self.uv(uv, args, Vec::new(), PATIENCE).await
    }

    async fn uv(
        &self,
        uv: &Path,
        args: Vec<OsString>,
        stdin: Vec<u8>,
        patience: Duration,
    ) -> Result<Finished, ToolError> {
        uv::run(uv, args, stdin, patience, &self.env)
            .await
            .map_err(|e| ToolError::environment("A-20", format!("{} cannot be started: {e}", uv.display())))
    }

    fn resolved(&self, finished: &Finished, dependencies: &Dependencies) -> Result<(), ToolError> {
        let why = match finished.end {
            End::Exited(0) => return Ok(()),
            End::TimedOut => format!("it took longer than {} s", self.resolving.as_secs_f64()),
            _ => uv::said(finished, 1500),
        };
        let message = format!("the dependencies {dependencies} cannot be resolved: {why}");
        Err(match finished.end {
            End::TimedOut => ToolError::environment("A-20", message)
                .help("is PyPI, or the configured index, reachable? exact versions are found faster"),
            _ if is_network(finished) => {
                ToolError::environment("A-20", message).help("is PyPI, or the configured index, reachable?")
            }
            _ => ToolError::document("A-20", message)
                .help("correct `dependencies` in __TOOL_META__; only wheels are installed"),
        })
    }
}

/// Whether it failed for want of a network; one that swallows everything is told by the time it takes.
fn is_network(finished: &Finished) -> bool {
    if finished.end == End::TimedOut {
        return true;
    }
    let text = String::from_utf8_lossy(&finished.stderr).to_lowercase();
    ["failed to fetch", "error sending request", "dns error", "connect", "timed out", "offline"]
        .iter()
        .any(|sign| text.contains(sign))
}

fn installed(finished: &Finished) -> Result<(), ToolError> {
    if finished.end == End::Exited(0) {
        return Ok(());
    }
    let why = match finished.end {
        End::TimedOut => "it took too long".to_owned(),
        _ => uv::said(finished, 1500),
    };
    let message = format!("the environment of a tool cannot be made: {why}");
    Err(ToolError::environment("A-20", message))
}

/// Compiles what was installed: sandboxes can't keep what they compile. The interpreter is the one that the environment was
/// made from, without any packages: compiling a file runs none of it.
async fn compile(interpreter: &Interpreter, environment: &Path) {
    let mut args: Vec<OsString> =
        ["-I", "-S", "-B", "-X", "utf8", "-m", "compileall", "-qq", "-j0"].map(Into::into).into();
    args.push(environment.join("lib").into());
    let launch = Launch {
        timeout: COMPILING,
        bound: true,
        policy: Policy { memory_bytes: Some(COMPILING_BYTES), ..Policy::default() },
        ..Launch::own(interpreter.path.clone(), args, Vec::new(), environment.to_owned())
    };
    // What does not compile is compiled again by whoever imports it, who then is told why it can't be.
    let _ = run(launch).await;
}

#[cfg(test)]
mod tests;
