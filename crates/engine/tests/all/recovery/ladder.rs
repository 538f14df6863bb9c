//! One step and what may be done about it (D-17, D-18, D-19, D-22, D-25).

use crate::recovery::support::{Asked, Run, fails, gives, graph, says, step, times_out};
use selvedge_engine::{Effects, Event, FaultKind, Input, Outcome, RunStatus};
use serde_json::{Value, json};

fn broken(_: &Asked) -> Outcome {
    fails("broken")
}

/// D-14: a step without anything special is four events; nothing is written on any thread.
#[test]
fn a_step_is_four_events() {
    let run = Run::of(&graph(&[step("s", "pure", json!({}))]), |_| gives(json!({"k": 1})));
    let kinds: Vec<String> = run
        .events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().into())
        .collect();
    assert_eq!(kinds, ["started", "node_started", "requested", "completed", "node_finished", "ended"]);
    assert_eq!(run.check().status(), RunStatus::Completed);
    assert_eq!((run.output("s"), run.row("s").unwrap().attempts), (json!({"k": 1}), 1));
    assert!(run.state.view().threads().next().is_none());
}

/// D-18: without a model, alternatives in order; the result is of the one that gave it, and syncs as that does.
#[test]
fn the_ladder_climbs_alternatives_in_order() {
    let steps = [
        step("s", "write", json!({"k": 1})).or("pure", None).or("xread", Some(json!({"k": 2}))),
        step("t", "pure", json!({"of": "{{s_x}} {{x}}"})),
    ];
    let run = Run::of(&graph(&steps), |asked| match asked.what.as_str() {
        "xread" => gives(json!({"x": 7, "y": 8})),
        _ if asked.node == "t" => gives(asked.args.clone()),
        _ => fails("broken"),
    });
    run.check();
    assert_eq!(run.status(), RunStatus::Completed);
    let climbed = [
        ("s".to_owned(), "retry_with_tool", "ladder pure".to_owned()),
        ("s".to_owned(), "retry_with_tool", "ladder xread".to_owned()),
    ];
    assert_eq!(run.ladder(), climbed);
    let row = run.row("s").unwrap();
    assert_eq!((row.tool_id, row.attempts, row.output), (Some("xread"), 3, &json!({"x": 7, "y": 8})));
    assert_eq!(run.output("t"), json!({"of": "7 7"}));
    assert!(
        !run.state.view().runtime().keys().any(|name| &**name == "y"),
        "D-05: only what the tool declares"
    );
    let args: Vec<&Value> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Requested { args, .. } => args.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(args[1], &json!({"k": 1}), "D-23: the step's own parameters");
}

/// D-18, D-22: nothing left is an event too, and the fault is the last call's.
#[test]
fn giving_up_is_an_event() {
    let run = Run::of(&graph(&[step("s", "pure", json!({})).or("read", None)]), |asked| fails(&asked.what));
    run.check();
    assert_eq!(run.ladder().last().unwrap().1, "give_up");
    let fault = run.fault();
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::ExecutionFailure, "read"));
    assert_eq!(fault.node.as_deref(), Some("s"));
    assert_eq!(run.rows(), [("s".to_owned(), false, 2)]);
}

/// D-17: transient faults are tried again first, and only they.
#[test]
fn transient_faults_come_first() {
    let steps = [step("s", "read", json!({})).retry(2).or("pure", None)];
    let run = Run::of(&graph(&steps), |asked| match asked.attempt {
        3 => gives(json!(1)),
        _ => times_out(),
    });
    assert_eq!((run.check().ladder().len(), run.rows()), (0, vec![("s".to_owned(), true, 3)]));
    let run =
        Run::of(&graph(&steps), |asked| if asked.what == "pure" { gives(json!(1)) } else { times_out() });
    assert_eq!((run.check().ladder().len(), run.rows()), (1, vec![("s".to_owned(), true, 4)]));
    let run =
        Run::of(&graph(&steps), |asked| if asked.what == "pure" { gives(json!(1)) } else { fails("no") });
    assert_eq!(run.check().rows(), [("s".to_owned(), true, 2)]);
}

/// D-17: a write that timed out is tried again only if its step says `retry`.
#[test]
fn a_write_that_timed_out_is_unknown() {
    let run = Run::of(&graph(&[step("s", "write", json!({}))]), |_| times_out());
    assert_eq!(run.check().fault().kind, FaultKind::UnknownOutcome);
    assert_eq!(run.sent(0).len(), 1);
    let run = Run::of(&graph(&[step("s", "write", json!({})).retry(1)]), |_| times_out());
    assert_eq!((run.check().fault().kind, run.sent(0).len()), (FaultKind::Timeout, 2));
    let run = Run::of(&graph(&[step("s", "write", json!({})).or("pure", None)]), |asked| {
        match asked.what.as_str() {
            "pure" => gives(json!("other")),
            _ => times_out(),
        }
    });
    assert_eq!(run.check().output("s"), json!("other"), "its recovery decides");
}

