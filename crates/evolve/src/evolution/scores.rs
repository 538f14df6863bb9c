//! What the tasks of an evolution were scored as, as the runs of its batches say it (V-13).

use super::Prepared;
use crate::evaluation::Scores;
use crate::key::Key;
use selvedge_dialects::evolve::TASKS;
use selvedge_engine::FaultKind;
use selvedge_host::Error;
use selvedge_store::RunStatus as Stored;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// What a task was scored as.
pub(super) struct Score<'r> {
    task_id: &'r str,
    pub(super) right: bool,
    /// The budget has ended it.
    cut_off: bool,
}

impl Prepared {
    /// Which predictions are right, of these tasks: those that are scored and were not cut off by the budget.
    pub(crate) fn scores(&self, meant: &HashSet<Key>) -> Result<Scores, Error> {
        let mut scores = Scores::new();
        self.each_score(|key, score| {
            if meant.contains(&key) && !score.cut_off {
                scores.insert(key, (score.task_id.to_owned(), score.right));
            }
        })?;
        Ok(scores)
    }

    /// Each task that is scored, of the batches that are done.
    pub(super) fn each_score(&self, mut each: impl FnMut(Key, Score<'_>)) -> Result<(), Error> {
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
                if let (Some(key), Some(right)) = (Key::of_run(text("run")), right) {
                    each(key, Score { task_id: text("task_id"), right, cut_off });
                }
            }
        }
        Ok(())
    }
}
