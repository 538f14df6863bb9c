//! What is configured about a server (C-14).

use selvedge_engine::Effects;
use selvedge_http::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A value that may hold a key: it does not print (C-06).
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// A program that is started here and speaks on its stdin and stdout.
    Command {
        /// The program: a name on PATH, or a path; one with a `/` starts at `dir`.
        program: String,
        /// Its arguments.
        args: Vec<Hidden>,
        /// Variables it gets besides the few of a clean environment, by name.
        env: BTreeMap<String, Hidden>,
        /// Where it runs.
        dir: PathBuf,
    },
    /// An address that speaks streamable HTTP, or what there was before it.
    Url {
        /// The address, `https://host/mcp`.
        url: Hidden,
        /// Headers that every request has, by name.
        headers: BTreeMap<String, Hidden>,
        /// Whether it speaks the transport of 2024-11-05, HTTP with SSE. Else that is tried where streamable HTTP is refused.
        sse: bool,
    },
    /// Nowhere: its entry in a shared file is wrong. Who names a tool of it is told so.
    Wrong {
        /// What is wrong.
        why: String,
        /// What to do about it; may be empty.
        help: String,
        /// Where it stands: `servers.json:3`.
        place: String,
    },
    /// Nowhere: `disabled = true`. It is not started, and who names a tool of it is told so.
    Off {
        /// Where that stands: `selvedge.toml:3`.
        place: String,
    },
}

/// Effects that the user declares in place of what a server says of its tools (E-22).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectsRule {
    /// Of all tools.
    pub all: Option<Effects>,
    /// Of single tools, by the server's names; before `all`.
    pub by_tool: BTreeMap<String, Effects>,
}

impl EffectsRule {
    /// What the user says about a tool.
    pub fn of(&self, tool: &str) -> Option<Effects> {
        self.by_tool.get(tool).copied().or(self.all)
    }
}

/// One `[mcp.servers.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// The table's name: what the names of its tools begin with.
    pub name: Arc<str>,
    /// Where it is.
    pub reached: Reached,
    /// What the user says about the effects of its tools.
    pub effects: EffectsRule,
    /// Seconds a call may take, and again after each progress that the server tells of.
    pub timeout_s: Option<f64>,
    /// How long a call may take in all, however much progress is told of.
    pub max_timeout: Duration,
    /// How long it may take from its start until it has said what tools it has.
    pub start_timeout: Duration,
    /// Keys among all that: they are in no message (C-06).
    pub secrets: Vec<Secret>,
    /// Those of them that nothing says to be keys but that they came out of the environment: what a person writes may have them.
    pub given: Vec<Secret>,
    /// Variables that the configuration names and that are not set: the server can't be started.
    pub unset: Vec<String>,
}

impl McpServer {
    /// The time limit of starts when the configuration sets none: programs are often fetched when they are first run.
    pub const START_TIMEOUT: Duration = Duration::from_secs(60);

    /// The time limit of calls that tell of progress when the configuration sets none.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

    /// Where it is switched off, if it is.
    pub(crate) fn off(&self) -> Option<&str> {
        match &self.reached {
            Reached::Off { place } => Some(place),
            _ => None,
        }
    }

    /// A text without the keys that this server was given.
    pub(super) fn clean(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text).into_owned())
    }
}
