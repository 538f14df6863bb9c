//! Bodies and replies without a server (E-10, E-20, E-23, E-26).

mod properties;

use super::*;
use crate::protocol::{Phase, ReplyError};
use crate::samples::{call, calling, request, said, schema, settings, tool};
use selvedge_engine::{Message, ModelReply, Role, Tokens, Unread};
use serde_json::{Value, json};

fn body_of(request: &ModelRequest, quirks: WireQuirks) -> Value {
    serde_json::from_slice(&Responses.body("gpt-5", request, quirks).unwrap()).unwrap()
}

#[test]
fn every_message_is_an_item_and_calls_are_their_own() {
    let (one, two) = (call("c1", "a", json!({"x": "ä"})), call("c2", "b", json!("{broken")));
    let asked = request(vec![
        said(Role::System, "s"),
        said(Role::User, "u"),
        said(Role::User, ""),
        calling("I look.", &[one.clone(), two.clone()]),
        Message::tool(&one, "{\"r\":1}"),
        Message::tool(&two, ""),
        calling("", std::slice::from_ref(&one)),
        Message::tool(&one, "again"),
        said(Role::System, "later"),
        said(Role::Assistant, ""),
    ]);
    let message = |role: &str, text: &str| json!({"type": "message", "role": role, "content": text});
    let output =
        |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let called = json!({"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{\"x\":\"ä\"}"});
    assert_eq!(
        body_of(&asked, WireQuirks::default()),
        json!({
            "model": "gpt-5",
            "input": [
                message("system", "s"), message("user", "u"), message("user", ""),
                message("assistant", "I look."), called,
                {"type": "function_call", "call_id": "c2", "name": "b", "arguments": "{broken"},
                output("c1", "{\"r\":1}"), output("c2", ""),
                called, output("c1", "again"),
                message("system", "later"), message("assistant", ""),
            ],
            "store": false,
            "stream": true,
        })
    );
}

#[test]
fn ids_that_are_too_long_are_shortened_in_both_places() {
    let ids = ["x".repeat(64), "x".repeat(65), "ü".repeat(64), format!("{}y", "x".repeat(64))];
    let mut sent = Vec::new();
    for id in &ids {
        let one = call(id, "a", json!({}));
        let asked = request(vec![calling("", std::slice::from_ref(&one)), Message::tool(&one, "")]);
        let input = body_of(&asked, WireQuirks::default())["input"].clone();
        assert_eq!(input[0]["call_id"], input[1]["call_id"]);
        sent.push(input[0]["call_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((&sent[0], &sent[2]), (&ids[0], &ids[2]));
    assert!(sent[1] != sent[3] && sent.iter().all(|id| id.chars().count() <= 64), "{sent:?}");
}

#[test]
fn settings_tools_and_schema_go_as_they_are() {
    let mut asked = request(vec![]);
    asked.tools = vec![tool("search", json!({"type": "object", "properties": {"q": {}}}))];
    asked.schema = Some(schema());
    asked.settings = settings();
    assert_eq!(
        body_of(&asked, WireQuirks::default().with(NO_STREAM)),
        json!({
            "model": "gpt-5", "input": [],
            "tools": [{"type": "function", "name": "search", "description": "Looks things up.",
                "parameters": {"type": "object", "properties": {"q": {}}}, "strict": false}],
            "text": {"format": {"type": "json_schema", "name": "node_1__",
                "schema": {"type": "object", "$defs": {"x": {}}}, "strict": false}},
            "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 77,
            "store": false, "stream": false,
        })
    );
}

#[test]
fn only_streaming_is_given_up() {
    let after = |quirks, words: &str| {
        let body = json!({"error": {"message": words}}).to_string();
        Responses.after(quirks, StatusCode::BAD_REQUEST, body.as_bytes(), &request(vec![]))
    };
    let now = WireQuirks::default();
    for kept in [
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "Unknown parameter: 'seed'.",
    ] {
        assert_eq!(after(now, kept), None, "{kept}");
    }
    let whole =
        after(now, "Your organization must be verified to stream this model: 'stream' is not supported")
            .unwrap();
    assert!(whole.has(NO_STREAM));
    assert_eq!(after(whole, "'stream' is not supported"), None);
}

/// The reply of a stream, or the first flaw. What was heard is the text, unless a later form changed it.
fn read(events: &[Value]) -> Result<(ModelReply, String, Phase), ReplyError> {
    let mut reply = Box::new(reply::Reply::new(1 << 20));
    let mut heard = String::new();
    for event in events {
        heard.push_str(&reply.event(event["type"].as_str(), &event.to_string())?);
    }
    let phase = reply.phase();
    Ok((reply.finish(), heard, phase))
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn message(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [text_part(text)]})
}

fn function(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": arguments})
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed",
        "error": null, "incomplete_details": null, "output": output,
        "usage": {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 15}, "total_tokens": 50}}})
}

