//! E-30: the loop of a model and its tools, with each of its parameters.

use super::world::*;
use selvedge_engine::graph::{AtLimit, Between, Edge, Infer, Leaf, OnEmpty, Over, Retry, Rounds};
use selvedge_engine::template::Template;
use selvedge_engine::{GraphIx, LeafIx, MessageRefusal, PersonMessage, TOKENS_AROUND};

/// A node `work` on `main` that says `go`, then goes round; and one after it.
fn looping(rounds: Rounds, max_rounds: u32, graphs: Value) -> Arc<Graph> {
    let mut drafts = vec![(
        "say",
        selvedge_engine::graph::Act::AppendText(Template::parse("go").unwrap()),
        rounds.entry(),
    )];
    drafts.extend(rounds.leaves("out"));
    let names: Vec<&str> = drafts.iter().map(|(name, ..)| *name).collect();
    let place = |name: &str| {
        names.iter().position(|known| *known == name).map(|at| LeafIx(u32::try_from(at).unwrap()))
    };
    let leaves: Vec<Leaf> = drafts
        .iter()
        .map(|(name, act, edges)| Leaf {
            name: (*name).into(),
            act: act.clone(),
            next: edges.iter().map(|(when, name)| Edge { when: *when, to: place(name) }).collect(),
        })
        .collect();
    let work = json!({"id": "work", "name": "work", "ways": to(2), "body": {
        "thread": 0, "tools": ["note", "write"], "max_rounds": max_rounds, "leaves": leaves}});
    graph(json!([ask("before", "hello", to(1)), work, ask("after", "{{work}}", json!([]))]), graphs)
}

fn rounds() -> Rounds {
    Rounds {
        model: Infer { offer_tools: true, ..Infer::default() },
        retry: Retry::default(),
        timeout_s: None,
        at_limit: AtLimit::Conclude,
        between: None,
        takes_messages: false,
    }
}

fn calls(tool: &str, text: &str, id: usize) -> Outcome {
    let call =
        selvedge_engine::ToolCall { id: format!("c{id}").into(), name: tool.into(), arguments: json!({}) };
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), calls: vec![call], ..ModelReply::default() }))
}

/// Answers what is asked, in the order in which it is, by these; tools say `did`. What each request was, and its last message.
fn tell(world: &mut World, replies: Vec<Outcome>) -> Vec<String> {
    let mut asked = Vec::new();
    for outcome in replies {
        while let Some(tool) = world.pending().iter().find(|effect| effect.contains("tools")).cloned() {
            world.complete(&tool, Outcome::Output(Arc::new(json!("did"))));
        }
        let effect = world.pending().remove(0);
        let id = selvedge_engine::EffectId(effect.as_str().into());
        let Some(Request::Model(request)) = world.state.request(&id) else { panic!("{effect}") };
        asked.push(format!("{effect}: {}", request.messages.last().unwrap().content));
        world.complete(&effect, outcome);
    }
    asked
}

#[test]
fn a10_an_empty_reply_takes_the_last_round_back() {
    let model = Infer { offer_tools: true, on_empty: OnEmpty::RollBack(3), ..Infer::default() };
    let graph = looping(Rounds { model, ..rounds() }, 9, json!([]));
    let mut world = World::begin(&graph);
    let asked = tell(
        &mut world,
        vec![
            reply("hi"),
            calls("note", "", 1),
            calls("note", "look", 2),
            reply(" "),
            // Asked again what it was asked before the second round.
            calls("note", "", 3),
            reply(""),
            reply(""),
            reply("at last"),
            reply("end"),
        ],
    );
    assert_eq!(
        asked,
        [
            "before/model/1/1: hello",
            "work/model/1/1: go",
            "work/model/2/1: did",
            "work/model/3/1: did",
            "work/model/4/1: did",
            "work/model/5/1: did",
            "work/model/6/1: did",
            // What stood there before the first round stays.
            "work/model/7/1: go",
            "after/model/1/1: at last",
        ]
    );
    assert_eq!(world.texts(), ["hello", "hi", "go", "at last", "at last", "end"]);
    assert_eq!(world.state.status(), RunStatus::Completed);
    goes_on(&world, &graph, 0);
}

