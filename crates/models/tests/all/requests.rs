//! What an OpenAI-compatible endpoint is sent (E-05, E-23, E-26, E-33, P-15, P-26).

use crate::support::*;
use selvedge_engine::{EffectId, FaultKind, Message, ModelSettings, ReplySchema, Role};
use selvedge_http::{Http, Secret};
use selvedge_models::{Endpoint, Provider, ProviderConfig, list_models};
use selvedge_runtime::ports::{CallContext, Model};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const OK: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn messages_go_out_role_by_role_and_content_by_content() {
    let server = Server::start(vec![stream(OK, 4096)]).await;
    let first = call("c1", "search", json!({"q": "ä \"x\"", "a": [1, 2.5, null]}));
    let broken = call("c2", "search", Value::String("{not json".to_owned()));
    let assistant = Message {
        role: Role::Assistant,
        content: "".into(),
        tool_calls: vec![first.clone(), broken.clone()],
        tool_call_id: None,
        name: None,
    };
    let mut asked = request(vec![
        Arc::new(Message::text(Role::System, "be brief")),
        user("two\nlines \u{1F980} \u{0}"),
        user("two\nlines \u{1F980} \u{0}"),
        Arc::new(assistant),
        Arc::new(Message::tool(&first, "{\"r\":1}")),
        Arc::new(Message::tool(&broken, "")),
        Arc::new(Message::text(Role::Assistant, "done")),
    ]);
    asked.tools = vec![tool("search")];
    asked.settings = settings();
    asked.schema = Some(ReplySchema { name: "node 1/ü".into(), schema: json!({"type": "object"}) });
    model(&server).call(asked, context()).await.unwrap();

    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("idempotency-key"), Some("r1/main/n1/1/1"));
    assert_eq!(
        sent.json(),
        json!({
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "two\nlines \u{1F980} \u{0}"},
                {"role": "user", "content": "two\nlines \u{1F980} \u{0}"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "search", "arguments": "{\"q\":\"ä \\\"x\\\"\",\"a\":[1,2.5,null]}"}},
                    {"id": "c2", "type": "function", "function": {"name": "search", "arguments": "{not json"}},
                ]},
                {"role": "tool", "content": "{\"r\":1}", "tool_call_id": "c1"},
                {"role": "tool", "content": "", "tool_call_id": "c2"},
                {"role": "assistant", "content": "done"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "search", "description": "Looks things up.",
                "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
            }}],
            "response_format": {"type": "json_schema",
                "json_schema": {"name": "node_1__", "schema": {"type": "object"}}},
            "temperature": 0.5, "top_p": 0.9, "max_tokens": 77, "seed": -3, "stop": ["END"],
            "stream": true, "stream_options": {"include_usage": true},
            "enable_thinking": true,
        })
    );
}

