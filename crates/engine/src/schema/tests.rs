//! Schemas as input of strangers (E-45).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use super::*;
use proptest::prelude::*;
use serde_json::Map;
use serde_json::json;
use std::time::{Duration, Instant};

/// More than any of this may take in a build that is not optimised, on a machine that is busy.
const LONG: Duration = Duration::from_secs(30);

const UNTOLD: &str = "more wrong with it than can be told";
const OVER: &str = "limits.schema_steps";

/// `count` definitions, each of which refers twice to the next.
fn doubling(count: usize, keyword: &str, leaf: Value, top: Value) -> Value {
    let mut all = top;
    let mut definitions = Map::new();
    for at in 0..count {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({keyword: [next, next]}));
    }
    definitions.insert(format!("d{count}"), leaf);
    all["$defs"] = Value::Object(definitions);
    all["allOf"] = json!([{"$ref": "#/$defs/d0"}]);
    all
}

fn nested(depth: usize, key: &str) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({key: inner}))
}

/// What comes of a schema and a value: "fits", what is wrong, or why nobody knows.
fn outcome(schema: &Value, value: &Value) -> String {
    let began = Instant::now();
    let said = match Schema::new(schema, STEPS) {
        Err(Unusable::OverLimit(limit)) => limit,
        Err(Unusable::Invalid { message, .. }) => format!("invalid: {message}"),
        Ok(schema) => match schema.violations(value, 3) {
            Ok(violations) if violations.is_empty() => "fits".to_owned(),
            Ok(violations) => violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(excess) => excess.to_string(),
        },
    };
    let took = began.elapsed();
    println!("{took:?} {}", said.chars().take(150).collect::<String>());
    assert!(took < LONG, "{took:?}: {said}");
    said
}

#[test]
fn references_that_double_are_ended() {
    const OLD: &str = "http://json-schema.org/draft-07/schema#";
    for (keyword, leaf) in [
        ("allOf", json!({"type": "object"})),
        // No leaf ever looks at the value.
        ("allOf", json!({})),
        ("allOf", json!(true)),
        ("anyOf", json!({"type": "string"})),
        ("anyOf", json!(false)),
        ("oneOf", json!({})),
        ("oneOf", json!({"required": ["x"]})),
    ] {
        println!("{keyword} {leaf}");
        let said = outcome(&doubling(60, keyword, leaf.clone(), json!({})), &json!({"a": 1}));
        assert!(said.contains(OVER), "{keyword} {leaf}: {said}");
        let said = outcome(&doubling(60, keyword, leaf.clone(), json!({"$schema": OLD})), &json!({"a": 1}));
        assert!(said.contains(OVER), "{keyword} {leaf}: {said}");
        let said =
            outcome(&doubling(60, keyword, leaf, json!({"unevaluatedProperties": false})), &json!({"a": 1}));
        assert!(said.contains("look through more than"), "{said}");
    }
    // To see that it does not fit is quick, to tell all that is wrong is not.
    let said = outcome(&doubling(60, "allOf", json!({"type": "string"}), json!({})), &json!({}));
    assert!(said.contains("more wrong with it than can be told"), "{said}");
}

#[test]
fn references_by_name_are_counted() {
    let mut definitions = Map::new();
    for at in 0..60 {
        let next = json!({"$dynamicRef": format!("#d{}", at + 1)});
        let anchor = format!("d{at}");
        definitions.insert(anchor.clone(), json!({"$dynamicAnchor": anchor, "allOf": [next, next]}));
    }
    definitions.insert("d60".into(), json!({"$dynamicAnchor": "d60"}));
    let said = outcome(&json!({"$defs": definitions, "$dynamicRef": "#d0"}), &json!({}));
    assert!(said.contains(OVER), "{said}");
    // Parts with an address of their own, from which pointers begin.
    let mut inner = doubling(60, "allOf", json!({}), json!({}));
    inner["$id"] = json!("http://example.org/inner");
    let said = outcome(&json!({"x": inner, "$ref": "http://example.org/inner"}), &json!({}));
    assert!(said.contains(OVER) || said.starts_with("invalid"), "{said}");
    let round = json!({"$recursiveAnchor": true, "$schema": "https://json-schema.org/draft/2019-09/schema",
        "oneOf": [{"$recursiveRef": "#"}, {"$recursiveRef": "#"}]});
    outcome(&round, &nested(60, "k"));
}

