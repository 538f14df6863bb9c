//! How many nodes of a run have come how far.

use selvedge_engine::{NodeView, State};

/// How many nodes of a run have come how far: whoever says it says the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Those that ended well.
    pub(crate) done: usize,
    pub(crate) failed: usize,
    /// Those that do not run, because of one that failed.
    pub(crate) skipped: usize,
    /// Those that have started and not ended, if that is to be told.
    pub(crate) begun: usize,
    /// Those that have neither started nor been skipped, if that is to be told.
    pub(crate) not_started: usize,
    /// All of them.
    pub(crate) of: usize,
}

impl Tally {
    /// Also of what ran ahead, and is kept for a resume.
    pub(crate) fn of(state: &State) -> Self {
        let mut tally = Self::default();
        for view in state.node_views() {
            tally.of += 1;
            match view {
                NodeView { skipped: true, .. } => tally.skipped += 1,
                NodeView { failed: true, .. } => tally.failed += 1,
                NodeView { ended: Some(_), .. } => tally.done += 1,
                NodeView { started: 0, .. } => tally.not_started += 1,
                _ => tally.begun += 1,
            }
        }
        tally
    }

    /// `2 of 6 nodes done, 1 failed, 1 skipped, 1 begun, 1 not started`; where `nodes` is said already, without the word.
    pub(crate) fn told(&self, nodes: &str) -> String {
        let mut text = format!("{} of {}{nodes} done", self.done, self.of);
        for (count, what) in [
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.begun, "begun"),
            (self.not_started, "not started"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }
}