#[test]
fn a10_rounds_are_taken_back_so_often_and_no_more() {
    let model = Infer { offer_tools: true, on_empty: OnEmpty::RollBack(2), ..Infer::default() };
    let graph = looping(Rounds { model, ..rounds() }, 9, json!([]));
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi"), reply(""), reply(""), reply("")]);
    assert_eq!(world.state.status(), RunStatus::Failed);
    let fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(fault.kind, FaultKind::EmptyResponse);
    assert!(fault.message.contains("answered 3 times"), "{}", fault.message);
    assert_eq!(world.texts(), ["hello", "hi", "go"], "with nothing to take back only the empty reply goes");
    // What may have changed the world stays.
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi"), calls("write", "", 1), reply(""), reply("so")]);
    assert_eq!(world.texts()[..5], ["hello", "hi", "go", "", "did"]);
    assert_eq!(world.texts()[5..], ["so", "so"]);
    goes_on(&world, &graph, 0);
}

#[test]
fn a10_a_round_that_was_taken_back_is_none() {
    let model = Infer { offer_tools: true, on_empty: OnEmpty::RollBack(9), ..Infer::default() };
    let graph = looping(Rounds { model, ..rounds() }, 2, json!([]));
    let mut world = World::begin(&graph);
    let replies =
        vec![reply("hi"), calls("note", "", 1), reply(""), calls("note", "", 2), calls("note", "", 3)];
    let asked = tell(&mut world, replies);
    assert_eq!(
        asked[1..],
        ["work/model/1/1: go", "work/model/2/1: did", "work/model/3/1: go", "work/model/4/1: did"]
    );
    let tools = world.pending().remove(0);
    world.complete(&tools, Outcome::Output(Arc::new(json!("did"))));
    assert_eq!(world.pending(), ["work/conclude/1/1"], "two rounds are left of three");
}

#[test]
fn a05_at_the_limit_a_summary_is_handed_over() {
    let ask = Template::parse("sum up").unwrap();
    let at_limit = AtLimit::HandOver {
        ask,
        model: Box::new(Infer { model: Some("summarize".into()), ..Infer::default() }),
        note: None,
    };
    let graph = looping(Rounds { at_limit, ..rounds() }, 2, json!([]));
    let mut world = World::begin(&graph);
    let asked = tell(
        &mut world,
        vec![
            reply("hi"),
            calls("note", "", 1),
            calls("note", "", 2),
            // It has no tools, and calls nothing: that it says nothing else is an empty reply.
            calls("note", "", 3),
            calls("note", "nothing was found", 4),
            reply("end"),
        ],
    );
    assert_eq!(
        asked[3..],
        ["work/summary/1/1: sum up", "work/summary/1/2: sum up", "after/model/1/1: nothing was found"]
    );
    assert_eq!(world.texts(), ["nothing was found", "nothing was found", "end"], "the next begins with it");
    goes_on(&world, &graph, 0);
}

#[test]
fn a12_what_works_between_rounds_is_told_what_was_called_and_how_large_the_thread_is() {
    let look = json!({"id": "look", "name": "look", "ways": [], "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "{{calls}} {{rounds}} {{last}} {{tokens}} {{new}} {{used}}"}, "next": [{"when": "always", "to": 1}]},
        {"name": "short", "act": {"edit": {"shorten": {"c1": "short", "c7": "nobody's"}}}, "next": [{"when": "always", "to": 2}]},
        {"name": "drop", "act": {"edit": {"drop": ["c2"]}}, "next": [{"when": "always", "to": 3}]},
        {"name": "set", "act": {"set": ["tokens", 0]}}]}});
    let between = Some(Between { every: 9, over: Some(Over { tokens: 12, new: 9 }), graph: GraphIx(0) });
    let graph = looping(Rounds { between, ..rounds() }, 9, json!([flow(json!([look]))]));
    let mut world = World::begin(&graph);
    let asked =
        tell(&mut world, vec![reply("hi"), counted(1), calls("write", "", 2), reply("done"), reply("end")]);
    let told: Vec<String> = world.texts();
    assert_eq!(asked.len(), 5);
    // Of what the provider has not counted each byte may be a token.
    assert!(told.contains(&format!("1 1 false {} 3 42", 42 + 3 + TOKENS_AROUND)), "{told:?}");
    // Of what was told once nothing is told again.
    assert!(told.iter().any(|text| text.starts_with("1 2 false ") && text.ends_with(" 0")), "{told:?}");
    assert!(told.contains(&"short".to_owned()) && !told.contains(&"did".to_owned()), "{told:?}");
    goes_on(&world, &graph, 0);
    replays(&world, &graph);
}

