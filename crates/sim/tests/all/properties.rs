//! The properties over many seeds, and canaries that must be caught.

use selvedge_sim::forks;
use selvedge_sim::generate::Flavour;
use selvedge_sim::properties;
use selvedge_sim::reference::Mistake;
use support::{caught, edits, holds, plans};

#[cfg(test)]
mod support {
    use selvedge_sim::generate::Flavour;
    use selvedge_sim::hunt::{Found, check, hunt, shrink};
    use selvedge_sim::plan::SimPlan;
    use selvedge_sim::properties::Property;

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.parse().ok()
    }

    /// Runs a property over `plans` seeds, or over what the environment asks for.
    pub(super) fn holds(name: &str, property: Property, flavour: Flavour, plans: u64) {
        if let Ok(file) = std::env::var("SELVEDGE_SIM_CASE") {
            let plan: SimPlan = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            for seed in 0..200 {
                if let Err(error) = check(property, &plan, seed) {
                    panic!("{}", shrink(property, Found { seed, plan, error }).report(name));
                }
            }
            return;
        }
        let found = match number("SELVEDGE_SIM_SEED") {
            Some(seed) => hunt(property, flavour, std::iter::once(seed)),
            None => hunt(property, flavour, 0..plans),
        };
        if let Some(found) = found {
            panic!("{}", found.report(name));
        }
    }

    pub(super) fn plans(default: u64) -> u64 {
        number("SELVEDGE_SIM_PLANS").map_or(default, |all| (all * default).div_ceil(300))
    }

    /// Plans whose documents or messages are edited in forks, each once or more: as many as the environment asks for, or as others.
    pub(super) fn edits(default: u64) -> u64 {
        number("SELVEDGE_SIM_FORKS").unwrap_or_else(|| plans(default))
    }

    /// The property must not hold for all of so many seeds.
    pub(super) fn caught(property: Property, flavour: Flavour) {
        let found = (0..300).find(|seed| {
            let plan = selvedge_sim::generate::plan(*seed, flavour);
            check(property, &plan, *seed).is_err()
        });
        assert!(found.is_some(), "a broken part was not noticed in 300 plans");
    }
}

#[test]
fn agreement() {
    holds("agreement", properties::agreement, Flavour::Any, plans(300));
}

#[test]
fn agreement_of_impure_plans() {
    holds("agreement_of_impure_plans", properties::agreement, Flavour::Impure, plans(150));
}

#[test]
fn agreement_of_names() {
    holds("agreement_of_names", properties::agreement, Flavour::Names, plans(300));
}

#[test]
fn e43_driven() {
    holds("e43_driven", properties::driven, Flavour::Any, plans(100));
}

#[test]
fn e43_driven_impure_plans() {
    holds("e43_driven_impure_plans", properties::driven, Flavour::Impure, plans(100));
}

#[test]
fn replays() {
    holds("replays", properties::replays, Flavour::Any, plans(200));
}

#[test]
fn crashes() {
    holds("crashes", properties::crashes, Flavour::Any, plans(60));
}

#[test]
fn crashes_of_impure_plans() {
    holds("crashes_of_impure_plans", properties::crashes, Flavour::Impure, plans(50));
}

#[test]
fn crashes_with_known_writes() {
    let known = properties::crashes_with_known_writes;
    holds("crashes_with_known_writes", known, Flavour::Impure, plans(50));
}

#[test]
fn mending() {
    holds("mending", properties::mending, Flavour::Pure, plans(150));
}

#[test]
fn mending_of_impure_plans() {
    holds("mending_of_impure_plans", properties::mending, Flavour::Impure, plans(150));
}

#[test]
fn expiry() {
    holds("expiry", properties::expiry, Flavour::Pure, plans(80));
}

#[test]
fn cancelling() {
    holds("cancelling", properties::cancelling, Flavour::Any, plans(200));
}

#[test]
fn denied_writes() {
    holds("denied_writes", properties::denied_writes, Flavour::Impure, plans(60));
}

#[test]
fn budgets() {
    holds("budgets", properties::budgets, Flavour::Any, plans(150));
}

#[test]
fn forks_without_edits() {
    holds("forks_without_edits", forks::unedited, Flavour::Any, plans(24));
}

#[test]
fn forks_of_impure_plans() {
    holds("forks_of_impure_plans", forks::unedited, Flavour::Impure, plans(24));
}

#[test]
fn forks_at_every_event() {
    holds("forks_at_every_event", forks::unedited_everywhere, Flavour::Pure, plans(4));
}

