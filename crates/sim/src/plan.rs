//! The high-level description of a random plan: what the generator makes, the lowering and the reference
//! interpreter read, and a failure prints.

use selvedge_engine::Effects;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The name of the thread that exists from the start (P-02).
pub const MAIN: &str = "main";

/// A plan and the world that it runs in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimPlan {
    /// Seed of the world's answers.
    pub seed: u64,
    /// Whether the world has faults: empty and misfitting replies, failing calls, people who say no.
    pub faults: bool,
    /// The first message of `main`.
    pub task: SimText,
    /// The first data layer (D-01).
    pub metadata: Map<String, Value>,
    /// All tools.
    pub tools: Vec<SimTool>,
    /// The nodes, in list order.
    pub nodes: Vec<SimNode>,
}

/// A tool of the simulated world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimTool {
    /// Its name.
    pub name: String,
    /// Declared effects (E-22).
    pub effects: Option<Effects>,
    /// Declared fields of its output (D-24).
    pub output_params: Option<Vec<String>>,
    /// Whether its schema wants the argument `a`, if given, to be an integer.
    pub strict: bool,
    /// Whether a person has to approve each call.
    pub approval: bool,
}

/// A node, in the words of seed 002's fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimNode {
    /// `node_id`.
    pub id: String,
    /// `thread_id`.
    pub thread: String,
    /// `initial_tool_name` and `initial_tool_args`; makes the node `tool-first`.
    pub initial: Option<Initial>,
    /// `task_prompt`; `None` is the empty one.
    pub prompt: Option<SimText>,
    /// `tools`.
    pub tools: Vec<String>,
    /// `enable_tool_loop`.
    pub looped: bool,
    /// `tools_limit`.
    pub limits: BTreeMap<String, u32>,
    /// `max_rounds`.
    pub max_rounds: Option<u32>,
    /// `data_in_thread`.
    pub from: String,
    /// `data_in_slice`.
    pub slice: (Option<i64>, Option<i64>),
    /// `data_out`, `data_out_thread`, `data_out_description`.
    pub out: Option<Out>,
    /// `on_error: "continue"`.
    pub goes_on: bool,
    /// `output_schema`: integer properties, each with whether it is required.
    pub schema: Option<Vec<(String, bool)>>,
    /// `require_approval`.
    pub approval: bool,
    /// `effects`.
    pub effects: Option<Effects>,
    /// `retry`.
    pub retry: Option<u32>,
}

/// The fixed call of a `tool-first` node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Initial {
    /// Which tool.
    pub tool: String,
    /// Its arguments.
    pub args: Vec<(String, Arg)>,
}

/// An argument's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    /// As it is.
    Json(Value),
    /// A template; a placeholder alone keeps its value's type (D-08).
    Text(SimText),
    /// A list of templates.
    List(Vec<SimText>),
}

/// Where a node publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Out {
    /// `data_out_thread`.
    pub to: String,
    /// `data_out_description`.
    pub description: SimText,
}

/// A template, already taken apart.
pub type SimText = Vec<Part>;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text without braces, dollars and backslashes.
    Text(String),
    /// A placeholder, and how it is written: 0 `{{x}}`, 1 `{{{ x }}}`, 2 `${x}`.
    Ref(Target, u8),
}

/// What a placeholder names (D-06).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node's output, or a field of it; the word is 0 (none), 1 `output`, 2 `outputs`.
    Output(String, Vec<String>, u8),
    /// `metadata.name`.
    Metadata(String),
    /// `inputs.name`.
    Inputs(String),
    /// A bare name.
    Name(String),
}

impl SimPlan {
    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&SimTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
    /// The node of that id, with its position.
    pub fn node(&self, id: &str) -> Option<(usize, &SimNode)> {
        self.nodes.iter().enumerate().find(|(_, node)| node.id == id)
    }
    /// The effects of a call of `tool` at `node` (E-22).
    pub fn effects(&self, node: &SimNode, tool: &str) -> Effects {
        node.effects.or_else(|| self.tool(tool).and_then(|t| t.effects)).unwrap_or(Effects::Write)
    }
    /// Whether all that may be called depends on its arguments only.
    pub fn is_pure(&self) -> bool {
        let called = |node: &SimNode| -> Vec<String> {
            node.tools.iter().cloned().chain(node.initial.iter().map(|i| i.tool.clone())).collect()
        };
        self.nodes
            .iter()
            .all(|node| called(node).iter().all(|tool| self.effects(node, tool) == Effects::Pure))
    }
    /// Whether the node at `at` is the first on its thread, and creates it (P-03).
    pub fn creates(&self, at: usize) -> bool {
        let thread = self.nodes.get(at).map_or(MAIN, |node| node.thread.as_str());
        thread != MAIN && self.nodes.iter().take(at).all(|node| node.thread != thread)
    }
}

impl SimNode {
    /// The JSON Schema of its reply.
    pub fn schema_json(&self) -> Option<Value> {
        let fields = self.schema.as_ref()?;
        let properties: Map<String, Value> =
            fields.iter().map(|(name, _)| (name.clone(), serde_json::json!({"type": "integer"}))).collect();
        let required: Vec<&String> = fields.iter().filter(|(_, need)| *need).map(|(name, _)| name).collect();
        Some(serde_json::json!({"type": "object", "properties": properties, "required": required}))
    }
    /// Whether it asks a model or calls a tool at all (P-12).
    pub fn is_empty(&self) -> bool {
        self.initial.is_none() && self.prompt.is_none()
    }
}

/// A template as it is written in a document.
pub fn written(text: &[Part]) -> String {
    text.iter().map(part).collect()
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Ref(target, form) => {
            let path = match target {
                Target::Output(node, path, word) => {
                    let word = match word {
                        0 => "",
                        1 => ".output",
                        _ => ".outputs",
                    };
                    let path: String = path.iter().map(|key| format!(".{key}")).collect();
                    format!("{node}{word}{path}")
                }
                Target::Metadata(name) => format!("metadata.{name}"),
                Target::Inputs(name) => format!("inputs.{name}"),
                Target::Name(name) => name.clone(),
            };
            match form {
                0 => format!("{{{{{path}}}}}"),
                1 => format!("{{{{{{ {path} }}}}}}"),
                _ => format!("${{{path}}}"),
            }
        }
    }
}

/// An argument as it is written in a document.
pub fn written_arg(arg: &Arg) -> Value {
    match arg {
        Arg::Json(value) => value.clone(),
        Arg::Text(text) => Value::String(written(text)),
        Arg::List(texts) => texts.iter().map(|text| Value::String(written(text))).collect(),
    }
}
