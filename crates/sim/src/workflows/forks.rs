//! What must hold for forks of workflows, at any event: half-filled joins, loops in the middle, subgraphs (E-19, E-29, E-36).
//! Without edits a fork comes to its source's end; with an edited document to that of a fresh run of it, so that what was reused is what
//! that would have said; and what a trial of the fork says beforehand is what happens.

use super::block::{Block, Paths, SimWorkflow};
use super::driver::{Sim, graph};
use super::properties::same;
use super::reference;
use crate::replay::replay;
use crate::rng::Rng;
use selvedge_engine::{Afresh, EffectId, Event, Fork, Graph, Input, Origin, Recording, State};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Points of each run at which it is forked.
pub const POINTS: usize = 4;
/// Forks of forks.
const DEPTH: usize = 2;

/// Without edits: the same end, and nothing is asked for again that was answered.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn unedited(workflow: &SimWorkflow, seed: u64) -> Result<(), String> {
    let graph = graph(workflow)?;
    let mut rng = Rng::new(seed);
    let mut source = Sim::new(workflow, &graph, rng.bits());
    source.run()?;
    for _ in 0..POINTS {
        unedited_at(workflow, &graph, &source, &mut rng, DEPTH)?;
    }
    Ok(())
}

fn unedited_at(
    workflow: &SimWorkflow,
    graph: &Arc<Graph>,
    source: &Sim<'_>,
    rng: &mut Rng,
    depth: usize,
) -> Result<(), String> {
    // A fork may also be made while the run goes on: then it knows what was recorded by then.
    let events = 1 + rng.below(source.journal.len());
    let at = 1 + rng.below(events);
    let what = |error: String| format!("of {events} events, forked at {at}: {error}");
    let fork = Fork { past: Some(past(graph, source, events).map_err(what)?), ..named(events) };
    let mut sim = Sim::forked(source, workflow, graph, (at, rng.bits()), fork.clone()).map_err(what)?;
    sim.run().map_err(what)?;
    same(&reference::run(workflow), &sim.observed()).map_err(what)?;
    replay(graph, &sim.journal).map_err(what)?;
    as_tried(source, graph, at, fork, &sim).map_err(what)?;
    for effect in asked(&sim, at).map_err(what)? {
        let Some(Origin::Afresh(why)) = sim.state.origin(&effect) else { continue };
        let fine = matches!(
            why,
            Afresh::NeverRecorded
                | Afresh::InFlight
                | Afresh::NoResult
                | Afresh::Taken
                | Afresh::Upstream { .. }
        );
        if !fine {
            return Err(what(format!("E-29: {effect} was asked for again, and nothing was edited: {why:?}")));
        }
    }
    match depth {
        0 => Ok(()),
        depth => unedited_at(workflow, graph, &sim, rng, depth - 1)
            .map_err(|error| format!("{error}; a fork {}", what(String::new()))),
    }
}

/// With another document, one question or call of which is another one: the end of a fresh run of that.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn edited(workflow: &SimWorkflow, seed: u64) -> Result<(), String> {
    let before = graph(workflow)?;
    let mut rng = Rng::new(seed);
    let mut source = Sim::new(workflow, &before, rng.bits());
    source.run()?;
    for _ in 0..POINTS {
        let mut other = workflow.clone();
        let count = questions(&mut other.blocks, None);
        if count == 0 {
            return Ok(());
        }
        questions(&mut other.blocks, Some(rng.below(count)));
        let after = graph(&other)?;
        let (events, at) = (source.journal.len(), 1 + rng.below(source.journal.len()));
        let what = |error: String| format!("edited, forked at {at} of {events}: {error}");
        let hash = after.hash().map_err(|error| what(error.to_string()))?;
        let past = past(&before, &source, events).map_err(what)?;
        let fork =
            Fork { graph: Some(hash.into()), compiled: Some(after), past: Some(past), ..named(events) };
        let mut sim = Sim::forked(&source, &other, &before, (at, rng.bits()), fork.clone()).map_err(what)?;
        sim.run().map_err(what)?;
        same(&reference::run(&other), &sim.observed()).map_err(what)?;
        replay(&before, &sim.journal).map_err(what)?;
        as_tried(&source, &before, at, fork, &sim).map_err(what)?;
    }
    Ok(())
}

