//! Hostile expressions: nothing of them takes much stack, memory or time.

use super::World;
use selvedge_engine::expression::{BYTES, COST, DEPTH, EvaluationError, Expression};
use serde_json::{Value, json};

#[test]
fn e46_length_and_nesting_are_limited() {
    let long = format!("1{}", " ".repeat(BYTES));
    assert!(Expression::parse(&long).unwrap_err().message.contains("over the limit of 16384"));
    let nested = |open: &str, inner: &str, close: &str, levels: usize| {
        Expression::parse(&format!("{}{inner}{}", open.repeat(levels), close.repeat(levels)))
    };
    let kinds = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("!", "a", ""),
        ("-", "a", ""),
        ("{1:", "1", "}"),
        ("size(", "a", ")"),
        ("a[", "0", "]"),
        ("[a].map(x, ", "x", ")"),
        ("a ? 1 : ", "2", ""),
        ("1 + (", "2", ")"),
        ("", "[0]", "[0]"),
        ("", "size(a)", ".size()"),
        ("", "{}", ".a"),
        ("a && (", "b", ")"),
        ("[a ? ", "b", ": c]"),
    ];
    for (open, inner, close) in kinds {
        for levels in [DEPTH + 1, BYTES / (open.len() + close.len()) - 8] {
            let error = nested(open, inner, close, levels).map_or_else(|error| error, |_| panic!("{open}"));
            assert!(error.message.contains("nested more than 64 levels deep"), "{open}: {error}");
        }
        assert!(nested(open, inner, close, DEPTH / 2 - 2).is_ok(), "{open}");
    }
    // Unfinished ones, too.
    for open in ["(", "[", "!", "-", "{", "{1:", "f(", "a[", "a?", "a?b:", "a.all(x,", "!(-", "[[{", "has("] {
        assert!(Expression::parse(&open.repeat(BYTES / open.len())).is_err(), "{open}");
    }
    // What only goes on is not nested.
    for (one, more) in [
        ("1", " + 1"),
        ("true", " && true"),
        ("false", "||false"),
        ("1", "<1"),
        ("[1", ",1"),
        ("\"a\"", "+\"a\""),
    ] {
        let close = if one.starts_with('[') { "]" } else { "" };
        let text = format!("{one}{}{close}", more.repeat((BYTES - 20) / more.len()));
        assert!(Expression::parse(&text).is_ok(), "{one}{more}");
    }
    let path = format!("a{}", ".b".repeat(8_000));
    assert_eq!(Expression::parse(&path).unwrap().paths().count(), 1);
}

#[test]
fn e46_what_is_as_deep_as_can_be_is_evaluated() {
    let world = World::new(json!({"a": true}), json!({}), json!({}));
    for (open, inner, close) in
        [("(", "1", ")"), ("[", "1", "]"), ("!", "a", ""), ("[1].map(x, ", "x", ")"), ("a ? ", "1", " : 2")]
    {
        let deepest = (1..=DEPTH).rev().find_map(|levels| {
            Expression::parse(&format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))).ok()
        });
        assert!(deepest.unwrap().evaluate(&world, COST).is_ok(), "{open}");
    }
}

