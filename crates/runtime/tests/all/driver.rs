//! The driver against real stores and misbehaving ports.

use selvedge_engine::graph::{Act, Call, Edge, Flow, Guard, Leaf, Node, Retry, ThreadDef, Told};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{
    Effects, End, Failure, FaultKind, Graph, Input, LeafIx, ModelReply, ModelRequest, Operated, RunStatus,
    State, Table, ThreadIx, ToolDef, ToolRequest,
};
use selvedge_runtime::{
    CallContext, Controls, Driver, Halt, Journal, Limits, Model, Operations, Pending, Stop, Tools, load,
};
use selvedge_store::{Mode, NewRun, RunStatus as Stored, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

type ModelFn = Box<dyn Fn(ModelRequest) -> Pending<ModelReply> + Send + Sync>;
type ToolFn = Box<dyn Fn(ToolRequest) -> Pending<Value> + Send + Sync>;

struct Models(ModelFn);
impl Model for Models {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        (self.0)(request)
    }
}
struct Toolbox(ToolFn);
impl Tools for Toolbox {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        (self.0)(request)
    }
}

/// Whatever steps there are, these nodes come of them.
struct Compiles(Value);
impl Operations for Compiles {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Operated> {
        Box::pin(std::future::ready(Ok(self.0.clone().into())))
    }
}

fn says(text: &str) -> Pending<ModelReply> {
    let text = text.to_owned();
    Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
}

fn driver(model: ModelFn, tools: ToolFn, limits: Limits) -> Driver {
    Driver::new(Arc::new(Models(model)), Arc::new(Toolbox(tools)), limits)
}

fn no_tools() -> ToolFn {
    Box::new(|_| Box::pin(async { Err(Failure::permanent(FaultKind::UnknownTool, "none")) }))
}

fn leaf(name: &str, act: Act, to: Option<u32>) -> Leaf {
    let next = to.map(|to| Edge { when: Guard::Always, to: Some(LeafIx(to)) });
    Leaf { name: name.into(), act, next: next.into_iter().collect() }
}

fn node(id: &str, leaves: Vec<Leaf>) -> Node {
    Node {
        id: id.into(),
        name: id.into(),
        body: Flow {
            thread: Some(ThreadIx(0)),
            leaves: leaves.into_iter().collect(),
            max_rounds: 25,
            ..Flow::default()
        },
        ..Node::default()
    }
}

fn asks(id: &str) -> Node {
    let prompt = Act::AppendText(Template::parse(id).unwrap());
    node(id, vec![leaf("prompt", prompt, Some(1)), leaf("model", Act::Infer(Box::default()), None)])
}

fn calls(id: &str, tool: &str, retry: Option<u32>) -> Node {
    let args = JsonTemplate::parse(&json!({})).unwrap();
    let retry = Retry { max: retry, backoff_s: Some(0.0), ..Retry::default() };
    node(
        id,
        vec![leaf(
            "call",
            Act::Call(Call { tool: tool.into(), args, retry, timeout_s: None, told: Told::Nothing }),
            None,
        )],
    )
}

fn tool(name: &str, effects: Effects) -> Arc<ToolDef> {
    Arc::new(ToolDef {
        name: name.into(),
        description: "".into(),
        input_schema: json!({"type": "object"}),
        output_params: None,
        effects: Some(effects),
        version: "1".into(),
        source: "test".into(),
        timeout_s: None,
        approval: false,
    })
}

fn graph(nodes: Vec<Node>, tools: &[Arc<ToolDef>]) -> Arc<Graph> {
    let main = ThreadDef { name: "main".into(), first: Some(Template::parse("task").unwrap()) };
    let threads: Table<ThreadIx, ThreadDef> = [main].into_iter().collect();
    let tools = tools.iter().map(|tool| (tool.name.clone(), Arc::clone(tool))).collect();
    Arc::new(Graph { name: None, threads, nodes: nodes.into_iter().collect(), tools, ..Graph::default() })
}

fn start() -> Vec<Input> {
    vec![Input::Start(Box::default())]
}

