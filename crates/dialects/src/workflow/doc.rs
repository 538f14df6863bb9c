//! The typed workflow.

use crate::Source;
use crate::agent::AgentDoc;
use crate::head::Head;
use crate::json::{Node, Span, Spanned};
use crate::plan::PlanDoc;
use crate::settings::{Budget, ModelSettings, Retry, ToolEffects, ToolLimit};
use crate::steps::StepsDoc;
use selvedge_engine::expression::Expression;
use selvedge_engine::graph::Strategy;
use selvedge_engine::{AskKind, Role};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A name or a text, with its place.
pub(crate) type Text = Spanned<Arc<str>>;
/// A JSON value whose strings and keys are templates, with the places of all of them.
pub(crate) type Json = Node<'static>;

/// A workflow as it was written.
#[derive(Clone, Debug)]
pub struct WorkflowDoc {
    /// What it says besides its nodes and edges; without a task, the task is empty.
    pub head: Head,
    /// The nodes, in the order of the document. One that could not be read is absent: see `complete`.
    pub nodes: Vec<WorkNode>,
    /// The edges, in the order of the document: of several from one node the first that holds is taken.
    pub edges: Vec<Edge>,
    /// Whether every node and edge could be read. If not, checks that follow the edges would report what only follows from
    /// the missing ones.
    pub complete: bool,
    /// How many nodes it has, with those of the documents in it, which count as often as they are run.
    pub size: usize,
}

/// A way from one node to another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it begins.
    pub from: Text,
    /// Where it leads.
    pub to: Text,
    /// When it is taken; `None` is after a success.
    pub when: Option<Taken>,
    /// Where it is written.
    pub span: Span,
}

/// When an edge is taken that does not just follow a success.
#[derive(Clone, Debug)]
pub enum Taken {
    /// After a fault.
    Error(Span),
    /// After a success, if this holds.
    If(Formula),
}

/// An expression that parses (E-46), with the place of its text.
#[derive(Clone, Debug)]
pub struct Formula {
    /// The expression.
    pub expression: Expression,
    /// Where its text is written.
    pub span: Span,
}

/// One node of a workflow.
#[derive(Clone, Debug)]
pub struct WorkNode {
    /// Its id, unique in the workflow.
    pub id: Text,
    /// Where its object is written.
    pub span: Span,
    /// Its name, for people; without one the id.
    pub name: Arc<str>,
    /// What it does.
    pub does: Does,
    /// Extra attempts for transient faults, if written.
    pub retry: Option<Spanned<Retry>>,
    /// Its time, if written: of a call, or of a composite as a whole (E-37).
    pub timeout: Option<Spanned<Duration>>,
    /// Effects that override those of its tools (E-22).
    pub effects: Option<Spanned<ToolEffects>>,
    /// Role or name of its model.
    pub model: Option<Text>,
    /// Settings that go to its model.
    pub settings: ModelSettings,
    /// What it may use, with all below it (E-20).
    pub budget: Option<Budget>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum Does {
    /// The workflow begins here.
    Start,
    /// It ends here; with an output of its own, or with the result of the node before.
    End(Option<Json>),
    /// It asks a model.
    Llm(Box<Llm>),
    /// It calls a tool.
    Tool {
        /// The tool.
        tool: Text,
        /// Its arguments.
        args: Option<Json>,
        /// Where call and result are appended, if anywhere.
        thread: Option<Text>,
    },
    /// It opens paths.
    Fork(Box<Fork>),
    /// It joins them.
    Join(Box<Join>),
    /// It goes where the first condition holds.
    Route {
        /// The conditions, and where they lead.
        branches: Vec<(Formula, Text)>,
        /// Where it goes on if none holds.
        default: Text,
    },
    /// What is between it and its end is done repeatedly.
    LoopStart(Box<Repeat>),
    /// The end of a loop.
    LoopEnd(Text),
    /// It sets a variable.
    Variable(Text, Worth),
    /// It takes something away from a thread.
    Context {
        /// What.
        cut: Cut,
        /// Of which thread.
        thread: Text,
    },
    /// It asks a person.
    Ask(Box<Ask>),
    /// It runs another document.
    Sub(Box<Sub>),
}

/// A model's node (P-10, P-11, P-14).
#[derive(Clone, Debug)]
pub struct Llm {
    /// What the model is asked.
    pub prompt: Text,
    /// What it is told first, in the request only (E-23).
    pub system: Option<Text>,
    /// The thread.
    pub thread: Text,
    /// The tools that it may call.
    pub tools: Vec<Text>,
    /// Whether it is asked again with the results of its calls.
    pub enable_tool_loop: bool,
    /// Most calls of single tools.
    pub tools_limit: Vec<ToolLimit>,
    /// Most rounds of calls.
    pub max_rounds: Option<Spanned<u32>>,
    /// JSON Schema that the reply must fit (E-33).
    pub output_schema: Option<Spanned<Arc<Value>>>,
    /// Whether it is the executor of an agent, which looks at its tools between rounds; and then whether its thread is its own.
    pub agent: Option<Own>,
}

/// Whose the thread of an `AGENT` node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Its own: it begins anew each time.
    Thread,
    /// One of the workflow's.
    Nothing,
}

