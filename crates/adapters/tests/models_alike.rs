//! What providers say in different ways is told alike, and what one has no word for too (E-16, E-23, E-28, P-26).

// Helpers outside of test functions may fail loudly too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use selvedge_adapters::models::{Endpoint, ProviderConfig};
use selvedge_engine::{Message, ModelSettings, Role};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::wires::{Wire, wires};
use support::*;

fn model_of(wire: &Wire, server: &Server) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(wire.provider, "test-model").at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
    })
}

/// Every value under the key `name`.
fn names(body: &Value, into: &mut Vec<String>) {
    match body {
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        Value::Object(fields) => {
            into.extend(fields.get("name").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| names(field, into));
        }
        _ => {}
    }
}

fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// E-23: one name of a tool that never was must not end a run.
#[tokio::test]
async fn odd_names_of_tools_are_sent_as_plain_ones_and_come_back_as_they_are() {
    let long = "long".repeat(30);
    let tools = ["search.web", "search_web", "查词", "词查", &*long, "plain-1"];
    let calls = [
        call("c1", "functions.word_count", json!({})),
        call("c2", "multi_tool_use.parallel", json!({})),
        call("c3", "", json!({})),
        call("c4", "查词", json!({"q": "x"})),
    ];
    let mut asked = request(vec![
        user("hi"),
        Arc::new(Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, "") }),
    ]);
    let results = calls.iter().map(|call| Arc::new(Message::tool(call, "r")));
    asked.messages = asked.messages.iter().cloned().chain(results).collect::<Vec<_>>().into();
    asked.tools = tools.iter().map(|name| tool(name)).collect();
    for wire in wires() {
        let name = wire.provider.name();
        let words = "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. \
            Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        let refusal = (wire.refusal)(400).replace("why it is so", words);
        let first = wire.any_names.then(|| answer(400, &[], &refusal));
        let whole = format!("{}{}", wire.begun, wire.rest);
        let server = Server::start(first.clone().into_iter().chain([stream(&whole, 4096)]).collect()).await;
        let model = model_of(&wire, &server);
        model.call(asked.clone(), context()).await.unwrap();
        let sent: Vec<Value> = server.requests().iter().map(Recorded::json).collect();
        assert_eq!(sent.len(), 1 + usize::from(wire.any_names), "{name}");
        let mut found = Vec::new();
        names(sent.last().unwrap(), &mut found);
        assert!(found.iter().all(|name| is_plain(name)), "{name}: {found:?}");
        let all: BTreeSet<&String> = found.iter().collect();
        // Six tools, and three names that no tool has; names that fit stay.
        assert_eq!(all.len(), 9, "{name}: {found:?}");
        assert!(found.iter().any(|name| name == "plain-1") && found.iter().any(|name| name == "search_web"));
        let word = found.iter().find(|name| name.starts_with("functions_word_count_")).unwrap().clone();
        let chinese = found.iter().filter(|name| name.starts_with("___")).min().unwrap().clone();

        // The next call begins with what was learnt; another process makes the same names.
        let calls =
            (wire.calls)(&[(Some("c"), &word, "{}"), (Some("d"), &chinese, "{}"), (Some("e"), "new", "{}")]);
        let server = Server::start(first.into_iter().chain([stream(&calls, 4096)]).collect()).await;
        let model = model_of(&wire, &server);
        for _ in 0..2 {
            let reply = model.call(asked.clone(), context()).await.unwrap();
            let called: Vec<&str> = reply.calls.iter().map(|call| &*call.name).collect();
            assert!(called[0] == "functions.word_count" && called[2] == "new", "{name}: {called:?}");
            assert!(["查词", "词查"].contains(&called[1]), "{name}: {called:?}");
        }
        assert_eq!(server.requests().len(), 2 + usize::from(wire.any_names), "{name}");
        let mut again = Vec::new();
        names(&server.requests().last().unwrap().json(), &mut again);
        assert_eq!(again, found, "{name}");
    }
}

/// A refusal has words, or is a fault that says why: never words that nobody said.
#[tokio::test]
async fn a_refusal_without_words_is_a_fault_that_names_its_reason() {
    for wire in wires() {
        for (body, field, reason) in &wire.silent {
            let server = Server::start(vec![stream(body, 4096)]).await;
            let failed =
                model_of(&wire, &server).call(request(vec![user("x")]), context()).await.unwrap_err();
            let name = format!("{}: {failed:?}", wire.provider.name());
            let cause = failed.fault.cause.as_ref().unwrap();
            assert!(!failed.transient && failed.retry_after_ms.is_none(), "{name}");
            assert_eq!((&cause["status"], &cause[*field]), (&Value::Null, &json!(reason)), "{name}");
            assert!(cause["url"].is_string() && cause["model"] == "test-model", "{name}");
            assert!(failed.fault.message.contains(&format!("`{reason}`")), "{name}");
            assert!(!failed.fault.message.contains("400"), "{name}");
            assert_eq!(server.requests().len(), 1, "{name}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_ends_before_the_model_does_says_so() {
    for wire in wires() {
        let name = wire.provider.name();
        let asked = |body: String| {
            let wire = &wire;
            async move {
                let server = Server::start(vec![stream(&body, 4096)]).await;
                model_of(wire, &server).call(request(vec![user("x")]), context()).await.unwrap()
            }
        };
        for (end, cut) in &wire.cuts {
            let reply = asked(format!("{}{end}", wire.begun)).await;
            assert_eq!((reply.text.as_str(), reply.cut), ("half", Some(*cut)), "{name}: {reply:?}");
        }
        assert_eq!(asked(format!("{}{}", wire.begun, wire.rest)).await.cut, None, "{name}");
    }
}

/// P-26: what a provider has no word for is not sent, and can be told before.
#[tokio::test]
async fn settings_that_a_provider_does_not_know_are_told_and_not_sent() {
    let settings = ModelSettings {
        seed: Some(7),
        stop: vec!["END".to_owned()],
        extra: [("enable_thinking".to_owned(), Value::Bool(true))].into_iter().collect(),
        ..ModelSettings::default()
    };
    for wire in wires() {
        let name = wire.provider.name();
        let server = Server::start(vec![stream(&format!("{}{}", wire.begun, wire.rest), 4096)]).await;
        let model = model_of(&wire, &server);
        assert_eq!(model.unsent(&settings), wire.unsent, "{name}");
        assert!(model.unsent(&ModelSettings::default()).is_empty(), "{name}");
        let asked = selvedge_engine::ModelRequest { settings: settings.clone(), ..request(vec![user("x")]) };
        model.call(asked, context()).await.unwrap();
        let sent = server.requests()[0].json().to_string();
        for (setting, word) in [("seed", "\"seed\""), ("stop", "END"), ("enable_thinking", "enable_thinking")]
        {
            assert_eq!(sent.contains(word), !wire.unsent.contains(&setting), "{name} {setting}: {sent}");
        }
    }
}
