//! What Anthropic's messages are sent, and what they send (E-10, E-23, E-26, E-30, E-33, P-15).

use crate::support::wires::anthropic::{block, delta, end, event, start};
use crate::support::*;
use selvedge_engine::{Cut, Message, ModelRequest, ReplySchema, Role};
use selvedge_models::{Endpoint, Provider, ProviderConfig};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::sync::Arc;

fn anthropic(server: &Server) -> Endpoint {
    model_with(server, |config| {
        let own = ProviderConfig::new(Provider::Anthropic, "test-model").at(server.url.clone());
        *config = ProviderConfig { key: config.key.take(), limits: config.limits, ..own };
    })
}

fn ok() -> Vec<Step> {
    let text = block(0, &json!({"type": "text", "text": "ok"}));
    stream(&format!("{}{text}{}", start(), end("end_turn")), 4096)
}

fn refusal(words: &str) -> Vec<Step> {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
    answer(400, &[], &body.to_string())
}

/// The bodies that one call sends to a server that answers so.
async fn bodies(answers: Vec<Vec<Step>>, asked: &ModelRequest) -> Vec<Value> {
    let server = Server::start(answers).await;
    anthropic(&server).call(asked.clone(), context()).await.unwrap();
    server.requests().iter().map(Recorded::json).collect()
}

async fn body(asked: &ModelRequest) -> Value {
    bodies(vec![ok()], asked).await.remove(0)
}

fn says(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::text(role, text))
}

fn calling(text: &str, calls: &[selvedge_engine::ToolCall]) -> Arc<Message> {
    Arc::new(Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, text) })
}

fn result(of: &selvedge_engine::ToolCall, text: &str) -> Arc<Message> {
    Arc::new(Message::tool(of, text))
}

fn shaped(name: &str, schema: Value) -> Option<ReplySchema> {
    Some(ReplySchema { name: name.into(), schema })
}

