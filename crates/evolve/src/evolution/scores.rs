//! What the tasks of an evolution were scored as, as the runs of its batches say it (V-13).

use super::Prepared;
use crate::evaluation::Scores;
use crate::key::Key;
use selvedge_dialects::evolve::TASKS;
use selvedge_engine::FaultKind;
use selvedge_host::Error;
use selvedge_store::RunStatus as Stored;
use serde_json::{Map, Value};

impl Prepared {
    /// Which predictions are right, of the tasks that are scored and were not cut off by the budget.
    pub(crate) fn scores(&self) -> Result<Scores, Error> {
        let mut scores = Scores::new();
        for (run, status) in self.store.runs_named(&format!("{}-", self.id))? {
            if status != Stored::Completed {
                continue;
            }
            let state = self.host.load(&run)?.state;
            let view = state.view();
            let Some(tasks) = view.result(TASKS) else { continue };
            for path in tasks.output.as_object().into_iter().flat_map(Map::values) {
                let Some(task) = path.get("task") else { continue };
                let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
                let right = path.get("correct").or_else(|| task.get("correct")).and_then(Value::as_bool);
                let fault = task.get("fault").and_then(|fault| fault.get("kind")).and_then(Value::as_str);
                let cut_off = fault == Some(FaultKind::BudgetExceeded.name());
                if let (Some(key), Some(right), false) = (Key::of_run(text("run")), right, cut_off) {
                    scores.insert(key, (text("task_id").to_owned(), right));
                }
            }
        }
        Ok(scores)
    }
}
