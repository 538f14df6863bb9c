//! Agents in random worlds (A-01 … A-28): whatever models say, coders write and tools do, an agent ends, within its limits, with valid
//! conversations, and makes no tool everybody's that nobody has proven; also where its process dies again and again.

mod outside;

use super::once::begin_as;
use super::{Folder, bench};
use outside::{World, number};
use selvedge_dialects::compile::read;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Capabilities, Diagnostics, DocumentLimits, NoTools, Source, agent};
use selvedge_engine::{Budget, Event, Graph, Outcome, RunStatus, Start, State, ToolRequest};
use selvedge_host::compose;
use selvedge_runtime::{
    CallContext, Controls, Driver, Halt, Journal, Limits, Model, Operations, Pending, Reading, Tools, load,
    replay,
};
use selvedge_store::Store;
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Worlds that the suite looks at.
const WORLDS: u64 = 100;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A document whose limits follow from the seed.
fn document(seed: u64) -> (Value, agent::Settings) {
    let dice = |of: &str, sides| number(seed, of) % sides;
    let mut document = json!({
        "query": "find out", "max_task_executions": 1 + dice("rounds", 3), "max_steps": 1 + dice("steps", 5),
        "tool_enhance_interval": 1 + dice("interval", 3), "publish": dice("publish", 5) > 0,
    });
    if dice("limited", 3) == 0 {
        document["budget"] = json!({"calls": 1 + dice("calls", 12)});
    }
    let (context_tokens, tool_output_tokens) =
        if dice("small", 2) == 0 { (400, 60) } else { (120_000, 64_000) };
    (document, agent::Settings { context_tokens, tool_output_tokens, ..agent::Settings::default() })
}

fn graph(document: &Value, settings: agent::Settings) -> (Graph, Budget) {
    let source = Source::new("agent.json", &document.to_string());
    let mut diagnostics = Diagnostics::default();
    let read = read(&source, Choice::default(), &DocumentLimits::default(), &mut diagnostics);
    let capabilities = Capabilities { agent: Arc::new(settings), ..Capabilities::default() };
    let read = read.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let graph = read.compile(&NoTools, &Map::new(), &capabilities, &mut diagnostics);
    (graph.unwrap_or_else(|| panic!("{diagnostics:?}")), read.budget())
}

/// The ports of a process that dies when it is asked for something for the n-th time: before it does that, or before anybody hears of it.
struct Dying<P: ?Sized> {
    own: Arc<P>,
    left: Arc<AtomicU64>,
    done_first: bool,
    dead: Arc<Notify>,
}

impl<P: ?Sized> Dying<P> {
    fn of<T: Send + 'static>(&self, call: impl FnOnce(&P) -> Pending<T>) -> Pending<T> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return call(&self.own);
        }
        let work = self.done_first.then(|| call(&self.own));
        let dead = Arc::clone(&self.dead);
        Box::pin(async move {
            if let Some(work) = work {
                let _ = work.await;
            }
            dead.notify_one();
            std::future::pending().await
        })
    }
}

impl Model for Dying<World> {
    fn call(
        &self,
        request: selvedge_engine::ModelRequest,
        context: CallContext,
    ) -> Pending<selvedge_engine::ModelReply> {
        self.of(|own| Model::call(own, request, context))
    }
}

impl Tools for Dying<World> {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value> {
        self.of(|own| Tools::call(own, request, context))
    }
}

impl Operations for Dying<dyn Operations> {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<selvedge_engine::Operated> {
        self.of(|own| own.call(request, context))
    }
}

/// What came of a world.
#[derive(Debug, PartialEq)]
struct Came {
    output: Value,
    /// What happened to the library, whatever came first of what happened at the same time.
    library: Vec<String>,
}

