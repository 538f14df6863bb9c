//! The pieces that need no server.

use super::schema::{ReplyTool, native};
use super::*;
use crate::protocol::{ReplyError, wire_id};
use crate::samples::{any_json, call, calling, request, said};
use proptest::prelude::*;
use selvedge_engine::{Message, ReplySchema, Role};
use serde_json::{Value, json};

#[test]
fn a_maximum_is_read_out_of_the_refusal_that_names_it() {
    let read = |text: &str| maximum_in(&text.to_ascii_lowercase(), 32_000);
    let named = "max_tokens: 32000 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229";
    assert_eq!(read(named), Some(4096));
    assert_eq!(read("max_tokens: 32000 > 64000, which is the maximum"), None);
    assert_eq!(read("max_tokens: must be at most the maximum"), None);
    assert_eq!(read("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"), None);
}

#[test]
fn schemas_are_closed_and_what_is_refused_is_told() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "A place.",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Its name"},
            "tags": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"enum": ["a", null]}},
            "at": {"$ref": "#/$defs/point"},
            "when": {"type": "string", "format": "date-time"},
            "odd": {"type": "string", "format": "roman"},
            "kind": {"oneOf": [{"const": 1}, {"type": "null"}]},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number", "minimum": 0}}}},
    });
    let expected = json!({
        "type": "object",
        "description": "A place.",
        "properties": {
            "name": {"type": "string", "description": "Its name (minLength: 1)"},
            "tags": {"type": "array", "minItems": 1, "items": {"enum": ["a", null]}, "description": "(maxItems: 3)"},
            "at": {"$ref": "#/$defs/point"},
            "when": {"type": "string", "format": "date-time"},
            "odd": {"type": "string", "description": "(format: \"roman\")"},
            "kind": {"anyOf": [{"const": 1}, {"type": "null"}]},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"point": {"type": "object", "additionalProperties": false,
            "properties": {"x": {"type": "number", "description": "(minimum: 0)"}}}},
    });
    assert_eq!(native(&schema), Some(expected));
}

#[test]
fn schemas_that_mean_more_than_can_be_said_are_not_native() {
    let object = |extra: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    assert!(native(&object(json!({}))).is_some());
    for schema in [
        json!(true),
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        object(json!({"additionalProperties": true})),
        object(json!({"additionalProperties": {"type": "string"}})),
        object(json!({"patternProperties": {"^x": {}}})),
        object(json!({"if": {}, "then": {}})),
        object(json!({"not": {}})),
        object(json!({"required": ["b"]})),
        object(json!({"properties": {"a": {"enum": [{"x": 1}]}}})),
        object(json!({"properties": {"a": {"$ref": "#"}}})),
        object(
            json!({"$defs": {"list": {"type": "object", "properties": {"next": {"$ref": "#/$defs/list"}}}}}),
        ),
        json!({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}),
    ] {
        assert_eq!(native(&schema), None, "{schema}");
    }
}

#[test]
fn ids_that_do_not_fit_get_one_that_does() {
    for id in ["toolu_01", "a-b_C9"] {
        assert_eq!(wire_id(id), id);
    }
    let odd = ["main/n1/1/1", "main/n1/1/2", "", "é", &"x".repeat(65)];
    let made: std::collections::BTreeSet<String> = odd.iter().map(|id| wire_id(id).into_owned()).collect();
    assert_eq!(made.len(), odd.len());
    assert!(made.iter().all(|id| wire_id(id) == id.as_str()), "{made:?}");
}

