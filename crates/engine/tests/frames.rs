//! Frames: flows, forks and their joins, loops and subgraphs (E-34, E-35, E-38).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use selvedge_engine::{
    Event, Failure, Fault, FaultKind, Graph, Input, ModelReply, Outcome, Request, RunStatus, State,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A flow of these nodes, and the graphs that they open.
fn graph(nodes: Value, graphs: Value) -> Arc<Graph> {
    let graph = json!({
        "threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs,
        "tools": {"note": {"name": "note", "description": "", "input_schema": {}, "effects": "pure", "version": "1", "source": "test"},
                  "write": {"name": "write", "description": "", "input_schema": {}, "effects": "write", "version": "1", "source": "test"}}
    });
    Arc::new(serde_json::from_value(graph).unwrap())
}

/// An inner flow.
fn flow(nodes: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "tools": {}})
}

/// A node that says something on `main` and takes the model's answer; then goes on to these.
fn ask(id: &str, text: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": text}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}})
}

/// A node with one leaf and no thread.
fn node(id: &str, act: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

fn to(node: u32) -> Value {
    json!([{"when": "done", "to": node}])
}

struct World {
    state: State,
    journal: Vec<Event>,
}

impl World {
    fn begin(graph: &Arc<Graph>) -> Self {
        let mut world = Self { state: State::new(Arc::clone(graph)), journal: Vec::new() };
        world.input(Input::Start(Box::default()));
        world
    }
    fn input(&mut self, input: Input) {
        let Some(event) = self.state.accept(input) else { return };
        self.state.apply(&event);
        self.journal.push(event);
        while let Some(event) = self.state.step() {
            self.state.apply(&event);
            self.journal.push(event);
            assert!(self.journal.len() < 100_000, "it goes on for ever");
        }
    }
    fn complete(&mut self, effect: &str, outcome: Outcome) {
        let effect = selvedge_engine::EffectId(effect.into());
        assert!(self.state.pending().contains_key(&effect), "{effect} of {:?}", self.pending());
        self.input(Input::Complete(effect, outcome, 0, None, None));
    }
    fn pending(&self) -> Vec<String> {
        self.state.pending().keys().map(|effect| effect.to_string()).collect()
    }
    /// Answers everything that is asked, the last or the first first, until nothing is.
    fn run(&mut self, last: bool, answer: impl Fn(&Request) -> Outcome) {
        loop {
            let mut pending = self.state.pending().keys();
            let Some(effect) = (if last { pending.next_back() } else { pending.next() }).cloned() else {
                return;
            };
            let outcome = answer(&self.state.request(&effect).unwrap());
            self.input(Input::Complete(effect, outcome, 0, None, None));
        }
    }
    fn texts(&self) -> Vec<String> {
        let view = self.state.view();
        let main = view.threads.iter().find(|(name, _)| &**name == "main");
        main.map(|(_, messages)| messages.iter().map(|m| m.content.to_string()).collect()).unwrap_or_default()
    }
}

fn reply(text: &str) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), ..ModelReply::default() }))
}

/// The last message of a request, answered.
fn echo(request: &Request) -> Outcome {
    match request {
        Request::Model(request) => reply(&format!("re: {}", request.messages.last().unwrap().content)),
        Request::Tool(request) => Outcome::Output(Arc::new(json!({"got": request.args}))),
    }
}

/// The journal folded is the state, and its inputs give all of it again (E-03, E-18).
fn replays(world: &World, graph: &Arc<Graph>) {
    let mut state = State::new(Arc::clone(graph));
    for (at, event) in world.journal.iter().enumerate() {
        let text = serde_json::to_string(event).unwrap();
        let event: Event = serde_json::from_str(&text).unwrap();
        let derived = match Input::from_event(event.clone()) {
            Some(input) => state.accept(input).unwrap(),
            None => state.step().unwrap_or_else(|| panic!("nothing at {at} in place of {text}")),
        };
        assert_eq!(serde_json::to_string(&derived).unwrap(), text, "at {at}");
        state.apply(&event);
    }
    assert_eq!(state.step(), None);
    assert_eq!(state.status(), world.state.status());
}

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
        assert_eq!(world.state.view().output, json!(format!("re: {said}")));
        replays(&world, &graph);
    }
    let mut world = World::begin(&graph);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Failed);
    assert_eq!(world.state.view().fault.unwrap().kind, FaultKind::UnresolvedPlaceholder);
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
    world.complete("a/model/1/1", Failure::permanent(FaultKind::ProviderError, "no").into());
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(world.texts(), ["one", "sorry", "re: sorry"]);
    replays(&world, &graph);
}