/// Drives the agent of a seed, in processes that die after so many requests each; no more than `deaths` of them do.
async fn lived(seed: u64, catalogue: &Catalogue, deaths: u64) -> Result<Came, String> {
    let store = Arc::new(Store::memory().map_err(|error| error.to_string())?);
    let world = Arc::new(World { seed, store: Arc::clone(&store), wrong: Mutex::default() });
    let (document, settings) = document(seed);
    let (graph, budget) = graph(&document, settings);
    let graph = Arc::new(graph);
    let start = Start { budget, edition: selvedge_engine::EDITION, ..Start::default() };
    let mut state = begin_as(&store, "r", &graph, (None, start)).await;
    for life in 0.. {
        let dies = if life < deaths { 1 + number(seed, &format!("life {life}")) % 25 } else { u64::MAX };
        if drive(
            &world,
            catalogue,
            &mut state,
            (dies, number(seed, &format!("way {life}")).is_multiple_of(2)),
        )
        .await?
        {
            break;
        }
        state = load(&store, "r", None, None).map_err(|error| error.to_string())?.state;
    }
    let wrong = world.wrong.lock().unwrap().join("\n");
    if !wrong.is_empty() {
        return Err(wrong);
    }
    checked(&store, &state, &document, &graph)
}

async fn drive(
    world: &Arc<World>,
    catalogue: &Catalogue,
    state: &mut State,
    (dies, done_first): (u64, bool),
) -> Result<bool, String> {
    let mut bench = bench(&world.store, catalogue, std::env::temp_dir());
    bench.workshop = Arc::clone(world) as _;
    let (left, dead) = (Arc::new(AtomicU64::new(dies)), Arc::new(Notify::new()));
    let port =
        || Dying { own: Arc::clone(world), left: Arc::clone(&left), done_first, dead: Arc::clone(&dead) };
    let own: Arc<dyn Operations> = Arc::new(compose::operations(bench));
    let operations = Dying { own, left: Arc::clone(&left), done_first, dead: Arc::clone(&dead) };
    let driver = Driver::new(Arc::new(port()), Arc::new(port()), Limits::default());
    let driver = driver.with_operations(Arc::new(operations));
    let mut journal = Journal::stored(Arc::clone(&world.store), "r", state.events());
    let mut controls = Controls::default();
    tokio::select! {
        halt = driver.drive("r", state, &mut journal, Vec::new(), &mut controls) => match halt {
            Ok(Halt::Ended) => Ok(true),
            other => Err(format!("it does not end: {other:?}")),
        },
        () = dead.notified() => Ok(false),
    }
}

/// What has to be so at the end, whatever happened.
fn checked(store: &Store, state: &State, document: &Value, graph: &Graph) -> Result<Came, String> {
    if state.status() != RunStatus::Completed {
        return Err(format!("it is {:?}: {:?}", state.status(), state.view().fault()));
    }
    let output = state.view().output().clone();
    if output.as_str().is_none_or(|text| text.trim().is_empty()) {
        return Err(format!("its answer is {output}"));
    }
    let (mut asked, mut entered, mut gave) = (0, BTreeMap::new(), BTreeSet::new());
    let mut reading = Reading::open(store, "r").map_err(|error| error.to_string())?;
    let mut folded = State::new(Arc::new(graph.clone()));
    for entry in store.journal("r", 1).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let event = reading.event(&entry).map_err(|error| error.to_string())?;
        match &event {
            Event::Completed { effect, outcome, .. } => match (folded.request(effect), outcome) {
                (Some(selvedge_engine::Request::Model(_)), Outcome::Reply(_)) => asked += 1,
                (Some(selvedge_engine::Request::Tool(request)), Outcome::Output(_)) => {
                    gave.insert(request.tool.version.to_string());
                }
                _ => {}
            },
            Event::Entered { node, iteration: Some(iteration), .. } => {
                let most: &mut u32 = entered.entry(Arc::clone(node)).or_default();
                *most = (*most).max(iteration + 1);
            }
            _ => {}
        }
        folded.apply_record(&selvedge_engine::Record { at: entry.at_ms, event });
    }
    if document["budget"]["calls"].as_u64().is_some_and(|calls| asked > calls) {
        return Err(format!("{asked} calls of models, against {}", document["budget"]));
    }
    for (node, iterations) in &entered {
        let most = match node.rsplit('/').next() {
            Some("rounds") => document["max_task_executions"].as_u64(),
            Some(attempts) if attempts.starts_with("attempts") => Some(3),
            _ => None,
        };
        if most.is_some_and(|most| u64::from(*iterations) > most) {
            return Err(format!("{node} went round {iterations} times"));
        }
    }
    let replayed = replay(&mut Reading::open(store, "r").map_err(|error| error.to_string())?);
    if let Some(diverged) = replayed.map_err(|error| error.to_string())?.diverged {
        return Err(format!("its replay is another: {diverged:?}"));
    }
    Ok(Came { output, library: proven(store, document, &gave)? })
}

