//! Single rules of the machine, on graphs made by hand.

use selvedge_engine::graph::{Act, Edge, Flow, Guard, Infer, Leaf, Node, Retry, ThreadDef};
use selvedge_engine::template::Template;
use selvedge_engine::{
    EffectId, Event, Graph, Input, LeafIx, ModelReply, Outcome, ReplySchema, Request, Slice, State, ThreadIx,
    ToolCall, ToolDef,
};
use serde_json::{Value, json};
use std::sync::Arc;

#[cfg(test)]
mod support {
    use super::*;

    pub(super) fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    pub(super) fn leaf(name: &str, act: Act, next: Vec<(Guard, u32)>) -> Leaf {
        let next = next.into_iter().map(|(when, to)| Edge { when, to: Some(LeafIx(to)) }).collect();
        Leaf { name: name.into(), act, next }
    }

    /// A node that asks a model once and answers its calls.
    pub(super) fn asks(id: &str, thread: u32, opens: bool, tools: &[&str], schema: Option<Value>) -> Node {
        let schema = schema.map(|schema| ReplySchema { name: id.into(), schema });
        let infer = Act::Infer(Box::new(Infer { offer_tools: true, schema, ..Infer::default() }));
        let answer = Act::Answer { run: true, retry: Retry::default(), timeout_s: None };
        let open = Act::Open { from: ThreadIx(0), slice: Slice::ALL };
        let (entry, at) =
            if opens { (vec![leaf("open", open, vec![(Guard::Always, 1)])], 1) } else { (Vec::new(), 0) };
        let rest = [
            leaf("say", Act::AppendText(template("go")), vec![(Guard::Always, at + 1)]),
            leaf("infer", infer, vec![(Guard::Calls, at + 2)]),
            leaf("answer", answer, Vec::new()),
        ];
        Node {
            id: id.into(),
            name: id.into(),
            body: Flow {
                thread: Some(ThreadIx(thread)),
                leaves: entry.into_iter().chain(rest).collect(),
                tools: tools.iter().map(|tool| Arc::from(*tool)).collect(),
                max_rounds: 25,
                ..Flow::default()
            },
            ..Node::default()
        }
    }

    /// A graph with `main` and as many other threads.
    pub(super) fn graph(threads: &[&str], nodes: Vec<Node>) -> Arc<Graph> {
        let main = ThreadDef { name: "main".into(), first: Some(template("task")) };
        let others = threads.iter().map(|name| ThreadDef { name: (*name).into(), first: None });
        let strict = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let tool = ToolDef {
            name: "look".into(),
            description: "looks".into(),
            input_schema: strict,
            output_params: None,
            effects: Some(selvedge_engine::Effects::Pure),
            version: "1".into(),
            source: "test".into(),
            timeout_s: None,
            approval: false,
        };
        Arc::new(Graph {
            name: None,
            threads: std::iter::once(main).chain(others).collect(),
            nodes: nodes.into_iter().collect(),
            tools: [(Arc::from("look"), Arc::new(tool))].into(),
            ..Graph::default()
        })
    }

    /// A run that has come to rest after its start.
    pub(super) fn started(graph: &Arc<Graph>) -> State {
        let mut state = State::new(Arc::clone(graph));
        give(&mut state, Input::Start(Box::default()));
        state
    }

    /// Gives an input and derives all that follows; returns what followed.
    pub(super) fn give(state: &mut State, input: Input) -> Vec<Event> {
        let first = state.accept(input).expect("an input that changes something");
        state.apply(&first);
        let mut events = vec![first];
        while let Some(event) = state.step() {
            state.apply(&event);
            events.push(event);
        }
        events
    }

    pub(super) fn pending(state: &State, node: &str) -> EffectId {
        let found = state.pending().keys().find(|id| match state.request(id) {
            Some(Request::Model(request)) => &*request.node == node,
            Some(Request::Tool(request) | Request::Operation(request)) => &*request.node == node,
            None => false,
        });
        found.unwrap_or_else(|| panic!("{node} has no pending effect: {:?}", state.pending())).clone()
    }