/// Conversations as the engine sends them (E-10): each call's result follows its message.
fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let text = || prop_oneof![Just(String::new()), Just(" \n".to_owned()), ".{1,4}"];
    let arguments = || prop_oneof![Just(json!({"q": 1})), Just(json!("{broken")), Just(json!({}))];
    let part = prop_oneof![
        text().prop_map(|text| vec![said(Role::User, &text)]),
        text().prop_map(|text| vec![said(Role::System, &text)]),
        text().prop_map(|text| vec![said(Role::Assistant, &text)]),
        (text(), prop::collection::vec((arguments(), text()), 1..3)).prop_map(|(text, calls)| {
            let (arguments, results): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
            let calls: Vec<_> = (0..)
                .zip(arguments)
                .map(|(n, arguments)| call(&format!("main/x/{n}"), "tool", arguments))
                .collect();
            let answers = calls.iter().zip(results).map(|(call, text)| Message::tool(call, text.as_str()));
            [vec![calling(&text, &calls)], answers.collect()].concat()
        }),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn texts(blocks: &Value) -> Vec<String> {
    let all = blocks.as_array().into_iter().flatten();
    all.filter_map(|block| block["text"].as_str().or(block["content"].as_str())).map(str::to_owned).collect()
}

proptest! {
    /// What the API demands holds for every conversation, and no text is lost, added or moved (E-23), the
    /// stand-ins aside.
    #[test]
    fn every_conversation_is_sendable(messages in conversation(), refused in any::<bool>()) {
        let quirks = if refused { WireQuirks::default().with(NO_PREFILL) } else { WireQuirks::default() };
        let asked = request(messages.clone());
        let body: Value = serde_json::from_slice(&Messages.body("m", &asked, quirks).unwrap()).unwrap();
        let turns = body["messages"].as_array().unwrap();
        let roles: Vec<&str> = turns.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        prop_assert_eq!(roles.first(), Some(&"user"));
        prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", roles);
        prop_assert!(!refused || roles.last() == Some(&"user"));
        let mut open: Vec<&Value> = Vec::new();
        for turn in turns {
            let blocks = turn["content"].as_array().unwrap();
            prop_assert!(!blocks.is_empty());
            let results: Vec<&Value> = blocks.iter().map_while(|block| block.get("tool_use_id")).collect();
            prop_assert_eq!(&results, &open, "the results come first, and answer the turn before");
            for block in blocks.iter().filter(|block| block["type"] == "text") {
                prop_assert!(!block["text"].as_str().unwrap().trim().is_empty());
            }
            open = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]).collect();
        }
        let sent: Vec<String> = [texts(&body["system"]), turns.iter().flat_map(|turn| texts(&turn["content"])).collect()]
            .concat().into_iter().filter(|text| text != "." && text != "Continue.").collect();
        let said: Vec<String> = messages.iter()
            .filter(|message| message.tool_call_id.is_some() && !message.content.is_empty() || !message.content.trim().is_empty())
            .map(|message| message.content.to_string()).filter(|text| text != ".").collect();
        // White space at the end of a last message of the assistant is all that may be missing.
        let trimmed = |texts: &[String]| texts.iter().map(|text| text.trim_end().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(trimmed(&sent), trimmed(&said));
        prop_assert_eq!(body["tools"].is_array(), messages.iter().any(|message| !message.tool_calls.is_empty()));
    }

    #[test]
    fn what_is_native_stays_so(schema in any_json(&["type", "object", "string", "properties", "items", "required",
        "anyOf", "oneOf", "enum", "$ref", "#/$defs/a", "$defs", "minimum", "format", "additionalProperties"])) {
        if let Some(native_schema) = native(&schema) {
            prop_assert_eq!(native(&native_schema), Some(native_schema));
        }
        let mut asked = request(Vec::new());
        asked.schema = Some(ReplySchema { name: "n".into(), schema: schema.clone() });
        let tool = ReplyTool::of(&asked).unwrap();
        prop_assert_eq!(&tool.input_schema(&schema)["type"], "object");
    }

    /// Whatever comes, it is a reply or a flaw, and its text is what was heard.
    #[test]
    fn any_events_are_a_reply_or_a_flaw(events in prop::collection::vec(any_json(&["type", "index", "delta",
        "content_block", "message", "content", "usage", "text", "partial_json", "tool_use", "input", "id", "name",
        "message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop",
        "stop_reason", "error", "output_tokens"]), 0..8)) {
        let mut reply = Messages.assembler(&request(Vec::new()), 1 << 16);
        let mut heard = String::new();
        for event in &events {
            match reply.event(None, &event.to_string()) {
                Ok(text) => heard.push_str(&text),
                Err(ReplyError::Provider(error)) => prop_assert_eq!(Some(&error), event.get("error")),
                Err(ReplyError::Unparsable(_)) => {}
                Err(ReplyError::TooLong | ReplyError::Refused(_)) => return Ok(()),
            }
        }
        prop_assert_eq!(reply.finish().text, heard);
    }
}
