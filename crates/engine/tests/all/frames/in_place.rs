//! A run that failed goes on where it stood (E-36).

use super::forks::fork_of;
use super::world::*;

#[test]
fn e36_the_node_that_failed_has_a_new_visit_and_nothing_else_runs_again() {
    let nodes = json!([ask("a", "one", to(1)), ask("b", "two", to(2)), ask("c", "three", json!([]))]);
    let graph = graph(nodes, json!([]));
    let mut world = World::begin(&graph);
    world.complete("a/model/1/1", reply("A"));
    for visit in 1..=100 {
        let path = if visit == 1 { "b".to_owned() } else { format!("b~{visit}") };
        world.complete(&format!("{path}/model/1/1"), fails("no"));
        assert_eq!(world.state.status(), RunStatus::Failed);
        assert_eq!(world.texts(), ["one", "A", "two"], "what failed is seen");
        assert!(world.resume() <= 20, "a journal that is linear in what was said");
    }
    world.run(false, echo);
    assert_eq!(world.texts(), ["one", "A", "two", "re: two", "three", "re: three"]);
    replays(&world, &graph);
}

#[test]
fn after_an_unmet_join_only_the_paths_that_failed_run_again() {
    for serial in [false, true] {
        let graph = fork(json!("all_completed"), json!("con"), serial);
        let mut world = World::begin(&graph);
        world.complete("before/model/1/1", reply("cats"));
        world.complete("debate~1[pro]/argue/model/1/1", reply("yes"));
        world.complete("debate~1[con]/argue/model/1/1", fails("no"));
        assert_eq!(world.state.status(), RunStatus::Failed);
        world.resume();
        assert_eq!(world.pending(), ["debate~1[con]/argue~2/model/1/1"]);
        world.run(false, echo);
        assert_eq!(world.texts()[2..5], ["against", "re: against", "so: yes cats"]);
        replays(&world, &graph);
    }
}

#[test]
fn a_path_that_was_cut_off_goes_on_where_it_stood() {
    let inner = json!([ask("first", "a", to(1)), ask("second", "b", json!([]))]);
    let paths =
        json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": "all_completed", "main": "x"}});
    let graph = graph(json!([node("both", json!({"fork": paths}), json!([]))]), json!([flow(inner)]));
    let mut world = World::begin(&graph);
    world.complete("both~1[x]/first/model/1/1", reply("A"));
    world.complete("both~1[y]/first/model/1/1", fails("no"));
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    assert_eq!(world.pending(), ["both~1[x]/second~2/model/1/1", "both~1[y]/first~2/model/1/1"]);
    world.run(true, echo);
    assert_eq!(world.texts(), ["a", "A", "b", "re: b"]);
    replays(&world, &graph);
}

#[test]
fn loops_and_subgraphs_go_on_inside() {
    let times = json!({"graph": 0, "times": {"count": 3}, "limit": 5});
    let sub = json!({"graph": 1});
    let nodes =
        json!([node("again", json!({"loop": times}), to(1)), node("sub", json!({"sub": sub}), json!([]))]);
    let graph = graph(
        nodes,
        json!([
            flow(json!([ask("say", "{{index}}", json!([]))])),
            flow(json!([ask("say", "in", json!([]))]))
        ]),
    );
    let mut world = World::begin(&graph);
    world.complete("again~1#0/say/model/1/1", reply("zero"));
    world.complete("again~1#1/say/model/1/1", fails("no"));
    world.resume();
    world.complete("again~1#1/say~2/model/1/1", reply("one"));
    world.complete("again~1#2/say/model/1/1", reply("two"));
    world.complete("sub~1/say/model/1/1", fails("no"));
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    world.complete("sub~1/say~2/model/1/1", reply("done"));
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["0", "zero", "1", "one", "2", "two"]);
    replays(&world, &graph);
}