fn fork(strategy: Value, main: Value, serial: bool) -> Arc<Graph> {
    let paths = json!({"of": {"listed": [["pro", 0], ["con", 1]]}, "serial": serial,
                       "join": {"strategy": strategy, "main": main}});
    let nodes = json!([
        ask("before", "topic", to(1)),
        node("debate", json!({"fork": paths}), to(2)),
        ask("after", "so: {{debate.pro}} {{before}}", json!([])),
    ]);
    graph(
        nodes,
        json!([
            flow(json!([ask("argue", "for {{before}}", json!([]))])),
            flow(json!([ask("argue", "against", json!([]))]))
        ]),
    )
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
    world
        .complete("debate~1[pro]/argue/model/1/1", Failure::permanent(FaultKind::ProviderError, "no").into());
    assert_eq!(world.state.status(), RunStatus::Failed);
    let fault: Fault = world.state.view().fault.unwrap();
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
    assert_eq!(world.state.view().output, json!({"0": got("a", 0), "1": got("b", 1), "2": got("c", 2)}));
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
    assert_eq!(world.state.view().fault.unwrap().kind, FaultKind::LimitExceeded);
    replays(&world, &graph);
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

/// A run that failed goes on where it stood (E-36).
mod in_place {
    use super::*;

    fn fails(message: &str) -> Outcome {
        Failure::permanent(FaultKind::ProviderError, message).into()
    }

    impl World {
        fn resume(&mut self) -> usize {
            let before = self.journal.len();
            self.input(Input::Resume(Vec::new()));
            self.journal.len() - before
        }
    }

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
        let paths = json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": "all_completed", "main": "x"}});
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
        let nodes = json!([
            node("again", json!({"loop": times}), to(1)),
            node("sub", json!({"sub": sub}), json!([]))
        ]);
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
                Request::Tool(_) if rounds % 7 == 0 => fails("no"),
                Request::Tool(_) => Outcome::Output(Arc::new(json!(path_of(&effect.0)))),
            };
            world.input(Input::Complete(effect, outcome, 0, None, None));
        }
        assert_eq!(world.state.status(), RunStatus::Completed);
        let results = world.state.view().output;
        for path in 0..64 {
            assert_eq!(results[path.to_string()], json!(format!("mine is {path}")));
        }
        assert_eq!(world.state.usage().model_calls, 64, "what was answered is not asked again");
        replays(&world, &graph);
    }
}

/// A join's time is a timer in the journal (E-37).
mod timers {
    use super::*;

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
        let mut world = World { state: State::new(Arc::clone(graph)), journal: Vec::new() };
        world.state.tick(10_000);
        let initial = json!({"x": "too late"}).as_object().unwrap().clone();
        world.input(Input::Start(Box::new(selvedge_engine::Start { initial, ..Default::default() })));
        world
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
        replays_at(&world, &graph);
    }

    #[test]
    fn a_join_that_is_decided_in_time_has_no_timer_left() {
        let graph = timed();
        let mut world = begin(&graph);
        world.run(false, echo);
        assert_eq!((world.state.status(), world.state.timers().len()), (RunStatus::Completed, 0));
        replays_at(&world, &graph);
    }

    /// As [`replays`], from the time at which the run began.
    fn replays_at(world: &World, graph: &Arc<Graph>) {
        let mut state = State::new(Arc::clone(graph));
        state.tick(10_000);
        for event in &world.journal {
            let derived = match Input::from_event(event.clone()) {
                Some(input) => state.accept(input),
                None => state.step(),
            };
            assert_eq!(derived.as_ref(), Some(event));
            state.apply(event);
        }
    }
}

