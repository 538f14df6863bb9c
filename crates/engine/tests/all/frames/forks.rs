//! E-29, E-36: a fork takes what its source recorded at the same places, inside frames, too.

use super::world::*;
use selvedge_engine::{EffectId, Fork};
use std::collections::{BTreeMap, BTreeSet};

/// What a run with that journal has recorded.
pub(crate) fn fork_of(graph: &Arc<Graph>, source: &[Event]) -> Fork {
    let mut state = State::recording(Arc::clone(graph));
    source.iter().for_each(|event| state.apply(event));
    Fork {
        source: "s".into(),
        events: source.len() as u64,
        past: Some(Arc::new(state.past())),
        ..Fork::default()
    }
}

impl World {
    /// A fork of a run after its first `at` events.
    pub(crate) fn forked(graph: &Arc<Graph>, source: &[Event], at: usize, fork: Fork) -> Self {
        let mut world = Self::read(graph, &source[..at], 0);
        world.input(Input::Fork(Box::new(fork)));
        world
    }
    pub(crate) fn models_asked(&self) -> u64 {
        self.state.usage().model_calls
    }
    fn tools_run(&self) -> u64 {
        self.state.usage().tool_calls
    }
}

/// No effect of a fork has the id of another of its source, nor comes twice.
pub(crate) fn ids_are_new(world: &World, source: &[Event], at: usize) {
    let ids = |events: &[Event]| {
        let ids = events.iter().filter_map(|event| match event {
            Event::Requested { effect, .. } | Event::Reused { effect, .. } => Some(effect.to_string()),
            _ => None,
        });
        ids.collect::<Vec<String>>()
    };
    let (all, rest) = (ids(&world.journal), ids(&source[at..]));
    let own: BTreeSet<&String> = all.iter().collect();
    assert_eq!(own.len(), all.len(), "{all:?}");
    assert!(rest.iter().all(|id| !own.contains(id)), "{rest:?} in {all:?}");
}

/// From every event on, a fork of a run that completed comes to the same without asking anybody.
fn forks_ask_nobody(graph: &Arc<Graph>, source: &World) {
    assert_eq!(source.state.status(), RunStatus::Completed);
    for at in 1..source.journal.len() {
        let fork = fork_of(graph, &source.journal);
        let world = World::forked(graph, &source.journal, at, fork);
        assert_eq!(
            world.state.status(),
            RunStatus::Completed,
            "at {at}: {:?}, {:?}, {:?}",
            world.pending(),
            world.state.asks(),
            source.journal[at - 1]
        );
        assert_eq!((world.models_asked(), world.tools_run()), (0, 0), "at {at}");
        assert_eq!(world.state.view().output(), source.state.view().output(), "at {at}");
        assert_eq!(world.texts(), source.texts(), "at {at}");
        ids_are_new(&world, &source.journal, at);
        // A fork of the fork, from where that was forked.
        let again = World::forked(graph, &world.journal, at, fork_of(graph, &world.journal));
        assert_eq!((again.state.status(), again.models_asked()), (RunStatus::Completed, 0), "at {at}");
    }
}

#[test]
fn e29_in_a_flow_what_was_answered_is_not_asked_again() {
    let nodes = json!([ask("a", "one", to(1)), ask("b", "two", to(2)), ask("c", "three", json!([]))]);
    let graph = graph(nodes, json!([]));
    let mut source = World::begin(&graph);
    source.run(false, echo);
    forks_ask_nobody(&graph, &source);
}

#[test]
fn e29_paths_loops_and_subgraphs_take_what_is_theirs() {
    let graph = fork(json!("all_completed"), json!("con"), false);
    for last in [false, true] {
        let mut source = World::begin(&graph);
        source.run(last, |request| reply(&format!("{}!", request_id(request))));
        forks_ask_nobody(&graph, &source);
    }
    let times = json!({"graph": 0, "times": {"count": 3}, "limit": 5});
    let inner = json!([ask("x", "same", to(1)), node("in", json!({"sub": {"graph": 1}}), json!([]))]);
    let nodes = json!([node("again", json!({"loop": times}), to(1)), ask("end", "{{again}}", json!([]))]);
    let graph = graph_of(nodes, vec![flow(inner), flow(json!([ask("y", "same", json!([]))]))]);
    let mut source = World::begin(&graph);
    source.run(false, |request| reply(&request_id(request)));
    forks_ask_nobody(&graph, &source);
}

fn graph_of(nodes: Value, graphs: Vec<Value>) -> Arc<Graph> {
    graph(nodes, Value::Array(graphs))
}

