//! One `uv` environment per set of dependencies, shared by all tools with that set.
//!
//! `envs/<hash>.txt` is the set, resolved once and locked with hashes; `envs/<hash>/` the environment, made beside
//! its place and renamed into it, so that it is there whole or not at all. A file lock keeps builders apart.

use crate::tools::Progress;
use crate::tools::diag::ToolError;
use crate::tools::process::{End, Finished};
use crate::tools::python::interpreter::{self, Interpreter};
use crate::tools::python::uv::{self, helper, lock};
use crate::tools::store::{sha256, write_whole};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Changes when environments have to be built anew for reasons of ours.
const FORMAT: u32 = 1;

/// The age at which a half-made environment has no builder any more: builds take minutes.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// A set of dependencies: normalised, sorted, pydantic included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependencies(BTreeSet<String>);

impl Dependencies {
    /// Reads the `dependencies` of a tool: names with versions, extras and markers, as on PyPI.
    ///
    /// # Errors
    /// The first entry that is something else: an option, a path, an address.
    pub fn new(listed: &[String]) -> Result<Self, String> {
        let mut set = BTreeSet::new();
        for entry in listed {
            set.insert(normal(entry).ok_or_else(|| entry.clone())?);
        }
        // The worker itself needs it, whatever else the tool asks of it.
        set.insert("pydantic>=2".to_owned());
        Ok(Self(set))
    }

    fn text(&self) -> String {
        self.0.iter().fold(String::new(), |text, entry| text + entry + "\n")
    }
}

/// `Name [extra] >= 1` as `name[extra]>=1`; `None` for what is not the name of a released package.
fn normal(entry: &str) -> Option<String> {
    let entry = entry.trim();
    let end = entry.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(entry.len());
    let (name, rest) = entry.split_at_checked(end)?;
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let bad = |c: char| c.is_control() || c == '@' || c == '#' || c == '\\';
    if !edge(name.chars().next()) || !edge(name.chars().last()) || rest.contains(bad) {
        return None;
    }
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with(['[', '<', '>', '=', '!', '~', ';', '(']) {
        return None;
    }
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if text.ends_with('-') => {}
            '-' | '_' | '.' => text.push('-'),
            other => text.push(other.to_ascii_lowercase()),
        }
    }
    // In a marker, spaces separate words; before it, they mean nothing.
    let (versions, marker) = rest.split_once(';').unwrap_or((rest, ""));
    text.extend(versions.chars().filter(|c| !c.is_whitespace()));
    if !marker.trim().is_empty() {
        text.push_str("; ");
        text.push_str(marker.trim());
    }
    Some(text)
}

/// The environments of one machine.
#[derive(Debug)]
pub struct Environments {
    folder: PathBuf,
    python: Option<PathBuf>,
    interpreter: OnceCell<Interpreter>,
}

impl Environments {
    /// Environments under `folder`, with the configured `python` or the first usable one.
    pub fn new(folder: &Path, python: Option<PathBuf>) -> Self {
        Self { folder: folder.to_owned(), python, interpreter: OnceCell::new() }
    }

    /// The interpreter they are made from.
    ///
    /// # Errors
    /// No usable Python on this machine.
    pub async fn interpreter(&self) -> Result<&Interpreter, ToolError> {
        let find = || interpreter::find(self.python.as_deref(), &self.folder);
        self.interpreter.get_or_try_init(find).await
    }

