//! Evolution: what a task costs, long data sets, and libraries that are grouped, merged and published.

use crate::Result;
use crate::library::Asking;
use crate::measure::{complain, cpu_s, emit, folder};
use crate::runs::runtime;
use crate::tools::{config, missing, write};
use selvedge_dialects::evolve::optimise::operations as op;
use selvedge_dialects::evolve::{Optimise, Score};
use selvedge_engine::library::{Author, Change, Command, Facts, Place, Sample};
use selvedge_evolve::{DataSet, Evolution, Heard, Part};
use selvedge_host::library::{Decided, change, record};
use selvedge_host::{Environment, Host, RunOptions};
use selvedge_runtime::Stop;
use selvedge_store::{BlobHash, Mode, Store};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Lines of a data set that are written at once.
const PART: usize = 10_000;
/// Lines that a data set of a million has grown by when it is checked again.
const MORE: usize = 1_000;
/// Recorded calls of each tool that is merged.
const EACH: usize = 50;

pub(crate) fn evolve(scale: f64) -> Result<()> {
    let of = |n: f64| ((n * scale) as usize).max(10);
    runtime()?.block_on(async {
        tasks(of(500.0)).await?;
        data_set(of(1_000_000.0))?;
        grouped(of(10_000.0)).await?;
        published(of(1_000.0)).await?;
        regressed(of(1_000.0)).await
    })
}

/// Lines of a data set.
fn lines(from: usize, to: usize) -> String {
    (from..to).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{{\"task_id\": \"t{n}\", \"question\": \"What is said of the number {n}, and of all that came before it?\", \"answer\": \"said\"}}");
        text
    })
}

/// What a task costs whose models answer at once, and which calls no tool.
async fn tasks(count: usize) -> Result<()> {
    let folder = folder()?;
    let (file, script) = (folder.path().join("tasks.jsonl"), folder.path().join("script.yaml"));
    std::fs::write(&file, lines(0, count))?;
    let none = json!({"required_tool_names": [], "tool_usage_guidance": "", "tool_requests": []});
    let rules = json!([
        {"when": {"node": "manager"}, "reply": {"json": none}},
        {"when": {"node": "executor"}, "reply": {"text": "Said."}},
        {"when": {"node": "judge"}, "reply": {"json": {"status": "FINISH", "reason": "It is said."}}},
        {"when": {"node": "integrate"}, "reply": {"json": {"final_answer": "said", "reasoning_summary": "Said."}}},
    ]);
    std::fs::write(&script, rules.to_string())?;
    let environment = Environment::new([], folder.path().to_owned());
    let host = Host::new(environment).in_state_dir(Some(&folder.path().join("state")));
    let options = RunOptions { script: Some(script), cwd: folder.path().to_owned(), ..RunOptions::default() };
    let evolution = Evolution {
        data_set: DataSet::open(&file, &file).map_err(|error| format!("{error:?}"))?,
        part: Part::default(),
        out: Some(folder.path().join("out")),
        batch_size: 10,
        concurrency: 5,
        task_timeout_s: 600,
        score: Score::Exact,
        optimise: Some(Optimise::default()),
        workers: None,
        agent: serde_json::Map::new(),
        options,
    };
    let prepared = evolution.prepare(&host).await.map_err(|error| format!("{error:?}"))?;
    let heard: Arc<dyn Heard> = Arc::new(());
    let (start, cpu) = (Instant::now(), cpu_s());
    let summary = prepared.go(&heard, &Stop::default()).await.map_err(|error| format!("{error:?}"))?;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_s() - cpu);
    if summary.done != count as u64 || summary.failed > 0 {
        return Err(format!("not all tasks are done: {summary:?}").into());
    }
    let each = |seconds: f64| seconds / count as f64 * 1e3;
    emit("evolve-task", json!({"tasks": count, "cpu_ms": each(cpu), "wall_ms": each(wall)}));
    Ok(())
}

