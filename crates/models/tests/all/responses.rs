//! What OpenAI's responses are sent, and what they send (E-10, E-20, E-23, E-26, E-33).

use crate::support::wires::responses::{event, function, message, response, start};
use crate::support::*;
use selvedge_engine::{Cut, Failure, Message, ModelReply, ModelSettings, ReplySchema, Role, ToolCall};
use selvedge_models::{Endpoint, Provider, ProviderConfig};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::sync::Arc;

fn responses(server: &Server) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(Provider::OpenAiResponses, "gpt-5").at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
    })
}

async fn asked(steps: Vec<Step>) -> Result<ModelReply, Failure> {
    let server = Server::start(vec![steps]).await;
    responses(&server).call(request(vec![user("hello")]), context()).await
}

fn completed(output: &Value) -> String {
    event("response.completed", &json!({"response": response("completed", output)}))
}

fn ok() -> Vec<Step> {
    stream(&completed(&json!([message("ok")])), 4096)
}

fn calling(text: &str, calls: &[ToolCall]) -> Arc<Message> {
    Arc::new(Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, text) })
}

#[tokio::test]
async fn a_request_has_the_thread_the_tools_and_nothing_else() {
    let server = Server::start(vec![ok()]).await;
    let first = call("c1", "search", json!({"q": "ä \"x\"", "a": [1, 2.5, null]}));
    let broken = call(&"long/".repeat(20), "search", Value::String("{not json".to_owned()));
    let mut asked = request(vec![
        Arc::new(Message::text(Role::System, "be brief")),
        user("two\nlines \u{1F980} \u{0}"),
        user("two\nlines \u{1F980} \u{0}"),
        calling("", &[first.clone(), broken.clone()]),
        Arc::new(Message::tool(&first, "{\"r\":1}")),
        Arc::new(Message::tool(&broken, "")),
        Arc::new(Message::text(Role::System, "in between")),
        Arc::new(Message::text(Role::Assistant, "done")),
    ]);
    asked.tools = vec![tool("search")];
    asked.settings = ModelSettings { seed: None, stop: Vec::new(), ..settings() };
    asked.schema = Some(ReplySchema { name: "node 1/ü".into(), schema: json!({"type": "object"}) });
    let model = responses(&server);
    model.call(asked, context()).await.unwrap();

    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /v1/responses HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let body = sent.json();
    let short = body["input"][4]["call_id"].as_str().unwrap();
    assert!(short.starts_with("call_") && short.len() == 45, "{short}");
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": text});
    assert_eq!(
        body,
        json!({
            "model": "gpt-5",
            "input": [
                said("system", "be brief"),
                said("user", "two\nlines \u{1F980} \u{0}"),
                said("user", "two\nlines \u{1F980} \u{0}"),
                {"type": "function_call", "call_id": "c1", "name": "search",
                 "arguments": "{\"q\":\"ä \\\"x\\\"\",\"a\":[1,2.5,null]}"},
                {"type": "function_call", "call_id": short, "name": "search", "arguments": "{not json"},
                {"type": "function_call_output", "call_id": "c1", "output": "{\"r\":1}"},
                {"type": "function_call_output", "call_id": short, "output": ""},
                said("system", "in between"),
                said("assistant", "done"),
            ],
            "tools": [{"type": "function", "name": "search", "description": "Looks things up.",
                "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}, "strict": false}],
            "text": {"format": {"type": "json_schema", "name": "node_1__",
                "schema": {"type": "object"}, "strict": false}},
            "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 77,
            "store": false, "stream": true,
        })
    );
}

#[tokio::test]
async fn nothing_that_was_not_asked_for_is_sent() {
    let server = Server::start(vec![ok()]).await;
    responses(&server).call(request(vec![user("hi")]), context()).await.unwrap();
    assert_eq!(
        server.requests()[0].json(),
        json!({"model": "gpt-5", "input": [{"type": "message", "role": "user", "content": "hi"}],
            "store": false, "stream": true})
    );
}

/// A setting that a model does not take is the user's to change: nothing is left out behind their back.
#[tokio::test]
async fn a_refused_setting_is_a_fault_that_names_it() {
    let words = "Unsupported parameter: 'temperature' is not supported with this model.";
    let body = json!({"error": {"message": words, "type": "invalid_request_error", "param": "temperature", "code": null}});
    let server = Server::start(vec![answer(400, &[], &body.to_string())]).await;
    let mut asked = request(vec![user("hi")]);
    asked.settings.temperature = Some(0.0);
    let failed = responses(&server).call(asked, context()).await.unwrap_err();
    assert!(!failed.transient && failed.fault.message.contains(words.trim_end_matches('.')), "{failed:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_asked_for_one_body() {
    let refusal = json!({"error": {"message": "'stream' is not supported", "param": "stream"}}).to_string();
    let whole = response("completed", &json!([message("ok")])).to_string();
    let server = Server::start(vec![answer(400, &[], &refusal), json(&whole)]).await;
    let model = responses(&server);
    for _ in 0..2 {
        assert_eq!(model.call(request(vec![user("hi")]), context()).await.unwrap().text, "ok");
    }
    let streams: Vec<Value> = server.requests().iter().map(|sent| sent.json()["stream"].clone()).collect();
    assert_eq!(streams, [true, false, false]);
}

#[tokio::test]
async fn a_stream_may_be_its_last_event_alone() {
    let calls = [function(0, &(Some("c1"), "now", "{}")), function(1, &(None, "search", "{\"q\":"))];
    let output = json!([{"type": "reasoning", "id": "rs", "summary": []}, message("Hi"), calls[0], calls[1]]);
    for body in [completed(&output), start() + &completed(&output)] {
        let server = Server::start(vec![stream(&body, 64)]).await;
        let (context, heard) = listening();
        let reply = responses(&server).call(request(vec![user("hi")]), context).await.unwrap();
        assert_eq!(reply.text, "Hi");
        assert_eq!(reply.calls, [call("c1", "now", json!({})), call("", "search", json!("{\"q\":"))]);
        assert_eq!((reply.tokens.output, reply.tokens.reasoning), (500, 200));
        assert_eq!(*heard.lock().unwrap(), ["Hi"]);
    }
}

/// Names of events may be missing: their data says it too.
#[tokio::test]
async fn events_without_names_are_read() {
    let delta =
        event("response.output_text.delta", &json!({"output_index": 0, "content_index": 0, "delta": "Hi"}));
    let body = (start() + &delta + &completed(&json!([]))).replace("event: ", ": ");
    assert_eq!(asked(stream(&body, 64)).await.unwrap().text, "Hi");
}

#[tokio::test]
async fn refusals_cuts_and_blocks_say_what_they_are() {
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't help."}]}]);
    assert_eq!(asked(stream(&completed(&refusal), 4096)).await.unwrap().text, "I can't help.");
    let cut = |reason: &str, output: Value| {
        let mut response = response("incomplete", &output);
        response["incomplete_details"] = json!({"reason": reason});
        stream(&event("response.incomplete", &json!({"response": response})), 4096)
    };
    let reply = asked(cut("max_output_tokens", json!([message("half")]))).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("half", Some("max_output_tokens")));
    // All of the limit went into reasoning: an empty reply (E-27).
    let empty = asked(cut("max_output_tokens", json!([]))).await.unwrap();
    assert_eq!((empty.text.as_str(), empty.stop.as_deref()), ("", Some("max_output_tokens")));
    let failed = asked(cut("content_filter", json!([]))).await.unwrap_err();
    assert!(
        !failed.transient
            && failed.fault.message.contains("withheld the reply (stop reason `content_filter`)"),
        "{failed:?}"
    );
}

/// E-10: a server may say that a call was cut, and of the response that it is whole.
#[tokio::test]
async fn a_call_that_is_incomplete_is_not_whole() {
    for (arguments, kept) in [("", ""), (r#"{"path":"/"}"#, r#"{"path":"/"}"#)] {
        let mut item = function(0, &(Some("c1"), "wipe", arguments));
        item["status"] = json!("incomplete");
        let other = function(1, &(Some("c2"), "now", ""));
        let whole = response("completed", &json!([item, other]));
        let reply = asked(json(&whole.to_string())).await.unwrap();
        assert_eq!((reply.stop.as_deref(), reply.cut), (Some("incomplete"), Some(Cut::Limit)));
        assert_eq!(reply.calls, [call("c1", "wipe", json!(kept)), call("c2", "now", json!(""))]);
    }
}
