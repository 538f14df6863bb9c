//! Laws over many expressions.
//!
//! `SELVEDGE_PROPTEST_CASES` sets the number of cases (default 10,000).

use super::World;
use proptest::prelude::*;
use selvedge_engine::expression::{COST, EvaluationError, Expression};
use serde_json::{Value, json};

/// An expression whose value is known by other means.
#[derive(Clone, Debug)]
enum Tree {
    Int(i64),
    Bool(bool),
    Negate(Box<Tree>),
    Not(Box<Tree>),
    Two(&'static str, Box<Tree>, Box<Tree>),
    Choose(Box<Tree>, Box<Tree>, Box<Tree>),
    /// A variable of the world, and what it holds.
    Var(&'static str, i64),
}

/// How tightly something binds; the ranks of CEL's grammar.
fn rank(tree: &Tree) -> u8 {
    match tree {
        Tree::Choose(..) => 0,
        Tree::Two("||", ..) => 1,
        Tree::Two("&&", ..) => 2,
        Tree::Two("+" | "-", ..) => 4,
        Tree::Two("*" | "/" | "%", ..) => 5,
        Tree::Two(..) => 3,
        Tree::Int(number) if *number < 0 => 6,
        Tree::Negate(_) | Tree::Not(_) => 6,
        Tree::Int(_) | Tree::Bool(_) | Tree::Var(..) => 7,
    }
}

/// As it is written with no more brackets than it needs.
fn write(tree: &Tree, least: u8) -> String {
    let text = match tree {
        Tree::Int(number) => number.to_string(),
        Tree::Bool(value) => value.to_string(),
        Tree::Var(name, _) => (*name).to_owned(),
        Tree::Negate(of) => format!("-{}", write(of, 7)),
        Tree::Not(of) => format!("!{}", write(of, 7)),
        Tree::Choose(of, a, b) => format!("{} ? {} : {}", write(of, 1), write(a, 1), write(b, 0)),
        Tree::Two(sign, left, right) => {
            format!("{} {sign} {}", write(left, rank(tree)), write(right, rank(tree) + 1))
        }
    };
    if rank(tree) < least { format!("({text})") } else { text }
}

/// Its value, found the simple way; nothing if there is none.
fn value(tree: &Tree) -> Option<Value> {
    let int = |tree: &Tree| value(tree).and_then(|value| value.as_i64());
    let bool = |tree: &Tree| value(tree).and_then(|value| value.as_bool());
    Some(match tree {
        Tree::Int(number) | Tree::Var(_, number) => json!(number),
        Tree::Bool(value) => json!(value),
        Tree::Negate(of) => json!(int(of)?.checked_neg()?),
        Tree::Not(of) => json!(!bool(of)?),
        Tree::Choose(of, a, b) => return if bool(of)? { value(a) } else { value(b) },
        Tree::Two(sign @ ("&&" | "||"), left, right) => {
            let decides = *sign == "||";
            match (bool(left), bool(right)) {
                (Some(value), _) | (_, Some(value)) if value == decides => json!(decides),
                (Some(_), Some(_)) => json!(!decides),
                _ => return None,
            }
        }
        Tree::Two("==", left, right) => json!(value(left)? == value(right)?),
        Tree::Two("!=", left, right) => json!(value(left)? != value(right)?),
        Tree::Two(sign, left, right) => match (value(left)?, value(right)?) {
            (Value::Bool(left), Value::Bool(right)) => ordered(sign, &left, &right)?,
            (left, right) => {
                let (left, right) = (left.as_i64()?, right.as_i64()?);
                match *sign {
                    "+" => json!(left.checked_add(right)?),
                    "-" => json!(left.checked_sub(right)?),
                    "*" => json!(left.checked_mul(right)?),
                    "/" => json!(left.checked_div(right)?),
                    "%" => json!(left.checked_rem(right)?),
                    _ => ordered(sign, &left, &right)?,
                }
            }
        },
    })
}

fn ordered<T: Ord>(sign: &str, left: &T, right: &T) -> Option<Value> {
    Some(json!(match sign {
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        _ => return None,
    }))
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-3..10_i64).prop_map(Tree::Int),
        prop_oneof![Just(i64::MIN), Just(i64::MAX)].prop_map(Tree::Int),
        any::<bool>().prop_map(Tree::Bool),
        prop_oneof![Just(Tree::Var("five", 5)), Just(Tree::Var("n1.output.two", 2))],
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let signs = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "&&", "||"];
        let one = inner.clone().prop_map(Box::new);
        prop_oneof![
            8 => (proptest::sample::select(signs.to_vec()), one.clone(), one.clone())
                .prop_map(|(sign, left, right)| Tree::Two(sign, left, right)),
            1 => one.clone().prop_map(Tree::Not),
            1 => one.clone().prop_map(Tree::Negate),
            1 => (one.clone(), one.clone(), one).prop_map(|(of, a, b)| Tree::Choose(of, a, b)),
        ]
    })
}

/// Words that make expressions, and near ones.
fn texts() -> impl Strategy<Value = String> {
    let words = [
        "a", "n1", "results", "has", "size", "map", "all", "exists", "filter", "in", "true", "null", "for",
        "1", "0x1F", "2u", "3.5", "1e9", "'x'", "\"y\"", "r'\\'", "'''z'''", "\"", "'", "\\", "(", ")", "[",
        "]", "{", "}", ",", ".", ":", "?", "+", "-", "*", "/", "%", "!", "<", "<=", "==", "!=", "&&", "||",
        "&", "=", "`q`", "`", "//", "\n", " ", "x", "(x,", "matches", "é", "💥", "\u{0}", "b'",
    ];
    let soup = proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..40);
    prop_oneof![soup.prop_map(|words| words.concat()), any::<String>()]
}

fn world() -> World {
    World::new(
        json!({"five": 5, "a": [1, {"b": "c"}], "x": {"y": 1.5}}),
        json!({}),
        json!({"n1": {"two": 2}}),
    )
}

fn config() -> ProptestConfig {
    let cases = std::env::var("SELVEDGE_PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(10_000), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Written with as few brackets as can be, it comes to what the tree does: ranks, sides and absorbed errors.
    #[test]
    fn an_expression_is_read_as_it_is_written(tree in trees()) {
        let text = write(&tree, 0);
        let expression = Expression::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!(expression.evaluate(&world(), COST).ok(), value(&tree), "{}", text);
    }

    /// Any text is an expression or an error within it; what is one has a value or none, at no more than its cost.
    #[test]
    fn any_text_is_read(text in texts()) {
        match Expression::parse(&text) {
            Err(error) => prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at), "{}: {}", text, error),
            Ok(expression) => {
                let (world, most) = (world(), 1_000);
                let found = expression.evaluate(&world, most);
                prop_assert_eq!(&found, &expression.evaluate(&world, most), "twice");
                if let Err(EvaluationError::Wrong { at, .. }) = found {
                    prop_assert!(at <= text.len());
                }
                let again: Expression = serde_json::from_value(serde_json::to_value(&expression).unwrap()).unwrap();
                prop_assert_eq!(again.paths().collect::<Vec<_>>(), expression.paths().collect::<Vec<_>>());
            }
        }
    }
}
