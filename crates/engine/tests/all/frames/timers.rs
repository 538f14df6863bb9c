//! How long asks and what opens frames may take is a timer in the journal (E-37).

use super::world::*;

fn timed() -> Arc<Graph> {
    let paths = json!({"of": {"listed": [["a", 0], ["b", 0]]},
                       "join": {"strategy": "all_completed", "main": "a", "timeout_s": 1.5}});
    let nodes = json!([
        node("both", json!({"fork": paths}), json!([{"when": "fault", "to": 1}])),
        ask("late", "{{x}}", json!([]))
    ]);
    graph(nodes, json!([flow(json!([ask("say", "hi", json!([]))]))]))
}

fn begin(graph: &Arc<Graph>) -> World {
    World::begin_with(graph, json!({"x": "too late"}), 10_000)
}

#[test]
fn e37_a_join_whose_time_is_up_is_the_fault_timeout() {
    let graph = timed();
    let mut world = begin(&graph);
    world.complete("both~1[a]/say/model/1/1", reply("A"));
    let timers: Vec<(String, i64)> =
        world.state.timers().iter().map(|(id, wait)| (id.to_string(), wait.until)).collect();
    assert_eq!(timers, [("both/do".to_owned(), 11_500)]);
    world.input(Input::Fire("both/do".into()));
    assert_eq!(world.pending(), ["late/model/1/1"], "what had not ended is cut off");
    let finished = world.journal.iter().find_map(|event| match event {
        Event::NodeFinished { fault: Some(fault), .. } => Some(fault.clone()),
        _ => None,
    });
    let fault = finished.unwrap();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert!(fault.message.contains("`a` completed, `b` had not ended"), "{}", fault.message);
    let before = world.journal.len();
    world.input(Input::Fire("both/do".into()));
    assert_eq!(world.journal.len(), before, "a timer fires once");
    replays_from(&world, &graph, 10_000);
}

#[test]
fn a_join_that_is_decided_in_time_has_no_timer_left() {
    let graph = timed();
    let mut world = begin(&graph);
    world.run(false, echo);
    assert_eq!((world.state.status(), world.state.timers().len()), (RunStatus::Completed, 0));
    replays_from(&world, &graph, 10_000);
}

fn timers(world: &World) -> Vec<(String, i64)> {
    world.state.timers().iter().map(|(id, wait)| (id.to_string(), wait.until)).collect()
}

fn fault_of(world: &World) -> Fault {
    world.state.view().fault().cloned().unwrap()
}

/// Three rounds, or one subgraph of three nodes, in two and a half seconds.
fn whole(act: Value) -> Arc<Graph> {
    let body = match act["loop"].is_null() {
        true => json!([ask("x", "0", to(1)), ask("x1", "1", to(2)), ask("x2", "2", json!([]))]),
        false => json!([ask("x", "{{index}}", json!([]))]),
    };
    graph(json!([node("all", act, to(1)), ask("after", "so", json!([]))]), json!([flow(body)]))
}

#[test]
fn e37_loops_and_subgraphs_have_a_time_as_a_whole() {
    let rounds = json!({"loop": {"graph": 0, "times": {"count": 3}, "limit": 3, "timeout_s": 2.5}});
    let sub = json!({"sub": {"graph": 0, "timeout_s": 2.5}});
    for (act, second, again, what) in [
        (rounds, "all~1#1/x/model/1/1", "all~1#1/x~2/model/1/1", "the loop `all`"),
        (sub, "all~1/x1/model/1/1", "all~1/x1~2/model/1/1", "the subgraph `all`"),
    ] {
        let graph = whole(act);
        let mut world = World::begin_with(&graph, json!({}), 1_000);
        assert_eq!(timers(&world), [("all/do".to_owned(), 3_500)]);
        let first = world.pending().remove(0);
        world.complete(&first, reply("A"));
        assert_eq!(world.pending(), [second]);
        world.input(Input::Fire("all/do".into()));
        assert_eq!((world.state.status(), world.pending().len()), (RunStatus::Failed, 0));
        let fault = fault_of(&world);
        assert_eq!(fault.kind, FaultKind::Timeout);
        assert!(fault.message.contains(what) && fault.message.contains("2.5 s"), "{}", fault.message);
        // It goes on where it stood, with all of its time.
        world.resume();
        assert_eq!(
            (timers(&world), world.pending()),
            (vec![("all/do".to_owned(), 3_500)], vec![again.to_owned()])
        );
        world.run(false, echo);
        assert_eq!((world.state.status(), timers(&world).len()), (RunStatus::Completed, 0));
        goes_on(&world, &graph, 1_000);
    }
}

