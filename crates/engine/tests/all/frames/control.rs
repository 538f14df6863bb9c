//! Ways, forks, loops and subgraphs.

use super::world::*;

#[test]
fn e34_a_flow_follows_its_ways() {
    let nodes = json!([
        ask("a", "one", to(1)),
        json!({"id": "route", "name": "route", "passes": true, "body": {"leaves": []}, "ways": [
            {"when": {"holds": "{{flag}}"}, "to": 2}, {"when": "done", "to": 3}]}),
        ask("yes", "two", json!([])),
        ask("no", "three", json!([])),
    ]);
    let graph = graph(nodes, json!([]));
    for (flag, said) in [(true, "two"), (false, "three")] {
        let mut world = World { state: State::new(Arc::clone(&graph)), journal: Vec::new() };
        let initial = json!({ "flag": flag });
        let start =
            selvedge_engine::Start { initial: initial.as_object().unwrap().clone(), ..Default::default() };
        world.input(Input::Start(Box::new(start)));
        world.run(false, echo);
        assert_eq!(world.state.status(), RunStatus::Completed);
        assert_eq!(world.texts(), ["one", "re: one", said, &format!("re: {said}")]);
        assert_eq!(*world.state.view().output(), json!(format!("re: {said}")));
        replays(&world, &graph);
    }
    let mut world = World::begin(&graph);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Failed);
    assert_eq!(world.state.view().fault().unwrap().kind, FaultKind::UnresolvedPlaceholder);
    replays(&world, &graph);
}

#[test]
fn a_failed_node_goes_to_its_error_way() {
    let nodes = json!([
        ask("a", "one", json!([{"when": "fault", "to": 1}, {"when": "done", "to": 2}])),
        ask("mend", "sorry", json!([])),
        ask("b", "two", json!([])),
    ]);
    let graph = graph(nodes, json!([]));
    let mut world = World::begin(&graph);
    world.complete("a/model/1/1", fails("no"));
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["one", "sorry", "re: sorry"]);
    replays(&world, &graph);
}

#[test]
fn paths_begin_with_a_snapshot_and_join_with_the_main_paths_threads() {
    for (last, serial) in [(false, false), (true, false), (false, true)] {
        let graph = fork(json!("all_completed"), json!("con"), serial);
        let mut world = World::begin(&graph);
        world.complete("before/model/1/1", reply("cats"));
        let both = ["debate~1[con]/argue/model/1/1", "debate~1[pro]/argue/model/1/1"];
        assert_eq!(world.pending(), if serial { &both[1..] } else { &both[..] });
        world.run(last, echo);
        assert_eq!(world.state.status(), RunStatus::Completed);
        let said =
            ["topic", "cats", "against", "re: against", "so: re: for cats cats", "re: so: re: for cats cats"];
        assert_eq!(world.texts(), said);
        replays(&world, &graph);
    }
}

#[test]
fn the_first_to_complete_decides_and_the_others_are_cut_off() {
    let graph = fork(json!("any_completed"), json!("con"), false);
    let mut world = World::begin(&graph);
    world.complete("before/model/1/1", reply("cats"));
    world.complete("debate~1[pro]/argue/model/1/1", reply("yes"));
    assert_eq!(world.pending(), ["after/model/1/1"], "the other path's call is wanted no more");
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    let codes: Vec<&str> = world.state.warnings().iter().map(|warning| &*warning.code).collect();
    assert_eq!(codes, ["main-path-not-adopted"]);
    assert_eq!(world.texts()[..2], ["topic", "cats"]);
    replays(&world, &graph);
}

#[test]
fn a_join_that_cant_be_met_is_a_fault() {
    let graph = fork(json!("all_completed"), json!("pro"), false);
    let mut world = World::begin(&graph);
    world.complete("before/model/1/1", reply("cats"));
    world.complete("debate~1[pro]/argue/model/1/1", fails("no"));
    assert_eq!(world.state.status(), RunStatus::Failed);
    let fault: Fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(fault.kind, FaultKind::JoinUnmet);
    assert!(fault.message.contains("`pro` failed (no), `con` had not ended"), "{}", fault.message);
    replays(&world, &graph);
}

#[test]
fn a_fork_over_a_list_has_a_path_for_each_element() {
    let paths = json!({"of": {"each": {"over": "{{items}}", "item": "it", "graph": 0}}, "join": {"strategy": "all_completed"}});
    let nodes = json!([
        node("list", json!({"set": ["items", ["a", "b", "c"]]}), to(1)),
        node("each", json!({"fork": paths}), json!([])),
    ]);
    let call = json!({"call": {"tool": "note", "args": {"it": "{{it}}", "at": "{{index}}"}}});
    let graph = graph(nodes, json!([flow(json!([node("call", call, json!([]))]))]));
    let mut world = World::begin(&graph);
    world.run(true, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    let got = |it: &str, at: u32| json!({"got": {"it": it, "at": at}});
    assert_eq!(*world.state.view().output(), json!({"0": got("a", 0), "1": got("b", 1), "2": got("c", 2)}));
    replays(&world, &graph);
}

#[test]
fn a_loop_works_on_the_threads_and_variables_around_it() {
    let times = json!({"graph": 0, "times": {"over": [["x", "y"], "it"]}, "limit": 5});
    let nodes = json!([
        ask("before", "begin", to(1)),
        node("each", json!({"loop": times}), to(2)),
        ask("after", "{{last}}", json!([])),
    ]);
    let body = json!([
        ask("say", "{{index}}: {{it}}", to(1)),
        node("set", json!({"set": ["last", "{{it}}!"]}), json!([]))
    ]);
    let graph = graph(nodes, json!([flow(body)]));
    let mut world = World::begin(&graph);
    world.complete("before/model/1/1", reply("ok"));
    assert_eq!(world.pending(), ["each~1#0/say/model/1/1"]);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["begin", "ok", "0: x", "re: 0: x", "1: y", "re: 1: y", "y!", "re: y!"]);
    replays(&world, &graph);
}