/// E-05: after a crash a person is asked about a lost write, whether or not its step has a recovery.
#[test]
fn a_person_is_asked_about_a_lost_write() {
    let lose = |run: &mut Run| {
        let writes = run.state.pending().iter().filter(|(_, row)| row.effects == Effects::Write);
        let effect = writes.map(|(effect, _)| effect.clone()).next().unwrap();
        run.give(Input::Lose(effect));
    };
    let halted = |steps: &[crate::recovery::support::Step]| {
        let graph = graph(steps);
        let mut run = Run::of(&graph, |_| gives(json!("fine")));
        let at = run.place(|event| matches!(event, Event::Completed { .. }));
        let mut state = selvedge_engine::State::new(graph);
        run.events.truncate(at);
        run.events.iter().for_each(|event| state.apply(event));
        run.state = state;
        run
    };
    for steps in [[step("s", "write", json!({})).or("pure", None)], [step("s", "write", json!({}))]] {
        let mut run = halted(&steps);
        lose(&mut run);
        assert_eq!(run.status(), RunStatus::Waiting);
    }
}

/// D-17: the model sees what went wrong and chooses other parameters; its templates see what the step sees.
#[test]
fn a_model_chooses_parameters() {
    let steps = [step("a", "pure", json!({})), step("s", "strict", json!({"n": "{{a.text}}"})).model()];
    let run = Run::of(&graph(&steps), |asked| match asked.what.as_str() {
        "reflection" => {
            assert!(asked.said.contains("\"kind\":\"input_error\""), "{}", asked.said);
            assert!(asked.said.contains("\"parameters\":{\"n\":\"4\"}"), "{}", asked.said);
            assert!(!asked.said.contains("selvedge__"), "the engine's own tools are nobody's business");
            says(
                &json!({"action": "retry_with_params", "parameters": {"n": "{{a.number}}"}, "reason": "a number"}),
            )
        }
        "pure" => gives(json!({"text": "4", "number": 4})),
        _ => gives(asked.args.clone()),
    });
    run.check();
    assert_eq!(run.output("s"), json!({"n": 4}));
    assert_eq!(run.rows(), [("a".to_owned(), true, 1), ("s".to_owned(), true, 2)]);
    assert_eq!(run.ladder(), [("s".to_owned(), "retry_with_params", "model strict".to_owned())]);
    assert!(run.state.view().threads().next().is_none(), "the scratch thread is nobody else's");
    let facts: Value = serde_json::from_str(run.briefs()[0].strip_prefix("What now?\n\n").unwrap()).unwrap();
    assert_eq!(facts["metadata"]["number"], 4);
    assert_eq!(facts["left"], json!({"retries": 3, "repairs": 1, "replans": 1, "reflections": 4}));
}

/// D-17, D-23: the model sees the step as a document has it; what it tries is tried again, and ends, as the step's own
/// call says.
#[test]
fn what_is_shared_holds_for_each_step() {
    let steps = [
        step("a", "pure", json!({})),
        step("s", "read", json!({"k": "{{a}}"})).after(&["a"]).retry(1).or("xread", Some(json!({}))).model(),
    ];
    let run = Run::of(&graph(&steps), |asked| match asked.what.as_str() {
        "reflection" => says(&json!({"action": "retry_with_params", "reason": "it may pass"})),
        "read" => times_out(),
        _ => gives(json!(1)),
    });
    run.check();
    let brief = &run.briefs()[0];
    let facts: Value = serde_json::from_str(brief.strip_prefix("What now?\n\n").unwrap()).unwrap();
    let as_written = json!({"step_id": "s", "step_name": "name of s", "tool_id": "read", "parameters": {"k": "{{a}}"},
        "depends_on": ["a"], "alternatives": [{"tool_id": "xread", "parameters": {}}]});
    assert_eq!(facts["step"], as_written);
    let tried: Vec<String> = run.sent(0).into_iter().filter(|effect| effect.contains("/try/1")).collect();
    assert_eq!(tried, ["s/try/1/1", "s/try/1/2"]);
}

/// D-17: another tool, which is given the step's parameters unless it is given others.
#[test]
fn a_model_chooses_another_tool() {
    let run =
        Run::of(&graph(&[step("s", "pure", json!({"k": 1})).model()]), |asked| match asked.what.as_str() {
            "reflection" => says(&json!({"action": "retry_with_tool", "tool_id": "xpure", "reason": ""})),
            "pure" => fails("broken"),
            _ => gives(asked.args.clone()),
        });
    run.check();
    assert_eq!((run.row("s").unwrap().tool_id, run.output("s")), (Some("xpure"), json!({"k": 1})));
}

/// D-17: a repaired definition; its parameters may be JSON in a text (D-12).
#[test]
fn a_model_repairs_the_step() {
    let run =
        Run::of(&graph(&[step("s", "pure", json!({"k": 1})).model()]), |asked| match asked.what.as_str() {
            "reflection" => {
                let step = json!({"tool_id": "read", "parameters": "{\"k\": 2}"});
                says(&json!({"action": "repair_step", "step": step, "reason": ""}))
            }
            "pure" => fails("broken"),
            _ => gives(asked.args.clone()),
        });
    run.check();
    assert_eq!((run.row("s").unwrap().tool_id, run.output("s")), (Some("read"), json!({"k": 2})));
}