/// A whole stream as OpenAI sends it: reasoning, a message, two calls.
fn stream() -> Vec<Value> {
    let at = |kind: &str, index: u64, fields: Value| {
        let mut event = json!({"type": kind, "output_index": index, "sequence_number": 0});
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        event
    };
    let reasoning = json!({"id": "rs", "type": "reasoning", "summary": []});
    let mut output = vec![reasoning.clone(), message("m", "Hi all"), function("f1", "c1", "a", "{\"x\":1}")];
    output.push(function("f2", "c2", "b", "{}"));
    vec![
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "error": null, "output": []}}),
        json!({"type": "response.in_progress", "response": {"id": "r", "status": "in_progress", "output": []}}),
        at("response.output_item.added", 0, json!({"item": reasoning})),
        at(
            "response.reasoning_summary_text.delta",
            0,
            json!({"item_id": "rs", "summary_index": 0, "delta": "hm"}),
        ),
        at("response.output_item.done", 0, json!({"item": reasoning})),
        at(
            "response.output_item.added",
            1,
            json!({"item": {"id": "m", "type": "message", "status": "in_progress", "role": "assistant", "content": []}}),
        ),
        at(
            "response.content_part.added",
            1,
            json!({"item_id": "m", "content_index": 0, "part": text_part("")}),
        ),
        at("response.output_text.delta", 1, json!({"item_id": "m", "content_index": 0, "delta": "Hi"})),
        at("response.output_text.delta", 1, json!({"item_id": "m", "content_index": 0, "delta": " all"})),
        at("response.output_text.done", 1, json!({"item_id": "m", "content_index": 0, "text": "Hi all"})),
        at(
            "response.content_part.done",
            1,
            json!({"item_id": "m", "content_index": 0, "part": text_part("Hi all")}),
        ),
        at("response.output_item.done", 1, json!({"item": message("m", "Hi all")})),
        at("response.output_item.added", 2, json!({"item": function("f1", "c1", "a", "")})),
        at("response.output_item.added", 3, json!({"item": function("f2", "c2", "b", "")})),
        at("response.function_call_arguments.delta", 2, json!({"item_id": "f1", "delta": "{\"x\""})),
        at("response.function_call_arguments.delta", 3, json!({"item_id": "f2", "delta": "{}"})),
        at("response.function_call_arguments.delta", 2, json!({"item_id": "f1", "delta": ":1}"})),
        at("response.function_call_arguments.done", 2, json!({"item_id": "f1", "arguments": "{\"x\":1}"})),
        at("response.function_call_arguments.done", 3, json!({"item_id": "f2", "arguments": "{}"})),
        at("response.output_item.done", 2, json!({"item": function("f1", "c1", "a", "{\"x\":1}")})),
        at("response.output_item.done", 3, json!({"item": function("f2", "c2", "b", "{}")})),
        completed(&Value::Array(output)),
    ]
}

fn expected() -> ModelReply {
    ModelReply {
        text: "Hi all".to_owned(),
        calls: vec![call("c1", "a", json!({"x": 1})), call("c2", "b", json!({}))],
        tokens: Tokens { input: 30, output: 20, cached: 10, reasoning: 15, ..Tokens::default() },
        stop: Some("completed".to_owned()),
        cut: None,
        unmended: 0,
        unread: Unread::default(),
    }
}

#[test]
fn a_stream_gives_each_word_once() {
    let (reply, heard, phase) = read(&stream()).unwrap();
    assert_eq!(reply, expected());
    assert_eq!((heard.as_str(), phase), ("Hi all", Phase::Ended));
}

