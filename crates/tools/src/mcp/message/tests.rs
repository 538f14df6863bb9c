//! What is read, what is mended, what is told.

use super::*;
use serde_json::json;

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn answer(id: &str, structured: &str) -> String {
    format!(
        r#"{{"jsonrpc": "2.0", "id": {id}, "result": {{"content": [], "structuredContent": {{"a": {structured}}}}}}}"#
    )
}

/// E-28: what is deeper than the client reads by itself, but not too deep, arrives whole; what is too deep has its call
/// as the only one that fails; numbers and texts are the same id.
#[test]
fn deep_answers_are_put_aside() {
    let reader = Reader::new(128, 1 << 20, &[]);
    for (id, levels) in [("7", 127), ("\"7\"", 127)] {
        let message = reader.read(answer(id, &nested(levels)).as_bytes()).pop().expect("a message");
        assert!(matches!(message, JsonRpcMessage::Error(_)), "{message:?}");
        let Some(Ok(ServerResult::CustomResult(result))) = reader.fetch(&RequestId::Number(7)) else {
            panic!("not put aside")
        };
        assert!(result.0["structuredContent"]["a"].is_array());
        assert!(reader.fetch(&RequestId::Number(7)).is_none());
    }
    for levels in [200, 100_000] {
        reader.read(answer("8", &nested(levels)).as_bytes()).pop().expect("a message");
        let aside = reader.fetch(&RequestId::Number(8));
        assert!(matches!(aside, Some(Err(UnreadableReply::Unread(Unread::Deep)))), "{levels}: {aside:?}");
    }
    // Nobody waits for it.
    let told = format!(r#"{{"jsonrpc": "2.0", "method": "a", "params": {}}}"#, nested(200));
    assert!(reader.read(told.as_bytes()).is_empty());
    assert!(reader.read(b"[[[").is_empty());
}

/// A-21: of two values under one key nobody knows which is meant; only those of an output count.
#[test]
fn a21_keys_of_outputs_stand_once() {
    let reader = Reader::new(128, 1 << 20, &[]);
    reader.read(answer("1", r#"{"n": 1, "n": 2}"#).as_bytes()).pop().expect("a message");
    let aside = reader.fetch(&RequestId::Number(1));
    let Some(Err(UnreadableReply::Unread(Unread::Twice(error)))) = aside else { panic!("{aside:?}") };
    assert!(error.to_string().contains("\"n\" stands twice"), "{error}");
    let message = reader.read(answer("1", r#"{"n": {"n": 1}}"#).as_bytes()).pop().expect("a message");
    assert!(matches!(message, JsonRpcMessage::Response(_)), "{message:?}");
}

/// E-25: an integer of an output stays what it is; those of other answers, and those in texts, are none of an output.
#[test]
fn integers_of_outputs_are_not_changed() {
    let reader = Reader::new(128, 1 << 20, &[]);
    reader.read(answer("1", "18446744073709551616").as_bytes()).pop().expect("a message");
    let aside = reader.fetch(&RequestId::Number(1));
    let Some(Err(UnreadableReply::Unread(Unread::Large(digits)))) = aside else { panic!("{aside:?}") };
    assert_eq!(digits, "18446744073709551616");
    for untouched in [
        answer("1", "18446744073709551615"),
        answer("1", "\"18446744073709551616\""),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
            {"name": "t", "inputSchema": {"type": "object", "maximum": 7}}]}})
        .to_string()
        .replace('7', "340282366920938463463374607431768211455"),
    ] {
        let message = reader.read(untouched.as_bytes()).pop().expect("a message");
        assert!(matches!(message, JsonRpcMessage::Response(_)), "{untouched}: {message:?}");
    }
}

/// What is not quite as the protocol has it is read where it says what it means.
#[test]
fn messages_that_are_not_quite_right() {
    let reader = Reader::new(128, 1 << 20, &[]);
    let read = |text: &[u8]| serde_json::to_value(reader.read(text)).unwrap();
    let whole = |text: &[u8]| read(text)[0]["result"]["content"][0]["text"].clone();
    let of = |text: &[u8]| {
        let (before, after) = (
            br#"{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": ""#,
            br#""}]}}"#,
        );
        [&before[..], text, &after[..]].concat()
    };
    assert_eq!(whole(&of(br"a\ud83d")), json!("a\u{fffd}"));
    assert_eq!(whole(&of(br"\ude00 b \ud83d\ude00")), json!("\u{fffd} b 😀"));
    assert_eq!(whole(&of(b"a\xe9\xff b")), json!("a\u{fffd}\u{fffd} b"));
    for (error, code, message) in [
        (r#""boom""#, UNNAMED, "boom"),
        (r#"{"code": "-32602", "message": "no"}"#, -32602, "no"),
        (r#"{"message": "no"}"#, UNNAMED, "no"),
        (r#"{"code": null, "message": "no"}"#, UNNAMED, "no"),
        (r#"{"code": -32603, "message": "no"}"#, -32603, "no"),
        (r#"{"code": "E42", "message": "no"}"#, UNNAMED, r#"{"code":"E42","message":"no"}"#),
        (r#"{"code": 1.5, "message": "no"}"#, UNNAMED, r#"{"code":1.5,"message":"no"}"#),
        (r#"{"code": 7}"#, 7, r#"{"code":7}"#),
        ("true", UNNAMED, "true"),
    ] {
        for result in ["", r#", "result": null"#] {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": 1{result}, "error": {error}}}"#);
            let read = read(text.as_bytes());
            assert_eq!(
                (&read[0]["error"]["code"], &read[0]["error"]["message"]),
                (&json!(code), &json!(message)),
                "{text}"
            );
            assert_eq!(read[0]["id"], json!(1));
        }
    }
    assert_eq!(
        read(br#"{"jsonrpc": "2.0", "id": 7.0, "error": null, "result": {"a": 1}}"#)[0]["id"],
        json!(7)
    );
    let list = format!("[{}, {}]", answer("1", "1"), answer("2", "18446744073709551616"));
    assert_eq!(read(list.as_bytes()).as_array().unwrap().len(), 2);
    assert!(matches!(
        reader.fetch(&RequestId::Number(2)),
        Some(Err(UnreadableReply::Unread(Unread::Large(_))))
    ));
    for none in [r#"{"level": "info", "id": 1, "error": "x"}"#, "[[{}]]", "7", "", "[1, {}]"] {
        assert!(reader.read(none.as_bytes()).is_empty(), "{none}");
    }
}

/// An error that names nobody belongs to who asked, one that names another call that waits to that; over stdio, to
/// the only one that waits.
#[test]
fn errors_that_name_nobody() {
    let reader = Reader::new(128, 1 << 20, &[]);
    let id =
        |text: &str| serde_json::to_value(reader.answer(text.as_bytes(), &RequestId::Number(1))).unwrap();
    let error =
        |id: &str| format!(r#"{{"jsonrpc": "2.0", {id} "error": {{"code": -32000, "message": "m"}}}}"#);
    (1..=2).for_each(|id| reader.asked(&RequestId::Number(id)));
    for own in ["", r#""id": null,"#, r#""id": "server-error","#, r#""id": 9,"#, r#""id": "1","#] {
        let read = id(&error(own));
        assert!([json!(1), json!("1")].contains(&read[0]["id"]), "{own}: {read}");
        reader.asked(&RequestId::Number(1));
    }
    assert_eq!(id(&error(r#""id": 2,"#))[0]["id"], json!(2));
    let addressed = reader.addressed(reader.read(error("").as_bytes()).remove(0));
    assert_eq!(id_of(&addressed), Some(&RequestId::Number(1)));
    (1..=2).for_each(|id| reader.asked(&RequestId::Number(id)));
    assert_eq!(id_of(&reader.addressed(addressed_to_nobody(&error(""), &reader))), None);
}

fn addressed_to_nobody(text: &str, reader: &Reader) -> Message {
    reader.read(text.as_bytes()).remove(0)
}

/// C-06: keys are out before what is shown is cut.
#[test]
fn what_is_told_has_no_keys() {
    let reader = Reader::new(128, 1 << 20, &[Secret::new("key-0123456789")]);
    let told = reader.told(format!("{}key-0123456789 and more", "x".repeat(190)).as_bytes());
    assert!(told.contains("[redact") && !told.contains("key-"), "{told}");
    assert!(told.chars().count() <= SHOWN + CUT.chars().count());
}

/// What is cut says so, also where what was cut off was not even looked at.
#[test]
fn what_is_cut_says_so() {
    let reader = Reader::new(128, 1 << 20, &[]);
    for (text, cut) in
        [("x".repeat(200), false), ("x".repeat(201), true), (format!("x{}y", " ".repeat(5000)), true)]
    {
        assert_eq!(reader.told(text.as_bytes()).ends_with(CUT), cut, "{}", text.len());
    }
}

/// What nobody fetches does not stay for ever.
#[test]
fn only_so_many_wait() {
    let reader = Reader::new(128, 1 << 20, &[]);
    for id in 0..1000 {
        reader.too_long(&RequestId::Number(id));
    }
    assert!(reader.aside.lock().unwrap().len() <= ASIDE);
    assert!(reader.fetch(&RequestId::Number(999)).is_some());
}
