//! E-43: what is said to a run while it is driven, from this process and from others.

use selvedge_engine::{
    Event, Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, Record, RunStatus, State, ToolRequest,
    answered,
};
use selvedge_runtime::{
    CallContext, Command, Driven, Driver, EventBatch, Halt, Journal, Limits, Model, Pending, Refusal,
    RunHandle, Tools, load, send_command,
};
use selvedge_store::{Mode, NewRun, RunStatus as Stored, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A model that answers once it may, and counts who asked.
#[derive(Clone)]
struct Gate {
    asked: Arc<AtomicU32>,
    may: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { asked: Arc::default(), may: Arc::new(Semaphore::new(0)) }
    }
}

impl Gate {
    fn open(&self, calls: usize) {
        self.may.add_permits(calls);
    }

    async fn asked(&self) {
        until(|| self.asked.load(Ordering::Relaxed) > 0).await;
    }
}

impl Model for Gate {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let may = Arc::clone(&self.may);
        Box::pin(async move {
            may.acquire().await.unwrap().forget();
            Ok(ModelReply { text: "heard".into(), ..ModelReply::default() })
        })
    }
}

struct NoTools;
impl Tools for NoTools {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(async { Err(Failure::permanent(FaultKind::UnknownTool, "none")) })
    }
}

/// Asks a person for a number, and beside that a model.
fn graph() -> Arc<Graph> {
    let number = json!({"schema": {"type": "integer"}});
    let graph = json!({
    "threads": [{"name": "a"}, {"name": "b", "first": "go"}], "tools": {},
    "nodes": [
        {"id": "who", "name": "who", "body": {"thread": 0, "leaves": [
            {"name": "ask", "act": {"ask": ["answer", "How many?", number]}}]}},
        {"id": "busy", "name": "busy", "body": {"thread": 1, "leaves": [{"name": "model", "act": {"infer": {}}}]}}
    ]});
    Arc::new(serde_json::from_value(graph).unwrap())
}

fn driver(model: &Gate) -> Driver {
    Driver::new(Arc::new(model.clone()), Arc::new(NoTools), Limits::default())
}

fn start() -> Vec<Input> {
    vec![Input::Start(Box::default())]
}

fn number(number: impl Into<Value>) -> Value {
    answered(number.into(), None, None)
}

fn command(value: Value) -> Command {
    Command::Answer { ask: "who/ask".into(), value }
}

