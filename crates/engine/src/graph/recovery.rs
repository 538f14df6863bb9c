//! What a node may do about a fault, and what a model is told of it (D-17 … D-21).

use crate::template::JsonTemplate;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a recovery may do (D-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The same tool, with other parameters, or again with the same.
    RetryWithParams,
    /// Another tool.
    RetryWithTool,
    /// A changed definition of the same step.
    RepairStep,
    /// Other steps from here on.
    Replan,
    /// The fault stands.
    GiveUp,
}

impl Action {
    /// The name in the journal and in the schema `reflection`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RetryWithParams => "retry_with_params",
            Self::RetryWithTool => "retry_with_tool",
            Self::RepairStep => "repair_step",
            Self::Replan => "replan",
            Self::GiveUp => "give_up",
        }
    }
}

/// How a node may recover from a fault, and how often (D-18, D-19).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recovery {
    /// Whether a model decides.
    pub model: bool,
    /// Calls with other parameters or another tool that a model may ask for, per visit of the node.
    pub retries: u32,
    /// Repairs of the node's definition, per visit.
    pub repairs: u32,
    /// Replans of the run.
    pub replans: u32,
    /// Nodes in a row, in list order, that may fail for good before the run ends at once.
    pub consecutive_failures: u32,
    /// Times that a model is asked what to do, per visit.
    pub reflections: u32,
    /// What else may do the node's work, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            model: false,
            retries: 3,
            repairs: 1,
            replans: 1,
            consecutive_failures: 3,
            reflections: 5,
            alternatives: Vec::new(),
        }
    }
}

/// Another tool for a node (D-23).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its bound name.
    pub tool: Arc<str>,
    /// Its arguments; absent: those of the node's own call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<JsonTemplate>,
}

/// What a [`super::Act::AppendFacts`] tells a model; each is one member of its JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// `task`: this text.
    Task(Arc<str>),
    /// `step`: its definition, as a document has it.
    Step,
    /// `parameters` of the call that failed, as resolved, or as written if they did not resolve.
    Parameters,
    /// `fault`: what went wrong.
    Fault,
    /// `tool`: the one that failed, with its schema.
    Tool,
    /// `tools`: all of the graph, with their schemas, outputs and effects.
    Tools,
    /// `tools`: all of the graph, by name and description only.
    ToolNames,
    /// `tools`: those that the latest reply with a list `tools` named; all if it named none that exists.
    Chosen,
    /// `metadata`: the merged view at the node (D-04).
    Metadata,
    /// `results`: which earlier nodes ran, and whether with success.
    Results,
    /// `diagnostics` of the last compile that was refused.
    Diagnostics,
    /// `left`: what the limits leave (D-19).
    Left,
}