/// What had ended when the time was up has ended in time, if that was all; the journal's order decides.
#[test]
fn a_timer_that_fires_as_its_node_ends() {
    let join = json!({"strategy": "all_completed", "timeout_s": 1});
    for act in [
        json!({"loop": {"graph": 0, "times": {"count": 1}, "limit": 1, "timeout_s": 1}}),
        json!({"sub": {"graph": 0, "timeout_s": 1}}),
        json!({"fork": {"of": {"listed": [["p", 0]]}, "join": join}}),
    ] {
        let inner = flow(json!([ask("x", "0", json!([]))]));
        let graph = graph(json!([node("all", act, json!([]))]), json!([inner]));
        for last in [false, true] {
            let mut world = World::begin(&graph);
            let effect = world.pending().remove(0);
            let done = world.completion(&effect, reply("A"));
            let fire = Input::Fire("all/do".into());
            // The answer is there, and its node has not gone on with it.
            world.inputs(if last { [done, fire] } else { [fire, done] });
            assert_eq!((world.state.status(), timers(&world).len()), (RunStatus::Failed, 0));
            assert_eq!(fault_of(&world).kind, FaultKind::Timeout);
            replays(&world, &graph);
            world.resume();
            world.run(false, echo);
            assert_eq!((world.state.status(), timers(&world).len()), (RunStatus::Completed, 0));
            let mut world = World::begin(&graph);
            world.complete(&effect, reply("A"));
            let before = world.journal.len();
            world.input(Input::Fire("all/do".into()));
            assert_eq!((world.state.status(), world.journal.len()), (RunStatus::Completed, before));
        }
    }
}

#[test]
fn times_beyond_all_measure_are_for_ever_and_none_is_none() {
    for (seconds, until) in [
        (json!(1e300), Some(i64::MAX)),
        (json!(9_223_372_036_854_775_807u64), Some(i64::MAX)),
        (json!(1e-9), Some(1)),
        (json!(0), None),
        (json!(-1), None),
    ] {
        let graph = whole(json!({"sub": {"graph": 0, "timeout_s": seconds}}));
        let mut world = World::begin(&graph);
        assert_eq!(timers(&world).first().map(|(_, until)| *until), until, "{seconds}");
        for now in [i64::MIN, -1, 0, 1_800_000_000_000, i64::MAX] {
            let left = world.state.timers().values().next().map(|wait| wait.left_ms(now));
            assert!(left.is_none_or(|left| left <= i64::MAX.unsigned_abs()));
        }
        world.run(false, echo);
        assert_eq!(world.state.status(), RunStatus::Completed);
        replays(&world, &graph);
    }
    // Later than the last moment there is.
    let graph = whole(json!({"sub": {"graph": 0, "timeout_s": 10}}));
    let world = World::begin_with(&graph, json!({}), i64::MAX - 5);
    assert_eq!(timers(&world)[0].1, i64::MAX);
    assert_eq!(world.state.overdue(i64::MAX), ["all/do".into()]);
    assert!(world.state.overdue(0).is_empty(), "a clock that was set back fires nothing");
}

