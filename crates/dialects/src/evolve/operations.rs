//! The operations that the graph of a batch calls (E-40). Whoever drives a run implements them; here is what they are given and what
//! they answer.

use crate::agent::operations::operation;
use selvedge_engine::ToolDef;
use serde_json::json;
use std::sync::Arc;

operation! {
    /// A task is run as an agent, as a run of its own that this one begins (V-01, E-39): `{task: {"task_id", "key", "question", "answer"?,
    /// "files"?}, settings: {"agent", "folder", "timeout_s", "concurrency", "score"}}` gives `{"task_id", "prediction", "reasoning",
    /// "status": "completed" | "failed" | "cancelled", "fault"?, "usage", "tools", "seconds", "run", "correct"?}`. It always answers: what
    /// becomes of one task ends no other.
    task, Idempotent, "Runs a task of a data set.", json!({"task": {"type": "object"}, "settings": {"type": "object"}})
}

operation! {
    /// What a batch came to (V-11): `{before, tasks: {number: {"task", "correct"?}}, optimised?}`, where `before` are the measures of the batch
    /// before it, or null, gives its line of measures.
    account, Read, "Measures a batch.", json!({"tasks": {"type": "object"}})
}

/// All of them.
pub fn all() -> [Arc<ToolDef>; 2] {
    [task(), account()]
}

#[cfg(test)]
mod tests {
    use crate::agent;
    use crate::evolve::optimise;

    /// E-40: whoever implements operations knows them by name.
    #[test]
    fn e40_no_two_operations_have_one_name() {
        let own = super::all().into_iter().chain(optimise::operations::all());
        let mut names: Vec<_> =
            own.chain(agent::operations::all()).map(|operation| operation.name.clone()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}
