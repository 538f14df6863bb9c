//! Bodies and replies without a server (E-10, E-20, E-23, E-26, E-30).

use super::*;
use crate::protocol::{Phase, ReplyError};
use crate::samples::{any_json, call, calling, pieces, request, said, schema, settings, tool};
use proptest::prelude::*;
use selvedge_engine::{Message, ModelReply, Role, Tokens};
use serde_json::{Value, json};

const MODEL: &str = "gemini-3-pro";

fn body_of(model: &str, request: &ModelRequest, quirks: WireQuirks) -> Value {
    serde_json::from_slice(&Gemini.body(model, request, quirks).unwrap()).unwrap()
}

fn contents(messages: Vec<Message>) -> Value {
    body_of(MODEL, &request(messages), WireQuirks::default())["contents"].clone()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

#[test]
fn every_message_is_a_content_of_its_own_in_order() {
    let sent = contents(vec![
        said(Role::User, "a"),
        said(Role::User, "a"),
        said(Role::Assistant, "b"),
        said(Role::Assistant, ""),
        said(Role::System, "c"),
        said(Role::User, ""),
    ]);
    let model = |text: &str| json!({"role": "model", "parts": [{"text": text}]});
    assert_eq!(sent, json!([user("a"), user("a"), model("b"), model(" "), user("c"), user(" ")]));
}

#[test]
fn leading_system_messages_are_the_instruction() {
    let asked = request(vec![said(Role::System, "one"), said(Role::System, "two"), said(Role::User, "hi")]);
    assert_eq!(
        body_of(MODEL, &asked, WireQuirks::default()),
        json!({"systemInstruction": {"parts": [{"text": "one"}, {"text": "two"}]}, "contents": [user("hi")]})
    );
}

#[test]
fn a_conversation_begins_with_a_turn_of_the_user() {
    let first = call("c", "t", json!({}));
    for messages in [
        vec![said(Role::System, "only")],
        vec![said(Role::Assistant, "first")],
        vec![calling("", std::slice::from_ref(&first)), Message::tool(&first, "r")],
        vec![],
    ] {
        let sent = contents(messages);
        assert_eq!(sent[0], user(" "), "{sent}");
        assert_ne!(sent[1]["role"], "user", "{sent}");
    }
}

#[test]
fn calls_and_results_are_parts() {
    let (one, two) = (call("c1", "a", json!({"x": 1})), call("c2", "b", json!("{broken")));
    let again = call("c3", "a", json!({}));
    let sent = contents(vec![
        said(Role::User, "go"),
        calling("I look.", &[one.clone(), two.clone()]),
        Message::tool(&one, r#"{"r":[1,2.5,null]}"#),
        Message::tool(&two, r#"{"error":{"type":"input_error","message":"m"}}"#),
        calling("", std::slice::from_ref(&again)),
        Message::tool(&again, "plain"),
        said(Role::User, "and?"),
    ]);
    let signature = "skip_thought_signature_validator";
    assert_eq!(
        sent,
        json!([
            user("go"),
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "a", "args": {"x": 1}}, "thoughtSignature": signature},
                {"functionCall": {"id": "c2", "name": "b", "args": {"arguments": "{broken"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "a", "response": {"r": [1, 2.5, null]}}},
                {"functionResponse": {"id": "c2", "name": "b",
                    "response": {"error": {"type": "input_error", "message": "m"}}}},
            ]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "c3", "name": "a", "args": {}}, "thoughtSignature": signature},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c3", "name": "a", "response": {"result": "plain"}}},
            ]},
            // A turn of results has nothing but results.
            user("and?"),
        ])
    );
}

#[test]
fn calls_continue_the_turn_of_the_model_before_them() {
    let one = call("c1", "a", json!({}));
    let sent = contents(vec![
        said(Role::User, "go"),
        said(Role::Assistant, "wait"),
        calling("now", std::slice::from_ref(&one)),
        Message::tool(&one, ""),
    ]);
    assert_eq!(sent.as_array().unwrap().len(), 3);
    let texts: Vec<&Value> = sent[1]["parts"].as_array().unwrap().iter().map(|part| &part["text"]).collect();
    assert_eq!(texts, [&json!("wait"), &json!("now"), &Value::Null]);
    assert_eq!(sent[2]["parts"][0]["functionResponse"]["response"], json!({"result": ""}));
}