#[test]
fn a_dataflow_that_holds_a_flow_goes_on_inside_it() {
    let graph = json!({
        "threads": [{"name": "main", "first": "task"}], "tools": {},
        "nodes": [ask("a", "one", json!([])),
            {"id": "wf", "name": "wf", "body": {"leaves": [{"name": "do", "act": {"sub": {"graph": 0}}}]}},
            ask("b", "{{wf}}", json!([]))],
        "graphs": [flow(json!([ask("x", "in", to(1)), ask("y", "in too", json!([]))]))]});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    let mut world = World::begin(&graph);
    world.complete("a/model/1/1", reply("A"));
    world.complete("wf~1/x/model/1/1", reply("X"));
    world.complete("wf~1/y/model/1/1", fails("no"));
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    assert_eq!(world.pending(), ["wf~1/y~2/model/1/1"]);
    world.run(false, echo);
    assert_eq!(world.texts(), ["task", "one", "A", "re: in too", "re: re: in too"]);
    replays(&world, &graph);
}

/// Equal prompts on parallel paths never swap their replies, however often the run fails and goes on (E-29, E-36).
#[test]
fn e29_replies_stay_on_their_paths() {
    let call = json!({"call": {"tool": "write", "args": {}}});
    let inner = json!([{"id": "work", "name": "work", "body": {"thread": 0, "tools": ["note"], "max_rounds": 2, "leaves": [
        {"name": "say", "act": {"say": "the same"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {"offer_tools": true}}, "next": [{"when": "always", "to": 2}]},
        {"name": "do", "act": call}]}}]);
    let paths = json!({"of": {"each": {"over": "{{all}}", "item": "it", "graph": 0}}, "join": {"strategy": "all_completed"}});
    let all: Vec<u32> = (0..64).collect();
    let nodes = json!([
        node("set", json!({"set": ["all", all]}), to(1)),
        node("each", json!({"fork": paths}), json!([]))
    ]);
    let graph = graph(nodes, json!([flow(inner)]));
    let mut world = World::begin(&graph);
    let path_of = |effect: &str| effect.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned();
    let mut rounds = 0;
    while world.state.status() != RunStatus::Completed {
        rounds += 1;
        assert!(rounds < 200);
        if world.state.status() == RunStatus::Failed {
            world.resume();
            continue;
        }
        // The last one pending is answered; each seventh write fails.
        let Some(effect) = world.state.pending().keys().next_back().cloned() else { break };
        let outcome = match world.state.request(&effect).unwrap() {
            Request::Model(_) => reply(&format!("mine is {}", path_of(&effect.0))),
            Request::Tool(_) | Request::Operation(_) if rounds % 7 == 0 => fails("no"),
            Request::Tool(_) | Request::Operation(_) => Outcome::Output(Arc::new(json!(path_of(&effect.0)))),
        };
        world.input(Input::Complete(effect, outcome, 0, None, None));
    }
    assert_eq!(world.state.status(), RunStatus::Completed);
    let results = world.state.view().output().clone();
    for path in 0..64 {
        assert_eq!(results[path.to_string()], json!(format!("mine is {path}")));
    }
    // Requests that a failure cut off are sent again and count again (E-20).
    let replies = |event: &&Event| matches!(event, Event::Completed { outcome, .. } if matches!(outcome, Outcome::Reply(_)));
    let replies = world.journal.iter().filter(replies).count();
    assert_eq!(replies, 64, "what was answered is not asked again");
    replays(&world, &graph);
    // Forked anywhere, a thousand times, each path takes its own again. A write whose fault the fork has not seen may ask first.
    let past = fork_of(&graph, &world.journal);
    for nth in 0..1_000 {
        let at = 1 + nth * 7_919 % (world.journal.len() - 1);
        let mut fork = World::forked(&graph, &world.journal, at, past.clone());
        while fork.state.status() == RunStatus::Waiting {
            let asks: Vec<Arc<str>> = fork.state.asks().keys().cloned().collect();
            fork.inputs(asks.into_iter().map(|ask| Input::Answer(ask, json!("yes"))));
        }
        fork.run(nth % 2 == 0, |request| match request {
            Request::Model(request) => panic!("{} is asked again", request.effect),
            Request::Tool(request) | Request::Operation(request) => {
                Outcome::Output(Arc::new(json!(path_of(&request.effect.0))))
            }
        });
        assert_eq!(
            (fork.state.status(), fork.state.view().output()),
            (RunStatus::Completed, &results),
            "at {at}"
        );
    }
}

