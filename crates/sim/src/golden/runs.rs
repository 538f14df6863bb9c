//! Recorded journals of runs of the program itself: forks with their sources, runs with tools of servers and of the library,
//! runs that a person, a signal or a limit ended. Nothing of their world is needed: what came of an effect stands in the journal.

use super::world::World;
use crate::conformance::compare::{data_out, metadata};
use crate::conformance::laws::{replay, unlike, without_attempts};
use crate::conformance::messages::short;
use selvedge_engine::{Event, Graph, Input, Record, RunStatus, State};
use selvedge_runtime::{Journal, recorded};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first line of a recorded run; each line behind it is an event of its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The case of the command line as it was: its files and commands.
    pub case: Value,
    /// The run's id.
    pub run: String,
    /// Of a fork: the source's file, and how many of its events are the fork's, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The graphs that the run's own events name, by hash.
    pub graphs: BTreeMap<String, Value>,
    /// What the run came to.
    pub end: Value,
}

/// Where a fork left its source.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The source's file, without `.jsonl`.
    pub file: String,
    /// The shared events.
    pub shared: usize,
}

/// A recorded run, whole: a fork's with the events that it shares.
#[derive(Debug)]
pub struct Run {
    /// The graph with which the journal begins.
    pub graph: Arc<Graph>,
    /// All events.
    pub records: Vec<Record>,
    /// How many of them are its source's.
    pub shared: usize,
}

/// The folder of the recorded runs.
pub fn dir() -> PathBuf {
    super::dir().join("runs")
}

/// Reads a recorded run, and its sources.
///
/// # Errors
/// What can't be read, or is read as something else than was written.
pub fn read(path: &Path) -> Result<(Head, Run), String> {
    let wrong = |error: serde_json::Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines();
    let head: Head = recorded(lines.next().unwrap_or_default().as_bytes()).map_err(wrong)?;
    let mut graphs = BTreeMap::new();
    for (hash, graph) in &head.graphs {
        let compiled: Graph = serde_json::from_value(graph.clone()).map_err(wrong)?;
        if compiled.hash().map_err(wrong)? != *hash {
            return Err(format!("the graph {hash} is read as another one"));
        }
        graphs.insert(hash.clone(), Arc::new(compiled));
    }
    let source = match &head.source {
        Some(source) => {
            Some((source.shared, read(&path.with_file_name(format!("{}.jsonl", source.file)))?.1))
        }
        None => None,
    };
    let mut own = Vec::new();
    for line in lines {
        let mut record: Record = recorded(line.as_bytes()).map_err(wrong)?;
        if serde_json::to_string(&record).map_err(wrong)? != line {
            return Err(format!("an event is read as another one: {line}"));
        }
        if let (Event::Forked(fork), Some((_, source))) = (&mut record.event, &source) {
            fork.past = Some(Arc::new(source.past(fork.events)));
            fork.compiled = fork.graph.as_ref().and_then(|hash| graphs.get(&**hash).cloned());
        }
        own.push(record);
    }
    let run = match source {
        Some((shared, source)) => {
            let records = source.records.into_iter().take(shared).chain(own).collect();
            Run { graph: source.graph, records, shared }
        }
        None => {
            let Some(Record { event: Event::Started(start), .. }) = own.first() else {
                return Err("the journal does not begin with its start".into());
            };
            let graph = graphs.get(&*start.graph).cloned().ok_or("there is no graph to begin with")?;
            Run { graph, records: own, shared: 0 }
        }
    };
    Ok((head, run))
}

impl Run {
    /// What the run had recorded after so many events.
    fn past(&self, events: u64) -> selvedge_engine::Recording {
        let mut state = State::recording(Arc::clone(&self.graph));
        let most = usize::try_from(events).unwrap_or(usize::MAX);
        self.records.iter().take(most).for_each(|record| state.apply_record(record));
        state.past()
    }

    /// The state after the first `events` events.
    pub fn fold(&self, events: usize) -> State {
        let mut state = State::new(Arc::clone(&self.graph));
        self.records.iter().take(events).for_each(|record| state.apply_record(record));
        state
    }
}

/// All that can be observed of a run.
pub fn summary(state: &State) -> Value {
    let view = state.view();
    let threads: serde_json::Map<String, Value> = view
        .threads()
        .map(|(name, messages)| (name.to_string(), messages.iter().map(|message| short(message)).collect()))
        .collect();
    let mut warnings: Vec<Value> = state.warnings().iter().map(|warning| json!(warning)).collect();
    warnings.sort_by_key(Value::to_string);
    json!({
        "status": view.status(), "output": view.output(), "fault": view.fault(), "threads": threads,
        "data_out": data_out(view), "results": view.results().collect::<Vec<_>>(), "metadata": metadata(view), "warnings": warnings,
        "asks": state.asks().keys().collect::<Vec<_>>(),
    })
}

