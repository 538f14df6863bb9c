//! E-40: whatever changes the library happens once, whoever dies meanwhile and whoever else changes it.

use super::*;
use selvedge_engine::{EDITION, Graph, Input, ModelReply, ModelRequest, Operated, Record, Start, State};
use selvedge_runtime::{Controls, DriveError, Driver, Halt, Journal, Limits, Model, Pending, load};
use selvedge_store::{BlobHash, Entry, ForkPoint, NewRun, RunStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The journal of a library without its times.
fn events(store: &Store) -> Vec<Value> {
    let entries = store.library(1).unwrap();
    entries.iter().map(|entry| serde_json::from_str(&entry.json).unwrap()).collect()
}

fn of_kind(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

/// Asked again, by another attempt or in another process, each operation answers the same and changes nothing.
#[tokio::test]
async fn e40_what_is_asked_again_is_answered_again() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let text =
        |n: u32| file("it", "", &format!("    return {{'n': 1, 'text': text}} if text else 1 // ({n} - 1)"));
    let mut asked: Vec<(Arc<ToolDef>, String, Value, Value)> = Vec::new();
    let mut ask = async |tool: Arc<ToolDef>, args: Value| -> Value {
        let effect = format!("agent~1/step{}/call/1/1", asked.len());
        let answer = process.asks(tool.clone(), &effect, args.clone()).await.unwrap();
        asked.push((tool, effect.replace("/1/1", "/1/2"), args, answer.clone()));
        answer
    };
    let draft = |n: u32, replaces: Value| json!({"depth": 0, "name": "it", "file": text(n), "coder": "model", "replaces": replaces});
    let first = ask(known::draft(), draft(1, Value::Null)).await;
    let call = |id: &str, text: &str| json!({"id": id, "tool": "it", "version": first["version"], "arguments": {"text": text}});
    let (mut good, mut bad) = (call("1", "a"), call("2", ""));
    (good["output"], bad["error"]) =
        (json!({"n": 1, "text": "a"}), json!({"type": "execution_failure", "message": "division by zero"}));
    let looked = json!({"ask": ["1"], "failed": ["2"], "misused": []});
    let settle = json!({"depth": 0, "calls": [good, bad], "looked": looked, "classes": {"0": {"class": "Success", "reason": ""}}});
    let settled = ask(known::settle(), settle).await;
    assert_eq!((&settled["proven"], settled["mend"].as_array().unwrap().len()), (&json!(["it"]), 1));
    let second = ask(known::draft(), draft(2, first["version"].clone())).await;
    let of = json!({"depth": 0, "name": "it", "version": second["version"], "replaces": first["version"]});
    let mut accept = of.clone();
    accept["replayed"] = ask(known::replay(), of).await;
    ask(known::accept(), accept).await;
    ask(
        known::retire(),
        json!({"depth": 0, "name": "it", "version": second["version"], "reason": "no better"}),
    )
    .await;
    ask(known::end(), json!({"depth": 0, "publish": true})).await;
    let before = events(&process.store);
    let other = Process::start(&folder, "r1").await;
    for (tool, effect, args, answer) in &asked {
        for process in [&process, &other] {
            let again = process.asks(tool.clone(), effect, args.clone()).await.unwrap();
            assert_eq!(again, *answer, "{}", tool.name);
        }
    }
    assert_eq!(events(&process.store), before);
    assert_eq!(of_kind(&before, "answered"), asked.len());
    // Another effect is another change.
    let draft = |n: u32| draft(n, Value::Null);
    other.asks(known::draft(), "agent~1/other/call/1/1", draft(3)).await.unwrap();
    assert!(events(&other.store).len() > before.len());
    // What was replaced is not built again.
    let again = other.asks(known::draft(), "agent~1/again/call/1/1", draft(1)).await.unwrap();
    assert!(again["errors"][0].as_str().unwrap().contains("tried before"), "{again}");
}

/// Two processes and several tasks change the library at the same time: nothing is lost, and nothing happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e40_several_change_the_library_at_once() {
    let folder = Folder::new();
    let process = Arc::new(Process::start(&folder, "r1").await);
    begin_with(&process.store, "r1", &task(), None).await;
    let _driven = process.store.drive("r1").unwrap();
    for n in 0..4 {
        std::fs::write(folder.at(&format!("work/i{n}.py")), file(&format!("i{n}"), "", "    return {}"))
            .unwrap();
    }
    let mut work = Vec::new();
    for n in 0..6 {
        let process = Arc::clone(&process);
        work.push(tokio::spawn(async move {
            let args = json!({"depth": 0, "name": "it", "file": file("it", "", &format!("    return {{'n': {n}}}")), "coder": "model"});
            let effect = format!("fork~1[{n}]/draft/call/1/1");
            let drafted = process.asks(known::draft(), &effect, args).await.unwrap();
            assert_eq!(drafted["ok"], true, "{drafted}");
        }));
    }
    let imports = (0..4).map(|n| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command
            .env("SELVEDGE_STATE_DIR", folder.at("state"))
            .env("SELVEDGE_TRUST", "1")
            .current_dir(folder.at("work"));
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("xdg"));
        let child = command.args(["tools", "import", &format!("i{n}.py")]).output();
        tokio::task::spawn_blocking(|| child)
    });
    for done in futures_util::future::join_all(imports.collect::<Vec<_>>()).await {
        let done = done.unwrap().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    for done in work {
        done.await.unwrap();
    }
    let events = events(&process.store);
    assert_eq!(
        (of_kind(&events, "drafted"), of_kind(&events, "answered"), of_kind(&events, "published")),
        (10, 6, 4)
    );
    let library = process.library();
    assert_eq!(library.open_tasks().len(), 6);
}

