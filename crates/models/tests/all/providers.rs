//! What holds for every provider, over a real socket (E-10, E-14, E-20, E-28, C-01, C-03, C-06).

use crate::support::wires::{RawCall, Wire, wires};
use crate::support::*;
use selvedge_engine::{Failure, FaultKind, ModelReply};
use selvedge_http::{Http, Secret};
use selvedge_models::{Endpoint, Price, ProviderConfig, list_models};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn model_of(wire: &Wire, server: &Server, change: impl FnOnce(&mut ProviderConfig)) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(wire.provider, "test-model").at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
        change(config);
    })
}

async fn asked(wire: &Wire, steps: Vec<Step>) -> Result<ModelReply, Failure> {
    let server = Server::start(vec![steps]).await;
    model_of(wire, &server, |_| {}).call(request(vec![user("hello")]), context()).await
}

async fn failed(wire: &Wire, steps: Vec<Step>) -> Failure {
    let reply = asked(wire, steps).await;
    reply.expect_err(&format!("a failure of {}", wire.provider.name()))
}

fn cause(failure: &Failure, field: &str) -> Value {
    failure.fault.cause.as_ref().map_or(Value::Null, |cause| cause[field].clone())
}

#[tokio::test]
async fn a_reply_is_the_same_streamed_or_whole() {
    for wire in wires() {
        let name = wire.provider.name();
        let whole = format!("{}{}", wire.begun, wire.rest);
        let mut answers: Vec<Vec<Step>> = [1, 7, 4096].iter().map(|piece| stream(&whole, *piece)).collect();
        answers.push(stream(&whole.replace('\n', "\r\n"), 3));
        answers.push(stream(&format!(": comment\n\n{whole}"), 100));
        answers.push(json(&wire.body));
        // Blanks before a body keep some connections open; the content type may be wrong.
        answers.push(answer(200, &[("content-type", "text/event-stream")], &format!("\n \n{}", wire.body)));
        for steps in answers {
            let server = Server::start(vec![steps]).await;
            let (context, heard) = listening();
            let price =
                Price { input_per_mtok: 10.0, output_per_mtok: 2.0, cached_input_per_mtok: Some(1.0) };
            let model = model_of(&wire, &server, |config| config.price = Some(price));
            let reply = model.call(request(vec![user("hello")]), context).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("half", Some(wire.stop)), "{name}");
            let (fresh, cached) = (wire.tokens.input - wire.tokens.cached, wire.tokens.cached);
            let cost = (fresh as f64 * 10.0 + cached as f64 + wire.tokens.output as f64 * 2.0) / 1e6;
            let tokens = selvedge_engine::Tokens { cost: reply.tokens.cost, ..wire.tokens };
            assert_eq!(reply.tokens, tokens, "{name}");
            assert!((reply.tokens.cost - cost).abs() < 1e-12, "{name}: {}", reply.tokens.cost);
            assert!(reply.calls.is_empty(), "{name}");
            assert_eq!(heard.lock().unwrap().concat(), "half", "{name}");
            let sent = &server.requests()[0];
            assert_eq!(
                (sent.line.as_str(), sent.header(wire.key.0)),
                (wire.line, Some(&*wire.key.1)),
                "{name}"
            );
            assert_eq!(sent.header("idempotency-key"), Some("r1/main/n1/1/1"), "{name}");
        }
    }
}

