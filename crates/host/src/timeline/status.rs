//! Where the nodes of a run stand.

use super::Timeline;
use super::history::{Attempt, NodeTimeline};
use selvedge_engine::End;
use serde::Serialize;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// It ended well.
    Done,
    /// It took what another run, or an earlier visit, had recorded, and ran nothing.
    Reused,
    /// It failed.
    Failed,
    /// It has started and not ended.
    Running,
    /// It had begun, and nobody drives the run any more.
    Stopped,
    /// It had begun, and goes on once a question to a person is answered that is asked elsewhere in the run.
    Waiting,
    /// A call of it that failed is tried again after a while.
    Retrying,
    /// A person is asked for it.
    Asking,
    /// Its calls have not had their turn under the limits on parallel calls; only who drives the run knows it.
    Queued,
    /// It has not started.
    NotStarted,
    /// It never started, and the run has completed: it is on a branch that was not taken.
    NotTaken,
    /// It does not run, because of a node that failed.
    Skipped,
    /// It was cut off with the run, the path or the iteration that it is in.
    Cancelled,
}

impl Timeline {
    /// Where a node stands at the time `now`, as far as the journal tells: `None` is one that nothing happened to.
    pub fn status(&self, node: Option<&NodeTimeline>, now: i64) -> NodeStatus {
        let unstarted = match self.ended {
            Some(End::Completed) => NodeStatus::NotTaken,
            _ => NodeStatus::NotStarted,
        };
        let Some(node) = node else { return unstarted };
        let visit = node.current();
        match visit {
            Some(visit) if visit.cancelled => return NodeStatus::Cancelled,
            Some(visit) if visit.fault.is_some() => return NodeStatus::Failed,
            Some(visit) if visit.ended.is_some() => {
                let reused = self.reuse(node).is_some_and(|reuse| reuse.whole());
                return if reused { NodeStatus::Reused } else { NodeStatus::Done };
            }
            _ if node.skipped.is_some() => return NodeStatus::Skipped,
            _ => {}
        }
        if self.ended.is_none() && self.open_questions(node).next().is_some() {
            return NodeStatus::Asking;
        }
        if visit.is_none_or(|visit| visit.started.is_none()) {
            return unstarted;
        }
        match self.ended {
            Some(End::Cancelled) => return NodeStatus::Cancelled,
            Some(_) => return NodeStatus::Stopped,
            None => {}
        }
        let mut open = self.open_attempts(node);
        let later = |attempt: &Attempt| attempt.due() > now;
        match open.next() {
            Some(first) if later(first) && open.all(later) => NodeStatus::Retrying,
            _ => NodeStatus::Running,
        }
    }
}

impl Timeline {
    /// The same of a run that goes on only if somebody drives it.
    pub fn standing(&self, node: Option<&NodeTimeline>, now: i64, driven: bool) -> NodeStatus {
        match self.status(node, now) {
            NodeStatus::Running | NodeStatus::Retrying if !driven => {
                let held = node.is_some_and(|node| self.open_attempts(node).next().is_none());
                if held && self.has_questions() { NodeStatus::Waiting } else { NodeStatus::Stopped }
            }
            status => status,
        }
    }
}

impl Attempt {
    /// When it is dispatched, by the journal's times.
    pub fn due(&self) -> i64 {
        self.requested.at.saturating_add(i64::try_from(self.after_ms).unwrap_or(i64::MAX))
    }
}
