#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use super::*;
use selvedge_engine::{Failure, FaultKind, Input, ModelReply, Outcome, Request};
use serde_json::{Value, json};

/// Splits a journal into commits: each begins with an input that something else comes before.
fn commits(records: &[Record]) -> Vec<&[Record]> {
    let begins = |at: &usize| *at > 0 && records[*at].event.is_input() && !records[at - 1].event.is_input();
    let mut starts: Vec<usize> = (0..records.len()).filter(begins).collect();
    starts.push(records.len());
    let mut from = 0;
    starts.into_iter().map(|to| &records[std::mem::replace(&mut from, to)..to]).collect()
}

fn text(timeline: &Timeline) -> String {
    serde_json::to_string(timeline).unwrap()
}

/// The laws of a timeline, after each commit of a journal: fed as it comes it is what the whole gives, and its times add up.
fn follows(graph: &Arc<Graph>, records: &[Record]) -> Timeline {
    let (mut state, mut live) = (State::new(Arc::clone(graph)), Timeline::new(graph));
    let mut whole = Timeline::new(graph);
    for commit in commits(records) {
        for record in commit {
            state.apply_record(record);
            whole.events(&state, std::slice::from_ref(record));
        }
        live.events(&state, commit);
        assert_eq!(text(&live), text(&whole), "after event {}", state.events());
        consistent(&live, &state);
    }
    live
}

fn consistent(timeline: &Timeline, state: &State) {
    let last = timeline.last().unwrap();
    let mut pending = 0;
    for node in timeline.nodes() {
        let extent = timeline.extent(node, last);
        let sums = Durations::of(&timeline.intervals(node, last));
        let span = extent.map_or(0, |(from, to)| to - from);
        assert_eq!(sums.total(), span, "{}", node.node);
        assert_eq!(sums.queued() + sums.waited() + sums.worked(), span, "{}", node.node);
        for (before, after) in node.visits.iter().zip(node.visits.iter().skip(1)) {
            assert!(before.number < after.number, "{} {} {}", node.node, before.number, after.number);
        }
        for visit in &node.visits {
            let began = visit.started.map_or(0, |started| started.n);
            assert!(visit.released_by <= began.max(last.n));
            assert!(visit.ended.is_none_or(|ended| ended.n >= began), "{} {visit:?}", node.node);
            for (_, attempt) in visit.attempts() {
                assert!(attempt.ended.is_none_or(|ended| ended.n >= attempt.requested.n), "{attempt:?}");
            }
        }
        let open = node.current().filter(|visit| visit.ended.is_none() && timeline.ended().is_none());
        pending += open.iter().flat_map(|visit| visit.attempts()).filter(|(_, a)| a.is_open()).count();
        let status = timeline.status(Some(node), last.at);
        if timeline.ended() == Some(End::Completed) {
            assert!(
                status != NodeStatus::Running && status != NodeStatus::Stopped,
                "{} {status:?}",
                node.node
            );
        }
    }
    if timeline.ended().is_none() {
        assert_eq!(pending, state.pending().len(), "calls under way, after event {}", state.events());
    }
}

/// Each recorded run of an earlier version, forks with what they share.
#[test]
fn recorded_runs_are_followed_as_they_are_read() {
    let mut runs = 0;
    for entry in std::fs::read_dir(selvedge_sim::golden::runs::dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "jsonl") {
            let (_, run) = selvedge_sim::golden::runs::read(&path).unwrap();
            follows(&run.graph, &run.records);
            runs += 1;
        }
    }
    assert!(runs > 5, "{runs} recorded runs");
}

/// A run driven by hand, an event every ten milliseconds.
struct World {
    graph: Arc<Graph>,
    state: State,
    records: Vec<Record>,
}

impl World {
    fn begin(graph: Value) -> Self {
        let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
        let state = State::new(Arc::clone(&graph));
        let mut world = Self { graph, state, records: Vec::new() };
        world.input(Input::Start(Box::default()));
        world
    }

    fn input(&mut self, input: Input) {
        let at = 10 * self.records.len() as i64 + 10;
        self.state.tick(at);
        let mut next = self.state.accept(input);
        while let Some(event) = next {
            let record = Record { at, event };
            self.state.apply_record(&record);
            self.records.push(record);
            next = self.state.step();
        }
    }