#[tokio::test]
async fn statuses_are_sorted_into_those_that_pass_and_those_that_stay() {
    for wire in wires() {
        for (status, passes) in [
            (301, false),
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (408, true),
            (409, true),
            (413, false),
            (429, true),
            (500, true),
            (503, true),
            (529, true),
        ] {
            let name = format!("{} {status}", wire.provider.name());
            let moved = [("location", "http://127.0.0.1:1/elsewhere")];
            let headers = if status == 301 { &moved[..] } else { &[] };
            let server = Server::start(vec![answer(status, headers, &(wire.refusal)(status))]).await;
            let model = model_of(&wire, &server, |_| {});
            let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
            assert_eq!((failed.transient, failed.fault.kind), (passes, FaultKind::ProviderError), "{name}");
            assert_eq!(cause(&failed, "status"), json!(status), "{name}");
            let message = &failed.fault.message;
            assert!(message.contains("why it is so"), "{name}: {message}");
            assert_eq!(server.requests().len(), 1, "{name}");
            match status {
                // C-03's exit code 4 needs to say where the key comes from.
                401 | 403 => assert!(message.contains(wire.provider.key_variable().unwrap()), "{message}"),
                404 => assert!(message.contains("test-model"), "{message}"),
                301 => assert!(message.contains("redirects to http://127.0.0.1:1/elsewhere"), "{message}"),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn retry_after_is_kept_and_ends_the_attempts_when_it_is_too_long() {
    for wire in wires() {
        for (header, wait, passes) in
            [("7", Some(7000), true), ("60", Some(60_000), true), ("61", Some(61_000), false)]
        {
            for status in [429, 503] {
                let steps = answer(status, &[("retry-after", header)], &(wire.refusal)(status));
                let failed = failed(&wire, steps).await;
                let name = format!("{} {status} {header}", wire.provider.name());
                assert_eq!((failed.transient, failed.retry_after_ms), (passes, wait), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn errors_inside_a_stream_keep_their_status_and_wait() {
    for wire in wires() {
        assert!(wire.errors.iter().any(|error| error.passes), "{}", wire.provider.name());
        for error in &wire.errors {
            for before in ["", &wire.begun] {
                let failed = failed(&wire, stream(&format!("{before}{}", error.event), 4096)).await;
                let name = format!("{}: {} → {failed:?}", wire.provider.name(), error.event);
                assert_eq!(failed.transient, error.passes, "{name}");
                assert_eq!(cause(&failed, "status"), json!(error.status), "{name}");
                assert_eq!(failed.retry_after_ms, error.wait_ms, "{name}");
                assert_eq!(failed.fault.kind, FaultKind::ProviderError, "{name}");
            }
        }
        // The error may also be all there is, with status 200.
        let error = &wire.errors[0];
        let body = error.event.split_once("data: ").unwrap().1.trim();
        let failed = failed(&wire, json(body)).await;
        assert_eq!(
            (failed.transient, cause(&failed, "status")),
            (error.passes, json!(error.status)),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn broken_replies_count_as_connection_faults() {
    for wire in wires() {
        let begun = &wire.begun;
        let cut_body = &wire.body[..wire.body.len() / 2];
        let cases = [
            ("reset at once", vec![Step::Reset]),
            ("closed at once", vec![Step::Close]),
            ("reset in the middle", cut(begun, Step::Reset)),
            ("closed in the middle", cut(begun, Step::Close)),
            ("ended early", stream(begun, 4096)),
            ("half an event", stream(&format!("{begun}{}", &wire.more[..wire.more.len() / 2]), 4096)),
            ("malformed event", stream(&format!("{begun}{}{}", wire.malformed, wire.rest), 4096)),
            ("nothing but a comment", stream(": hello\n\n", 4096)),
            ("empty stream", stream("", 4096)),
            ("empty body", json("")),
            ("blank body", json(" \n ")),
            ("another object", json("{}")),
            ("cut body", json(cut_body)),
            (
                "a page",
                answer(200, &[("content-type", "text/html")], "<!doctype html><title>Sign in</title>"),
            ),
            ("not HTTP", vec![Step::Bytes(b"hello there\r\n\r\n".to_vec()), Step::Close]),
        ];
        for (case, steps) in cases {
            let failed = failed(&wire, steps).await;
            let name = format!("{} {case}: {failed:?}", wire.provider.name());
            assert!(failed.transient && failed.fault.kind == FaultKind::ProviderError, "{name}");
        }
    }
}

#[tokio::test]
async fn limits_of_time_and_size_name_their_settings() {
    for wire in wires() {
        let name = wire.provider.name();
        let comment = || chunk(b": still here\n\n");
        let drip: Vec<Step> = (0..60).flat_map(|_| [comment(), Step::Pause(20)]).collect();
        let late = [
            ("never answers", vec![Step::Hang]),
            ("never begins", vec![stream_head(), comment(), Step::Hang]),
            ("only drips", [vec![stream_head()], drip].concat()),
        ];
        for (case, steps) in late {
            let server = Server::start(vec![steps]).await;
            let model = model_of(&wire, &server, |config| {
                config.limits.first_token_timeout = Duration::from_millis(120);
            });
            let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
            assert!(failed.transient && failed.fault.kind == FaultKind::Timeout, "{name} {case}: {failed:?}");
            assert!(
                failed.fault.message.contains("limits.first_token_timeout_s"),
                "{name} {case}: {failed:?}"
            );
        }
        let slow: Vec<Step> = (0..60).flat_map(|_| [chunk(wire.more.as_bytes()), Step::Pause(20)]).collect();
        let server =
            Server::start(vec![[vec![stream_head(), chunk(wire.begun.as_bytes())], slow].concat()]).await;
        let model =
            model_of(&wire, &server, |config| config.limits.model_timeout = Duration::from_millis(150));
        let started = Instant::now();
        let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
        assert!(
            failed.transient && failed.fault.message.contains("limits.model_timeout_s"),
            "{name}: {failed:?}"
        );
        assert!(started.elapsed() < Duration::from_secs(1), "{name}");

        let flood = format!("{}{}", wire.begun, wire.more.repeat(400));
        let long_body = wire.body.replace("half", &"half".repeat(400));
        for steps in [stream(&flood, 4096), json(&long_body)] {
            let server = Server::start(vec![steps]).await;
            let model = model_of(&wire, &server, |config| config.limits.message_bytes = 1000);
            let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
            assert!(!failed.transient && failed.fault.kind == FaultKind::LimitExceeded, "{name}: {failed:?}");
            assert!(failed.fault.message.contains("limits.message_bytes"), "{name}: {failed:?}");
        }
    }
}

/// E-10: what a provider gave is kept, so that the engine can tell a missing id from a real one.
#[tokio::test]
async fn calls_keep_their_ids_and_what_their_arguments_were() {
    for wire in wires() {
        let name = wire.provider.name();
        let mut raw: Vec<RawCall<'_>> = vec![
            (Some("c1"), "search", r#"{"q":"ä","deep":{"a":[1,null]}}"#),
            (None, "search", r#"{"q":"no id"}"#),
            (Some("c1"), "search", r#"{"q":"the first id again"}"#),
            (Some("c2"), "now", "{}"),
        ];
        let mut expected = vec![
            call("c1", "search", json!({"q": "ä", "deep": {"a": [1, null]}})),
            call("", "search", json!({"q": "no id"})),
            call("c1", "search", json!({"q": "the first id again"})),
            call("c2", "now", json!({})),
        ];
        if wire.raw_arguments {
            raw.extend([
                (Some("c3"), "cut", r#"{"q": "#),
                (Some("c4"), "list", "[1]"),
                (Some("c5"), "none", ""),
            ]);
            expected.extend([
                call("c3", "cut", json!("{\"q\": ")),
                call("c4", "list", json!("[1]")),
                call("c5", "none", json!({})),
            ]);
        }
        let reply = asked(&wire, stream(&(wire.calls)(&raw), 50)).await.unwrap();
        assert_eq!(reply.calls, expected, "{name}");
        assert_eq!(reply.text, "", "{name}");
    }
}

#[tokio::test]
async fn a_key_that_a_provider_echoes_is_redacted() {
    for wire in wires() {
        let body = (wire.refusal)(401).replace("why it is so", &format!("wrong key: {KEY}"));
        let failed = failed(&wire, answer(401, &[], &body)).await;
        let whole = serde_json::to_string(&failed).unwrap();
        assert!(!whole.contains(KEY) && whole.contains("[redacted]"), "{whole}");
        let echo = wire.body.replace("half", &format!("your key is {KEY}"));
        assert_eq!(asked(&wire, json(&echo)).await.unwrap().text, "your key is [redacted]");
        let arguments = format!(r#"{{"k":"{KEY}"}}"#);
        let reply = asked(&wire, stream(&(wire.calls)(&[(Some("c"), "t", &arguments)]), 4096)).await.unwrap();
        assert_eq!(reply.calls[0].arguments, json!({"k": "[redacted]"}));
    }
}

#[tokio::test]
async fn models_are_listed_over_all_pages_in_order() {
    let http = Http::new(|_| None);
    for wire in wires() {
        let mut answers: Vec<Vec<Step>> = wire.lists.iter().map(|(_, body)| json(body)).collect();
        answers.extend([answer(401, &[], &(wire.refusal)(401)), json("<html>")]);
        let server = Server::start(answers).await;
        let ask = || {
            let key = Some(Secret::new(KEY));
            list_models(&http, wire.provider, Some(&server.url), key, "SOME_KEY", Duration::from_secs(5))
        };
        assert_eq!(ask().await.unwrap(), ["b", "a"]);
        for (sent, (line, _)) in server.requests().iter().zip(&wire.lists) {
            assert_eq!((sent.line.as_str(), sent.header(wire.key.0)), (*line, Some(&*wire.key.1)));
        }
        let refused = ask().await.unwrap_err();
        assert!(!refused.transient && refused.fault.message.contains("SOME_KEY"), "{refused:?}");
        let page = ask().await.unwrap_err();
        assert!(page.transient && page.fault.kind == FaultKind::ProviderError, "{page:?}");
    }
}
