//! The typed plan document.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Slice;
use crate::head::Head;
use crate::json::{Node, Span, Spanned};
use crate::settings::{ModelSettings, Retry, ToolEffects, ToolLimit};

/// A plan as it was written, defaults applied.
#[derive(Clone, Debug)]
pub struct PlanDoc {
    /// What it says besides its nodes.
    pub head: Head,
    /// The nodes in list order. A node that could not be read is absent: see `complete`.
    pub nodes: Vec<PlanNode>,
    /// Whether every node could be read. If not, checks that follow names from node to node would report what
    /// only follows from the missing ones.
    pub complete: bool,
}

/// Where a field's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is written at the node (`null` counts where it has a meaning of its own, `P-08`).
    Written,
    /// It follows from the node's `parent_thread_id` (`P-09`).
    Parent,
    /// It is the field's default.
    Default,
}

/// The value of a field that has a default.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<T> {
    /// The value in force.
    pub value: T,
    /// Where it is written; without that, where what it follows from is written.
    pub span: Span,
    /// Where it comes from.
    pub origin: Origin,
}

impl<T> Given<T> {
    /// Whether the field is written at the node itself.
    pub fn is_written(&self) -> bool {
        self.origin == Origin::Written
    }
}

/// One node of a plan.
#[derive(Clone, Debug)]
pub struct PlanNode {
    /// Position in the document's list, from 0.
    pub index: usize,
    /// Where the node's object is written.
    pub span: Span,
    /// Its id: `node_id`, else `n` and its position from 1. Unique in the plan.
    pub id: Given<Arc<str>>,
    /// Its name, for people.
    pub name: Spanned<Arc<str>>,
    /// The thread it runs on (`P-03`).
    pub thread: Spanned<Arc<str>>,
    /// What it starts with (`P-10`, `P-13`).
    pub kind: NodeKind,
    /// The prompt, a template; `None` when it is absent or empty (`P-12`).
    pub task_prompt: Option<Spanned<Arc<str>>>,
    /// The tools that its model may call, without repetitions; empty is no tools (`P-15`).
    pub tools: Vec<Spanned<Arc<str>>>,
    /// Whether the model is called again with the results of its calls (`P-11`).
    pub enable_tool_loop: bool,
    /// Most calls of single tools (`P-14`).
    pub tools_limit: Vec<ToolLimit>,
    /// The plan's own, where the node has none (`P-14`).
    pub plan_limit: Vec<ToolLimit>,
    /// Most rounds of the tool loop, if written (`P-14`, default 25).
    pub max_rounds: Option<Spanned<u32>>,
    /// The parent that `parent_thread_id` names (`P-09`): it only supplies the defaults below.
    pub parent_thread: Option<Spanned<Arc<str>>>,
    /// The thread that a new thread is filled from (`P-03`).
    pub data_in_thread: Given<Arc<str>>,
    /// Which messages of it (`P-05`, `P-08`, `P-09`).
    pub data_in_slice: Given<Slice>,
    /// Whether the result is sent on (`P-18`).
    pub data_out: bool,
    /// The thread that the result is appended to (`P-18`, `P-19`).
    pub data_out_thread: Given<Arc<str>>,
    /// What stands in front of the result there, a template; `None` when it is absent or empty.
    pub data_out_description: Option<Spanned<Arc<str>>>,
    /// Role or name of the model.
    pub model: Option<Spanned<Arc<str>>>,
    /// Settings that go to the model.
    pub settings: ModelSettings,
    /// What a failure of this node does to the run (`P-16`).
    pub on_error: OnError,
    /// Extra attempts for transient faults of tools, if written (`P-24`).
    pub retry: Option<Spanned<Retry>>,
    /// Time limit, if written (`P-24`).
    pub timeout: Option<Spanned<Duration>>,
    /// JSON Schema that the reply must fulfil (`E-33`); known to be a valid schema.
    pub output_schema: Option<Spanned<Arc<Value>>>,
    /// Whether a person must approve before the node's first effect (`E-33`).
    pub require_approval: bool,
    /// Effects that override those of the node's tools (`E-22`).
    pub effects: Option<Spanned<ToolEffects>>,
}

/// What a node starts with.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// `llm-first` (`P-10`, `P-12`).
    LlmFirst,
    /// `tool-first` (`P-13`).
    ToolFirst {
        /// `initial_tool_name`.
        tool: Spanned<Arc<str>>,
        /// `initial_tool_args`: an object whose strings and keys are templates, with the places of all of them.
        args: Option<Node<'static>>,
    },
}

/// What a failure of a node does to the run (`P-16`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It ends the run.
    #[default]
    Fail,
    /// The run goes on.
    Continue,
}

impl PlanNode {
    /// The tools that it may call, and the one that it starts with.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = &Spanned<Arc<str>>> {
        let initial = match &self.kind {
            NodeKind::ToolFirst { tool, .. } => Some(tool),
            NodeKind::LlmFirst => None,
        };
        let initial = initial.filter(|tool| self.tools.iter().all(|known| known.value != tool.value));
        self.tools.iter().chain(initial)
    }
}
