//! What must hold for every step task.

use super::driver::{Sim, graph};
use super::observed::Observed;
use super::reference;
use super::task::{Arg, SimTask};
use crate::driver::first_attempt;
use crate::replay::replay;
use crate::rng::Rng;
use selvedge_engine::{EffectId, Event, Graph};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A property: a task and the seed of its schedules; an error says what does not hold.
pub type Property = fn(&SimTask, u64) -> Result<(), String>;

/// D-14, D-16 … D-20, D-25: parallel = sequential = reference.
///
/// # Errors
/// The first difference.
pub fn agreement(task: &SimTask, seed: u64) -> Result<(), String> {
    let graph = graph(task)?;
    let expected = reference::run(task);
    let mut rng = Rng::new(seed);
    for sequential in [true, false, false, false] {
        let mut sim = Sim::new(task, &graph, rng.bits(), sequential);
        sim.run()?;
        expected.same(&sim.observed(), if sequential { "sequential" } else { "parallel" })?;
        replay(&graph, &sim.journal)?;
    }
    Ok(())
}

/// E-03, E-05, D-22: from any prefix of the journal the run comes to the same end, and what succeeded is not run again.
/// Where a write was in flight nobody knows what became of it, so the end may be another; the rest holds.
///
/// # Errors
/// What differs, and after which event the process died.
pub fn crashes(task: &SimTask, seed: u64) -> Result<(), String> {
    let graph = graph(task)?;
    let expected = reference::run(task);
    let mut rng = Rng::new(seed);
    let mut first = Sim::new(task, &graph, rng.bits(), false);
    first.run()?;
    for at in 1..first.journal.len() {
        crash(task, &graph, &first, at, rng.bits())
            .and_then(|second| {
                if second.lost == 0 {
                    expected.same(&second.observed(), "recovered")?;
                }
                replay(&graph, &second.journal)
            })
            .map_err(|error| format!("after a crash at event {at} of {}: {error}", first.journal.len()))?;
    }
    Ok(())
}

/// D-19, D-22, E-05, E-07, E-29: a failed run that is resumed comes to the same end in any order and after a crash at any
/// event; what had succeeded is not sent again, and tries are counted on.
///
/// # Errors
/// What differs.
pub fn resumes(task: &SimTask, seed: u64) -> Result<(), String> {
    let graph = graph(task)?;
    let mut rng = Rng::new(seed);
    let mut first = Sim::new(task, &graph, rng.bits(), true);
    first.run()?;
    let before = first.observed();
    if before.status != "failed" {
        return Ok(());
    }
    first.resume()?;
    let expected = first.observed();
    let tries = |of: &Observed, id: &str| of.results.iter().find(|row| row.0 == id).map(|row| row.4);
    for (id, .., count) in &before.results {
        if tries(&expected, id).is_some_and(|again| again < *count) {
            return Err(format!("D-25: {id} was tried {count} times, and less when the run was resumed"));
        }
    }
    for _ in 0..2 {
        let mut sim = Sim::new(task, &graph, rng.bits(), false);
        sim.run()?;
        let failed = sim.journal.len();
        let before = sim.observed();
        let done = sim.wrote.clone();
        sim.resume()?;
        expected.same(&sim.observed(), "resumed")?;
        once(&sim)?;
        stands(&before, &done, &sim)?;
        replay(&graph, &sim.journal)?;
        for _ in 0..4 {
            let at = failed + 1 + rng.below(sim.journal.len() - failed);
            crash(task, &graph, &sim, at, rng.bits())
                .and_then(|second| match second.lost {
                    0 => expected.same(&second.observed(), "recovered"),
                    _ => Ok(()),
                })
                .map_err(|error| format!("resumed at {failed}, after a crash at event {at}: {error}"))?;
        }
    }
    Ok(())
}

/// E-19, E-29: a fork without edits of a run that completed comes to the same end, wherever it leaves it, and writes
/// nothing again; only tries are its own.
///
/// # Errors
/// What differs.
pub fn forks(task: &SimTask, seed: u64) -> Result<(), String> {
    let graph = graph(task)?;
    let mut rng = Rng::new(seed);
    let mut source = Sim::new(task, &graph, rng.bits(), rng.chance(30));
    source.run()?;
    let expected = settled(&source);
    if expected.status != "completed" {
        return Ok(());
    }
    for _ in 0..6 {
        let shared = 1 + rng.below(source.journal.len());
        let mut fork = Sim::forked(&graph, &source, shared, rng.bits(), None)?;
        fork.run()?;
        // Who looks at the world or asks again may see and hear something else. An answer that did not fit is asked for
        // again, and a person before something is written again.
        if fork.looked == 0 && !fork.has_asked() {
            expected
                .same(&settled(&fork), "forked")
                .map_err(|error| format!("at event {shared}: {error}"))?;
        }
        once(&fork)?;
    }
    Ok(())
}

