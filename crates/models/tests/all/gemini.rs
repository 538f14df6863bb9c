//! What Gemini is sent, and what it sends (E-10, E-14, E-20, E-23, E-26, E-30, C-03).

use crate::support::wires::data;
use crate::support::wires::gemini::{chunk_of, error, last, wait};
use crate::support::*;
use selvedge_engine::{Failure, Message, ModelReply, ReplySchema, Role, Tokens, ToolCall};
use selvedge_models::{Endpoint, Provider, ProviderConfig};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::sync::Arc;

fn gemini(server: &Server, model: &str) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(Provider::Gemini, model).at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
    })
}

async fn asked(steps: Vec<Step>) -> Result<ModelReply, Failure> {
    let server = Server::start(vec![steps]).await;
    gemini(&server, "gemini-3-pro").call(request(vec![user("hello")]), context()).await
}

fn ok() -> Vec<Step> {
    stream(&data(&last(&json!([{"text": "ok"}]), "STOP")), 4096)
}

fn says(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::text(role, text))
}

fn calling(text: &str, calls: &[ToolCall]) -> Arc<Message> {
    Arc::new(Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, text) })
}

#[tokio::test]
async fn a_request_has_the_thread_the_tools_and_nothing_else() {
    let server = Server::start(vec![ok()]).await;
    let first = call("c1", "search", json!({"q": "ä \"x\"", "a": [1, 2.5, null]}));
    let broken = call("main/n1/1/1#1", "search", Value::String("{not json".to_owned()));
    let mut asked = request(vec![
        says(Role::System, "be brief"),
        user("two\nlines \u{1F980} \u{0}"),
        user("two\nlines \u{1F980} \u{0}"),
        calling("", &[first.clone(), broken.clone()]),
        Arc::new(Message::tool(&first, "{\"r\":1}")),
        Arc::new(Message::tool(&broken, "no JSON")),
        says(Role::System, "in between"),
        says(Role::Assistant, "done"),
    ]);
    asked.tools = vec![tool("search")];
    asked.settings = settings();
    asked.schema =
        Some(ReplySchema { name: "node 1/ü".into(), schema: json!({"type": "object", "$id": "x"}) });
    let model = gemini(&server, "gemini-3-pro");
    model.call(asked, context()).await.unwrap();

    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /v1/models/gemini-3-pro:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(sent.header("x-goog-api-key"), Some(KEY));
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(
        sent.json(),
        json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "two\nlines \u{1F980} \u{0}"}]},
                {"role": "user", "parts": [{"text": "two\nlines \u{1F980} \u{0}"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"id": "c1", "name": "search", "args": {"q": "ä \"x\"", "a": [1, 2.5, null]}},
                     "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {"id": "main/n1/1/1#1", "name": "search", "args": {"arguments": "{not json"}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "search", "response": {"r": 1}}},
                    {"functionResponse": {"id": "main/n1/1/1#1", "name": "search", "response": {"result": "no JSON"}}},
                ]},
                {"role": "user", "parts": [{"text": "in between"}]},
                {"role": "model", "parts": [{"text": "done"}]},
            ],
            "tools": [{"functionDeclarations": [{
                "name": "search", "description": "Looks things up.",
                "parametersJsonSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
            }]}],
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "maxOutputTokens": 77, "seed": -3, "stopSequences": ["END"],
                "responseMimeType": "application/json", "responseJsonSchema": {"type": "object", "$id": "x"},
            },
        })
    );
}

#[tokio::test]
async fn nothing_that_was_not_asked_for_is_sent() {
    let server = Server::start(vec![ok()]).await;
    let model = model_with(&server, |config| {
        let own = ProviderConfig::new(Provider::Gemini, "models/gemini-2.5-flash").at(server.url.clone());
        *config = ProviderConfig { limits: config.limits, ..own };
    });
    // A conclusion without tools over a thread with calls (E-30, P-15).
    let one = call("c1", "search", json!({}));
    let thread = vec![user("hi"), calling("", std::slice::from_ref(&one)), Arc::new(Message::tool(&one, ""))];
    model.call(request(thread), context()).await.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(sent.header("x-goog-api-key"), None);
    assert_eq!(
        sent.json(),
        json!({"contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "search", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "search", "response": {"result": ""}}}]},
        ]})
    );
}