#[test]
fn the_finished_response_is_enough_and_so_is_all_before_it() {
    let all = stream();
    let only = read(&all[all.len() - 1..]).unwrap();
    assert_eq!((only.0, only.1.as_str()), (expected(), "Hi all"));
    // A last event without output, as some gateways send it.
    let mut without = all.clone();
    *without.last_mut().unwrap() = completed(&json!([]));
    assert_eq!(read(&without).unwrap().0, expected());
    let items: Vec<Value> = without
        .iter()
        .filter(|event| {
            matches!(event["type"].as_str(), Some("response.output_item.done" | "response.completed"))
        })
        .cloned()
        .collect();
    let (reply, heard, _) = read(&items).unwrap();
    assert_eq!((reply, heard.as_str()), (expected(), "Hi all"));
    // Deltas alone lack nothing but ids and names of calls, which come with the items' beginnings.
    let deltas: Vec<Value> = without
        .iter()
        .filter(|event| {
            let kind = event["type"].as_str().unwrap();
            kind.ends_with(".delta") || kind.ends_with("item.added") || kind.ends_with("completed")
        })
        .cloned()
        .collect();
    assert_eq!(read(&deltas).unwrap().0, expected());
}

#[test]
fn without_an_end_a_stream_is_open() {
    let all = stream();
    for length in 0..all.len() {
        assert_eq!(read(&all[..length]).unwrap().2, Phase::Open, "{length}");
    }
}

/// Gateways number items from 0 each, name them anew in every event, or don't number them.
#[test]
fn indices_and_ids_that_are_wrong_do_no_harm() {
    let ends = |events: &mut Vec<Value>| *events.last_mut().unwrap() = completed(&json!([]));
    let mut renamed = stream();
    ends(&mut renamed);
    for (number, event) in renamed.iter_mut().enumerate() {
        for target in ["/item_id", "/item/id"] {
            if let Some(id) = event.pointer_mut(target) {
                *id = json!(format!("id{number}"));
            }
        }
    }
    assert_eq!(read(&renamed).unwrap().0, expected());

    let mut unnumbered = stream();
    ends(&mut unnumbered);
    for event in &mut unnumbered {
        event.as_object_mut().unwrap().remove("output_index");
    }
    assert_eq!(read(&unnumbered).unwrap().0, expected());

    // One after the other, all with index 0.
    let piece = |event: Value| event;
    let zero = [
        piece(
            json!({"type": "response.output_item.added", "output_index": 0, "item": function("f1", "c1", "a", "")}),
        ),
        piece(
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"x\":1}"}),
        ),
        piece(
            json!({"type": "response.output_item.done", "output_index": 0, "item": function("f1", "c1", "a", "{\"x\":1}")}),
        ),
        piece(
            json!({"type": "response.output_item.added", "output_index": 0, "item": function("f2", "c2", "b", "")}),
        ),
        piece(json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"})),
        piece(
            json!({"type": "response.output_item.done", "output_index": 0, "item": function("f2", "c2", "b", "{}")}),
        ),
        piece(completed(&json!([]))),
    ];
    assert_eq!(read(&zero).unwrap().0.calls, expected().calls);
}

#[test]
fn late_and_repeated_events_change_nothing() {
    let mut all = stream();
    all.last_mut().unwrap()["response"]["output"] = json!([]);
    // Everything that says a whole text or item comes twice.
    let twice: Vec<Value> = all
        .iter()
        .flat_map(|event| {
            let whole = event["type"].as_str().unwrap().ends_with(".done");
            std::iter::repeat_n(event.clone(), if whole { 2 } else { 1 })
        })
        .collect();
    assert_eq!(read(&twice).unwrap().0, expected());
    // The text is said to be done after its message is.
    let late = all.iter().position(|event| event["type"] == "response.output_text.done").unwrap();
    let event = all.remove(late);
    all.insert(all.len() - 1, event);
    let (reply, heard, _) = read(&all).unwrap();
    assert_eq!((reply, heard.as_str()), (expected(), "Hi all"));
}

#[test]
fn a_later_form_wins_over_an_earlier_one() {
    let events = [
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Helo"}),
        completed(&json!([message("m", "Hello")])),
    ];
    let (reply, heard, _) = read(&events).unwrap();
    assert_eq!((reply.text.as_str(), heard.as_str()), ("Hello", "Helo"));
}

#[test]
fn calls_are_kept_as_they_came() {
    let output = json!([
        function("", "", "no_id", ""),
        function("f", "same", "a", "{\"x\":"),
        function("f", "same", "b", "[1]"),
        {"type": "function_call", "call_id": "j", "name": "json", "arguments": {"y": [2]}},
        {"type": "function_call"},
        {"type": "web_search_call", "id": "w"},
    ]);
    let (reply, ..) = read(&[completed(&output)]).unwrap();
    let expected = [
        call("", "no_id", json!({})),
        call("same", "a", json!("{\"x\":")),
        call("same", "b", json!("[1]")),
        call("j", "json", json!({"y": [2]})),
    ];
    assert_eq!(reply.calls, expected);
}