/// A data set that is checked, and again when it has grown.
fn data_set(count: usize) -> Result<()> {
    let folder = folder()?;
    let file = folder.path().join("tasks.jsonl");
    // In parts: the most memory that is used is not to be that of this text.
    let write = |from: usize, to: usize| -> Result<()> {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&file)?;
        for part in (from..to).step_by(PART) {
            file.write_all(lines(part, (part + PART).min(to)).as_bytes())?;
        }
        Ok(())
    };
    write(0, count)?;
    let set = DataSet::open(&file, &file).map_err(|error| format!("{error:?}"))?;
    let check = || -> Result<f64> {
        let start = Instant::now();
        let checked =
            set.check(Part::default(), Some(folder.path())).map_err(|error| format!("{error:?}"))?;
        checked.keep(&file, folder.path()).map_err(|error| format!("{error:?}"))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let before = peak_mb();
    let first = check()?;
    write(count, count + MORE)?;
    let again = check()?;
    emit(
        "evolve-data-set",
        json!({"lines": count, "first_s": first, "again_s": again, "peak_mb": peak_mb(), "peak_before_mb": before}),
    );
    Ok(())
}

/// The most memory that this process has had.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Tools with names and descriptions that have much in common, public or a task's own and proven.
fn has(
    store: &Store,
    count: usize,
    task: Option<&str>,
    text: impl Fn(usize) -> String,
) -> Result<Vec<Arc<str>>> {
    let (verbs, things) =
        (["read", "count", "join", "draw", "sort"], ["table", "date", "graph", "length", "price"]);
    let word = |of: [&'static str; 5], n: usize| of.into_iter().nth(n % 5).unwrap_or_default();
    let place = task.map_or(Place::Library, |task| Place::Task(task.into()));
    let made = change(store, |library| {
        let mut change = Change::new(library);
        let (mut contents, mut versions) = (Vec::new(), Vec::new());
        for n in 0..count {
            let (verb, thing) = (word(verbs, n), word(things, n / 5));
            let text = text(n);
            let version: Arc<str> = BlobHash::of(text.as_bytes()).to_string().into();
            contents.push(text.into_bytes());
            let facts = Facts {
                description: format!("{verb}s the {thing} of kind k{} and tells m{}", n / 25, n * 7).into(),
                input_schema: json!({"properties": {format!("f{}", n % 91): {"type": "integer"}}}),
                ..Facts::default()
            };
            let of = || Arc::clone(&version);
            let name: Arc<str> = format!("{verb}_{thing}_{}", n / 25).into();
            let mut commands = vec![
                Command::Draft {
                    place: place.clone(),
                    version: of(),
                    name,
                    author: Author::Person,
                    parents: Vec::new(),
                    members: Vec::new(),
                    request: json!({}),
                },
                Command::Validate { place: place.clone(), version: of(), facts },
            ];
            match &place {
                Place::Library => {
                    commands.push(Command::Publish { place: place.clone(), version: of(), name: None })
                }
                Place::Task(task) => {
                    commands.push(Command::Keep { task: task.clone(), version: of(), name: None });
                    commands.push(Command::Prove { task: task.clone(), version: of() });
                }
            }
            for command in commands {
                change.accept(command).map_err(|refusal| selvedge_host::library::refused(&refusal))?;
            }
            versions.push(version);
        }
        Ok(Decided { events: change.into_events(), contents, what: versions })
    });
    made.map_err(|error| format!("{error:?}").into())
}

async fn asking(store: &Arc<Store>, folder: &Path) -> Result<Asking> {
    Asking::of(store, selvedge_tools::CatalogueConfig { tool_dirs: Vec::new(), ..config(folder)? }).await
}

/// A library that is grouped by names, and divided into what a model is told at once.
async fn grouped(count: usize) -> Result<()> {
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    has(&store, count, None, |n| format!("# {n}"))?;
    has(&store, 5, Some("r/t"), |n| format!("# own {n}"))?;
    let mut asking = asking(&store, folder.path()).await?;
    let collect = |cluster: &str| json!({"depth": 0, "runs": ["r"], "cluster": cluster, "before": null});
    // The first one folds the library.
    asking.ask(op::collect(), "t", collect("naive")).await?;
    let (found, collect_ms) = asking.ask(op::collect(), "t", collect("naive")).await?;
    let clusters = json!({"depth": 0, "candidates": found.get("candidates"), "parts": [], "answers": {}, "cluster": "naive", "merge": "smart", "before": null, "kept": {}});
    let (_, naive_ms) = asking.ask(op::clusters(), "t", clusters).await?;
    let (smart, blocking_ms) = asking.ask(op::collect(), "t", collect("smart")).await?;
    let parts = smart.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
    let told = parts.iter().filter_map(|part| part.get("tools")?.as_str().map(str::len)).max();
    emit(
        "evolve-groups",
        json!({"tools": count, "naive_ms": collect_ms + naive_ms, "blocking_ms": blocking_ms, "prompts": parts.len(), "longest_prompt_bytes": told}),
    );
    Ok(())
}

/// Tools of tasks become everybody's, in one commit.
async fn published(count: usize) -> Result<()> {
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    has(&store, count, Some("r/t"), |n| format!("# {n}"))?;
    let mut asking = asking(&store, folder.path()).await?;
    let collect = json!({"depth": 0, "runs": ["r"], "cluster": "naive", "before": null});
    let (found, _) = asking.ask(op::collect(), "t", collect).await?;
    let publish =
        json!({"depth": 0, "clusters": [], "single": found.get("candidates"), "merged": {}, "last": false});
    let before = store.commits();
    let (done, ms) = asking.ask(op::publish(), "t", publish).await?;
    let public = done.get("changes").and_then(Value::as_array).map_or(0, Vec::len);
    if public != count {
        return Err(format!("{public} of {count} tools are public").into());
    }
    emit("evolve-publication", json!({"tools": count, "ms": ms, "commits": store.commits() - before}));
    Ok(())
}

/// Recorded calls of several tools, repeated with one for all of them.
async fn regressed(calls: usize) -> Result<()> {
    let folder = folder()?;
    write(folder.path(), "echo", "    return {'x': i.x}")?;
    if let Some(why) = missing(folder.path()).await? {
        complain(&format!("evolve: repeated calls are left out: {why}"));
        return Ok(());
    }
    let file = std::fs::read_to_string(folder.path().join("tools/echo.py"))?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    // A version keeps no more than some of its calls.
    let several = calls.div_ceil(EACH).max(2);
    let versions = has(&store, several + 1, Some("r/t"), |n| format!("{file}\n# {n}\n"))?;
    let members: Vec<&Arc<str>> = versions.iter().take(several).collect();
    let mut asking = asking(&store, folder.path()).await?;
    change(&store, |library| {
        let (mut change, mut contents) = (Change::new(library), Vec::new());
        for x in 0..calls {
            let Some(version) = members.get(x % several) else { continue };
            let sample: Sample = serde_json::from_value(json!({"arguments": {"x": x}, "output": {"x": x}}))
                .map_err(|error| selvedge_host::Error::internal(&error.to_string()))?;
            let json = serde_json::to_string(&sample)
                .map_err(|error| selvedge_host::Error::internal(&error.to_string()))?;
            change
                .accept(record::recorded(version, &sample, &json, None))
                .map_err(|refusal| selvedge_host::library::refused(&refusal))?;
            contents.push(json.into_bytes());
        }
        Ok(Decided { events: change.into_events(), contents, what: () })
    })
    .map_err(|error| format!("{error:?}"))?;
    let of = |version: &Arc<str>| json!({"name": format!("echo_{}", version.get(..4).unwrap_or_default()), "version": version, "tasks": ["r/t"]});
    let cluster = json!({"name": "echo", "members": members.iter().map(|version| of(version)).collect::<Vec<_>>(), "versions": members, "ready": []});
    let regress = || json!({"depth": 0, "cluster": cluster, "version": versions.last()});
    let (_, first) = asking.ask(op::regress(), "t", regress()).await?;
    let (came, warm) = asking.ask(op::regress(), "t", regress()).await?;
    let passed = came.get("passed").and_then(Value::as_u64).unwrap_or_default();
    if passed == 0 {
        return Err(format!("nothing passes: {came}").into());
    }
    emit(
        "evolve-regression",
        json!({"calls": calls, "passed": passed, "first_s": first / 1e3, "warm_s": warm / 1e3}),
    );
    Ok(())
}