async fn until(happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn in_memory(model: &Gate) -> (RunHandle, JoinHandle<Driven>) {
    spawned(driver(model).driven("r", State::new(graph()), Journal::Memory(Vec::new()), start(), None))
}

/// A run that a task of its own drives.
fn spawned(
    (handle, driven): (RunHandle, impl Future<Output = Driven> + Send + 'static),
) -> (RunHandle, JoinHandle<Driven>) {
    (handle, tokio::spawn(driven))
}

fn store(dir: &Path) -> Arc<Store> {
    Arc::new(Store::open(dir, Mode::ReadWrite).unwrap())
}

/// A stored run of that graph, driven.
async fn stored(store: &Arc<Store>, model: &Gate) -> (RunHandle, JoinHandle<Driven>) {
    let (hash, commit) = store.put_blob(serde_json::to_vec(&*graph()).unwrap());
    commit.await.unwrap();
    let row = NewRun {
        id: "r".into(),
        name: "test".into(),
        dialect: "plan".into(),
        status: Stored::Running,
        started_ms: 0,
        graph: Some(hash),
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    };
    store.create_run(row, Vec::new()).await.unwrap();
    let lock = store.drive("r").unwrap();
    let journal = Journal::stored(Arc::clone(store), "r", 0);
    let driven = spawned(driver(model).driven("r", State::new(graph()), journal, start(), Some(lock)));
    model.asked().await;
    driven
}

fn answers(store: &Store) -> usize {
    let events = store.journal("r", 1).unwrap();
    events.filter(|entry| entry.as_ref().unwrap().json.contains(r#""answered""#)).count()
}

#[tokio::test]
async fn e43_an_answer_and_its_refusals_come_while_a_call_is_under_way() {
    let model = Gate::default();
    let (handle, task) = in_memory(&model);
    model.asked().await;
    let refused = handle.answer("who/ask", number("many")).await.unwrap_err();
    assert!(matches!(&refused, Refusal::Misfit { misfit, .. } if misfit.contains("integer")), "{refused}");
    for garbage in [json!(null), json!("yes"), json!({"answer": 1, "more": 2}), json!({"done": 1})] {
        let refused = handle.answer("who/ask", garbage.clone()).await.unwrap_err();
        assert!(matches!(refused, Refusal::Misfit { .. } | Refusal::NotOpen { .. }), "{garbage}: {refused}");
    }
    let refused = handle.answer("nobody/ask", number(1)).await.unwrap_err();
    assert_eq!(refused, Refusal::NotOpen { ask: "nobody/ask".into() });
    // Of two who answer at once, one is told that it was too late.
    let (first, second) =
        tokio::join!(handle.answer("who/ask", number(3)), handle.answer("who/ask", number(4)));
    assert_eq!((first, second), (Ok(()), Err(Refusal::NotOpen { ask: "who/ask".into() })));
    assert!(!task.is_finished());
    model.open(1);
    let driven = task.await.unwrap();
    assert_eq!((driven.halt.unwrap(), driven.state.status()), (Halt::Ended, RunStatus::Completed));
    assert_eq!(*driven.state.view().results().next().unwrap().output, json!(3));
    assert_eq!(handle.cancel().await, Err(Refusal::NotDriven));
}

#[tokio::test]
async fn e43_a_cancel_ends_what_is_under_way() {
    let model = Gate::default();
    let (handle, task) = in_memory(&model);
    model.asked().await;
    handle.cancel().await.unwrap();
    let driven = task.await.unwrap();
    assert_eq!((driven.halt.unwrap(), driven.state.status()), (Halt::Ended, RunStatus::Cancelled));
}

#[tokio::test]
async fn e43_a_run_that_waits_goes_on_with_the_answer_while_there_is_a_handle() {
    let model = Gate::default();
    model.open(1);
    let (handle, task) = in_memory(&model);
    model.asked().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!task.is_finished());
    let clone = handle.clone();
    drop(handle);
    clone.answer("who/ask", number(3)).await.unwrap();
    assert_eq!(task.await.unwrap().state.status(), RunStatus::Completed);

    // With nobody left it is as with any other driver (E-37).
    let model = Gate::default();
    model.open(1);
    let (handle, task) = in_memory(&model);
    drop(handle);
    assert_eq!(task.await.unwrap().halt.unwrap(), Halt::Waiting);

    let (handle, task) = in_memory(&model);
    model.open(1);
    model.asked().await;
    handle.stop().interrupt();
    task.await.unwrap();
}

#[tokio::test]
async fn e43_a_handle_that_is_dropped_lets_the_run_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (store, model) = (store(dir.path()), Gate::default());
    let (handle, task) = stored(&store, &model).await;
    handle.answer("who/ask", number(3)).await.unwrap();
    // An answer whose giver does not wait for it counts.
    drop((handle, task));
    model.open(1);
    until(|| store.run("r").unwrap().status == Stored::Completed).await;
    until(|| !store.is_driven("r").unwrap()).await;
}

#[tokio::test]
async fn e43_listeners_get_durable_events_and_are_told_what_they_missed() {
    let model = Gate::default();
    let (handle, task) = in_memory(&model);
    let (mut quick, lazy, mut late) = (handle.events(), handle.events(), handle.events());
    let listening = tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(batch) = quick.next().await {
            let EventBatch::Events { first, records } = batch else { panic!("{batch:?}") };
            assert_eq!(first, events.len() as u64 + 1);
            events.extend(records.iter().cloned());
        }
        events
    });
    model.asked().await;
    // Each refused word costs no event; each model call would. What is not read is let go of.
    handle.answer("who/ask", number(3)).await.unwrap();
    model.open(1);
    let driven = task.await.unwrap();
    let Journal::Memory(journal) = driven.journal else { panic!() };
    let events: Vec<Record> = listening.await.unwrap();
    assert_eq!(events, journal);
    let mut all = 0;
    while let Some(batch) = late.next().await {
        match batch {
            EventBatch::Events { records, .. } => all += records.len(),
            EventBatch::Missed { first, last } => all += (last - first + 1) as usize,
        }
    }
    assert_eq!(all, journal.len());
    drop(lazy);
    // Who listens to what is over hears that it is.
    assert!(handle.events().next().await.is_none());
}

