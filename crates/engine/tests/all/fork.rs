//! Forks and reuse (E-19, E-29), event by event, on graphs made by hand.

use selvedge_engine::graph::{Act, Call, Edge, Flow, Guard, Leaf, Node, OnError, Retry, ThreadDef, Told};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{
    Budget, Effects, Event, Failure, FaultKind, Fork, Graph, Input, LeafIx, Limits, ModelReply, Outcome,
    Place, Record, Recording, RunStatus, State, ThreadIx, ThreadView, ToolDef, View,
};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use support::{Run, graph, model, tool};

#[cfg(test)]
mod support {
    use super::*;

    fn node(id: &str, leaves: Vec<(&str, Act)>) -> Node {
        let last = leaves.len() - 1;
        let leaf = |(at, (name, act)): (usize, (&str, Act))| {
            let to = (at < last).then(|| LeafIx(u32::try_from(at + 1).unwrap()));
            Leaf { name: name.into(), act, next: vec![Edge { when: Guard::Always, to }] }
        };
        Node {
            id: id.into(),
            name: format!("name of {id}").into(),
            body: Flow {
                thread: Some(ThreadIx(0)),
                leaves: leaves.into_iter().enumerate().map(leaf).collect(),
                max_rounds: 25,
                ..Flow::default()
            },
            ..Node::default()
        }
    }

    /// A node that says something and asks a model.
    pub(super) fn model(id: &str, says: &str) -> Node {
        let say = Act::AppendText(Template::parse(says).unwrap());
        node(id, vec![("say", say), ("model", Act::Infer(Box::default()))])
    }

    /// A node that calls a tool named after its effects.
    pub(super) fn tool(id: &str, name: &str, args: serde_json::Value) -> Node {
        let args = JsonTemplate::parse(&args).unwrap();
        let call =
            Call { tool: name.into(), args, retry: Retry::default(), timeout_s: None, told: Told::Nothing };
        node(id, vec![("call", Act::Call(call))])
    }

    pub(super) fn graph(nodes: Vec<Node>) -> Arc<Graph> {
        let def = |(name, effects): (&str, Effects)| {
            let def = ToolDef {
                name: name.into(),
                description: "".into(),
                input_schema: json!({}),
                output_params: None,
                effects: Some(effects),
                version: "1".into(),
                source: "test".into(),
                timeout_s: None,
                approval: false,
            };
            (Arc::from(name), Arc::new(def))
        };
        let kinds = [
            ("pure", Effects::Pure),
            ("read", Effects::Read),
            ("write", Effects::Write),
            ("selvedge__look", Effects::Read),
            ("selvedge__change", Effects::Idempotent),
        ];
        Arc::new(Graph {
            name: None,
            threads: [ThreadDef { name: "main".into(), first: Some(Template::parse("task").unwrap()) }]
                .into_iter()
                .collect(),
            nodes: nodes.into_iter().collect(),
            tools: kinds.into_iter().map(def).collect(),
            ..Graph::default()
        })
    }

    /// A run whose every effect is answered by `answer`, with its journal.
    pub(super) struct Run {
        pub(super) graph: Arc<Graph>,
        pub(super) state: State,
        pub(super) events: Vec<Event>,
    }

    impl Run {
        pub(super) fn new(graph: &Arc<Graph>) -> Self {
            let state = State::new(Arc::clone(graph));
            let mut run = Self { graph: Arc::clone(graph), state, events: Vec::new() };
            run.give(Input::Start(Box::default()));
            run
        }

        pub(super) fn give(&mut self, input: Input) {
            let mut next = self.state.accept(input);
            assert!(next.is_some(), "an input that changes something");
            while let Some(event) = next {
                self.state.apply(&event);
                self.events.push(event);
                next = self.state.step();
            }
        }

        /// Answers everything until the run ends or waits.
        pub(super) fn answer(&mut self, mut answer: impl FnMut(&str) -> Outcome) {
            while let Some(effect) = self.state.pending().keys().next().cloned() {
                let outcome = answer(&effect.0);
                self.give(Input::Complete(effect, outcome, 0, None, None));
            }
        }

        pub(super) fn past(&self) -> Arc<Recording> {
            let mut state = State::recording(Arc::clone(&self.graph));
            for event in &self.events {
                state.apply_record(&Record { at: 0, event: event.clone() });
            }
            Arc::new(state.past())
        }

