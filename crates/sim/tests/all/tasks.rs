//! Step tasks over many seeds: agreement with the reference, resumed runs, forks, and crashes at every event.

use selvedge_engine::Event;
use selvedge_sim::tasks::properties::{agreement, crashes, edited, forks, resumes};
use selvedge_sim::tasks::{driver, generate, reference};
use std::collections::BTreeSet;
use support::{forks_asked, holds};

#[cfg(test)]
mod support {
    use selvedge_sim::tasks::generate;
    use selvedge_sim::tasks::properties::{Property, smallest, trace};

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.parse().ok()
    }

    /// Tasks that are edited in forks: as many as the environment asks for, or as others.
    pub(super) fn forks_asked(default: u64) -> u64 {
        number("SELVEDGE_SIM_FORKS").unwrap_or(default)
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
fn tasks_fork() {
    holds("tasks_fork", forks, 60);
}

#[test]
fn tasks_fork_with_another_parameter() {
    holds("tasks_fork_with_another_parameter", |task, seed| edited(task, seed).map(drop), forks_asked(40));
    let compared = (0..30).map(|seed| edited(&generate::task(seed), seed).unwrap_or(0));
    assert!(compared.sum::<usize>() > 3, "few forks took something");
}

#[test]
fn tasks_crash() {
    holds("tasks_crash", crashes, 10);
}

/// In resumed tasks writes stand behind what had failed, and people are asked who say no.
#[test]
fn resumed_tasks_reach_what_is_kept() {
    let (mut stood, mut declined) = (0, 0);
    for seed in 0..150 {
        let task = generate::task(seed);
        let graph = driver::graph(&task).unwrap();
        let mut sim = driver::Sim::new(&task, &graph, seed, true);
        sim.run().unwrap();
        if !task.finish || sim.observed().status != "failed" {
            continue;
        }
        let (failed, wrote) = (sim.journal.len(), sim.wrote.clone());
        sim.resume().unwrap();
        for record in sim.journal.records().unwrap().into_iter().skip(failed) {
            match record.event {
                Event::Reused { effect, .. } => {
                    let place = effect.place().unwrap().place;
                    let own = |(step, _): &(String, String)| *step == *place.node && place.visit > 1;
                    stood += usize::from(wrote.iter().any(own));
                }
                Event::Asked(asked) => declined += usize::from(asked.prompt.contains("with success before")),
                _ => {}
            }
        }
    }
    assert!(
        stood > declined && declined > 0,
        "{stood} writes stood, for {declined} of them somebody was asked"
    );
}

/// What the properties are about happens in the tasks that they are held against.
#[test]
fn the_generator_reaches_what_matters() {
    let mut met = BTreeSet::new();
    for seed in 0..1_000 {
        let observed = reference::run(&generate::task(seed));
        let replans = observed.ladder.iter().filter(|(_, action)| action == "replan").count();
        met.extend((replans > 1).then(|| "replans".to_owned()));
        met.extend(observed.ladder.into_iter().map(|(_, action)| action));
        met.extend(observed.warnings);
        met.extend(observed.fault.map(|(kind, _)| kind));
        met.insert(observed.status);
    }
    let wanted = [
        "completed",
        "failed",
        "retry_with_params",
        "retry_with_tool",
        "repair_step",
        "replan",
        "replans",
        "give_up",
        "steps-left-out",
        "execution_failure",
        "timeout",
        "input_error",
        "unresolved_placeholder",
        "unknown_outcome",
    ];
    let missed: Vec<&str> = wanted.into_iter().filter(|wanted| !met.contains(*wanted)).collect();
    assert!(missed.is_empty(), "no task comes to {missed:?}");
}
