//! What tasks are told apart by.

use selvedge_store::BlobHash;
use std::fmt;

/// What tells tasks apart, and their runs are called by: of an id and a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Key {
    pub(crate) fn of(task_id: &str, line: &str) -> Self {
        let hash =
            BlobHash::of(format!("{}\0{task_id}\0{}", task_id.len(), line.trim()).as_bytes()).to_string();
        let number = hash.get(..16).and_then(|half| u64::from_str_radix(half, 16).ok());
        Self(number.unwrap_or_default().max(1))
    }

    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The key of the task of a run, which its id ends with.
    pub fn of_run(run: &str) -> Option<Self> {
        let text = run.rsplit('-').next().filter(|text| text.len() == 16)?;
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}
