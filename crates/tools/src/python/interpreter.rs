//! Finding a Python that is there: none is ever downloaded.

use crate::diag::ToolError;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::files::write_whole;
use selvedge_sandbox::process::{End, Launch, run};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The oldest Python that current pydantic runs on.
pub const OLDEST: (u32, u32) = (3, 9);

const PROBE: &str = "import sys, json
json.dump({'path': getattr(sys, '_base_executable', None) or sys.executable,
           'version': list(sys.version_info[:2]),
           'homes': sorted({sys.base_prefix, sys.base_exec_prefix})}, sys.stdout)";

/// A Python interpreter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interpreter {
    /// The executable itself, no launcher and no link of a virtual environment.
    pub path: PathBuf,
    /// Major and minor version.
    pub version: (u32, u32),
    /// The folders that its library lies in: a sandbox has to show them.
    pub homes: Vec<PathBuf>,
}

/// What is kept between processes, so that a warm start asks no interpreter.
#[derive(Serialize, Deserialize)]
struct Kept {
    asked_for: Option<PathBuf>,
    found: Interpreter,
    size: u64,
    modified: u64,
}

/// Finds the interpreter: the configured one, else the first usable on PATH. The answer is kept in
/// `folder/python.json` and holds as long as that executable does not change.
///
/// # Errors
/// No usable Python (`Environment`); the error lists what was tried.
pub async fn find(
    asked_for: Option<&Path>,
    folder: &Path,
    env: &ProcessEnv,
) -> Result<Interpreter, ToolError> {
    let file = folder.join("python.json");
    if let Some(found) = kept(&file, asked_for) {
        return Ok(found);
    }
    let mut tried = Vec::new();
    for candidate in candidates(asked_for, env) {
        match probe(&candidate, env).await {
            Ok(found) if found.version >= OLDEST => {
                keep(&file, asked_for, &found);
                return Ok(found);
            }
            Ok(found) => {
                tried.push(format!("{} is {}.{}", candidate.display(), found.version.0, found.version.1))
            }
            Err(why) => tried.push(format!("{}: {why}", candidate.display())),
        }
    }
    let tried = if tried.is_empty() { "none is on PATH".to_owned() } else { tried.join("; ") };
    let message = format!("Python tools need Python {}.{} or newer: {tried}", OLDEST.0, OLDEST.1);
    Err(ToolError::environment("A-20", message).help("install Python 3, or name one in the configuration"))
}

fn kept(file: &Path, asked_for: Option<&Path>) -> Option<Interpreter> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let (size, modified) = stamp(&kept.found.path)?;
    let same = kept.asked_for.as_deref() == asked_for && kept.size == size && kept.modified == modified;
    same.then_some(kept.found)
}

fn keep(file: &Path, asked_for: Option<&Path>, found: &Interpreter) {
    if let Some((size, modified)) = stamp(&found.path) {
        let kept = Kept { asked_for: asked_for.map(Path::to_owned), found: found.clone(), size, modified };
        if let Ok(bytes) = serde_json::to_vec(&kept) {
            // Only a cache: without it, the next start asks again.
            let _ = write_whole(file, &bytes);
        }
    }
}

fn stamp(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((meta.len(), modified.as_secs()))
}

fn candidates(asked_for: Option<&Path>, env: &ProcessEnv) -> Vec<PathBuf> {
    if let Some(path) = asked_for {
        return vec![path.to_owned()];
    }
    let names = [
        "python3",
        "python",
        "python3.14",
        "python3.13",
        "python3.12",
        "python3.11",
        "python3.10",
        "python3.9",
    ];
    let folders: Vec<_> = env.search_path().collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for name in names {
        for path in folders.iter().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

async fn probe(path: &Path, env: &ProcessEnv) -> Result<Interpreter, String> {
    let args = ["-I", "-S", "-c", PROBE].map(Into::into).into();
    // Launchers of version managers need their own variables.
    let environment = env.with([]);
    let launch = Launch {
        timeout: Duration::from_secs(20),
        output_bytes: 64 << 10,
        ..Launch::own(path.to_owned(), args, environment, env.temporary())
    };
    let finished = run(launch).await.map_err(|e| e.to_string())?;
    if finished.end != End::Exited(0) {
        return Err(format!("{:?} {}", finished.end, finished.stderr_end(200)));
    }
    serde_json::from_slice(&finished.stdout).map_err(|e| e.to_string())
}