#[test]
fn recursion_is_ended() {
    let twice = json!({"$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert!(!outcome(&twice, &json!({})).is_empty());
    // Each of five schemas of a value holds its `k` against all five.
    let mut definitions = Map::new();
    for at in 0..5 {
        let next = json!({"$ref": format!("#/$defs/d{}", (at + 1) % 5)});
        let within = json!({"k": {"$ref": "#/$defs/d0"}});
        definitions
            .insert(format!("d{at}"), json!({"oneOf": [next], "properties": within, "required": ["x"]}));
    }
    let round = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    assert_ne!(outcome(&round, &nested(60, "k")), "fits");
    // Trees of kinds, none of which is the right one.
    let kinds: Vec<Value> = (0..6)
        .map(|at| json!({"properties": {"k": {"$ref": "#/$defs/t"}, "kind": {"const": at}}, "required": ["kind"]}))
        .collect();
    let tree = json!({"$defs": {"t": {"oneOf": kinds}}, "$ref": "#/$defs/t"});
    assert_ne!(outcome(&tree, &nested(60, "k")), "fits");
}

#[test]
fn unevaluated_parts_are_counted() {
    let mut schema = json!({"properties": {"a": true}});
    for at in 0..50 {
        schema = json!({"anyOf": [schema, {"properties": {format!("b{at}"): true}}], "unevaluatedProperties": false});
    }
    let said = outcome(&schema, &json!({"a": 1, "c": 2}));
    assert!(said.contains(OVER) || said.contains("not allowed"), "{said}");
}

#[test]
fn large_values_are_counted() {
    let many: Vec<Value> = (0..200_000).map(|at| json!(at)).collect();
    let options: Vec<Value> = (0..2_000).map(|at| json!({"x": at, "y": [at]})).collect();
    let objects: Vec<Value> = (0..20_000).map(|at| json!({"x": at, "y": []})).collect();
    let names: Map<String, Value> = (0..20_000).map(|at| (format!("name{at}"), json!(at))).collect();
    let patterns: Map<String, Value> =
        (0..2_000).map(|at| (format!("^(x|y){at}z"), json!({"type": "string"}))).collect();
    let all: Vec<Value> = (0..2_000).map(|_| json!(true)).collect();
    for (schema, value) in [
        (json!({"items": {"enum": options}}), json!(objects)),
        (json!({"patternProperties": patterns, "additionalProperties": true}), json!(names)),
        (json!({"items": {"allOf": all}}), json!(many)),
        (json!({"contains": {"allOf": all}, "minContains": 200_000}), json!(many)),
        (json!({"propertyNames": {"allOf": all}}), json!(names)),
    ] {
        let said = outcome(&schema, &value);
        assert!(said.contains(OVER) || said.contains(UNTOLD), "{said}");
    }
    // What is only large is no attack.
    assert_eq!(outcome(&json!({"items": {"type": "integer", "multipleOf": 1}}), &json!(many)), "fits");
    let extreme =
        json!({"items": {"anyOf": [{"multipleOf": 1e-300}, {"multipleOf": 5e-324}, {"multipleOf": 1e308}]}});
    outcome(&extreme, &json!([1e308, -1.7e308, 1e-300, 0.1, u64::MAX, i64::MIN]));
}

#[test]
fn elements_that_hash_alike_are_no_attack() {
    // As many ways to put brackets around the same few numbers.
    fn brackets(mut at: u32) -> Value {
        let mut stack = vec![json!([1])];
        for number in 2..12 {
            let last = stack.pop().unwrap();
            stack.push(if at & 1 == 0 { json!([last, number]) } else { json!([[last], number]) });
            at >>= 1;
        }
        stack.pop().unwrap()
    }
    let elements: Vec<Value> = (0..1_024).map(brackets).collect();
    let large: Vec<Value> = (0..100_000_u64).map(|at| json!((1_u64 << 63) + at)).collect();
    for elements in [elements, large] {
        assert_eq!(outcome(&json!({"uniqueItems": true}), &json!(elements)), "fits");
        let again: Vec<Value> = elements.iter().chain(elements.first()).cloned().collect();
        assert!(outcome(&json!({"uniqueItems": true}), &json!(again)).contains("non-unique"));
    }
}

#[test]
fn patterns_are_matched_without_going_back() {
    let text = "a".repeat(20_000);
    assert!(outcome(&json!({"pattern": "^(a+)+$"}), &json!(format!("{text}!"))).contains("does not match"));
    // A large pattern costs what it may cost at the worst.
    let said =
        outcome(&json!({"items": {"pattern": "(a|b)*a(a|b){500}c"}}), &json!(vec![format!("{text}c"); 20]));
    assert!(said.contains(OVER), "{said}");
    let said = outcome(&json!({"pattern": "((a{100}){100}){100}"}), &json!(text));
    assert!(said.contains("its patterns, written out"), "{said}");
    let many: Vec<Value> = (0..2_000).map(|at| json!({"pattern": format!("\\p{{L}}{{20}}{at}")})).collect();
    let said = outcome(&json!({"allOf": many}), &json!(text));
    assert!(said.contains("its patterns, written out") || said.contains(OVER), "{said}");
    assert!(outcome(&json!({"pattern": "(["}), &json!("")).starts_with("invalid: "));
}

/// Reading patterns is counted by what it takes, before it is done: each of these took seconds, or minutes.
#[test]
fn reading_patterns_is_counted() {
    let each = |pattern: &str| {
        let all: Vec<Value> = (0..2_000).map(|at| json!({"pattern": format!("{pattern}{at}")})).collect();
        json!({"allOf": all})
    };
    let one = |pattern: &str, times: usize| json!({"pattern": pattern.repeat(times)});
    for hostile in [
        each("\\d"),
        each("[^a]"),
        each("(?i)abc"),
        // Translated one by one, each time from the start.
        one("\\S", 1_000),
        one("\\d", 20_000),
        one("\\cA", 20_000),
        one("\\W|\\s", 1_000),
        // Each character of these has its other case looked for.
        one("(?i)\\p{Any}", 40),
        one("(?i:[\\u0000-\\uffff])", 200),
        one("(?s-i:(?si)[\u{1}-\u{10ffff}])", 40),
        one("[ac]", 200_000),
    ] {
        let began = Instant::now();
        assert!(outcome(&hostile, &json!(1)).contains(OVER));
        // Ten times what it takes.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    // And honest ones are read.
    let date = "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$";
    let line = "^\\s*(\\w+)\\s*=\\s*(\\S+(\\s+\\S+)*)\\s*(#\\s*\\S.*)?$";
    let named = "(?i)^[\\p{L}\\d._%+-]+@[a-z0-9.-]+\\.[a-z]{2,}$";
    let mut honest: Vec<Value> =
        (0..200).map(|at| json!({"pattern": format!("^[a-z]{{1,20}}(-\\d+)*{at}$")})).collect();
    honest.extend((0..20).map(|at| json!({"pattern": format!("{line}|{at}")})));
    honest.extend((0..300).map(|_| json!({"pattern": date})));
    honest.push(json!({"pattern": named}));
    assert_eq!(outcome(&json!({"anyOf": honest}), &json!(1)), "fits");
}

#[test]
fn what_a_pattern_can_not_say_refuses_nothing() {
    let ahead = "^(?=.*[0-9]).{8,}$";
    let schema = |schema: Value| Schema::new(&schema, STEPS).unwrap();
    let password = schema(json!({"properties": {"p": {"type": "string", "pattern": ahead}}}));
    let unchecked = Unchecked { place: "/properties/p/pattern".to_owned(), pattern: ahead.to_owned() };
    assert_eq!(password.unchecked(), [unchecked]);
    assert_eq!(password.fits(&json!({"p": "short"})), Ok(true));
    assert_eq!(password.fits(&json!({"p": 1})), Ok(false), "the rest holds");
    for (open, value) in [
        (json!({"not": {"pattern": ahead}}), json!("x")),
        (json!({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"pattern": ahead}}}), json!("x")),
        (json!({"if": {"pattern": ahead}, "then": {"const": 1}, "else": {"const": 2}}), json!("x")),
        (json!({"oneOf": [{"pattern": ahead}, {"type": "string"}]}), json!("x")),
        (
            json!({"patternProperties": {ahead: {"type": "null"}}, "additionalProperties": false}),
            json!({"x": 1}),
        ),
        (json!({"patternProperties": {"(.)\\1": true}, "unevaluatedProperties": false}), json!({"x": 1})),
        (json!({"contains": {"pattern": ahead}, "maxContains": 1}), json!(["x", "y"])),
    ] {
        assert_eq!(schema(open.clone()).fits(&value), Ok(true), "{open}");
        assert_eq!(schema(open).unchecked().len(), 1);
    }
    let still =
        schema(json!({"oneOf": [{"pattern": ahead}, {"type": "string"}], "allOf": [{"type": "string"}]}));
    assert_eq!(still.fits(&json!(1)), Ok(false));
}

#[test]
fn nothing_is_fetched() {
    for to in ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "//host/x"] {
        let said = outcome(&json!({"$ref": to}), &json!({}));
        assert!(said.starts_with("invalid: "), "{to}: {said}");
    }
}

