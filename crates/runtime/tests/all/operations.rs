//! E-40: operations through the driver.

use selvedge_engine::{
    Event, Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, Operated, RunStatus, State, Tokens,
    ToolRequest,
};
use selvedge_runtime::{
    CallContext, Controls, DriveError, Driver, Halt, Journal, Limits, Model, Operations, Pending, Tools,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Nobody is asked.
struct Silent;
impl Model for Silent {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        panic!("no model is asked")
    }
}

struct Echo;
impl Tools for Echo {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        assert_eq!(&*request.tool.name, "echo", "operations are no tools");
        Box::pin(async move { Ok(request.args) })
    }
}

type OperationFn = Box<dyn Fn(ToolRequest, CallContext) -> Pending<Operated> + Send + Sync>;
struct Own(OperationFn);
impl Operations for Own {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        (self.0)(request, context)
    }
}

/// A graph of one node, which calls that tool, up to three times.
fn calls(tool: &str) -> Arc<Graph> {
    let def = json!({"name": tool, "description": "", "input_schema": {"type": "object"}, "effects": "idempotent",
                     "version": "1", "source": "test"});
    let call = json!({"tool": tool, "args": {"x": 1}, "retry": {"max": 2, "backoff_s": 0.0}});
    let graph = json!({"threads": [], "tools": {tool: def}, "nodes": [
        {"id": "it", "name": "it", "body": {"leaves": [{"name": "call", "act": {"call": call}}]}}]});
    Arc::new(serde_json::from_value(graph).unwrap())
}

fn driver(operation: OperationFn) -> Driver {
    let limits = Limits { concurrency: 1, ..Limits::default() };
    Driver::new(Arc::new(Silent), Arc::new(Echo), limits).with_operations(Arc::new(Own(operation)))
}

async fn drive(driver: &Driver, run: &str, state: &mut State, inputs: Vec<Input>) -> (Halt, Vec<Event>) {
    let mut journal = Journal::Memory(Vec::new());
    let halt = driver.drive(run, state, &mut journal, inputs, &mut Controls::default()).await.unwrap();
    let Journal::Memory(records) = journal else { panic!("it is in memory") };
    (halt, records.into_iter().map(|record| record.event).collect())
}

fn start() -> Vec<Input> {
    vec![Input::Start(Box::default())]
}

/// An operation that waits for a run of its own holds nothing that this needs, be it the only turn that there is.
#[tokio::test]
async fn e40_what_waits_for_a_run_holds_nothing_that_it_needs() {
    let own: Arc<OnceLock<Driver>> = Arc::default();
    let used = Arc::clone(&own);
    let driver = driver(Box::new(move |request, _| {
        let driver = used.get().unwrap().clone();
        Box::pin(async move {
            let child = match &*request.tool.name {
                "selvedge__run" => calls("selvedge__deeper"),
                _ => calls("echo"),
            };
            let mut state = State::new(child);
            let (halt, _) = Box::pin(drive(&driver, "child", &mut state, start())).await;
            assert_eq!(halt, Halt::Ended);
            Ok(state.view().output().clone().into())
        })
    }));
    assert!(own.set(driver.clone()).is_ok());
    let mut state = State::new(calls("selvedge__run"));
    let ran = drive(&driver, "r", &mut state, start());
    let (halt, _) = tokio::time::timeout(Duration::from_secs(20), ran).await.unwrap();
    assert_eq!((halt, state.view().output()), (Halt::Ended, &json!({"x": 1})));
}

/// What was done, by run and key, as a library keeps it.
type Ledger = Arc<Mutex<BTreeMap<(String, String), Operated>>>;

