//! `uv`: found on PATH, or taken once from its wheel on PyPI into the shared cache.

use crate::diag::ToolError;
use crate::progress::Progress;
use crate::python::interpreter::Interpreter;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::process::{self, End, Finished, Launch};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Downloads and checks the wheel without pip, which some systems leave out of Python.
const FETCH: &str = include_str!("fetch_uv.py");

/// How long a download or a build may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(900);

/// What `uv` reads of a project.
const PROJECT: [&str; 2] = ["uv.toml", "pyproject.toml"];
/// Variables that would send packages elsewhere, change what an interpreter imports, or name a project.
const ELSEWHERE: [&str; 9] = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "UV_TARGET",
    "UV_SYSTEM_PYTHON",
    "UV_PROJECT",
    "UV_WORKING_DIR",
    "UV_WORKING_DIRECTORY",
];

/// Waits for an exclusive lock on a file, across processes; dropping the file releases it.
///
/// # Errors
/// When the file cannot be made or locked.
pub(super) async fn lock(path: &Path, progress: &Progress) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(30)).await,
            Err(TryLockError::Error(e)) => return Err(e),
        }
        if !std::mem::replace(&mut told, true) {
            progress("waiting for another process that prepares the same for Python tools");
        }
    }
}

/// Runs `uv` with the user's own configuration, and none of a project: a `uv.toml` or `pyproject.toml` in or above the folder
/// in which it is started is read as well, and whoever may write above the cache would say where packages come from.
pub(super) async fn run(
    uv: &Path,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    patience: Duration,
    env: &ProcessEnv,
) -> io::Result<Finished> {
    // There is nothing above it, and a file of such a name in it is not the user's.
    let root = Path::new("/");
    let any = PROJECT.iter().any(|name| root.join(name).symlink_metadata().is_ok());
    let none = any.then(|| ("UV_NO_CONFIG".into(), Some("1".into())));
    helper(uv, args, (stdin, root), patience, none, env).await
}

/// Runs a program of ours, with this process's variables (proxies, certificates, indexes) and one more, in `cwd`, for as long as
/// `patience`: then it is ended with all that it started.
async fn helper(
    program: &Path,
    args: Vec<OsString>,
    (stdin, cwd): (Vec<u8>, &Path),
    patience: Duration,
    more: Option<(OsString, Option<OsString>)>,
    env: &ProcessEnv,
) -> io::Result<Finished> {
    let mut changes: Vec<(OsString, Option<OsString>)> = vec![
        ("UV_PYTHON_DOWNLOADS".into(), Some("never".into())),
        ("UV_NO_PROGRESS".into(), Some("1".into())),
        ("NO_COLOR".into(), Some("1".into())),
        // By us, without running anything of them (`environment::compile`).
        ("UV_COMPILE_BYTECODE".into(), None),
    ];
    // As everything here (C-06), `uv` trusts whom the system trusts; it comes with roots of its own.
    if env.variable("UV_SYSTEM_CERTS").is_none() {
        changes.push(("UV_SYSTEM_CERTS".into(), Some("1".into())));
    }
    changes.extend(more);
    changes.extend(ELSEWHERE.iter().map(|name| (name.into(), None)));
    process::run(Launch {
        stdin,
        timeout: patience,
        bound: true,
        ..Launch::own(program.to_owned(), args, env.with(changes), cwd.to_owned())
    })
    .await
}

/// What `uv` or `pip` has said last, as one line without the drawing around it (C-04).
pub(super) fn said(finished: &Finished, bytes: usize) -> String {
    let text = finished.stderr_end(bytes);
    let drawn = |c: char| c.is_whitespace() || c.is_control() || "×╰├│─▶".contains(c);
    let mut line = String::new();
    for part in text.lines().map(|part| part.trim_matches(drawn)).filter(|part| !part.is_empty()) {
        let heading = ["hint:", "cause:", "error:"].iter().any(|head| part.to_lowercase().starts_with(head));
        line.push_str(match () {
            () if line.is_empty() => "",
            () if heading && !line.ends_with(['.', ';']) => "; ",
            () => " ",
        });
        line.push_str(part);
    }
    line
}

/// The `uv` executable: on PATH, else under `folder/uv`, else fetched there.
///
/// # Errors
/// It is not there and cannot be fetched (`Environment`).
pub async fn ensure(
    folder: &Path,
    python: &Interpreter,
    progress: &Progress,
    env: &ProcessEnv,
) -> Result<PathBuf, ToolError> {
    match on_path(env) {
        Some(found) => Ok(found),
        None => fetched(folder, python, progress, env).await,
    }
}

/// The `uv` under `folder/uv`, fetched from PyPI if it is not there; safe against other processes doing the same.
///
/// # Errors
/// It cannot be fetched (`Environment`).
pub async fn fetched(
    folder: &Path,
    python: &Interpreter,
    progress: &Progress,
    env: &ProcessEnv,
) -> Result<PathBuf, ToolError> {
    let home = folder.join("uv");
    let executable = home.join("bin").join("uv");
    if is_executable(&executable) {
        return Ok(executable);
    }
    let failed = |why: String| {
        ToolError::environment("A-20", format!("`uv`, which builds the environments of Python tools, is not on PATH and could not be fetched from PyPI: {why}"))
            .help("install it (`pip install uv`), or run once with access to PyPI")
    };
    let _lock = lock(&folder.join("uv.lock"), progress).await.map_err(|e| failed(e.to_string()))?;
    if is_executable(&executable) {
        return Ok(executable);
    }
    progress("fetching uv from PyPI");
    let place =
        tempfile::Builder::new().prefix(".uv-").tempdir_in(folder).map_err(|e| failed(e.to_string()))?;
    if let Err(by_pip) = with_pip(python, place.path(), env).await {
        with_urllib(python, place.path(), env)
            .await
            .map_err(|e| failed(format!("{e}; with pip: {by_pip}")))?;
    }
    // A half-made one of an earlier crash would stop the rename.
    let _ = std::fs::remove_dir_all(&home);
    std::fs::rename(place.path(), &home).map_err(|e| failed(e.to_string()))?;
    Ok(executable)
}

/// By pip, which knows the user's index; `--target` also works where the system's Python refuses installs.
async fn with_pip(python: &Interpreter, place: &Path, env: &ProcessEnv) -> Result<(), String> {
    let mut args: Vec<OsString> =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
            .map(Into::into)
            .into();
    args.extend(["--only-binary", ":all:", "uv", "--target"].map(OsString::from));
    args.push(place.into());
    finish(python, args, place, env).await
}

/// By PyPI's own index, checked against its sha256, with nothing but Python's library.
///
/// # Errors
/// What went wrong, as text.
pub async fn with_urllib(python: &Interpreter, place: &Path, env: &ProcessEnv) -> Result<(), String> {
    let args = vec!["-I".into(), "-c".into(), FETCH.into(), place.into()];
    finish(python, args, place, env).await
}

async fn finish(
    python: &Interpreter,
    args: Vec<OsString>,
    place: &Path,
    env: &ProcessEnv,
) -> Result<(), String> {
    let finished = helper(&python.path, args, (Vec::new(), place), PATIENCE, None, env)
        .await
        .map_err(|e| e.to_string())?;
    if finished.end != End::Exited(0) {
        return Err(said(&finished, 500));
    }
    if is_executable(&place.join("bin").join("uv")) {
        Ok(())
    } else {
        Err("the package has no executable".into())
    }
}

fn on_path(env: &ProcessEnv) -> Option<PathBuf> {
    env.search_path().map(|folder| folder.join("uv")).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