async fn stored(dir: &std::path::Path, run: &str, graph: &Graph) -> (Arc<Store>, Journal) {
    let store = Arc::new(Store::open(dir, Mode::ReadWrite).unwrap());
    let (hash, commit) = store.put_blob(serde_json::to_vec(graph).unwrap());
    commit.await.unwrap();
    let row = NewRun {
        id: run.into(),
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
    let journal = Journal::stored(Arc::clone(&store), run, 0);
    (store, journal)
}

/// E-04: a node's completion and the next node's request share one commit, whatever else the two lead to.
#[tokio::test]
async fn one_commit_a_node() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
    let graph = graph(names.iter().map(|name| asks(name)).collect(), &[]);
    let (store, mut journal) = stored(dir.path(), "r", &graph).await;
    let mut state = State::new(Arc::clone(&graph));
    let before = store.commits();
    let driver = driver(Box::new(|_| says("heard")), no_tools(), Limits::default());
    driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    // The first commit holds the start and the first request.
    assert_eq!(store.commits() - before, names.len() as u64 + 1);
}

/// E-03, E-04: what is in the store folds to the live state, and the index knows how the run ended.
#[tokio::test]
async fn the_stored_journal_is_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let graph = graph(vec![asks("a"), asks("b")], &[]);
    let (store, mut journal) = stored(dir.path(), "r", &graph).await;
    let mut state = State::new(Arc::clone(&graph));
    let driver =
        driver(Box::new(|request| says(&format!("{} heard", request.node))), no_tools(), Limits::default());
    let halt = driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert_eq!(halt, Halt::Ended);
    let loaded = load(&store, "r", None, None).unwrap();
    assert_eq!(loaded.info.status, Stored::Completed);
    assert_eq!(texts(&loaded.state), texts(&state));
    assert_eq!(*loaded.state.view().output(), json!("b heard"));
}

/// E-17: a failed assertion poisons its run, says so in its journal, and leaves the other run alive.
#[tokio::test]
async fn a_bug_poisons_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let broken = graph(
        vec![node("bad", vec![leaf("prompt", Act::AppendText(Template::parse("x").unwrap()), Some(99))])],
        &[],
    );
    let (store, mut journal) = stored(dir.path(), "bad", &broken).await;
    let driver = driver(Box::new(|_| says("fine")), no_tools(), Limits::default());
    let mut state = State::new(Arc::clone(&broken));
    let halt =
        driver.drive("bad", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert_eq!(halt, Halt::Poisoned);
    let loaded = load(&store, "bad", None, None).unwrap();
    let (end, fault) = loaded.state.ended().unwrap();
    assert_eq!(end, End::Failed);
    assert!(fault.unwrap().message.contains("internal error"), "{fault:?}");

    let good = graph(vec![asks("a")], &[]);
    let mut state = State::new(Arc::clone(&good));
    let mut journal = Journal::Memory(Vec::new());
    let halt =
        driver.drive("good", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert_eq!((halt, state.status()), (Halt::Ended, RunStatus::Completed));
}

/// E-17: whatever panics of what a run causes ends that run alone, and its journal says why: a port when it is entered, a port
/// later, a watcher. A resume, which folds the journal and asks again, comes to the same or goes on.
#[tokio::test]
async fn e17_a_panic_anywhere_poisons_one_run() {
    let tool = || vec![tool("t", Effects::Write)];
    let panics: [(&str, ModelFn, ToolFn); 4] = [
        ("model, entered", Box::new(|_| panic!("boom")), no_tools()),
        ("model, later", Box::new(|_| Box::pin(async { panic!("boom") })), no_tools()),
        ("tool, entered", Box::new(|_| says("fine")), Box::new(|_| panic!("boom"))),
        ("tool, later", Box::new(|_| says("fine")), Box::new(|_| Box::pin(async { panic!("boom") }))),
    ];
    for (what, model, tools) in panics {
        let dir = tempfile::tempdir().unwrap();
        let graph = graph(vec![asks("a"), calls("b", "t", None)], &tool());
        let (store, mut journal) = stored(dir.path(), "r", &graph).await;
        let driver = driver(model, tools, Limits::default());
        let mut state = State::new(Arc::clone(&graph));
        let halt =
            driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
        assert_eq!(halt, Halt::Poisoned, "{what}");
        for _ in 0..2 {
            let loaded = load(&store, "r", None, Some(&*driver.model)).unwrap();
            assert_eq!(loaded.info.status, Stored::Failed, "{what}");
            let (end, fault) = loaded.state.ended().unwrap();
            assert_eq!(end, End::Failed, "{what}");
            assert!(fault.unwrap().message.contains("boom"), "{what}: {fault:?}");
            let mut state = loaded.state;
            let mut journal = Journal::stored(Arc::clone(&store), "r", state.events());
            let resume = vec![Input::Resume(Vec::new())];
            let halt =
                driver.drive("r", &mut state, &mut journal, resume, &mut Controls::default()).await.unwrap();
            let asks = halt == Halt::Waiting && what.starts_with("tool");
            // Nobody knows whether the write happened: a person is asked before it runs again (E-05).
            assert!(asks || halt == Halt::Poisoned, "{what}: {halt:?}");
            if asks {
                break;
            }
        }
    }
}

/// P-24, D-17: transient faults of a tool are tried again so often, each try an event, and counted.
#[tokio::test]
async fn transient_faults_are_tried_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let tools: ToolFn = Box::new(move |_| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if n < 2 { Err(Failure::transient(FaultKind::Timeout, "slow")) } else { Ok(json!({"n": n})) }
        })
    });
    let graph = graph(vec![calls("a", "t", Some(2))], &[tool("t", Effects::Pure)]);
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let driver = driver(Box::new(|_| says("")), tools, Limits::default());
    driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    let view = state.view();
    assert_eq!(*view.output(), json!({"n": 2}));
    assert_eq!(view.results().next().unwrap().attempts, 3);
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

