//! What people are asked for beside a yes (E-21).

use super::world::*;
use selvedge_engine::{AskKind, AskPlace, answered};

/// A node that asks a person; with a thread, what is said is said there.
fn question(id: &str, ask: Value, thread: Value, ways: Value) -> Value {
    let mut node = node(id, json!({ "ask": ask }), ways);
    node["body"]["leaves"][0]["name"] = json!("ask");
    node["body"]["thread"] = thread;
    node
}

impl World {
    fn asks(&self) -> Vec<String> {
        self.state.asks().keys().map(|ask| ask.to_string()).collect()
    }
    /// Whether an answer was taken.
    fn say(&mut self, ask: &str, answer: Value) -> bool {
        let before = self.journal.len();
        self.input(Input::Answer(ask.into(), answered(answer, None, None)));
        self.journal.len() > before
    }
    /// Answers models and people until nobody is asked any more.
    fn finish(&mut self, answer: impl Fn(&str) -> Value) {
        loop {
            self.run(false, echo);
            let Some(ask) = self.asks().into_iter().next() else { return };
            let said = answer(&ask);
            assert!(self.say(&ask, said), "{ask} takes it");
        }
    }
    fn came_to(&self) -> (RunStatus, Vec<String>, Value) {
        (self.state.status(), self.texts(), self.state.view().output().clone())
    }
}

/// A run that a process takes up again after any event comes to the same.
fn goes_on_from_anywhere(world: &World, graph: &Arc<Graph>, answer: impl Fn(&str) -> Value) {
    replays(world, graph);
    for cut in 1..world.journal.len() {
        let mut again = World::again(graph, &world.journal[..cut]);
        again.finish(&answer);
        assert_eq!(again.came_to(), world.came_to(), "cut at {cut}");
    }
}

