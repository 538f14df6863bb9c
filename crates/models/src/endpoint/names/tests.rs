//! Names that go out and come back.

use super::*;
use crate::protocol::NameRule;
use crate::samples::{call, calling, request, said};
use proptest::prelude::*;
use selvedge_engine::Role;
use serde_json::json;

fn of(names: &[&str], rule: NameRule) -> (ModelRequest, Names) {
    let calls: Vec<_> = names.iter().map(|name| call("c", name, json!({}))).collect();
    let asked = request(vec![said(Role::User, "x"), calling("", &calls)]);
    let names = Names::of(&asked, Some(rule));
    (asked, names)
}

fn sent(names: &[&str], rule: NameRule) -> Vec<String> {
    let (asked, names) = of(names, rule);
    let sent = names.sent(&asked);
    sent.messages[1].tool_calls.iter().map(|call| call.name.to_string()).collect()
}

#[test]
fn names_that_fit_are_left_alone() {
    let (asked, names) = of(&["search", "a-b_C9", "9"], NameRule::Plain);
    assert!(matches!(names.sent(&asked), Cow::Borrowed(_)));
    assert_eq!(sent(&["-a", "9", "_9"], NameRule::Word)[2], "_9");
    assert!(sent(&["-a", "9"], NameRule::Word).iter().all(|name| name.starts_with('_')));
}

#[test]
fn a_name_that_another_tool_has_is_not_made() {
    let made = sent(&["a.b"], NameRule::Plain).remove(0);
    let both = sent(&["a.b", &made], NameRule::Plain);
    assert!(both[0] != made && both[1] == made, "{both:?}");
    // Two that differ in odd letters only stay two.
    let two = sent(&["a.b", "a:b"], NameRule::Plain);
    assert_ne!(two[0], two[1]);
}

proptest! {
    #[test]
    fn every_name_comes_back(all in proptest::collection::vec(".{0,80}", 1..6)) {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        for rule in [NameRule::Plain, NameRule::Word] {
            let (asked, names) = of(&all, rule);
            let sent = names.sent(&asked);
            let calls = sent.messages[1].tool_calls.clone();
            prop_assert!(calls.iter().all(|call| rule.fits(&call.name)), "{calls:?}");
            let back = names.received(ModelReply { calls, ..ModelReply::default() });
            let back: Vec<&str> = back.calls.iter().map(|call| &*call.name).collect();
            prop_assert_eq!(&back, &all);
        }
    }
}