#[test]
fn forks_of_what_had_finished_ahead() {
    let stands = |plan: &_, seed| forks::stands(plan, seed).map(drop);
    holds("forks_of_what_had_finished_ahead", stands, Flavour::Any, edits(60));
    let spared = (0..40).map(|seed| forks::stands(&selvedge_sim::generate::plan(seed, Flavour::Pure), seed));
    let spared = spared.map(|spared| spared.unwrap_or(0)).sum::<usize>();
    assert!(spared > 20, "little had finished ahead: {spared} events");
}

#[test]
fn forks_that_crash() {
    holds("forks_that_crash", forks::crashing, Flavour::Any, plans(8));
}

#[test]
fn forks_with_edited_messages() {
    holds("forks_with_edited_messages", forks::edited_messages, Flavour::Any, edits(40));
}

#[test]
fn forks_with_edited_messages_of_pure_plans() {
    holds("forks_with_edited_messages_of_pure_plans", forks::edited_messages, Flavour::Pure, edits(50));
}

#[test]
fn forks_with_edited_documents() {
    holds("forks_with_edited_documents", forks::edited_documents, Flavour::Any, edits(80));
}

#[test]
fn forks_with_edited_documents_of_pure_plans() {
    holds("forks_with_edited_documents_of_pure_plans", forks::edited_documents, Flavour::Pure, edits(100));
}

#[test]
#[ignore = "long: every event of every plan is a crash point"]
fn crashes_everywhere() {
    holds("crashes_everywhere", properties::crashes_everywhere, Flavour::Any, plans(30));
}

#[test]
fn canary_a_merge_that_happens_twice() {
    caught(|plan, seed| properties::agreement_with(plan, seed, Mistake::MergeTwice), Flavour::Any);
}

#[test]
fn canary_a_slice_that_is_too_long() {
    caught(|plan, seed| properties::agreement_with(plan, seed, Mistake::LongSlice), Flavour::Any);
}

#[test]
fn canary_failed_calls_that_do_not_count() {
    caught(|plan, seed| properties::agreement_with(plan, seed, Mistake::FreeFailures), Flavour::Any);
}

#[test]
fn canary_a_schedule_that_ignores_effects() {
    caught(properties::agreement_without_effects, Flavour::Impure);
}

#[test]
fn canary_a_driver_that_sends_lost_writes_again() {
    caught(properties::crashes_rerunning_writes, Flavour::Impure);
}

#[test]
fn canary_a_journal_that_forgets_an_event() {
    caught(properties::forgetting, Flavour::Any);
}

/// The generator reaches what the rules are about: otherwise the properties hold for nothing.
#[test]
fn the_generator_reaches_what_matters() {
    use selvedge_sim::driver::{Schedule, Sim};
    use selvedge_sim::world::World;
    let mut seen: std::collections::BTreeMap<String, u32> = std::collections::BTreeMap::new();
    for seed in 0..300 {
        let flavour = [Flavour::Any, Flavour::Pure, Flavour::Impure][seed as usize % 3];
        let plan = selvedge_sim::generate::plan(seed, flavour);
        let graph = std::sync::Arc::new(selvedge_sim::lower::graph(&plan).unwrap());
        let world = World::new(plan.seed, plan.faults);
        let mut sim = Sim::new(&plan, &graph, world, Schedule { seed, ..Schedule::default() });
        sim.run(None).unwrap();
        let mut note = |what: String| *seen.entry(what).or_insert(0) += 1;
        for record in sim.journal.records().unwrap() {
            let json = serde_json::to_value(&record.event).unwrap();
            let text = |name: &str| json.get(name).and_then(|v| v.as_str()).unwrap_or("").to_owned();
            note(text("kind"));
            if let Some(kind) = json.pointer("/fault/kind") {
                note(format!("{} {}", text("kind"), kind.as_str().unwrap()));
            }
        }
        note(sim.observed().status);
        for warning in sim.state.warnings() {
            note(format!("warning {}", warning.code));
        }
    }
    println!("{seen:#?}");
    for what in [
        "completed",
        "failed",
        "opened",
        "published",
        "retried",
        "asked",
        "answered",
        "refused limit_exceeded",
        "refused unknown_tool",
        "refused input_error",
        "node_finished denied",
        "node_finished empty_response",
        "node_finished malformed_response",
        "node_finished provider_error",
        "node_finished unresolved_placeholder",
        "node_finished execution_failure",
        "warning orphan-tool-message",
        "warning orphan-tool-call",
        "warning missing-output-field",
    ] {
        assert!(seen.contains_key(what), "no plan has `{what}`: {seen:?}");
    }
}