/// E-13: when a run's time is up, its calls are dropped, and the run says which limit it was (E-12).
#[tokio::test]
async fn an_expired_run_drops_its_calls() {
    struct OnDrop(Arc<AtomicU32>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&dropped);
    let model: ModelFn = Box::new(move |_| {
        let guard = OnDrop(Arc::clone(&counter));
        Box::pin(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(ModelReply::default())
        })
    });
    let graph = graph(vec![asks("a")], &[]);
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let driver = driver(model, no_tools(), Limits { run_timeout_s: Some(1), ..Limits::default() });
    let began = Instant::now();
    driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let fault = state.view().fault().cloned().unwrap();
    assert_eq!(fault.kind, FaultKind::Timeout);
}

/// C-05: interrupted, a run lets effects end and starts nothing; resumed, it goes on from there.
#[tokio::test]
async fn an_interrupt_leaves_a_resumable_run() {
    let dir = tempfile::tempdir().unwrap();
    let graph = graph(vec![asks("a"), asks("b")], &[]);
    let (store, mut journal) = stored(dir.path(), "r", &graph).await;
    let stop = Stop::default();
    let inner = stop.clone();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let model: ModelFn = Box::new(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        let stop = inner.clone();
        Box::pin(async move {
            stop.interrupt();
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(ModelReply { text: format!("{} said", request.node), ..ModelReply::default() })
        })
    });
    let mut state = State::new(Arc::clone(&graph));
    let first = driver(model, no_tools(), Limits::default());
    let halt = first.drive("r", &mut state, &mut journal, start(), &mut stop.clone().into()).await.unwrap();
    assert_eq!(halt, Halt::Interrupted);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "nothing new begins");

    let mut loaded = load(&store, "r", None, None).unwrap();
    let mut journal = Journal::stored(Arc::clone(&store), "r", store.last_event("r").unwrap());
    let again =
        driver(Box::new(|request| says(&format!("{} later", request.node))), no_tools(), Limits::default());
    let halt = again
        .drive("r", &mut loaded.state, &mut journal, Vec::new(), &mut Controls::default())
        .await
        .unwrap();
    assert_eq!(halt, Halt::Ended);
    let texts = texts(&loaded.state);
    assert_eq!(texts, ["task", "a", "a said", "b", "b later"]);
}