#[test]
fn a_loop_ends_at_its_limit() {
    let times = json!({"graph": 0, "times": {"while": true}, "limit": 3});
    let graph = graph(
        json!([node("again", json!({"loop": times}), json!([]))]),
        json!([flow(json!([node("call", json!({"call": {"tool": "note", "args": {}}}), json!([]))]))]),
    );
    let mut world = World::begin(&graph);
    world.run(false, echo);
    assert_eq!(world.state.usage().tool_calls, 3);
    assert_eq!(world.state.view().fault().unwrap().kind, FaultKind::LimitExceeded);
    replays(&world, &graph);
}

/// E-12: whatever a loop allows itself, it goes round no more often than all loops may.
#[test]
fn e12_all_loops_have_a_limit() {
    for (times, why) in [
        (
            json!({"while": true}),
            "the loop `again` has gone round 2 times, which is the limit of all loops, and its condition still holds: raise `loop_iterations` in [limits] if it needs more",
        ),
        (
            json!({"count": 3}),
            "the loop `again` is to go round 3 times, over the limit of all loops of 2: raise `loop_iterations` in [limits] if it needs more",
        ),
    ] {
        let times = json!({"graph": 0, "times": times, "limit": 9});
        let graph = graph(
            json!([node("again", json!({"loop": times}), json!([]))]),
            json!([flow(json!([node("call", json!({"call": {"tool": "note", "args": {}}}), json!([]))]))]),
        );
        let limits = selvedge_engine::Limits { loop_iterations: 2, ..selvedge_engine::Limits::default() };
        let start = Start { limits, ..Start::default() };
        let mut world = World::again(&graph, &[Event::Started(Box::new(start))]);
        world.run(false, echo);
        assert_eq!(world.state.view().fault().unwrap().message, why);
    }
}

#[test]
fn a_subgraph_has_threads_and_names_of_its_own() {
    let sub = json!({"graph": 0, "inputs": [["topic", "{{before}}!"]], "outputs": [["kept", "{{inner}}"]]});
    let nodes = json!([
        ask("before", "begin", to(1)),
        node("sub", json!({"sub": sub}), to(2)),
        ask("after", "{{kept}} of {{sub}}", json!([])),
    ]);
    let inner = json!({"threads": [{"name": "main", "first": "about {{topic}}"}], "tools": {},
        "nodes": [ask("inner", "go", json!([]))]});
    let graph = graph(nodes, json!([inner]));
    let mut world = World::begin(&graph);
    world.complete("before/model/1/1", reply("cats"));
    let effect = world.state.pending().keys().next().cloned().unwrap();
    let Some(Request::Model(request)) = world.state.request(&effect) else { panic!("a model is asked") };
    let texts: Vec<&str> = request.messages.iter().map(|message| &*message.content).collect();
    assert_eq!((&*effect.0, &texts[..]), ("sub~1/inner/model/1/1", &["about cats!", "go"][..]));
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["begin", "cats", "re: go of re: go", "re: re: go of re: go"]);
    replays(&world, &graph);
}

#[test]
fn a_dataflow_may_hold_a_flow() {
    let graph = json!({
        "threads": [{"name": "main", "first": "task"}, {"name": "other", "first": "hidden"}], "tools": {},
        "nodes": [ask("a", "one", json!([])),
            {"id": "wf", "name": "wf", "body": {"thread": 0, "leaves": [{"name": "do", "act": {"fork": {
                "of": {"listed": [["p", 0]]}, "join": {"strategy": "all_completed", "main": "p"}}}}]}},
            ask("b", "{{wf.p}}", json!([]))],
        "graphs": [{"threads": [{"name": "main"}, {"name": "other"}], "control": "flow", "tools": {},
            "nodes": [ask("in", "two", json!([]))]}]});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    let mut world = World::begin(&graph);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["task", "one", "re: one", "two", "re: two", "re: two", "re: re: two"]);
    replays(&world, &graph);
}

#[test]
fn e12_frames_inside_each_other_have_a_limit() {
    let graph = graph(
        json!([node("down", json!({"sub": {"graph": 0}}), json!([]))]),
        json!([flow(json!([node("down", json!({"sub": {"graph": 0}}), json!([]))]))]),
    );
    let world = World::begin(&graph);
    let fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(
        (fault.kind, fault.message.contains("subgraph_depth")),
        (FaultKind::LimitExceeded, true),
        "{fault:?}"
    );
    replays(&world, &graph);
}