/// D-19: what a limit forbids, the ladder does; all limits.
#[test]
fn limits_send_down_the_ladder() {
    let actions = |world| {
        let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), world);
        run.check();
        run.ladder().into_iter().map(|row| row.1).collect::<Vec<_>>()
    };
    let retries = actions(|asked| match asked.what.as_str() {
        "reflection" => says(&json!({"action": "retry_with_params", "reason": "again"})),
        _ => broken(asked),
    });
    assert_eq!(retries, ["retry_with_params", "retry_with_params", "retry_with_params", "give_up"]);
    let repairs = actions(|asked| match asked.what.as_str() {
        "reflection" => {
            says(&json!({"action": "repair_step", "step": {"parameters": {}}, "reason": "again"}))
        }
        _ => broken(asked),
    });
    assert_eq!(repairs, ["repair_step", "give_up"]);
    let rules = |rules: &mut selvedge_engine::graph::Recovery| rules.retries = 100;
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model().rules(rules)]), |asked| {
        match asked.what.as_str() {
            "reflection" => says(&json!({"action": "retry_with_params", "reason": "again"})),
            _ => broken(asked),
        }
    });
    run.check();
    assert_eq!(
        (run.ladder().len(), run.rows()),
        (6, vec![("s".to_owned(), false, 6)]),
        "five rounds of reflection"
    );
    let Some(Event::Recovered(last)) = run.events.iter().rfind(|event| matches!(event, Event::Recovered(_)))
    else {
        panic!("no decision")
    };
    assert!(last.reason.contains("`reflections`"), "E-12: it names the setting: {}", last.reason);
}

/// D-17: an answer that does not parse is asked for once more, then counts as `retry` or `replan`; one that makes no
/// sense goes to the ladder.
#[test]
fn answers_that_do_not_parse() {
    let words = |asked: &Asked| match asked.what.as_str() {
        "reflection" => Outcome::Reply(std::sync::Arc::new(selvedge_engine::ModelReply {
            text: "Let me think".into(),
            ..Default::default()
        })),
        "read" => times_out(),
        _ => fails("broken"),
    };
    let run = Run::of(&graph(&[step("s", "read", json!({})).model()]), words);
    run.check();
    let asked = run.sent(0).iter().filter(|effect| effect.contains("/reflect/1/")).count();
    assert_eq!(asked, 2, "asked once more");
    assert_eq!(run.ladder()[0], ("s".to_owned(), "retry_with_params", "default read".to_owned()));
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), words);
    assert_eq!(run.check().ladder()[0], ("s".to_owned(), "replan", "default".to_owned()));
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model().or("read", None)]), |asked| match asked
        .what
        .as_str()
    {
        "reflection" => {
            says(&json!({"action": "retry_with_tool", "tool_id": "selvedge__compile", "reason": ""}))
        }
        "read" => gives(json!(1)),
        _ => fails("broken"),
    });
    assert_eq!(run.check().ladder(), [("s".to_owned(), "retry_with_tool", "ladder read".to_owned())]);
}

/// D-17: a model that can't be asked decides nothing; the step's own fault stays its fault.
#[test]
fn a_model_that_is_away_leaves_the_ladder() {
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), |asked| match asked.what.as_str() {
        "reflection" => {
            Outcome::from(selvedge_engine::Failure::permanent(FaultKind::ProviderError, "no key"))
        }
        _ => fails("broken"),
    });
    assert_eq!(run.check().fault().message, "broken");
    assert_eq!(run.ladder(), [("s".to_owned(), "give_up", "ladder".to_owned())]);
}

/// D-13, D-14: a chain of steps costs the same a step, however long it is; so do skipped ones.
#[test]
fn long_chains_cost_the_same_a_step() {
    let seconds = |steps: usize, first: &str| {
        let chain = (0..steps).map(|at| match at {
            0 => step("s0", first, json!({})),
            _ => step(&format!("s{at}"), "xpure", json!({"v": format!("{{{{s{}.x}}}}", at - 1)})),
        });
        let graph = graph(&chain.collect::<Vec<_>>());
        let began = std::time::Instant::now();
        let mut state = selvedge_engine::State::new(graph);
        let mut next = state.accept(Input::Start(Box::default()));
        while let Some(event) = next {
            state.apply(&event);
            next = state.step().or_else(|| {
                let effect = state.pending().keys().next()?.clone();
                let read = matches!(state.request(&effect), Some(selvedge_engine::Request::Tool(t)) if &*t.tool.name == "read");
                let outcome = if read { fails("broken") } else { gives(json!({"x": 1})) };
                state.accept(Input::Complete(effect, outcome, 0, None, None))
            });
        }
        let skipped = first == "read";
        assert_eq!(state.status(), if skipped { RunStatus::Failed } else { RunStatus::Completed });
        began.elapsed().as_secs_f64() / steps as f64
    };
    for first in ["xpure", "read"] {
        let (short, long) = (seconds(1_000, first), seconds(10_000, first));
        assert!(
            long < short * 6.0 + 2e-5,
            "{first}: {short} s a step of a short chain, {long} s of a long one"
        );
    }
}