/// Every strategy, in every order in which up to five paths end, in every way: against a reading of the rule (W-06).
mod joins {
    use super::*;

    fn orders(count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let shorter = orders(count - 1);
        shorter
            .iter()
            .flat_map(|order| {
                (0..=order.len()).map(|at| {
                    let mut order = order.clone();
                    order.insert(at, count - 1);
                    order
                })
            })
            .collect()
    }

    /// How many paths have ended when it is decided, and whether it is met.
    fn reading(strategy: &Value, count: usize, ends: &[bool]) -> (usize, bool) {
        for seen in 0..=ends.len() {
            let completed = ends[..seen].iter().filter(|end| **end).count();
            let failed = seen - completed;
            let decided = match strategy {
                Value::String(name) => match name.as_str() {
                    "all_completed" if failed > 0 => Some(false),
                    "all_completed" if completed == count => Some(true),
                    "any_completed" if completed > 0 => Some(true),
                    "any_completed" if failed == count => Some(false),
                    "all_failed" if completed > 0 => Some(false),
                    "all_failed" if failed == count => Some(true),
                    "any_failed" if failed > 0 => Some(true),
                    "any_failed" if completed == count => Some(false),
                    _ => None,
                },
                threshold => {
                    let wanted = usize::try_from(threshold["count"].as_u64().unwrap()).unwrap();
                    if completed >= wanted { Some(true) } else { (count - failed < wanted).then_some(false) }
                }
            };
            if let Some(met) = decided {
                return (seen, met);
            }
        }
        panic!("never decided");
    }

    #[test]
    fn e07_every_order_of_ends_decides_as_the_rule_says() {
        let named = ["all_completed", "any_completed", "all_failed", "any_failed"].map(|name| json!(name));
        for count in 1..=5usize {
            let thresholds = (1..=count).map(|wanted| json!({ "count": wanted }));
            for strategy in named.iter().cloned().chain(thresholds) {
                let listed: Vec<Value> = (0..count).map(|at| json!([format!("p{at}"), 0])).collect();
                let paths = json!({"of": {"listed": listed}, "join": {"strategy": strategy, "main": "p0"}});
                let inner = flow(json!([ask("say", "hi", json!([]))]));
                let graph = graph(json!([node("all", json!({"fork": paths}), json!([]))]), json!([inner]));
                for order in orders(count) {
                    for ways in 0..1u32 << count {
                        let end = |path: usize| ways >> path & 1 == 1;
                        let ends: Vec<bool> = order.iter().map(|path| end(*path)).collect();
                        let (seen, met) = reading(&strategy, count, &ends);
                        let mut world = World::begin(&graph);
                        for path in &order[..seen] {
                            assert_eq!(world.state.status(), RunStatus::Running);
                            let outcome = match end(*path) {
                                true => reply("done"),
                                false => Failure::permanent(FaultKind::ProviderError, "no").into(),
                            };
                            world.complete(&format!("all~1[p{path}]/say/model/1/1"), outcome);
                        }
                        assert!(world.state.pending().is_empty(), "{strategy}: {order:?} {ends:?}");
                        let wanted = if met { RunStatus::Completed } else { RunStatus::Failed };
                        assert_eq!(world.state.status(), wanted, "{strategy}: {order:?} {ends:?}");
                        let adopted = met && order[..seen].contains(&0) && end(0);
                        assert_eq!(world.texts().len(), if adopted { 2 } else { 0 });
                    }
                }
            }
        }
    }
}

#[test]
fn e12_frames_inside_each_other_have_a_limit() {
    let graph = graph(
        json!([node("down", json!({"sub": {"graph": 0}}), json!([]))]),
        json!([flow(json!([node("down", json!({"sub": {"graph": 0}}), json!([]))]))]),
    );
    let world = World::begin(&graph);
    let fault = world.state.view().fault.unwrap();
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
    world.complete("both~1[f]/say/model/1/1", Failure::permanent(FaultKind::ProviderError, "no").into());
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
        assert!(world.state.view().fault.unwrap().message.contains("does not fit"), "{event:?}");
        assert_eq!(world.state.step(), None, "{event:?}");
    }
}
