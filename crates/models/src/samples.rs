//! Requests and JSON for the tests of protocols.

use proptest::prelude::*;
use selvedge_engine::{EffectId, Message, ModelRequest, ModelSettings, ReplySchema, Role, ToolCall, ToolDef};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request of nothing but messages.
pub(super) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        effect: EffectId("main/n1/1/1".into()),
        node: "n1".into(),
        thread: "main".into(),
        role: "basic".into(),
        messages: messages.into_iter().map(Arc::new).collect::<Vec<_>>().into(),
        tools: Vec::new(),
        known: Vec::new(),
        schema: None,
        settings: ModelSettings::default(),
        timeout_s: None,
    }
}

pub(super) fn said(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

pub(super) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments }
}

/// An assistant message with calls.
pub(super) fn calling(text: &str, calls: &[ToolCall]) -> Message {
    Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, text) }
}

/// A tool with this schema.
pub(super) fn tool(name: &str, input_schema: Value) -> Arc<ToolDef> {
    Arc::new(ToolDef {
        name: name.into(),
        description: "Looks things up.".into(),
        input_schema,
        output_params: None,
        effects: None,
        version: "v".into(),
        source: "built-in".into(),
        timeout_s: None,
        approval: false,
    })
}

/// Every setting there is, one that only some providers know among them.
pub(super) fn settings() -> ModelSettings {
    ModelSettings {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_tokens: Some(77),
        seed: Some(-3),
        stop: vec!["END".to_owned()],
        extra: [("enable_thinking".to_owned(), Value::Bool(true))].into_iter().collect(),
        ..ModelSettings::default()
    }
}

/// A schema for replies.
pub(super) fn schema() -> ReplySchema {
    ReplySchema { name: "node 1/ü".into(), schema: json!({"type": "object", "$defs": {"x": {}}}) }
}

/// Any JSON, with these words as keys and strings more often than others.
pub(super) fn any_json(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = prop_oneof![3 => prop::sample::select(words).prop_map(str::to_owned), 1 => ".{0,6}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A text, and the same text in pieces.
pub(super) fn pieces() -> impl Strategy<Value = (String, Vec<String>)> {
    prop::collection::vec(any::<char>().prop_map(String::from).boxed(), 0..40).prop_flat_map(|chars| {
        let text = chars.concat();
        let cuts = prop::collection::vec(any::<bool>(), chars.len());
        (
            Just(text),
            cuts.prop_map(move |cuts| {
                let mut pieces = vec![String::new()];
                for (char, cut) in chars.iter().zip(cuts) {
                    if cut {
                        pieces.push(String::new());
                    }
                    if let Some(last) = pieces.last_mut() {
                        last.push_str(char);
                    }
                }
                pieces
            }),
        )
    })
}
