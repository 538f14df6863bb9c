//! What a person trusts, or does not: a part of a file, or the runs of a folder (C-20).

use serde::Serialize;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// It starts a program, which nothing isolates.
    Start,
    /// It sends what is asked, and maybe a key, to an address.
    Send,
    /// It gives tools more than they have.
    Allow,
}

/// One part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Where it stands: `mcp.servers.files`. As it is there: to be escaped where it is shown.
    pub name: String,
    /// What it does.
    pub does: Does,
    /// The same in words, without keys.
    pub what: String,
    /// The line where it begins.
    pub line: u32,
    /// SHA-256 of its content, in a form that does not depend on how it is written.
    #[serde(skip)]
    pub hash: String,
}

impl Part {
    /// The line where it begins, if that is known.
    pub(crate) fn place(&self) -> Option<u32> {
        Some(self.line).filter(|line| *line > 0)
    }
}
