use super::{beginning, is_duplicate_key, read, reply};
use serde_json::{Value, json};

#[test]
fn it_reads_what_is_written() {
    let text =
        r#" {"a": [1, -2, 18446744073709551615, 0.1, 1e300, true, null, "\u00e9\n"], "b": {"a": {}}} "#;
    let usual: Value = serde_json::from_str(text).unwrap();
    assert_eq!(read(text).unwrap(), usual);
    assert_eq!(read(text).unwrap().to_string(), usual.to_string(), "keys keep their order");
    for wrong in ["", "x", "{} {}", "{\"a\":}", "[1", "NaN"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn e28_a_key_that_stands_twice_is_an_error() {
    for text in [r#"{"a": 1, "a": 1}"#, r#"[{"x": {"a": 1, "b": 2, "\u0061": 3}}]"#] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("the key \"a\" stands twice"), "{error}");
    }
    assert_eq!(read(r#"[{"a": 1}, {"a": 1}]"#).unwrap(), json!([{"a": 1}, {"a": 1}]));
}

/// E-33: what is around the whole reply is no part of it; what is around a part of it stays.
#[test]
fn e33_marks_thoughts_and_fences_are_taken_off() {
    for text in [
        r#"{"a": 1}"#,
        "\u{feff}{\"a\": 1}",
        "```json\n{\"a\": 1}\n```",
        "```\n{\"a\": 1}```\n",
        "~~~~ json5\n{\"a\": 1}\n~~~~",
        "```json {\"a\": 1}```",
        "<think>{} ``` </thinking></think>\n{\"a\": 1}",
        "<thinking>x</thinking><think>y</think>```\n{\"a\": 1}\n```",
        "I think.\n</think>\n\n```json\n{\"a\": 1}\n```",
    ] {
        assert_eq!(reply(text), Ok(json!({"a": 1})), "{text}");
    }
    assert_eq!(reply("```\n\"</think>\"\n```"), Ok(json!("</think>")));
    for wrong in [
        "Here: ```json\n{}\n```",
        "```json\n{}\n```\nDone.",
        "```json\n{}",
        "<think>{}",
        "``{}``",
        "```json\n```json\n{}\n```\n```",
        "",
        "```",
        "<think></think>",
    ] {
        assert!(reply(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn e33_errors_say_what_is_wrong_and_where() {
    assert_eq!(
        reply("Sure: {}"),
        Err("expected value at line 1 column 1, where \"Sure: {}\" stands".to_owned())
    );
    assert_eq!(
        reply("{\n \"é\": 1,\n nö}"),
        Err("key must be a string at line 3 column 2, where \"nö}\" stands".to_owned())
    );
    assert!(reply("{\"a\": ").unwrap_err().starts_with("EOF while parsing a value"));
    assert!(is_duplicate_key(&read(r#"{"a": 1, "a": 2}"#).unwrap_err()));
    assert!(!is_duplicate_key(&read("the key").unwrap_err()));
    assert_eq!(beginning(" a\n"), "\"a\"");
    assert_eq!(beginning(&"é".repeat(201)), format!("\"{}\" […]", "é".repeat(200)));
}