/// E-38: what a path had under way is wanted no more; of a write nobody knows what became of it.
#[test]
fn e38_a_write_that_is_cut_off_is_told_and_not_run_again_unasked() {
    let write = json!({"call": {"tool": "write", "args": {"x": 1}}});
    let paths = json!({"of": {"listed": [["w", 0], ["f", 1]]}, "join": {"strategy": "all_completed"}});
    let graph = graph(
        json!([node("both", json!({"fork": paths}), json!([]))]),
        json!([flow(json!([node("put", write, json!([]))])), flow(json!([ask("say", "hi", json!([]))]))]),
    );
    let mut world = World::begin(&graph);
    assert_eq!(world.pending(), ["both~1[f]/say/model/1/1", "both~1[w]/put/do/1/1"]);
    world.complete("both~1[f]/say/model/1/1", fails("no"));
    assert_eq!(world.pending(), Vec::<String>::new());
    let warning = world.state.warnings().iter().find(|warning| &*warning.code == "write-cancelled").unwrap();
    assert_eq!(warning.node.as_deref(), Some("both~1[w]/put"));
    world.input(Input::Resume(Vec::new()));
    assert_eq!(world.pending(), ["both~1[f]/say~2/model/1/1"]);
    let ask = world.state.asks().keys().next().cloned().unwrap();
    assert_eq!(&*ask, "both~1[w]/put~2/do/1/1");
    world.input(Input::Answer(ask, json!("yes")));
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    replays(&world, &graph);
}

/// Every kind of derived event in a state that it does not fit: the run ends, and nothing else happens (E-17).
#[test]
fn e17_an_event_that_does_not_fit_poisons_the_run() {
    let graph = fork(json!("all_completed"), json!("pro"), false);
    let strange = [
        json!({"kind": "node_started", "node": "nobody"}),
        json!({"kind": "opened", "node": "after", "thread": "main", "from": "main", "start": 0, "end": 1}),
        json!({"kind": "appended", "node": "after", "thread": "main", "body": {"text": ["user", "x"]}}),
        json!({"kind": "appended", "node": "debate~1[nobody]/argue", "thread": "main", "body": {"text": ["user", "x"]}}),
        json!({"kind": "requested", "effect": "nobody/model/1/1"}),
        json!({"kind": "requested", "effect": "no id at all"}),
        json!({"kind": "retried", "effect": "after/model/1/1", "after_ms": u64::MAX, "reason": ""}),
        json!({"kind": "reused", "effect": "nobody/model/1/1", "from": "nobody/model/1/1"}),
        json!({"kind": "completed", "effect": "nobody/model/1/1", "outcome": {"output": 1}}),
        json!({"kind": "lost", "effect": "nobody/model/1/1"}),
        json!({"kind": "asked", "ask": "a", "node": "after", "ask_kind": "approve", "prompt": ""}),
        json!({"kind": "asked", "ask": "a", "node": "before", "ask_kind": "edit", "prompt": "", "value": 1, "due": -9}),
        json!({"kind": "answered", "ask": "a", "value": {"answer": 1}}),
        json!({"kind": "fired", "timer": "debate/do"}),
        json!({"kind": "published", "node": "after", "to": "main", "description": ""}),
        json!({"kind": "node_finished", "node": "after"}),
        json!({"kind": "caught", "node": "after", "fault": {"kind": "timeout", "message": ""}}),
        json!({"kind": "node_skipped", "node": "nobody", "because": "x"}),
        json!({"kind": "spliced", "node": "nobody", "effect": "x"}),
        json!({"kind": "entered", "node": "debate", "paths": 2}),
        json!({"kind": "left", "node": "debate"}),
        json!({"kind": "unrouted", "node": "nobody", "fault": {"kind": "timeout", "message": ""}}),
        json!({"kind": "set", "node": "after", "name": "x", "value": 1}),
    ];
    for event in strange {
        let event: Event =
            serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{event}: {error}"));
        let mut world = World::begin(&graph);
        world.state.apply(&event);
        assert_eq!(world.state.status(), RunStatus::Failed, "{event:?}");
        assert!(world.state.view().fault().unwrap().message.contains("does not fit"), "{event:?}");
        assert_eq!(world.state.step(), None, "{event:?}");
    }
}

/// A graph that nobody has checked: the node fails, and says why.
#[test]
fn a_dataflow_has_no_variables() {
    let graph = json!({"threads": [{"name": "main", "first": "task"}], "tools": {}, "graphs": [flow(json!([]))],
                       "nodes": [node("set", json!({"set": ["x", 1]}), json!([]))]});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    let world = World::begin(&graph);
    assert_eq!(world.state.status(), RunStatus::Failed);
    let fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(fault.kind, FaultKind::InputError);
    assert!(fault.message.contains("`set` sets the variable `x`: a dataflow has none"), "{}", fault.message);
    replays(&world, &graph);
}