#[tokio::test]
async fn nothing_that_was_not_asked_for_is_sent() {
    let server = Server::start(vec![stream(OK, 4096)]).await;
    model_with(&server, |config| config.key = None).call(request(vec![user("hi")]), context()).await.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(
        sent.json(),
        json!({
            "model": "test-model", "messages": [{"role": "user", "content": "hi"}],
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = Server::start(vec![stream(OK, 7)]).await;
    let model = model(&server);
    for _ in 0..20 {
        model.call(request(vec![user("hi")]), context()).await.unwrap();
    }
    assert_eq!(server.requests().len(), 20);
    // The rest of a finished stream may still be on its way when the next call starts.
    assert!(server.connections() <= 4, "{} connections for 20 calls", server.connections());
}

#[tokio::test]
async fn effect_ids_travel_in_any_alphabet() {
    let server = Server::start(vec![stream(OK, 4096)]).await;
    let mut asked = request(vec![user("hi")]);
    asked.effect = EffectId("main/größe %/1/1".into());
    let run = CallContext::of("r 1");
    model(&server).call(asked, run).await.unwrap();
    assert_eq!(server.requests()[0].header("idempotency-key"), Some("r%201/main/gr%C3%B6%C3%9Fe%20%25/1/1"));
}

#[tokio::test]
async fn a_refused_form_is_asked_once_more_without_it_and_remembered() {
    let refusal = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let server = Server::start(vec![answer(400, &[], refusal), stream(OK, 4096)]).await;
    let model = model(&server);
    assert_eq!(model.call(request(vec![user("1")]), context()).await.unwrap().text, "ok");
    assert_eq!(model.call(request(vec![user("2")]), context()).await.unwrap().text, "ok");
    let sent: Vec<Value> = server.requests().iter().map(crate::support::Recorded::json).collect();
    let options: Vec<bool> = sent.iter().map(|body| body.get("stream_options").is_some()).collect();
    assert_eq!(options, [true, false, false]);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_asked_for_one_body() {
    let refusal = r#"{"error":{"message":"'stream' is not supported by this model","param":"stream"}}"#;
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}"#;
    let server = Server::start(vec![answer(400, &[], refusal), json(whole)]).await;
    assert_eq!(model(&server).call(request(vec![user("1")]), context()).await.unwrap().text, "ok");
    let sent = server.requests();
    assert_eq!(sent[1].json()["stream"], json!(false));
    assert_eq!(sent[1].json().get("stream_options"), None);
}

#[tokio::test]
async fn newer_models_get_the_name_they_want_for_max_tokens() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#;
    let server = Server::start(vec![answer(400, &[], refusal), stream(OK, 4096)]).await;
    let mut asked = request(vec![user("1")]);
    asked.settings.max_tokens = Some(5);
    model(&server).call(asked, context()).await.unwrap();
    let sent = server.requests();
    assert_eq!(sent[1].json()["max_completion_tokens"], json!(5));
    assert_eq!(sent[1].json().get("max_tokens"), None);
    assert_eq!(sent[1].json()["stream"], json!(true));
}

/// Structural ids (E-10) may be longer than OpenAI takes, and are never what Mistral takes.
#[tokio::test]
async fn ids_of_calls_are_short_where_an_endpoint_wants_them_so() {
    for refusal in [
        "Tool call id was main/n1/1/1 but must be a-z, A-Z, 0-9, with a length of 9.",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got \
         a string with length 54 instead.",
    ] {
        let body = json!({"error": {"message": refusal}}).to_string();
        let server = Server::start(vec![answer(400, &[], &body), stream(OK, 4096)]).await;
        let (long, fits) = (call("main/n1/1/1", "t", json!({})), call("aB3dE6gH9", "t", json!({})));
        let assistant =
            Message { tool_calls: vec![long.clone(), fits.clone()], ..Message::text(Role::Assistant, "") };
        let results = [&long, &fits].map(|call| Arc::new(Message::tool(call, "r")));
        let messages = [vec![user("hi"), Arc::new(assistant)], results.to_vec()].concat();
        model(&server).call(request(messages), context()).await.unwrap();
        let sent: Vec<Value> = server.requests().iter().map(crate::support::Recorded::json).collect();
        assert_eq!(sent[0]["messages"][1]["tool_calls"][0]["id"], "main/n1/1/1");
        let ids = |body: &Value| {
            let calls = &body["messages"][1]["tool_calls"];
            [&calls[0]["id"], &calls[1]["id"]].map(|id| id.as_str().unwrap().to_owned())
        };
        let [made, kept] = ids(&sent[1]);
        assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
        assert_eq!(kept, "aB3dE6gH9");
        assert_eq!(sent[1]["messages"][2]["tool_call_id"], made);
    }
}

/// P-28: a document's settings go before the configuration's, and the body's own fields are sent as they are.
#[tokio::test]
async fn p28_settings_and_fields_of_the_body() {
    let server = Server::start(vec![stream(OK, 4096), stream(OK, 4096)]).await;
    let fields = |fields: Value| fields.as_object().cloned().unwrap();
    let model = model_with(&server, |config| {
        config.settings = ModelSettings {
            temperature: Some(0.9),
            max_tokens: Some(10),
            stop: vec!["A".to_owned()],
            body: fields(json!({"reasoning_effort": "low", "top_k": 5})),
            ..ModelSettings::default()
        };
    });
    let mut asked = request(vec![user("hi")]);
    asked.settings = ModelSettings {
        temperature: Some(0.1),
        body: fields(json!({"top_k": 7, "stream_options": {"more": true}, "max_tokens": 11})),
        ..ModelSettings::default()
    };
    model.call(asked, context()).await.unwrap();
    model.call(request(vec![user("hi")]), context()).await.unwrap();
    let messages = json!([{"role": "user", "content": "hi"}]);
    let sent = server.requests();
    assert_eq!(
        sent[0].json(),
        json!({
            "model": "test-model", "messages": messages, "temperature": 0.1, "max_tokens": 11, "stop": ["A"], "stream": true,
            "stream_options": {"include_usage": true, "more": true}, "reasoning_effort": "low", "top_k": 7,
        })
    );
    assert_eq!(
        sent[1].json(),
        json!({
            "model": "test-model", "messages": messages, "temperature": 0.9, "max_tokens": 10, "stop": ["A"], "stream": true,
            "stream_options": {"include_usage": true}, "reasoning_effort": "low", "top_k": 5,
        })
    );
}

#[test]
fn openai_itself_gets_no_foreign_settings() {
    let extra = [("enable_search".to_owned(), Value::Bool(true))].into_iter().collect();
    let settings = ModelSettings { seed: Some(1), extra, ..ModelSettings::default() };
    let at = |provider, url: &str| {
        Endpoint::new(ProviderConfig::new(provider, "m").at(url), &Http::new(|_| None))
            .unwrap()
            .unsent(&settings)
    };
    assert_eq!(at(Provider::OpenAi, "https://api.openai.com/v1"), ["enable_search"]);
    assert_eq!(at(Provider::Ollama, "http://127.0.0.1:11434/v1"), ["enable_search"]);
    assert!(at(Provider::OpenAi, "https://dashscope.aliyuncs.com/compatible-mode/v1").is_empty());
    let wrong = Endpoint::new(
        ProviderConfig::new(Provider::OpenAi, "m").at("localhost:8000/v1"),
        &Http::new(|_| None),
    );
    assert!(wrong.unwrap_err().contains("http://127.0.0.1:8000/v1"));
}

#[tokio::test]
async fn the_query_of_a_base_url_stays() {
    let server = Server::start(vec![stream(OK, 4096)]).await;
    let model = model_with(&server, |config| config.base_url.as_mut().unwrap().push_str("/?api-version=7"));
    model.call(request(vec![user("hi")]), context()).await.unwrap();
    assert_eq!(server.requests()[0].line, "POST /v1/chat/completions?api-version=7 HTTP/1.1");
}

#[tokio::test]
async fn models_are_listed_in_the_servers_order() {
    let list = r#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a","object":"model"}]}"#;
    let server =
        Server::start(vec![json(list), json(r#"{"data":[]}"#), answer(401, &[], "{}"), json("<html>")]).await;
    let http = Http::new(|_| None);
    let ask = || {
        list_models(
            &http,
            Provider::OpenAi,
            Some(&server.url),
            Some(Secret::new(KEY)),
            "SELVEDGE_API_KEY",
            Duration::from_secs(5),
        )
    };
    assert_eq!(ask().await.unwrap(), ["b", "a"]);
    let sent = &server.requests()[0];
    assert_eq!(sent.line, "GET /v1/models HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let none = ask().await.unwrap_err();
    assert!(!none.transient && none.fault.message.contains("lists no model"), "{none:?}");
    let refused = ask().await.unwrap_err();
    assert!(!refused.transient && refused.fault.message.contains("SELVEDGE_API_KEY"), "{refused:?}");
    let page = ask().await.unwrap_err();
    assert!(page.transient && page.fault.kind == FaultKind::ProviderError, "{page:?}");
}

#[tokio::test]
async fn a_setting_that_a_server_refuses_is_not_sent_again() {
    let refusal = answer(400, &[], r#"{"error":{"message":"Unrecognized request argument: enable_search"}}"#);
    let server = Server::start(vec![refusal, stream(OK, 4096)]).await;
    let mut asked = request(vec![user("hi")]);
    for name in ["enable_search", "enable_thinking"] {
        asked.settings.extra.insert(name.to_owned(), Value::Bool(true));
    }
    let model = model(&server);
    for _ in 0..2 {
        model.call(asked.clone(), context()).await.unwrap();
    }
    let has = |name: &str| -> Vec<bool> {
        server.requests().iter().map(|sent| sent.json().get(name).is_some()).collect()
    };
    assert_eq!(has("enable_search"), [true, false, false]);
    assert_eq!(has("enable_thinking"), [true, true, true]);
}

/// E-10: the text of arguments that never parsed goes out as it is, or under a name where only an object will do.
#[tokio::test]
async fn arguments_that_never_parsed_become_an_object_where_they_must_be_one() {
    let refusal = answer(400, &[], r#"{"error":{"message":"invalid tool call arguments"}}"#);
    let server = Server::start(vec![refusal.clone(), stream(OK, 4096)]).await;
    let broken = call("c1", "search", Value::String("{not json".to_owned()));
    let assistant = Message { tool_calls: vec![broken.clone()], ..Message::text(Role::Assistant, "") };
    let asked = request(vec![user("hi"), Arc::new(assistant), Arc::new(Message::tool(&broken, "no"))]);
    model(&server).call(asked, context()).await.unwrap();
    let sent: Vec<Value> = server
        .requests()
        .iter()
        .map(|sent| sent.json()["messages"][1]["tool_calls"][0]["function"]["arguments"].clone())
        .collect();
    assert_eq!(sent, [json!("{not json"), json!(r#"{"arguments":"{not json"}"#)]);
    // Without such a call the refusal is about something else.
    let server = Server::start(vec![refusal]).await;
    model(&server).call(request(vec![user("hi")]), context()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

/// What is older than tools is asked in its own words: `functions`, `function_call`, and results by name.
#[tokio::test]
async fn a_server_that_knows_only_functions_is_asked_so() {
    let refusal = r#"{"error":{"message":"Unrecognized request argument supplied: tools"}}"#;
    let server = Server::start(vec![answer(400, &[], refusal), stream(OK, 4096)]).await;
    let (first, second) = (call("c1", "a", json!({"x": 1})), call("c2", "b", json!({})));
    let calling =
        Message { tool_calls: vec![first.clone(), second.clone()], ..Message::text(Role::Assistant, "") };
    let results = [Message::tool(&first, "one"), Message::tool(&second, "two")].map(Arc::new);
    let mut asked = request([vec![user("go"), Arc::new(calling)], results.to_vec()].concat());
    asked.tools = vec![tool("a"), tool("b")];
    let model = model(&server);
    for _ in 0..2 {
        assert_eq!(model.call(asked.clone(), context()).await.unwrap().text, "ok");
    }
    let sent: Vec<Value> = server.requests().iter().map(crate::support::Recorded::json).collect();
    let known: Vec<bool> = sent.iter().map(|body| body.get("tools").is_some()).collect();
    assert_eq!(known, [true, false, false]);
    assert_eq!(sent[1]["functions"][1]["name"], "b");
    let empty = json!({});
    let called = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    assert_eq!(
        sent[1]["messages"],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "function_call": called("a", "{\"x\":1}")},
            {"role": "function", "name": "a", "content": "one"},
            {"role": "assistant", "content": "", "function_call": called("b", &empty.to_string())},
            {"role": "function", "name": "b", "content": "two"},
        ])
    );
}