/// Nobody is asked.
struct Silent;
impl Model for Silent {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        panic!("no model is asked")
    }
}

/// Operations of a process that dies at one of them: before it does anything, or before anybody hears of what it did.
struct Dying {
    own: Arc<dyn Operations>,
    left: AtomicUsize,
    done_first: bool,
    dead: Arc<Notify>,
}

impl Operations for Dying {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return self.own.call(request, context);
        }
        let (work, dead) = (self.own.call(request, context), Arc::clone(&self.dead));
        let done_first = self.done_first;
        Box::pin(async move {
            if done_first {
                work.await.unwrap();
            }
            dead.notify_one();
            std::future::pending().await
        })
    }
}

/// A task that builds a tool, has it fail, mends it, and ends.
fn task() -> Arc<Graph> {
    let text = |n: u32| file("it", "", &format!("    return {{'n': {n}}} if text else 1 // ({n} - 1)"));
    let version = |n: u32| BlobHash::of(text(n).as_bytes()).to_string();
    let call = |n: u32, id: &str, text: &str| json!({"id": id, "tool": "it", "version": version(n), "arguments": {"text": text}});
    let (mut good, mut bad, mut better) = (call(1, "1", "a"), call(1, "2", ""), call(2, "3", ""));
    (good["output"], better["output"]) = (json!({"n": 1}), json!({"n": 1}));
    bad["error"] = json!({"type": "execution_failure", "message": "division by zero"});
    let success = json!({"0": {"class": "Success", "reason": ""}});
    let settle = |calls: Value, ask: &str, failed: Value| {
        json!({"depth": 0, "calls": calls, "classes": success,
        "looked": {"ask": [ask], "failed": failed, "misused": []}})
    };
    let of = json!({"depth": 0, "name": "it", "version": version(2), "replaces": version(1)});
    let mut accept = of.clone();
    (accept["replayed"], accept["equal"]) =
        (json!({"failing": [], "unsure": [{"question": "?"}]}), json!([{"equal": true, "reason": ""}]));
    let draft = |n: u32, replaces: Value| json!({"depth": 0, "name": "it", "file": text(n), "coder": "model", "replaces": replaces});
    let calls = [
        (known::draft(), draft(1, Value::Null)),
        (known::settle(), settle(json!([good, bad]), "1", json!(["2"]))),
        (known::draft(), draft(2, json!(version(1)))),
        (known::replay(), of),
        (known::accept(), accept),
        (known::settle(), settle(json!([better]), "3", json!([]))),
        (known::end(), json!({"depth": 0, "publish": true})),
    ];
    let tools: serde_json::Map<String, Value> =
        known::all().iter().map(|tool| (tool.name.to_string(), json!(**tool))).collect();
    let node = |(n, (tool, args)): (usize, (Arc<ToolDef>, Value))| {
        let id = format!("s{n}");
        json!({"id": id, "name": id, "body": {"leaves": [{"name": "call", "act": {"call": {"tool": tool.name, "args": args}}}]}})
    };
    let nodes: Vec<Value> = calls.into_iter().enumerate().map(node).collect();
    Arc::new(serde_json::from_value(json!({"threads": [], "tools": tools, "nodes": nodes})).unwrap())
}

