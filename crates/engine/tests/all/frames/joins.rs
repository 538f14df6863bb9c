//! Every strategy, in every order in which up to five paths end, in every way: against a reading of the rule (W-06).

use super::world::*;

fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    shorter
        .iter()
        .flat_map(|order| {
            (0..=order.len()).map(|at| {
                let mut order = order.clone();
                order.insert(at, count - 1);
                order
            })
        })
        .collect()
}

/// How many paths have ended when it is decided, and whether it is met.
fn reading(strategy: &Value, count: usize, ends: &[bool]) -> (usize, bool) {
    for seen in 0..=ends.len() {
        let completed = ends[..seen].iter().filter(|end| **end).count();
        let failed = seen - completed;
        let decided = match strategy {
            Value::String(name) => match name.as_str() {
                "all_completed" if failed > 0 => Some(false),
                "all_completed" if completed == count => Some(true),
                "any_completed" if completed > 0 => Some(true),
                "any_completed" if failed == count => Some(false),
                "all_failed" if completed > 0 => Some(false),
                "all_failed" if failed == count => Some(true),
                "any_failed" if failed > 0 => Some(true),
                "any_failed" if completed == count => Some(false),
                _ => None,
            },
            threshold => {
                let wanted = usize::try_from(threshold["count"].as_u64().unwrap()).unwrap();
                if completed >= wanted { Some(true) } else { (count - failed < wanted).then_some(false) }
            }
        };
        if let Some(met) = decided {
            return (seen, met);
        }
    }
    panic!("never decided");
}

#[test]
fn e07_every_order_of_ends_decides_as_the_rule_says() {
    let named = ["all_completed", "any_completed", "all_failed", "any_failed"].map(|name| json!(name));
    for count in 1..=5usize {
        let thresholds = (1..=count).map(|wanted| json!({ "count": wanted }));
        for strategy in named.iter().cloned().chain(thresholds) {
            let listed: Vec<Value> = (0..count).map(|at| json!([format!("p{at}"), 0])).collect();
            let paths = json!({"of": {"listed": listed}, "join": {"strategy": strategy, "main": "p0"}});
            let inner = flow(json!([ask("say", "hi", json!([]))]));
            let graph = graph(json!([node("all", json!({"fork": paths}), json!([]))]), json!([inner]));
            for order in orders(count) {
                for ways in 0..1u32 << count {
                    let end = |path: usize| ways >> path & 1 == 1;
                    let ends: Vec<bool> = order.iter().map(|path| end(*path)).collect();
                    let (seen, met) = reading(&strategy, count, &ends);
                    let mut world = World::begin(&graph);
                    for path in &order[..seen] {
                        assert_eq!(world.state.status(), RunStatus::Running);
                        let outcome = match end(*path) {
                            true => reply("done"),
                            false => fails("no"),
                        };
                        world.complete(&format!("all~1[p{path}]/say/model/1/1"), outcome);
                    }
                    assert!(world.state.pending().is_empty(), "{strategy}: {order:?} {ends:?}");
                    let wanted = if met { RunStatus::Completed } else { RunStatus::Failed };
                    assert_eq!(world.state.status(), wanted, "{strategy}: {order:?} {ends:?}");
                    let adopted = met && order[..seen].contains(&0) && end(0);
                    assert_eq!(world.texts().len(), if adopted { 2 } else { 0 });
                }
            }
        }
    }
}
