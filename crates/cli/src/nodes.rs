//! How many nodes of a run have come how far.

use crate::status::{ALL, Words as _};
use selvedge_host::text::counted;
use selvedge_host::timeline::{NodeStatus, Tally};

/// How many nodes of the document's own graph have come how far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Progress {
    /// Those that ended well.
    pub(crate) done: usize,
    pub(crate) failed: usize,
    /// Those that do not run, because of one that failed.
    pub(crate) skipped: usize,
    /// All of them.
    pub(crate) of: usize,
}

/// `8 nodes ran, 1 failed, 1 on a branch not taken`.
pub(crate) fn told(tally: &Tally) -> String {
    let mut text = format!("{} ran", counted(tally.count(NodeStatus::Done), "node"));
    for status in ALL.into_iter().filter(|status| *status != NodeStatus::Done) {
        let count = tally.count(status);
        if count > 0 {
            text.push_str(&format!(", {}", status.counted(count)));
        }
    }
    text
}
