//! Replies in the shapes that servers send them (E-10, E-15, E-20).

use crate::support::*;
use selvedge_engine::Tokens;
use selvedge_models::Price;
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};

fn events(list: &[Value]) -> String {
    let mut body: String = list.iter().map(|event| format!("data: {event}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    body
}

fn delta(delta: &Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn openai_text() -> String {
    events(&[
        delta(&json!({"role": "assistant", "content": "", "refusal": null})),
        delta(&json!({"content": "Grüße, "})),
        delta(&json!({"content": "\u{1F980} Welt"})),
        stop("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}}),
    ])
}

#[tokio::test]
async fn openai_text_with_usage_cost_and_deltas() {
    let server = Server::start(vec![stream(&openai_text(), 64)]).await;
    let price = Price { input_per_mtok: 3.0, output_per_mtok: 10.0, cached_input_per_mtok: None };
    let (context, heard) = listening();
    let model = model_with(&server, |config| config.price = Some(price));
    let reply = model.call(request(vec![user("hi")]), context).await.unwrap();
    assert_eq!(reply.text, "Grüße, \u{1F980} Welt");
    assert_eq!(reply.tokens, Tokens { input: 1000, output: 500, cost: 0.008, ..Tokens::default() });
    assert_eq!(reply.stop.as_deref(), Some("stop"));
    assert!(reply.calls.is_empty());
    assert_eq!(*heard.lock().unwrap(), ["Grüße, ", "\u{1F980} Welt"]);
}

/// Chunk borders fall into the middle of characters, lines and `data:` whatever the piece; line ends may be CRLF.
#[tokio::test]
async fn the_cuts_of_the_wire_do_not_matter() {
    let commented = format!(": OPENROUTER PROCESSING\n\n:\n\nretry: 10\nevent: message\n{}", openai_text());
    for body in
        [openai_text(), openai_text().replace('\n', "\r\n"), commented, format!("\u{FEFF}{}", openai_text())]
    {
        for piece in [1, 2, 3, 5, 4096] {
            let reply = ask(stream(&body, piece)).await.unwrap();
            assert_eq!(
                (reply.text.as_str(), reply.tokens.output),
                ("Grüße, \u{1F980} Welt", 500),
                "{piece}: {body}"
            );
        }
    }
}

#[tokio::test]
async fn one_body_instead_of_a_stream() {
    let body = json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{\"x\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "b", "arguments": {"y": [2]}}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4.0}});
    let expected = vec![call("c1", "a", json!({"x": 1})), call("c2", "b", json!({"y": [2]}))];
    // Blanks before the body keep some connections open; the content type may be wrong.
    for (kind, text) in
        [("application/json", body.to_string()), ("text/event-stream", format!("\n  \n{body}\n"))]
    {
        let reply = ask(answer(200, &[("content-type", kind)], &text)).await.unwrap();
        assert_eq!(reply.text, "");
        assert_eq!(reply.calls, expected);
        assert_eq!((reply.tokens.input, reply.tokens.output), (3, 4));
    }
    let server =
        Server::start(vec![answer(200, &[("content-type", "application/json")], &openai_text())]).await;
    assert_eq!(model(&server).call(request(vec![]), context()).await.unwrap().text, "Grüße, \u{1F980} Welt");
}

/// E-10: nobody knows which of the two is meant, so the arguments stay text, in whatever form they came.
#[tokio::test]
async fn e10_a_key_that_stands_twice_keeps_arguments_a_text() {
    let twice = r#"{"x": {"k": 1, "k": 2}}"#;
    for arguments in [Value::from(twice).to_string(), twice.to_owned()] {
        let body = format!(
            r#"{{"choices": [{{"index": 0, "finish_reason": "tool_calls", "message": {{"role": "assistant", "tool_calls": [
                {{"id": "c1", "type": "function", "function": {{"name": "a", "arguments": {arguments}}}}}]}}}}]}}"#
        );
        let reply = ask(json(&body)).await.unwrap();
        assert_eq!(reply.calls, [call("c1", "a", json!(twice))], "{arguments}");
    }
}

fn part(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &Value) -> Value {
    let mut part = json!({"type": "function", "function": {"arguments": arguments}});
    if let Some(index) = index {
        part["index"] = json!(index);
    }
    if let Some(id) = id {
        part["id"] = json!(id);
    }
    if let Some(name) = name {
        part["function"]["name"] = json!(name);
    }
    delta(&json!({"content": null, "tool_calls": [part]}))
}

#[tokio::test]
async fn calls_are_put_together_by_index() {
    let body = events(&[
        part(Some(0), Some("c1"), Some("a"), &json!("")),
        part(Some(0), None, None, &json!("{\"x\":")),
        part(Some(1), None, None, &json!("{\"y\":")),
        part(Some(0), None, None, &json!("1}")),
        // The id and the name may come late.
        part(Some(1), Some("c2"), Some("b"), &json!("2}")),
        part(Some(2), Some("c3"), Some("none"), &json!("")),
        part(Some(3), Some("c4"), Some("broken"), &json!("{\"x\": ")),
        part(Some(4), None, Some("list"), &json!("[1]")),
        stop("tool_calls"),
    ]);
    let reply = ask(stream(&body, 50)).await.unwrap();
    let expected = vec![
        call("c1", "a", json!({"x": 1})),
        call("c2", "b", json!({"y": 2})),
        call("c3", "none", json!({})),
        call("c4", "broken", json!("{\"x\": ")),
        call("", "list", json!("[1]")),
    ];
    assert_eq!(reply.calls, expected);
    assert_eq!(reply.stop.as_deref(), Some("tool_calls"));
}