/// A call of `note` in a reply whose tokens the provider counts.
fn counted(id: usize) -> Outcome {
    let mut counted = calls("note", "", id);
    if let Outcome::Reply(reply) = &mut counted {
        let tokens = &mut Arc::make_mut(reply).tokens;
        (tokens.input, tokens.output) = (40, 2);
    }
    counted
}

/// Rounds between each of which operations are told of the calls, and then of all that is said.
fn sizing() -> Arc<Graph> {
    let call = |name: &str, told: &str, to| {
        let act = json!({"call": {"tool": "selvedge__size", "args": {"own": 1}, "told": told}});
        json!({"name": name, "act": act, "next": to})
    };
    let look = json!({"id": "look", "name": "look", "ways": [], "body": {"leaves": [
        call("calls", "calls", json!([{"when": "always", "to": 1}])),
        call("all", "conversation", json!([]))]}});
    let between = Some(Between { every: 1, over: None, graph: GraphIx(0) });
    let mut graph = Graph::clone(&looping(Rounds { between, ..rounds() }, 9, json!([flow(json!([look]))])));
    let size = json!({"name": "selvedge__size", "description": "", "input_schema": {}, "effects": "pure", "version": "1", "source": "built in"});
    graph.tools.insert("selvedge__size".into(), serde_json::from_value(size).unwrap());
    Arc::new(graph)
}

/// What the operation that is asked for next is told, and what the journal has of that.
fn told(world: &mut World, answer: Value) -> (Value, Value) {
    let effect = world.pending().remove(0);
    let id = selvedge_engine::EffectId(effect.as_str().into());
    let Some(Request::Operation(request)) = world.state.request(&id) else { panic!("{effect}") };
    let kept = world.journal.iter().rev().find_map(|event| match event {
        Event::Requested { effect, args: Some(args), .. } if *effect == id => Some(Value::clone(args)),
        _ => None,
    });
    world.complete(&effect, Outcome::Output(Arc::new(answer)));
    (request.args, kept.unwrap())
}

fn did(world: &mut World) {
    let tool = world.pending().remove(0);
    world.complete(&tool, Outcome::Output(Arc::new(json!("did"))));
}

#[test]
fn a12_an_operation_between_rounds_is_told_calls_and_texts_that_stand_in_no_event() {
    let graph = sizing();
    let mut world = World::begin(&graph);
    let made = |n: usize| json!([{"id": format!("c{n}"), "tool": "note", "version": "1", "arguments": {}, "output": "did"}]);
    let both = |world: &mut World| (told(world, json!("done")), told(world, json!("done")));
    tell(&mut world, vec![reply("hi"), calls("note", "", 1)]);
    did(&mut world);
    let ((args, first), (all, second)) = both(&mut world);
    let digest = first["told"].as_str().unwrap();
    assert_eq!((digest.len(), &first), (64, &json!({"own": 1, "told": digest})));
    assert_eq!(args, json!({"own": 1, "told": digest, "calls": made(1)}));
    assert_eq!(second.as_object().unwrap().len(), 2, "{second}");
    assert_ne!(second["told"], first["told"], "what is said is part of it");
    assert_eq!((&all["calls"], &all["texts"]), (&made(1), &json!(["hello", "hi", "go", "", "did"])));
    // Where the provider has counted, nobody has to read it all.
    tell(&mut world, vec![counted(2)]);
    did(&mut world);
    let ((args, first), (all, second)) = both(&mut world);
    assert_eq!((&args["calls"], &all["calls"]), (&made(2), &made(2)));
    assert_eq!((all.get("texts"), &first["told"]), (None, &second["told"]));
    assert_ne!(first["told"], json!(digest), "other calls are another request");
    tell(&mut world, vec![reply("done"), reply("end")]);
    assert_eq!(world.texts().last().map(String::as_str), Some("end"));
    goes_on(&world, &graph, 0);
    replays(&world, &graph);
}