    pub(super) fn reply(text: &str, calls: &[(&str, Value)]) -> Outcome {
        let calls = calls.iter().map(|(id, arguments)| ToolCall {
            id: (*id).into(),
            name: "look".into(),
            arguments: arguments.clone(),
        });
        Outcome::Reply(Arc::new(ModelReply {
            text: text.into(),
            calls: calls.collect(),
            ..ModelReply::default()
        }))
    }

    pub(super) fn complete(state: &mut State, node: &str, outcome: Outcome) -> Vec<Event> {
        let effect = pending(state, node);
        give(state, Input::Complete(effect, outcome, 0, None, None))
    }

    /// The call ids of the assistant messages of a thread.
    pub(super) fn ids(state: &State, thread: &str) -> Vec<String> {
        let messages = state.view().thread(thread).unwrap();
        messages.iter().flat_map(|m| &m.tool_calls).map(|call| call.id.to_string()).collect()
    }
}

use support::{asks, complete, give, graph, ids, leaf, pending, reply, started, template};

/// E-06: an id that looks like another one's escaped form names its own node.
#[test]
fn effect_ids_of_escaped_node_ids_are_not_confused() {
    let nodes = vec![asks("a/b", 1, true, &[], None), asks("a%2Fb", 2, true, &[], None)];
    let state = started(&graph(&["x", "y"], nodes));
    assert_eq!(state.pending().len(), 2);
    assert_ne!(pending(&state, "a/b"), pending(&state, "a%2Fb"));
}

/// E-07, E-10: which node keeps the model's call id does not depend on who finishes first.
#[test]
fn call_ids_do_not_depend_on_the_order_of_completion() {
    let nodes = || vec![asks("n1", 1, true, &["look"], None), asks("n2", 2, true, &["look"], None)];
    for order in [["n1", "n2"], ["n2", "n1"]] {
        let mut state = started(&graph(&["x", "y"], nodes()));
        for node in order {
            complete(&mut state, node, reply("", &[("c", json!({}))]));
        }
        assert_eq!(
            (ids(&state, "x"), ids(&state, "y")),
            (vec!["c".to_owned()], vec!["c".to_owned()]),
            "{order:?}"
        );
    }
}

/// E-10: an id that the same reply or thread has already is replaced, and a missing one too.
#[test]
fn repeated_and_missing_call_ids_are_replaced() {
    let mut state = started(&graph(&["x"], vec![asks("n1", 1, true, &["look"], None)]));
    complete(&mut state, "n1", reply("", &[("c", json!({})), ("c", json!({})), ("", json!({}))]));
    let ids = ids(&state, "x");
    assert_eq!(ids.first().map(String::as_str), Some("c"));
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{ids:?}");
    assert!(ids.iter().all(|id| !id.is_empty()));
}

/// P-14: failed calls count, also those whose arguments the schema refuses.
#[test]
fn a_call_with_unfit_arguments_counts_against_its_limit() {
    let mut node = asks("n1", 1, true, &["look"], None);
    node.body.call_limits.insert("look".into(), 1);
    let mut state = started(&graph(&["x"], vec![node]));
    let events = complete(&mut state, "n1", reply("", &[("c", json!({"a": "one"})), ("d", json!({"a": 1}))]));
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Refused { fault, .. } => Some(fault.kind.name()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["input_error", "limit_exceeded"]);
}

/// P-03, P-16: a thread that was opened exists, also if its node failed before saying anything on it.
#[test]
fn a_thread_opened_from_nothing_exists_after_its_node_failed() {
    let mut node = asks("n1", 1, true, &[], None);
    node.body.leaves = [
        leaf(
            "open",
            Act::Open { from: ThreadIx(0), slice: Slice(Some(0), Some(0)) },
            vec![(Guard::Always, 1)],
        ),
        leaf("say", Act::AppendText(template("{{nowhere}}")), Vec::new()),
    ]
    .into_iter()
    .collect();
    let state = started(&graph(&["x"], vec![node]));
    let names: Vec<String> = state.view().threads().map(|(name, _)| name.to_string()).collect();
    assert!(state.ended().is_some());
    assert_eq!(names, ["main", "x"]);
}

