//! The operation that measures a batch (V-11): what its tasks came to, with what was used, added to the batches before it.

use super::measures::{Change, Figures, How, Measures, RoleUsage, Separate, ToolCounts};
use super::task::work;
use crate::error::Error;
use crate::library::operations::{Bench, answered, beside};
use crate::timeline::Followed;
use selvedge_engine::{Failure, FaultKind, ToolRequest};
use selvedge_runtime::{CallContext, Clock, Reading, SystemClock};
use selvedge_store::Store;
use selvedge_tools::operations::Operate;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    /// The measures of the batch before.
    before: Option<Measures>,
    /// What each path of a task gave, by its number.
    tasks: BTreeMap<String, Path>,
    /// What was done to the library, if that could be done.
    optimised: Option<Optimised>,
}

#[derive(Deserialize)]
struct Path {
    task: Said,
    /// What a judge said of it.
    #[serde(default)]
    correct: Option<bool>,
}

/// What is said of a task, as far as it is counted.
#[derive(Deserialize)]
struct Said {
    status: String,
    #[serde(default)]
    correct: Option<bool>,
    #[serde(default)]
    tools: Vec<Made>,
    #[serde(default)]
    work: Work,
    /// Public tools that it has called.
    #[serde(default)]
    reused: Vec<String>,
}

/// A tool that a task made or used.
#[derive(Deserialize)]
struct Made {
    state: String,
    how: String,
}

/// What went into something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Work {
    calls: u64,
    succeeded: u64,
    roles: BTreeMap<Arc<str>, RoleUsage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Optimised {
    changes: Vec<Change>,
    separate: Vec<Separate>,
}

/// Measures the batch that asks.
pub(crate) fn measure(bench: &Arc<Bench>) -> Operate {
    let bench = Arc::clone(bench);
    Arc::new(move |request: ToolRequest, context: CallContext| {
        let bench = Arc::clone(&bench);
        Box::pin(async move {
            let given = Given::deserialize(&request.args).map_err(|error| {
                Failure::permanent(FaultKind::InputError, format!("measure a batch: {error}")).unsent()
            })?;
            let run = Arc::clone(&context.run);
            let measured = beside(move || {
                let (own, seconds) = of_batch(&bench.store, &run)?;
                Ok(json!(measured(given, own, seconds)).into())
            });
            answered(measured.await, &context).await
        })
    })
}

/// What the batch itself has asked models for, and how long it has taken so far.
fn of_batch(store: &Store, run: &str) -> Result<(Work, f64), Error> {
    let mut reading = Reading::open(store, run)?;
    let mut followed = Followed::new(reading.graph());
    reading.records(1, u64::MAX, |record| followed.take(record))?;
    let began = followed.timeline.first().map_or(0, |first| first.at);
    let seconds = SystemClock.now_ms().saturating_sub(began).max(0) as f64 / 1000.0;
    Ok((Work::deserialize(work(&followed)).unwrap_or_default(), seconds))
}

fn measured(given: Given, own: Work, seconds: f64) -> Measures {
    let mut figures = Figures { roles: own.roles, seconds, ..Figures::default() };
    for Path { task, correct } in given.tasks.into_values() {
        figures.done += 1;
        figures.failed += u64::from(task.status != "completed");
        if let Some(right) = correct.or(task.correct) {
            figures.scored += 1;
            figures.right += u64::from(right);
        }
        figures.calls += task.work.calls;
        figures.succeeded += task.work.succeeded;
        for (role, used) in task.work.roles {
            let sum = figures.roles.entry(role).or_default();
            sum.calls += used.calls;
            sum.tokens.add(&used.tokens);
        }
        figures.tools.reused += task.reused.len() as u64;
        task.tools.iter().for_each(|tool| count(&mut figures.tools, tool));
    }
    let optimised = given.optimised.unwrap_or_default();
    for change in &optimised.changes {
        match change.how {
            How::Merged => figures.tools.merged += change.from.len().max(1) as u64,
            How::Retired => figures.tools.retired += 1,
            // What tasks have made was counted with them.
            How::Created | How::Enhanced => {}
        }
    }
    let measures = Measures::after(given.before.as_ref(), figures);
    Measures { changes: optimised.changes, separate: optimised.separate, ..measures }
}

fn count(tools: &mut ToolCounts, made: &Made) {
    match (made.how.as_str(), made.state.as_str()) {
        // What was built and then mended in its task is a new tool all the same.
        ("built", "private" | "public" | "enhanced") => tools.created += 1,
        ("enhanced", "private" | "public") => tools.enhanced += 1,
        (_, "retired") => tools.retired += 1,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// V-11: what tasks came to is counted, and what a judge says of a prediction goes before the rest.
    #[test]
    fn v11_a_batch_is_the_sum_of_its_tasks() {
        let given = |before: Value| {
            let work = |calls: u64, role: &str| json!({"calls": calls, "succeeded": calls - 1, "roles": {role: {"calls": 1, "input": 10, "output": 2, "cost": 0.5}}});
            let tasks = json!({
                "0": {"task": {"status": "completed", "correct": true, "work": work(3, "basic"),
                               "tools": [{"state": "private", "how": "built"}, {"state": "retired", "how": "built"}, {"state": "public", "how": "used"}], "reused": ["x"]}},
                "1": {"task": {"status": "completed", "work": work(1, "coder"), "tools": [{"state": "private", "how": "enhanced"}]}, "correct": false},
                "2": {"task": {"status": "failed", "tools": []}},
            });
            let optimised = json!({"changes": [{"name": "a", "version": "v", "how": "merged", "from": ["x", "y"]}], "separate": []});
            serde_json::from_value::<Given>(json!({"before": before, "tasks": tasks, "optimised": optimised}))
                .unwrap()
        };
        let first = measured(given(Value::Null), Work::default(), 2.0);
        let own = &first.own;
        assert_eq!((first.batch, own.done, own.failed, own.scored, own.right), (1, 3, 1, 2, 1));
        assert_eq!((own.calls, own.succeeded, own.roles["basic"].tokens.input), (4, 2, 10));
        let tools = ToolCounts { created: 1, reused: 1, enhanced: 1, merged: 2, retired: 1 };
        assert_eq!((own.tools, first.changes.len()), (tools, 1));
        let second = measured(given(json!(first)), Work::default(), 2.0);
        assert_eq!((second.batch, second.total.done, second.total.egl), (2, 6, Some(0.25)));
    }
}
