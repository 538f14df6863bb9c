//! E-09: what is taken away from a thread, and what stands for it.

use super::world::*;

/// A node on `main` with these leaves, one after the other.
fn leaves(id: &str, acts: &[Value], ways: Value) -> Value {
    let rows = acts.iter().enumerate().map(|(at, act)| {
        let next = if at + 1 < acts.len() { json!([{"when": "always", "to": at + 1}]) } else { json!([]) };
        json!({"name": format!("l{at}"), "act": act, "next": next})
    });
    json!({"id": id, "name": id, "ways": ways,
           "body": {"thread": 0, "tools": ["note", "write"], "leaves": rows.collect::<Vec<_>>()}})
}

fn edit(edit: Value) -> Value {
    json!({ "edit": edit })
}

/// A user asks, a model calls two tools, sees what they say, and replies; then the thread is edited.
fn conversation(last: Value) -> Arc<Graph> {
    let round = leaves(
        "round",
        &[
            json!({"say": "first"}),
            json!({"infer": {"offer_tools": true}}),
            json!({"answer": {"run": true, "retry": {}}}),
            json!({"infer": {}}),
        ],
        to(1),
    );
    graph(json!([round, last]), json!([]))
}

fn calls(text: &str, tools: &[&str]) -> Outcome {
    let calls = tools.iter().enumerate().map(|(n, tool)| selvedge_engine::ToolCall {
        id: format!("c{n}").into(),
        name: (*tool).into(),
        arguments: json!({}),
    });
    Outcome::Reply(Arc::new(ModelReply {
        text: text.into(),
        calls: calls.collect(),
        ..ModelReply::default()
    }))
}

/// The conversation up to the edit, with a fault of the second call.
fn converse(graph: &Arc<Graph>, text: &str, tools: &[&str]) -> World {
    let mut world = World::begin(graph);
    world.complete("round/l1/1/1", calls(text, tools));
    for (n, tool) in tools.iter().enumerate() {
        let effect = format!("round/l2.{n}/1/1");
        let outcome = match n {
            0 => Outcome::Output(Arc::new(json!(format!("{tool} did")))),
            _ => Failure::permanent(FaultKind::ExecutionFailure, "broken").into(),
        };
        world.complete(&effect, outcome);
    }
    world.complete("round/l3/1/1", reply("second"));
    world
}

/// What stands on `main`: role, text and calls of each message.
fn main_thread(world: &World) -> Vec<String> {
    let rows = world.state.view().thread("main").unwrap();
    let rows = rows.iter().map(|message| {
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| &*call.id).collect();
        let role = serde_json::to_value(message.role).unwrap();
        let answers = message.tool_call_id.as_deref().map(|id| format!(" to {id}")).unwrap_or_default();
        format!("{}: {} {calls:?}{answers}", role.as_str().unwrap(), message.content)
    });
    rows.collect()
}

/// The thread after an edit; every prefix of the journal comes to it, and a replay.
fn after(edit_of: Value, tools: &[&str]) -> Vec<String> {
    let graph = conversation(leaves("tidy", &[edit(edit_of)], json!([])));
    let world = converse(&graph, "", tools);
    assert_eq!(world.state.status(), RunStatus::Completed);
    replays(&world, &graph);
    for cut in 1..world.journal.len() {
        let mut again = World::again(&graph, &world.journal[..cut]);
        again.run(false, |request| match request {
            Request::Model(request) if request.effect.to_string() == "round/l1/1/1" => calls("", tools),
            Request::Model(_) => reply("second"),
            Request::Tool(request) | Request::Operation(request)
                if request.effect.to_string() == "round/l2.0/1/1" =>
            {
                Outcome::Output(Arc::new(json!(format!("{} did", tools[0]))))
            }
            Request::Tool(_) | Request::Operation(_) => {
                Failure::permanent(FaultKind::ExecutionFailure, "broken").into()
            }
        });
        assert_eq!(main_thread(&again), main_thread(&world), "cut at {cut}");
    }
    main_thread(&world)
}

const BROKEN: &str = r#"tool: {"error":{"type":"execution_failure","message":"broken"}} [] to c1"#;

#[test]
fn e09_whole_rounds_stay_or_go() {
    let all = after(json!({"trim": {"keep": 9}}), &["note", "note"]);
    let calls = r#"assistant:  ["c0", "c1"]"#;
    assert_eq!(all, ["user: first []", calls, "tool: note did [] to c0", BROKEN, "assistant: second []"]);
    assert_eq!(after(json!("clear"), &["note", "note"]), Vec::<String>::new());
    assert_eq!(after(json!({"trim": {"keep": 1}}), &["note", "note"]), all[4..]);
    // The second result would stand there without its call.
    assert_eq!(after(json!({"trim": {"keep": 2}}), &["note", "note"]), all[1..]);
    assert_eq!(
        after(json!({"filter": {"roles": ["user", "assistant"]}}), &["note", "note"]),
        [&*all[0], &*all[4]]
    );
    assert_eq!(after(json!({"filter": {"roles": ["tool", "user"]}}), &["note"]), all[..1]);
    let kept = after(json!({"filter": {"roles": ["tool", "assistant"]}}), &["note", "note"]);
    assert_eq!(kept, all[1..]);
    assert_eq!(after(json!("roll_back"), &["note", "note"]), all[..4]);
}