/// C-05: nor do calls begin that wait for their turn: the resumed run makes them.
#[tokio::test]
async fn an_interrupt_drops_calls_that_wait_for_their_turn() {
    let mut nodes: Vec<Node> = (0..5).map(|n| asks(&format!("n{n}"))).collect();
    (0..).zip(&mut nodes).for_each(|(n, node)| node.body.thread = Some(ThreadIx(n)));
    let thread =
        |n| ThreadDef { name: format!("t{n}").into(), first: Some(Template::parse("task").unwrap()) };
    let threads = (0..5).map(thread).collect();
    let graph = Arc::new(Graph { threads, ..Graph::clone(&graph(nodes, &[])) });
    let stop = Stop::default();
    let inner = stop.clone();
    let begun = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&begun);
    let model: ModelFn = Box::new(move |_| {
        let (stop, count) = (inner.clone(), Arc::clone(&count));
        Box::pin(async move {
            count.fetch_add(1, Ordering::SeqCst);
            stop.interrupt();
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(ModelReply { text: "said".into(), ..ModelReply::default() })
        })
    });
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let limits = Limits { max_parallel: 1, ..Limits::default() };
    let first = driver(model, no_tools(), limits);
    let halt = first.drive("r", &mut state, &mut journal, start(), &mut stop.clone().into()).await.unwrap();
    assert_eq!(halt, Halt::Interrupted);
    assert_eq!(begun.load(Ordering::SeqCst), 1, "four others waited");
    assert_eq!(state.usage().model_calls, 1, "what was under way has ended");

    let again = driver(Box::new(|_| says("later")), no_tools(), limits);
    let halt =
        again.drive("r", &mut state, &mut journal, Vec::new(), &mut Controls::default()).await.unwrap();
    assert_eq!(halt, Halt::Ended);
    assert_eq!(state.usage().model_calls, 5);
}

/// E-05: a write that was in flight when the process died is asked about; everything else is simply repeated.
#[tokio::test]
async fn a_lost_write_asks_a_person() {
    lost_write(Vec::new()).await;
}

/// E-05, P-21: also when the tool has changed meanwhile: what may have been written was written by either.
#[tokio::test]
async fn a_lost_write_of_a_changed_tool_asks_too() {
    let changed = ToolDef { version: "2".into(), ..ToolDef::clone(&tool("t", Effects::Write)) };
    lost_write(vec![Input::Resume(vec![changed])]).await;
}

async fn lost_write(resumed_with: Vec<Input>) {
    let dir = tempfile::tempdir().unwrap();
    let graph = graph(vec![calls("w", "t", None)], &[tool("t", Effects::Write)]);
    let (store, mut journal) = stored(dir.path(), "r", &graph).await;
    let stop = Stop::default();
    let inner = stop.clone();
    let tools: ToolFn = Box::new(move |_| {
        inner.interrupt();
        inner.interrupt();
        Box::pin(std::future::pending())
    });
    let mut state = State::new(Arc::clone(&graph));
    let dying = driver(Box::new(|_| says("")), tools, Limits::default());
    let halt = dying.drive("r", &mut state, &mut journal, start(), &mut stop.clone().into()).await.unwrap();
    assert_eq!(halt, Halt::Interrupted);

    let mut loaded = load(&store, "r", None, None).unwrap();
    let mut journal = Journal::stored(Arc::clone(&store), "r", store.last_event("r").unwrap());
    let tools: ToolFn = Box::new(|_| Box::pin(async { Ok(json!("written")) }));
    let living = driver(Box::new(|_| says("")), tools, Limits::default());
    let halt = living
        .drive("r", &mut loaded.state, &mut journal, resumed_with, &mut Controls::default())
        .await
        .unwrap();
    assert_eq!(halt, Halt::Waiting);
    assert_eq!(store.run("r").unwrap().status, Stored::Waiting);
    let ask = loaded.state.asks().keys().next().cloned().unwrap();
    let answer = vec![Input::Answer(ask, json!("yes"))];
    let halt =
        living.drive("r", &mut loaded.state, &mut journal, answer, &mut Controls::default()).await.unwrap();
    assert_eq!(halt, Halt::Ended);
    assert_eq!(*loaded.state.view().output(), json!("written"));
}

/// E-28: no more calls at a time than the limits say.
#[tokio::test]
async fn calls_queue_at_their_limit() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (a, b) = (Arc::clone(&now), Arc::clone(&most));
    let tools: ToolFn = Box::new(move |_| {
        let (now, most) = (Arc::clone(&a), Arc::clone(&b));
        Box::pin(async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(1))
        })
    });
    let mut nodes: Vec<Node> = (0..20).map(|n| calls(&format!("n{n}"), "t", None)).collect();
    for node in &mut nodes {
        node.body.thread = None;
    }
    let graph = graph(nodes, &[tool("t", Effects::Pure)]);
    let mut state = State::new(Arc::clone(&graph));
    let mut journal = Journal::Memory(Vec::new());
    let driver = driver(Box::new(|_| says("")), tools, Limits { concurrency: 3, ..Limits::default() });
    driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert_eq!(state.status(), RunStatus::Completed);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// What stands on all threads.
