//! What a tool printed while it ran.

use serde::{Deserialize, Serialize};

/// What a tool printed during one call: the end of each stream, for people. Nothing in a run depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    /// The end of what it wrote to stdout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Bytes of stdout before that, which are not kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stdout_cut: u64,
    /// The end of what it wrote to stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Bytes of stderr before that, which are not kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stderr_cut: u64,
}

impl Printed {
    /// The most bytes that are kept of one stream.
    pub const MOST: usize = 16 << 10;

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The streams with something in them: name, end, and the bytes that are not kept.
    pub fn streams(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        let all = [("stdout", &*self.stdout, self.stdout_cut), ("stderr", &*self.stderr, self.stderr_cut)];
        all.into_iter().filter(|(_, text, cut)| !text.is_empty() || *cut > 0)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}