#[test]
fn e12_a_run_has_so_many_timers() {
    let ask = json!({"ask": ["answer", "?", {"timeout_s": 9}]});
    let listed: Vec<Value> = (0..3).map(|at| json!([format!("p{at}"), 0])).collect();
    let paths = json!({"of": {"listed": listed}, "join": {"strategy": "any_failed"}});
    let graph = graph(
        json!([node("all", json!({"fork": paths}), json!([]))]),
        json!([flow(json!([node("who", ask, json!([]))]))]),
    );
    let limits = selvedge_engine::Limits { timers: 2, ..Default::default() };
    let mut world = World { state: State::new(Arc::clone(&graph)), journal: Vec::new() };
    world.input(Input::Start(Box::new(Start { limits, ..Start::default() })));
    assert_eq!(world.state.status(), RunStatus::Completed, "one path has failed");
    let fault = world.journal.iter().find_map(|event| match event {
        Event::NodeFinished { fault: Some(fault), .. } => Some(fault.clone()),
        _ => None,
    });
    let fault = fault.unwrap();
    assert_eq!(
        (fault.kind, fault.message.contains("`timers`")),
        (FaultKind::LimitExceeded, true),
        "{fault:?}"
    );
    assert!(world.state.asks().is_empty() && world.state.timers().is_empty(), "the others are asked no more");
    replays(&world, &graph);
}

/// E-38: a path that is cut off has no timers and asks left, at any depth and whatever its ids hold.
#[test]
fn what_is_cut_off_waits_for_nothing() {
    let ask_who = json!({"ask": ["answer", "?", {"timeout_s": 9}]});
    let id = "a/b [1]#~ %é";
    let inner = flow(json!([node(id, json!({"sub": {"graph": 1, "timeout_s": 5}}), json!([]))]));
    let paths = json!({"of": {"listed": [[id, 0], ["quick", 2]]}, "join": {"strategy": "any_completed", "timeout_s": 60}});
    let graph = graph(
        json!([node(id, json!({"fork": paths}), json!([]))]),
        json!([inner, flow(json!([node(id, ask_who, json!([]))])), flow(json!([ask("x", "hi", json!([]))]))]),
    );
    let begin = || World::begin(&graph);
    let world = begin();
    let (ids, asks): (Vec<_>, Vec<_>) = (timers(&world), world.state.asks().keys().cloned().collect());
    assert_eq!((ids.len(), asks.len()), (3, 1));
    for (timer, _) in &ids {
        assert_eq!(selvedge_engine::AskPlace::parse(timer).unwrap().to_string(), *timer);
        // Each fires at its own place.
        let mut world = begin();
        world.input(Input::Fire(timer.as_str().into()));
        assert!(!world.state.timers().contains_key(timer.as_str()));
        world.run(false, echo);
        goes_on(&world, &graph, 0);
    }
    let mut world = begin();
    world.run(false, echo);
    assert_eq!((world.state.status(), timers(&world).len()), (RunStatus::Completed, 0));
    assert!(world.state.asks().is_empty());
    goes_on(&world, &graph, 0);
}

/// A run whose tools have changed begins anew where it stands: nothing of before is waited for any more (P-21).
#[test]
fn a_running_flow_goes_on_with_other_tools() {
    let call = json!({"call": {"tool": "note", "args": {}}});
    let graph = graph(
        json!([
            node("a", call, to(1)),
            node("b", json!({"ask": ["answer", "?", {"timeout_s": 5}]}), json!([]))
        ]),
        json!([]),
    );
    let tool = || {
        let mut tool = selvedge_engine::ToolDef::clone(&graph.tools["note"]);
        tool.version = "2".into();
        Input::Resume(vec![tool])
    };
    let mut world = World::begin(&graph);
    world.input(tool());
    assert_eq!(world.pending(), ["a~2/do/1/1"]);
    world.run(false, echo);
    world.input(tool());
    let asks: Vec<String> = world.state.asks().keys().map(|ask| ask.to_string()).collect();
    assert_eq!((asks, timers(&world).len()), (vec!["b~2/do".to_owned()], 1));
    goes_on(&world, &graph, 0);
}