/// Several answers come at once: what another path has to do is not lost as it is cut off.
#[test]
fn a_path_that_has_more_to_do_as_it_is_cut_off_goes_on() {
    let inner = json!([ask("first", "a", to(1)), ask("second", "b", json!([]))]);
    let paths =
        json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": "all_completed", "main": "y"}});
    let graph = graph(json!([node("both", json!({"fork": paths}), json!([]))]), json!([flow(inner)]));
    let mut world = World::begin(&graph);
    let no = world.completion("both~1[x]/first/model/1/1", fails("no"));
    let yes = world.completion("both~1[y]/first/model/1/1", reply("Y"));
    world.inputs([no, yes]);
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    let asked = ["both~1[x]/first~2/model/1/1", "both~1[y]/second/model/1/1"];
    assert_eq!(world.pending(), asked, "the answer that had come is taken");
    world.run(false, echo);
    assert_eq!((world.state.status(), world.state.usage().model_calls), (RunStatus::Completed, 5));
    assert_eq!(world.texts(), ["a", "Y", "b", "re: b"]);
    replays(&world, &graph);
}

/// A run whose time is up leaves its frames open: they go on where they stood.
#[test]
fn frames_that_were_open_as_the_run_ended_go_on() {
    let body = json!([ask("first", "a", to(1)), ask("second", "b", json!([]))]);
    for act in [
        json!({"fork": {"of": {"listed": [["x", 0]]}, "join": {"strategy": "all_completed", "main": "x"}}}),
        json!({"loop": {"graph": 0, "times": {"count": 1}, "limit": 1}}),
        json!({"sub": {"graph": 0}}),
    ] {
        for control in ["flow", "dataflow"] {
            let mut opener = node("open", act.clone(), json!([]));
            if control == "dataflow" {
                opener["body"]["thread"] = json!(0);
            }
            let root = json!({"threads": [{"name": "main"}], "control": control, "nodes": [opener], "tools": {},
                "graphs": [flow(body.clone())]});
            let graph: Arc<Graph> = Arc::new(serde_json::from_value(root).unwrap());
            let mut world = World::begin(&graph);
            let first = world.pending().remove(0);
            world.complete(&first, reply("A"));
            world.input(Input::Expire(1));
            assert_eq!(world.state.status(), RunStatus::Failed);
            world.resume();
            let second = first.replace("first", "second~2");
            assert_eq!(world.pending(), [second], "{control}, {act}");
            world.run(false, echo);
            assert_eq!(world.state.status(), RunStatus::Completed);
            assert!(world.state.view().output().to_string().contains("re: b"));
            replays(&world, &graph);
        }
    }
}

/// E-17: a fork whose graph nobody has is a bug, which says so.
#[test]
fn a_fork_without_its_graph_is_poisoned() {
    let graph = graph(json!([ask("a", "one", json!([]))]), json!([]));
    let mut world = World::begin(&graph);
    let fork = selvedge_engine::Fork { graph: Some("abc".into()), ..selvedge_engine::Fork::default() };
    world.input(Input::Fork(Box::new(fork)));
    assert_eq!(world.state.status(), RunStatus::Failed);
    let fault = world.state.view().fault().cloned().unwrap();
    assert!(fault.message.contains("the graph of a fork, `abc`, is not at hand"), "{}", fault.message);
    assert!(world.pending().is_empty());
}
