//! Where the nodes stand that are in a run's frames: paths, iterations, inner documents.

use super::shapes::{Address, EACH};
use crate::inspect::{Found, is_driven, timeline};
use selvedge_host::Error;
use selvedge_host::timeline::{NodeStatus, NodeTimeline, Timeline, Which};
use selvedge_runtime::{Clock, SystemClock};
use std::sync::Arc;

/// A node on a path, in an iteration or in an inner document.
pub(super) struct InnerNode {
    /// Where it is drawn.
    pub(super) address: Address,
    /// What reports call it (W-03).
    pub(super) name: String,
    pub(super) status: NodeStatus,
}

/// Returns the nodes in frames that something happened to, and where the others stand.
///
/// # Errors
/// If the journal can't be read.
pub(super) fn inner(found: &Found) -> Result<(Vec<InnerNode>, NodeStatus), Error> {
    let (state, timeline) = timeline::read(found, None, |_, _| {})?;
    let driven = state.ended().is_none() && is_driven(&found.store, found.run());
    let now = SystemClock.now_ms();
    let status = |node: &NodeTimeline| timeline.standing(Some(node), now, driven);
    let inner = timeline.nodes().iter().filter(|node| node.within > 0);
    let shown = |node: &NodeTimeline| InnerNode {
        address: address(&timeline, node),
        name: timeline.told(node).into_owned(),
        status: status(node),
    };
    Ok((inner.map(shown).collect(), timeline.status(None, now)))
}

fn address(timeline: &Timeline, node: &NodeTimeline) -> Address {
    let mut address = vec![node.node.clone()];
    let mut within = node.within;
    while let Some((frame, opener)) =
        timeline.frames().get(within).and_then(|frame| Some((frame, timeline.nodes().get(frame.opener?)?)))
    {
        // The paths of a fork over a list are drawn as one.
        let listed = matches!(&frame.which, Some(Which::Path(_))) && listed(timeline, opener);
        let which = match &frame.which {
            Some(Which::Path(path)) if listed => path.clone(),
            _ => Arc::from(EACH),
        };
        address.extend([which, opener.node.clone()]);
        within = opener.within;
    }
    address.reverse();
    address
}

fn listed(timeline: &Timeline, opener: &NodeTimeline) -> bool {
    use selvedge_engine::graph::{Act, PathsOf};
    let leaves = timeline.def(opener).into_iter().flat_map(|node| node.body.leaves.values());
    leaves.into_iter().any(|leaf| match &leaf.act {
        Act::Fork(paths) => matches!(paths.of, PathsOf::Listed(_)),
        _ => false,
    })
}
