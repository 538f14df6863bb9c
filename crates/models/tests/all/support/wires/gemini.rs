//! Google's Gemini.

use super::{RawCall, StreamError, Wire, data};
use crate::support::KEY;
use selvedge_engine::{Cut, Tokens};
use selvedge_models::Provider;
use serde_json::{Value, json};

/// A chunk with these parts.
pub fn chunk_of(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 990, "totalTokenCount": 990,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 990}]},
        "modelVersion": "test-model", "responseId": "r"})
}

fn usage() -> Value {
    json!({"promptTokenCount": 990, "toolUsePromptTokenCount": 10, "cachedContentTokenCount": 300,
        "candidatesTokenCount": 300, "thoughtsTokenCount": 200, "totalTokenCount": 1500})
}

/// The last chunk.
pub fn last(parts: &Value, reason: &str) -> Value {
    let mut chunk = chunk_of(parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk["usageMetadata"] = usage();
    chunk
}

fn calls(calls: &[RawCall<'_>]) -> String {
    let mut body = String::new();
    for (id, name, arguments) in calls {
        let mut call = json!({"name": name, "args": serde_json::from_str::<Value>(arguments).unwrap()});
        if let Some(id) = id {
            call["id"] = json!(id);
        }
        body += &data(&chunk_of(&json!([{"functionCall": call, "thoughtSignature": "EqQ="}])));
    }
    body + &data(&last(&json!([{"text": ""}]), "STOP"))
}

/// An error as Google says it.
pub fn error(status: u16, name: &str, words: &str, details: &Value) -> Value {
    json!({"error": {"code": status, "message": words, "status": name, "details": details}})
}

/// Details with a wait.
pub fn wait(delay: &str) -> Value {
    json!([
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ])
}

pub fn wire() -> Wire {
    let begun = [
        chunk_of(&json!([{"text": "**Thinking** half of it", "thought": true}])),
        chunk_of(&json!([{"text": "half"}])),
    ];
    let in_stream =
        |status: u16, name: &str, details: &Value, passes: bool, wait_ms: Option<u64>| StreamError {
            event: data(&error(status, name, "why", details)),
            status: Some(status),
            passes,
            wait_ms,
        };
    Wire {
        provider: Provider::Gemini,
        line: "POST /v1/models/test-model:streamGenerateContent?alt=sse HTTP/1.1",
        key: ("x-goog-api-key", KEY.to_owned()),
        begun: begun.iter().map(data).collect(),
        more: data(&begun[1]),
        rest: data(&last(&json!([{"text": "", "thoughtSignature": "EqQ="}]), "STOP")),
        body: last(&json!([{"text": "half", "thoughtSignature": "EqQ="}]), "STOP").to_string(),
        tokens: Tokens { input: 1000, output: 500, cached: 300, reasoning: 200, cost: 0.0 },
        stop: "STOP",
        malformed: "data: {\"candidates\":[\n\n".to_owned(),
        errors: vec![
            in_stream(429, "RESOURCE_EXHAUSTED", &wait("3s"), true, Some(3000)),
            in_stream(429, "RESOURCE_EXHAUSTED", &wait("1.5s"), true, Some(1500)),
            in_stream(429, "RESOURCE_EXHAUSTED", &wait("3600s"), false, Some(3_600_000)),
            in_stream(503, "UNAVAILABLE", &json!([]), true, None),
            in_stream(500, "INTERNAL", &Value::Null, true, None),
            in_stream(400, "INVALID_ARGUMENT", &json!([]), false, None),
            in_stream(403, "PERMISSION_DENIED", &json!([]), false, None),
            StreamError {
                event: data(&json!([error(503, "UNAVAILABLE", "why", &json!([]))])),
                status: Some(503),
                passes: true,
                wait_ms: None,
            },
        ],
        refusal: |status| error(status, "SOME_STATUS", "why it is so", &json!([])).to_string(),
        calls,
        silent: vec![
            (data(&last(&json!([]), "SAFETY")), "finishReason", "SAFETY"),
            (data(&json!({"promptFeedback": {"blockReason": "SAFETY"}})), "blockReason", "SAFETY"),
        ],
        cuts: vec![
            (data(&last(&json!([]), "MAX_TOKENS")), Cut::Limit),
            (data(&last(&json!([]), "RECITATION")), Cut::Withheld),
        ],
        any_names: false,
        unsent: vec!["enable_thinking"],
        raw_arguments: false,
        lists: vec![
            (
                "GET /v1/models?pageSize=1000 HTTP/1.1",
                json!({"models": [
                    {"name": "models/b", "supportedGenerationMethods": ["generateContent", "countTokens"]},
                    {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                ], "nextPageToken": "next/1"})
                .to_string(),
            ),
            (
                "GET /v1/models?pageSize=1000&pageToken=next%2F1 HTTP/1.1",
                json!({"models": [{"name": "models/a", "supportedGenerationMethods": ["generateContent"]}]})
                    .to_string(),
            ),
        ],
    }
}