#[test]
fn refusals_are_text_and_reasons_are_the_stop() {
    let refused = [
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I "}),
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "can't."}),
        json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I can't."}),
        completed(&json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}])),
    ];
    assert_eq!(read(&refused).unwrap().0.text, "I can't.");
    let cut = |reason: &str, output: Value| json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": output}});
    let (reply, _, phase) = read(&[cut("max_output_tokens", json!([message("m", "half")]))]).unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.stop.as_deref(), phase),
        ("half", Some("max_output_tokens"), Phase::Ended)
    );
    let (reply, ..) = read(&[cut("content_filter", json!([message("m", "half")]))]).unwrap();
    assert_eq!(reply.stop.as_deref(), Some("content_filter"));
    let withheld = read(&[cut("content_filter", json!([]))]).unwrap_err();
    assert!(
        matches!(&withheld, ReplyError::Refused(refusal) if refusal.reason == "content_filter"),
        "{withheld:?}"
    );
}

#[test]
fn failures_are_flaws_however_they_are_said() {
    let error = json!({"code": "server_error", "message": "sorry"});
    for event in [
        json!({"type": "response.failed", "response": {"status": "failed", "error": error}}),
        json!({"type": "error", "error": error, "sequence_number": 2}),
        json!({"error": error}),
    ] {
        assert_eq!(
            read(std::slice::from_ref(&event)).unwrap_err(),
            ReplyError::Provider(error.clone()),
            "{event}"
        );
    }
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": null, "sequence_number": 1});
    assert_eq!(read(std::slice::from_ref(&flat)).unwrap_err(), ReplyError::Provider(flat.clone()));
    let cancelled = json!({"type": "response.cancelled", "response": {"status": "cancelled", "error": null}});
    assert_eq!(
        read(&[cancelled]).unwrap_err(),
        ReplyError::Provider(json!({"message": "the response was cancelled"}))
    );
}

#[test]
fn one_body_is_a_reply() {
    let all = stream();
    let body = all.last().unwrap()["response"].to_string();
    let mut reply = Box::new(reply::Reply::new(1000));
    assert_eq!(reply.whole(body.as_bytes()).unwrap(), "Hi all");
    assert_eq!(reply.finish(), expected());
    for (body, why) in [
        (r#"{"status":"in_progress","output":[]}"#, "it is not finished"),
        (r#"{"status":"queued","output":[]}"#, "it is not finished"),
        (r"{}", "it has no output"),
        (r"[]", "it has no output"),
        (r#"{"output":{}}"#, "it has no output"),
    ] {
        let flaw = reply::Reply::new(1000).whole(body.as_bytes());
        assert_eq!(flaw, Err(ReplyError::Unparsable(why.to_owned())), "{body}");
    }
    let failed =
        reply::Reply::new(1000).whole(br#"{"status":"failed","error":{"code":"server_error"},"output":[]}"#);
    assert_eq!(failed, Err(ReplyError::Provider(json!({"code": "server_error"}))));
}

#[test]
fn floods_meet_the_limit_and_whole_forms_are_not_counted_twice() {
    let flood = |event: &dyn Fn(u64) -> Value| {
        let mut reply = reply::Reply::new(1000);
        let found = (0..1000).find_map(|number| reply.event(None, &event(number).to_string()).err());
        assert_eq!(found, Some(ReplyError::TooLong), "{}", event(0));
    };
    flood(&|_| json!({"type": "response.output_text.delta", "output_index": 0, "delta": "abcdefgh"}));
    flood(
        &|_| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "abcdefgh"}),
    );
    flood(
        &|n| json!({"type": "response.output_item.added", "output_index": n, "item": {"type": "function_call"}}),
    );
    flood(
        &|n| json!({"type": "response.refusal.delta", "output_index": 0, "content_index": n, "delta": "x"}),
    );
    let big = completed(&json!([message("m", &"x".repeat(2000))]));
    assert_eq!(reply::Reply::new(1000).event(None, &big.to_string()), Err(ReplyError::TooLong));
    // 600 bytes, said four times.
    let text = "x".repeat(600);
    let mut reply = reply::Reply::new(1000);
    for event in [
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
        json!({"type": "response.output_text.done", "output_index": 0, "text": text}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": message("m", &text)}),
        completed(&json!([message("m", &text)])),
    ] {
        reply.event(None, &event.to_string()).unwrap();
    }
}
