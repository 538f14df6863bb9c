//! How nodes of a flow follow each other, and the leaves that open frames: fork, loop and sub (E-34).

use super::Act;
use crate::expression::Condition;
use crate::ids::{GraphIx, NodeIx};
use crate::template::JsonTemplate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// How the nodes of a graph follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Each runs once all that it can observe has finished; they retire in list order.
    #[default]
    Dataflow,
    /// One is live at a time, the first node to begin with; the ways of a node say which one comes next.
    Flow,
}

impl Control {
    /// What plans and step tasks are, and what is not written.
    pub(crate) fn is_dataflow(&self) -> bool {
        *self == Self::Dataflow
    }
}

/// A way on from a node of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// When it is taken: the first that is open is.
    pub when: When,
    /// The node that it leads to.
    pub to: NodeIx,
}

/// When a way is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// After a success.
    Done,
    /// After a fault, which is handled by that.
    Fault,
    /// After a success, if this is `true`; anything that is no boolean is the fault `input_error`.
    Holds(Condition),
}

impl Act {
    /// The graphs that it opens frames of.
    pub(crate) fn graphs(&self) -> Vec<GraphIx> {
        match self {
            Self::Fork(paths) => match &paths.of {
                PathsOf::Listed(paths) => paths.iter().map(|(_, graph)| *graph).collect(),
                PathsOf::Each { graph, .. } => vec![*graph],
            },
            Self::Loop(times) => vec![times.graph],
            Self::Sub(sub) => vec![sub.graph],
            _ => Vec::new(),
        }
    }
}

/// Opens a frame for each of its paths, from a snapshot of the threads, and joins them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paths {
    /// The paths, in order.
    pub of: PathsOf,
    /// Whether a path begins only when the one before it has ended, instead of all at once.
    #[serde(default)]
    pub serial: bool,
    /// How they come together.
    pub join: Join,
}

/// What the paths of a fork are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathsOf {
    /// These, by their ids.
    Listed(Vec<(Arc<str>, GraphIx)>),
    /// One for each element of a list, by its number from 0.
    Each {
        /// The list.
        over: JsonTemplate,
        /// The variable that holds the element; `index` holds the number.
        item: Arc<str>,
        /// What each path does.
        graph: GraphIx,
    },
}

/// How the paths of a fork come together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// When it is decided, and how.
    pub strategy: Strategy,
    /// Seconds from the fork on after which it is `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// The path whose threads take the place of those before the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<Arc<str>>,
    /// Variables that leave a path: the name, and the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<(Arc<str>, Arc<str>)>,
}

/// When a join is met, and when it can't be met any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Every path completes.
    AllCompleted,
    /// One completes.
    AnyCompleted,
    /// Every path fails.
    AllFailed,
    /// One fails.
    AnyFailed,
    /// So many complete.
    Count(u32),
    /// Every path ends, whatever comes of it.
    AllEnded,
}

impl Strategy {
    /// What documents and reports call it (W-05, W-09).
    pub fn name(self) -> &'static str {
        match self {
            Self::AllCompleted => "ALL_COMPLETED",
            Self::AnyCompleted => "ANY_COMPLETED",
            Self::AllFailed => "ALL_FAILED",
            Self::AnyFailed => "ANY_FAILED",
            Self::Count(_) => "SUCCESS_COUNT_THRESHOLD",
            Self::AllEnded => "ALL_ENDED",
        }
    }
}

/// For people, with the threshold.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{} {count}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// Opens one frame after the other, which work on the threads and variables of the frame around them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// What an iteration does.
    pub graph: GraphIx,
    /// How often.
    pub times: Times,
    /// Most iterations there may be.
    pub limit: u32,
    /// Seconds that all of them may take (E-37).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// The loop ends after the iteration at whose end this is `true` (W-16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Condition>,
}

/// How often a loop goes round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Times {
    /// Once for each element of a list; the variable holds it.
    Over(JsonTemplate, Arc<str>),
    /// So often.
    Count(JsonTemplate),
    /// As long as this is `true`, asked before each iteration.
    While(Condition),
    /// Once, between a model's rounds: what it comes to is not the node's result, and what it sets is its own. It is given `calls`, what the
    /// model has called since the last time; `rounds` so far; `last`; and of the thread `bytes` and `used`.
    Aside {
        /// Whether the model has said its last word.
        last: bool,
    },
}

impl Times {
    /// Whether it goes round between a model's rounds.
    pub(crate) fn is_aside(&self) -> bool {
        matches!(self, Self::Aside { .. })
    }
}

/// Opens one frame with threads, results and metadata of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sub {
    /// What it does.
    pub graph: GraphIx,
    /// Its first data layer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(Arc<str>, JsonTemplate)>,
    /// Variables that it sets: the name here, and what is there at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<(Arc<str>, JsonTemplate)>,
    /// Seconds that it may take as a whole (E-37).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}
