//! The operation that runs a task of a data set, as a run of its own (V-01, E-39).

use super::score;
use super::shares::{Crowd, Share, Shares};
use crate::child::Child;
use crate::error::Error;
use crate::library::held;
use crate::library::operations::{Bench, Undone, answered, beside, failed};
use crate::options::RunOptions;
use crate::timeline::{CallKind, Followed, NodeTimeline, Timeline};
use selvedge_dialects::evolve::Score;
use selvedge_engine::graph::Act;
use selvedge_engine::{Budget, EffectId, Failure, FaultKind, Operated, Outcome, Tokens, ToolRequest};
use selvedge_runtime::{CallContext, Reading};
use selvedge_store::{RunInfo, RunStatus, Store};
use selvedge_tools::operations::Operate;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

/// What it is given.
#[derive(Clone, Debug, Deserialize)]
struct Given {
    task: Task,
    settings: Settings,
}

/// A line of a data set.
#[derive(Clone, Debug, Deserialize)]
struct Task {
    task_id: String,
    /// Of the id and the line: what its run is called by.
    key: String,
    question: String,
    #[serde(default)]
    answer: Option<Value>,
    #[serde(default)]
    files: Vec<String>,
}

/// What all tasks of a batch are run with.
#[derive(Clone, Debug, Deserialize)]
struct Settings {
    /// Fields of the agent's document, besides its query.
    #[serde(default)]
    agent: Map<String, Value>,
    /// The folder of the data set, where relative paths of tools start.
    folder: PathBuf,
    timeout_s: u64,
    concurrency: usize,
    /// How many tasks the batch has.
    #[serde(default)]
    tasks: usize,
    #[serde(default)]
    score: String,
}

/// Runs tasks, so many at a time as the batch says. Whoever waits here holds nothing that a task's own run needs.
pub(crate) fn task(bench: &Arc<Bench>) -> Operate {
    let (bench, turns, shares) = (Arc::clone(bench), Arc::new(OnceLock::new()), Arc::new(Shares::default()));
    Arc::new(move |request: ToolRequest, context: CallContext| {
        let (bench, turns, shares) = (Arc::clone(&bench), Arc::clone(&turns), Arc::clone(&shares));
        Box::pin(async move {
            let given: Given = serde_json::from_value(request.args).map_err(|error| {
                Failure::permanent(FaultKind::InputError, format!("evolve a task: {error}")).unsent()
            })?;
            let most = given.settings.concurrency.clamp(1, Semaphore::MAX_PERMITS);
            let turns: &Arc<Semaphore> = turns.get_or_init(|| Arc::new(Semaphore::new(most)));
            // It is never closed.
            let _turn = Arc::clone(turns).acquire_owned().await.ok();
            answered(run(&bench, &shares, &given, &context).await, &context).await
        })
    })
}

async fn run(
    bench: &Bench,
    shares: &Arc<Shares>,
    given: &Given,
    context: &CallContext,
) -> Result<Operated, Undone> {
    let mut child = child(bench, given, &context.run);
    // Until the task has ended, no other may use its share.
    let share = match share(bench, shares, given, &context.run, &child).await {
        Ok(share) => share,
        Err(Undone::Failed(failure)) => return Ok(not_begun(given, &child.id, failure).into()),
        Err(unanswered) => return Err(unanswered),
    };
    if let Some(share) = &share {
        // The run counts what it used before a crash.
        let rows = bench.store.children(&context.run).map_err(Error::from)?;
        let before = rows.iter().find(|row| row.id == child.id);
        child.options.budget = sum_of(share.budget, before.map_or(NOTHING, used_by));
    }
    let id = child.id.clone();
    let ended = match bench.children.run(child).await {
        Ok(Some(ended)) => ended,
        // It goes on with whoever asks for it again.
        Ok(None) => return std::future::pending().await,
        Err(error) if error.is_of_machine() => return Err(error.into()),
        // It could not begin: that is what came of this task.
        Err(error) => return Ok(not_begun(given, &id, failed(&error)).into()),
    };
    let (store, given) = (Arc::clone(&bench.store), given.clone());
    beside(move || match came_of(&store, &ended, &given) {
        Err(error) if !error.is_of_machine() => Ok(not_begun(&given, &ended.id, failed(&error)).into()),
        said => said,
    })
    .await
}

