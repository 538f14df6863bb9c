//! Stored forks (E-19), and what a model that counts is told of them and of resumed runs (C-07).

use selvedge_engine::{
    Event, Fork, Graph, Input, ModelReply, ModelRequest, Outcome, Record, RunStatus, Start, State,
    ToolRequest,
};
use selvedge_runtime::{CallContext, Controls, Driver, Journal, Limits, Model, Pending, Tools, load, past};
use selvedge_store::{Entry, ForkPoint, NewRun, RunStatus as Stored, Store};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A graph of nodes that each ask a model, one after another.
fn graph(nodes: usize) -> Graph {
    let node = |n: usize| {
        let say = json!({"name": "say", "act": {"say": format!("node {n}")}, "next": [{"when": "always", "to": 1}]});
        let model = json!({"name": "model", "act": {"infer": {}}});
        json!({"id": format!("n{n}"), "name": "node", "body": {"thread": 0, "leaves": [say, model]}})
    };
    let nodes: Vec<Value> = (0..nodes).map(node).collect();
    let threads = json!([{"name": "main", "first": "task"}]);
    serde_json::from_value(json!({"threads": threads, "nodes": nodes, "tools": {}})).unwrap()
}

fn row(id: &str, graph: selvedge_store::BlobHash, fork: Option<ForkPoint>) -> NewRun {
    NewRun {
        id: id.into(),
        name: "test".into(),
        dialect: "plan".into(),
        status: Stored::Running,
        started_ms: 0,
        graph: Some(graph),
        scripted: false,
        options: "{}".into(),
        fork,
        parent: None,
    }
}

/// Counts the requests that it is told of or asked; it answers, or never does.
#[derive(Default)]
struct Counting {
    told: Mutex<Vec<String>>,
    silent: bool,
}

impl Model for Counting {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        self.recorded(&request, &context.run);
        if self.silent {
            return Box::pin(std::future::pending());
        }
        let text = format!("heard {}", request.node);
        Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
    }
    fn counts(&self) -> bool {
        true
    }

    fn recorded(&self, request: &ModelRequest, _: &str) {
        self.told.lock().unwrap().push(request.node.to_string());
    }
}

struct NoTools;
impl Tools for NoTools {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(std::future::pending())
    }
}

/// A run whose journal holds these events.
fn record(store: &Store, run: NewRun, first: u64, events: &[Event]) {
    let entries = (first..).zip(events);
    let entries =
        entries.map(|(n, event)| Entry { n, at_ms: 1, json: serde_json::to_string(event).unwrap() });
    store.create_run(run, entries.collect()).wait().unwrap();
}

/// Gives an input, answers everything, and returns what happened.
fn driven(state: &mut State, input: Input) -> Vec<Event> {
    let mut events = Vec::new();
    let mut next = state.accept(input);
    while let Some(event) = next {
        state.apply_record(&Record { at: 1, event: event.clone() });
        events.push(event);
        next = state.step().or_else(|| {
            let effect = state.pending().keys().next()?.clone();
            let reply = ModelReply { text: format!("to {effect}"), ..ModelReply::default() };
            state.accept(Input::Complete(effect, Outcome::Reply(Arc::new(reply)), 0, None, None))
        });
    }
    events
}

/// A completed run `r0` of three nodes, and `forks` forks, each of the one before at its last event.
fn chain(store: &Store, forks: usize) -> selvedge_store::BlobHash {
    let graph = graph(3);
    let (hash, stored) = store.put_blob(serde_json::to_vec(&graph).unwrap());
    stored.wait().unwrap();
    let mut state = State::new(Arc::new(graph));
    let start = Start { graph: hash.to_string().into(), ..Start::default() };
    let events = driven(&mut state, Input::Start(Box::new(start)));
    record(store, row("r0", hash, None), 1, &events);
    for n in 1..=forks {
        fork(store, hash, &format!("r{}", n - 1), &format!("r{n}"), u64::MAX);
    }
    hash
}

fn fork(store: &Store, graph: selvedge_store::BlobHash, source: &str, id: &str, at: u64) {
    let events = store.last_event(source).unwrap();
    let at = at.min(events);
    let mut state = load(store, source, Some(at), None).unwrap().state;
    let past = Some(past(store, source, events).unwrap());
    let fork = Fork { source: source.into(), events, past, ..Fork::default() };
    let own = driven(&mut state, Input::Fork(Box::new(fork)));
    let point = Some(ForkPoint { run: source.into(), events: at });
    record(store, row(id, graph, point), at + 1, &own);
}

