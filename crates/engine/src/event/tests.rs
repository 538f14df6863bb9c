//! E-18: what a journal records of the outside is all that a replay needs.

use super::*;
use crate::effect::{ModelReply, Tokens, Took};
use crate::fault::FaultKind;
use crate::{Failure, State};
use serde_json::json;

fn printed() -> Printed {
    Printed { stdout: "é\u{1b}[2J\n".into(), stderr_cut: 7, stderr: "x".into(), ..Printed::default() }
}

fn events() -> Vec<Event> {
    let effect = || EffectId("n1/ask/1/1".into());
    let node = || Arc::from("n1");
    let reply = ModelReply {
        text: "é".into(),
        tokens: Tokens { input: 1, ..Tokens::default() },
        ..ModelReply::default()
    };
    let failed = Outcome::from(Failure::transient(FaultKind::Timeout, "late"));
    vec![
        Event::Started(Box::new(Start { sequential: true, ..Start::default() })),
        Event::Completed {
            effect: effect(),
            outcome: Outcome::Reply(Arc::new(reply)),
            jitter: 0,
            printed: None,
            took: None,
        },
        Event::Completed {
            effect: effect(),
            outcome: failed,
            jitter: 7,
            printed: Some(Arc::new(printed())),
            took: Some(Took { queued_ms: 0, worked_ms: 9 }),
        },
        Event::Lost { effect: effect() },
        Event::Answered { ask: "n1/approve".into(), value: Box::new(json!("yes")) },
        Event::CancelRequested,
        Event::Expired { seconds: 3 },
        Event::LimitsSet { limits: Box::new(Limits { events: 3, ..Limits::default() }) },
        Event::Resumed { tools: Vec::new() },
        Event::Poisoned { message: "bug".into() },
        Event::NodeStarted { node: node(), warnings: Vec::new() },
        Event::Appended { node: node(), thread: "main".into(), body: Body::Reply(effect()) },
        Event::Requested { effect: effect(), args: None, warnings: Vec::new() },
        Event::NodeFinished { node: node(), fault: None, warnings: Vec::new() },
        Event::Ended { status: End::Completed, fault: None },
    ]
}

#[test]
fn an_event_records_an_input_exactly_if_it_says_so() {
    for event in events() {
        assert_eq!(Input::from_event(event.clone()).is_some(), event.is_input(), "{event:?}");
    }
}

#[test]
fn accepting_the_input_again_gives_the_same_event() {
    // A run that has not begun takes a start, one that has begun takes what needs no open effect or ask.
    let mut state = State::new(Arc::default());
    for event in events().into_iter().filter(|event| {
        matches!(
            event,
            Event::Started(_) | Event::CancelRequested | Event::Expired { .. } | Event::Poisoned { .. }
        )
    }) {
        let text = serde_json::to_string(&event).unwrap();
        let again = state.accept(Input::from_event(event).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        if matches!(again, Event::Started(_)) {
            state.apply(&again);
        }
    }
}

/// E-18: what is behind a pointer in memory is where it always was in a journal.
#[test]
fn boxes_do_not_show_in_a_journal() {
    let lines = [
        r#"{"kind":"completed","effect":"n1/ask/1/1","outcome":{"failed":{"fault":{"kind":"timeout","message":"late","node":null,"cause":null},"transient":true}},"jitter":7}"#,
        r#"{"kind":"completed","effect":"n1/call/1/1","outcome":{"output":1},"took":{"worked_ms":12}}"#,
        r#"{"kind":"completed","effect":"n1/call/1/1","outcome":{"output":1},"took":{"queued_ms":5,"worked_ms":0}}"#,
        r#"{"kind":"completed","effect":"n1/call/1/1","outcome":{"output":1}}"#,
        r#"{"kind":"answered","ask":"n1/approve","value":{"k":[1]}}"#,
        r#"{"kind":"opened","node":"n1","thread":"a","from":"b","start":0,"end":3}"#,
        r#"{"kind":"requested","effect":"n1/call/1/1","args":{"k":1}}"#,
        r#"{"kind":"refused","effect":"n1/call/1/1","fault":{"kind":"denied","message":"no","node":"n1","cause":{"k":1}},"args":{}}"#,
        r#"{"kind":"recovered","node":"n1","action":"retry_with_tool","by":"ladder","reason":"why","tool":"t","parameters":{"k":1}}"#,
        r#"{"kind":"recovered","node":"n1","action":"replan","by":"model","reason":"why","strategy":"s","steps":[]}"#,
        r#"{"kind":"node_finished","node":"n1","fault":{"kind":"denied","message":"no","node":"n1","cause":null}}"#,
        r#"{"kind":"ended","status":"completed"}"#,
    ];
    for line in lines {
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}

/// E-18, E-21: to edit nothing is not to be asked without a value.
#[test]
fn a_null_that_is_to_be_edited_comes_back_from_the_journal() {
    for value in [Some(Value::Null), Some(Value::from(1)), None] {
        let (ask, node, ask_kind) = ("n/ask".into(), "n".into(), AskKind::Edit);
        let value = value.map(Arc::new);
        let asked =
            Event::Asked(Box::new(Asked { ask, node, ask_kind, prompt: "?".into(), value, due: None }));
        let line = serde_json::to_string(&asked).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), asked, "{line}");
    }
}
