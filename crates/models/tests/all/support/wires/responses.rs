//! OpenAI's responses.

use super::{RawCall, StreamError, Wire};
use crate::support::KEY;
use selvedge_engine::{Cut, Tokens};
use selvedge_models::Provider;
use serde_json::{Value, json};

/// An event under its name, which its data repeats.
pub fn event(kind: &str, fields: &Value) -> String {
    let mut value = json!({"type": kind, "sequence_number": 7});
    value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("event: {kind}\ndata: {value}\n\n")
}

fn text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

/// A finished message.
pub fn message(words: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [text(words)]})
}

/// A call.
pub fn function(number: usize, call: &RawCall<'_>) -> Value {
    let (id, name, arguments) = call;
    let mut item = json!({"id": format!("fc_{number}"), "type": "function_call", "status": "completed",
        "name": name, "arguments": arguments});
    if let Some(id) = id {
        item["call_id"] = json!(id);
    }
    item
}

/// A finished response.
pub fn response(status: &str, output: &Value) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "model": "test-model", "output": output,
        "parallel_tool_calls": true, "store": false, "text": {"format": {"type": "text"}}, "tools": [],
        "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 300}, "output_tokens": 500,
            "output_tokens_details": {"reasoning_tokens": 200}, "total_tokens": 1500}})
}

fn reasoning() -> Value {
    json!({"id": "rs_1", "type": "reasoning", "summary": []})
}

/// How every stream begins.
pub fn start() -> String {
    let mut begun = response("in_progress", &json!([]));
    begun["usage"] = Value::Null;
    let item = json!({"output_index": 0, "item": reasoning()});
    event("response.created", &json!({"response": begun}))
        + &event("response.in_progress", &json!({"response": begun}))
        + &event("response.output_item.added", &item)
        + &event("response.output_item.done", &item)
}

fn incomplete(reason: &str, output: Value) -> String {
    let mut response = response("incomplete", &output);
    response["incomplete_details"] = json!({"reason": reason});
    event("response.incomplete", &json!({"response": response}))
}

fn calls(calls: &[RawCall<'_>]) -> String {
    let mut body = start();
    let mut output = vec![reasoning()];
    for (number, call) in calls.iter().enumerate() {
        let (index, id) = (number + 1, format!("fc_{number}"));
        let (added, done) = (function(number, &(call.0, call.1, "")), function(number, call));
        let place = json!({"output_index": index, "item_id": id});
        let with = |name: &str, value: &Value| {
            let mut fields = place.clone();
            fields[name] = value.clone();
            fields
        };
        let (first, second) = call.2.split_at(call.2.floor_char_boundary(call.2.len() / 2));
        body += &event("response.output_item.added", &json!({"output_index": index, "item": added}));
        for piece in [first, second] {
            body += &event("response.function_call_arguments.delta", &with("delta", &json!(piece)));
        }
        body += &event("response.function_call_arguments.done", &with("arguments", &json!(call.2)));
        body += &event("response.output_item.done", &json!({"output_index": index, "item": done}));
        output.push(done);
    }
    body + &event("response.completed", &json!({"response": response("completed", &Value::Array(output))}))
}

pub fn wire() -> Wire {
    let place = json!({"item_id": "msg_1", "output_index": 1, "content_index": 0});
    let with = |name: &str, value: Value| {
        let mut fields = place.clone();
        fields[name] = value;
        fields
    };
    let more = event("response.output_text.delta", &with("delta", json!("half")));
    let empty = json!({"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    let begun = [
        start(),
        event("response.output_item.added", &json!({"output_index": 1, "item": empty})),
        event("response.content_part.added", &with("part", text(""))),
        more.clone(),
    ];
    let whole = response("completed", &json!([reasoning(), message("half")]));
    let rest = [
        event("response.output_text.done", &with("text", json!("half"))),
        event("response.content_part.done", &with("part", text("half"))),
        event("response.output_item.done", &json!({"output_index": 1, "item": message("half")})),
        event("response.completed", &json!({"response": whole})),
    ];
    let mut errors = Vec::new();
    for (code, status, passes) in [
        ("rate_limit_exceeded", 429, true),
        ("server_error", 500, true),
        ("invalid_prompt", 400, false),
        ("context_length_exceeded", 400, false),
    ] {
        let flat = json!({"code": code, "message": "why", "param": null});
        let failed = json!({"response": {"status": "failed", "error": {"code": code, "message": "why"}, "output": []}});
        for event in [
            event("error", &flat),
            event("error", &json!({"error": {"type": "t", "code": code, "message": "why"}})),
            event("response.failed", &failed),
        ] {
            errors.push(StreamError { event, status: Some(status), passes, wait_ms: None });
        }
    }
    Wire {
        provider: Provider::OpenAiResponses,
        line: "POST /v1/responses HTTP/1.1",
        key: ("authorization", format!("Bearer {KEY}")),
        begun: begun.concat(),
        more,
        rest: rest.concat(),
        body: whole.to_string(),
        tokens: Tokens { input: 1000, output: 500, cached: 300, reasoning: 200, cost: 0.0 },
        stop: "completed",
        malformed: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text\n\n".to_owned(),
        errors,
        refusal: |_| {
            json!({"error": {"message": "why it is so", "type": "t", "param": null, "code": null}})
                .to_string()
        },
        calls,
        silent: vec![(incomplete("content_filter", json!([])), "stop", "content_filter")],
        cuts: vec![
            (incomplete("max_output_tokens", json!([message("half")])), Cut::Limit),
            (incomplete("content_filter", json!([message("half")])), Cut::Withheld),
        ],
        any_names: false,
        unsent: vec!["seed", "stop", "enable_thinking"],
        raw_arguments: true,
        lists: vec![("GET /v1/models HTTP/1.1", json!({"data": [{"id": "b"}, {"id": "a"}]}).to_string())],
    }
}
