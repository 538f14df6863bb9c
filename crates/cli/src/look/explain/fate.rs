//! Where the nodes of a run stand, in a word each.

use super::story::{self, Story};
use crate::commands::run::now_ms;
use crate::look::Found;
use selvedge_engine::{Graph, Ix, NodeIx};
use selvedge_host::Error;
use std::collections::HashSet;
use std::sync::Arc;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fate {
    /// It ended well.
    Ran,
    /// It took what another run, or an earlier visit, had recorded, and ran nothing.
    Reused,
    /// It failed.
    Failed,
    /// It has started and not ended.
    Running,
    /// It had begun, and nobody drives the run any more.
    Stopped,
    /// A call of it that failed is tried again after a while.
    Again,
    /// A person is asked for it.
    Asks,
    /// Its calls have not had their turn under the limits on parallel calls; only who drives the run knows it.
    Queued,
    /// It has not started.
    Waits,
    /// It does not run, because of a node that failed.
    Skipped,
}

impl Fate {
    /// All, in the order of a legend.
    pub(crate) const ALL: [Self; 10] = [
        Self::Ran,
        Self::Reused,
        Self::Failed,
        Self::Running,
        Self::Stopped,
        Self::Again,
        Self::Asks,
        Self::Queued,
        Self::Waits,
        Self::Skipped,
    ];

    /// The word for it in JSON and in drawings, where it is the name of a class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Reused => "reused",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Again => "again",
            Self::Asks => "asks",
            Self::Queued => "queued",
            Self::Waits => "waits",
            Self::Skipped => "skipped",
        }
    }

    /// The same for people: the words of the live view, of `--follow`, `graph` and `explain`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Again => "tries again",
            Self::Asks => "asks a person",
            Self::Waits => "not started",
            other => other.name(),
        }
    }

    /// So many nodes, `2 try again`.
    pub(crate) fn counted(self, nodes: usize) -> String {
        let words = match self {
            Self::Again if nodes != 1 => "try again",
            Self::Asks if nodes != 1 => "ask a person",
            other => other.words(),
        };
        format!("{nodes} {words}")
    }
}

/// Where each node of a run stands, in list order, and what is to be said of it beyond that.
pub(crate) struct Fates {
    /// The graph that the run came to.
    pub(crate) graph: Arc<Graph>,
    /// In list order.
    pub(crate) nodes: Vec<(Fate, String)>,
}

/// Reads them from a run's journal.
///
/// # Errors
/// If it can't be read.
pub(crate) fn fates(found: &Found) -> Result<Fates, Error> {
    let (state, story) = story::read(found)?;
    let asked: HashSet<NodeIx> = match state.ended() {
        None => state.asks().values().map(|ask| state.outermost(ask.node)).collect(),
        Some(_) => HashSet::new(),
    };
    let graph = Arc::clone(state.graph());
    let driven = state.ended().is_none() && crate::look::is_driven(&found.store, found.run());
    let waiting = |node: NodeIx| {
        let mut waits = state.pending().values().filter(|pending| state.outermost(pending.node) == node);
        let now = now_ms();
        waits.next().is_some_and(|first| {
            first.wait.left_ms(now) > 0 && waits.all(|pending| pending.wait.left_ms(now) > 0)
        })
    };
    let nodes = graph.nodes.indices().map(|node| {
        let again = driven && !state.pending().is_empty() && waiting(node);
        fate(&story, node, asked.contains(&node), driven, again)
    });
    Ok(Fates { nodes: nodes.collect(), graph: Arc::clone(&graph) })
}

fn fate(story: &Story, node: NodeIx, asked: bool, driven: bool, again: bool) -> (Fate, String) {
    let plain = |fate: Fate| (fate, fate.words().to_owned());
    let Some(told) = story.nodes.get(node.get()) else { return plain(Fate::Waits) };
    let reused = story.reused(node).filter(story::Reused::whole);
    match (told.started, told.ended, reused) {
        (_, Some(_), _) if told.failed => plain(Fate::Failed),
        (_, Some(_), Some(reused)) => (Fate::Reused, reused.told()),
        (_, Some(_), None) => plain(Fate::Ran),
        _ if told.skipped.is_some() => {
            let because = told.skipped.as_deref().unwrap_or_default();
            (Fate::Skipped, format!("skipped: may depend on {because}"))
        }
        _ if asked => plain(Fate::Asks),
        (Some(_), ..) if again => plain(Fate::Again),
        (Some(_), ..) if driven => plain(Fate::Running),
        (Some(_), ..) => plain(Fate::Stopped),
        (None, ..) => plain(Fate::Waits),
    }
}
