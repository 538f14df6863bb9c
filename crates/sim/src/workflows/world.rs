//! The outside of a workflow: models, tools and people whose answers follow from a seed and from what they are asked,
//! never from the order in which they are.

use super::block::SimWorkflow;
use super::document::metadata;
use super::driver::Outside;
use crate::canon::{self, Msg};
use crate::rng::{Rng, hash};
use selvedge_engine::{FaultKind, ModelReply, ModelRequest, ToolRequest};
use serde_json::{Map, Value, json};

impl Outside for SimWorkflow {
    fn initial(&self) -> Map<String, Value> {
        metadata()
    }
    fn model(&self, mut sent: Vec<Msg>, _: &ModelRequest) -> Result<ModelReply, FaultKind> {
        // How a summary is asked for is the dialect's to word.
        if let Some(last) = sent.last_mut().filter(|last| last.content.starts_with("Sum up our conversation"))
        {
            *last = sum_up();
        }
        model(self, &sent).map(|text| ModelReply { text, ..ModelReply::default() })
    }
    fn tool(&self, request: &ToolRequest) -> Result<Value, FaultKind> {
        tool(self, &request.args)
    }
    fn person(&self, approval: bool, prompt: &str) -> Value {
        person(self, approval, prompt)
    }
}

/// Stands for the words in which a model is asked for a summary (E-09).
pub fn sum_up() -> Msg {
    Msg::text("user", "sum up")
}

fn dice(workflow: &SimWorkflow, what: &str, content: &str) -> Rng {
    Rng::new(hash(workflow.seed, &format!("{what} {content}")))
}

/// What a model says to these messages.
///
/// # Errors
/// That it fails, for good.
pub fn model(workflow: &SimWorkflow, messages: &[Msg]) -> Result<String, FaultKind> {
    let mut rng = dice(workflow, "model", &canon::model_content(messages, &[], None));
    if workflow.faults && rng.chance(15) {
        return Err(FaultKind::ProviderError);
    }
    Ok(format!("m{}", rng.below(1_000)))
}

/// What the tool gives.
///
/// # Errors
/// That it fails, for good.
pub fn tool(workflow: &SimWorkflow, args: &Value) -> Result<Value, FaultKind> {
    let mut rng = dice(workflow, "tool", &args.to_string());
    if workflow.faults && rng.chance(35) {
        return Err(FaultKind::ExecutionFailure);
    }
    Ok(json!(rng.below(100)))
}

/// What a person says to a question: to one for approval `yes` or `no`, else a number.
pub fn person(workflow: &SimWorkflow, approval: bool, prompt: &str) -> Value {
    let mut rng = dice(workflow, "person", prompt);
    match approval {
        true => json!(if workflow.faults && rng.chance(30) { "no" } else { "yes" }),
        false => json!(rng.below(100)),
    }
}
