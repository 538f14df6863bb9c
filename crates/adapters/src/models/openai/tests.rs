//! The pieces that need no server.

use super::*;
use crate::models::openai::request::schema_name;

#[test]
fn schema_names_fit_what_providers_take() {
    assert_eq!(schema_name("failure_report"), "failure_report");
    assert_eq!(schema_name("größe/1 a"), "gr__e_1_a");
    assert_eq!(schema_name(""), "reply");
    assert_eq!(schema_name(&"é".repeat(100)).len(), 64);
}

#[test]
fn an_idempotency_key_is_whole_or_absent() {
    assert_eq!(idempotency_key("r/a b").unwrap(), "r/a%20b");
    assert_eq!(idempotency_key(&"x".repeat(256)), None);
}

#[test]
fn a_form_is_given_up_only_when_the_refusal_names_it() {
    let bad = StatusCode::BAD_REQUEST;
    let now = Dialect::default();
    assert_eq!(now.after(bad, b"the stream of messages is wrong", true), None);
    assert_eq!(now.after(StatusCode::NOT_FOUND, b"stream_options", true), None);
    assert_eq!(now.after(bad, b"max_completion_tokens is too large", false), None);
    let without = now.after(bad, br#"{"error":"stream_options: Extra inputs are not permitted"}"#, false);
    assert_eq!(without, Some(Dialect { no_stream_options: true, ..now }));
    // What was given up already is not given up again, so that the questions end.
    assert_eq!(without.and_then(|form| form.after(bad, b"stream_options", false)), None);
    let whole = now.after(bad, b"streaming is not supported", false);
    assert_eq!(whole, Some(Dialect { no_stream: true, ..now }));
    assert_eq!(whole.and_then(|form| form.after(bad, b"streaming is not supported", false)), None);
}

#[test]
fn what_an_endpoint_refuses_is_remembered() {
    let bits = AtomicU8::new(0);
    let form = Dialect { no_stream_options: true, no_stream: false, completion_tokens: true };
    form.store(&bits);
    assert_eq!(Dialect::load(&bits), form);
}

#[test]
fn urls_are_joined_below_the_version_part() {
    let joined = |base: &str| join(base, "models").map(|url| url.to_string());
    assert_eq!(joined("http://h:1/v1/").unwrap(), "http://h:1/v1/models");
    assert_eq!(joined(" https://h/a/v2?x=1#f ").unwrap(), "https://h/a/v2/models?x=1");
    assert!(joined("ftp://h/v1").is_err());
    assert!(joined("not a url").is_err());
}
