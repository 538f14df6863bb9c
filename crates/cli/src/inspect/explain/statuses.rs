//! Where the nodes of a run stand, in a word each.

use crate::inspect::Found;
use crate::status::Words;
use selvedge_engine::Graph;
use selvedge_host::Error;
use selvedge_host::explain::{At, Journal};
use selvedge_host::text::counted;
use selvedge_host::timeline::{NodeStatus, Reuse};
use selvedge_runtime::{Clock, SystemClock};
use std::sync::Arc;

/// Where each node of a run stands, in list order, and what is to be said of it beyond that.
pub(crate) struct Statuses {
    /// The graph that the run came to.
    pub(crate) graph: Arc<Graph>,
    /// In list order.
    pub(crate) nodes: Vec<(NodeStatus, String)>,
}

/// Reads them from a run's journal.
///
/// # Errors
/// If it can't be read.
pub(crate) fn statuses(found: &Found) -> Result<Statuses, Error> {
    let journal = Journal::read(&found.store, found.run(), found.driven)?;
    let (state, story) = (&journal.run.state, journal.story());
    let graph = Arc::clone(state.graph());
    let driven = state.ended().is_none() && crate::inspect::is_driven(&found.store, found.run());
    let now = SystemClock.now_ms();
    let status = |at: At| {
        let status = story.timeline.standing(story.node(at), now, driven);
        let words = match status {
            NodeStatus::Reused => story.reused(at).map(|reuse| reuse_words(&reuse)),
            NodeStatus::Skipped => story.skipped(at).map(|on| format!("skipped: may depend on {on}")),
            _ => None,
        };
        (status, words.unwrap_or_else(|| status.words().to_owned()))
    };
    Ok(Statuses { nodes: story.root().map(status).collect(), graph: Arc::clone(&graph) })
}

/// `reused from RUN`, or how much of it.
pub(super) fn reuse_words(reuse: &Reuse<'_>) -> String {
    let from = reuse.from.map_or("an earlier visit", |from| from);
    match reuse.whole() {
        true => format!("reused from {from}"),
        false => format!("{} of {} reused from {from}", reuse.calls, counted(reuse.of, "call")),
    }
}
