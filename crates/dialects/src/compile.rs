//! From a file's text to the engine's graph: read, look at the tools, compile.
//!
//! Reading and compiling are two steps because tools have to be found and prepared in between: a document
//! says which it names ([`Document::tools`]), the caller brings their definitions ([`ToolSource`]).

use crate::Capabilities;
use crate::agent::{self, AgentDoc};
use crate::head::Head;
use crate::leaves;
use crate::plan::{self, PlanDoc};
use crate::recognise::{Choice, Dialect, recognise};
use crate::steps::{self, StepsDoc};
use crate::workflow::{self, WorkflowDoc};
use crate::{Diagnostics, DocumentLimits, Source, ToolSource, json};
use selvedge_engine::{Budget, Graph};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A document that was read, of any dialect.
#[derive(Clone, Debug)]
pub struct Document {
    source: Source,
    body: Body,
    others: Vec<Source>,
}

#[derive(Clone, Debug)]
enum Body {
    Plan(Box<PlanDoc>),
    Steps(Box<StepsDoc>),
    Workflow(Box<WorkflowDoc>),
    Agent(Box<AgentDoc>),
}

/// Reads a document: what it is (C-11) and every rule that one node alone can break. `None` if nothing could
/// be read; go on only if `diagnostics` has no errors.
pub fn read(
    source: &Source,
    choice: Choice<'_>,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<Document> {
    let root = json::parse(source, limits, diagnostics)?;
    let recognised = recognise(&root, choice, diagnostics)?;
    let mut others = Vec::new();
    let body = match recognised.dialect {
        Dialect::Plan => Body::Plan(Box::new(plan::read(&recognised, source, limits, diagnostics)?)),
        Dialect::Steps => Body::Steps(Box::new(steps::read(recognised.root, source, limits, diagnostics)?)),
        Dialect::Workflow => {
            let (workflow, files) = workflow::read(recognised.root, source, limits, diagnostics)?;
            others = files;
            Body::Workflow(Box::new(workflow))
        }
        Dialect::Agent => Body::Agent(Box::new(agent::read(recognised.root, source, diagnostics)?)),
    };
    Some(Document { source: source.clone(), body, others })
}

impl Document {
    /// The dialect it is written in.
    pub fn dialect(&self) -> Dialect {
        match self.body {
            Body::Plan(_) => Dialect::Plan,
            Body::Steps(_) => Dialect::Steps,
            Body::Workflow(_) => Dialect::Workflow,
            Body::Agent(_) => Dialect::Agent,
        }
    }

    /// The other files that were read for it, in no order that means anything.
    pub fn others(&self) -> &[Source] {
        &self.others
    }

    /// What it says besides its nodes or steps.
    pub fn head(&self) -> &Head {
        match &self.body {
            Body::Plan(plan) => &plan.head,
            Body::Steps(task) => &task.head,
            Body::Workflow(workflow) => &workflow.head,
            Body::Agent(agent) => &agent.head,
        }
    }

    /// Its own name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.head().name.as_ref().map(|name| name.value.as_ref())
    }

    /// Every tool it names, each once, in the order of the document.
    pub fn tools(&self) -> Vec<Arc<str>> {
        match &self.body {
            Body::Plan(plan) => plan::tools(plan),
            Body::Steps(task) => task.tools(),
            Body::Workflow(workflow) => workflow::tools(workflow),
            Body::Agent(agent) => agent::tools(agent),
        }
    }

    /// The model roles or names that it can't do without, each once; empty if it needs no model (C-08).
    pub fn models(&self) -> Vec<Arc<str>> {
        match &self.body {
            Body::Plan(plan) => plan::models(plan),
            Body::Steps(task) => steps::models(task),
            Body::Workflow(workflow) => workflow::models(workflow),
            Body::Agent(agent) => agent::models(agent),
        }
    }

    /// The model roles that it uses where a model plays them, and does without where none does (D-17). While there are
    /// any, all tools that there are may be called.
    pub fn optional_models(&self, capabilities: &Capabilities) -> Vec<Arc<str>> {
        match &self.body {
            Body::Plan(_) | Body::Agent(_) => Vec::new(),
            Body::Steps(task) => steps::optional_models(task, capabilities),
            Body::Workflow(workflow) => workflow::optional_models(workflow, capabilities),
        }
    }

    /// The first data layer of a run with these inputs (P-23). Findings are about declared inputs.
    pub fn inputs(&self, given: &Map<String, Value>, diagnostics: &mut Diagnostics) -> Map<String, Value> {
        self.head().initial(given, diagnostics)
    }

    /// The caps that the document itself sets (P-24).
    pub fn budget(&self) -> Budget {
        leaves::budget_of(&self.head().budget)
    }

    /// Checks what needs the whole document and lowers it to the graph; `None` if there are errors.
    /// `initial` is the first data layer, as far as it is known; `capabilities` is what step tasks may use.
    pub fn compile(
        &self,
        tools: &dyn ToolSource,
        initial: &Map<String, Value>,
        capabilities: &Capabilities,
        diagnostics: &mut Diagnostics,
    ) -> Option<Graph> {
        match &self.body {
            Body::Plan(plan) if plan.complete => {
                plan::compile(plan, &self.source, tools, initial, &capabilities.limits, diagnostics)
            }
            Body::Steps(task) => {
                steps::compile(task, &self.source, tools, initial, capabilities, diagnostics)
            }
            Body::Workflow(workflow) => {
                workflow::compile(workflow, &self.source, tools, initial, capabilities, diagnostics)
            }
            Body::Agent(agent) => {
                agent::compile(agent, &self.source, tools, initial, capabilities, diagnostics)
            }
            Body::Plan(_) => None,
        }
    }
}
