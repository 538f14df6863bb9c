use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Diagnostics, DocumentLimits, Source};

fn read(text: &str) -> (Option<Value>, Vec<crate::Diagnostic>) {
    let source = Source::new("doc.json", text);
    let mut diagnostics = Diagnostics::new();
    let node = parse(&source, &DocumentLimits::default(), &mut diagnostics);
    (node.map(|node| node.to_value()), diagnostics.report(&source))
}

fn first_line(text: &str) -> String {
    let (_, diagnostics) = read(text);
    let rendered = crate::diagnostic::render(&diagnostics[0], Default::default());
    rendered.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn says_what_is_wrong_and_where() {
    let cases = [
        ("", "1:1: error[C-11]: the document is empty"),
        ("  \n ", "1:1: error[C-11]: the document is empty"),
        ("[1,]", "1:3: error[C-11]: nothing follows this comma"),
        ("{\"a\":1,\n}", "1:7: error[C-11]: nothing follows this comma"),
        ("[,]", "1:2: error[C-11]: expected a value here"),
        ("[1 2]", "1:4: error[C-11]: expected `,` or `]` here"),
        ("{\"a\":1 \"b\":2}", "1:8: error[C-11]: expected `,` or `}` here"),
        ("{\"a\" 1}", "1:6: error[C-11]: expected `:` behind the key \"a\""),
        ("{a: 1}", "1:2: error[C-11]: expected a key in double quotes here"),
        ("{'a': 1}", "1:2: error[C-11]: expected a key in double quotes here"),
        ("{\"a\": // no\n 1}", "1:7: error[C-11]: expected a value here"),
        ("[1]]", "1:4: error[C-11]: there is more text behind the end of the document"),
        ("1 2", "1:3: error[C-11]: there is more text behind the end of the document"),
        ("[1, [2, 3]\n", "1:11: error[C-11]: the document ends inside an array"),
        ("{\"a\": {\"b\": 1}", "1:15: error[C-11]: the document ends inside an object"),
        ("{\"a\":", "1:6: error[C-11]: the document ends inside an object"),
        ("[\"a\n\"]", "1:2: error[C-11]: this string is not closed before the end of the line"),
        ("[\"a", "1:2: error[C-11]: this string is not closed"),
        ("[\"a\tb\"]", "1:4: error[C-11]: a tab stands inside a string"),
        ("[\"a\u{1}\"]", "1:4: error[C-11]: the control character U+0001 stands inside a string"),
        (r#"["a\q"]"#, r#"1:4: error[C-11]: "\\q" is not an escape of JSON"#),
        (r#"["\u12"]"#, "1:3: error[C-11]: `\\u` must be followed by four hexadecimal digits"),
        (r#"["\ud800"]"#, "1:3: error[C-11]: this escape is one half of a surrogate pair"),
        (r#"["\ud800\u0041"]"#, "1:3: error[C-11]: this escape is one half of a surrogate pair"),
        (r#"["\udc00"]"#, "1:3: error[C-11]: this escape is one half of a surrogate pair"),
        ("[True]", "1:2: error[C-11]: \"True\" is not a JSON value"),
        ("[NaN]", "1:2: error[C-11]: \"NaN\" is not a JSON value"),
        ("[nulll]", "1:2: error[C-11]: \"nulll\" is not a JSON value"),
        ("[01]", "1:2: error[C-11]: a number may not start with a zero"),
        ("[-01.5]", "1:2: error[C-11]: a number may not start with a zero"),
        ("[1.]", "1:2: error[C-11]: this number is not complete"),
        ("[-]", "1:2: error[C-11]: this number is not complete"),
        ("[1e+]", "1:2: error[C-11]: this number is not complete"),
        ("[.5]", "1:2: error[C-11]: expected a value here"),
        ("[+1]", "1:2: error[C-11]: expected a value here"),
        ("[1e999]", "1:2: error[C-11]: this number is out of range"),
        ("\u{a0}1", "1:1: error[C-11]: expected a value here"),
        ("[\u{c}1]", "1:2: error[C-11]: expected a value here"),
    ];
    for (text, expected) in cases {
        assert_eq!(first_line(text), format!("doc.json:{expected}"), "for {text:?}");
        let (value, diagnostics) = read(text);
        assert_eq!(value, None);
        assert_eq!(diagnostics.len(), 1, "one clear error for {text:?}");
        assert!(!diagnostics[0].help.is_empty(), "a way out for {text:?}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "serde_json accepts {text:?}");
    }
}

/// C-04: who wrote another format is told so, and not how its first word would be right.
#[test]
fn other_formats_are_told_apart_from_slips() {
    for (text, part) in [
        ("task: t\nsteps: []\n", "no YAML"),
        ("\n# a plan\n", "no YAML"),
        ("import os\n", "no other format"),
        ("```json\n{}\n```\n", "block of Markdown"),
        ("[# a plan\n]", "no comments"),
        ("[task]", "double quotes"),
    ] {
        let (_, diagnostics) = read(text);
        assert!(diagnostics[0].help.contains(part), "{text}: {}", diagnostics[0].help);
    }
}

#[test]
fn e28_duplicate_keys_are_errors_at_the_later_key() {
    let (value, diagnostics) = read("{\"a\": 1,\n \"b\": {\"x\": 1, \"\\u0078\": 2}, \"a\": 3}");
    assert!(value.is_some());
    let found: Vec<_> =
        diagnostics.iter().map(|d| (d.code, d.rule, d.line, d.column, d.pointer.as_str())).collect();
    assert_eq!(
        found,
        [
            ("duplicate-key", "E-28", Some(2), Some(16), "/b/x"),
            ("duplicate-key", "E-28", Some(2), Some(30), "/a"),
        ]
    );
    assert_eq!(diagnostics[1].help, "the first is at line 1, column 2: keep one");
}

#[test]
fn e28_duplicate_keys_are_found_in_large_objects() {
    let members: Vec<String> = (0..50_000).map(|n| format!("\"k{}\": {n}", n % 49_999)).collect();
    let (_, diagnostics) = read(&format!("{{{}}}", members.join(",")));
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].message, "the key \"k0\" occurs twice in this object");
}

#[test]
fn e28_nesting_is_limited_and_never_overflows_the_stack() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(&nested(128)).0.is_some());
    for depth in [129, 10_000, 1_000_000] {
        let (value, diagnostics) = read(&nested(depth));
        assert_eq!(value, None);
        assert_eq!(diagnostics.len(), 1);
        assert_eq!((diagnostics[0].code, diagnostics[0].column), ("nesting-limit", Some(129)));
        assert!(diagnostics[0].help.contains("`json_nesting`"));
    }
    let (_, diagnostics) = read(&"{\"a\":".repeat(10_000));
    assert_eq!(diagnostics[0].code, "nesting-limit");
}

#[test]
fn the_deepest_setting_still_fits_a_small_stack() {
    let limits = DocumentLimits { json_nesting: usize::MAX, ..Default::default() };
    let depth = crate::limits::MAX_JSON_NESTING;
    let run = move || {
        let text = "[{\"a\":".repeat(depth / 2) + "1" + &"}]".repeat(depth / 2);
        let source = Source::new("doc.json", &text);
        let mut diagnostics = Diagnostics::new();
        let node = parse(&source, &limits, &mut diagnostics).expect("as deep as allowed");
        let value = node.to_value();
        drop(node.into_owned());
        value.is_array()
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run);
    assert!(thread.expect("a thread").join().expect("no overflow"));
}

#[test]
fn keeps_places_of_keys_and_values() {
    let text = "{ \"a\": [1, \"x\\n\"],\n  \"b\": {} }";
    let source = Source::new("doc.json", text);
    let node = parse(&source, &DocumentLimits::default(), &mut Diagnostics::new()).expect("valid");
    let members = node.as_object().expect("an object");
    assert_eq!(source.slice(node.span), text);
    assert_eq!(source.slice(members[0].key_span), "\"a\"");
    assert_eq!(source.slice(members[0].value.span), "[1, \"x\\n\"]");
    assert_eq!(source.slice(members[0].value.as_array().expect("an array")[1].span), "\"x\\n\"");
    assert_eq!(source.slice(members[1].value.span), "{}");
}

#[test]
fn keeps_the_order_of_keys_and_resolves_escapes() {
    let (value, diagnostics) = read(r#"{"z": 1, "a": "\ud83d\ude00\u00e9\/\"\\\b\f\n\r\t", "m": -0.5e2}"#);
    assert!(diagnostics.is_empty());
    let value = value.expect("valid");
    assert_eq!(value["a"], "😀é/\"\\\u{8}\u{c}\n\r\t");
    assert_eq!(value["m"], json!(-50.0));
    let keys: Vec<_> = value.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["z", "a", "m"]);
}

#[test]
fn integers_are_those_written_as_integers() {
    let text = "[1, -7, 1.0, 1e2, 99999999999999999999, -99999999999999999999, \"1\"]";
    let source = Source::new("doc.json", text);
    let node = parse(&source, &DocumentLimits::default(), &mut Diagnostics::new()).expect("valid");
    let read = |node: &Node<'_>| node.as_integer(&source).map(|integer| (integer.value, integer.clamped));
    let integers: Vec<_> = node.as_array().expect("an array").iter().map(read).collect();
    let clamped = |value| Some((value, true));
    assert_eq!(
        integers,
        [Some((1, false)), Some((-7, false)), None, None, clamped(i64::MAX), clamped(i64::MIN), None]
    );
}

#[test]
fn places_inside_strings_count_escapes() {
    // A part of the string on the left; what of the document it covers on the right.
    let cases = [
        (r#""say {{x}} now""#, "{{x}}", "{{x}}"),
        (r#""line\n{{x}}""#, "{{x}}", "{{x}}"),
        (r#""\u007b\u007bx}}!""#, "{{x}}", r"\u007b\u007bx}}"),
        (r#""\ud83d\ude00 {{ü}}\t{{b}}""#, "{{b}}", "{{b}}"),
        (r#""数据 {{ü}}""#, "{{ü}}", "{{ü}}"),
        (r#""a\\\"{{x}}""#, "\\\"", r#"\\\""#),
        (r#""a\tb""#, "\t", r"\t"),
        (r#""\ud83d\ude00""#, "😀", r"\ud83d\ude00"),
    ];
    for (literal, part, expected) in cases {
        let text = format!("{{\"é\": {literal}}}");
        let source = Source::new("doc.json", &text);
        let node = parse(&source, &DocumentLimits::default(), &mut Diagnostics::new()).expect("valid");
        let value = &node.as_object().expect("an object")[0].value;
        let resolved = value.as_str().expect("a string");
        let at = resolved.find(part).expect("the part");
        let span = place_in_string(source.text(), value.span, at..at + part.len());
        assert_eq!(source.slice(span), expected, "in {literal}");
    }
}

#[test]
fn places_of_many_parts_are_those_of_each() {
    let text = r#"["a{{x}}\n\u00e9{{y}}é\ud83d\ude00{{z}}"]"#;
    let literal = Span::new(1, text.len() - 1);
    let parts = [1..6, 9..14, 20..25];
    let each: Vec<Span> = parts.iter().map(|part| place_in_string(text, literal, part.clone())).collect();
    let written: Vec<&str> = each.iter().filter_map(|span| text.get(span.range())).collect();
    assert_eq!(written, ["{{x}}", "{{y}}", "{{z}}"]);
    assert_eq!(places_in_string(text, literal, parts), each);
}

#[test]
fn places_at_the_edges_of_strings_stay_inside() {
    let text = r#"["ab\n"]"#;
    let literal = Span::new(1, 7);
    let span = |part| place_in_string(text, literal, part).range();
    assert_eq!(span(0..0), 2..2);
    assert_eq!(span(2..3), 4..6);
    assert_eq!(span(3..3), 6..6);
    assert_eq!(span(1..99), 3..6);
    assert_eq!(span(50..99), 6..6);
    assert_eq!(place_in_string(r#"[""]"#, Span::new(1, 3), 0..5).range(), 2..2);
}

#[test]
fn pointers_name_the_value_at_a_place() {
    let text = r#"{"a/b": [10, {"~x": true}, []], "\u0063": {"d": null}}"#;
    let at = |part: &str| text.find(part).expect("the part");
    let cases = [
        (0, ""),
        (at("\"a/b\""), "/a~1b"),
        (at("[10"), "/a~1b"),
        (at("10"), "/a~1b/0"),
        (at("{\"~x"), "/a~1b/1"),
        (at("\"~x\""), "/a~1b/1/~0x"),
        (at("true"), "/a~1b/1/~0x"),
        (at("[]"), "/a~1b/2"),
        (at("\"\\u0063\""), "/c"),
        (at("null"), "/c/d"),
        (text.len() - 1, ""),
        (text.len() + 5, ""),
    ];
    let offsets: Vec<usize> = cases.iter().map(|(offset, _)| *offset).collect();
    let expected: Vec<&str> = cases.iter().map(|(_, pointer)| *pointer).collect();
    assert_eq!(pointers(text, &offsets), expected);
}

#[test]
fn pointers_of_broken_documents_follow_what_is_there() {
    assert_eq!(pointers(r#"{"a": [1, x"#, &[10]), ["/a/1"]);
    assert_eq!(pointers(r#"{"a": [1, "#, &[9, 50]), ["/a", "/a"]);
    assert_eq!(pointers("", &[0, 3]), ["", ""]);
    assert_eq!(pointers("}}]", &[0, 1, 2]), ["", "", ""]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every place in the tree, with the JSON pointer that leads there.
fn places(node: &Node<'_>, pointer: &str, found: &mut Vec<(usize, String)>) {
    found.push((node.span.start as usize, pointer.to_owned()));
    for (index, element) in node.as_array().unwrap_or_default().iter().enumerate() {
        places(element, &format!("{pointer}/{index}"), found);
    }
    for member in node.as_object().unwrap_or_default() {
        let step = member.key.replace('~', "~0").replace('/', "~1");
        places(&member.value, &format!("{pointer}/{step}"), found);
    }
}

proptest! {
    #[test]
    fn reads_what_serde_json_reads(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("serializable");
        let expected: Value = serde_json::from_str(&text).expect("serde_json reads what it wrote");
        let (read, diagnostics) = read(&text);
        prop_assert!(diagnostics.is_empty());
        prop_assert_eq!(read, Some(expected));
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts(
        value in any_json(), at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec!["", ",", "\"", "\\", "{", "}", "[", "]", ":", "0", "-", ".", "e", " ", "\n", "\t", "\u{1}", "é", "t"]),
    ) {
        let text = serde_json::to_string(&value).expect("serializable");
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        let behind = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        let broken = format!("{}{with}{}", &text[..at], &text[behind..]);
        let (read, diagnostics) = read(&broken);
        if diagnostics.iter().any(|d| d.code == "duplicate-key") {
            return Ok(());
        }
        prop_assert_eq!(read, serde_json::from_str::<Value>(&broken).ok());
    }

    #[test]
    fn pointers_agree_with_the_tree(value in any_json()) {
        let text = serde_json::to_string_pretty(&value).expect("serializable");
        let source = Source::new("doc.json", &text);
        let node = parse(&source, &DocumentLimits::default(), &mut Diagnostics::new()).expect("valid");
        let mut expected = Vec::new();
        places(&node, "", &mut expected);
        let offsets: Vec<usize> = expected.iter().map(|(offset, _)| *offset).collect();
        let expected: Vec<String> = expected.into_iter().map(|(_, pointer)| pointer).collect();
        prop_assert_eq!(pointers(&text, &offsets), expected);
    }
}

/// A-21: an integer that 64 bits can't hold would become another number; all others stay what they are.
#[test]
fn integers_are_exact_or_findings() {
    let read = |text: &str| {
        let source = Source::new("", text);
        let mut found = Diagnostics::new();
        let value = parse_exactly(&source, &DocumentLimits::default(), &mut found).unwrap().to_value();
        (value.to_string(), found.report(&source).first().map(|finding| (finding.code, finding.column)))
    };
    for exact in
        ["18446744073709551615", "-9223372036854775808", "1e30", "0.1", "-0.0", "[\"18446744073709551616\"]"]
    {
        let (value, found) = read(exact);
        assert_eq!((value.replace("e+", "e").as_str(), found), (exact, None));
    }
    assert_eq!(read("-0").1, None);
    for (text, column) in [("18446744073709551616", 1), ("[1, {\"a\": -9223372036854775809}]", 11)] {
        assert_eq!(read(text).1, Some(("inexact-number", Some(column))), "{text}");
    }
}
