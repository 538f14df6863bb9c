//! A fork whose join is decided by the first path that completes: what the other paths do is cut off (E-38).
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use selvedge_engine::{
    EffectId, Event, Failure, Graph, Input, ModelReply, ModelRequest, Record, RunStatus, State, ToolDef,
};
use selvedge_runtime::ports::{CallContext, Model, Pending, Tools};
use selvedge_runtime::{Controls, Driver, Journal, Limits, Watcher};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long something may take that should take 200 ms, on a machine that does much else.
const AT_MOST: Duration = Duration::from_secs(5);

type Holds = Box<dyn Fn() -> bool + Send + Sync>;

/// What the race is about.
pub struct Race {
    /// What the losing path does: an act of a leaf. Its node `loses` has a thread.
    pub act: Value,
    pub tools: Vec<Arc<ToolDef>>,
    /// Whether what the losing path does is under way: only then the other path completes.
    pub begun: Holds,
    /// Whether nothing is left of it.
    pub over: Holds,
    /// Who answers the losing path, if that asks a model.
    pub model: Option<Arc<dyn Model>>,
}

/// What came of it.
pub struct Raced {
    /// From the event of the join until nothing was left.
    pub took: Duration,
    /// Warnings of the run, each as its code and its message.
    pub warnings: Vec<(String, String)>,
    /// Questions, timers and effects that there were when the join had been left.
    pub left: (usize, usize, Vec<EffectId>),
}

/// When the join had been left, and how many questions, timers and which effects there were then.
type Decided = (Instant, usize, usize, Vec<EffectId>);

/// Looks on, and answers the nodes that are not in question.
struct Referee {
    race: Race,
    decided: Mutex<Option<Decided>>,
    took: Mutex<Option<Duration>>,
}

impl Watcher for Referee {
    fn events(&self, state: &State, records: &[Record]) {
        if records.iter().any(|record| matches!(record.event, Event::Left { .. })) {
            let pending = state.pending().keys().cloned().collect();
            *self.decided.lock().unwrap() =
                Some((Instant::now(), state.asks().len(), state.timers().len(), pending));
        }
    }
}

async fn until(holds: &(dyn Fn() -> bool + Send + Sync)) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < AT_MOST {
        if holds() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    false
}

struct Port(Arc<Referee>);

impl Model for Port {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let referee = Arc::clone(&self.0);
        let says = || Ok::<_, Failure>(ModelReply { text: "done".into(), ..ModelReply::default() });
        match &*request.node {
            "wins" => Box::pin(async move {
                assert!(until(&*referee.race.begun).await, "what is to lose did not begin");
                says()
            }),
            // The run goes on until nothing is left: its end would end everything.
            "after" => Box::pin(async move {
                if until(&*referee.race.over).await {
                    let decided = referee.decided.lock().unwrap().as_ref().unwrap().0;
                    *referee.took.lock().unwrap() = Some(decided.elapsed());
                }
                says()
            }),
            _ => referee.race.model.as_ref().unwrap().call(request, context),
        }
    }
}

fn asks(id: &str, act: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "hello"}, "next": [{"when": "always", "to": 1}]},
        {"name": "do", "act": act}]}})
}

fn graph(race: &Race) -> Arc<Graph> {
    let flow =
        |node: Value| json!({"threads": [{"name": "main"}], "control": "flow", "nodes": [node], "tools": {}});
    let paths = json!({"of": {"listed": [["wins", 0], ["loses", 1], ["asks", 2]]}, "join": {"strategy": "any_completed"}});
    let fork = json!({"id": "race", "name": "race", "ways": [{"when": "done", "to": 1}],
                      "body": {"leaves": [{"name": "fork", "act": {"fork": paths}}]}});
    let tools: serde_json::Map<String, Value> =
        race.tools.iter().map(|tool| (tool.name.to_string(), json!(tool))).collect();
    let graph = json!({
        "threads": [{"name": "main"}], "control": "flow", "tools": tools,
        "nodes": [fork, asks("after", json!({"infer": {}}), json!([]))],
        "graphs": [flow(asks("wins", json!({"infer": {}}), json!([]))), flow(asks("loses", race.act.clone(), json!([]))),
                   flow(asks("asks", json!({"ask": ["answer", "well?", {"timeout_s": 600.0}]}), json!([])))]});
    Arc::new(serde_json::from_value(graph).unwrap())
}

/// Runs it, through the driver.
pub async fn run(race: Race, tools: Arc<dyn Tools>) -> Raced {
    let graph = graph(&race);
    let referee = Arc::new(Referee { race, decided: Mutex::default(), took: Mutex::default() });
    let mut driver = Driver::new(Arc::new(Port(Arc::clone(&referee))), tools, Limits::default());
    driver.watcher = Some(Arc::<Referee>::clone(&referee));
    let (mut state, mut journal) = (State::new(graph), Journal::Memory(Vec::new()));
    let start = vec![Input::Start(Box::default())];
    driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    assert_eq!(state.status(), RunStatus::Completed, "{:?}", state.view().fault());
    let took = referee.took.lock().unwrap().take().expect("something is left after 5 s");
    let (_, asks, timers, pending) = referee.decided.lock().unwrap().take().unwrap();
    let warnings = state.warnings().iter().map(|w| (w.code.to_string(), w.message.clone())).collect();
    Raced { took, warnings, left: (asks, timers, pending) }
}

impl Raced {
    /// Nothing but the node behind the join was waited for; `writes`: how many writes were cut off. Says how long it took.
    pub fn check(&self, what: &str, writes: usize) {
        println!("{what}: nothing was left {:.1} ms after the join's event", self.took.as_secs_f64() * 1e3);
        let after = EffectId("after/do/1/1".into());
        assert_eq!(self.left, (0, 0, vec![after]), "{what}");
        let warned = self.warnings.iter().filter(|(code, _)| code == "write-cancelled");
        assert_eq!(warned.count(), writes, "{what}: {:?}", self.warnings);
    }
}
