//! A batch as flows: a path for each task, and then the rest (V-01, V-05).

use super::operations as op;
use super::optimise::{Optimise, optimise};
use crate::agent::Settings;
use crate::agent::build::{Step, ask, call, done, each, fault, flow, give, leaf, set, step, warn, when};
use crate::agent::schemas;
use selvedge_engine::graph::{Act, Sub};
use selvedge_engine::template::JsonTemplate;
use selvedge_engine::{Graph, GraphIx, Table};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands for a dialect in runs of batches.
pub const BATCH: &str = "evolve";

/// The node that does the tasks: its result has what became of each.
pub const TASKS: &str = "batch";

/// The node of a path that runs its task: what it comes to is what is said of the task.
pub const TASK: &str = "run";

/// How a prediction is held against the answer (V-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Score {
    /// The same text, but for what spaces, capitals and marks around it say.
    #[default]
    Exact,
    /// The same number.
    Numeric,
    /// A model of the role `judge` says so.
    Judge,
}

impl Score {
    /// Their names in options.
    pub const NAMES: [(&'static str, Self); 3] =
        [("exact", Self::Exact), ("numeric", Self::Numeric), ("judge", Self::Judge)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Numeric => "numeric",
            Self::Judge => "judge",
        }
    }
}

/// What the judge of a prediction is asked.
const JUDGE: &str = include_str!("prompts/score.md");

/// The graph of all batches that are scored and optimised so; without a way to optimise it the library stays as it is (V-13). Its first data layer has `tasks` and `settings`, as [`op::task`] takes them, `runs`,
/// the runs of these tasks, and `before`, as [`op::account`] does; its output is what that gives.
pub fn batch(score: Score, settings: &Settings, how: Option<Optimise>) -> Option<Graph> {
    let mut graphs = Table::new();
    let path = graphs.push(Arc::new(task(score)?));
    let measured = json!({"before": "{{before}}", "tasks": "{{batch.output}}", "optimised": "{{optimised}}"});
    let (mut tools, mut optimising) = (BTreeMap::new(), Vec::new());
    if let Some(how) = how {
        let library = optimise(settings, how, &mut graphs)?;
        tools.clone_from(&library.tools);
        optimising = after(graphs.push(Arc::new(library)))?;
    }
    let next = if optimising.is_empty() { "measure" } else { "optimise" };
    let mut steps = vec![
        step("begin", None, vec![set("optimised", json!(null))?], vec![done(TASKS)]),
        step(TASKS, None, vec![each("{{tasks}}", "task", path)?], vec![done(next)]),
    ];
    steps.extend(optimising);
    steps.push(step("measure", None, vec![call(&op::account(), measured)?], vec![done("answer")]));
    steps.push(step("answer", None, vec![give(json!("{{measure.output}}"))?], vec![]));
    let mut graph = flow(&[], steps)?;
    graph.graphs = graphs;
    tools.extend(op::all().into_iter().map(|tool| (tool.name.clone(), tool)));
    graph.tools = tools;
    Some(graph)
}

/// What has the library optimised, by that graph (V-05).
fn after(library: GraphIx) -> Option<Vec<Step>> {
    let inputs = vec![("runs".into(), JsonTemplate::from_value(json!("{{runs}}")).ok()?)];
    let optimised = Act::Sub(Box::new(Sub { graph: library, inputs, outputs: Vec::new(), timeout_s: None }));
    let unchanged = "the library is as it was before this batch: {{optimise.error.message}}";
    Some(vec![
        step("optimise", None, vec![leaf("library", optimised)], vec![done("taken"), fault("unchanged")]),
        step("taken", None, vec![set("optimised", json!("{{optimise.output}}"))?], vec![done("measure")]),
        step("unchanged", None, vec![warn("library-unchanged", unchanged)?], vec![done("measure")]),
    ])
}

/// One task: it is run, and what it answers is judged where a model has to.
fn task(score: Score) -> Option<Graph> {
    let run = vec![call(&op::task(), json!({"task": "{{task}}", "settings": "{{settings}}"}))?];
    let judged = "run.output.prediction != null && run.output.prediction != '' && 'answer' in task";
    let mut ways = vec![done("answer")];
    if score == Score::Judge {
        ways.insert(0, when(judged, "judge"));
    }
    let mut judge = vec![set("prediction", json!("{{run.output.prediction}}"))?];
    judge.extend(ask(JUDGE, "judge", Some(schemas::equivalence()))?);
    flow(
        &["judge"],
        vec![
            step(TASK, None, run, ways),
            step("judge", Some(0), judge, vec![done("judged"), fault("answer")]),
            step(
                "judged",
                None,
                vec![give(json!({"task": "{{run.output}}", "correct": "{{judge.output.equal}}"}))?],
                vec![],
            ),
            step("answer", None, vec![give(json!({"task": "{{run.output}}"}))?], vec![]),
        ],
    )
}
