//! Characters, keys and figures that come in pieces, with every provider, over a real socket (E-10, E-15, E-20, E-27, C-06).

use crate::support::wires::{Wire, wires};
use crate::support::*;
use selvedge_engine::Tokens;
use selvedge_models::{Endpoint, Price, ProviderConfig};
use selvedge_runtime::ports::Model;
use serde_json::json;

fn model_of(wire: &Wire, server: &Server) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(wire.provider, "test-model").at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
    })
}

/// A stream in which this piece of the text comes in the place of the usual one, and then that one.
fn pieces(wire: &Wire, texts: &[&str]) -> String {
    let events: String = texts.iter().map(|text| wire.more.replace("half", text)).collect();
    format!("{}{events}{}", wire.begun, wire.rest)
}

/// The other forms in which responses come again say the same as the pieces.
async fn reply_to(wire: &Wire, body: &[u8], piece: usize) -> (selvedge_engine::ModelReply, String) {
    let mut steps = vec![stream_head()];
    steps.extend(body.chunks(piece).map(chunk));
    steps.push(stream_end());
    let server = Server::start(vec![steps]).await;
    let (context, heard) = listening();
    let reply = model_of(wire, &server).call(request(vec![user("x")]), context).await.unwrap();
    let heard = heard.lock().unwrap().concat();
    assert_eq!(server.requests().len(), 1, "nothing is asked again: {}", wire.provider.name());
    (reply, heard)
}

/// E-27: a server that cuts its text anywhere writes one half of a character in one event and the other in the next.
#[tokio::test]
async fn halves_of_a_character_in_neighbouring_events_are_joined() {
    for wire in wires() {
        let name = wire.provider.name();
        let body = pieces(&wire, &["a\\ud83d", "\\ude00b\\ud83e", "\\udd80"]);
        for size in [1, 7, 4096] {
            let (reply, heard) = reply_to(&wire, body.as_bytes(), size).await;
            assert!(heard.ends_with("a😀b🦀") && !heard.contains('\u{fffd}'), "{name}: {heard:?}");
            assert_eq!(reply.unmended, 0, "{name}");
            if name != "openai-responses" {
                assert!(reply.text.ends_with("a😀b🦀"), "{name}: {:?}", reply.text);
            }
        }
    }
}

/// E-27: what is no half of anything is U+FFFD and counted; nothing is asked again for it.
#[tokio::test]
async fn what_can_not_be_joined_is_counted() {
    for wire in wires() {
        let name = wire.provider.name();
        let body = pieces(&wire, &["a\\ud83dx", "\\ude00"]);
        let (reply, heard) = reply_to(&wire, body.as_bytes(), 4096).await;
        assert!(heard.ends_with("a\u{fffd}x\u{fffd}"), "{name}: {heard:?}");
        if name != "openai-responses" {
            assert!(reply.text.ends_with("a\u{fffd}x\u{fffd}"), "{name}: {:?}", reply.text);
            assert_eq!(reply.unmended, 2, "{name}");
        }
    }
}

/// The bytes of a character may come in two chunks, and in two events, and may be none of a character.
#[tokio::test]
async fn bytes_of_a_character_are_joined() {
    for wire in wires() {
        let name = wire.provider.name();
        let whole = pieces(&wire, &["a€b😀"]);
        for size in 1..5 {
            let (reply, heard) = reply_to(&wire, whole.as_bytes(), size).await;
            assert!(heard.ends_with("a€b😀") && reply.unmended == 0, "{name}: {heard:?}");
        }
        let two = pieces(&wire, &["a<>", "<>b"]).into_bytes();
        let mut halves = [&b"\xe2\x82"[..], b"\xac"].into_iter();
        let mut body = Vec::new();
        let mut rest = &two[..];
        while let Some(at) = rest.windows(2).position(|two| two == b"<>") {
            body.extend_from_slice(&rest[..at]);
            body.extend_from_slice(halves.next().unwrap_or(b"\xff"));
            rest = &rest[at + 2..];
        }
        body.extend_from_slice(rest);
        for size in [1, 4096] {
            let (_, heard) = reply_to(&wire, &body, size).await;
            assert!(heard.ends_with("a€b"), "{name}: {heard:?}");
        }
        let lost: Vec<u8> = pieces(&wire, &["a<"]).into_bytes();
        let lost: Vec<u8> = lost.into_iter().map(|byte| if byte == b'<' { 0xff } else { byte }).collect();
        let (_, heard) = reply_to(&wire, &lost, 3).await;
        assert!(heard.ends_with("a\u{fffd}"), "{name}: {heard:?}");
    }
}

