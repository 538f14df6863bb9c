//! E-38: what a losing path asked for is dropped as its join is decided, however much else goes on.

use selvedge_engine::{Event, Graph, Input, ModelReply, ModelRequest, Record, RunStatus, State, ToolRequest};
use selvedge_runtime::{CallContext, Controls, Driver, Journal, Limits, Model, Pending, Tools, Watcher};
use selvedge_store::{Mode, NewRun, RunStatus as Stored, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

const OTHERS: usize = 64;

/// How many turns the driver has had so far, and had had when the inner join was left and when the call of its losing path was
/// dropped.
#[derive(Default)]
struct Turns {
    now: AtomicU32,
    decided: AtomicU32,
    dropped: AtomicU32,
    begun: Notify,
}

struct Dropped(Arc<Turns>);
impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.store(self.0.now.load(Relaxed), Relaxed);
    }
}

struct Ports(Arc<Turns>);

impl Model for Ports {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let turns = Arc::clone(&self.0);
        Box::pin(async move {
            match &*request.node {
                "wins" => {
                    turns.begun.notified().await;
                    // Everything else is under way by then.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                // Others answer at any time.
                _ => {
                    let id = request.effect.to_string();
                    let chance = id.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte));
                    tokio::time::sleep(Duration::from_micros(chance % 4_000)).await;
                }
            }
            Ok(ModelReply { text: "done".into(), ..ModelReply::default() })
        })
    }
}

impl Tools for Ports {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        let turns = Arc::clone(&self.0);
        Box::pin(async move {
            let _dropped = Dropped(Arc::clone(&turns));
            turns.begun.notify_one();
            std::future::pending().await
        })
    }
}

impl Watcher for Ports {
    fn events(&self, _: &State, records: &[Record]) {
        let now = self.0.now.fetch_add(1, Relaxed) + 1;
        let left =
            |record: &Record| matches!(&record.event, Event::Left { node, .. } if node.ends_with("/race"));
        if records.iter().any(left) {
            self.0.decided.store(now, Relaxed);
        }
    }
}

/// A race on one path of a fork, and others that ask and ask.
fn graph() -> Arc<Graph> {
    let node = |id: &str, act: Value| {
        json!({"id": id, "name": id, "body": {"thread": 0, "leaves": [
            {"name": "say", "act": {"say": id}, "next": [{"when": "always", "to": 1}]}, {"name": "do", "act": act}]}})
    };
    let flow =
        |node: Value| json!({"threads": [{"name": "main"}], "control": "flow", "nodes": [node], "tools": {}});
    let fork = |paths: Vec<Value>, strategy: &str| json!({"fork": {"of": {"listed": paths}, "join": {"strategy": strategy}}});
    let race = fork(vec![json!(["wins", 3]), json!(["loses", 4])], "any_completed");
    let turns = json!({"loop": {"graph": 2, "times": {"count": 100}, "limit": 100}});
    let others = (0..OTHERS).map(|n| json!([format!("other{n}"), 1]));
    let all = others.chain([json!(["race", 0])]).collect();
    let graph = json!({
        "threads": [{"name": "main"}], "control": "flow", "nodes": [node("all", fork(all, "all_completed"))],
        "tools": {"waits": {"name": "waits", "description": "", "input_schema": {}, "effects": "pure", "version": "1", "source": "test"}},
        "graphs": [flow(node("race", race)), flow(node("loop", turns)), flow(node("ask", json!({"infer": {}}))),
                   flow(node("wins", json!({"infer": {}}))), flow(node("loses", json!({"call": {"tool": "waits", "args": {}}})))]});
    Arc::new(serde_json::from_value(graph).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cut_off_is_dropped_at_once_while_answers_come_in() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(dir.path(), Mode::ReadWrite).unwrap());
    let row = NewRun {
        id: "r".into(),
        name: "test".into(),
        dialect: "plan".into(),
        status: Stored::Running,
        started_ms: 0,
        graph: None,
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    };
    store.create_run(row, Vec::new()).await.unwrap();
    let turns = Arc::new(Turns::default());
    let ports = || Arc::new(Ports(Arc::clone(&turns)));
    let mut driver = Driver::new(ports(), ports(), Limits::default());
    driver.watcher = Some(ports());
    let (mut state, mut journal) = (State::new(graph()), Journal::stored(store, "r", 0));
    let start = vec![Input::Start(Box::default())];
    driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    assert_eq!(state.status(), RunStatus::Completed);
    let [decided, dropped, all] = [&turns.decided, &turns.dropped, &turns.now].map(|turn| turn.load(Relaxed));
    assert!(0 < decided && decided + 20 < all, "{decided} of {all}");
    assert_eq!(dropped, decided, "of {all} turns");
}