#[test]
fn e46_the_cost_of_an_evaluation_is_limited() {
    let numbers: Vec<u32> = (0..2_000).collect();
    let text = "ab".repeat(100_000);
    let world = World::new(json!({"l": numbers, "t": text}), json!({}), json!({}));
    let hostile = [
        "l.all(x, l.all(y, l.all(z, true)))",
        "l.map(x, l.map(y, y))",
        "l.all(x, x in l || true) && l.all(x, !(x in l) || true)",
        "l.map(x, t.contains(\"ac\"))",
        "l.map(x, t + t)",
        "l.map(x, l + l)",
        "l.map(x, size(t))",
        "l.map(x, t == t + \"\")",
        "l.all(x, string(t) != \"\")",
        "l.all(x, t.matches(\"^(a|b)*c$\") || true)",
        "l.all(x, \"a\".matches(string(x) + \"\\\\w{50}\") || true)",
        "l.all(x, none.field == 1 || l.exists(y, nobody == y) || true)",
        "l.map(x, {1: 1, 2: 2}[1] == 1 ? l : l) == l.map(x, l)",
        "[l, l, l, l].map(a, [a, a, a, a]).map(a, [a, a, a, a]).map(a, [a, a, a, a]).map(a, [a, a, a, a])",
        "t.matches(\"(a*)*(b{1,100}){1,100}\")",
    ];
    for source in hostile {
        let begun = std::time::Instant::now();
        let found = world.eval(source);
        assert_eq!(found, Err(EvaluationError::TooMuch { most: COST }), "{source}");
        assert!(begun.elapsed().as_secs() < 10, "{source}: {:?}", begun.elapsed());
    }
    let told = world.wrong(hostile[0]);
    assert!(told.contains("1000000 steps") && told.contains("`expression_cost` in [limits]"), "{told}");
}

/// Reading a pattern is what takes long of some, before anything is matched.
#[test]
fn e46_reading_a_pattern_costs() {
    let pattern = format!("(?i){}", r"\p{Any}".repeat(1_000));
    let world = World::new(json!({"p": pattern, "l": [1, 2, 3]}), json!({}), json!({}));
    let begun = std::time::Instant::now();
    assert_eq!(world.eval("\"a\".matches(p)"), Err(EvaluationError::TooMuch { most: COST }));
    let refused = Expression::parse(&format!("\"a\".matches(r\"{pattern}\")")).unwrap_err();
    assert_eq!((refused.at, &*refused.message), (12, "the pattern is too large"));
    assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    // One that is asked again and again is read once.
    let once = |source: &str| {
        let expression = Expression::parse(source).unwrap();
        (0..200_000).step_by(100).find(|most| expression.evaluate(&world, *most).is_ok()).unwrap()
    };
    let (one, three) = (once("\"a\".matches(\"a+\")"), once("l.all(x, \"a\".matches(\"a+\"))"));
    assert!(three < one + 1_000, "{one}, {three}");
}

/// Nothing makes up for what was too much.
#[test]
fn e46_too_much_is_not_absorbed() {
    let world = World::new(json!({"l": [1, 2, 3]}), json!({}), json!({}));
    let expression = Expression::parse("l.all(x, l.all(y, l.all(z, z > 0))) || true").unwrap();
    assert_eq!(expression.evaluate(&world, 30), Err(EvaluationError::TooMuch { most: 30 }));
    assert_eq!(expression.evaluate(&world, 300), Ok(json!(true)));
}

/// The same costs the same: whatever is a little dearer than what it may cost never has a value.
#[test]
fn e46_the_cost_is_always_the_same() {
    let world = World::new(json!({"l": [1, 2, 3], "t": "abc"}), json!({}), json!({}));
    for source in
        ["l.map(x, x + 1)", "t + t == \"abcabc\"", "t.matches(\"b+\")", "has(l.x) || true", "{\"a\": l}"]
    {
        let expression = Expression::parse(source).unwrap();
        let least = (0..20_000).find(|most| expression.evaluate(&world, *most).is_ok()).unwrap();
        let found: Vec<Value> =
            (least..least + 5).map(|most| expression.evaluate(&world, most).unwrap()).collect();
        assert!(found.iter().all(|value| *value == found[0]), "{source}");
        assert!((0..least).all(|most| expression.evaluate(&world, most).is_err()), "{source}");
    }
}

/// A result that a journal could not be read with is none.
#[test]
fn e46_results_are_not_nested_without_end() {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let world = World::new(json!({"deep": deep}), json!({}), json!({}));
    assert!(world.eval("deep == deep").is_ok());
    assert!(world.wrong("[deep]").contains("nested more than 100 levels deep"));
}