/// A result is an object only where the object says the same as the text, character by character.
#[test]
fn results_are_never_changed() {
    let one = call("c", "t", json!({}));
    let result = |text: &str| {
        let sent = contents(vec![
            said(Role::User, "go"),
            calling("", std::slice::from_ref(&one)),
            Message::tool(&one, text),
        ]);
        sent[2]["parts"][0]["functionResponse"]["response"].clone()
    };
    for text in [
        "",
        "3",
        "[1]",
        "null",
        r#""quoted""#,
        r#"{"a": 1}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1.0e3}"#,
        r#"{"big":9007199254740993}"#,
        r#"{"big":18446744073709551615}"#,
        r#"{"deep":[{"small":-9007199254740993}]}"#,
        r#"{"half":"#,
    ] {
        assert_eq!(result(text), json!({"result": text}), "{text}");
    }
    for text in [r"{}", r#"{"z":1,"a":{"b":[true,0.1]}}"#, r#"{"ü":"\n"}"#] {
        assert_eq!(result(text).to_string(), text);
    }
}

#[test]
fn older_models_get_no_signature_unless_they_ask() {
    let one = call("c", "t", json!({}));
    let asked = request(vec![
        said(Role::User, "go"),
        calling("", std::slice::from_ref(&one)),
        Message::tool(&one, "r"),
    ]);
    let signed = |model: &str, quirks: WireQuirks| {
        body_of(model, &asked, quirks)["contents"][1]["parts"][0].get("thoughtSignature").is_some()
    };
    let now = WireQuirks::default();
    for (model, expected) in [
        ("gemini-2.5-pro", false),
        ("models/gemini-2.0-flash", false),
        ("gemma-3", false),
        ("gemini-3-flash-preview", true),
        ("gemini-flash-latest", true),
        ("tunedModels/mine", true),
    ] {
        assert_eq!(signed(model, now), expected, "{model}");
        let refusal = br#"{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts."}}"#;
        let other = Gemini.after(now, StatusCode::BAD_REQUEST, refusal, &asked).unwrap();
        assert_eq!(signed(model, other), !expected, "{model}");
        assert_eq!(Gemini.after(other, StatusCode::BAD_REQUEST, refusal, &asked), None);
    }
}

#[test]
fn turns_are_changed_only_for_models_that_refuse_them() {
    let asked = request(vec![
        said(Role::User, "a"),
        said(Role::User, "b"),
        said(Role::Assistant, "c"),
        said(Role::Assistant, "d"),
    ]);
    let after = |quirks: WireQuirks, words: &str| {
        let body = json!({"error": {"code": 400, "message": words}}).to_string();
        Gemini.after(quirks, StatusCode::BAD_REQUEST, body.as_bytes(), &asked)
    };
    let now = WireQuirks::default();
    assert_eq!(body_of(MODEL, &asked, now)["contents"].as_array().unwrap().len(), 4);
    let ending = "Requests ending with a model turn are not supported.";
    let last = after(now, ending).unwrap();
    assert_eq!(after(last, ending), None);
    let sent = body_of(MODEL, &asked, last)["contents"].clone();
    assert_eq!((sent.as_array().unwrap().len(), &sent[4]), (5, &user(" ")));
    let both =
        after(last, "Please ensure that multiturn requests alternate between user and model.").unwrap();
    let two =
        |role: &str, one: &str, two: &str| json!({"role": role, "parts": [{"text": one}, {"text": two}]});
    let sent = body_of(MODEL, &asked, both)["contents"].clone();
    assert_eq!(sent, json!([two("user", "a", "b"), two("model", "c", "d"), user(" ")]));
    // A thread that ends otherwise is not refused for its end.
    let ends = request(vec![said(Role::User, "a")]);
    assert_eq!(Gemini.after(now, StatusCode::BAD_REQUEST, ending.as_bytes(), &ends), None);
}

#[test]
fn settings_tools_and_schema_go_as_they_are() {
    let parameters = json!({"type": "object", "properties": {"q": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"type": "string"}}});
    let mut asked = request(vec![said(Role::User, "hi")]);
    asked.tools = vec![tool("search", parameters.clone()), tool("none", json!({"type": "object"}))];
    asked.schema = Some(schema());
    asked.settings = settings();
    let whole = body_of(MODEL, &asked, WireQuirks::default());
    assert_eq!(
        whole,
        json!({
            "contents": [user("hi")],
            "tools": [{"functionDeclarations": [
                {"name": "search", "description": "Looks things up.", "parametersJsonSchema": parameters},
                {"name": "none", "description": "Looks things up.", "parametersJsonSchema": {"type": "object"}},
            ]}],
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "maxOutputTokens": 77, "seed": -3, "stopSequences": ["END"],
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object", "$defs": {"x": {}}},
            },
        })
    );
    let refusal = br#"{"error":{"message":"Function calling with a response mime type: 'application/json' is unsupported"}}"#;
    let quirks = Gemini.after(WireQuirks::default(), StatusCode::BAD_REQUEST, refusal, &asked).unwrap();
    let without = &body_of(MODEL, &asked, quirks)["generationConfig"];
    assert_eq!((without.get("responseMimeType"), without.get("responseJsonSchema")), (None, None));
    assert_eq!(without["topP"], 0.9);
    assert_eq!(Gemini.after(quirks, StatusCode::BAD_REQUEST, refusal, &asked), None);
    // Without tools there is nothing in the schema's way.
    asked.tools.clear();
    assert!(body_of(MODEL, &asked, quirks)["generationConfig"].get("responseJsonSchema").is_some());
}

