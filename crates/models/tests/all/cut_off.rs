//! E-38: what a losing path does ends as the join is decided, to the last connection.

use crate::race::{Race, run};
use crate::support::{Server, Step, model};
use selvedge_engine::{Failure, ToolRequest};
use selvedge_runtime::ports::{CallContext, Pending, Tools};
use serde_json::{Value, json};
use std::sync::Arc;

struct NoTools;
impl Tools for NoTools {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(async { Err(Failure::permanent(selvedge_engine::FaultKind::UnknownTool, "none")) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_of_a_model_call_is_closed() {
    let server = Arc::new(Server::start(vec![vec![Step::Hang]]).await);
    let (asked, left) = (Arc::clone(&server), Arc::clone(&server));
    let race = Race {
        act: json!({"infer": {}}),
        tools: Vec::new(),
        begun: Box::new(move || asked.requests().len() == 1),
        over: Box::new(move || left.hung_up() == 1),
        model: Some(Arc::new(model(&server))),
    };
    run(race, Arc::new(NoTools)).await.check("model", 0);
}
