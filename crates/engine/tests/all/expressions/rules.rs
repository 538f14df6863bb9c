//! What is Selvedge's own: variables, where they come from, and what is not of CEL.

use super::World;
use selvedge_engine::expression::Expression;
use serde_json::{Value, json};

fn world() -> World {
    World {
        failed: vec!["broken"],
        waiting: vec!["later"],
        ..World::new(
            json!({"flag": true, "both": "first", "n": 5, "half": 0.5, "big": 18_446_744_073_709_551_615_u64, "odd key": 1,
                   "results": "a variable", "for": 7, "n1": "hidden", "list": [3, 1, 2], "deep": {"a": {"b": [{"c": 1}]}}}),
            json!({"both": "later", "index": 2}),
            json!({"n1": {"score": 4, "text": "yes", "output": {"x": 1}}, "fetch-a": {"items": ["p", "q"]}, "for": {"ok": true},
                   "plain": "said", "results": {"own": 1}}),
        )
    }
}

#[test]
fn e46_variables_are_the_roots_of_placeholders() {
    let cases = [
        ("n1.output.score > 3 && flag", json!(true)),
        ("n1.score", json!(4)),
        ("n1.outputs.text", json!("yes")),
        ("n1.output.output.x", json!(1)),
        ("n1[\"output\"][\"score\"]", json!(4)),
        ("plain.output", json!("said")),
        ("plain", json!("said")),
        ("both", json!("later")),
        ("metadata.both", json!("later")),
        ("inputs.both", json!("first")),
        ("metadata[\"odd key\"]", json!(1)),
        ("inputs.`odd key` + 1", json!(2)),
        ("score", json!(4)),
        ("results[\"fetch-a\"].output.items[1]", json!("q")),
        ("results[\"fetch-a\"].items[index - 1]", json!("q")),
        ("results.n1.output.score", json!(4)),
        ("results[\"for\"].ok", json!(true)),
        ("results.`fetch-a`.items.size()", json!(2)),
        ("results[\"results\"].own", json!(1)),
        ("metadata.results", json!("a variable")),
        ("metadata[\"for\"]", json!(7)),
        ("deep.a.b[0].c", json!(1)),
        ("deep.a.b[index - 2].c", json!(1)),
        ("list.map(n, n * n)", json!([9, 1, 4])),
        ("list.exists(flag, flag == 2) && flag", json!(true)),
        ("list.all(results, results > 0)", json!(true)),
        ("list.map(x, list.filter(y, y < x))", json!([[1, 2], [], [1]])),
        ("big > 9223372036854775807", json!(true)),
        ("big", json!(18_446_744_073_709_551_615_u64)),
        ("half * 2.0 == 1", json!(true)),
        ("{\"a\": list, \"b\": deep.a}", json!({"a": [3, 1, 2], "b": {"b": [{"c": 1}]}})),
        ("has(n1.output.score) && !has(n1.output.none)", json!(true)),
        ("has(metadata.flag) && !has(metadata.none) && !has(inputs.index)", json!(true)),
        ("has(later.output) || has(broken.output)", json!(false)),
        ("has(n1.output)", json!(true)),
        ("has(results.nobody)", json!(false)),
        ("has(results[\"fetch-a\"].items)", json!(true)),
        ("has({\"a\": 1}.b)", json!(false)),
        ("// why not\n n > 3 // because\n ? \"more\" : \"less\"", json!("more")),
    ];
    let world = world();
    for (source, value) in cases {
        assert_eq!(world.eval(source), Ok(value), "{source}");
    }
}

#[test]
fn e46_what_has_no_value_is_told_with_its_place() {
    let cases = [
        ("1 + nn", "nn has no value: nothing is named `nn`; looked at"),
        ("flagg", "nearest names: flag"),
        ("later.output", "step `later` has not run"),
        ("broken.output.x == 1", "step `broken` failed"),
        (
            "results[\"fetch-b\"].output",
            "results[\"fetch-b\"].output has no value: there is no step `fetch-b`",
        ),
        ("results[\"flag\"]", "there is no step `flag`"),
        ("n1.output.scor", "lacks the field `.scor`"),
        ("list[3]", "an array of length 3) lacks the field `[3]`"),
        ("list[index + 1]", "the list has 3 elements, counted from 0, and none at this index (at byte 4)"),
        ("list[-1]", "none at this index"),
        ("list[\"0\"]", "lacks the field"),
        ("has(later.output.x)", "step `later` has not run"),
        ("has(flag.x)", "asks for a field of a boolean"),
        (
            "n * half",
            "`*` is not defined for an int and a double; both have to be of one kind: double(x), int(x) (at byte 2)",
        ),
        ("n + \"1\"", "`+` is not defined for an int and text (at byte 2)"),
        ("flag && n", "a boolean belongs here, and this is an int"),
        ("n ? 1 : 2", "`?` asks a boolean, and this is an int"),
        ("9223372036854775807 + n", "the result of `+` is too large, or too small, for an int"),
        ("n / 0", "`/` by zero"),
        ("int(\"5x\")", "`int` is not defined for the text `5x`"),
        ("1.0 / 0.0", "inf, which is no number of JSON"),
        ("{1: 2}", "a key of the result is an int, and not text"),
        ("\"a\".matches(plain + \"(\")", "this is no pattern"),
    ];
    let world = world();
    for (source, told) in cases {
        let found = world.wrong(source);
        assert!(found.contains(told), "{source}: {found}");
    }
}