/// E-10: arguments are JSON in text: either of the two may cut a character.
#[tokio::test]
async fn halves_in_arguments_are_joined() {
    for wire in wires() {
        let name = wire.provider.name();
        // `calls` cuts arguments in the middle, which is made the middle of an escape of the stream's own.
        for (arguments, is, lost) in [
            (r#"{"a":"x\ud83dHERE\ude00y"}"#, "x😀y", 0),
            (r#"{"a":"x\ud83dHERE.\ude00"}"#, "x\u{fffd}.\u{fffd}", 2),
        ] {
            let (before, after) = arguments.split_once("HERE").unwrap();
            let body = (wire.calls)(&[(Some("c"), "look", r#"{"a":"1"}"#)]);
            // As the events have them: once more within a text of JSON, the surrogates as those of the stream.
            let quoted = |text: &str| {
                let text = serde_json::to_string(text).unwrap();
                text[1..text.len() - 1].replace("\\\\u", "\\u")
            };
            let whole = quoted(r#"{"a":"1"}"#);
            let middle = r#"{"a":"1"}"#.len() / 2;
            let (first, second) = r#"{"a":"1"}"#.split_at(middle);
            let body = match wire.raw_arguments {
                true if body.contains(&quoted(first)) && !body.contains(&format!("\"{whole}\"")) => body
                    .replace(&format!("\"{}\"", quoted(first)), &format!("\"{}\"", quoted(before)))
                    .replace(&format!("\"{}\"", quoted(second)), &format!("\"{}\"", quoted(after))),
                _ => continue,
            };
            let (reply, _) = reply_to(&wire, body.as_bytes(), 5).await;
            assert_eq!(reply.calls[0].arguments, json!({"a": is}), "{name}: {body}");
            assert_eq!(reply.unmended, lost, "{name}");
        }
        // Escapes within the text of the arguments.
        if wire.raw_arguments {
            let body = (wire.calls)(&[(Some("c"), "look", r#"{"a":"\ud83d\ude00"}"#)]);
            let (reply, _) = reply_to(&wire, body.as_bytes(), 4096).await;
            assert_eq!((&reply.calls[0].arguments, reply.unmended), (&json!({"a": "😀"}), 0), "{name}");
            let body = (wire.calls)(&[(Some("c"), "look", r#"{"a":"\ud83d."}"#)]);
            let (reply, _) = reply_to(&wire, body.as_bytes(), 4096).await;
            assert_eq!(
                (&reply.calls[0].arguments, reply.unmended),
                (&json!({"a": "\u{fffd}."}), 1),
                "{name}"
            );
        }
    }
}

/// C-06: no piece that is heard has a part of a key that the next one ends.
#[tokio::test]
async fn a_key_in_two_events_is_heard_nowhere() {
    for wire in wires() {
        for at in 1..KEY.len() {
            let (first, second) = KEY.split_at(at);
            let (_, heard) =
                reply_to(&wire, pieces(&wire, &["key ", first, second, "!"]).as_bytes(), 4096).await;
            assert!(heard.ends_with("key [redacted]!"), "{}: {heard:?}", wire.provider.name());
        }
        // What only looks like the beginning of one is heard in the end.
        let (_, heard) = reply_to(&wire, pieces(&wire, &["sk-", "test"]).as_bytes(), 4096).await;
        assert!(heard.ends_with("sk-test"), "{}: {heard:?}", wire.provider.name());
    }
}

/// E-20: what a reply took that came to nothing is known all the same, with its price.
#[tokio::test]
async fn failed_replies_have_figures() {
    let price = Price { input_per_mtok: 1.0, output_per_mtok: 2.0, cached_input_per_mtok: None };
    for wire in wires() {
        let name = wire.provider.name();
        let usage = match name {
            "gemini" => json!({"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 5}}),
            "anthropic" | "openai-responses" => json!({"usage": {"input_tokens": 7, "output_tokens": 5}}),
            _ => json!({"usage": {"prompt_tokens": 7, "completion_tokens": 5}}),
        };
        let mut refused = usage.clone();
        refused["error"] = json!({"message": "no"});
        let mut answers = vec![
            // An error with figures, at its top and within it, and a reply that has nothing else.
            answer(500, &[], &refused.to_string()),
            answer(400, &[], &json!({"error": usage}).to_string()),
            json_answer(&usage),
        ];
        // A stream that is cut behind its figures.
        let mut partial = usage.clone();
        partial["type"] = json!(if name == "anthropic" { "message_delta" } else { "response.completed" });
        partial["delta"] = json!({});
        partial["choices"] = json!([]);
        if name != "openai-responses" {
            answers.push(cut(&format!("data: {partial}\n\n"), Step::Close));
        }
        for steps in answers {
            let server = Server::start(vec![steps.clone()]).await;
            let model = model_with(&server, |config| {
                let own = ProviderConfig::new(wire.provider, "test-model").at(server.url.clone());
                *config = ProviderConfig { limits: config.limits, price: Some(price), ..own };
            });
            let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
            let is = Tokens { input: 7, output: 5, cost: 17e-6, ..Tokens::default() };
            assert_eq!(failed.tokens, is, "{name}: {failed:?} {steps:?}");
        }
    }
}

fn json_answer(body: &serde_json::Value) -> Vec<Step> {
    json(&body.to_string())
}

/// E-20: time runs out while a reply comes.
#[tokio::test]
async fn a_reply_that_takes_too_long_has_figures() {
    let server = Server::start(vec![vec![
        stream_head(),
        chunk(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n"),
        Step::Hang,
    ]])
    .await;
    let mut asked = request(vec![user("x")]);
    asked.timeout_s = Some(0.3);
    let failed = model_with(&server, |_| {}).call(asked, context()).await.unwrap_err();
    assert_eq!((failed.tokens.input, failed.tokens.output), (9, 1), "{failed:?}");
}