fn request_id(request: &Request) -> String {
    match request {
        Request::Model(request) => request.effect.to_string(),
        Request::Tool(request) | Request::Operation(request) => request.effect.to_string(),
    }
}

/// Equal prompts on many paths: each takes its own reply, whoever was faster.
#[test]
fn e29_equal_requests_of_other_places_are_not_taken() {
    let inner = flow(
        json!([{"id": "work", "name": "work", "body": {"thread": 0, "tools": ["write"], "max_rounds": 9, "leaves": [
        {"name": "say", "act": {"say": "the same"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}, "next": [{"when": "always", "to": 2}]},
        {"name": "again", "act": {"say": "and again"}, "next": [{"when": "always", "to": 3}]},
        {"name": "do", "act": {"call": {"tool": "write", "args": {}}}}]}}]),
    );
    let of = json!({"each": {"over": (0..16).collect::<Vec<u32>>(), "item": "it", "graph": 0}});
    let paths = json!({"of": of, "join": {"strategy": "all_completed"}});
    let graph = graph_of(json!([node("each", json!({ "fork": paths }), json!([]))]), vec![inner]);
    let mut source = World::begin(&graph);
    source.run(true, |request| match request {
        Request::Model(_) => reply(&request_id(request)),
        _ => Outcome::Output(Arc::new(json!(request_id(request)))),
    });
    forks_ask_nobody(&graph, &source);
}

#[test]
fn e29_what_was_not_answered_is_asked() {
    let graph = fork(json!("all_completed"), json!("con"), false);
    let mut source = World::begin(&graph);
    source.complete("before/model/1/1", reply("cats"));
    let at = source.journal.len();
    source.complete("debate~1[pro]/argue/model/1/1", reply("yes"));
    let world = World::forked(&graph, &source.journal, at, fork_of(&graph, &source.journal));
    assert_eq!(world.pending(), ["debate~1[con]/argue~2/model/1/1"]);
    // A reply that is edited stands for what was said.
    let texts = BTreeMap::from([(EffectId("debate~1[pro]/argue/model/1/1".into()), Arc::from("no"))]);
    let edited = Fork { texts, ..fork_of(&graph, &source.journal) };
    let mut world = World::forked(&graph, &source.journal, at, edited);
    world.run(false, echo);
    assert_eq!(world.texts()[4], "so: no cats");
}

/// A write that was in flight on a path asks first; one that has a result and is asked for again as it was is taken.
#[test]
fn e05_a_write_of_a_path_that_nobody_knows_of_asks_first() {
    let call = json!({"call": {"tool": "write", "args": {}}});
    let inner = flow(json!([node("w", call, json!([]))]));
    let paths = json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": "all_completed"}});
    let graph = graph_of(
        json!([ask("a", "one", to(1)), node("both", json!({ "fork": paths }), json!([]))]),
        vec![inner],
    );
    let mut source = World::begin(&graph);
    source.complete("a/model/1/1", reply("go"));
    source.complete("both~1[x]/w/do/1/1", Outcome::Output(Arc::new(json!("written"))));
    for at in [1, source.journal.len()] {
        let world = World::forked(&graph, &source.journal, at, fork_of(&graph, &source.journal));
        let asks: Vec<&str> = world.state.asks().keys().map(|ask| &**ask).collect();
        assert_eq!(asks.len(), 1, "at {at}: {asks:?}, {:?}", world.pending());
        assert!(asks[0].contains("[y]"), "{asks:?}");
        assert_eq!(world.tools_run(), 0);
    }
}

/// A fork with an edited document takes what stands at the same places in it.
#[test]
fn e29_an_edited_document_takes_what_is_the_same() {
    let with = |last: &str| {
        let path = |text: &str| flow(json!([ask("argue", text, json!([]))]));
        let paths =
            json!({"of": {"listed": [["pro", 0], ["con", 1]]}, "join": {"strategy": "all_completed"}});
        let nodes = json!([
            ask("before", "topic", to(1)),
            node("debate", json!({ "fork": paths }), to(2)),
            ask("after", "end", json!([]))
        ]);
        graph_of(nodes, vec![path("for"), path(last)])
    };
    let (old, new) = (with("against"), with("very much against"));
    let mut source = World::begin(&old);
    source.run(false, echo);
    let fork = Fork {
        graph: Some("new".into()),
        compiled: Some(Arc::clone(&new)),
        ..fork_of(&old, &source.journal)
    };
    let mut world = World::forked(&old, &source.journal, 1, fork);
    assert_eq!(world.pending(), ["debate~2[con]/argue~2/model/1/1"]);
    world.run(false, echo);
    assert_eq!((world.state.status(), world.models_asked()), (RunStatus::Completed, 1));
}
