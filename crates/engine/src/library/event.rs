//! The words of the library's journal, and what they are about.

use crate::effect::Effects;
use crate::fault::FaultKind;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Who wrote a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Author {
    /// A person: imported from a file.
    Person,
    /// A coder.
    Coder {
        /// Which coder, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        coder: Option<Arc<str>>,
        /// The model that it asked, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
    },
}

/// Whose tool it is: everybody's, or one task's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Everybody's.
    Library,
    /// The task's of this id: a run's, with the frame path of the task in it behind a `/` where that is not the document's own.
    Task(Arc<str>),
}

/// A task's version that a merge has taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The task.
    pub place: Place,
    /// Which.
    pub version: Arc<str>,
}

fn everybody() -> Place {
    Place::Library
}

fn is_everybody(place: &Place) -> bool {
    *place == Place::Library
}

/// Where a version is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Written, not looked at.
    Drafted,
    /// A valid tool.
    Validated,
    /// In use by its task alone.
    Private,
    /// A newer version took its place.
    Enhanced,
    /// In use by everybody.
    Public,
    /// Another tool does its work; its name leads there.
    Merged,
    /// Not in use any more.
    Retired,
    /// Given up for an earlier version.
    RolledBack,
}

impl Stage {
    /// Its name in the journal and in `tools list`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drafted => "drafted",
            Self::Validated => "validated",
            Self::Private => "private",
            Self::Enhanced => "enhanced",
            Self::Public => "public",
            Self::Merged => "merged",
            Self::Retired => "retired",
            Self::RolledBack => "rolled_back",
        }
    }
}

/// What validation found out about a version, without running it but for its schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What a model is told about it.
    pub description: Arc<str>,
    /// Its effects, if it declares them (E-22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// JSON Schema of its input.
    pub input_schema: Value,
    /// All of its metadata, as it was read.
    pub metadata: Value,
}

/// One call of a version, as it is kept for tests: its content lies beside the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Hash of the [`Sample`]'s JSON.
    pub sample: Arc<str>,
    /// Whether it gave an output.
    pub ok: bool,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultKind>,
    /// The run that made it, and its effect id there; a call from a file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Of a large call, the bytes of its JSON; 0 of others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Whether its content is not kept: it is only counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Which call of which run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The run.
    pub run: Arc<str>,
    /// The effect's id in it.
    pub effect: Arc<str>,
    /// The folder that relative paths of its arguments started at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Arc<str>>,
}

/// A call's content, as it stands in a line of `NAME.calls.jsonl`: arguments, and an output or a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The input object.
    pub arguments: Value,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Value>,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<SampleFault>,
    /// What it shows, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a recorded call failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleFault {
    /// The kind, which a replay compares.
    pub kind: FaultKind,
    /// What was said; it may differ in a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A field that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Sample {
    /// What is wrong with it: it has an output or a fault, not both and not neither.
    pub fn wrong(&self) -> Option<&'static str> {
        match (&self.output, &self.fault) {
            _ if !self.arguments.is_object() => Some("`arguments` must be an object"),
            (Some(_), Some(_)) => Some("a call has an `output` or a `fault`, not both"),
            (None, None) => Some("a call has an `output` or a `fault`"),
            _ => None,
        }
    }
}

/// What a replay of a version's calls came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Calls that came to the same.
    pub passed: u32,
    /// Calls that did not.
    pub failed: u32,
    /// Calls that could not be replayed, and so say nothing.
    pub skipped: u32,
    /// Why the first of those that failed did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// One line of the library's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A version was written. Its text is kept under the same hash, in the same commit.
    Drafted {
        /// For whom.
        place: Place,
        /// SHA-256 of its file.
        version: Arc<str>,
        /// Its metadata name, or what it was asked for by.
        name: Arc<str>,
        /// By whom.
        author: Author,
        /// The versions that it was made of.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parents: Vec<Arc<str>>,
        /// The versions whose work it did where it comes from (V-12).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<Arc<str>>,
        /// What caused it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        request: Value,
    },
    /// It is a tool.
    Validated {
        /// Where.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// What it says about itself.
        facts: Box<Facts>,
    },
    /// A task begins to use it.
    #[serde(rename = "private")]
    Kept {
        /// The task.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// The name that means it from now on; without one it is the version's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Arc<str>>,
    },
    /// A better version takes a tool's place, in its task.
    Enhanced {
        /// The task.
        place: Place,
        /// The name that means it.
        name: Arc<str>,
        /// The version that was in use, of the task or of everybody.
        version: Arc<str>,
        /// The better one.
        by: Arc<str>,
        /// Why it was needed.
        reason: String,
    },
    /// An execution of it succeeded.
    Proven {
        /// The task.
        place: Place,
        /// Which.
        version: Arc<str>,
    },
    /// Everybody may use it, by this name.
    Published {
        /// Where it was until now.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// The name.
        name: Arc<str>,
    },
    /// It does the work of others, whose names lead to it from now on (V-09).
    Merged {
        /// Where it was until now.
        #[serde(default = "everybody", skip_serializing_if = "is_everybody")]
        place: Place,
        /// Which.
        version: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// The names of the others.
        members: Vec<Arc<str>>,
        /// Versions of tasks whose work it does, too: they never had a name of everybody's.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<Taken>,
    },
    /// It is not in use any more; its history stays.
    Retired {
        /// Where.
        place: Place,
        /// Which.
        version: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A name means an earlier version again.
    RolledBack {
        /// The name.
        name: Arc<str>,
        /// What it meant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Arc<str>>,
        /// What it means now.
        to: Arc<str>,
        /// Why.
        reason: String,
    },
    /// It comes with what it has been elsewhere: a name has meant it, and means it no more.
    Restored {
        /// Which.
        version: Arc<str>,
        /// The name.
        name: Arc<str>,
        /// What became of it.
        stage: Stage,
        /// Why.
        reason: String,
    },
    /// A call of it is kept.
    CallRecorded {
        /// Which.
        version: Arc<str>,
        /// The call.
        call: Call,
    },
    /// Its calls were replayed.
    Tested {
        /// Which.
        version: Arc<str>,
        /// What came of it.
        report: Report,
    },
    /// A name leads to a tool of another name.
    Aliased {
        /// The name.
        alias: Arc<str>,
        /// The tool's.
        name: Arc<str>,
    },
    /// A task is over.
    TaskEnded {
        /// Which.
        task: Arc<str>,
        /// Whether it did not say so itself: its run was left as it was. Should that go on, so does the task.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left: bool,
    },
    /// What an operation of a run answered that changed the library in this commit: asked again, it answers the same (E-40).
    Answered {
        /// The run.
        run: Arc<str>,
        /// The operation's key in it.
        key: Arc<str>,
        /// SHA-256 of the answer's JSON, which is kept in the same commit.
        answer: Arc<str>,
    },
}

impl Event {
    /// Its kind as the journal has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Drafted { .. } => "drafted",
            Self::Validated { .. } => "validated",
            Self::Kept { .. } => "private",
            Self::Enhanced { .. } => "enhanced",
            Self::Proven { .. } => "proven",
            Self::Published { .. } => "published",
            Self::Merged { .. } => "merged",
            Self::Retired { .. } => "retired",
            Self::RolledBack { .. } => "rolled_back",
            Self::Restored { .. } => "restored",
            Self::CallRecorded { .. } => "call_recorded",
            Self::Tested { .. } => "tested",
            Self::Aliased { .. } => "aliased",
            Self::TaskEnded { .. } => "task_ended",
            Self::Answered { .. } => "answered",
        }
    }
}