    /// Answers everything, in the order of the ids or against it.
    fn run(&mut self, last: bool, answer: impl Fn(&EffectId, &Request) -> Outcome) {
        loop {
            let mut pending = self.state.pending().keys();
            let Some(effect) = (if last { pending.next_back() } else { pending.next() }).cloned() else {
                return;
            };
            let outcome = answer(&effect, &self.state.request(&effect).unwrap());
            self.input(Input::Complete(effect, outcome, 0, None, None));
        }
    }

    fn followed(&self) -> Timeline {
        follows(&self.graph, &self.records)
    }
}

fn says(_: &EffectId, _: &Request) -> Outcome {
    let tokens = selvedge_engine::Tokens { input: 3, output: 2, ..Default::default() };
    Outcome::Reply(Arc::new(ModelReply { text: "yes".into(), tokens, ..ModelReply::default() }))
}

fn graph(nodes: Value, graphs: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs, "tools": {}})
}

fn inner(nodes: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "tools": {}})
}

fn asks(id: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "go"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}})
}

fn opens(id: &str, act: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

fn to(node: u32) -> Value {
    json!([{"when": "done", "to": node}])
}

fn paths(strategy: Value) -> Value {
    json!({"fork": {"of": {"listed": [["pro", 0], ["con", 1]]}, "join": {"strategy": strategy}}})
}

/// E-34, E-35: nodes of paths are known by their frames, and what they do is also the fork's.
#[test]
fn e35_paths_of_a_fork_have_places_of_their_own() {
    let argue = inner(json!([asks("argue", json!([]))]));
    let fork = opens("debate", paths(json!("all_completed")), to(2));
    let nodes = json!([asks("before", to(1)), fork, asks("after", json!([]))]);
    for last in [false, true] {
        let mut world = World::begin(graph(nodes.clone(), json!([argue, argue])));
        world.run(last, says);
        let timeline = world.followed();
        assert_eq!(timeline.ended(), Some(End::Completed), "{:?}", world.state.view().fault());
        let at = |path: &str| timeline.node(&path.parse().unwrap(), "argue").unwrap();
        let (pro, con) = (at("debate~1[pro]"), at("debate~1[con]"));
        assert_eq!((pro.visits.len(), con.visits.len()), (1, 1));
        assert_eq!(pro.current().unwrap().tokens.input, 3);
        let debate = timeline.root("debate").unwrap();
        assert_eq!(debate.current().unwrap().inner.len(), 2);
        let until = timeline.last().unwrap();
        let sums = Durations::of(&timeline.intervals(debate, until));
        let own = Durations::of(&timeline.intervals(pro, until));
        assert!(sums.worked() >= own.worked() && own.worked() > 0, "{sums:?} {own:?}");
        // The first of a path begins because the fork opened it, what follows because the fork ended.
        let opened = world.records.iter().rposition(|r| matches!(r.event, Event::Entered { .. })).unwrap();
        assert_eq!(pro.current().unwrap().released_by, opened as u64 + 1);
        let after = timeline.root("after").unwrap().current().unwrap();
        assert_eq!(after.released_by, debate.current().unwrap().ended.unwrap().n);
    }
}

/// W-11: what a join that was decided early has cut off is told as such.
#[test]
fn e38_a_path_that_was_cut_off_is_cancelled() {
    let argue = inner(json!([asks("argue", json!([]))]));
    let fork = opens("debate", paths(json!("any_completed")), json!([]));
    let mut world = World::begin(graph(json!([fork]), json!([argue, argue])));
    world.run(false, says);
    let timeline = world.followed();
    assert_eq!(timeline.ended(), Some(End::Completed), "{:?}", world.state.view().fault());
    let status = |path: &str| {
        timeline.status(timeline.node(&path.parse().unwrap(), "argue"), timeline.last().unwrap().at)
    };
    let mut both = [status("debate~1[pro]"), status("debate~1[con]")];
    both.sort();
    assert_eq!(both, [NodeStatus::Done, NodeStatus::Cancelled]);
}

/// W-02, E-38: how paths stand, also for who begins to look in the middle.
#[test]
fn paths_are_counted_by_how_they_stand() {
    let argue = inner(json!([asks("argue", json!([]))]));
    let fork = opens("debate", paths(json!("any_completed")), json!([]));
    let mut world = World::begin(graph(json!([fork]), json!([argue, argue])));
    let counts = |timeline: &Timeline| {
        let inner = &timeline.root("debate").unwrap().current().unwrap().frames;
        assert_eq!((inner.paths, inner.not_begun()), (Some(2), 0));
        (inner.open.len(), inner.completed.len(), inner.failed.len(), inner.cancelled.len())
    };
    assert_eq!(counts(&world.followed()), (2, 0, 0, 0));
    assert_eq!(counts(&Timeline::so_far(&world.state, 0)), (2, 0, 0, 0));
    world.run(false, says);
    assert_eq!(counts(&world.followed()), (0, 1, 0, 1));
    assert_eq!(counts(&Timeline::so_far(&world.state, 0)), (0, 1, 0, 1));
}

/// E-36: after a resume, the fork and the path that failed go on, and what was cut off does.
#[test]
fn e36_what_failed_goes_on_with_all_around_it() {
    let argue = inner(json!([asks("argue", json!([]))]));
    let fork = opens("debate", paths(json!("all_completed")), json!([]));
    let mut world = World::begin(graph(json!([fork]), json!([argue, argue])));
    world.run(false, |_, _| Failure::permanent(FaultKind::ProviderError, "no").into());
    let failed = world.followed();
    let inner = &failed.root("debate").unwrap().current().unwrap().frames;
    assert_eq!((inner.open.len(), inner.failed.len(), inner.cancelled.len()), (0, 1, 1));
    world.input(Input::Resume(Vec::new()));
    let on = world.followed();
    let debate = on.root("debate").unwrap();
    assert_eq!(debate.current().unwrap().frames.open.len(), 2);
    assert_eq!(on.status(Some(debate), on.last().unwrap().at), NodeStatus::Running);
}

/// E-35: iterations and subgraphs.
#[test]
fn e35_iterations_and_subgraphs_have_places_of_their_own() {
    let round = inner(json!([opens("deep", json!({"sub": {"graph": 1}}), json!([]))]));
    let deep = inner(json!([asks("ask", json!([]))]));
    let each = opens("each", json!({"loop": {"graph": 0, "times": {"count": 3}, "limit": 5}}), json!([]));
    let mut world = World::begin(graph(json!([each]), json!([round, deep])));
    world.run(false, says);
    let timeline = world.followed();
    assert_eq!(timeline.ended(), Some(End::Completed), "{:?}", world.state.view().fault());
    for n in 0..3 {
        let node = timeline.node(&format!("each~1#{n}/deep~1").parse().unwrap(), "ask").unwrap();
        assert_eq!(node.current().unwrap().requested, 1);
    }
    let until = timeline.last().unwrap();
    let each = timeline.root("each").unwrap();
    assert!(Durations::of(&timeline.intervals(each, until)).worked() > 0, "the work of what is in it");
}

/// E-14, E-36: attempts of a call, and a node that begins anew when its run is resumed.
#[test]
fn e36_a_resumed_run_has_one_more_visit() {
    let mut world = World::begin(graph(json!([asks("a", to(1)), asks("b", json!([]))]), json!([])));
    let fails = |effect: &EffectId, request: &Request| match effect.0.starts_with('b') {
        true => Failure::permanent(FaultKind::ProviderError, "no").into(),
        false => says(effect, request),
    };
    world.run(false, fails);
    let failed = world.followed();
    let last = failed.last().unwrap();
    assert_eq!(failed.ended(), Some(End::Failed));
    assert_eq!(failed.status(failed.root("b"), last.at), NodeStatus::Failed);
    world.input(Input::Resume(Vec::new()));
    world.run(false, says);
    let timeline = world.followed();
    let b = timeline.root("b").unwrap();
    assert_eq!((timeline.root("a").unwrap().visits.len(), b.visits.len()), (1, 2));
    assert!(b.visits[0].fault.is_some() && b.visits[1].fault.is_none());
    assert_eq!(b.visits[1].number, 2);
}
