//! The pieces that need no server.

use super::*;
use crate::protocol::{below, schema_name};

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
fn what_an_endpoint_refuses_is_remembered() {
    let (first, second) = (WireQuirks::default().with(1).capped(9), WireQuirks::default().with(4).capped(5));
    let both = first.merge(second);
    assert!(both.has(1) && both.has(4) && !both.has(2));
    assert_eq!(both.max_tokens, Some(5));
    assert_eq!(both.merge(WireQuirks::default()), both);
}

#[test]
fn urls_are_joined_below_the_version_part() {
    let joined = |base: &str| base_url(base).map(|url| below(&url, "models").to_string());
    assert_eq!(joined("http://h:1/v1/").unwrap(), "http://h:1/v1/models");
    assert_eq!(joined(" https://h/a/v2?x=1#f ").unwrap(), "https://h/a/v2/models?x=1");
    assert!(joined("ftp://h/v1").is_err());
    assert!(joined("not a url").is_err());
}
