//! OpenAI's chat completions.

use super::{RawCall, StreamError, Wire, data};
use crate::support::KEY;
use selvedge_engine::{Cut, Tokens};
use selvedge_models::Provider;
use serde_json::{Value, json};

fn delta(delta: &Value) -> String {
    data(&json!({"object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null}))
}

fn finish(reason: &str) -> String {
    data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})) + "data: [DONE]\n\n"
}

fn usage() -> Value {
    json!({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 300}, "completion_tokens_details": {"reasoning_tokens": 200}})
}

fn calls(calls: &[RawCall<'_>]) -> String {
    let mut body = String::new();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let mut part =
            json!({"index": index, "type": "function", "function": {"name": name, "arguments": ""}});
        if let Some(id) = id {
            part["id"] = json!(id);
        }
        body.push_str(&delta(&json!({"tool_calls": [part]})));
        let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        for part in [first, second] {
            body.push_str(&delta(
                &json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}),
            ));
        }
    }
    body.push_str(&data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})));
    body + "data: [DONE]\n\n"
}

pub fn wire() -> Wire {
    let stop = data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let body = json!({"object": "chat.completion", "usage": usage(), "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "half"}, "finish_reason": "stop"}]});
    Wire {
        provider: Provider::OpenAi,
        line: "POST /v1/chat/completions HTTP/1.1",
        key: ("authorization", format!("Bearer {KEY}")),
        begun: delta(&json!({"role": "assistant", "content": "half"})),
        more: delta(&json!({"content": "half"})),
        rest: format!("{stop}{}data: [DONE]\n\n", data(&json!({"choices": [], "usage": usage()}))),
        body: body.to_string(),
        tokens: Tokens { input: 1000, output: 500, cached: 300, reasoning: 200, cost: 0.0 },
        stop: "stop",
        malformed: "data: {\"choices\":[\n\n".to_owned(),
        errors: vec![
            StreamError {
                event: data(
                    &json!({"error": {"message": "slow down", "type": "rate_limit_exceeded", "retry_after": 3}}),
                ),
                status: Some(429),
                passes: true,
                wait_ms: Some(3000),
            },
            StreamError {
                event: data(&json!({"error": {"message": "busy", "code": 503}})),
                status: Some(503),
                passes: true,
                wait_ms: None,
            },
            StreamError {
                event: data(&json!({"error": {"message": "no", "code": "invalid_api_key"}})),
                status: Some(401),
                passes: false,
                wait_ms: None,
            },
        ],
        refusal: |_| json!({"error": {"message": "why it is so", "type": null, "code": null}}).to_string(),
        calls,
        silent: vec![(finish("content_filter"), "stop", "content_filter")],
        cuts: vec![(finish("length"), Cut::Limit), (finish("content_filter"), Cut::Withheld)],
        any_names: true,
        unsent: Vec::new(),
        raw_arguments: true,
        lists: vec![("GET /v1/models HTTP/1.1", json!({"data": [{"id": "b"}, {"id": "a"}]}).to_string())],
    }
}