/// E-29, E-33: a reply that the schema refused is no success that a resumed node could take again.
#[test]
fn a_refused_reply_is_not_reused() {
    let schema = json!({"type": "object", "required": ["a"]});
    let mut state = started(&graph(&[], vec![asks("n1", 0, false, &[], Some(schema))]));
    complete(&mut state, "n1", reply("{}", &[]));
    complete(&mut state, "n1", reply("[]", &[]));
    assert!(state.ended().is_some());
    let events = give(&mut state, Input::Resume(Vec::new()));
    assert!(!events.iter().any(|event| matches!(event, Event::Reused { .. })), "{events:?}");
}

/// E-28: a very large output is told when a model of its thread is first sent it, not again behind a reply, and not in a run of
/// before there was such a warning; nor is one told that is a little smaller.
#[test]
fn a_large_output_is_told_when_it_is_first_sent() {
    let nodes = || {
        vec![
            asks("a", 1, true, &["look"], None),
            asks("b", 1, false, &[], None),
            asks("c", 1, false, &[], None),
        ]
    };
    let told = |events: &[Event]| -> Vec<String> {
        let warnings = events.iter().flat_map(|event| match event {
            Event::Requested { warnings, .. } => warnings.as_slice(),
            _ => &[],
        });
        warnings.map(|warning| format!("{} {:?} {}", warning.code, warning.node, warning.message)).collect()
    };
    for (edition, size, heard) in [(1, 262_144, true), (1, 262_143, false), (0, 5_000_000, false)] {
        let mut state = State::new(graph(&["x"], nodes()));
        let mut start = selvedge_engine::Start { edition, ..Default::default() };
        start.limits.model_request_bytes = 0;
        give(&mut state, Input::Start(Box::new(start)));
        complete(&mut state, "a", reply("", &[("c1", json!({"a": 1}))]));
        let found = told(&complete(&mut state, "a", Outcome::Output(Arc::new("x".repeat(size).into()))));
        assert_eq!(found.len(), usize::from(heard), "{found:?}");
        if let [found] = &found[..] {
            let parts = ["large-tool-output Some(\"b\")", "`look` is 262144 bytes, about 65536 tokens"];
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        }
        assert!(told(&complete(&mut state, "b", reply("seen", &[]))).is_empty());
        assert!(pending(&state, "c").0.starts_with('c'));
    }
}

/// E-28: what placeholders make very large is told when it is first sent, as a tool's output is; a long text of the document
/// is not.
#[test]
fn e28_very_large_data_in_a_text_is_told() {
    // What the placeholder took is not of the data.
    let blob = "x".repeat(262_152);
    let say = |text: &str| {
        let mut node = asks("a", 0, false, &[], None);
        let say = Leaf {
            name: "say".into(),
            act: Act::AppendText(Template::parse(text).unwrap()),
            next: vec![Edge { when: Guard::Always, to: Some(LeafIx(1)) }],
        };
        let model = Leaf { name: "model".into(), act: Act::Infer(Box::default()), next: Vec::new() };
        node.body.leaves = [say, model].into_iter().collect();
        graph(&[], vec![node])
    };
    for (edition, text, heard) in [(2, "{{blob}}", true), (1, "{{blob}}", false), (2, blob.as_str(), false)] {
        let mut state = State::new(say(text));
        let initial = json!({ "blob": blob }).as_object().unwrap().clone();
        let start = selvedge_engine::Start { edition, initial, ..Default::default() };
        let events = give(&mut state, Input::Start(Box::new(start)));
        let told = events.iter().any(|event| {
            matches!(event, Event::Requested { warnings, .. } if warnings.iter().any(|w| &*w.code == "large-message" && w.message.contains("about 65538 tokens")))
        });
        assert_eq!(told, heard, "edition {edition}");
    }
}

/// P-20, and no view copies a run to show a part of it: a part of a thread holds the messages that the run holds.
#[test]
fn p20_a_part_of_a_thread_is_shared() {
    let state = started(&graph(&["main"], vec![]));
    assert!(state.view().thread("other").is_none());
    let whole = state.view().thread("main").unwrap();
    assert_eq!((whole.len(), whole.last(20).len(), whole.last(0).len()), (1, 1, 0));
    let (first, again) = (whole.iter().next().unwrap(), state.view().thread("main").unwrap());
    assert!(Arc::ptr_eq(first, again.last(1).iter().next().unwrap()));
    assert_eq!(whole.slice(Slice(Some(0), Some(1))).len(), 1);
    assert!(state.view().result("a").is_none());
}