#[test]
fn e46_what_is_no_expression_is_told_with_its_place() {
    let cases = [
        ("", 0, "there is no expression"),
        ("1 +", 3, "here stands the end, where a value is expected"),
        ("1 2", 2, "here stands a number, where an operator, or the end is expected"),
        ("(1", 2, "where `)` is expected"),
        ("a = 1", 2, "equality is `==`"),
        ("a & b", 2, "write `&&`"),
        ("{{n1.output}} > 3", 0, "without `$` and braces"),
        ("${n1}", 0, "without `$` and braces"),
        ("for", 0, "results[\"for\"]"),
        ("fetch-a.output > 3 +", 20, "the end"),
        ("results", 0, "followed by the id of a node"),
        ("results[0]", 0, "followed by the id of a node"),
        ("results[n]", 0, "followed by the id of a node"),
        ("results.size()", 0, "followed by the id of a node"),
        ("has(flag)", 4, "has(metadata.a)"),
        ("now()", 0, "there is no function `now`"),
        ("a.lower()", 1, "there is no function `lower`"),
        ("startsWith(a, \"b\")", 0, "behind a dot"),
        ("a.int()", 1, "in front"),
        ("size(a, b)", 0, "of 1 values"),
        ("a.all(1, true)", 6, "the name of a variable"),
        ("a.all(true, true)", 6, "the name of a variable"),
        ("\"abc", 0, "not closed"),
        ("'a\nb'", 2, "a line ends within a text"),
        ("'a\\q'", 2, "no such escape"),
        ("'\\ud800'", 1, "which character"),
        ("b'a'", 0, "bytes are not supported"),
        ("9223372036854775808", 0, "too large for an int"),
        ("1e999", 0, "too large"),
        ("99999999999999999999u", 0, "too large"),
        ("a.matches(\"(\")", 10, "this is no pattern"),
        ("a.matches(r\"(?=a)\")", 10, "this is no pattern"),
        (".a", 0, "where a value is expected"),
        ("a.?b", 2, "a name; one that is none is written"),
        ("A{b: 1}", 1, "an operator, or the end"),
        ("!-a", 1, "where a value is expected"),
        ("a \u{0} b", 2, "does not belong"),
        ("²", 0, "does not belong"),
    ];
    for (source, at, told) in cases {
        let error = Expression::parse(source).map_or_else(|error| error, |_| panic!("{source}"));
        assert!(error.message.contains(told), "{source}: {error}");
        assert_eq!(error.at, at, "{source}: {error}");
    }
}

#[test]
fn e46_it_is_told_what_an_expression_reads() {
    let cases = [
        ("n1.output.score > 3 && flag", &["n1.output.score", "flag"][..]),
        ("a.b[\"c d\"][0].e[i].f", &["a.b[\"c d\"][0].e", "i"]),
        ("results[\"fetch-a\"].output.x + results.n2.y", &["fetch-a.output.x", "n2.y"]),
        ("l.map(x, x.y + z)", &["l", "z"]),
        ("l.filter(x, x > 1).all(y, x)", &["l", "x"]),
        ("has(a.b) ? size(a.b) : {k: 1}[k]", &["a.b", "a.b", "k", "k"]),
        ("a.b.startsWith(c)", &["a.b", "c"]),
        ("1 + 2", &[]),
    ];
    for (source, paths) in cases {
        let expression = Expression::parse(source).unwrap();
        assert_eq!(expression.paths().map(ToString::to_string).collect::<Vec<_>>(), paths, "{source}");
    }
}

#[test]
fn an_expression_is_written_as_its_text() {
    let expression = Expression::parse(" n1.x>3 // so\n").unwrap();
    assert_eq!(serde_json::to_value(&expression).unwrap(), json!(" n1.x>3 // so\n"));
    assert_eq!(serde_json::from_value::<Expression>(json!(" n1.x>3 // so\n")).unwrap(), expression);
    let refused = serde_json::from_value::<Expression>(json!("n1 >")).unwrap_err();
    assert!(refused.to_string().contains("at byte 4"), "{refused}");
}

/// Doubles that are whole stay doubles, and ints ints.
#[test]
fn numbers_keep_their_kind() {
    let world = World::new(json!({"i": 2, "d": 2.0}), json!({}), json!({}));
    let same = |source: &str, value: Value| assert_eq!(world.eval(source), Ok(value), "{source}");
    same("i == d && i in [d] && !(i < d)", json!(true));
    same("d * 3.0", json!(6.0));
    same("i * 3", json!(6));
    same("{\"k\": 1}[\"k\"] == 1.0", json!(true));
    same("9007199254740993 > 9007199254740992.0", json!(true));
    same("9223372036854775807 == 9223372036854775808.0", json!(false));
    same("int(2.9) + int(\"3\")", json!(5));
    same("string(d) + string(0.1) + string(i)", json!("20.12"));
}