/// The process dies between what an operation does and the event that says so, again and again: it is done once, and the run ends
/// with what came of it then.
#[tokio::test]
async fn e40_what_is_done_outside_is_done_once() {
    let ledger = Ledger::default();
    let graph = calls("selvedge__publish");
    let begun = |deaths: u32| {
        let (ledger, left) = (Arc::clone(&ledger), Arc::new(Mutex::new(deaths)));
        driver(Box::new(move |request, context| {
            let done = {
                let mut ledger = ledger.lock().unwrap();
                let version = ledger.len() + 1;
                let place = (context.run.to_string(), request.key().to_string());
                let tokens = Tokens { input: 5, ..Tokens::default() };
                let new = || Operated { tokens, ..Operated::from(json!({ "version": version })) };
                ledger.entry(place).or_insert_with(new).clone()
            };
            let mut left = left.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                // What was done is not heard of: the first time by a fault that may pass, then because nobody is left to hear it.
                return match request.effect == request.key() {
                    true => {
                        Box::pin(async { Err(Failure::transient(FaultKind::ExecutionFailure, "locked")) })
                    }
                    false => Box::pin(std::future::pending()),
                };
            }
            Box::pin(async move { Ok(done) })
        }))
    };
    let mut journal = Journal::Memory(Vec::new());
    let mut state = State::new(Arc::clone(&graph));
    {
        let (driver, mut controls) = (begun(2), Controls::default());
        let driving = driver.drive("r", &mut state, &mut journal, start(), &mut controls);
        assert!(tokio::time::timeout(Duration::from_millis(300), driving).await.is_err(), "it hangs");
    }
    let Journal::Memory(records) = journal else { panic!("it is in memory") };
    let mut again = State::new(Arc::clone(&graph));
    records.iter().for_each(|record| again.apply_record(record));
    let pending: Vec<String> = again.pending().keys().map(ToString::to_string).collect();
    assert_eq!(pending, ["it/call/1/2"]);
    let (halt, events) = drive(&begun(0), "r", &mut again, Vec::new()).await;
    assert_eq!((halt, again.status()), (Halt::Ended, RunStatus::Completed));
    assert_eq!(*again.view().output(), json!({"version": 1}));
    assert_eq!(ledger.lock().unwrap().len(), 1);
    assert_eq!((again.usage().tool_calls, again.usage().tokens.input), (0, 5));
    let recorded = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(
        recorded["outcome"],
        json!({"operated": {"output": {"version": 1}, "tokens": {"input": 5, "output": 0, "cost": 0.0}}})
    );
}

/// Where there are none, it is a fault that says so.
#[tokio::test]
async fn e40_an_operation_that_there_is_not() {
    let driver = Driver::new(Arc::new(Silent), Arc::new(Echo), Limits::default());
    let mut state = State::new(calls("selvedge__publish"));
    drive(&driver, "r", &mut state, start()).await;
    let fault = state.view().fault().cloned().unwrap();
    assert_eq!(
        (fault.kind, &*fault.message),
        (FaultKind::UnknownTool, "there is no operation `selvedge__publish` here")
    );
}

/// What stands in an operation's way is no outcome of it: the driver stops with that, and the operation is asked for again.
#[tokio::test]
async fn e40_what_has_no_answer_stops_the_driver() {
    let asked = Arc::new(Mutex::new(1));
    let count = Arc::clone(&asked);
    let driver = driver(Box::new(move |_, context| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            let before = std::mem::replace(&mut *count.lock().unwrap(), 2);
            match before {
                1 => context.unanswered.because("the disk is full").await,
                _ => Ok(json!("done").into()),
            }
        })
    }));
    let mut state = State::new(calls("selvedge__keep"));
    let mut journal = Journal::Memory(Vec::new());
    let stopped = driver.drive("r", &mut state, &mut journal, start(), &mut Controls::default()).await;
    assert!(matches!(stopped, Err(DriveError::Unanswered(why)) if why.to_string() == "the disk is full"));
    let Journal::Memory(records) = journal else { panic!("it is in memory") };
    assert!(!records.iter().any(|record| matches!(record.event, Event::Completed { .. })), "{records:?}");
    let (halt, events) = drive(&driver, "r", &mut state, Vec::new()).await;
    assert_eq!((halt, state.status(), *asked.lock().unwrap()), (Halt::Ended, RunStatus::Completed, 2));
    // It was one attempt.
    assert!(!events.iter().any(|event| matches!(event, Event::Retried { .. })), "{events:?}");
}