/// Begins a run of a graph, as a command does.
pub(super) async fn begin_with(
    store: &Arc<Store>,
    run: &str,
    graph: &Arc<Graph>,
    fork: Option<ForkPoint>,
) -> State {
    let start = Start { sequential: true, edition: EDITION, ..Start::default() };
    begin_as(store, run, graph, (fork, start)).await
}

/// The same with what it begins with, but for the graph.
pub(super) async fn begin_as(
    store: &Arc<Store>,
    run: &str,
    graph: &Arc<Graph>,
    (fork, start): (Option<ForkPoint>, Start),
) -> State {
    let stored = serde_json::to_vec(&**graph).unwrap();
    let hash = BlobHash::of(&stored);
    let mut state = State::new(Arc::clone(graph));
    let start = Start { graph: hash.to_string().into(), ..start };
    let at = state.tick(1_000);
    let event = state.accept(Input::Start(Box::new(start))).unwrap();
    let json = serde_json::to_string(&event).unwrap();
    state.apply_record(&Record { at, event });
    let entries = if fork.is_some() { Vec::new() } else { vec![Entry { n: 1, at_ms: at, json }] };
    let run = NewRun {
        id: run.into(),
        name: run.into(),
        dialect: "plan".into(),
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(hash),
        scripted: false,
        options: "{}".into(),
        fork,
        parent: None,
    };
    store.create_run_with_graph(run, stored, entries).await.unwrap();
    state
}

/// Drives a run until it ends, or until the process dies at its n-th operation.
async fn drive(process: &Process, state: &mut State, dies: Option<(usize, bool)>) -> bool {
    let dead = Arc::new(Notify::new());
    let (left, done_first) = dies.map_or((usize::MAX, false), |(at, done_first)| (at, done_first));
    let own = Arc::clone(&process.operations);
    let operations = Dying { own, left: AtomicUsize::new(left), done_first, dead: Arc::clone(&dead) };
    tokio::select! {
        halt = driven(process, state, Arc::new(operations)) => {
            assert_eq!(halt.unwrap(), Halt::Ended);
            true
        }
        () = dead.notified() => false,
    }
}

/// Drives a run as far as it goes.
async fn driven(
    process: &Process,
    state: &mut State,
    operations: Arc<dyn Operations>,
) -> Result<Halt, DriveError> {
    let driver = Driver::new(Arc::new(Silent), Arc::new(process.catalogue.clone()), Limits::default());
    let driver = driver.with_operations(operations);
    let mut journal = Journal::stored(Arc::clone(&process.store), process.run.as_str(), state.events());
    driver.drive(&process.run, state, &mut journal, Vec::new(), &mut Controls::default()).await
}

/// Where copies of tools can't be written, that is no fault of a coder's file: the run stops with the reason, and comes to what it would have
/// come to once there is room.
#[tokio::test]
async fn e40_a_state_folder_that_cant_be_written_is_no_outcome() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let mut state = begin_with(&process.store, "r1", &task(), None).await;
    let cache = folder.at("state/cache");
    let _ = std::fs::remove_dir_all(&cache);
    std::fs::write(&cache, "in the way").unwrap();
    let stopped = driven(&process, &mut state, Arc::clone(&process.operations)).await;
    let error = selvedge_host::Error::from(stopped.unwrap_err());
    assert!(error.is_of_machine() && error.to_string().contains("can't be written"), "{error}");
    assert_eq!(events(&process.store), Vec::<Value>::new(), "the library is as it was");

    std::fs::remove_file(&cache).unwrap();
    drop(process);
    let process = Process::start(&folder, "r1").await;
    let mut state = load(&process.store, "r1", None, None).unwrap().state;
    assert!(drive(&process, &mut state, None).await);
    let events = events(&process.store);
    assert_eq!((of_kind(&events, "drafted"), of_kind(&events, "published")), (2, 1), "{events:#?}");
}

