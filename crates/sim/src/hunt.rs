//! Looking for a plan that breaks a property, and making it small.

use crate::generate::{Flavour, plan, tidy};
use crate::plan::SimPlan;
use crate::properties::Property;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A plan that breaks a property.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed that found it.
    pub seed: u64,
    /// The plan, made small.
    pub plan: SimPlan,
    /// What does not hold.
    pub error: String,
}

impl Found {
    /// All that is needed to reproduce it.
    pub fn report(&self, name: &str) -> String {
        let case = serde_json::to_string(&self.plan).unwrap_or_default();
        let document = serde_json::to_string_pretty(&crate::lower::document(&self.plan)).unwrap_or_default();
        format!(
            "{name} does not hold for seed {seed}: {error}\n\n\
             again: SELVEDGE_SIM_SEED={seed} cargo test -p selvedge-sim {name}\n\
             the small plan alone: SELVEDGE_SIM_CASE=FILE with\n{case}\n\nas a document:\n{document}\n",
            seed = self.seed,
            error = self.error,
        )
    }
}

/// Checks one plan; a panic counts as a failure.
///
/// # Errors
/// What does not hold.
pub fn check(property: Property, plan: &SimPlan, seed: u64) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| property(plan, seed)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(format!("panic: {text}"))
    })
}

/// Checks the plans of `seeds`; the first that breaks the property is made small.
pub fn hunt(property: Property, flavour: Flavour, seeds: impl Iterator<Item = u64>) -> Option<Found> {
    for seed in seeds {
        let made = plan(seed, flavour);
        if let Err(error) = check(property, &made, seed) {
            return Some(shrink(property, Found { seed, plan: made, error }));
        }
    }
    None
}

/// Takes away what is not needed for the property to break.
pub fn shrink(property: Property, mut found: Found) -> Found {
    let mut smaller = true;
    let mut tries = 0;
    while smaller && tries < 2_000 {
        smaller = false;
        for candidate in simpler(&found.plan) {
            tries += 1;
            let candidate = tidy(candidate);
            if candidate == found.plan {
                continue;
            }
            if let Err(error) = check(property, &candidate, found.seed) {
                found = Found { plan: candidate, error, ..found };
                smaller = true;
                break;
            }
        }
    }
    found
}

/// Plans with one thing less.
fn simpler(plan: &SimPlan) -> Vec<SimPlan> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut SimPlan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        if smaller != *plan {
            all.push(smaller);
        }
    };
    for at in 0..plan.nodes.len() {
        add(&|p| drop(p.nodes.remove(at)));
    }
    add(&|p| p.faults = false);
    for at in 0..plan.nodes.len() {
        let mut node = |change: &dyn Fn(&mut crate::plan::SimNode)| {
            add(&|p| p.nodes.get_mut(at).into_iter().for_each(change));
        };
        node(&|n| n.out = None);
        node(&|n| n.initial = None);
        node(&|n| n.prompt = None);
        node(&|n| n.tools.clear());
        node(&|n| n.limits.clear());
        node(&|n| n.looped = false);
        node(&|n| n.max_rounds = None);
        node(&|n| n.schema = None);
        node(&|n| n.approval = false);
        node(&|n| n.effects = None);
        node(&|n| n.retry = None);
        node(&|n| n.goes_on = false);
        node(&|n| n.slice = (None, None));
        node(&|n| n.initial.iter_mut().for_each(|initial| initial.args.clear()));
        node(&|n| n.prompt.iter_mut().for_each(|text| text.truncate(1)));
        node(&|n| n.out.iter_mut().for_each(|out| out.description.truncate(1)));
        node(&|n| drop(n.tools.pop()));
    }
    for at in 0..plan.tools.len() {
        add(&|p| drop(p.tools.remove(at)));
        add(&|p| p.tools.iter_mut().skip(at).take(1).for_each(|tool| tool.approval = false));
        add(&|p| p.tools.iter_mut().skip(at).take(1).for_each(|tool| tool.strict = false));
        add(&|p| p.tools.iter_mut().skip(at).take(1).for_each(|tool| tool.output_params = None));
    }
    add(&|p| p.metadata.clear());
    all
}