/// The share of a task of the caps of its batch, and what its run has used before (V-01); `None` without caps.
async fn share(
    bench: &Bench,
    shares: &Arc<Shares>,
    given: &Given,
    batch: &str,
    child: &Child,
) -> Result<Option<Share>, Undone> {
    let caps = child.options.budget;
    if caps == Budget::default() {
        return Ok(None);
    }
    let Settings { concurrency, tasks, .. } = given.settings;
    let used = |is_running: &dyn Fn(&str) -> bool| {
        let rows = bench.store.children(batch).map_err(Error::from)?;
        let begun = rows.iter().filter(|row| row.id != child.id).count();
        let ended = rows.iter().filter(|row| !is_running(&row.id));
        let crowd = Crowd { concurrency, waiting: tasks.max(1).saturating_sub(begun).max(1) };
        Ok::<_, Undone>((ended.fold(NOTHING, |sum, row| sum_of(sum, used_by(row))), crowd))
    };
    match shares.share(&child.id, caps, used).await? {
        Some(share) => Ok(Some(share)),
        None => {
            let message = "the budget of the evolution is used up (--budget)";
            Err(Undone::from(Failure::permanent(FaultKind::BudgetExceeded, message)))
        }
    }
}

const NOTHING: Budget = Budget { calls: Some(0), tokens: Some(0), cost: Some(0.0) };

/// What a run has used, of all that caps can count.
fn used_by(row: &RunInfo) -> Budget {
    let used: Value = serde_json::from_str(&row.usage).unwrap_or_default();
    let count = |name: &str| used.get(name).and_then(Value::as_u64).unwrap_or_default();
    Budget {
        calls: Some(count("model_calls")),
        tokens: Some(count("input_tokens").saturating_add(count("output_tokens"))),
        cost: Some(used.get("cost").and_then(Value::as_f64).unwrap_or_default()),
    }
}

/// The sum of caps or figures; what is absent in the first stays so.
fn sum_of(a: Budget, b: Budget) -> Budget {
    let count = |a: Option<u64>, b: Option<u64>| a.map(|a| a.saturating_add(b.unwrap_or(0)));
    Budget {
        calls: count(a.calls, b.calls),
        tokens: count(a.tokens, b.tokens),
        cost: a.cost.map(|cost| cost + b.cost.unwrap_or(0.0)),
    }
}

/// The run of a task: an agent without anybody to ask.
fn child(bench: &Bench, given: &Given, parent: &Arc<str>) -> Child {
    let Given { task, settings } = given;
    let mut query = task.question.clone();
    if !task.files.is_empty() {
        query.push_str("\n\nFiles:");
        task.files.iter().for_each(|file| query.extend(["\n- ", file]));
    }
    let mut document = settings.agent.clone();
    // What it proves becomes public with what the others of its batch do (V-05).
    document.insert("publish".to_owned(), json!(false));
    // It is an input, so that all tasks have one document, and its graph is kept once.
    document.insert("inputs".to_owned(), json!({"query": {"type": "string"}}));
    document.insert("query".to_owned(), json!("{{inputs.query}}"));
    let options = RunOptions {
        given: Some(Value::Object(document).to_string()),
        document: settings.folder.join("agent.json"),
        timeout_s: Some(settings.timeout_s),
        inputs: Map::from_iter([("query".to_owned(), json!(query))]),
        warnings: Vec::new(),
        ..bench.options.clone()
    };
    let (id, name) = (format!("{parent}-{}", task.key), task.task_id.clone());
    Child { id, name, parent: Arc::clone(parent), options }
}

fn not_begun(given: &Given, run: &str, failure: Failure) -> Value {
    let said = failure.fault;
    let said = json!({
        "task_id": given.task.task_id, "prediction": null, "reasoning": "", "status": "failed",
        "fault": {"kind": said.kind.name(), "message": said.message}, "usage": {}, "tools": [], "seconds": 0.0, "run": run,
    });
    scored(said, given)
}

/// What is said of a task whose run has ended.
fn came_of(store: &Store, ended: &RunInfo, given: &Given) -> Result<Operated, Error> {
    let mut reading = Reading::open(store, &ended.id)?;
    let mut run = Followed::new(reading.graph());
    reading.records(1, u64::MAX, |record| run.take(record))?;
    let times = run.timeline.first().zip(run.timeline.last());
    let state = &run.state;
    let usage = state.usage();
    let mut said = json!({
        "task_id": given.task.task_id,
        "prediction": null,
        "reasoning": "",
        "status": ended.status.as_str(),
        "usage": selvedge_runtime::report::used(&usage),
        "tools": [],
        "seconds": times.map_or(0, |(first, last)| last.at.saturating_sub(first.at)) as f64 / 1000.0,
        "run": ended.id,
    });
    let Some(fields) = said.as_object_mut() else { return Ok(Operated::from(said)) };
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let view = state.view();
    if ended.status == RunStatus::Completed {
        let answer = view.result("integrator").map(|result| result.output.clone()).unwrap_or_default();
        let part = |name: &str| answer.get(name).cloned();
        let said = part("final_answer").unwrap_or_else(|| view.output().clone());
        // Where no model has given the answer, what was found is the prediction, and not the words that say why (V-04).
        let (prediction, reasoning) = match part("last_response") {
            Some(found) if found.as_str().is_none_or(|found| found.trim().is_empty()) => (Value::Null, said),
            Some(found) => (found, said),
            None => (said, part("reasoning_summary").unwrap_or_else(|| json!(""))),
        };
        set("prediction", prediction);
        set("reasoning", reasoning);
    }
    let fault = state.ended().and_then(|(_, fault)| fault);
    if let Some(fault) = fault {
        set("fault", json!({"kind": fault.kind.name(), "message": fault.message}));
    }
    let tools = view.result("tools").and_then(|ended| ended.output.get("tools").cloned());
    let tools = tools.unwrap_or_else(|| json!([]));
    set("tools", tools.clone());
    set("work", work(&run));
    set("reused", json!(reused(store, &run, &tools)?));
    let output = Value::Object(fields.clone());
    Ok(Operated { output: Arc::new(scored(output, given)), tokens: usage.tokens, ..Operated::default() })
}