        /// A fork that shares `shared` events.
        pub(super) fn fork(&self, shared: usize, fork: Fork) -> Run {
            let mut state = State::new(Arc::clone(&self.graph));
            let events: Vec<Event> = self.events.iter().take(shared).cloned().collect();
            events.iter().for_each(|event| state.apply(event));
            let mut run = Run { graph: Arc::clone(&self.graph), state, events };
            let (source, events) = ("source".into(), self.events.len() as u64);
            run.give(Input::Fork(Box::new(Fork { source, events, past: Some(self.past()), ..fork })));
            run
        }

        pub(super) fn place(&self, find: impl Fn(&Event) -> bool) -> usize {
            self.events.iter().position(find).unwrap()
        }

        /// Ids of the effects that were sent in the events from `from` on.
        pub(super) fn sent(&self, from: usize) -> Vec<String> {
            let sent = self.events.iter().skip(from).filter_map(|event| match event {
                Event::Requested { effect, .. } => Some(effect.to_string()),
                _ => None,
            });
            sent.collect()
        }

        pub(super) fn output(&self, node: &str) -> serde_json::Value {
            self.state.view().result(node).unwrap().output.clone()
        }
    }

    pub(super) fn says(text: &str) -> Outcome {
        Outcome::Reply(Arc::new(ModelReply { text: text.into(), ..ModelReply::default() }))
    }

    pub(super) fn gives(value: serde_json::Value) -> Outcome {
        Outcome::Output(Arc::new(value))
    }

    pub(super) fn fails() -> Outcome {
        Outcome::from(Failure::permanent(FaultKind::ExecutionFailure, "broken"))
    }
}

use support::{fails, gives, says};

/// E-19: a fork at any event, and a fork of that, comes to the same end and sends nothing.
#[test]
fn without_edits_nothing_is_sent() {
    let graph =
        graph(vec![tool("r", "read", json!({})), model("m", "{{r.output}}"), tool("w", "write", json!({}))]);
    let mut run = Run::new(&graph);
    run.answer(|effect| if effect.starts_with('m') { says("yes") } else { gives(json!({"k": 1})) });
    let end = run.state.view();
    for shared in 1..=run.events.len() {
        let fork = run.fork(shared, Fork::default());
        assert_eq!(fork.sent(shared), Vec::<String>::new(), "forked at {shared}");
        let view = fork.state.view();
        assert_eq!((view.status(), view.output()), (end.status(), end.output()));
        assert!(view.results().eq(end.results()));
        assert_eq!(json!(threads(view)), json!(threads(end)), "messages and call ids are the same");
        assert_eq!(
            fork.state.usage().model_calls + fork.state.usage().tool_calls,
            0,
            "it used nothing itself"
        );
        let again = fork.fork(fork.events.len().min(shared + 2), Fork::default());
        assert!(again.state.view().results().eq(end.results()));
    }
}

/// All threads, by name.
fn threads(view: View<'_>) -> Vec<(Cow<'_, str>, ThreadView<'_>)> {
    view.threads().collect()
}