#[test]
fn addresses_keep_the_query_and_escape_the_model() {
    let base = Url::parse("https://h/v1beta/?x=1").unwrap();
    let url = |model: &str| Gemini.url(&base, model, WireQuirks::default()).to_string();
    assert_eq!(url(MODEL), "https://h/v1beta/models/gemini-3-pro:streamGenerateContent?x=1&alt=sse");
    assert_eq!(
        url("tunedModels/a b?"),
        "https://h/v1beta/tunedModels/a%20b%3F:streamGenerateContent?x=1&alt=sse"
    );
    assert_eq!(Gemini.models_url(&base, None).as_str(), "https://h/v1beta/models?x=1&pageSize=1000");
    assert_eq!(Gemini.models_url(&base, Some("a=b")).query(), Some("x=1&pageSize=1000&pageToken=a%3Db"));
}

#[test]
fn the_list_has_what_generates() {
    let list = json!({"models": [
        {"name": "models/gemini-3-pro", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embedding-001", "supportedGenerationMethods": ["embedContent"]},
        {"name": "tunedModels/x"},
    ], "nextPageToken": "n"});
    let page = Gemini.models(list.to_string().as_bytes()).unwrap();
    assert_eq!(
        page,
        ModelPage { names: vec![MODEL.to_owned(), "tunedModels/x".to_owned()], next: Some("n".to_owned()) }
    );
    let last = Gemini.models(br#"{"models":[],"nextPageToken":""}"#).unwrap();
    assert_eq!(last, ModelPage::default());
    assert!(Gemini.models(b"{}").is_err());
}

fn chunk(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn stopped(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}]})
}

/// The reply of a stream, or the first flaw.
fn read(events: &[Value]) -> Result<(ModelReply, Phase), ReplyError> {
    let mut reply = Box::new(reply::Reply::new(1 << 20));
    let mut heard = String::new();
    for event in events {
        heard.push_str(&reply.event(None, &event.to_string())?);
    }
    let phase = reply.phase();
    let reply = reply.finish();
    assert_eq!(heard, reply.text);
    Ok((reply, phase))
}

#[test]
fn usage_counts_thoughts_as_output() {
    let usage = |fields: Value| {
        let (reply, _) = read(&[json!({"usageMetadata": fields}), stopped("STOP")]).unwrap();
        reply.tokens
    };
    let all = json!({"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 7,
        "thoughtsTokenCount": 13, "toolUsePromptTokenCount": 5, "totalTokenCount": 125});
    assert_eq!(usage(all), Tokens { input: 105, output: 20, cached: 40, reasoning: 13, ..Tokens::default() });
    assert_eq!(usage(json!({"promptTokenCount": 3})), Tokens { input: 3, ..Tokens::default() });
    assert_eq!(
        usage(json!({"thoughtsTokenCount": 9})),
        Tokens { output: 9, reasoning: 9, ..Tokens::default() }
    );
}