#[tokio::test]
async fn what_a_model_refuses_is_asked_once_more_without_it_and_remembered() {
    let words = "Function calling with a response mime type: 'application/json' is unsupported";
    let refusal = answer(400, &[], &error(400, "INVALID_ARGUMENT", words, &Value::Null).to_string());
    let server = Server::start(vec![refusal, ok()]).await;
    let model = gemini(&server, "gemini-2.5-pro");
    let mut asked = request(vec![user("hi")]);
    asked.tools = vec![tool("search")];
    asked.schema = Some(ReplySchema { name: "n".into(), schema: json!({"type": "object"}) });
    for _ in 0..2 {
        assert_eq!(model.call(asked.clone(), context()).await.unwrap().text, "ok");
    }
    // The model is told the schema instead; without tools it gets the schema itself (E-33).
    asked.tools.clear();
    model.call(asked.clone(), context()).await.unwrap();
    let sent: Vec<Value> = server.requests().iter().map(Recorded::json).collect();
    let shaped: Vec<bool> = sent.iter().map(|sent| sent.get("generationConfig").is_some()).collect();
    assert_eq!(shaped, [true, false, false, true]);
    let told = |number: usize| sent[number]["systemInstruction"]["parts"][0]["text"].to_string();
    assert!(told(1).contains("JSON Schema: {\\\"type\\\":\\\"object\\\"}"), "{}", told(1));
    assert_eq!((told(0), told(3), told(1)), ("null".to_owned(), "null".to_owned(), told(2)));

    let words = "Function call is missing a thought_signature in functionCall parts.";
    let refusal = answer(400, &[], &error(400, "INVALID_ARGUMENT", words, &Value::Null).to_string());
    let server = Server::start(vec![refusal, ok()]).await;
    let one = call("c1", "search", json!({}));
    let thread = vec![user("hi"), calling("", std::slice::from_ref(&one)), Arc::new(Message::tool(&one, ""))];
    gemini(&server, "gemini-2-but-newer").call(request(thread), context()).await.unwrap();
    let signature = |number: usize| {
        server.requests()[number].json()["contents"][1]["parts"][0]["thoughtSignature"].clone()
    };
    assert_eq!((signature(0), signature(1)), (Value::Null, json!("skip_thought_signature_validator")));
}

/// A stream as it is recorded: thoughts, text, calls with and without ids, usage that grows.
#[tokio::test]
async fn a_recorded_stream_is_read() {
    let events = [
        json!({"candidates": [{"content": {"parts": [{"text": "**Plan**\n", "thought": true}], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 20, "totalTokenCount": 60, "thoughtsTokenCount": 40}}),
        chunk_of(&json!([{"text": "Grüße, "}])),
        chunk_of(
            &json!([{"text": "\u{1F980}"}, {"text": " Welt"}, {"functionCall": {"name": "now", "args": {}}, "thoughtSignature": "EqQ="}]),
        ),
        chunk_of(&json!([{"functionCall": {"id": "fc-1", "name": "search", "args": {"q": "x"}}}])),
        json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0, "safetyRatings": []}],
            "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 15, "totalTokenCount": 75, "thoughtsTokenCount": 40,
                "cachedContentTokenCount": 8, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}]},
            "modelVersion": "gemini-3-pro", "responseId": "r"}),
    ];
    let body: String = events.iter().map(data).collect();
    let body = body.replace('\n', "\r\n");
    for piece in [1, 5, 4096] {
        let server = Server::start(vec![stream(&body, piece)]).await;
        let (context, heard) = listening();
        let reply = gemini(&server, "gemini-3-pro").call(request(vec![user("hi")]), context).await.unwrap();
        assert_eq!(reply.text, "Grüße, \u{1F980} Welt");
        assert_eq!(reply.calls, [call("", "now", json!({})), call("fc-1", "search", json!({"q": "x"}))]);
        assert_eq!(reply.tokens, Tokens { input: 20, output: 55, cached: 8, reasoning: 40, cost: 0.0 });
        assert_eq!(*heard.lock().unwrap(), ["Grüße, ", "\u{1F980} Welt"]);
    }
    // A server that streams one JSON array, for lack of `alt=sse`.
    let list = json!(events).to_string();
    assert_eq!(asked(json(&list)).await.unwrap().calls.len(), 2);
}

