//! Step tasks over many seeds: agreement with the reference, resumed runs, and crashes at every event.

use selvedge_sim::tasks::properties::{agreement, crashes, resumes};
use support::holds;

#[cfg(test)]
mod support {
    use selvedge_sim::tasks::generate;
    use selvedge_sim::tasks::properties::{Property, smallest, trace};

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.parse().ok()
    }

    pub(super) fn holds(name: &str, property: Property, tasks: u64) {
        let seeds = match number("SELVEDGE_SIM_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..number("SELVEDGE_SIM_PLANS").map_or(tasks, |all| (all * tasks).div_ceil(300)),
        };
        if let Some((seed, error)) = smallest(property, seeds) {
            let task = generate::task(seed);
            let document = serde_json::to_string_pretty(&task.json()).unwrap();
            let journal = trace(&task).unwrap_or_else(|error| error);
            panic!("{name}: seed {seed}: {error}\n{document}\nfaults: {}\n{journal}", task.faults);
        }
    }
}

#[test]
fn tasks_agree() {
    holds("tasks_agree", agreement, 200);
}

#[test]
fn tasks_resume() {
    holds("tasks_resume", resumes, 30);
}

#[test]
fn tasks_crash() {
    holds("tasks_crash", crashes, 10);
}
