//! The shape of a conformance case, as `spec/cases/README.md` documents it.

use selvedge_engine::{Effects, FaultKind, Outputs, ToolDef};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One case: a document, the world around it, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    /// The rules it shows.
    pub rules: Vec<String>,
    /// What it shows, in one sentence.
    pub about: String,
    /// The document as data: a plan.
    #[serde(default)]
    pub plan: Option<Value>,
    /// The document as data: a step task. A model is configured if there is a script.
    #[serde(default)]
    pub task: Option<Value>,
    /// The document as data: a workflow.
    #[serde(default)]
    pub workflow: Option<Value>,
    /// Other documents in its folder, by path.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// The document as the very text of its file, for cases about syntax and places.
    #[serde(default)]
    pub text: Option<String>,
    /// Values of inputs (P-23).
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The tools there are.
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    /// Rules of the scripted model (C-07).
    #[serde(default)]
    pub script: Vec<Value>,
    /// How the run is started.
    #[serde(default)]
    pub options: Options,
    /// What comes of it.
    pub expect: Expect,
    /// What happens after it has stopped.
    #[serde(default)]
    pub then: Vec<Step>,
    /// The case itself depends on the order in which effects come back: it runs in its own order only.
    #[serde(default)]
    pub order_matters: bool,
    /// Whether the run is also crashed after each of its events.
    #[serde(default)]
    pub crash: Crash,
    /// Whether the finished journal is replayed from its inputs.
    #[serde(default = "yes")]
    pub replay: bool,
}

fn first() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Where a run is crashed, to be resumed from what is in its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crash {
    /// After every event.
    #[default]
    Every,
    /// Nowhere.
    Never,
}

/// Options of `run`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `--plan`.
    #[serde(default)]
    pub plan: Option<String>,
    /// `--dialect`.
    #[serde(default)]
    pub dialect: Option<String>,
    /// `--sequential`.
    #[serde(default)]
    pub sequential: bool,
    /// `--budget`.
    #[serde(default)]
    pub budget: selvedge_engine::Budget,
    /// `--timeout`, in seconds of the case's own clock.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// `--max-parallel`.
    #[serde(default)]
    pub max_parallel: Option<usize>,
    /// Limits that the engine applies (E-28).
    #[serde(default)]
    pub limits: selvedge_engine::Limits,
    /// Most nodes of a document (E-28).
    #[serde(default)]
    pub nodes: Option<usize>,
    /// Deepest nesting of a document (E-28).
    #[serde(default)]
    pub json_nesting: Option<usize>,
}

/// A tool: what is declared of it, and what its calls come to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Declared effects (E-22).
    #[serde(default)]
    pub effects: Option<Effects>,
    /// Declared output fields (D-24).
    #[serde(default)]
    pub output_params: Option<Outputs>,
    /// JSON Schema of the arguments; any object if absent.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// Each call needs a person's word.
    #[serde(default)]
    pub approval: bool,
    /// Its version; a changed tool has another one.
    #[serde(default)]
    pub version: Option<Arc<str>>,
    /// Outcomes: the first that fits a call is what comes of it. None fits: the output is null.
    #[serde(default)]
    pub does: Vec<Outcome>,
}

impl Tool {
    /// The definition that the graph pins.
    pub fn def(&self, name: &str) -> ToolDef {
        let schema = self.input_schema.clone().unwrap_or_else(|| serde_json::json!({"type": "object"}));
        ToolDef {
            name: name.into(),
            description: format!("the tool {name}").into(),
            input_schema: schema,
            output_params: self.output_params.clone(),
            effects: self.effects,
            version: self.version.clone().unwrap_or_else(|| format!("{name}-1").into()),
            source: "case".into(),
            timeout_s: None,
            approval: self.approval,
        }
    }
}

/// What a call comes to, and when.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Only for exactly these arguments.
    #[serde(default)]
    pub args: Option<Value>,
    /// Only for this node.
    #[serde(default)]
    pub node: Option<String>,
    /// Only for the n-th call, from 1, that meets the other conditions.
    #[serde(default)]
    pub nth: Option<u64>,
    /// The output.
    #[serde(default)]
    pub output: Value,
    /// A fault in the output's place.
    #[serde(default)]
    pub fault: Option<ToolFault>,
    /// How long it takes, in milliseconds of the case's own clock.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A fault of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFault {
    /// Its kind (E-16).
    pub kind: FaultKind,
    /// What the tool says.
    pub message: String,
    /// Whether trying again may help (D-17).
    #[serde(default)]
    pub transient: bool,
    /// Whether nothing was sent to the tool (P-24).
    #[serde(default)]
    pub unsent: bool,
}

/// Something that is done once the run has stopped, and what must come of that.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A person's answers, by node.
    #[serde(default)]
    pub answer: Option<BTreeMap<String, Value>>,
    /// `cancel`.
    #[serde(default)]
    pub cancel: bool,
    /// `resume` of a failed run, in a changed world.
    #[serde(default)]
    pub resume: Option<Resume>,
    /// The process died earlier than it did: the journal is cut, and what is left of it is resumed.
    #[serde(default)]
    pub crash: Option<CrashAt>,
    /// A bug ended the run, which said this (E-17).
    #[serde(default)]
    pub poison: Option<String>,
    /// What comes of it.
    pub expect: Expect,
}