#[test]
fn blocks_without_text_are_refusals_and_lost_calls_may_pass() {
    let flaw = |events: &[Value]| match read(events) {
        Err(ReplyError::Provider(error)) => error,
        other => panic!("{other:?}"),
    };
    let refused = |events: &[Value]| match read(events) {
        Err(ReplyError::Refused(refusal)) => (refusal.field, refusal.reason),
        other => panic!("{other:?}"),
    };
    let blocked = refused(&[
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}),
    ]);
    assert_eq!(blocked, ("blockReason", "PROHIBITED_CONTENT".to_owned()));
    for reason in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST", "IMAGE_SAFETY"] {
        let refused = refused(&[chunk(&json!([{"text": ""}])), stopped(reason)]);
        assert_eq!(refused, ("finishReason", reason.to_owned()));
    }
    let lost = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "call:f{"}]});
    let lost = flaw(&[chunk(&json!([{"text": "I call"}])), lost]);
    assert_eq!(lost, json!({"message": "it stopped with MALFORMED_FUNCTION_CALL: call:f{"}));
    // What came before a block stands, as a reply that was cut at its limit does.
    for reason in ["SAFETY", "MAX_TOKENS", "OTHER", "SOMETHING_NEW"] {
        let (reply, phase) = read(&[chunk(&json!([{"text": "half"}])), stopped(reason)]).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop.as_deref(), phase),
            ("half", Some(reason), Phase::Stopped)
        );
    }
    let feedback = json!({"promptFeedback": {"blockReason": "OTHER"}});
    let (reply, phase) = read(&[chunk(&json!([{"functionCall": {"name": "f"}}])), feedback]).unwrap();
    assert_eq!((reply.calls.len(), phase), (1, Phase::Stopped));
    // Reasons that say nothing are none.
    let nothing = json!({"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}});
    assert_eq!(read(&[nothing, stopped("FINISH_REASON_UNSPECIFIED")]).unwrap().1, Phase::Open);
}

#[test]
fn a_list_of_chunks_is_a_reply_and_a_list_of_an_error_is_one() {
    let mut reply = Box::new(reply::Reply::new(100));
    let list = json!([chunk(&json!([{"text": "a"}])), chunk(&json!([{"text": "b"}])), stopped("STOP")]);
    assert_eq!(reply.whole(list.to_string().as_bytes()).unwrap(), "ab");
    assert_eq!(reply.finish().stop.as_deref(), Some("STOP"));
    let error = json!([{"error": {"code": 503, "message": "overloaded"}}]).to_string();
    let flaw = ReplyError::Provider(json!({"code": 503, "message": "overloaded"}));
    assert_eq!(reply::Reply::new(100).whole(error.as_bytes()), Err(flaw));
    for body in ["{}", "[]", r#"{"candidates":[]}"#, "{", "3", r#"{"candidates":{}}"#] {
        assert!(
            matches!(reply::Reply::new(100).whole(body.as_bytes()), Err(ReplyError::Unparsable(_))),
            "{body}"
        );
    }
}

#[test]
fn floods_meet_the_limit() {
    let flood = |event: Value| {
        let mut reply = reply::Reply::new(1000);
        let found = (0..1000).find_map(|_| reply.event(None, &event.to_string()).err());
        assert_eq!(found, Some(ReplyError::TooLong), "{event}");
    };
    flood(chunk(&json!([{"text": "abcdefgh"}])));
    flood(chunk(&json!([{"functionCall": {}}])));
    flood(chunk(&json!([{"functionCall": {"args": {"a": "b"}}}])));
}

const WORDS: &[&str] = &[
    "candidates",
    "content",
    "parts",
    "text",
    "thought",
    "functionCall",
    "id",
    "name",
    "args",
    "finishReason",
    "finishMessage",
    "STOP",
    "SAFETY",
    "MALFORMED_FUNCTION_CALL",
    "promptFeedback",
    "blockReason",
    "usageMetadata",
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "error",
    "index",
];

proptest! {
    #[test]
    fn the_cuts_of_a_text_do_not_matter((text, pieces) in pieces()) {
        let mut events: Vec<Value> = pieces.iter().map(|piece| chunk(&json!([{"text": piece}]))).collect();
        events.push(stopped("STOP"));
        prop_assert_eq!(read(&events).unwrap().0.text, text.clone());
        // All pieces in one chunk, thoughts among them.
        let parts = pieces.iter().flat_map(|piece| [json!({"text": piece}), json!({"text": "hm", "thought": true})]);
        let events = [chunk(&parts.collect()), stopped("STOP")];
        prop_assert_eq!(read(&events).unwrap().0.text, text);
    }

    #[test]
    fn no_json_makes_it_panic(events in prop::collection::vec(any_json(WORDS), 1..6)) {
        let mut reply = Box::new(reply::Reply::new(500));
        for event in &events {
            let _ = reply.event(Some("message"), &event.to_string());
        }
        reply.finish();
        let _ = reply::Reply::new(500).whole(events[0].to_string().as_bytes());
    }

    /// The same with JSON that fits.
    #[test]
    fn no_parts_make_it_panic(parts in any_json(WORDS), usage in any_json(WORDS)) {
        let event = json!({"candidates": [{"content": {"parts": [parts]}}], "usageMetadata": usage});
        let mut reply = Box::new(reply::Reply::new(500));
        let _ = reply.event(None, &event.to_string());
        reply.finish();
    }
}
