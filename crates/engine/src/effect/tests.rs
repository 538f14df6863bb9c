//! Figures of providers (E-18, E-20).

use super::*;
use serde_json::json;

#[test]
fn journals_from_before_a_figure_was_kept_stay_equal() {
    let old = json!({"input": 3, "output": 2, "cost": 0.5});
    let tokens: Tokens = serde_json::from_value(old.clone()).unwrap();
    assert_eq!(tokens, Tokens { input: 3, output: 2, cost: 0.5, cached: 0, reasoning: 0 });
    assert_eq!(serde_json::to_value(tokens).unwrap(), old);
    let new = Tokens { cached: 1, reasoning: 2, ..tokens };
    let written = json!({"input": 3, "output": 2, "cost": 0.5, "cached": 1, "reasoning": 2});
    assert_eq!(serde_json::to_value(new).unwrap(), written);
    assert_eq!(serde_json::from_value::<Tokens>(written).unwrap(), new);
}

#[test]
fn sums_of_nonsense_figures_end_at_the_largest() {
    let most = Tokens { input: u64::MAX, output: 1, cost: 1.0, cached: u64::MAX, reasoning: 4 };
    let mut sum = most;
    sum.add(&most);
    assert_eq!(sum, Tokens { input: u64::MAX, output: 2, cost: 2.0, cached: u64::MAX, reasoning: 8 });
}