/// The names of public tools that a task has called and not made itself.
fn reused(store: &Store, run: &Followed, tools: &Value) -> Result<Vec<Arc<str>>, Error> {
    let made = |name: &str| {
        let mut made = tools.as_array().into_iter().flatten().filter(|tool| tool["how"] != "used");
        made.any(|tool| tool["name"] == name)
    };
    let calls = run.timeline.nodes().iter().flat_map(|node| &node.visits).flat_map(|visit| &visit.calls);
    let called =
        calls.filter_map(|call| if let CallKind::Tool(name) = &call.kind { Some(name) } else { None });
    let called: BTreeSet<Arc<str>> = called.filter(|name| !made(name)).cloned().collect();
    if called.is_empty() {
        return Ok(Vec::new());
    }
    held::look(store, |library| called.into_iter().filter(|name| library.public(name).is_some()).collect())
}

/// Whether the prediction is right, where no model has to say it.
fn scored(mut output: Value, given: &Given) -> Value {
    let Some(answer) = &given.task.answer else { return output };
    let kind = Score::NAMES.iter().find(|(name, _)| *name == given.settings.score).map(|(_, kind)| *kind);
    let prediction = output.get("prediction").cloned().unwrap_or_default();
    let right = match kind.unwrap_or_default() {
        Score::Exact => score::exact(&prediction, answer),
        Score::Numeric => score::numeric(&prediction, answer),
        // What is no prediction is wrong, whoever is asked.
        Score::Judge if prediction.is_null() => false,
        Score::Judge => return output,
    };
    if let Some(fields) = output.as_object_mut() {
        fields.insert("correct".to_owned(), right.into());
    }
    output
}

/// What went into a task: calls of tools, and models by role (V-11).
pub(super) fn work(run: &Followed) -> Value {
    let (mut calls, mut succeeded) = (0u64, 0u64);
    let mut roles: BTreeMap<Arc<str>, (u64, Tokens)> = BTreeMap::new();
    for node in run.timeline.nodes() {
        for (call, attempt) in node.visits.iter().flat_map(|visit| visit.attempts()) {
            match (&call.kind, &attempt.outcome) {
                (CallKind::Tool(_), Some(outcome)) => {
                    calls += 1;
                    succeeded += u64::from(matches!(outcome, Outcome::Output(_)));
                }
                (CallKind::Model, outcome) if attempt.was_sent() => {
                    let (count, tokens) =
                        roles.entry(role(&run.timeline, node, &attempt.effect)).or_default();
                    *count += 1;
                    let used = outcome.as_ref().and_then(Outcome::tokens);
                    used.into_iter().for_each(|used| tokens.add(used));
                }
                _ => {}
            }
        }
    }
    let roles: Map<String, Value> = roles
        .into_iter()
        .map(|(role, (count, tokens))| {
            let mut used = json!(tokens);
            if let Some(fields) = used.as_object_mut() {
                fields.insert("calls".to_owned(), count.into());
            }
            (role.to_string(), used)
        })
        .collect();
    json!({"calls": calls, "succeeded": succeeded, "roles": roles})
}

/// The role that a call of a model asks for.
fn role(timeline: &Timeline, node: &NodeTimeline, effect: &EffectId) -> Arc<str> {
    let asks = || {
        let place = effect.place()?;
        let graph = timeline.nodes_of(node.within)?.graph();
        let def = timeline.def(node)?;
        let leaf = graph.leaves(def).find(|leaf| *leaf.name == *place.leaf)?;
        if let Act::Infer(infer) = &leaf.act { infer.model.clone() } else { None }
    };
    asks().unwrap_or_else(|| "basic".into())
}
