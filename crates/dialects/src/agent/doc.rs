//! An agent's document.

use super::settings::Coder;
use crate::fields::{Fields, Shape};
use crate::head::Head;
use crate::json::{Node, Spanned};
use crate::settings::{ModelSettings, model_settings, names};
use crate::{Diagnostics, Finding, Source};
use std::sync::Arc;

pub(super) const AGENT: Shape = Shape {
    what: "an agent",
    fields: &[
        "$schema",
        "budget",
        "coder",
        "description",
        "extra",
        "inputs",
        "max_steps",
        "max_task_executions",
        "max_tokens",
        "metadata",
        "name",
        "publish",
        "query",
        "seed",
        "stop",
        "temperature",
        "tool_enhance_interval",
        "tools",
        "top_p",
    ],
};

/// Rounds and steps are counted in thousands at most: more would only hide a slip of the pen.
const MOST: u64 = 1_000;

/// What an agent is to do, and with what.
#[derive(Clone, Debug)]
pub struct AgentDoc {
    /// What it says as every document; the task is the query.
    pub head: Head,
    /// Tools that it has besides those of the library, in the order of the document.
    pub tools: Vec<Spanned<Arc<str>>>,
    /// Rounds at most.
    pub max_task_executions: Option<u32>,
    /// Rounds of tool calls in each.
    pub max_steps: Option<u32>,
    /// After how many of them tools are looked at.
    pub tool_enhance_interval: Option<u32>,
    /// Who writes tools.
    pub coder: Option<Coder>,
    /// Settings of the executor's model (P-28).
    pub model_settings: ModelSettings,
    /// Whether proven tools become public at the end.
    pub publish: bool,
}

/// Reads an agent; `None` only if it is no object.
pub(super) fn read(root: &Node<'_>, source: &Source, diagnostics: &mut Diagnostics) -> Option<AgentDoc> {
    let fields = Fields::open(root, &AGENT, "A-25", diagnostics)?;
    let help = "say what is to be done: \"query\": \"…\"";
    let head = Head::read(&fields, ("query", Some(("A-25", help))), source, diagnostics);
    let tools =
        fields.given("tools").map(|node| names(node, "tools", "A-25", diagnostics)).unwrap_or_default();
    let mut count = |field: &'static str| {
        let count = fields.count(field, "A-25", source, diagnostics)?;
        if (1..=MOST).contains(&count.value) {
            return u32::try_from(count.value).ok();
        }
        let message = format!("`{field}` must be from 1 to {MOST}");
        let finding = Finding::error("A-25", "out-of-range", count.span, message);
        diagnostics.push(finding.help("leave the field out for the default"));
        None
    };
    let (max_task_executions, max_steps) = (count("max_task_executions"), count("max_steps"));
    let tool_enhance_interval = count("tool_enhance_interval");
    let coder = fields.choice("coder", "A-07", &Coder::NAMES, diagnostics).map(|choice| choice.value);
    let publish = fields.boolean("publish", "A-19", diagnostics).is_none_or(|flag| flag.value);
    let model_settings = model_settings(&fields, source, diagnostics);
    Some(AgentDoc {
        head,
        tools,
        max_task_executions,
        max_steps,
        tool_enhance_interval,
        coder,
        model_settings,
        publish,
    })
}
