//! What providers say in different ways is told alike, and what one has no word for too (E-10, E-16, E-23, E-27, E-28, P-26,
//! C-06).

use crate::support::wires::{RawCall, Wire, wires};
use crate::support::*;
use selvedge_engine::{Cut, Message, ModelSettings, Role, ToolDef};
use selvedge_models::{Endpoint, ProviderConfig};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// E-20: a figure that is none is not taken, and said to be none; the others count.
#[tokio::test]
async fn figures_that_are_none() {
    for wire in wires() {
        for none in [json!(-5), json!(1e30), json!("many"), json!([1])] {
            let mut body: Value = serde_json::from_str(&wire.body).unwrap();
            let usage = ["usage", "usageMetadata"].into_iter().find(|name| body.get(name).is_some()).unwrap();
            let names = ["completion_tokens", "output_tokens", "candidatesTokenCount"];
            let name = names.into_iter().find(|name| body[usage].get(name).is_some()).unwrap();
            body[usage][name] = none.clone();
            let kind = [("content-type", "application/json")];
            let server = Server::start(vec![answer(200, &kind, &body.to_string())]).await;
            let reply = model_of(&wire, &server).call(request(vec![user("x")]), context()).await.unwrap();
            let name = format!("{} {none}: {reply:?}", wire.provider.name());
            assert_eq!((reply.unread.input, reply.unread.output), (false, true), "{name}");
            assert_eq!(reply.tokens.input, wire.tokens.input, "{name}");
            assert!(reply.tokens.output < wire.tokens.output, "{name}");
        }
        let server = Server::start(vec![stream(&format!("{}{}", wire.begun, wire.rest), 4096)]).await;
        let reply = model_of(&wire, &server).call(request(vec![user("x")]), context()).await.unwrap();
        assert!(reply.unread.is_empty(), "{}: {reply:?}", wire.provider.name());
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

/// A stream of calls that stopped for another reason.
fn stopped(wire: &Wire, calls: &[RawCall<'_>], reason: &str) -> String {
    let details = format!("\"incomplete_details\":{{\"reason\":\"{reason}\"}}");
    (wire.calls)(calls)
        .replace("\"finish_reason\":\"tool_calls\"", &format!("\"finish_reason\":\"{reason}\""))
        .replace("\"stop_reason\":\"tool_use\"", &format!("\"stop_reason\":\"{reason}\""))
        .replace("\"finishReason\":\"STOP\"", &format!("\"finishReason\":\"{reason}\""))
        .replace("\"incomplete_details\":null", &details)
        .replace("response.completed", "response.incomplete")
}

/// E-10, E-27: arguments that did not come are not an empty object, and what was held back is not acted on.
#[tokio::test]
async fn calls_of_a_reply_that_was_cut_do_not_become_whole() {
    for wire in wires() {
        let name = wire.provider.name();
        let nothing = if wire.raw_arguments { "" } else { "null" };
        let mut calls = vec![(Some("c1"), "search", r#"{"q":1}"#), (Some("c2"), "wipe", nothing)];
        if wire.raw_arguments {
            calls.push((Some("c3"), "wipe", r#"{"path": "/t"#));
        }
        for (reason, cut) in [
            ("length", Cut::Limit),
            ("max_tokens", Cut::Limit),
            ("MAX_TOKENS", Cut::Limit),
            ("max_output_tokens", Cut::Limit),
            ("content_filter", Cut::Withheld),
            ("refusal", Cut::Withheld),
            ("SAFETY", Cut::Withheld),
        ] {
            let server = Server::start(vec![stream(&stopped(&wire, &calls, reason), 100)]).await;
            let reply = model_of(&wire, &server).call(request(vec![user("x")]), context()).await.unwrap();
            assert_eq!((reply.stop.as_deref(), reply.cut), (Some(reason), Some(cut)), "{name}");
            let whole = if cut == Cut::Limit { json!({"q": 1}) } else { json!(r#"{"q":1}"#) };
            let arguments: Vec<&Value> = reply.calls.iter().map(|call| &call.arguments).collect();
            let expected = [whole, json!(""), json!(r#"{"path": "/t"#)];
            assert_eq!(arguments, expected.iter().take(calls.len()).collect::<Vec<_>>(), "{name} {reason}");
        }
    }
}

/// Servers read the text of arguments as JSON.
#[tokio::test]
async fn arguments_that_never_came_go_back_as_an_empty_object() {
    let called = call("c1", "wipe", json!(""));
    let message = Message { tool_calls: vec![called.clone()], ..Message::text(Role::Assistant, "") };
    let asked = request(vec![user("x"), Arc::new(message), Arc::new(Message::tool(&called, "not run"))]);
    for wire in wires() {
        let server = Server::start(vec![stream(&format!("{}{}", wire.begun, wire.rest), 4096)]).await;
        model_of(&wire, &server).call(asked.clone(), context()).await.unwrap();
        let sent = server.requests()[0].json().to_string();
        let forms = ["\"arguments\":\"{}\"", "\"input\":{}", "\"args\":{}"];
        assert!(forms.iter().any(|form| sent.contains(form)), "{}: {sent}", wire.provider.name());
    }
}

/// D-15: the shape of a tool's schema is its author's; providers refuse some.
#[tokio::test]
async fn schemas_of_tools_say_that_they_are_of_objects() {
    let schemas = [json!({"type": "object"}), json!({}), json!({"additionalProperties": false}), json!(true)];
    let mut asked = request(vec![user("x")]);
    asked.tools = schemas
        .iter()
        .enumerate()
        .map(|(at, schema)| {
            Arc::new(ToolDef { input_schema: schema.clone(), ..ToolDef::clone(&tool(&format!("t{at}"))) })
        })
        .collect();
    let places = ["/tools/N/function/parameters", "/tools/N/parameters", "/tools/N/input_schema"];
    for wire in wires() {
        let server = Server::start(vec![stream(&format!("{}{}", wire.begun, wire.rest), 4096)]).await;
        model_of(&wire, &server).call(asked.clone(), context()).await.unwrap();
        let sent = server.requests()[0].json();
        for (at, schema) in schemas.iter().enumerate() {
            let at = |place: &&str| sent.pointer(&place.replace('N', &at.to_string())).cloned();
            // Gemini takes JSON Schema as it is.
            let Some(found) = places.iter().find_map(at) else { continue };
            let mut expected = json!({"type": "object", "properties": {}});
            for (key, value) in schema.as_object().into_iter().flatten() {
                expected[key] = value.clone();
            }
            assert_eq!(found, expected, "{}", wire.provider.name());
        }
    }
}

/// C-06: every text of a reply may have the key.
#[tokio::test]
async fn a_key_in_a_stop_reason_or_a_name_is_redacted() {
    for wire in wires() {
        let arguments = format!(r#"{{"{KEY}":1}}"#);
        let calls = [(Some(KEY), KEY, &*arguments)];
        let server = Server::start(vec![stream(&stopped(&wire, &calls, KEY), 4096)]).await;
        let reply = model_of(&wire, &server).call(request(vec![user("x")]), context()).await.unwrap();
        let name = wire.provider.name();
        assert_eq!(reply.stop.as_deref(), Some("[redacted]"), "{name}");
        let whole = serde_json::to_string(&reply).unwrap();
        assert!(!whole.contains(KEY) && !format!("{reply:?}").contains(KEY), "{name}: {whole}");
    }
}

/// E-28: a reply that is whole is not lost to the limit of time, and not kept waiting for what need not come.
#[tokio::test]
async fn a_stream_that_stays_open_after_its_stop_does_not_lose_the_reply() {
    let waits = [(300, 1000), (20_000, 5000)]
        .into_iter()
        .flat_map(|limit| wires().into_iter().map(move |wire| (limit, wire)));
    let all = waits.filter(|(_, wire)| wire.stop != "completed").map(|((limit, most), wire)| async move {
        let rest = wire.rest.split("data: [DONE]").next().unwrap();
        let rest = rest.split("event: message_stop").next().unwrap();
        let comments = (0..90).flat_map(|_| [chunk(b": still here\n\n"), Step::Pause(100)]);
        let begun = [stream_head(), chunk(format!("{}{rest}", wire.begun).as_bytes())];
        let server = Server::start(vec![begun.into_iter().chain(comments).collect()]).await;
        let model = model_with(&server, |config| {
            let own = ProviderConfig::new(wire.provider, "test-model").at(server.url.clone());
            *config = ProviderConfig { limits: config.limits, ..own };
            config.limits.model_timeout = Duration::from_millis(limit);
        });
        let started = Instant::now();
        let reply = model.call(request(vec![user("x")]), context()).await.unwrap();
        let name = wire.provider.name();
        assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("half", Some(wire.stop)), "{name}");
        assert_eq!(reply.tokens, wire.tokens, "{name}");
        assert!(started.elapsed() < Duration::from_millis(most), "{name} {:?}", started.elapsed());
    });
    futures_util::future::join_all(all).await;
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
