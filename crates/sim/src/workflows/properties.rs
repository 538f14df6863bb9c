//! What must hold for every workflow.

use super::block::SimWorkflow;
use super::driver::{Sim, graph};
use super::reference::{self, Observed};
use crate::canon;
use crate::replay::replay;
use crate::rng::Rng;
use selvedge_engine::{Event, Graph};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A property: a workflow and the seed of its schedules; an error says what does not hold.
pub type Property = fn(&SimWorkflow, u64) -> Result<(), String>;

/// W-02 … W-13, E-34: in whatever order calls end and people answer, a workflow comes to what a reading of it comes to
/// that runs one block after the other.
///
/// # Errors
/// The first difference.
pub fn agreement(workflow: &SimWorkflow, seed: u64) -> Result<(), String> {
    let graph = graph(workflow)?;
    let expected = reference::run(workflow);
    let mut rng = Rng::new(seed);
    for _ in 0..2 {
        let mut sim = Sim::new(workflow, &graph, rng.bits());
        sim.run()?;
        same(&expected, &sim.observed())?;
        replay(&graph, &sim.journal)?;
    }
    Ok(())
}

/// E-03, E-05: from any prefix of its journal, half-filled and nested joins among them, a workflow comes to the same end, and
/// what had an outcome is not asked for again.
///
/// # Errors
/// What differs, and after which event the process died.
pub fn crashes(workflow: &SimWorkflow, seed: u64) -> Result<(), String> {
    const POINTS: usize = 40;
    let graph = graph(workflow)?;
    let expected = reference::run(workflow);
    let mut rng = Rng::new(seed);
    let mut first = Sim::new(workflow, &graph, rng.bits());
    first.run()?;
    let events = first.journal.len();
    for at in (1..events).step_by(events.div_ceil(POINTS)) {
        let second = recovered(&first, &graph, at, &mut rng);
        second
            .and_then(|second| {
                same(&expected, &second.observed())?;
                once(&second)?;
                replay(&graph, &second.journal)
            })
            .map_err(|error| format!("after a crash at event {at} of {events}: {error}"))?;
    }
    Ok(())
}

fn recovered<'w>(first: &Sim<'w>, graph: &Arc<Graph>, at: usize, rng: &mut Rng) -> Result<Sim<'w>, String> {
    let mut sim = Sim::recover(first, graph, at, rng.bits())?;
    sim.run()?;
    Ok(sim)
}

/// No effect has two outcomes.
fn once(sim: &Sim<'_>) -> Result<(), String> {
    let mut done = BTreeSet::new();
    for record in sim.journal.records()? {
        if let Event::Completed { effect, .. } = record.event
            && !done.insert(effect.clone())
        {
            return Err(format!("E-05: {effect} has two outcomes"));
        }
    }
    Ok(())
}

/// Whether a run came to what it had to.
pub(super) fn same(expected: &Observed, found: &Observed) -> Result<(), String> {
    let shown = |observed: &Observed| -> Value {
        let left = observed.left.as_ref().map(|left| {
            let threads: serde_json::Map<String, Value> = left
                .threads
                .iter()
                .map(|(name, messages)| (name.clone(), json!(canon::messages(messages, false))))
                .collect();
            json!({"variables": left.variables, "threads": threads})
        });
        json!({"end": format!("{:?}", observed.end), "left": left})
    };
    let (expected, found) = (shown(expected), shown(found));
    if expected == found { Ok(()) } else { Err(format!("expected {expected:#}\nfound {found:#}")) }
}

/// The smallest workflow of so many seeds that breaks a property.
pub fn smallest(property: Property, seeds: std::ops::Range<u64>) -> Option<(u64, String)> {
    let mut found: Option<(usize, u64, String)> = None;
    for seed in seeds {
        let workflow = super::generate::workflow(seed);
        let size = super::document::document(&workflow).to_string().len();
        if found.as_ref().is_some_and(|(known, ..)| *known <= size) {
            continue;
        }
        let held =
            std::panic::catch_unwind(|| property(&workflow, seed)).unwrap_or_else(|_| Err("a panic".into()));
        if let Err(error) = held {
            found = Some((size, seed, error));
        }
    }
    found.map(|(_, seed, error)| (seed, error))
}
