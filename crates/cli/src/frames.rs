//! Paths and iterations in words: how many there are, and what became of them.

use crate::status::Words as _;
use selvedge_host::text::counted;
use selvedge_host::timeline::{Inner, NodeStatus, Visit};

/// "3 paths: 1 done, 1 going on, 1 failed", "64 of 100 iterations"; nothing of what opens one frame or none. `total`: how many
/// iterations there are, where that is known.
pub(crate) fn counts(inner: &Inner, total: Option<u32>) -> Option<String> {
    match (inner.paths, inner.iteration) {
        (Some(paths), _) => Some(format!("{}: {}", counted(paths, "path"), standing(inner))),
        (None, Some(last)) => {
            let begun = last.saturating_add(1);
            Some(match total.filter(|total| *total > 0) {
                Some(total) => format!("{begun} of {}", counted(total.max(begun), "iteration")),
                None => counted(begun, "iteration"),
            })
        }
        _ => None,
    }
}

/// The same of a node that has ended: "3 paths", "3 paths: 2 done, 1 failed", "100 iterations".
pub(crate) fn came_to(visit: &Visit) -> Option<String> {
    let inner = &visit.frames;
    match inner.paths.and_then(|paths| usize::try_from(paths).ok()) {
        Some(paths) if inner.completed.len() < paths => counts(inner, None),
        _ => inner.paths.map(|paths| counted(paths, "path")).or_else(|| counts(inner, None)),
    }
}

/// "1 done, 1 going on, 1 failed".
fn standing(inner: &Inner) -> String {
    let asking = inner.asking.len();
    let going_on = inner.open.len().saturating_sub(asking);
    let parts = [
        (asking, NodeStatus::Asking.counted(asking)),
        (going_on, format!("{going_on} going on")),
        (inner.completed.len(), format!("{} done", inner.completed.len())),
        (inner.failed.len(), NodeStatus::Failed.counted(inner.failed.len())),
        (inner.cancelled.len(), format!("{} cut off", inner.cancelled.len())),
        (inner.not_begun(), NodeStatus::NotStarted.counted(inner.not_begun())),
    ];
    listed(parts)
}

/// Those of which there are any, one behind the other.
pub(crate) fn listed(parts: impl IntoIterator<Item = (usize, String)>) -> String {
    let told: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
    told.join(", ")
}