/// A loop of many commits: 400 model calls one after the other.
fn long() -> Arc<Graph> {
    let node = |n: usize| {
        json!({"id": format!("n{n}"), "name": format!("n{n}"),
               "body": {"thread": 0, "leaves": [{"name": "model", "act": {"infer": {}}}]}})
    };
    let nodes: Vec<Value> = (0..400).map(node).collect();
    let graph = json!({"threads": [{"name": "a", "first": "go"}], "tools": {}, "nodes": nodes});
    Arc::new(serde_json::from_value(graph).unwrap())
}

#[tokio::test]
async fn e43_a_listener_that_never_reads_holds_up_nothing_and_grows_no_further() {
    let model = Gate::default();
    model.open(400);
    let journal = Journal::Memory(Vec::new());
    let (handle, task) = spawned(driver(&model).driven("r", State::new(long()), journal, start(), None));
    let mut never = handle.events();
    let driven = tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
    assert_eq!(driven.halt.unwrap(), Halt::Ended);
    let (mut missed, mut received, mut next) = (0, 0, 1);
    while let Some(batch) = never.next().await {
        match batch {
            EventBatch::Missed { first, last } => {
                assert_eq!(first, next);
                (missed, next) = (missed + last - first + 1, last + 1);
            }
            EventBatch::Events { first, records } => {
                assert_eq!(first, next);
                (received, next) = (received + 1, first + records.len() as u64);
            }
        }
    }
    assert!(missed > 0 && received <= 64, "{received} commits were kept, {missed} events missed");
    assert_eq!(next, driven.state.events() + 1);
}

#[tokio::test]
async fn e43_an_answer_of_another_process_is_durable_in_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there, model) = (store(dir.path()), store(dir.path()), Gate::default());
    let (_handle, task) = stored(&here, &model).await;
    let misfit = send_command(&there, "r", &command(number("many"))).await.unwrap().unwrap_err();
    assert!(matches!(misfit, Refusal::Misfit { .. }), "{misfit}");
    let began = Instant::now();
    send_command(&there, "r", &command(number(3))).await.unwrap().unwrap();
    assert_eq!(answers(&there), 1, "it is durable when that returns");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let late = send_command(&there, "r", &command(number(4))).await.unwrap();
    assert_eq!(late, Err(Refusal::NotOpen { ask: "who/ask".into() }));
    send_command(&there, "r", &Command::Cancel {}).await.unwrap().unwrap();
    assert_eq!(task.await.unwrap().state.status(), RunStatus::Cancelled);
    assert_eq!(load(&there, "r", None, None).unwrap().state.status(), RunStatus::Cancelled);
    // Nobody is there any more, and nothing stays behind for who comes next.
    assert_eq!(send_command(&there, "r", &Command::Cancel {}).await.unwrap(), Err(Refusal::NotDriven));
    assert!(there.inbox_entries("r", 10).unwrap().is_empty());
}

#[tokio::test]
async fn e43_of_many_answers_at_once_one_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (here, model) = (store(dir.path()), Gate::default());
    let (handle, task) = stored(&here, &model).await;
    let senders = (0..8).map(|n| {
        let there = store(dir.path());
        tokio::spawn(async move { send_command(&there, "r", &command(number(n))).await.unwrap() })
    });
    let mut taken = 0;
    for sender in senders.collect::<Vec<_>>() {
        match sender.await.unwrap() {
            Ok(()) => taken += 1,
            Err(refusal) => assert_eq!(refusal, Refusal::NotOpen { ask: "who/ask".into() }),
        }
    }
    assert_eq!((taken, answers(&here)), (1, 1));
    model.open(1);
    assert_eq!(task.await.unwrap().state.status(), RunStatus::Completed);
    drop(handle);
}

