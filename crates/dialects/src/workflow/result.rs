//! What is known of the results of nodes (D-24).

use super::doc::{Does, ForkOf, WorkNode};
use crate::ToolSource;
use crate::diagnostic::shown;
use selvedge_engine::Outputs;
use serde_json::{Map, Value, json};

/// What a node declares of its result, and who says so, for people. `opener`: the fork, if it is a join.
pub(super) fn declared(
    node: &WorkNode,
    opener: Option<&WorkNode>,
    tools: &dyn ToolSource,
) -> Option<(Outputs, String)> {
    match &node.does {
        Does::Tool { tool, .. } => {
            let outputs = tools.def(&tool.value)?.output_params.clone()?;
            Some((outputs, format!("tool {}", shown(&tool.value))))
        }
        Does::Llm(llm) => {
            Some((Outputs::of_schema(&llm.output_schema.as_ref()?.value)?, "its `output_schema`".to_owned()))
        }
        Does::Ask(ask) => Some((Outputs::of_schema(&ask.schema.as_ref()?.value)?, "its `schema`".to_owned())),
        Does::Join(_) => {
            let Does::Fork(fork) = &opener?.does else { return None };
            let ForkOf::Listed(paths) = &fork.of else { return None };
            let paths: Map<String, Value> =
                paths.iter().map(|(id, _)| (id.value.to_string(), json!({}))).collect();
            let schema = json!({"type": "object", "properties": paths, "additionalProperties": false});
            Some((Outputs::of_schema(&schema)?, "the join, which has its paths' results,".to_owned()))
        }
        _ => None,
    }
}
