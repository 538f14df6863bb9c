//! What was done about a fault, as C-15's object (D-22).

use crate::time;
use crate::timeline::{Rung, Spent, What};
use serde_json::{Value, json};

/// As an object: `{n, at, node, what, …}`.
pub fn rung(rung: &Rung) -> Value {
    let mut object = json!({"n": rung.n, "at": time::rfc3339(rung.at), "node": rung.node});
    let more = match &rung.what {
        What::Retry { reason, after_ms } => {
            json!({"what": "retry", "reason": reason, "after_ms": after_ms})
        }
        What::Fault { tool, fault } => json!({"what": "fault", "tool": tool, "fault": fault}),
        What::Action { action, by, reason, tool, parameters, strategy, spent: used } => json!({
            "what": "action", "action": action, "by": by, "reason": reason, "tool": tool,
            "parameters": parameters, "strategy": strategy, "usage": spent(used),
        }),
        What::Planned { steps, spent: used, .. } => {
            json!({"what": "planned", "steps": steps, "usage": spent(used)})
        }
        What::Skipped { because } => json!({"what": "skipped", "because": because}),
        What::Ended { fault: None } => json!({"what": "succeeded"}),
        What::Ended { fault: Some(fault) } => json!({"what": "failed", "fault": fault}),
    };
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// C-02's `usage`, of models.
pub fn spent(spent: &Spent) -> Value {
    json!({
        "model_calls": spent.calls, "input_tokens": spent.tokens.input,
        "output_tokens": spent.tokens.output, "cost": spent.tokens.shown_cost(),
    })
}
