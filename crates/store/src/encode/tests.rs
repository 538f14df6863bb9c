use std::collections::HashMap;
use std::convert::Infallible;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LARGE_ENTRY, LONG_STRING, decode, encode};
use crate::BlobHash;

fn round_trip(text: &str) -> String {
    let Some(encoded) = encode(text) else { return text.to_owned() };
    let blobs: HashMap<BlobHash, Vec<u8>> = encoded.blobs.into_iter().collect();
    let content = |hash: BlobHash, out: &mut String| {
        out.push_str(std::str::from_utf8(&blobs[&hash]).unwrap());
        Ok::<(), Infallible>(())
    };
    decode(&encoded.body, content, || panic!("encoded text must decode")).unwrap()
}

#[test]
fn small_entries_are_left_alone() {
    let long = "x".repeat(LARGE_ENTRY - 10);
    assert!(encode(&format!("{{\"a\":\"{long}\"}}")).is_none());
}

#[test]
fn a_large_entry_without_long_strings_is_left_alone() {
    let text = json!(vec!["short"; 2000]).to_string();
    assert!(text.len() > LARGE_ENTRY);
    assert!(encode(&text).is_none());
}

#[test]
fn long_strings_are_stored_once_each() {
    let said = "word ".repeat(2000);
    let text = json!({"a": said, "b": [said, said], "c": "short"}).to_string();
    let encoded = encode(&text).unwrap();
    assert_eq!(encoded.blobs.len(), 1);
    assert_eq!(encoded.blobs[0].1, said.as_bytes());
    assert!(encoded.body.len() < 300, "{}", encoded.body);
    assert_eq!(round_trip(&text), text);
}

#[test]
fn user_data_that_looks_like_a_reference_comes_back() {
    let hash = BlobHash::of(b"anything").to_string();
    let long = "y".repeat(LARGE_ENTRY);
    for tricky in [
        format!("@{hash}"),
        "@".into(),
        "@@".into(),
        format!("@@{hash}"),
        "\u{40}x".into(),
        format!("@{long}"),
    ] {
        let text = json!({"t": tricky, "@key": long, tricky.as_str(): 1}).to_string();
        assert!(encode(&text).is_some());
        assert_eq!(round_trip(&text), text);
    }
}

#[test]
fn numbers_spaces_key_order_and_escapes_stay_as_written() {
    let long = "\\u00e4\\n\\\"".repeat(LONG_STRING);
    let text = format!(
        "{{ \"z\" : 1.10, \"a\":\t-0, \"big\": 123456789012345678901234567890, \"e\": 1E400,\n \"s\": \"{long}\", \"\\u0040\": \"\\ud800\" }}"
    );
    assert!(encode(&text).is_some());
    assert_eq!(round_trip(&text), text);
}

#[test]
fn deep_nesting_has_no_limit() {
    let long = "d".repeat(LARGE_ENTRY);
    let text = format!("{}\"{long}\"{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(encode(&text).is_some());
    assert_eq!(round_trip(&text), text);
}

#[test]
fn text_that_is_not_json_is_left_alone() {
    let text = format!("\"{}", "q".repeat(LARGE_ENTRY));
    assert!(encode(&text).is_none());
}

#[test]
fn a_body_with_a_broken_reference_is_an_error() {
    for body in ["\"@12\"", "\"@zz\"", "\"open"] {
        let result = decode(body, |_, _| Ok(()), || "broken");
        assert_eq!(result, Err("broken"), "{body}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[@\"\\\\a-c]{0,6}",
        "[@\"\\\\äö]{1}[a-z@\"\\\\\n]{1000,3000}",
        (0..3_usize).prop_map(|which| "same content ".repeat(100 + which)),
    ];
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        text.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_comes_back_byte_for_byte(value in value(), pad in 0..2_usize) {
        let text = json!({"v": value, "pad": "p".repeat(pad * LARGE_ENTRY)}).to_string();
        prop_assert_eq!(round_trip(&text), text);
    }

    #[test]
    fn any_text_at_all_comes_back_byte_for_byte(start in "[\"@\\\\{}:,a]{0,40}", middle in "[a@]{2000}", end in any::<String>()) {
        let text = format!("{start}\"{middle}{middle}{middle}\"{end}");
        prop_assert_eq!(round_trip(&text), text);
    }
}