#[tokio::test]
async fn ollama_gives_every_call_index_0_or_none() {
    for index in [Some(0), None] {
        let body = events(&[
            part(index, Some("call_1"), Some("write"), &json!("{\"p\":\"hello.py\"}")),
            part(index, Some("call_2"), Some("write"), &json!("{\"p\":\"world.py\"}")),
            stop("tool_calls"),
        ]);
        let reply = ask(stream(&body, 4096)).await.unwrap();
        let expected = vec![
            call("call_1", "write", json!({"p": "hello.py"})),
            call("call_2", "write", json!({"p": "world.py"})),
        ];
        assert_eq!(reply.calls, expected, "{index:?}");
    }
}

#[tokio::test]
async fn vllm_may_give_each_part_an_id_of_its_own() {
    let body = events(&[
        part(Some(0), Some("r1"), Some("a"), &json!("")),
        part(Some(0), Some("r2"), None, &json!("{\"x\":")),
        part(Some(0), Some("r3"), None, &json!("1}")),
        stop("tool_calls"),
    ]);
    assert_eq!(ask(stream(&body, 4096)).await.unwrap().calls, vec![call("r1", "a", json!({"x": 1}))]);
}

#[tokio::test]
async fn llama_cpp_repeats_nothing_and_ends_without_done() {
    let body = format!(
        "data: {}\n\ndata: {}\n\ndata: {}",
        delta(&json!({"role": "assistant", "content": null})),
        delta(&json!({"content": "hi"})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "timings": {"predicted_n": 2},
               "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    );
    let reply = ask(stream(&body, 100)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens.input), ("hi", 5));
}

#[tokio::test]
async fn what_is_not_the_answer_is_left_out() {
    let body = events(&[
        json!({"choices": [], "prompt_filter_results": []}),
        delta(&json!({"reasoning_content": "thinking"})),
        delta(&json!({"reasoning": "thinking", "content": ""})),
        json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
        delta(
            &json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]}),
        ),
        json!({"type": "ping"}),
        delta(&json!({"content": "b"})),
        stop("stop"),
    ]);
    assert_eq!(ask(stream(&body, 4096)).await.unwrap().text, "ab");
}

#[tokio::test]
async fn deepseek_has_a_word_of_its_own_for_cached_tokens() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2,
        "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3}});
    let reply =
        ask(stream(&events(&[delta(&json!({"content": "a"})), stop("stop"), usage]), 4096)).await.unwrap();
    assert_eq!(reply.tokens, Tokens { input: 9, output: 2, cached: 6, ..Tokens::default() });
}

#[tokio::test]
async fn a_refusal_is_text() {
    let body =
        events(&[delta(&json!({"refusal": "I can't "})), delta(&json!({"refusal": "help."})), stop("stop")]);
    assert_eq!(ask(stream(&body, 4096)).await.unwrap().text, "I can't help.");
    let whole = r#"{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}"#;
    assert_eq!(ask(json(whole)).await.unwrap().text, "No.");
}

#[tokio::test]
async fn an_empty_reply_is_a_reply() {
    for body in [events(&[delta(&json!({"content": ""})), stop("stop")]), events(&[])] {
        let reply = ask(stream(&body, 4096)).await.unwrap();
        assert!(reply.text.is_empty() && reply.calls.is_empty());
    }
}

#[tokio::test]
async fn a_stream_that_stays_open_after_done_does_not_keep_the_reply() {
    let steps = vec![stream_head(), chunk(openai_text().as_bytes()), Step::Hang];
    let started = std::time::Instant::now();
    assert_eq!(ask(steps).await.unwrap().tokens.output, 500);
    assert!(started.elapsed().as_secs() < 5);
}

#[tokio::test]
async fn the_key_is_redacted_where_a_provider_echoes_it() {
    let body = events(&[
        delta(&json!({"content": format!("your key is {KEY}")})),
        part(Some(0), Some("c"), Some("t"), &json!(format!("{{\"k\":\"{KEY}\"}}"))),
        stop("stop"),
    ]);
    let reply = ask(stream(&body, 4096)).await.unwrap();
    assert_eq!(reply.text, "your key is [redacted]");
    assert_eq!(reply.calls[0].arguments, json!({"k": "[redacted]"}));
}

/// A server of before there were tools calls one function, in pieces or at once, and gives it no id.
#[tokio::test]
async fn a_legacy_function_call_is_a_call() {
    let pieces = events(&[
        delta(&json!({"content": null, "function_call": {"name": "a", "arguments": ""}})),
        delta(&json!({"function_call": {"arguments": "{\"x\":"}})),
        delta(&json!({"function_call": {"arguments": "1}"}})),
        stop("function_call"),
    ]);
    let whole = r#"{"choices":[{"finish_reason":"function_call","message":{"role":"assistant","content":null,
        "function_call":{"name":"a","arguments":"{\"x\":1}"}}}]}"#;
    for steps in [stream(&pieces, 4096), stream(&pieces, 3), json(whole)] {
        let reply = ask(steps).await.unwrap();
        assert_eq!(reply.calls, vec![call("", "a", json!({"x": 1}))]);
        assert!(reply.text.is_empty() && reply.cut.is_none(), "{reply:?}");
    }
}
