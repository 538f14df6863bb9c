//! What may be asked of the library.

use super::{Author, Call, Facts, Place, Report, Stage, Taken};
use serde_json::Value;
use std::sync::Arc;

/// What somebody wants of the library.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A version was written.
    Draft {
        /// For whom.
        place: Place,
        /// SHA-256 of its text, in lower-case hex.
        version: Arc<str>,
        /// Its metadata name.
        name: Arc<str>,
        /// By whom.
        author: Author,
        /// What it was made of.
        parents: Vec<Arc<str>>,
        /// The versions whose work it did where it comes from (V-12).
        members: Vec<Arc<str>>,
        /// What caused it.
        request: Value,
    },
    /// A draft was found to be a tool.
    Validate {
        /// Where it was drafted.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// What it says about itself.
        facts: Facts,
    },
    /// A task begins to use a new tool.
    Keep {
        /// The task's id.
        task: Arc<str>,
        /// A validated version.
        version: Arc<str>,
        /// The name that is to mean it; `None` for its own.
        name: Option<Arc<str>>,
    },
    /// A task replaces a tool that it uses, its own or a public one, by a better version.
    Enhance {
        /// The task's id.
        task: Arc<str>,
        /// The name that means the old version.
        name: Arc<str>,
        /// A validated version.
        by: Arc<str>,
        /// Why.
        reason: String,
    },
    /// An execution of a task's own tool succeeded.
    Prove {
        /// The task's id.
        task: Arc<str>,
        /// Which.
        version: Arc<str>,
    },
    /// Everybody may use a version: a proven one of a task, or a validated one that was drafted for everybody.
    Publish {
        /// Where it is.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// The name; `None` for its own.
        name: Option<Arc<str>>,
    },
    /// A version does the work of several public tools from here on (V-09).
    Merge {
        /// Where it is: validated for everybody or public already, or a proven one of a task.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// Its name; it may be that of a member.
        name: Arc<str>,
        /// Public names.
        members: Vec<Arc<str>>,
        /// Proven versions of tasks, whose work it does, too.
        taken: Vec<Taken>,
    },
    /// A version is not to be used any more.
    Retire {
        /// Where.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A public name is to mean an earlier version again.
    Rollback {
        /// The name.
        name: Arc<str>,
        /// Which of those that it has meant.
        to: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A version that a name meant in another library is to be what it was there: any stage after its time.
    Restore {
        /// Validated for everybody.
        version: Arc<str>,
        /// The name.
        name: Arc<str>,
        /// Enhanced, merged, retired or rolled back.
        stage: Stage,
        /// Why it became that.
        reason: String,
    },
    /// A call is to be kept for tests; one too many, too large or known already is left out without an error.
    Record {
        /// Which version was called.
        version: Arc<str>,
        /// The call.
        call: Call,
        /// The size of its sample, in bytes of JSON.
        bytes: usize,
    },
    /// The calls of a version were replayed.
    Test {
        /// Which.
        version: Arc<str>,
        /// What came of it.
        report: Report,
    },
    /// Another name for a public tool.
    Alias {
        /// A name that no tool has.
        alias: Arc<str>,
        /// A public name.
        name: Arc<str>,
    },
    /// A task is over: what is not proven is retired; what is proven becomes public, or stays the task's own.
    EndTask {
        /// The task's id.
        task: Arc<str>,
        /// Whether the proven ones become public.
        publish: bool,
        /// Whether its run was left as it was: the task goes on if the run does.
        left: bool,
    },
    /// A task goes on that was over because its run had been left: what was retired for that is in use again.
    ResumeTask {
        /// The task's id.
        task: Arc<str>,
    },
    /// A task begins with what another one's names meant at a time: with what their runs have in common.
    TakeOver {
        /// The task's id: it has no tools yet.
        task: Arc<str>,
        /// The other one's.
        from: Arc<str>,
        /// The time, in milliseconds since 1970 (UTC).
        until: i64,
    },
    /// What an operation of a run answers that changes the library (E-40).
    Answer {
        /// The run.
        run: Arc<str>,
        /// The operation's key in it.
        key: Arc<str>,
        /// SHA-256 of the answer's JSON.
        answer: Arc<str>,
    },
}

/// Why a command is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Stable name of the reason, in kebab case.
    pub code: &'static str,
    /// What is wrong and why.
    pub message: String,
}

pub(super) fn refused<T>(code: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { code, message: message.into() })
}
