use super::read;
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