/// A13: who looks how large a thread is does so before it is larger than it may be, and seldom: what is known of it is told by sums.
#[test]
fn a13_nobody_looks_how_large_a_thread_is_that_cannot_be_too_large() {
    let (tokens, new) = (5_000_u32, 1_000_u32);
    let act = json!({"call": {"tool": "selvedge__size", "args": {}, "told": "conversation"}});
    let look =
        json!({"id": "look", "name": "look", "ways": [], "body": {"leaves": [{"name": "all", "act": act}]}});
    let over = Some(Over { tokens, new });
    let between = Some(Between { every: 9_999, over, graph: GraphIx(0) });
    let mut graph =
        Graph::clone(&looping(Rounds { between, ..rounds() }, 9_999, json!([flow(json!([look]))])));
    graph.tools.extend(sizing().tools.clone());
    let graph = Arc::new(graph);
    // A token is a byte of some texts, and many of others.
    for bytes in [1, 3, 8] {
        let mut world = World::begin(&graph);
        tell(&mut world, vec![reply("hi")]);
        let count = |text: &str| (text.len() as u64).div_ceil(bytes) + TOKENS_AROUND;
        let mut size = ["hello", "hi", "go"].into_iter().map(count).sum::<u64>();
        let (mut rounds, mut looks) = (0_u32, 0_u32);
        while size <= u64::from(tokens) {
            rounds += 1;
            let output = "x".repeat(rounds as usize * 7 % 40);
            size += count("on") + count(&output);
            let model = world.pending().remove(0);
            world.complete(&model, calls("note", "on", rounds as usize));
            let tool = world.pending().remove(0);
            world.complete(&tool, Outcome::Output(Arc::new(json!(output))));
            if world.pending()[0].contains("look") {
                looks += 1;
                told(&mut world, json!({"counted": size}));
            } else {
                assert!(size <= u64::from(tokens), "{rounds}: {size}");
            }
        }
        let often = rounds / 20 + 30;
        assert!(rounds > 100 && looks > 0 && looks < often, "{looks} looks in {rounds} rounds");
    }
}

/// A round costs the same however many there were: what was counted is not told again, also in a process that takes the run up.
#[test]
fn a12_of_a_conversation_only_what_nobody_has_counted_is_told() {
    let graph = sizing();
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi")]);
    let mut digests = std::collections::BTreeSet::new();
    for round in 1..4 {
        tell(&mut world, vec![calls("note", "", round)]);
        did(&mut world);
        told(&mut world, json!("done"));
        let (all, kept) = told(&mut world, json!({"counted": round * 10}));
        let texts = if round == 1 { json!(["hello", "hi", "go", "", "did"]) } else { json!(["", "did"]) };
        let before = if round == 1 { Value::Null } else { json!((round - 1) * 10) };
        assert_eq!((&all["texts"], &all["counted"]), (&texts, &before));
        assert!(digests.insert(kept["told"].to_string()), "what the journal has is a digest of all of it");
    }
    goes_on(&world, &graph, 0);
    replays(&world, &graph);
}

#[test]
fn a09_between_rounds_a_graph_works_on_the_thread() {
    let tidy = json!({"id": "tidy", "name": "tidy", "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "sum up"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {"only_words": true}}, "next": [{"when": "always", "to": 2}]},
        {"name": "edit", "act": {"edit": {"compact": {"keep": 0, "asked": 2}}}}]}});
    let between = Some(Between { every: 2, over: None, graph: GraphIx(0) });
    let graph = looping(Rounds { between, ..rounds() }, 9, json!([flow(json!([tidy]))]));
    let mut world = World::begin(&graph);
    let asked = tell(
        &mut world,
        vec![
            reply("hi"),
            calls("note", "", 1),
            calls("note", "", 2),
            reply("two notes"),
            calls("note", "", 3),
            reply("done"),
            reply("all is noted"),
            reply("end"),
        ],
    );
    assert_eq!(
        asked[3..],
        [
            "work~1#0/tidy/model/1/1: sum up",
            "work/model/3/1: two notes",
            "work/model/4/1: did",
            // Once at the end, as there was a round since.
            "work~1#1/tidy/model/1/1: sum up",
            "after/model/1/1: done",
        ]
    );
    assert_eq!(world.texts(), ["all is noted", "done", "end"], "what it comes to is not the node's result");
    goes_on(&world, &graph, 0);
    // Nothing is left to do at the end if there was no round since.
    let mut world = World::begin(&graph);
    let replies =
        vec![reply("hi"), calls("note", "", 1), calls("note", "", 2), reply("two notes"), reply("done")];
    tell(&mut world, replies);
    assert_eq!(world.pending(), ["after/model/1/1"]);
    // It fails inside, and goes on there.
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi"), calls("note", "", 1), calls("note", "", 2), fails("no")]);
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    assert_eq!(world.pending(), ["work~1#0/tidy~2/model/1/1"]);
    tell(&mut world, vec![reply("two notes"), reply("done"), reply("end")]);
    assert_eq!(world.texts(), ["two notes", "done", "done", "end"]);
    replays(&world, &graph);
}

