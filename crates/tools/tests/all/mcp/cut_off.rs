//! E-38: the server of a call that is cut off is told so.

use crate::mcp::support::Place;
use crate::race::{Race, run};
use selvedge_tools::Catalogue;
use serde_json::json;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_a_losing_path_is_told() {
    let place = Arc::new(Place::new());
    let tools: Catalogue = place.catalogue(vec![place.server("never")], &["s__echo"]).await;
    let (called, told) = (Arc::clone(&place), Arc::clone(&place));
    let race = Race {
        act: json!({"call": {"tool": "s__echo", "args": {}}}),
        tools: vec![tools.def("s__echo").unwrap()],
        begun: Box::new(move || called.noted("called") == 1),
        over: Box::new(move || told.noted("cancelled") == 1),
        model: None,
    };
    run(race, Arc::new(tools)).await.check("mcp", 0);
    assert_eq!(place.noted("called"), 1, "it still lives: nothing was started again");
}