pub(crate) fn named(events: usize) -> Fork {
    Fork { source: "source".into(), events: events as u64, ..Fork::default() }
}

/// What a run recorded in its first events.
pub(crate) fn past(graph: &Arc<Graph>, source: &Sim<'_>, events: usize) -> Result<Arc<Recording>, String> {
    let mut state = State::recording(Arc::clone(graph));
    for record in source.journal.cut(events).records()? {
        state.apply_record(&record);
    }
    Ok(Arc::new(state.past()))
}

/// A trial of the fork, in which nothing is answered, says what it takes and what it asks for: so it comes.
pub(crate) fn as_tried(
    source: &Sim<'_>,
    graph: &Arc<Graph>,
    at: usize,
    fork: Fork,
    sim: &Sim<'_>,
) -> Result<(), String> {
    let mut tried = State::new(Arc::clone(graph));
    for record in source.journal.cut(at).records()? {
        tried.apply_record(&record);
    }
    let mut next = tried.accept(Input::Fork(Box::new(fork)));
    let (mut taken, mut sent) = (BTreeSet::new(), BTreeSet::new());
    while let Some(event) = next {
        match &event {
            Event::Requested { effect, .. } => drop(sent.insert(effect.clone())),
            Event::Reused { effect, .. } => drop(taken.insert(effect.clone())),
            _ => {}
        }
        tried.apply(&event);
        next = tried.step();
    }
    for record in sim.journal.records()?.iter().skip(at) {
        match &record.event {
            Event::Requested { effect, .. } if taken.contains(effect) => {
                return Err(format!("E-29: a trial takes {effect}, and the fork asks for it"));
            }
            Event::Reused { effect, .. } if sent.contains(effect) => {
                return Err(format!("E-29: a trial asks for {effect}, and the fork takes it"));
            }
            Event::Requested { effect, .. }
                if sent.contains(effect) && tried.origin(effect) != sim.state.origin(effect) =>
            {
                return Err(format!("E-29: a trial has another reason for {effect} than the fork"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a fork asked for itself.
fn asked(sim: &Sim<'_>, at: usize) -> Result<Vec<EffectId>, String> {
    let records = sim.journal.records()?;
    let own = records.iter().skip(at).filter_map(|record| match &record.event {
        Event::Requested { effect, .. } => Some(effect.clone()),
        _ => None,
    });
    Ok(own.collect())
}

/// Counts the questions and calls, and makes another one of the `nth`.
fn questions(blocks: &mut [Block], nth: Option<usize>) -> usize {
    fn walk(blocks: &mut [Block], nth: Option<usize>, count: &mut usize) {
        for block in blocks {
            match block {
                Block::Ask { number, .. } | Block::Call { number, .. } | Block::Plan { number, .. } => {
                    if nth == Some(*count) {
                        *number += 1_000;
                    }
                    *count += 1;
                }
                Block::Choose { even, odd, .. } => {
                    walk(even, nth, count);
                    walk(odd, nth, count);
                }
                Block::Repeat { body, .. } | Block::Sub { body, .. } => walk(body, nth, count),
                Block::Fork { paths: Paths::Listed(paths), .. } => {
                    paths.iter_mut().for_each(|path| walk(path, nth, count));
                }
                Block::Fork { paths: Paths::Each(_, body), .. } => walk(body, nth, count),
                Block::Set { .. } | Block::Cut { .. } | Block::Person { .. } => {}
            }
        }
    }
    let mut count = 0;
    walk(blocks, nth, &mut count);
    count
}