/// Checks that a recorded run is still what it was: it folds to its end, replays byte for byte, and a new process goes on after
/// each of its own events and comes to the same end.
///
/// # Errors
/// What is different.
pub fn check(path: &Path) -> Result<(), String> {
    let (head, run) = read(path)?;
    let end = summary(&run.fold(usize::MAX));
    if end != head.end {
        return Err(format!("it folds to another end\n  recorded: {}\n  here:     {end}", head.end));
    }
    if let Some(why) = unequal(&run.graph, &run.records) {
        return Err(why);
    }
    let first = run.shared.max(1);
    for events in first..run.records.len() {
        // The inputs of one turn are one commit: no crash comes between them.
        let between = run.records.get(events - 1..=events).is_some_and(|pair| pair.iter().all(is_outside));
        if !between && events > run.shared {
            resumed(&run, events, &end).map_err(|why| format!("resumed after event {events}: {why}"))?;
        }
    }
    Ok(())
}

/// What a replay finds; a journal that ends in the middle may have more to derive.
fn unequal(graph: &Arc<Graph>, records: &[Record]) -> Option<String> {
    replay(graph, records).filter(|why| !why.starts_with("the replay derives one more"))
}

/// Whether an event came from outside, and not from an effect.
fn is_outside(record: &Record) -> bool {
    record.event.is_input() && !matches!(record.event, Event::Completed { .. })
}

/// Lets a new process go on after the first `events` events, with what the recording knows of the world, and with what people
/// did next whenever it comes to a stop.
fn resumed(run: &Run, events: usize, end: &Value) -> Result<(), String> {
    let mut turns = turns(run.records.get(events..).unwrap_or_default()).into_iter();
    let mut records: Vec<Record> = run.records.iter().take(events).cloned().collect();
    let mut inputs = Vec::new();
    loop {
        let mut state = run.graph_state(&records);
        let world = World::new(run, events);
        let mut journal = Journal::Memory(records);
        world.drive(&mut state, &mut journal, inputs)?;
        let Journal::Memory(all) = journal else { return Err("the journal is elsewhere".into()) };
        records = all;
        // A write that was in flight is asked about: whoever knows that it did not happen says yes.
        let later: BTreeSet<&Arc<str>> = turns.as_slice().iter().flatten().filter_map(answers).collect();
        let open = |ask: &Arc<str>| end["asks"].as_array().is_some_and(|asks| asks.contains(&json!(ask)));
        let lost = state.asks().keys().filter(|ask| !later.contains(ask) && !open(ask));
        inputs = lost.map(|ask| Input::Answer(Arc::clone(ask), json!("yes"))).collect();
        if inputs.is_empty() {
            let Some(next) = turns.next() else {
                same(&without_attempts(end.clone()), &without_attempts(summary(&state)))?;
                return unequal(&run.graph, &records).map_or(Ok(()), Err);
            };
            inputs = next;
        }
    }
}

impl Run {
    fn graph_state(&self, records: &[Record]) -> State {
        let mut state = State::new(Arc::clone(&self.graph));
        records.iter().for_each(|record| state.apply_record(record));
        state
    }
}

fn answers(input: &Input) -> Option<&Arc<str>> {
    match input {
        Input::Answer(ask, _) => Some(ask),
        _ => None,
    }
}

/// What came from outside, turn by turn. What was lost is found by each process itself.
fn turns(records: &[Record]) -> Vec<Vec<Input>> {
    let mut turns = Vec::new();
    let mut within = false;
    for record in records {
        let outside = is_outside(record);
        if outside && !within {
            turns.push(Vec::new());
        }
        within = outside;
        if let (true, Some(turn)) = (outside && !matches!(record.event, Event::Lost { .. }), turns.last_mut())
        {
            turn.extend(Input::from_event(record.event.clone()));
        }
    }
    turns
}

fn same(expected: &Value, got: &Value) -> Result<(), String> {
    let (mut expected, mut got) = (expected.clone(), got.clone());
    // Behind a node that failed others may have come further, which no view shows but warnings do.
    if expected["status"] == json!(RunStatus::Failed) {
        (expected["warnings"], got["warnings"]) = (Value::Null, Value::Null);
    }
    unlike("it comes to another end", &expected, &got).map_or(Ok(()), Err)
}
