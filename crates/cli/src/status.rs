//! Where the nodes of a run stand, in a word each: the words of the live view, of `--follow`, `graph` and `explain`.

use selvedge_host::timeline::NodeStatus;

/// All, in the order of a legend.
pub(crate) const ALL: [NodeStatus; 13] = [
    NodeStatus::Done,
    NodeStatus::Reused,
    NodeStatus::Failed,
    NodeStatus::Running,
    NodeStatus::Stopped,
    NodeStatus::Waiting,
    NodeStatus::Retrying,
    NodeStatus::Asking,
    NodeStatus::Queued,
    NodeStatus::NotStarted,
    NodeStatus::NotTaken,
    NodeStatus::Skipped,
    NodeStatus::Cancelled,
];

/// Where a node stands, in words.
pub(crate) trait Words: Sized {
    /// The word for it in JSON and in drawings, where it is the name of a class.
    fn name(self) -> &'static str;
    /// The same for people.
    fn words(self) -> &'static str;
    /// So many nodes, `2 try again`.
    fn counted(self, nodes: usize) -> String;
}

impl Words for NodeStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "ran",
            Self::Reused => "reused",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
            Self::Retrying => "again",
            Self::Asking => "asks",
            Self::Queued => "queued",
            Self::NotStarted => "waits",
            Self::NotTaken => "not_taken",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Retrying => "tries again",
            Self::Asking => "asks a person",
            Self::NotStarted => "not started",
            Self::NotTaken => "not taken",
            other => other.name(),
        }
    }

    fn counted(self, nodes: usize) -> String {
        let words = match self {
            Self::Retrying if nodes != 1 => "try again",
            Self::Asking if nodes != 1 => "ask a person",
            Self::NotTaken if nodes != 1 => "on branches not taken",
            Self::NotTaken => "on a branch not taken",
            other => other.words(),
        };
        format!("{nodes} {words}")
    }
}