/// The library's journal, in which nothing became everybody's that had not proven itself, and no task is left open. A draft that was
/// being taken in when its path was cut off may come behind the end of its task: the next command ends that one (A-19).
fn proven(store: &Store, document: &Value, gave: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let entries = store.library(1).map_err(|error| error.to_string())?;
    let events: Vec<Value> = entries.iter().map(|entry| serde_json::from_str(&entry.json).unwrap()).collect();
    let (mut proven, mut open, mut over) = (BTreeSet::new(), BTreeSet::new(), false);
    for event in &events {
        let version = event["version"].as_str().unwrap_or_default();
        match event["kind"].as_str().unwrap_or_default() {
            "drafted" if !over => drop(open.insert(event["place"].to_string())),
            "proven" if !gave.contains(version) => {
                return Err(format!("no call of {version} gave anything: {event}"));
            }
            "proven" => drop(proven.insert(version)),
            "published" if !proven.contains(version) => return Err(format!("it is not proven: {event}")),
            "published" if document["publish"] == false => return Err(format!("it was not to be: {event}")),
            "task_ended" => {
                open.clear();
                over = true;
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        return Err(format!("tasks are left open: {open:?}"));
    }
    let mut kept: Vec<String> = events.iter().map(Value::to_string).collect();
    kept.sort();
    Ok(kept)
}

/// 10^4 of them by hand: `SELVEDGE_SIM_AGENTS=10000 cargo test --release -p selvedge-cli --test all worlds`; `SELVEDGE_SIM_SEED=N`: from that seed on,
/// or that one alone.
#[tokio::test]
async fn a_agents_end_within_their_limits_in_random_worlds() {
    let folder = Folder::new();
    let store = Arc::new(Store::memory().unwrap());
    let config = CatalogueConfig { library: None, tool_dirs: Vec::new(), ..folder.config(&store) };
    let catalogue = Catalogue::load(config).await.unwrap();
    let (first, worlds) = (setting("SELVEDGE_SIM_SEED"), setting("SELVEDGE_SIM_AGENTS"));
    let worlds = worlds.unwrap_or(if first.is_some() { 1 } else { WORLDS });
    let seeds = first.unwrap_or(0)..first.unwrap_or(0) + worlds;
    let mut met: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds.clone() {
        let about = || format!("seed {seed}: {}", document(seed).0);
        let came = lived(seed, &catalogue, 0).await.unwrap_or_else(|why| panic!("{}: {why}", about()));
        for event in &came.library {
            let event: Value = serde_json::from_str(event).unwrap();
            *met.entry(event["kind"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        // Whoever dies, and how often: it comes to the same, unless a budget ends it, which is that of whoever asks last.
        let again = lived(seed, &catalogue, 1 + seed % 4)
            .await
            .unwrap_or_else(|why| panic!("{}, with deaths: {why}", about()));
        assert!(
            came == again || document(seed).0.get("budget").is_some(),
            "{}: {came:#?} {again:#?}",
            about()
        );
    }
    // What it is about happens.
    let kinds =
        ["drafted", "enhanced", "proven", "published", "retired", "tested", "call_recorded", "task_ended"];
    let missed: Vec<_> = kinds.iter().filter(|kind| met.get(**kind).is_none_or(|times| *times < 5)).collect();
    assert!(seeds.end - seeds.start < WORLDS || missed.is_empty(), "too seldom: {missed:?} in {met:?}");
}