/// The stack of a thread is not what bounds it.
#[test]
fn schemas_inside_each_other_do_not_end_the_process() {
    let run = || {
        for (length, depth) in [(10, 60), (100, 100), (2_000, 5), (5_000, 100)] {
            let mut definitions = Map::new();
            for at in 0..length {
                let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                definitions.insert(format!("d{at}"), json!({"anyOf": [{"allOf": [next]}]}));
            }
            let all = json!({"properties": {"k": {"$ref": "#/$defs/d0"}}, "required": ["k"]});
            definitions.insert(format!("d{length}"), all);
            let said = outcome(&json!({"$defs": definitions, "$ref": "#/$defs/d0"}), &nested(depth, "k"));
            assert_ne!(said, "fits");
        }
        let deep = (0..200).fold(json!({}), |inner, _| json!({"items": inner}));
        assert!(outcome(&deep, &json!([])).contains("inside each other"));
        let deepest = (0..127).fold(json!({}), |inner, _| json!({"items": inner}));
        assert_eq!(outcome(&deepest, &json!([[[]]])), "fits");
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(2.0)),
        Just(json!(0.5)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[abk]", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
            .prop_map(|name| json!({ "type": name })),
        any_value().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(any_value(), 1..4).prop_map(|values| json!({ "enum": values })),
        Just(json!({"pattern": "^a+b?$"})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"required": ["a", "k"]})),
        Just(json!({"minLength": 1, "maxLength": 2})),
        Just(json!({"minimum": 0, "multipleOf": 0.5})),
        Just(json!({"$ref": "#/$defs/one"})),
        Just(json!({"$ref": "#/$defs/two"})),
        Just(json!({"$ref": "#"})),
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            some().prop_map(|all| json!({ "allOf": all })),
            some().prop_map(|all| json!({ "anyOf": all })),
            some().prop_map(|all| json!({ "oneOf": all })),
            inner.clone().prop_map(|not| json!({ "not": not })),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            inner.clone().prop_map(|items| json!({ "items": items })),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"prefixItems": [a], "unevaluatedItems": b})),
            inner.clone().prop_map(|some| json!({"contains": some, "maxContains": 2})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"properties": {"a": a, "k": b}})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"patternProperties": {"^a": a}, "additionalProperties": b})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"allOf": [{"properties": {"a": a}}], "unevaluatedProperties": b})),
            inner.clone().prop_map(|names| json!({ "propertyNames": names })),
            inner.prop_map(|then| json!({"dependentSchemas": {"a": then}})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Counting changes nothing about what fits, nor about what is said.
    #[test]
    fn what_is_counted_is_what_is_checked(
        top in any_schema(), one in any_schema(), two in any_schema(), values in prop::collection::vec(any_value(), 4)
    ) {
        let whole = json!({"$defs": {"one": one, "two": two}, "allOf": [top]});
        let Ok(plain) = jsonschema::validator_for(&whole) else { return Ok(()) };
        let Ok(counted) = Schema::new(&whole, 200_000) else { return Ok(()) };
        let before = Schema::before_limits(&whole).unwrap();
        for value in &values {
            let Ok(found) = counted.violations(value, 3) else { continue };
            let said: Vec<String> = found.iter().map(|violation| violation.message.clone()).collect();
            let expected: Vec<String> = plain.iter_errors(value).take(3).map(|error| error.to_string()).collect();
            prop_assert_eq!(before.violations(value, 3).unwrap().iter().map(|v| v.message.clone()).collect::<Vec<_>>(), expected.clone());
            // What a `not` says quotes the schema, in which what counts may stand.
            if !expected.iter().any(|words| words.contains("is not allowed for")) {
                prop_assert_eq!(said, expected);
            }
            prop_assert_eq!(found.is_empty(), plain.is_valid(value));
        }
    }

    #[test]
    fn elements_are_unique_if_no_two_are_equal(elements in prop::collection::vec(any_value(), 0..12)) {
        let equal = |at: usize| elements[..at].iter().any(|other| jsonschema::json::cmp::equal(other, &elements[at]));
        let expected = !(0..elements.len()).any(equal);
        prop_assert_eq!(unique::is_unique(&elements), expected);
    }
}