#[tokio::test]
async fn e43_rows_of_the_inbox_that_are_garbage_are_refused_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (here, model) = (store(dir.path()), Gate::default());
    let (handle, task) = stored(&here, &model).await;
    let bodies = ["", "{", "null", r#"{"command":"complete"}"#, r#"{"command":"cancel","x":1}"#, "\u{0}"];
    for (n, body) in bodies.iter().enumerate() {
        let entry = selvedge_store::InboxEntry {
            id: format!("garbage {n}"),
            run: "r".into(),
            at_ms: i64::MIN,
            body: (*body).to_owned(),
        };
        here.put_inbox_entry(entry).await.unwrap();
    }
    for n in 0..bodies.len() {
        let id = format!("garbage {n}");
        until(|| here.inbox_reply(&id).unwrap().is_some()).await;
        assert!(here.inbox_reply(&id).unwrap().unwrap().contains("unreadable"));
    }
    let before = here.last_event("r").unwrap();
    handle.answer("who/ask", number(3)).await.unwrap();
    assert!(here.last_event("r").unwrap() > before);
    model.open(1);
    assert_eq!(task.await.unwrap().state.status(), RunStatus::Completed);
}

/// An entry that came while nobody drove is the first thing that the next driver takes.
#[tokio::test]
async fn e43_an_entry_for_a_driver_that_died_is_taken_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there, model) = (store(dir.path()), store(dir.path()), Gate::default());
    let (handle, task) = stored(&here, &model).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    drop(handle);
    let entry = selvedge_store::InboxEntry {
        id: "x".into(),
        run: "r".into(),
        at_ms: 0,
        body: command(number(3)).to_json().unwrap(),
    };
    there.put_inbox_entry(entry).await.unwrap();
    let loaded = load(&here, "r", None, None).unwrap();
    let journal = Journal::stored(Arc::clone(&here), "r", loaded.state.events());
    let lock = here.drive("r").unwrap();
    let (_handle, task) = spawned(driver(&model).driven("r", loaded.state, journal, Vec::new(), Some(lock)));
    until(|| there.inbox_reply("x").unwrap().is_some()).await;
    assert_eq!((there.inbox_reply("x").unwrap().as_deref(), answers(&there)), (Some(r#"{"Ok":null}"#), 1));
    model.open(1);
    let driven = task.await.unwrap();
    assert_eq!(driven.state.status(), RunStatus::Completed);
    let replayed = here.journal("r", 1).unwrap().map(|entry| entry.unwrap().json);
    let kinds: Vec<Event> = replayed.map(|json| serde_json::from_str(&json).unwrap()).collect();
    assert!(kinds.iter().any(|event| matches!(event, Event::Answered { .. })));
}

/// A cancel that comes while a commit is under way is taken after it.
#[tokio::test(flavor = "multi_thread")]
async fn e43_a_cancel_during_commits_loses_nothing() {
    for wait in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let (here, model) = (store(dir.path()), Gate::default());
        let (handle, task) = stored(&here, &model).await;
        let (busy, other) = (Arc::clone(&here), handle.clone());
        let answer = tokio::spawn(async move { other.answer("who/ask", number(3)).await });
        model.open(1);
        tokio::time::sleep(Duration::from_micros(wait * 300)).await;
        let cancelled = handle.cancel().await;
        let answered = answer.await.unwrap();
        let driven = task.await.unwrap();
        let events = load(&busy, "r", None, None).unwrap().state;
        assert_eq!((events.status(), events.events()), (driven.state.status(), driven.state.events()));
        assert_eq!(answered.is_ok(), answers(&busy) == 1);
        let was = busy.journal("r", 1).unwrap();
        let cancels = was.filter(|entry| entry.as_ref().unwrap().json.contains("cancel_requested")).count();
        assert_eq!(cancelled.is_ok(), cancels == 1, "{cancelled:?}");
        assert_eq!(cancelled.is_ok(), driven.state.status() == RunStatus::Cancelled);
    }
}
