//! The specification's own cases (README.md beside this file says where they are from).

use super::World;
use selvedge_engine::expression::{COST, Expression};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Case {
    name: String,
    expr: String,
    /// Variables.
    #[serde(default)]
    with: Map<String, Value>,
    /// The value, as an expression.
    is: Option<String>,
    /// That there is none.
    error: Option<String>,
}

/// Cases, or groups of them, in which we differ, with why. Each is held to differ still.
const DIFFERENT: [(&str, &str); 6] = [
    (
        "basic/functions/unbound_is_runtime_error",
        "a function that is not there is told when the expression is read",
    ),
    ("parse/receiver_function_names/", "the same"),
    ("comparisons/lt_literal/not_lt_dyn_int_big_lossy_double", "an int and a double are compared exactly"),
    ("comparisons/gt_literal/not_gt_dyn_big_double_int", "the same"),
    ("comparisons/lte_literal/lte_dyn_big_double_int", "the same"),
    ("comparisons/gte_literal/gte_dyn_int_big_lossy_double", "the same"),
];

#[test]
fn the_cases_of_the_specification() {
    let (mut wrong, mut count, mut different) = (Vec::new(), 0, 0);
    for line in include_str!("cel-spec.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let world = World { initial: case.with.clone(), ..World::default() };
        let differs = DIFFERENT.iter().any(|(name, _)| case.name.starts_with(name));
        let found = outcome(&world, &case);
        count += 1;
        different += usize::from(differs);
        if found.is_ok() == differs {
            wrong.push(format!(
                "{}: {} {found:?}, wanted {:?} {:?}",
                case.name, case.expr, case.is, case.error
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((count, different), (846, 22));
}

/// Whether a case is as it should be.
fn outcome(world: &World, case: &Case) -> Result<(), String> {
    let Some(is) = &case.is else {
        return match Expression::parse(&case.expr).map(|parsed| parsed.evaluate(world, COST)) {
            Ok(Ok(value)) => Err(value.to_string()),
            // Only what does not exist is an error before it is evaluated.
            Err(error) if case.name != "basic/functions/unbound" => Err(error.to_string()),
            _ => Ok(()),
        };
    };
    let equal = if is == "double('NaN')" {
        format!("({0}\n) != ({0}\n)", case.expr)
    } else {
        format!("({}\n) == ({is})", case.expr)
    };
    let parsed = Expression::parse(&equal).map_err(|error| error.to_string())?;
    let found = parsed.evaluate(world, COST).map_err(|error| error.to_string())?;
    if found == json!(true) { Ok(()) } else { Err("differs".into()) }
}