/// A process dies at each operation, before it and between what it did and the run's event of it, and another one goes on: the library
/// and the run come to the same as where nobody died.
#[tokio::test]
async fn e40_nothing_happens_twice_or_never_where_processes_die() {
    let whole: Mutex<Option<(Vec<Value>, Value)>> = Mutex::default();
    let deaths = (1..=7).flat_map(|at| [Some((at, false)), Some((at, true))]);
    for dies in std::iter::once(None).chain(deaths) {
        let folder = Folder::new();
        let process = Process::start(&folder, "r1").await;
        let mut state = begin_with(&process.store, "r1", &task(), None).await;
        let ended = drive(&process, &mut state, dies).await;
        assert_eq!(ended, dies.is_none());
        if !ended {
            drop(process);
            let process = Process::start(&folder, "r1").await;
            state = load(&process.store, "r1", None, None).unwrap().state;
            assert!(drive(&process, &mut state, None).await);
        }
        let store = Store::open(&folder.at("state"), Mode::ReadOnly).unwrap();
        let work = folder.at("work").display().to_string();
        let events = events(&store).into_iter().map(|event| event.to_string().replace(&work, "work"));
        let events: Vec<Value> = events.map(|event| serde_json::from_str(&event).unwrap()).collect();
        let found = (events, state.view().output().clone());
        assert_eq!(
            (of_kind(&found.0, "drafted"), of_kind(&found.0, "published")),
            (2, 1),
            "{dies:?}: {:#?}",
            found.0
        );
        let mut whole = whole.lock().unwrap();
        assert_eq!(whole.get_or_insert_with(|| found.clone()), &found, "{dies:?}");
    }
}

/// A fork has a place of its own, which begins with what the events have made that it shares with its source.
#[tokio::test]
async fn a18_a_fork_begins_with_what_it_shares() {
    let folder = Folder::new();
    let source = Process::start(&folder, "r1").await;
    begin_with(&source.store, "r1", &task(), None).await;
    // The task's frame is the run's own here.
    let text = |n: u32| file("it", "", &format!("    return {{'n': {n}}}"));
    let args = |n: u32, replaces: Value| json!({"depth": 0, "name": "it", "file": text(n), "coder": "model", "replaces": replaces});
    let first = source.asks(known::draft(), "d/call/1/1", args(1, Value::Null)).await.unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    // The run's next event is behind that, and the fork shares it.
    let shared = Entry {
        n: 2,
        at_ms: i64::try_from(now).unwrap(),
        json: json!({"kind": "cancel_requested"}).to_string(),
    };
    source.store.append("r1", vec![shared]).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let second = source.asks(known::draft(), "d2/call/1/1", args(2, first["version"].clone())).await.unwrap();
    let of = json!({"depth": 0, "name": "it", "version": second["version"], "replaces": first["version"], "replayed": {}});
    assert_eq!(source.asks(known::accept(), "a/call/1/1", of.clone()).await.unwrap()["accepted"], true);

    let fork = Process::start(&folder, "r2").await;
    begin_with(&fork.store, "r2", &task(), Some(ForkPoint { run: "r1".into(), events: 2 })).await;
    let names = json!({"depth": 0, "names": ["it"]});
    let bound = fork.asks(known::bindings(), "b/call/1/1", names.clone()).await.unwrap();
    assert_eq!(bound["tools"]["it"]["version"], first["version"], "the source mended it only later");
    assert_eq!(fork.stage_in("r2", &first["version"]), None, "who only looks changes nothing");
    // It mends the tool in its own way, and the source's stays what it is.
    let third = fork.asks(known::draft(), "d2/call/1/1", args(3, first["version"].clone())).await.unwrap();
    let of = json!({"depth": 0, "name": "it", "version": third["version"], "replaces": first["version"], "replayed": {}});
    assert_eq!(fork.asks(known::accept(), "a/call/1/1", of).await.unwrap()["accepted"], true);
    let bound = fork.asks(known::bindings(), "b2/call/1/1", names.clone()).await.unwrap();
    assert_eq!(bound["tools"]["it"]["version"], third["version"]);
    let bound = source.asks(known::bindings(), "b/call/1/1", names).await.unwrap();
    assert_eq!(bound["tools"]["it"]["version"], second["version"]);
    // A version that only the fork's events know is taken in when it is needed.
    let mut call =
        json!({"id": "1", "tool": "other", "version": second["version"], "arguments": {"text": ""}});
    call["output"] = json!({"n": 2});
    let looked = json!({"ask": ["1"], "failed": [], "misused": []});
    let settle = json!({"depth": 0, "calls": [call], "looked": looked, "classes": [{"class": "Success", "reason": ""}]});
    let settled = fork.asks(known::settle(), "s/call/1/1", settle).await.unwrap();
    assert_eq!(settled["proven"], json!(["other"]));
    assert_eq!(fork.stage_in("r2", &second["version"]), Some("private"));
}
