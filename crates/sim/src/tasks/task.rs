//! A step task in neutral form, from which both the document and the reference's reading follow.

use selvedge_engine::{Effects, ToolDef};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A random task.
#[derive(Clone, Debug, Default)]
pub struct SimTask {
    /// What the outside's answers follow from.
    pub seed: u64,
    /// Whether tools fail.
    pub faults: bool,
    /// Whether a model reflects (D-17), else the ladder alone (D-18).
    pub model: bool,
    /// D-16: `finish`, else `hold`.
    pub finish: bool,
    /// D-19: how many replans the run may have.
    pub replans: u32,
    /// The first data layer.
    pub initial: Map<String, Value>,
    /// The steps, in list order.
    pub steps: Vec<SimStep>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct SimStep {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// Its parameters.
    pub args: Args,
    /// `depends_on`.
    pub after: Vec<String>,
    /// `alternatives`: tools, some with parameters of their own.
    pub alternatives: Vec<(String, Option<Args>)>,
    /// `retry`.
    pub retry: Option<u32>,
}

/// Parameters by name.
pub type Args = BTreeMap<String, Arg>;

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// As it is.
    Value(Value),
    /// `{{step.output.field}}`.
    Field(String, String),
    /// `{{name}}`.
    Name(String),
}

impl Arg {
    fn json(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Field(step, field) => json!(format!("{{{{{step}.output.{field}}}}}")),
            Self::Name(name) => json!(format!("{{{{{name}}}}}")),
        }
    }
}

/// Parameters as a document says them.
pub fn parameters(args: &Args) -> Value {
    Value::Object(args.iter().map(|(name, arg)| (name.clone(), arg.json())).collect())
}

impl SimStep {
    /// As a document says it.
    pub fn json(&self) -> Value {
        let mut step = json!({
            "step_id": self.id, "step_name": format!("step {}", self.id), "tool_id": self.tool,
            "parameters": parameters(&self.args),
        });
        let Some(object) = step.as_object_mut() else { return step };
        if !self.after.is_empty() {
            object.insert("depends_on".into(), json!(self.after));
        }
        if !self.alternatives.is_empty() {
            let rows = self.alternatives.iter().map(|(tool, args)| match args {
                None => json!(tool),
                Some(args) => json!({"tool_id": tool, "parameters": parameters(args)}),
            });
            object.insert("alternatives".into(), rows.collect());
        }
        if let Some(retry) = self.retry {
            object.insert("retry".into(), json!(retry));
        }
        step
    }
}

impl SimTask {
    /// The document.
    pub fn json(&self) -> Value {
        let siblings = if self.finish { "finish" } else { "hold" };
        json!({
            "task": "simulate", "metadata": self.initial,
            "steps": self.steps.iter().map(SimStep::json).collect::<Vec<_>>(),
            "recovery": {"siblings": siblings, "model": self.model, "replans": self.replans},
        })
    }
    /// Whether the step is one of the document's.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id)
    }
}

/// What is known of a tool.
#[derive(Clone, Copy, Debug)]
pub struct SimTool {
    /// Its name.
    pub name: &'static str,
    /// Its effects.
    pub effects: Effects,
    /// Whether it declares its outputs `a` and `b`; all bring them, the others also `u`.
    pub declares: bool,
}

/// All tools there are.
pub const TOOLS: [SimTool; 6] = [
    SimTool { name: "pure_d", effects: Effects::Pure, declares: true },
    SimTool { name: "pure_u", effects: Effects::Pure, declares: false },
    SimTool { name: "read_d", effects: Effects::Read, declares: true },
    SimTool { name: "idem_d", effects: Effects::Idempotent, declares: true },
    SimTool { name: "write_d", effects: Effects::Write, declares: true },
    SimTool { name: "write_u", effects: Effects::Write, declares: false },
];

/// A tool by name.
pub fn tool(name: &str) -> Option<&'static SimTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl SimTool {
    /// As graphs know it.
    pub fn def(&self) -> Arc<ToolDef> {
        Arc::new(ToolDef {
            name: self.name.into(),
            description: "a simulated tool".into(),
            input_schema: json!({
                "type": "object", "properties": {"n": {"type": "integer"}, "v": {}}, "required": ["n"],
                "additionalProperties": false,
            }),
            output_params: self.declares.then(|| ["a", "b"].into()),
            effects: Some(self.effects),
            version: self.name.into(),
            source: "simulated".into(),
            timeout_s: None,
            approval: false,
        })
    }
}