/// E-19: the fork holds references, whatever was said.
#[test]
fn the_event_of_a_fork_holds_references_only() {
    let mut run = Run::new(&graph(vec![model("m", "go")]));
    run.answer(|_| says(&"long ".repeat(10_000)));
    let fork = run.fork(1, Fork::default());
    let json = serde_json::to_string(&fork.events[1]).unwrap();
    assert_eq!(json, format!(r#"{{"kind":"forked","source":"source","events":{}}}"#, run.events.len()));
}

/// C-13: an edited reply, and what depends on it.
#[test]
fn an_edited_reply_is_what_was_said() {
    let mut run = Run::new(&graph(vec![model("a", "A"), tool("p", "pure", json!({"x": "{{a.output}}"}))]));
    run.answer(|effect| if effect.starts_with('a') { says("old") } else { gives(json!(1)) });
    let shared = run.place(|event| matches!(event, Event::Completed { .. }));
    let effect = run.sent(0).remove(0);
    let texts = [(selvedge_engine::EffectId(effect.as_str().into()), Arc::from("new"))].into();
    let mut fork = run.fork(shared, Fork { texts, ..Fork::default() });
    assert_eq!(fork.sent(shared), ["p~2/call/1/1"], "only what depends on it");
    fork.answer(|_| gives(json!(2)));
    assert_eq!((fork.output("a"), fork.output("p")), (json!("new"), json!(2)));
    // Its own forks keep the edit.
    let again = fork.fork(2, Fork::default());
    assert_eq!((again.output("a"), again.sent(2).len()), (json!("new"), 0));
}

/// C-13: an edited output is a text, and JSON in it counts (E-25); a failed call may be edited too.
#[test]
fn an_edited_output_is_a_text() {
    let mut first = tool("t", "pure", json!({}));
    first.on_error = OnError::Continue;
    let mut run = Run::new(&graph(vec![first, model("m", "go")]));
    run.answer(|effect| if effect.starts_with('t') { fails() } else { says("fine") });
    let shared = run.place(|event| matches!(event, Event::Completed { .. }));
    let effect = selvedge_engine::EffectId(run.sent(0).remove(0).as_str().into());
    let texts = [(effect, Arc::from("{\"k\": 7}"))].into();
    let fork = run.fork(shared, Fork { texts, ..Fork::default() });
    assert_eq!(fork.output("t"), json!({"k": 7}));
}

/// E-44, E-29: where the source's journal is damaged, any write may have been made behind it: each asks first. What is known
/// is reused, and what does no harm runs.
#[test]
fn writes_behind_damage_ask_first() {
    let nodes = vec![
        tool("a", "write", json!({"x": 1})),
        tool("r", "read", json!({})),
        tool("b", "write", json!({"x": 2})),
    ];
    let mut run = Run::new(&graph(nodes));
    run.answer(|_| gives(json!("done")));
    // Of the source's events all behind the first write's outcome are lost.
    let known = run.place(|event| matches!(event, Event::Completed { .. })) + 1;
    let sound = Run {
        graph: Arc::clone(&run.graph),
        state: State::new(Arc::clone(&run.graph)),
        events: run.events[..known].to_vec(),
    };
    let asks = |run: &Run| run.state.asks().values().map(|ask| ask.prompt.to_string()).collect::<Vec<_>>();
    let mut fork = sound.fork(1, Fork { damaged: true, ..Fork::default() });
    fork.answer(|_| gives(json!("again")));
    assert_eq!(fork.state.status(), RunStatus::Waiting);
    let asked = asks(&fork);
    assert!(
        asked.len() == 1 && asked[0].contains("behind the damage") && asked[0].contains("{\"x\":2}"),
        "{asked:?}"
    );
    assert!(fork.sent(1).iter().all(|effect| effect.starts_with('r')), "{:?}", fork.sent(1));
    assert_eq!(fork.output("a"), json!("done"));
    // So it is in forks of the fork, also in those that begin before it was one.
    let mut again = fork.fork(1, Fork::default());
    again.answer(|_| gives(json!("again")));
    assert_eq!((again.state.status(), asks(&again).len()), (RunStatus::Waiting, 1));
    let mut sure = sound.fork(1, Fork::default());
    sure.answer(|_| gives(json!("again")));
    assert_eq!(sure.state.status(), RunStatus::Completed);
}

/// E-29: other models' answers are not taken; usage and caps count from the fork on (E-20).
#[test]
fn another_model_is_asked() {
    let mut run = Run::new(&graph(vec![model("a", "A"), model("b", "B")]));
    run.answer(|_| says("one"));
    let models = [(Arc::from("basic"), Arc::from("other"))].into();
    let budget = Some(Budget { calls: Some(2), ..Budget::default() });
    let mut fork = run.fork(1, Fork { models, budget, ..Fork::default() });
    fork.answer(|_| says("two"));
    assert_eq!((fork.output("b"), fork.state.usage().model_calls), (json!("two"), 2));
    let budget = Some(Budget { calls: Some(0), ..Budget::default() });
    let back = fork.fork(1, Fork { budget, ..Fork::default() });
    assert_eq!(back.state.status(), RunStatus::Completed, "what is taken is not held against the cap");
    assert_eq!(back.output("b"), json!("one"), "the first model's answers are still there");
}

/// E-12: the limits of a fork are its own; those of a run change only where they are others, and only while it may go on.
#[test]
fn limits_may_be_raised() {
    let mut run = Run::new(&graph(vec![model("a", "A"), model("b", "B")]));
    run.answer(|_| says("one"));
    let limits = Limits { events: 3, ..Limits::default() };
    let fork = run.fork(2, Fork { limits: Some(limits), ..Fork::default() });
    assert_eq!((fork.state.status(), fork.state.start().limits), (RunStatus::Failed, limits));
    assert_eq!(fork.state.accept(Input::Limits(limits)), None);
    let raised = Limits { events: 99, ..limits };
    let event = fork.state.accept(Input::Limits(raised));
    assert_eq!(event, Some(Event::LimitsSet { limits: Box::new(raised) }));
    assert_eq!(run.state.accept(Input::Limits(limits)), None, "it has completed");
    let back = fork.fork(3, Fork { limits: Some(raised), ..Fork::default() });
    assert_eq!((back.state.status(), back.output("b")), (RunStatus::Completed, json!("one")));
}

/// E-29: an outcome that was passed over because something before it had run afresh is never taken later.
#[test]
fn what_was_passed_over_stays_passed_over() {
    let nodes = |path: &str| {
        let mut last = model("m", "{{w.output}}");
        last.on_error = OnError::Fail;
        graph(vec![tool("r", "read", json!({"path": path})), tool("w", "write", json!({})), last])
    };
    let mut run = Run::new(&nodes("a"));
    run.answer(|effect| if effect.starts_with('m') { says("end") } else { gives(json!("first")) });
    let new = nodes("b");
    let edited = |run: &Run| {
        let fork = Fork { graph: Some("hash".into()), compiled: Some(Arc::clone(&new)), ..Fork::default() };
        run.fork(1, fork)
    };
    let mut fork = edited(&run);
    fork.answer(|_| gives(json!("second")));
    assert_eq!(fork.state.status(), RunStatus::Waiting, "the write builds on what was read anew");
    fork.give(Input::Expire(1));
    assert_eq!(fork.state.status(), RunStatus::Failed);
    // Nothing runs afresh in these, but the write is still the one from before.
    fork.give(Input::Resume(Vec::new()));
    assert_eq!(fork.state.status(), RunStatus::Waiting, "resumed");
    let again = edited(&fork);
    assert_eq!((again.state.status(), again.sent(1).len()), (RunStatus::Waiting, 0), "forked");
    // No leaves what was written as it is, and its outcome with it (C-13).
    let ask = fork.state.asks().keys().next().unwrap().clone();
    fork.give(Input::Answer(ask, json!("no")));
    assert_eq!((fork.output("w"), fork.state.status()), (json!("first"), RunStatus::Running));
}

/// E-05, E-29: a write that was in flight when the source was forked may have happened.
#[test]
fn a_write_in_flight_in_the_source_asks() {
    let run = Run::new(&graph(vec![tool("w", "write", json!({}))]));
    assert_eq!(run.state.pending().len(), 1);
    let fork = run.fork(run.events.len(), Fork::default());
    assert_eq!(fork.state.status(), RunStatus::Waiting);
    let shared = run.place(|event| matches!(event, Event::NodeStarted { .. }));
    assert_eq!(
        run.fork(shared, Fork::default()).state.status(),
        RunStatus::Waiting,
        "also behind the prefix"
    );
}

/// E-05, E-22, P-21: a write that was in flight was one, whatever its tool says of itself by the time of a resume.
#[test]
fn a_write_in_flight_whose_tool_became_a_read_asks() {
    for effects in [Effects::Pure, Effects::Read, Effects::Idempotent, Effects::Write] {
        let nodes = graph(vec![tool("w", "write", json!({})), tool("p", "pure", json!({}))]);
        let mut run = Run::new(&nodes);
        assert_eq!(run.sent(0), ["w/call/1/1"]);
        let changed =
            ToolDef { version: "2".into(), effects: Some(effects), ..(*nodes.tools["write"]).clone() };
        run.give(Input::Resume(vec![changed.clone()]));
        assert_eq!(run.state.status(), RunStatus::Waiting, "{effects:?}");
        assert_eq!(run.sent(0).len(), 1, "{effects:?}: nothing is sent before somebody says so");
        let ask = run.state.asks().keys().next().unwrap().clone();
        run.give(Input::Answer(ask, json!("yes")));
        assert_eq!(run.state.pending().len(), 1, "{effects:?}");
        run.answer(|_| gives(json!("done")));
        assert_eq!(run.state.status(), RunStatus::Completed, "{effects:?}");
    }
}

/// C-02: a tool that was not called is none that ran.
#[test]
fn calls_that_were_not_made_are_not_counted() {
    let failure = Failure::permanent(FaultKind::DefinitionChanged, "it was not called");
    for (failure, calls) in [(failure.clone(), 1), (failure.unsent(), 0)] {
        let mut run = Run::new(&graph(vec![tool("r", "read", json!({}))]));
        run.answer(|_| Outcome::from(failure.clone()));
        assert_eq!(run.state.status(), RunStatus::Failed);
        assert_eq!(run.state.usage().tool_calls, calls);
    }
}

/// E-29: the write of a node that the new document lacks, or has elsewhere, is not done again without asking.
#[test]
fn a_write_that_moved_to_another_node_asks() {
    let mut run = Run::new(&graph(vec![tool("w", "write", json!({"k": 1})), model("m", "go")]));
    run.answer(|effect| if effect.starts_with('m') { says("end") } else { gives(json!("done")) });
    let mut moved = tool("v", "write", json!({"k": 1}));
    moved.name = "something else".into();
    let new = graph(vec![model("m", "other"), moved]);
    let fork = Fork { graph: Some("hash".into()), compiled: Some(new), ..Fork::default() };
    let mut fork = run.fork(run.events.len(), fork);
    fork.answer(|_| says("new"));
    assert_eq!(fork.state.status(), RunStatus::Waiting);
}

/// E-29: nodes of another document stand for old ones by definition where ids have moved.
#[test]
fn a_node_put_in_front_moves_nobody_s_answers() {
    let mut run =
        Run::new(&graph(vec![tool("n1", "pure", json!({"k": 1})), tool("n2", "pure", json!({"k": 2}))]));
    run.answer(|effect| gives(json!(effect)));
    let named = |node: Node, name: &str| Node { name: format!("name of {name}").into(), ..node };
    let new = graph(vec![
        named(tool("n1", "pure", json!({"k": 0})), "n0"),
        named(tool("n2", "pure", json!({"k": 1})), "n1"),
        named(tool("n3", "pure", json!({"k": 2})), "n2"),
    ]);
    let fork = Fork { graph: Some("hash".into()), compiled: Some(new), ..Fork::default() };
    let shared = run.events.len();
    let mut fork = run.fork(shared, fork);
    assert_eq!(fork.sent(shared), ["n1~2/call/1/1"]);
    fork.answer(|_| gives(json!(0)));
    assert_eq!((fork.output("n2"), fork.output("n3")), (json!("n1/call/1/1"), json!("n2/call/1/1")));
}

/// D-11: an edited text stands exactly, whatever it looks like.
#[test]
fn an_edited_text_is_no_template() {
    let graph = graph(vec![model("m", "go")]);
    let place = Place::Leaf("m".into(), "say".into());
    for text in
        ["", "plain", "{{x}}", "{{{ x }}}", "\\{{x}}", "\\\\${y}", "${", "{{", "a\\", "{${x}", "é{{é}}\\"]
    {
        let edited = graph.with_text(&place, text).unwrap();
        let json = serde_json::to_string(&edited).unwrap();
        let read: Graph = serde_json::from_str(&json).unwrap();
        assert_eq!(read, edited);
        let mut run = Run::new(&Arc::new(read));
        run.answer(|_| says("fine"));
        let view = run.state.view();
        assert_eq!(&*view.threads().next().unwrap().1.iter().nth(1).unwrap().content, text);
    }
    assert!(graph.with_text(&Place::Thread("other".into()), "x").is_none());
    assert!(graph.with_text(&Place::Leaf("m".into(), "model".into()), "x").is_none());
}

/// E-40: what an operation looked up stands for a fork, too; what it changed is the source's, and a fork asks for its own.
#[test]
fn e40_a_fork_takes_nothing_that_an_operation_changed() {
    let graph = graph(vec![
        tool("a", "selvedge__look", json!({})),
        tool("b", "selvedge__change", json!({})),
        tool("c", "pure", json!({"x": "{{b.output.k}}"})),
    ]);
    let mut run = Run::new(&graph);
    run.answer(|_| gives(json!({"k": 1})));
    let mut fork = run.fork(1, Fork::default());
    assert_eq!(fork.sent(1), ["b~2/call/1/1"]);
    fork.answer(|_| gives(json!({"k": 2})));
    assert_eq!((fork.output("a"), fork.output("b")), (json!({"k": 1}), json!({"k": 2})));
    // A resume of the run itself takes it: it is its own.
    let mut run = Run::new(&graph);
    run.answer(|effect| if effect.starts_with('c') { fails() } else { gives(json!({"k": 1})) });
    let before = run.events.len();
    run.give(Input::Resume(Vec::new()));
    assert_eq!(run.sent(before), ["c~2/call/1/1"]);
}
