//! Tool files that did not say their schema: remembered beside the schemas of others, by the content of the file, so
//! that who only might come to need the tool does not wait for it again. It is forgotten after a day, and by whoever needs
//! the tool, who has it tried anew.

use super::modules::missing_module;
use crate::diag::ToolError;
use selvedge_engine::{Failure, FaultKind};
use selvedge_sandbox::files::write_whole;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Changes when what is kept changes its meaning.
const FORMAT: u32 = 1;
/// How long it holds: much of what a file needs to load lies outside of it.
const HOLDS: Duration = Duration::from_secs(86_400);
/// Seconds by which one wait may be longer than another that was the same.
const MOMENT: f64 = 0.5;
/// How long a tool file may take to say its schema.
pub(super) const SCHEMA_TIME: Duration = Duration::from_secs(30);

/// Why a schema is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unloaded {
    /// The file does not load, in the words of [`Failure`].
    Broken(String),
    /// It had not said its schema after so many seconds.
    Slow(f64),
}

#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// The interpreter that it was tried with.
    python: PathBuf,
    why: Unloaded,
}

fn place(cache: &Path, version: &str) -> PathBuf {
    cache.join(format!("{version}.unloaded.json"))
}

impl Unloaded {
    /// What a failure to say a schema tells of the file; `None` where it may be the machine's, or may pass.
    pub(super) fn of(failure: &Failure) -> Option<Self> {
        if failure.fault.kind == FaultKind::Timeout {
            return Some(Self::Slow(SCHEMA_TIME.as_secs_f64()));
        }
        let error = failure.fault.cause.as_ref().and_then(|cause| cause.get("error"));
        let said = error.and_then(|error| error.get("type")).and_then(serde_json::Value::as_str)
            == Some("tool_execution_error");
        let left = error.is_some_and(|error| error.get("exit_code").is_some());
        (!failure.transient && (said || left)).then(|| Self::Broken(failure.fault.message.clone()))
    }

    /// What is remembered of a version with this interpreter.
    pub(super) fn recall(cache: &Path, version: &str, python: &Path) -> Option<Self> {
        let place = place(cache, version);
        // A time to come is no age.
        let age = std::fs::metadata(&place).ok()?.modified().ok()?.elapsed().ok()?;
        let kept: Kept = serde_json::from_slice(&std::fs::read(&place).ok()?).ok()?;
        (age < HOLDS && kept.format == FORMAT && kept.python == python).then_some(kept.why)
    }

    /// Remembers it.
    pub(super) fn keep(&self, cache: &Path, version: &str, python: &Path) {
        let kept = Kept { format: FORMAT, python: python.to_owned(), why: self.clone() };
        if let Ok(bytes) = serde_json::to_vec(&kept) {
            // Only a memory: what could not be kept is found again.
            let _ = write_whole(&place(cache, version), &bytes);
        }
    }

    /// Forgets what is remembered of a version.
    pub(super) fn forget(cache: &Path, version: &str) {
        // Most often there is nothing.
        let _ = std::fs::remove_file(place(cache, version));
    }

    /// Whether waiting for this long is known to be in vain.
    pub(super) fn outlasts(&self, patience: Duration) -> bool {
        match self {
            Self::Broken(_) => true,
            // Who would wait a moment longer than the last one need not try either.
            Self::Slow(seconds) => *seconds + MOMENT >= patience.as_secs_f64(),
        }
    }

    /// Whether the tool has no schema at all, however long somebody waits.
    pub(super) fn is_final(&self) -> bool {
        self.outlasts(SCHEMA_TIME)
    }

    /// The error of who needs the schema.
    pub(super) fn error(&self, tool: &str, source: &Path) -> ToolError {
        let error = |why: &str| {
            ToolError::document("A-08", format!("the tool `{tool}` does not load: {why}")).at(source, None)
        };
        match self {
            Self::Broken(why) => error(why).help(missing_module(why, source).unwrap_or_default()),
            Self::Slow(seconds) => error(&format!("it had not said its schema after {seconds} s"))
                .help("what takes so long when the file is imported belongs into `run`"),
        }
    }

    /// The same where nobody has tried it just now.
    pub(super) fn remembered(&self, tool: &str, source: &Path) -> ToolError {
        let error = self.error(tool, source);
        // Where its folder was named on the command line, it has to be named again.
        let folder =
            source.parent().filter(|_| source.is_absolute()).map(|folder| folder.display().to_string());
        let folder =
            folder.filter(|folder| !folder.contains('\'')).map(|folder| format!(" --tools '{folder}'"));
        let again = format!(
            "as it was found within the last day; `selvedge tools show {tool}{}` tries it again",
            folder.unwrap_or_default()
        );
        let help = if error.help.is_empty() { again } else { format!("{}; {again}", error.help) };
        error.help(help)
    }
}