/// What a fork opens.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Its paths.
    pub of: ForkOf,
    /// Whether they run one after the other (W-04).
    pub serial: bool,
    /// Its older id, by which a join may name it (W-01).
    pub old_id: Option<Arc<str>>,
}

/// The paths of a fork.
#[derive(Clone, Debug)]
pub enum ForkOf {
    /// Path and first node, in order.
    Listed(Vec<(Text, Text)>),
    /// One path for each element of a list (W-13).
    Each {
        /// The list, or a template that comes to one.
        over: Json,
        /// The variable that holds the element.
        item: Arc<str>,
        /// The first node of each path.
        child: Text,
    },
}

/// How paths come together.
#[derive(Clone, Debug)]
pub struct Join {
    /// Which paths.
    pub of: JoinOf,
    /// When it is met.
    pub strategy: Spanned<Strategy>,
    /// Seconds from the fork on; `None` is no limit.
    pub timeout: Option<Duration>,
    /// The path whose conversation goes on.
    pub main: Option<Text>,
    /// Variables that leave a path: the name, and the path.
    pub exports: Vec<(Text, Text)>,
}

/// How a join says which fork is its own.
#[derive(Clone, Debug)]
pub enum JoinOf {
    /// By the ids of its paths.
    Listed(Vec<Text>, Span),
    /// By the fork's older id.
    Old(Text),
    /// It does not: it is the one that the paths lead to (W-13).
    Region,
}

/// How often a loop goes round.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Over what, how often, or while what holds.
    pub times: Rounds,
    /// The variable that holds an element.
    pub item: Arc<str>,
    /// Most iterations.
    pub limit: Spanned<u32>,
    /// The loop ends after the iteration at whose end this holds (W-16).
    pub until: Option<Formula>,
}

/// What a loop goes by.
#[derive(Clone, Debug)]
pub enum Rounds {
    /// A list.
    Over(Json),
    /// A number.
    Count(Json),
    /// A condition.
    While(Formula),
}

/// What a variable is set to.
#[derive(Clone, Debug)]
pub enum Worth {
    /// A value.
    Value(Json),
    /// What an expression comes to.
    Of(Formula),
}

/// What is taken away from a thread (E-09).
#[derive(Clone, Debug)]
pub enum Cut {
    /// All but the last messages.
    Trim(u32),
    /// All but messages of these roles.
    Filter(Vec<Role>),
    /// All of it.
    Clear,
    /// All but the last messages, in whose place stands what a model says of them.
    Summarise(u32),
}