    /// The `python` of the environment of a set of dependencies, built if it is not there.
    ///
    /// # Errors
    /// Dependencies that cannot be resolved (exit 2), or no Python, no `uv`, no network (exit 4).
    pub async fn python(
        &self,
        dependencies: &Dependencies,
        progress: &Progress,
    ) -> Result<PathBuf, ToolError> {
        let interpreter = self.interpreter().await?;
        let place = self.place(dependencies, interpreter);
        let python = place.join("bin").join("python");
        // Resolving the link also finds that the interpreter behind it has gone.
        if python.exists() {
            return Ok(python);
        }
        let broken = |e: std::io::Error| {
            let message = format!("no environment can be made in {}: {e}", self.folder.display());
            ToolError::environment("A-20", message)
        };
        let _lock = lock(&place.with_extension("lock"), progress).await.map_err(broken)?;
        if python.exists() {
            return Ok(python);
        }
        let uv = uv::ensure(&self.folder, interpreter, progress).await?;
        let names: Vec<_> = dependencies.0.iter().map(String::as_str).collect();
        progress(&format!("preparing a Python environment with {}", names.join(", ")));
        let lockfile = place.with_extension("txt");
        if !lockfile.exists() {
            self.resolve(&uv, interpreter, dependencies, &lockfile).await?;
        }
        self.build(&uv, interpreter, &lockfile, &place).await?;
        Ok(python)
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
        let mut finished = self.uv(uv, args.clone(), input.clone()).await?;
        if finished.end != End::Exited(0) && is_network(&finished) {
            // Without the network, uv's own cache may know enough.
            args.push("--offline".into());
            let offline = self.uv(uv, args, input).await?;
            if offline.end == End::Exited(0) {
                finished = offline;
            }
        }
        succeeded(&finished, dependencies)?;
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
        remove_abandoned(&envs);
        let fresh = tempfile::Builder::new().prefix(".new-").tempdir_in(&envs).map_err(broken)?;
        let target = fresh.path().join("env");
        let mut args: Vec<OsString> =
            ["venv", "--relocatable", "--no-project", "--quiet", "--python"].map(Into::into).into();
        args.extend([interpreter.path.clone().into(), target.clone().into()]);
        let made = self.uv(uv, args, Vec::new()).await?;
        installed(&made)?;
        let mut args: Vec<OsString> = [
            "pip",
            "sync",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--compile-bytecode",
            "--quiet",
            "--python",
        ]
        .map(Into::into)
        .into();
        args.extend([target.join("bin").join("python").into(), lockfile.into()]);
        let mut filled = self.uv(uv, args.clone(), Vec::new()).await?;
        if filled.end != End::Exited(0) && is_network(&filled) {
            args.push("--offline".into());
            filled = self.uv(uv, args, Vec::new()).await?;
        }
        installed(&filled)?;
        // One whose interpreter has gone lies in the way.
        let _ = std::fs::remove_dir_all(place);
        std::fs::rename(&target, place).map_err(broken)
    }

    async fn uv(&self, uv: &Path, args: Vec<OsString>, stdin: Vec<u8>) -> Result<Finished, ToolError> {
        let cwd = self.folder.join("envs");
        helper(uv, args, stdin, &cwd)
            .await
            .map_err(|e| ToolError::environment("A-20", format!("{} cannot be started: {e}", uv.display())))
    }
}

/// Removes what builders that were killed have left: nobody builds for a day.
fn remove_abandoned(envs: &Path) {
    let old = |entry: &std::fs::DirEntry| {
        let modified = entry.metadata().and_then(|meta| meta.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        entry.file_name().to_string_lossy().starts_with(".new-") && age.is_some_and(|age| age > ABANDONED)
    };
    for entry in std::fs::read_dir(envs).into_iter().flatten().filter_map(Result::ok).filter(old) {
        // Another process may be removing it too.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn is_network(finished: &Finished) -> bool {
    let text = String::from_utf8_lossy(&finished.stderr).to_lowercase();
    ["failed to fetch", "error sending request", "dns error", "connect", "timed out", "offline"]
        .iter()
        .any(|sign| text.contains(sign))
}

fn succeeded(finished: &Finished, dependencies: &Dependencies) -> Result<(), ToolError> {
    if finished.end == End::Exited(0) {
        return Ok(());
    }
    let names: Vec<_> = dependencies.0.iter().map(String::as_str).collect();
    let message =
        format!("the dependencies {} cannot be resolved: {}", names.join(", "), finished.stderr_end(1500));
    Err(if is_network(finished) {
        ToolError::environment("A-20", message).help("is PyPI, or the configured index, reachable?")
    } else {
        ToolError::document("A-20", message)
            .help("correct `dependencies` in __TOOL_META__; only wheels are installed")
    })
}

fn installed(finished: &Finished) -> Result<(), ToolError> {
    if finished.end == End::Exited(0) {
        return Ok(());
    }
    let message = format!("the environment of a tool cannot be made: {}", finished.stderr_end(1500));
    Err(ToolError::environment("A-20", message))
}

#[cfg(test)]
mod tests;