#[test]
fn e09_a_failed_call_goes_with_its_result() {
    let round = |text: &str, tools: &[&str]| {
        let failed = tools.iter().enumerate().filter(|(_, tool)| **tool != "note");
        let failed: Vec<String> = failed.map(|(n, _)| format!("c{n}")).collect();
        let graph = graph(
            json!([leaves(
                "round",
                &[
                    json!({"say": "first"}),
                    json!({"infer": {"offer_tools": true}}),
                    json!({"answer": {"run": true, "retry": {}}}),
                    edit(json!({"drop": failed})),
                    json!({"infer": {}}),
                ],
                json!([])
            )]),
            json!([]),
        );
        let mut world = World::begin(&graph);
        world.complete("round/l1/1/1", calls(text, tools));
        for (n, tool) in tools.iter().enumerate() {
            let outcome = match *tool {
                "note" => Outcome::Output(Arc::new(json!("did"))),
                _ => Failure::permanent(FaultKind::ExecutionFailure, "broken").into(),
            };
            world.complete(&format!("round/l2.{n}/1/1"), outcome);
        }
        assert_eq!(world.pending(), ["round/l4/1/1"]);
        world.run(false, echo);
        replays(&world, &graph);
        main_thread(&world)
    };
    let kept = round("", &["note", "write"]);
    assert_eq!(kept[..3], ["user: first []", r#"assistant:  ["c0"]"#, "tool: did [] to c0"]);
    assert_eq!(kept.len(), 4);
    assert_eq!(round("", &["write"]), ["user: first []", "assistant: re: first []"]);
    assert_eq!(round("I write", &["write"])[..2], ["user: first []", "assistant: I write []"]);
    assert_eq!(round("", &["note"]).len(), 4, "nothing failed, and nothing goes");
}

#[test]
fn a10_what_may_have_changed_the_world_is_not_rolled_back() {
    let back = leaves("back", &[edit(json!("roll_back")), edit(json!("roll_back"))], json!([]));
    for (tool, left) in [("note", 1), ("write", 3)] {
        let graph = conversation(back.clone());
        let world = converse(&graph, "", &[tool]);
        assert_eq!(world.state.status(), RunStatus::Completed);
        assert_eq!(main_thread(&world).len(), left, "{tool}");
        replays(&world, &graph);
    }
}

#[test]
fn e09_a_summary_stands_for_what_is_older() {
    let tidy = leaves(
        "tidy",
        &[json!({"say": "sum up"}), json!({"infer": {}}), edit(json!({"compact": {"keep": 1, "asked": 2}}))],
        to(2),
    );
    let tidy =
        json!({"passes": true, "id": tidy["id"], "name": "tidy", "body": tidy["body"], "ways": tidy["ways"]});
    let rows = conversation(tidy);
    let mut rows: Value = serde_json::to_value(&*rows).unwrap();
    rows["nodes"].as_array_mut().unwrap().push(ask("on", "go on", json!([])));
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(rows).unwrap());
    let mut world = converse(&graph, "", &["note"]);
    world.complete("tidy/l1/1/1", reply("they talked"));
    let request = selvedge_engine::EffectId("on/model/1/1".into());
    let Some(Request::Model(request)) = world.state.request(&request) else { panic!("it asks") };
    let sent: Vec<&str> = request.messages.iter().map(|message| &*message.content).collect();
    assert_eq!(sent, ["they talked", "second", "go on"]);
    world.run(false, echo);
    assert_eq!(*world.state.view().output(), json!("re: go on"));
    replays(&world, &graph);
    // What was said stays in the journal.
    assert!(serde_json::to_string(&world.journal).unwrap().contains("note did"));
}

#[test]
fn e09_edits_share_what_they_keep() {
    let rounds = 3_000_u32;
    let talk = json!({"graph": 0, "times": {"count": rounds}, "limit": rounds});
    let tidy = leaves("tidy", &[edit(json!({"trim": {"keep": 2}}))], json!([]));
    let graph = graph(
        json!([node("talk", json!({ "loop": talk }), to(1)), tidy]),
        json!([flow(json!([ask("say", "more", json!([]))]))]),
    );
    let mut world = World::begin(&graph);
    world.run(false, |_| reply("yes"));
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(main_thread(&world), ["user: more []", "assistant: yes []"]);
    let edited = world.journal.iter().find(|event| matches!(event, Event::Edited { .. })).unwrap();
    assert_eq!(
        serde_json::to_value(edited).unwrap(),
        json!({"kind": "edited", "node": "tidy", "thread": "main", "replaced": [{"start": 0, "end": 2 * rounds - 2}]})
    );
    replays(&world, &graph);
}

#[test]
fn e09_who_takes_the_first_messages_waits_for_who_edits_them() {
    let tidy = json!({"id": "tidy", "name": "tidy", "body": {"thread": 0, "leaves": [
        {"name": "model", "act": {"infer": {}}, "next": [{"when": "always", "to": 1}]},
        {"name": "edit", "act": {"edit": {"trim": {"keep": 1}}}}]}});
    let take = json!({"id": "take", "name": "take", "body": {"thread": 1, "leaves": [
        {"name": "open", "act": {"open": {"from": 0, "slice": [0, 1]}}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}});
    let graph = json!({"threads": [{"name": "main", "first": "question"}, {"name": "other"}], "nodes": [tidy, take], "tools": {}});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    selvedge_engine::schedule::Schedule::derive(&graph, false).prove(&graph).unwrap();
    let mut world = World::begin(&graph);
    assert_eq!(world.pending(), ["tidy/model/1/1"], "the first message is not the question for long");
    world.run(false, echo);
    let other = world.state.view().thread("other").unwrap();
    assert_eq!(&*other.iter().next().unwrap().content, "re: question");
    replays(&world, &graph);
}