/// A question to a person (E-21).
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which kind.
    pub kind: AskKind,
    /// The question.
    pub prompt: Text,
    /// What is shown, or to be edited.
    pub value: Option<Json>,
    /// What an answer has to fit.
    pub schema: Option<Spanned<Arc<Value>>>,
    /// Where the answer is said.
    pub thread: Option<Text>,
}

/// Another document as a node.
#[derive(Clone, Debug)]
pub struct Sub {
    /// Which.
    pub inner: Inner,
    /// What it is given.
    pub inputs: Vec<(Text, Json)>,
    /// Variables that it sets here.
    pub outputs: Vec<(Text, Json)>,
}

/// A document inside of another one.
#[derive(Clone, Debug)]
pub struct Inner {
    /// The document; shared by all who name its file.
    pub body: Arc<InnerBody>,
    /// Its file, where it is in one of its own.
    pub source: Option<Source>,
    /// Where it is written, or named.
    pub span: Span,
}

/// What an inner document is.
#[derive(Clone, Debug)]
pub enum InnerBody {
    /// A workflow.
    Workflow(WorkflowDoc),
    /// A plan.
    Plan(PlanDoc),
    /// A step task.
    Steps(StepsDoc),
    /// An agent.
    Agent(AgentDoc),
}

impl InnerBody {
    /// How many nodes it has, with those of the documents in it.
    fn size(&self) -> usize {
        match self {
            Self::Workflow(doc) => doc.size,
            Self::Plan(plan) => plan.nodes.len(),
            Self::Steps(task) => task.steps.as_ref().map_or(0, Vec::len),
            Self::Agent(_) => 1,
        }
    }
}

impl WorkNode {
    /// Whether it sets the variable of its own id: then its name means the variable (D-07).
    pub(super) fn sets_its_id(&self) -> bool {
        matches!(&self.does, Does::Variable(name, _) if name.value == self.id.value)
    }

    /// It, and the nodes of the document that it runs.
    pub(super) fn size(&self) -> usize {
        match &self.does {
            Does::Sub(sub) => sub.inner.body.size().saturating_add(1),
            _ => 1,
        }
    }

    /// The thread that it works on, if it has one.
    pub(crate) fn thread(&self) -> Option<&Text> {
        match &self.does {
            Does::Llm(llm) => Some(&llm.thread),
            Does::Tool { thread, .. } => thread.as_ref(),
            Does::Context { thread, .. } => Some(thread),
            Does::Ask(ask) => ask.thread.as_ref(),
            _ => None,
        }
    }

    /// The tools that it names.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Text> {
        let (called, offered) = match &self.does {
            Does::Tool { tool, .. } => (Some(tool), &[][..]),
            Does::Llm(llm) => (None, &llm.tools[..]),
            _ => (None, &[][..]),
        };
        called.into_iter().chain(offered)
    }

    /// Whether it asks a model.
    pub(crate) fn asks_model(&self) -> bool {
        matches!(&self.does, Does::Llm(_) | Does::Context { cut: Cut::Summarise(_), .. })
    }

    /// The type, as documents write it.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.does {
            Does::Start => "START",
            Does::End(_) => "END",
            Does::Llm(llm) if llm.agent.is_some() => "AGENT",
            Does::Llm(_) => "LLM",
            Does::Tool { .. } => "TOOL",
            Does::Fork(_) => "FORK",
            Does::Join(_) => "JOIN",
            Does::Route { .. } => "ROUTE",
            Does::LoopStart(_) => "LOOP_START",
            Does::LoopEnd(_) => "LOOP_END",
            Does::Variable(..) => "VARIABLE",
            Does::Context { .. } => "CONTEXT",
            Does::Ask(_) => "USER_INTERACTION",
            Does::Sub(sub) => match &*sub.inner.body {
                InnerBody::Workflow(_) | InnerBody::Agent(_) => "SUBGRAPH",
                _ => "PLAN",
            },
        }
    }
}