/// E-19, E-29: a fork in which a parameter of a step is another one comes to the end of a fresh run of that task, wherever it leaves
/// its source: what was reused is what that would have said. How many forks took something and were compared.
///
/// # Errors
/// What differs.
pub fn edited(task: &SimTask, seed: u64) -> Result<usize, String> {
    let before = graph(task)?;
    let mut rng = Rng::new(seed);
    let mut source = Sim::new(task, &before, rng.bits(), rng.chance(30));
    source.run()?;
    let mut compared = 0;
    for _ in 0..4 {
        let mut other = task.clone();
        let at = rng.below(other.steps.len().max(1));
        let Some(step) = other.steps.get_mut(at) else { return Ok(compared) };
        step.args.insert("n".into(), Arg::Value(rng.within(100, 109).into()));
        let (after, expected) = (graph(&other)?, reference::run(&other));
        let shared = 1 + rng.below(source.journal.len());
        let mut fork = Sim::forked(&before, &source, shared, rng.bits(), Some((&other, after)))?;
        fork.run()?;
        once(&fork)?;
        // Who looks at the world or asks again may see and hear something else, and the steps that a model writes here have the parameters
        // of the document.
        let replans = expected.ladder.iter().any(|(_, action)| action == "replan");
        if expected.status != "completed" || replans || fork.looked > 0 || fork.has_asked() {
            continue;
        }
        let (mut expected, mut found) = (without_tries(expected), settled(&fork));
        // What the source wrote stays written.
        (expected.writes, found.writes) = Default::default();
        expected
            .same(&found, "edited")
            .map_err(|error| format!("step {at} edited, at event {shared}: {error}"))?;
        let mut lines = fork.journal.lines.iter();
        compared += usize::from(lines.any(|line| line.contains("\"kind\":\"reused\"")));
    }
    Ok(compared)
}

/// What the end of a run is, however it came to it.
fn settled(sim: &Sim<'_>) -> Observed {
    without_tries(sim.observed())
}

fn without_tries(mut observed: Observed) -> Observed {
    observed.results.iter_mut().for_each(|row| row.4 = 0);
    observed.ladder.clear();
    observed
}

fn crash<'t>(
    task: &'t SimTask,
    graph: &Arc<Graph>,
    first: &Sim<'t>,
    at: usize,
    seed: u64,
) -> Result<Sim<'t>, String> {
    let journal = first.journal.cut(at);
    let mut second = Sim::recover(task, graph, first, &journal, seed)?;
    second.run()?;
    once(&second)?;
    Ok(second)
}

/// D-16, E-29: what a step had written with success before the resume is not written again, and its result is not lost: it
/// stands wherever the step has one.
fn stands(before: &Observed, done: &[(String, String)], after: &Sim<'_>) -> Result<(), String> {
    let observed = after.observed();
    for (id, tool, output, fault, _) in &before.results {
        let wrote = fault.is_none() && done.iter().any(|(of, _)| of == id);
        let Some(row) = observed.results.iter().find(|row| row.0 == *id).filter(|_| wrote) else { continue };
        if row.3.is_some() || row.1 != *tool || row.2 != *output {
            return Err(format!("E-29: {id} had come to {output} by {tool}, and then to {row:?}"));
        }
    }
    let again = after.wrote.iter().skip(done.len()).find(|(id, _)| done.iter().any(|(of, _)| of == id));
    match again {
        Some((id, written)) => Err(format!("E-29: {id} had written with success, and then wrote {written}")),
        None => Ok(()),
    }
}

/// No effect has two successes, and none is requested after it had one.
fn once(sim: &Sim<'_>) -> Result<(), String> {
    let mut done: BTreeMap<EffectId, usize> = BTreeMap::new();
    for (at, record) in sim.journal.records()?.into_iter().enumerate() {
        match &record.event {
            Event::Completed { effect, outcome: selvedge_engine::Outcome::Output(_), .. } => {
                if let Some(before) = done.insert(first_attempt(effect), at) {
                    return Err(format!(
                        "E-05: {effect} succeeded at event {} and again at {}",
                        before + 1,
                        at + 1
                    ));
                }
            }
            Event::Requested { effect, .. } | Event::Retried { effect, .. }
                if done.contains_key(&first_attempt(effect)) =>
            {
                return Err(format!("E-05: {effect} is run again after its success"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The smallest task of so many seeds that breaks a property: fewest steps first.
pub fn smallest(property: Property, seeds: std::ops::Range<u64>) -> Option<(u64, String)> {
    let mut found: Option<(usize, u64, String)> = None;
    for seed in seeds {
        let task = super::generate::task(seed);
        let size = task.json().to_string().len();
        if found.as_ref().is_some_and(|(known, ..)| *known <= size) {
            continue;
        }
        let held =
            std::panic::catch_unwind(|| property(&task, seed)).unwrap_or_else(|_| Err("a panic".into()));
        if let Err(error) = held {
            found = Some((size, seed, error));
        }
    }
    found.map(|(_, seed, error)| (seed, error))
}

/// The journal of the sequential run, for people.
///
/// # Errors
/// A broken rule.
pub fn trace(task: &SimTask) -> Result<String, String> {
    let graph = graph(task)?;
    let mut sim = Sim::new(task, &graph, 1, true);
    sim.run()?;
    Ok(sim.journal.lines.join("\n"))
}