fn said(text: &str, to: Option<&str>) -> PersonMessage {
    PersonMessage { text: text.into(), to: to.map(Into::into), by: Some("ada".into()) }
}

/// A loop that takes messages, as far as the first call, which is under way.
fn calling(model: Infer) -> (World, Arc<Graph>) {
    let graph = looping(Rounds { model, takes_messages: true, ..rounds() }, 9, json!([]));
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi"), calls("note", "", 1)]);
    (world, graph)
}

#[test]
fn e43_a_message_stands_behind_the_results_of_the_round_in_which_it_came() {
    let (mut world, graph) = calling(Infer { offer_tools: true, ..Infer::default() });
    world.inputs(["use April", "and be brief"].map(|text| Input::PersonMessage(said(text, None))));
    let asked = tell(&mut world, vec![reply("so"), reply("end")]);
    assert_eq!(asked, ["work/model/2/1: and be brief", "after/model/1/1: so"]);
    let texts = ["hello", "hi", "go", "", "did", "use April", "and be brief", "so", "so", "end"];
    assert_eq!(world.texts(), texts);
    assert_eq!(world.state.untaken_messages().count(), 0);
    goes_on(&world, &graph, 0);
}

#[test]
fn e43_a_message_ends_the_end_of_whoever_was_about_to() {
    let graph = looping(Rounds { takes_messages: true, ..rounds() }, 9, json!([]));
    let mut world = World::begin(&graph);
    tell(&mut world, vec![reply("hi")]);
    world.input(Input::PersonMessage(said("wait", Some("work"))));
    let asked = tell(&mut world, vec![reply("done"), reply("better"), reply("end")]);
    assert_eq!(asked, ["work/model/1/1: go", "work/model/2/1: wait", "after/model/1/1: better"]);
    goes_on(&world, &graph, 0);
}

#[test]
fn e43_what_a_visit_took_that_has_failed_the_next_one_takes_again() {
    let (mut world, graph) = calling(Infer { offer_tools: true, ..Infer::default() });
    world.input(Input::PersonMessage(said("use April", None)));
    tell(&mut world, vec![fails("out of order")]);
    assert_eq!(world.state.status(), RunStatus::Failed);
    assert_eq!(world.state.accept(Input::PersonMessage(said("more", None))), None, "it has ended");
    world.resume();
    let asked = tell(&mut world, vec![reply("so"), reply("end")]);
    assert!(asked[0].ends_with(": use April"), "{asked:?}");
    let april = world.texts().iter().filter(|text| *text == "use April").count();
    assert_eq!((april, world.state.status()), (1, RunStatus::Completed));
    goes_on(&world, &graph, 0);
}

#[test]
fn e43_a_message_is_not_taken_back_with_an_empty_reply() {
    let (mut world, graph) =
        calling(Infer { offer_tools: true, on_empty: OnEmpty::RollBack(3), ..Infer::default() });
    world.input(Input::PersonMessage(said("use April", None)));
    let asked = tell(&mut world, vec![reply(""), reply("so"), reply("end")]);
    assert_eq!(asked[1], "work/model/3/1: use April");
    assert_eq!(world.texts(), ["hello", "hi", "go", "use April", "so", "so", "end"]);
    goes_on(&world, &graph, 0);
}

#[test]
fn e43_a_message_that_nobody_would_take_is_refused() {
    let refusal = |world: &World, text: &str, to: Option<&str>| {
        let message = said(text, to);
        let refusal = world.state.message_refusal(&message);
        let accepted = world.state.accept(Input::PersonMessage(message)).is_some();
        assert_eq!(accepted, refusal.is_none());
        refusal
    };
    let (mut world, _) = calling(Infer { offer_tools: true, ..Infer::default() });
    assert_eq!(refusal(&world, "to them", Some("nobody")), Some(MessageRefusal::NotThere));
    assert_eq!(refusal(&world, "too early", Some("after")), Some(MessageRefusal::NotThere));
    assert_eq!(refusal(&world, " \n", None), Some(MessageRefusal::Empty));
    assert_eq!(refusal(&world, "yes", Some("work")), None);
    world.inputs((0..100).map(|_| Input::PersonMessage(said("more", None))));
    assert_eq!(refusal(&world, "one more", None), Some(MessageRefusal::TooMany(100)));
    let deaf = World::begin(&looping(rounds(), 9, json!([])));
    assert_eq!(refusal(&deaf, "hear", None), Some(MessageRefusal::NobodyTakes));
}
