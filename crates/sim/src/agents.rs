//! The simulator for agents: random ones, and an outside that writes tools, breaks and mends them without any being there. What it says
//! follows from what it is asked. There is no reference: a fork with edits is held against a fresh run of what was edited (E-29).

pub mod forks;
mod operations;

use crate::canon::{self, Msg};
use crate::rng::{Rng, hash};
use crate::workflows::driver::{Outside, compiled};
use selvedge_dialects::Capabilities;
use selvedge_dialects::agent::Settings;
use selvedge_engine::{
    EffectId, FaultKind, Graph, ModelReply, ModelRequest, ToolCall, ToolRequest, graph::INTERNAL,
};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tools that managers ask for, and coders write.
const WRITTEN: [&str; 3] = ["t0", "t1", "t2"];

/// An agent in its world.
#[derive(Debug, Default)]
pub struct SimAgent {
    seed: u64,
    faults: bool,
    /// The document.
    pub document: Value,
    /// Prompts that are not the built-in ones.
    pub prompts: BTreeMap<Arc<str>, Arc<str>>,
    /// Requests that are answered in another way, each with which one.
    edits: BTreeMap<String, u64>,
    /// What models were asked.
    asked: RefCell<BTreeMap<EffectId, String>>,
}

impl Clone for SimAgent {
    /// The same agent, which nobody was asked anything for.
    fn clone(&self) -> Self {
        let (document, prompts, edits) = (self.document.clone(), self.prompts.clone(), self.edits.clone());
        Self { seed: self.seed, faults: self.faults, document, prompts, edits, asked: RefCell::default() }
    }
}

impl SimAgent {
    /// A random one.
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(hash(seed, "agent"));
        let mut document = json!({
            "query": format!("task {}", rng.below(9)),
            "max_steps": 1 + rng.below(4),
            "max_task_executions": 1 + rng.below(3),
            "tool_enhance_interval": 1 + rng.below(2),
        });
        if let Some(members) = document.as_object_mut()
            && rng.chance(60)
        {
            members.insert("tools".to_owned(), json!(["look"]));
        }
        Self { seed, faults: rng.chance(40), document, ..Self::default() }
    }

    /// Its graph, through the dialect.
    ///
    /// # Errors
    /// What the dialect has against it.
    pub fn graph(&self) -> Result<Arc<Graph>, String> {
        let agent = Settings { prompts: self.prompts.clone(), ..Settings::default() };
        let with = Capabilities { model: true, agent: Arc::new(agent), ..Capabilities::default() };
        compiled(&self.document, &Map::new(), &with)
    }

    fn dice(&self, what: &str, content: &str) -> Rng {
        Rng::new(hash(self.seed, &format!("{what} {content}")))
    }

    /// What is said to a request, or what is said instead where it is edited: that calls nothing.
    fn said(&self, content: &str, schema: Option<&str>, tools: &[&str]) -> Result<ModelReply, FaultKind> {
        let edit = self.edits.get(content);
        let mut rng = self.dice(&format!("model {edit:?}"), content);
        if edit.is_none() && self.faults && rng.chance(5) {
            return Err(FaultKind::ProviderError);
        }
        let n = rng.below(1_000);
        let mut named = |names: &[&str], percent| -> Vec<String> {
            names.iter().filter(|_| rng.chance(percent)).map(|name| (*name).to_owned()).collect()
        };
        let shaped = match schema {
            Some("manager") => {
                let requests = named(&WRITTEN, 35).into_iter();
                let requests: Vec<Value> =
                    requests.map(|name| json!({"name": name, "description": format!("does {n}")})).collect();
                let required = named(&["look", "t0", "t1", "t2"], 25);
                json!({"required_tool_names": required, "tool_usage_guidance": format!("so {n}"), "tool_requests": requests})
            }
            Some("judge") => {
                let status = if rng.chance(45) { "FINISH" } else { "RETRY" };
                json!({"status": status, "reason": format!("r{n}")})
            }
            Some("failure_report") => {
                json!({"tried": format!("t{n}"), "failed": "f", "suggestions": [format!("s{n}")]})
            }
            Some("tool_class") => {
                let classes = ["Success", "Success", "Input Error", "Execution Failure"];
                let class = rng.pick(&classes).copied().unwrap_or("Success");
                json!({"class": class, "reason": format!("c{n}")})
            }
            Some("equivalence") => json!({"equal": rng.chance(60), "reason": format!("e{n}")}),
            Some(_) => json!({"final_answer": format!("a{n}"), "reasoning_summary": format!("w{n}")}),
            None if edit.is_none() && !tools.is_empty() && rng.chance(65) => {
                let many = 1 + rng.below(2);
                let calls = (0..many).filter_map(|at| {
                    let name = (*rng.pick(tools)?).into();
                    let id = format!("{}{n}_{at}", canon::MODEL_ID).into();
                    Some(ToolCall { id, name, arguments: json!({"n": rng.below(4)}) })
                });
                return Ok(ModelReply { calls: calls.collect(), ..ModelReply::default() });
            }
            None => return Ok(ModelReply { text: format!("m{n}"), ..ModelReply::default() }),
        };
        Ok(ModelReply { text: shaped.to_string(), ..ModelReply::default() })
    }
}

impl Outside for SimAgent {
    fn initial(&self) -> Map<String, Value> {
        Map::new()
    }

    fn model(&self, sent: Vec<Msg>, request: &ModelRequest) -> Result<ModelReply, FaultKind> {
        let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        let schema = request.schema.as_ref().map(|schema| &*schema.name);
        let content = json!([canon::messages(&sent, false), tools, schema, request.role]).to_string();
        self.asked.borrow_mut().insert(request.effect.clone(), content.clone());
        self.said(&content, schema, &tools)
    }

    fn tool(&self, request: &ToolRequest) -> Result<Value, FaultKind> {
        if let Some(operation) = request.tool.name.strip_prefix(INTERNAL) {
            return Ok(self.operation(operation, &request.args));
        }
        let mut rng = self.dice(&request.tool.name, &request.args.to_string());
        if rng.chance(20) {
            return Err(FaultKind::ExecutionFailure);
        }
        Ok(json!({"n": rng.below(100)}))
    }

    fn person(&self, _: bool, _: &str) -> Value {
        json!("yes")
    }
}