#[tokio::test]
async fn a_whole_request() {
    let (first, broken) =
        (call("toolu_1", "search", json!({"q": "ä"})), call("main/n/1", "search", json!("{not")));
    let mut asked = request(vec![
        says(Role::System, "be brief"),
        says(Role::System, "be kind"),
        user("two\nlines"),
        user("two\nlines"),
        calling("let me look", &[first.clone(), broken.clone()]),
        result(&first, "{\"r\":1}"),
        result(&broken, ""),
        says(Role::System, "now in English"),
        says(Role::Assistant, "done"),
        user("and now?"),
    ]);
    asked.tools = vec![tool("search")];
    asked.settings = settings();
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    asked.schema = shaped("n1", schema);
    let server = Server::start(vec![ok()]).await;
    let model = anthropic(&server);
    model.call(asked, context()).await.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let id = "call_0f5c7c1f0b6f4b0e";
    let mut json = sent.json();
    // The other id's hash is not the point: it fits, and both sides have the same.
    let made = json["messages"][1]["content"][2]["id"].take();
    let made = made.as_str().unwrap();
    assert!(
        made.starts_with("call_") && made.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    );
    assert_eq!(json["messages"][2]["content"][1]["tool_use_id"], made);
    json["messages"][1]["content"][2]["id"] = id.into();
    json["messages"][2]["content"][1]["tool_use_id"] = id.into();
    assert_eq!(
        json,
        json!({
            "model": "test-model",
            "max_tokens": 77,
            "system": [{"type": "text", "text": "be brief"}, {"type": "text", "text": "be kind"}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "two\nlines"}, {"type": "text", "text": "two\nlines"}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "ä"}},
                    {"type": "tool_use", "id": id, "name": "search", "input": {"arguments": "{not"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "{\"r\":1}"},
                    {"type": "tool_result", "tool_use_id": id},
                    {"type": "text", "text": "now in English"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
                {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
            ],
            "tools": [{"name": "search", "description": "Looks things up.",
                "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object",
                "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}}},
            "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "stream": true,
        })
    );
}

#[tokio::test]
async fn nothing_that_was_not_asked_for_is_sent() {
    assert_eq!(
        body(&request(vec![user("hi")])).await,
        json!({"model": "test-model", "max_tokens": 32000, "stream": true,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
    );
}

/// Slices begin and end anywhere (P-05), and the API wants a user first and no empty text.
#[tokio::test]
async fn histories_that_the_api_refuses_get_the_least_that_makes_them_whole() {
    let user_says = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let model_says = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    let sent = |messages: Vec<Arc<Message>>| async move { body(&request(messages)).await["messages"].take() };
    let assistant = |text: &str| says(Role::Assistant, text);
    assert_eq!(
        sent(vec![assistant("a"), user("b")]).await,
        json!([user_says("."), model_says("a"), user_says("b")])
    );
    assert_eq!(sent(vec![says(Role::System, "s")]).await, json!([user_says(".")]));
    assert_eq!(sent(vec![user(" \n")]).await, json!([user_says(".")]));
    assert_eq!(
        sent(vec![user(""), user("b"), assistant(""), user("c")]).await,
        json!([{"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}])
    );
    assert_eq!(
        sent(vec![user("a"), assistant("b"), user(""), assistant("c \n")]).await,
        json!([user_says("a"), model_says("b"), user_says("."), model_says("c")])
    );
    let only_calls = call("c1", "t", json!({}));
    assert_eq!(
        sent(vec![calling("", std::slice::from_ref(&only_calls)), result(&only_calls, "r")]).await,
        json!([user_says("."),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}])
    );
}

/// E-30: the API refuses a request without tools over a history with calls.
#[tokio::test]
async fn without_tools_the_historys_are_defined_and_forbidden() {
    let (one, two) = (call("c1", "search", json!({"q": 1})), call("c2", "now", json!({})));
    let mut asked = request(vec![
        user("hi"),
        calling("", &[one.clone(), two.clone(), call("c3", "search", json!({}))]),
        result(&one, "1"),
        result(&two, "2"),
        result(&call("c3", "search", json!({})), "3"),
    ]);
    let any = json!({"type": "object", "properties": {}});
    let stubs = json!([{"name": "search", "input_schema": any}, {"name": "now", "input_schema": any}]);
    let sent = body(&asked).await;
    assert_eq!((&sent["tools"], &sent["tool_choice"]), (&stubs, &json!({"type": "none"})));
    // What the graph knows of them is told.
    let mut known = asked.clone();
    known.known = vec![tool("search"), tool("unused")];
    let sent = body(&known).await;
    assert_eq!(sent["tools"][0]["description"], "Looks things up.");
    assert_eq!((sent["tools"].as_array().unwrap().len(), &sent["tools"][1]), (2, &stubs[1]));
    // With tools of its own the request has just those.
    asked.tools = vec![tool("other")];
    let sent = body(&asked).await;
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
    assert_eq!(sent.get("tool_choice"), None);
}

#[tokio::test]
async fn a_schema_that_can_not_be_said_natively_is_a_tool_whose_input_is_the_reply() {
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let answer = |tool: &str, input: &str| {
        let call = block(0, &json!({"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}));
        let input = delta(0, &json!({"type": "input_json_delta", "partial_json": input}));
        stream(&format!("{}{call}{input}{}", start(), end("tool_use")), 4096)
    };
    let mut asked = request(vec![user("hi")]);
    asked.schema = shaped("größe", open.clone());
    let server = Server::start(vec![answer("gr__e", r#"{"x":"y"}"#)]).await;
    let reply = anthropic(&server).call(asked.clone(), context()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls.len()), (r#"{"x":"y"}"#, 0));
    let sent = server.requests()[0].json();
    assert_eq!(sent["tools"][0]["name"], "gr__e");
    assert_eq!(sent["tools"][0]["input_schema"], open);
    assert_eq!(sent["tool_choice"], json!({"type": "tool", "name": "gr__e"}));
    assert_eq!(sent.get("output_config"), None);

    // With tools the model may choose one of them first; a reply beside other calls is not yet the reply.
    asked.tools = vec![tool("gr__e")];
    let server = Server::start(vec![answer("gr__e", r#"{"q":"y"}"#), answer("gr__e_", r#"{"x":"y"}"#)]).await;
    let model = anthropic(&server);
    let reply = model.call(asked.clone(), context()).await.unwrap();
    assert_eq!((reply.text.as_str(), &reply.calls), ("", &vec![call("toolu_1", "gr__e", json!({"q": "y"}))]));
    assert_eq!(model.call(asked.clone(), context()).await.unwrap().text, r#"{"x":"y"}"#);
    assert_eq!(server.requests()[0].json()["tool_choice"], json!({"type": "any"}));

    // What is no object is wrapped, and a reply that did not parse stays as it came.
    asked.tools.clear();
    asked.schema =
        shaped("n", json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"not": {}}}}));
    let server = Server::start(vec![answer("n", r#"{"reply":[1]}"#), answer("n", r#"{"reply":[1"#)]).await;
    let model = anthropic(&server);
    assert_eq!(model.call(asked.clone(), context()).await.unwrap().text, "[1]");
    let input = &server.requests()[0].json()["tools"][0]["input_schema"];
    assert_eq!((&input["required"], &input["$defs"]), (&json!(["reply"]), &json!({"x": {"not": {}}})));
    assert_eq!(model.call(asked, context()).await.unwrap().text, r#"{"reply":[1"#);
}

/// E-27: a reply that was cut before its tool had an input is no empty object.
#[tokio::test]
async fn a_reply_as_a_tool_that_was_cut_is_not_whole() {
    let mut asked = request(vec![user("hi")]);
    asked.schema = shaped("n", json!({"type": "object", "additionalProperties": true}));
    let text = block(0, &json!({"type": "text", "text": "so"}));
    let tool = block(1, &json!({"type": "tool_use", "id": "toolu_1", "name": "n", "input": {}}));
    let said = |stop: &str| stream(&format!("{}{text}{tool}{}", start(), end(stop)), 4096);
    let server = Server::start(vec![said("max_tokens"), said("tool_use")]).await;
    let model = anthropic(&server);
    for expected in ["so", "{}"] {
        let reply = model.call(asked.clone(), context()).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.calls.len()), (expected, 0));
    }
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_and_remembered() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let mut asked = request(vec![user("hi"), says(Role::Assistant, "a")]);
    asked.schema = shaped("n", schema);
    let answers = vec![
        refusal(
            "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-20240620",
        ),
        refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        refusal("output_config: Extra inputs are not permitted"),
        refusal("tool_choice: type \"tool\" is not supported for this model"),
        ok(),
    ];
    let server = Server::start(answers).await;
    let model = anthropic(&server);
    for _ in 0..2 {
        model.call(asked.clone(), context()).await.unwrap();
    }
    let sent: Vec<Value> = server.requests().iter().map(Recorded::json).collect();
    assert_eq!(sent.len(), 6);
    assert_eq!((&sent[0]["max_tokens"], &sent[1]["max_tokens"]), (&json!(32000), &json!(8192)));
    assert_eq!(sent[2]["messages"].as_array().unwrap().last().unwrap()["content"][0]["text"], "Continue.");
    assert_eq!((sent[3].get("output_config"), &sent[3]["tool_choice"]["type"]), (None, &json!("tool")));
    assert_eq!(sent[4]["tool_choice"], json!({"type": "auto"}));
    assert_eq!(sent[4], sent[5]);
    // A setting of the document is never left out in silence.
    let mut warm = request(vec![user("x")]);
    warm.settings.temperature = Some(0.5);
    let server = Server::start(vec![refusal("`temperature` is deprecated for this model.")]).await;
    let failed = anthropic(&server).call(warm, context()).await.unwrap_err();
    assert!(!failed.transient && failed.fault.message.contains("`temperature` is deprecated"), "{failed:?}");
    assert_eq!(server.requests().len(), 1);
    // The document's own maximum neither: not after a refusal, and not for what an earlier call was refused.
    let over = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x";
    let mut large = request(vec![user("x")]);
    large.settings.max_tokens = Some(32_000);
    let server = Server::start(vec![refusal(over), ok(), refusal(over)]).await;
    let model = anthropic(&server);
    model.call(request(vec![user("x")]), context()).await.unwrap();
    let failed = model.call(large, context()).await.unwrap_err();
    assert!(!failed.transient && failed.fault.message.contains("32000 > 8192"), "{failed:?}");
    let sent: Vec<Value> = server.requests().iter().map(|sent| sent.json()["max_tokens"].clone()).collect();
    assert_eq!(sent, [json!(32_000), json!(8192), json!(32_000)]);
    // A maximum that is not smaller is no reason to ask again.
    let context_full =
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input";
    let server = Server::start(vec![refusal(context_full)]).await;
    let failed = anthropic(&server).call(request(vec![user("x")]), context()).await.unwrap_err();
    assert!(!failed.transient && server.requests().len() == 1, "{failed:?}");
}

#[tokio::test]
async fn stops_and_refusals() {
    let ask = |body: String| async move {
        let server = Server::start(vec![stream(&body, 4096)]).await;
        anthropic(&server).call(request(vec![user("x")]), context()).await
    };
    for stop in ["max_tokens", "pause_turn", "stop_sequence", "model_context_window_exceeded", "refusal"] {
        let text = block(0, &json!({"type": "text", "text": "so far"}));
        let reply = ask(format!("{}{text}{}", start(), end(stop))).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop.as_deref()), ("so far", Some(stop)));
        let cut = match stop {
            "max_tokens" | "model_context_window_exceeded" => Some(Cut::Limit),
            "refusal" => Some(Cut::Withheld),
            _ => None,
        };
        assert_eq!(reply.cut, cut, "{stop}");
    }
    let silent = ask(format!("{}{}", start(), end("refusal"))).await.unwrap_err();
    assert_eq!(silent.fault.message, "the model refused to answer (stop reason `refusal`)");
    let why = json!({"type": "message_delta", "usage": {"output_tokens": 2},
        "delta": {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "Not that."}}});
    let told = ask(format!("{}{}", start(), event(&why))).await.unwrap_err();
    assert_eq!(told.fault.message, "the model refused to answer (stop reason `refusal`): Not that");
    // An empty reply is the engine's to ask again for (E-27).
    let empty = ask(format!("{}{}", start(), end("end_turn"))).await.unwrap();
    assert!(empty.text.is_empty() && empty.calls.is_empty());
}

#[tokio::test]
async fn what_is_not_the_answer_is_left_out() {
    let body = [
        start(),
        block(0, &json!({"type": "redacted_thinking", "data": "x"})),
        block(1, &json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}})),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"})),
        block(2, &json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []})),
        block(3, &json!({"type": "text", "text": "a", "citations": []})),
        delta(3, &json!({"type": "citations_delta", "citation": {"type": "web_search_result_location"}})),
        event(&json!({"type": "something_new", "index": 7, "delta": {"text": "x"}})),
        delta(3, &json!({"type": "text_delta", "text": "b"})),
        // Some servers give a call's input whole.
        block(4, &json!({"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}})),
        end("tool_use"),
    ];
    let server = Server::start(vec![stream(&body.concat(), 64)]).await;
    let reply = anthropic(&server).call(request(vec![user("x")]), context()).await.unwrap();
    assert_eq!(reply.text, "ab");
    assert_eq!(reply.calls, vec![call("c1", "t", json!({"a": 1}))]);
}

/// E-28: pings keep a connection open, they are no beginning of a reply.
#[tokio::test]
async fn a_ping_is_no_first_token() {
    let ping = || chunk(event(&json!({"type": "ping"})).as_bytes());
    let drip: Vec<Step> = (0..60).flat_map(|_| [ping(), Step::Pause(20)]).collect();
    let bare = || chunk(b"data: {\"type\": \"ping\"}\n\n");
    for steps in [drip, vec![bare(), Step::Hang]] {
        let server = Server::start(vec![[vec![stream_head()], steps].concat()]).await;
        let model = model_with(&server, |config| {
            let own = ProviderConfig::new(Provider::Anthropic, "m").at(server.url.clone());
            *config = ProviderConfig { limits: config.limits, ..own };
            config.limits.first_token_timeout = std::time::Duration::from_millis(150);
        });
        let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
        assert!(failed.fault.message.contains("limits.first_token_timeout_s"), "{failed:?}");
    }
}