#[test]
fn e21_an_answer_is_the_result_and_is_said_on_the_thread() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let nodes = json!([
        question("who", json!(["answer", "How old is {{name}}?", {"schema": schema}]), json!(0), to(1)),
        ask("say", "{{who.age}} and {{age}}", json!([]))
    ]);
    let graph = graph(nodes, json!([]));
    let mut world = World::begin_with(&graph, json!({"name": "Ann"}), 0);
    assert_eq!((world.state.status(), world.asks()), (RunStatus::Waiting, vec!["who/ask".to_owned()]));
    let open = world.state.asks().values().next().unwrap().clone();
    assert_eq!((open.kind, &*open.prompt), (AskKind::Answer, "How old is Ann?"));
    assert_eq!(world.state.answer_schema(&open), Some(&schema));
    for (misfit, why) in [
        (json!("forty"), "is not of type \"object\""),
        (json!({}), "\"age\" is a required property"),
        (json!({"age": "x"}), "/age: \"x\" is not of type \"integer\""),
    ] {
        assert!(world.state.answer_misfit(&open, &misfit).unwrap().contains(why), "{misfit}");
        assert!(!world.say("who/ask", misfit), "it is refused at the door, and the ask stays open");
    }
    // Bare, it could not be told from one that comes with who gave it.
    assert_eq!(world.state.accept(Input::Answer("who/ask".into(), json!({"age": 40}))), None);
    let more = json!({"answer": {"age": 40}, "unknown": 1});
    assert_eq!(world.state.accept(Input::Answer("who/ask".into(), more)), None);
    let said = answered(json!({"age": 40}), Some("Bob"), Some("so it is"));
    world.input(Input::Answer("who/ask".into(), said));
    assert_eq!(world.texts(), [r#"{"age":40}"#, "40 and 40"]);
    assert!(!world.say("who/ask", json!({"age": 41})), "nobody answers twice");
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    let mut plain = World::begin_with(&graph, json!({"name": "Ann"}), 0);
    plain.finish(|_| json!({"age": 40}));
    assert_eq!(plain.came_to(), world.came_to());
    goes_on_from_anywhere(&plain, &graph, |_| json!({"age": 40}));
}

#[test]
fn e21_what_is_edited_is_shown() {
    let edit = json!(["edit", "Is it right?", {"value": {"draft": "{{a}}", "n": 1}}]);
    let nodes = json!([
        ask("a", "one", to(1)),
        question("b", edit, Value::Null, to(2)),
        ask("c", "{{b}}", json!([]))
    ]);
    let graph = graph(nodes, json!([]));
    let mut world = World::begin(&graph);
    world.run(false, echo);
    let open = world.state.asks().values().next().unwrap();
    assert_eq!(
        (open.kind, open.value.as_deref()),
        (AskKind::Edit, Some(&json!({"draft": "re: one", "n": 1})))
    );
    assert!(world.say("b/ask", json!("better")));
    world.run(false, echo);
    assert_eq!(
        world.texts(),
        ["one", "re: one", "better", "re: better"],
        "without a thread it is said nowhere"
    );
    goes_on_from_anywhere(&world, &graph, |_| json!("better"));
}

/// An answer for one iteration, path or visit never reaches another.
#[test]
fn e21_an_answer_reaches_its_own_place_only() {
    let times = json!({"graph": 0, "times": {"count": 2}, "limit": 5});
    let paths = json!({"of": {"listed": [["x", 1], ["a/b [1]#~ %", 1]]}, "join": {"strategy": "all_completed", "main": "x"}});
    let nodes = json!([node("each", json!({"loop": times}), to(1)), ask("end", "{{each}}", json!([]))]);
    let inner = json!([node("both/of them", json!({"fork": paths}), json!([]))]);
    let who = question("who~ [#]", json!(["answer", "{{index}}?"]), json!(0), to(1));
    let graph = graph(nodes, json!([flow(inner), flow(json!([who, ask("say", "so", json!([]))]))]));
    let mut world = World::begin(&graph);
    let mut seen = Vec::new();
    for iteration in 0..2 {
        let asks = world.asks();
        assert_eq!(asks.len(), 2, "{asks:?}");
        for ask in &asks {
            assert_eq!(AskPlace::parse(ask).unwrap().to_string(), *ask);
            assert!(!seen.contains(ask));
        }
        for old in &seen {
            assert!(!world.say(old, json!("late")), "{old} at {iteration}");
        }
        for (at, ask) in asks.iter().enumerate() {
            assert!(world.say(ask, json!(format!("{iteration}{at}"))));
            assert!(!world.say(ask, json!("twice")));
        }
        seen.extend(asks);
        // The model's node fails, and goes on: nobody is asked again for what was answered.
        let effect = world.pending().remove(0);
        world.complete(&effect, fails("no"));
        assert_eq!(world.state.status(), RunStatus::Failed);
        world.resume();
        assert_eq!(world.asks(), Vec::<String>::new());
        world.run(false, echo);
    }
    assert_eq!(world.state.status(), RunStatus::Completed);
    let x = |iteration: u32| [format!("{iteration}1"), "so".into(), "re: so".into()];
    assert_eq!(world.texts()[..6], [x(0), x(1)].concat());
    replays(&world, &graph);
}

#[test]
fn e37_an_ask_expires() {
    let nodes = json!([
        question(
            "who",
            json!(["answer", "Who?", {"timeout_s": 2}]),
            json!(0),
            json!([{"when": "fault", "to": 1}, {"when": "done", "to": 2}])
        ),
        ask("nobody", "late", json!([])),
        ask("say", "{{who}}", json!([]))
    ]);
    let graph = graph(nodes, json!([]));
    let begin = || World::begin_with(&graph, json!({}), 1_000);
    let answer = || Input::Answer("who/ask".into(), answered(json!("me"), None, None));
    let fire = || Input::Fire("who/ask".into());
    for (inputs, said) in [
        (vec![fire(), answer()], vec!["late"]),
        (vec![fire(), fire()], vec!["late"]),
        (vec![answer(), fire()], vec!["me", "me"]),
    ] {
        let mut world = begin();
        let wait = world.state.timers()["who/ask"];
        assert_eq!((wait.until, wait.ms, world.state.asks()["who/ask"].due), (3_000, 2_000, Some(3_000)));
        world.inputs(inputs);
        assert_eq!(world.texts(), said);
        assert!(world.state.asks().is_empty() && world.state.timers().is_empty());
        world.run(false, echo);
        assert_eq!(world.state.status(), RunStatus::Completed);
        replays_from(&world, &graph, 1_000);
    }
}

/// A question that nobody could answer is not asked.
#[test]
fn a_schema_that_is_none_is_a_fault() {
    let ask = json!(["answer", "Who?", {"schema": {"type": "no such type"}}]);
    let graph = graph(json!([question("who", ask, Value::Null, json!([]))]), json!([]));
    let world = World::begin(&graph);
    let fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(fault.kind, FaultKind::InputError);
    assert!(fault.message.contains("not a valid JSON Schema"), "{}", fault.message);
    replays(&world, &graph);
}

/// E-12: an answer is held to the limit of a message.
#[test]
fn an_answer_has_a_limit() {
    let graph = graph(json!([question("who", json!(["answer", "Who?"]), json!(0), json!([]))]), json!([]));
    let limits = selvedge_engine::Limits { message_bytes: 10, ..Default::default() };
    let start = selvedge_engine::Start { limits, ..Default::default() };
    let mut world = World { state: State::new(Arc::clone(&graph)), journal: Vec::new() };
    world.input(Input::Start(Box::new(start)));
    let open = world.state.asks()["who/ask"].clone();
    let long = json!("x".repeat(11));
    assert!(world.state.answer_misfit(&open, &long).unwrap().contains("message_bytes"));
    assert!(!world.say("who/ask", long));
    assert!(world.say("who/ask", json!("x".repeat(10))));
    assert_eq!(world.state.status(), RunStatus::Completed);
}

/// What is asked for is held against the schema of its own graph, whatever was in the frame's place before.
#[test]
fn frames_that_follow_each_other_have_schemas_of_their_own() {
    let sub = |graph: u32| json!({"sub": {"graph": graph}});
    let asks = |kind: &str| {
        flow(json!([question(
            "q",
            json!(["answer", "?", {"schema": {"type": kind}}]),
            Value::Null,
            json!([])
        )]))
    };
    let nodes = json!([node("a", sub(0), to(1)), node("b", sub(1), json!([]))]);
    let graph = graph(nodes, json!([asks("integer"), asks("string")]));
    let mut world = World::begin(&graph);
    assert!(!world.say("a~1/q/ask", json!("one")) && world.say("a~1/q/ask", json!(1)));
    assert!(!world.say("b~1/q/ask", json!(2)) && world.say("b~1/q/ask", json!("two")));
    assert_eq!(world.came_to().2, json!("two"));
    replays(&world, &graph);
}

/// An approval may come with a value, and with a time.
#[test]
fn an_approval_may_have_a_time() {
    let ask = json!(["approve", "Send it?", {"value": {"to": "Ann"}, "timeout_s": 1e300}]);
    let graph = graph(json!([question("ok", ask, Value::Null, json!([]))]), json!([]));
    let mut world = World::begin_with(&graph, json!({}), 5);
    let open = world.state.asks()["ok/ask"].clone();
    assert_eq!(
        (open.kind, open.value.as_deref(), open.due),
        (AskKind::Approve, Some(&json!({"to": "Ann"})), Some(i64::MAX))
    );
    world.input(Input::Answer("ok/ask".into(), json!("yes")));
    assert_eq!((world.state.status(), world.state.timers().len()), (RunStatus::Completed, 0));
    replays_from(&world, &graph, 5);
}

/// In a dataflow, an answer is a message of its thread in its turn.
#[test]
fn an_answer_in_a_dataflow() {
    let graph = json!({"threads": [{"name": "main", "first": "task"}, {"name": "b", "first": "b"}], "tools": {}, "nodes": [
        ask("a", "one", json!([])),
        question("q", json!(["answer", "{{a}}?"]), json!(0), json!([])),
        question("other", json!(["answer", "?"]), json!(1), json!([])),
        ask("c", "{{q}} {{other}}", json!([]))]});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    let mut world = World::begin(&graph);
    assert_eq!(world.asks(), ["other/ask"], "what waits for nobody is asked at once");
    world.finish(|ask| json!(ask));
    assert_eq!(world.texts(), ["task", "one", "re: one", "q/ask", "q/ask other/ask", "re: q/ask other/ask"]);
    goes_on_from_anywhere(&world, &graph, |ask| json!(ask));
}