#[tokio::test]
async fn the_wait_of_a_refusal_is_in_its_details() {
    let refused = |details: Value, headers: &'static [(&str, &str)], list: bool| async move {
        let body = error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", &details);
        let body = if list { json!([body]) } else { body };
        asked(answer(429, headers, &body.to_string())).await.unwrap_err()
    };
    for list in [false, true] {
        let failed = refused(wait("17s"), &[], list).await;
        assert_eq!((failed.transient, failed.retry_after_ms), (true, Some(17_000)), "{failed:?}");
        let message = &failed.fault.message;
        assert!(message.ends_with(": You exceeded your current quota"), "{message}");
    }
    assert_eq!(refused(wait("0.847655010s"), &[], false).await.retry_after_ms, Some(847));
    assert_eq!(refused(wait("soon"), &[], false).await.retry_after_ms, None);
    assert!(!refused(wait("61s"), &[], false).await.transient);
    // A header is the protocol's own word.
    let failed = refused(wait("17s"), &[("retry-after", "2")], false).await;
    assert_eq!(failed.retry_after_ms, Some(2000));
}

#[tokio::test]
async fn a_wrong_key_is_a_matter_of_the_environment() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let body = error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", &details);
    let failed = asked(answer(400, &[], &body.to_string())).await.unwrap_err();
    assert!(!failed.transient && failed.fault.message.contains("GEMINI_API_KEY"), "{failed:?}");
    // The message and the status are Google's own; `means` is what they stand for (C-03).
    let cause = failed.fault.cause.unwrap();
    assert_eq!((&cause["status"], &cause["means"]), (&json!(400), &json!(401)));
    assert!(
        failed.fault.message.contains("answered 400 Bad Request: API key not valid. "),
        "{}",
        failed.fault.message
    );
    assert!(
        failed.fault.message.ends_with("API key. Check the key in GEMINI_API_KEY"),
        "{}",
        failed.fault.message
    );
}

#[tokio::test]
async fn a_block_without_text_is_a_fault_that_says_so() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}});
    for steps in [stream(&data(&blocked), 4096), json(&blocked.to_string())] {
        let failed = asked(steps).await.unwrap_err();
        assert!(!failed.transient, "{failed:?}");
        assert!(
            failed.fault.message.contains("blocked the prompt (blockReason `PROHIBITED_CONTENT`)"),
            "{failed:?}"
        );
    }
    let failed = asked(stream(&data(&last(&json!([]), "SAFETY")), 4096)).await.unwrap_err();
    assert!(
        !failed.transient && failed.fault.message.contains("withheld the reply (finishReason `SAFETY`)"),
        "{failed:?}"
    );
    let failed = asked(stream(&data(&last(&json!([]), "MALFORMED_FUNCTION_CALL")), 4096)).await.unwrap_err();
    assert!(failed.transient && failed.fault.message.contains("MALFORMED_FUNCTION_CALL"), "{failed:?}");
    // What came before it is a reply that says why it ends.
    let half = data(&chunk_of(&json!([{"text": "half"}]))) + &data(&last(&json!([]), "SAFETY"));
    let reply = asked(stream(&half, 4096)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("half", Some("SAFETY")));
    // All of the limit went into thoughts: an empty reply (E-27).
    let empty = asked(stream(&data(&last(&json!([]), "MAX_TOKENS")), 4096)).await.unwrap();
    assert_eq!((empty.text.as_str(), empty.stop.as_deref()), ("", Some("MAX_TOKENS")));
}

/// An empty text is refused: "required oneof field 'data' must have one initialized field".
#[tokio::test]
async fn no_text_is_empty() {
    let server = Server::start(vec![ok()]).await;
    let thread =
        vec![says(Role::System, ""), user(""), says(Role::Assistant, ""), says(Role::System, ""), user("hi")];
    gemini(&server, "gemini-3-pro").call(request(thread), context()).await.unwrap();
    let space = |role: &str| json!({"role": role, "parts": [{"text": " "}]});
    assert_eq!(
        server.requests()[0].json(),
        json!({"contents": [space("user"), space("model"), space("user"),
            {"role": "user", "parts": [{"text": "hi"}]}]})
    );
}
