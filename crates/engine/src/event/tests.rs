//! E-18: what a journal records of the outside is all that a replay needs.

use super::*;
use crate::effect::{ModelReply, Tokens};
use crate::fault::FaultKind;
use crate::{Failure, State};
use serde_json::json;

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
        Event::Completed { effect: effect(), outcome: Outcome::Reply(Arc::new(reply)), jitter: 0 },
        Event::Completed { effect: effect(), outcome: failed, jitter: 7 },
        Event::Lost { effect: effect() },
        Event::Answered { ask: "n1/approve".into(), value: Box::new(json!("yes")) },
        Event::CancelRequested,
        Event::Expired { seconds: 3 },
        Event::Resumed { tools: Vec::new() },
        Event::Poisoned { message: "bug".into() },
        Event::NodeStarted { node: node() },
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
