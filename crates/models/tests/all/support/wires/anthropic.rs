//! Anthropic's messages.

use super::{RawCall, StreamError, Wire};
use crate::support::KEY;
use selvedge_engine::{Cut, Tokens};
use selvedge_models::Provider;
use serde_json::{Value, json};

/// An event under its name, which its data repeats.
pub fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

/// How every stream begins.
pub fn start() -> String {
    event(&json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "test-model", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 600, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 300,
                  "output_tokens": 1}}}))
}

/// How every stream ends.
pub fn end(stop: &str) -> String {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 500}});
    event(&delta) + &event(&json!({"type": "message_stop"}))
}

/// The beginning of a block.
pub fn block(index: usize, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

/// A piece of a block.
pub fn delta(index: usize, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn calls(calls: &[RawCall<'_>]) -> String {
    let mut body = start();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        body +=
            &block(index, &json!({"type": "tool_use", "id": id.unwrap_or(""), "name": name, "input": {}}));
        body += &delta(index, &json!({"type": "input_json_delta", "partial_json": ""}));
        let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        for part in [first, second] {
            body += &delta(index, &json!({"type": "input_json_delta", "partial_json": part}));
        }
        body += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    body + &end("tool_use")
}

pub fn wire() -> Wire {
    let error = |kind: &str, words: &str| {
        event(&json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}))
    };
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "half"}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 600, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 300,
                  "output_tokens": 500}});
    let more = delta(1, &json!({"type": "text_delta", "text": "half"}));
    let begun = [
        start(),
        event(&json!({"type": "ping"})),
        block(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, &json!({"type": "signature_delta", "signature": "EqQ="})),
        event(&json!({"type": "content_block_stop", "index": 0})),
        block(1, &json!({"type": "text", "text": ""})),
        more.clone(),
    ];
    let mut errors = Vec::new();
    for (kind, status, passes) in [
        ("overloaded_error", 529, true),
        ("rate_limit_error", 429, true),
        ("api_error", 500, true),
        ("invalid_request_error", 400, false),
        ("authentication_error", 401, false),
        ("billing_error", 402, false),
    ] {
        errors.push(StreamError { event: error(kind, "why"), status: Some(status), passes, wait_ms: None });
    }
    Wire {
        provider: Provider::Anthropic,
        line: "POST /v1/messages HTTP/1.1",
        key: ("x-api-key", KEY.to_owned()),
        begun: begun.concat(),
        more,
        rest: event(&json!({"type": "content_block_stop", "index": 1})) + &end("end_turn"),
        body: body.to_string(),
        tokens: Tokens { input: 1000, output: 500, cached: 300, reasoning: 0, cost: 0.0 },
        stop: "end_turn",
        malformed: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\n\n".to_owned(),
        errors,
        refusal: |_| {
            json!({"type": "error", "error": {"type": "some_error", "message": "why it is so"}}).to_string()
        },
        calls,
        silent: vec![(start() + &end("refusal"), "stop", "refusal")],
        cuts: vec![
            (end("max_tokens"), Cut::Limit),
            (end("model_context_window_exceeded"), Cut::Limit),
        ],
        any_names: false,
        unsent: vec!["seed", "enable_thinking"],
        raw_arguments: true,
        lists: vec![
            (
                "GET /v1/models?limit=1000 HTTP/1.1",
                json!({"data": [{"type": "model", "id": "b"}], "has_more": true, "first_id": "b", "last_id": "b"})
                    .to_string(),
            ),
            (
                "GET /v1/models?limit=1000&after_id=b HTTP/1.1",
                json!({"data": [{"type": "model", "id": "a"}], "has_more": false, "last_id": "a"}).to_string(),
            ),
        ],
    }
}