fn texts(state: &State) -> Vec<String> {
    state
        .view()
        .threads()
        .flat_map(|(_, thread)| thread.iter().map(|m| m.content.to_string()).collect::<Vec<_>>())
        .collect()
}

/// Which effects had their turn, in that order, and how many of them were over by then.
#[derive(Default)]
struct Turns(std::sync::Mutex<Vec<(String, usize)>>, AtomicU32);
impl selvedge_runtime::Watcher for Turns {
    fn events(&self, _: &State, records: &[selvedge_engine::Record]) {
        let over = |record: &&selvedge_engine::Record| {
            matches!(record.event, selvedge_engine::Event::Completed { .. })
        };
        let over = records.iter().filter(over).count();
        self.1.fetch_add(u32::try_from(over).unwrap(), Ordering::SeqCst);
    }
    fn began(&self, effect: &selvedge_engine::EffectId) {
        let over = usize::try_from(self.1.load(Ordering::SeqCst)).unwrap();
        self.0.lock().unwrap().push((effect.to_string(), over));
    }
}

#[tokio::test]
async fn watchers_learn_when_a_call_has_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let graph = graph(vec![calls("a", "t", None), calls("b", "t", None)], &[tool("t", Effects::Pure)]);
    let tools: ToolFn = Box::new(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(json!(1))
        })
    });
    let mut driver = driver(Box::new(|_| says("")), tools, Limits { concurrency: 1, ..Limits::default() });
    let turns = Arc::new(Turns::default());
    driver.watcher = Some(Arc::clone(&turns) as Arc<dyn selvedge_runtime::Watcher>);
    let (_store, mut journal) = stored(dir.path(), "r", &graph).await;
    let mut state = State::new(graph);
    driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    let seen = turns.0.lock().unwrap().clone();
    assert_eq!(seen, [("a/call/1/1".to_owned(), 0), ("b/call/1/1".to_owned(), 1)]);
}

/// D-20, E-13: when other steps take the place of those that ran ahead, calls in flight for these are dropped.
#[tokio::test]
async fn a_splice_drops_calls_in_flight() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let free = |mut node: Node| {
        node.body.thread = None;
        node
    };
    let mut first = free(node(
        "s",
        vec![
            leaf("ask", Act::Infer(Box::default()), Some(1)),
            leaf("compile", Act::Compile { context: serde_json::Map::new(), tries: 1 }, Some(2)),
            leaf("splice", Act::Splice, None),
        ],
    ));
    first.body.compiler = Some("selvedge__compile".into());
    let tools =
        [tool("selvedge__compile", Effects::Pure), tool("hang", Effects::Read), tool("look", Effects::Pure)];
    let graph = graph(vec![first, free(calls("h", "hang", None))], &tools);
    let dropped = Arc::new(AtomicU32::new(0));
    let new = serde_json::to_value(free(calls("t", "look", None))).unwrap();
    let (flag, seen) = (Arc::clone(&dropped), Arc::clone(&dropped));
    let toolbox: ToolFn = Box::new(move |request| match &*request.tool.name {
        "hang" => {
            let guard = Dropped(Arc::clone(&flag));
            Box::pin(async move {
                let _guard = guard;
                std::future::pending().await
            })
        }
        "look" => {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                tokio::task::yield_now().await;
                Ok(json!(seen.load(Ordering::SeqCst)))
            })
        }
        name => panic!("{name} is not called"),
    });
    let dir = tempfile::tempdir().unwrap();
    let (_store, mut journal) = stored(dir.path(), "r", &graph).await;
    let driver = driver(Box::new(|_| says("{\"steps\": []}")), toolbox, Limits::default())
        .with_operations(Arc::new(Compiles(json!({"nodes": [new]}))));
    let mut state = State::new(graph);
    let halt = driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await.unwrap();
    assert_eq!((halt, state.status()), (Halt::Ended, RunStatus::Completed));
    assert_eq!(*state.view().output(), json!(1), "the call was dropped before the run had ended");
}