/// E-19: a fork of a fork of a fork … reads its sources without a stack as deep as their chain.
#[test]
fn long_chains_of_forks_are_read_on_a_small_stack() {
    let store = Store::memory().unwrap();
    chain(&store, 40);
    let reading = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        let state = load(&store, "r40", None, None).unwrap().state;
        assert_eq!(state.status(), RunStatus::Completed);
        assert_eq!(*state.view().output(), "to n2/model/1/1", "what the first of them was told");
        assert_eq!(state.usage().model_calls, 0);
    });
    reading.unwrap().join().unwrap();
}

/// E-19: what a source does after it was forked changes no fork.
#[test]
fn a_fork_looks_at_its_source_as_it_was() {
    let store = Store::memory().unwrap();
    let graph = graph(2);
    let (hash, stored) = store.put_blob(serde_json::to_vec(&graph).unwrap());
    stored.wait().unwrap();
    let mut state = State::new(Arc::new(graph));
    let start = Start { graph: hash.to_string().into(), ..Start::default() };
    let events = driven(&mut state, Input::Start(Box::new(start)));
    let half = events.iter().position(|event| matches!(event, Event::Completed { .. })).unwrap();
    let (before, after) = events.split_at(half);
    record(&store, row("r0", hash, None), 1, before);
    fork(&store, hash, "r0", "r1", u64::MAX);
    let rest = (half as u64 + 1..).zip(after);
    let entries = rest.map(|(n, event)| Entry { n, at_ms: 1, json: serde_json::to_string(event).unwrap() });
    store.append("r0", entries.collect()).wait().unwrap();
    let state = load(&store, "r1", None, None).unwrap().state;
    assert_eq!(state.usage().model_calls, 2, "it asked by itself, and keeps what it was told");
    assert_eq!(*state.view().output(), "to n1/model/1/1");
}

/// C-07: in a fork the requests count that had retired where it left, and those that it took or made.
#[test]
fn requests_of_a_fork_are_those_of_its_own_history() {
    let store = Store::memory().unwrap();
    let hash = chain(&store, 0);
    let count = |run: &str| {
        let model = Counting::default();
        load(&store, run, None, Some(&model)).unwrap();
        model.told.into_inner().unwrap()
    };
    assert_eq!(count("r0"), ["n0", "n1", "n2"]);
    let last = store.last_event("r0").unwrap();
    for at in 1..=last {
        let id = format!("at{at}");
        fork(&store, hash, "r0", &id, at);
        assert_eq!(count(&id), ["n0", "n1", "n2"], "forked at {at}");
        let again = format!("again{at}");
        fork(&store, hash, &id, &again, at + 3);
        assert_eq!(count(&again), ["n0", "n1", "n2"], "forked at {at} and again");
    }
}

/// C-07: a request that was in flight when the time was up was made, and counts after a resume.
#[tokio::test]
async fn a_request_in_flight_when_the_time_was_up_counts() {
    let store = Arc::new(Store::memory().unwrap());
    let graph = graph(1);
    let (hash, stored) = store.put_blob(serde_json::to_vec(&graph).unwrap());
    stored.await.unwrap();
    store.create_run(row("r", hash, None), Vec::new()).await.unwrap();
    let mut state = State::new(Arc::new(graph));
    let mut journal = Journal::stored(Arc::clone(&store), "r", 0);
    let silent = Arc::new(Counting { silent: true, ..Counting::default() });
    let limits = Limits { run_timeout_s: Some(1), ..Limits::default() };
    let driver = Driver::new(Arc::clone(&silent) as _, Arc::new(NoTools), limits);
    let start = vec![Input::Start(Box::default())];
    driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    assert_eq!(state.status(), RunStatus::Failed);
    let after = Counting::default();
    load(&store, "r", None, Some(&after)).unwrap();
    assert_eq!(*after.told.lock().unwrap(), *silent.told.lock().unwrap());
    assert_eq!(after.told.lock().unwrap().len(), 1);
}