/// What is different when a run is resumed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Tools that are different now; another `version` makes them changed definitions (P-21).
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    /// Another script.
    #[serde(default)]
    pub script: Option<Vec<Value>>,
    /// Other limits (E-12).
    #[serde(default)]
    pub limits: Option<selvedge_engine::Limits>,
}

/// After which event the process died.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashAt {
    /// The n-th event of this kind …
    pub after: String,
    /// … that belongs to this node …
    pub node: String,
    /// … counted from 1.
    #[serde(default = "first")]
    pub nth: usize,
}

/// What must be observed. What is absent is not looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What the checker finds. With warnings among them, all of them exactly; without, the errors exactly.
    #[serde(default)]
    pub diagnostics: Option<Vec<Diagnostic>>,
    /// `completed`, `failed`, `cancelled`, `waiting`.
    #[serde(default)]
    pub status: Option<String>,
    /// The run's output.
    #[serde(default, deserialize_with = "given")]
    pub output: Option<Value>,
    /// The fault that ended it.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Threads, message for message; null says that there is no such thread.
    #[serde(default)]
    pub threads: Option<BTreeMap<String, Value>>,
    /// Everything that was published, by thread.
    #[serde(default)]
    pub data_out: Option<Value>,
    /// Results by node, as far as they are written here.
    #[serde(default)]
    pub results: Option<BTreeMap<String, Map<String, Value>>>,
    /// All joins that are decided, each as far as it is written here (W-09).
    #[serde(default)]
    pub joins: Option<BTreeMap<String, Map<String, Value>>>,
    /// The nodes that have a result, in order.
    #[serde(default)]
    pub ran: Option<Vec<String>>,
    /// All of `runtime_metadata`.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// The codes of the run's warnings, in any order.
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
    /// Open asks.
    #[serde(default)]
    pub asks: Option<Vec<Ask>>,
    /// Every model request since the step before, node by node.
    #[serde(default)]
    pub requests: Option<Vec<ModelRequest>>,
    /// Every tool call since the step before, node by node.
    #[serde(default)]
    pub calls: Option<Vec<ToolCall>>,
    /// What was decided about faults (D-22), in order, as far as it is written here.
    #[serde(default)]
    pub recovered: Option<Vec<Map<String, Value>>>,
    /// The nodes that were skipped, each with the one that it was skipped for (D-16).
    #[serde(default)]
    pub skipped: Option<BTreeMap<String, String>>,
    /// What the run used, as far as it is written here.
    #[serde(default)]
    pub usage: Option<Map<String, Value>>,
    /// How many events of a kind the journal holds, for the kinds written here.
    #[serde(default)]
    pub events: Option<BTreeMap<String, usize>>,
    /// The kinds of all events of the journal, in order.
    #[serde(default)]
    pub journal: Option<Vec<String>>,
    /// Pairs of nodes of which the first finished before the second started.
    #[serde(default)]
    pub before: Vec<(String, String)>,
    /// Pairs of nodes of which each started before the other finished.
    #[serde(default)]
    pub overlap: Vec<(String, String)>,
    /// Pairs of nodes: the tool calls of the first had come back before those of the second were requested.
    #[serde(default)]
    pub calls_before: Vec<(String, String)>,
    /// Pairs of nodes whose tool calls were under way at the same time.
    #[serde(default)]
    pub calls_overlap: Vec<(String, String)>,
}

/// A value that is given, be it null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// One finding of the checker.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// The rule.
    pub rule: String,
    /// The stable name of the kind of finding.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The JSON pointer of the value concerned.
    #[serde(default)]
    pub at: Option<String>,
    /// What message or help say, among other things.
    #[serde(default)]
    pub contains: Option<String>,
}

/// A fault.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its kind (E-16).
    pub kind: String,
    /// Its node.
    #[serde(default)]
    pub node: Option<String>,
    /// What its message or cause says, among other things.
    #[serde(default)]
    pub contains: Vec<String>,
}

/// An open ask.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Its node.
    pub node: String,
    /// `approve`, `answer` or `edit`.
    pub kind: String,
    /// What the question says, among other things.
    #[serde(default)]
    pub contains: Option<String>,
}

/// A request that reached the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The node that asked.
    pub node: String,
    /// Its messages, exactly.
    #[serde(default)]
    pub messages: Option<Value>,
    /// The names of the tools offered, exactly.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// The name of the schema; null for none.
    #[serde(default, deserialize_with = "given")]
    pub schema: Option<Value>,
    /// The model role or name.
    #[serde(default)]
    pub role: Option<String>,
    /// Settings, exactly.
    #[serde(default)]
    pub settings: Option<Value>,
}

/// A call that reached a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[serde(default, deserialize_with = "given")]
    pub args: Option<Value>,
    /// The node that called.
    #[serde(default)]
    pub node: Option<String>,
}
