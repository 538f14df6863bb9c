//! What must hold for every plan, each as a check that a seed reproduces.

use crate::driven;
use crate::driver::{Said, Schedule, Sim};
use crate::journal::Journal;
use crate::lower;
use crate::observed::Observed;
use crate::plan::SimPlan;
use crate::reference::{self, Mistake};
use crate::replay::replay;
use crate::rng::Rng;
use crate::world::World;
use selvedge_engine::{Effects, End, Event, Graph, Input, done};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A schedule whose journal can be folded and compared.
const MARKED: Schedule = Schedule {
    seed: 0,
    sequential: false,
    lost: Said::Again,
    budget: None,
    marks: true,
    rerun_writes: false,
};

/// A property: a plan and the seed of its schedules; an error says what does not hold.
pub type Property = fn(&SimPlan, u64) -> Result<(), String>;

/// The graph that is run; the schedule must prove free of races (E-11).
fn graph(plan: &SimPlan) -> Result<Arc<Graph>, String> {
    let graph = Arc::new(lower::graph(plan)?);
    let schedule = selvedge_engine::schedule::Schedule::derive(&graph, false);
    schedule.prove(&graph).map_err(|race| format!("E-11: {race}"))?;
    Ok(graph)
}

fn world(plan: &SimPlan) -> World {
    World::new(plan.seed, plan.faults)
}

fn expected(plan: &SimPlan, mistake: Mistake) -> (Observed, World) {
    let mut world = world(plan);
    (reference::run(plan, &mut world, mistake), world)
}

fn finished<'p>(plan: &'p SimPlan, graph: &Arc<Graph>, schedule: Schedule) -> Result<Sim<'p>, String> {
    let mut sim = Sim::new(plan, graph, world(plan), schedule);
    sim.run(None)?;
    Ok(sim)
}

/// P-20, E-07: parallel = sequential = reference, also when nodes fail.
///
/// # Errors
/// The first difference.
pub fn agreement(plan: &SimPlan, seed: u64) -> Result<(), String> {
    agreement_with(plan, seed, Mistake::None)
}

/// [`agreement`] of the driver of the runtime, whatever time its ports take, and with people who answer while it drives (E-43).
///
/// # Errors
/// The first difference.
pub fn driven(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let (expected, _) = expected(plan, Mistake::None);
    let mut rng = Rng::new(seed);
    for sequential in [true, false, false] {
        let (observed, journal) = driven::run(plan, &graph, world(plan), rng.bits(), sequential)?;
        expected.same(&observed, if sequential { "driven sequentially" } else { "driven" })?;
        replay(&graph, &journal)?;
    }
    Ok(())
}

/// [`agreement`] with a reference that makes a mistake.
///
/// # Errors
/// The first difference.
pub fn agreement_with(plan: &SimPlan, seed: u64, mistake: Mistake) -> Result<(), String> {
    let graph = graph(plan)?;
    let (expected, _) = expected(plan, mistake);
    let mut rng = Rng::new(seed);
    for sequential in [true, false, false, false] {
        let schedule = Schedule { seed: rng.bits(), sequential, ..Schedule::default() };
        let sim = finished(plan, &graph, schedule)?;
        expected.same(&sim.observed(), if sequential { "sequential" } else { "parallel" })?;
        sim.in_list_order()?;
    }
    Ok(())
}

/// A lowering that takes all tools for `pure`, in the real world: must not agree.
///
/// # Errors
/// The first difference.
pub fn agreement_without_effects(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = Arc::new(lower::graph(&lower::without_effects(plan))?);
    let (expected, _) = expected(plan, Mistake::None);
    let sim = finished(plan, &graph, Schedule { seed, ..Schedule::default() })?;
    expected.same(&sim.observed(), "parallel")
}

/// E-18: replay byte for byte.
///
/// # Errors
/// The first event that differs.
pub fn replays(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let sim = finished(plan, &graph, Schedule { seed, ..Schedule::default() })?;
    replay(&graph, &sim.journal)
}

/// E-03, E-05: from any prefix, and from a prefix of the recovery, the run comes to the same end.
///
/// # Errors
/// What differs, and after which events the process died.
pub fn crashes(plan: &SimPlan, seed: u64) -> Result<(), String> {
    crash_points(plan, seed, Some(6), MARKED)
}

/// [`crashes`] at every event of the run.
///
/// # Errors
/// What differs, and after which events the process died.
pub fn crashes_everywhere(plan: &SimPlan, seed: u64) -> Result<(), String> {
    crash_points(plan, seed, None, MARKED)
}

/// [`crashes`] where a person knows of lost writes that they happened, and what came back: they are not sent again.
///
/// # Errors
/// What differs, and after which events the process died.
pub fn crashes_with_known_writes(plan: &SimPlan, seed: u64) -> Result<(), String> {
    crash_points(plan, seed, Some(12), Schedule { lost: Said::Done, ..MARKED })
}

/// [`crashes`] with a driver that sends lost writes again.
///
/// # Errors
/// What differs.
pub fn crashes_rerunning_writes(plan: &SimPlan, seed: u64) -> Result<(), String> {
    crash_points(plan, seed, Some(12), Schedule { rerun_writes: true, ..MARKED })
}

fn crash_points(plan: &SimPlan, seed: u64, points: Option<usize>, base: Schedule) -> Result<(), String> {
    let graph = graph(plan)?;
    let (expected, outside) = expected(plan, Mistake::None);
    let expected = expected.without_requests();
    let mut rng = Rng::new(seed);
    let schedule = Schedule { seed: rng.bits(), ..base };
    let first = finished(plan, &graph, schedule)?;
    let len = first.journal.len();
    for point in 0..points.unwrap_or(len).min(len) {
        let at = if points.is_some() { 1 + rng.below(len) } else { point + 1 };
        let journal = first.journal.cut(at);
        let second = recovered(
            plan,
            &graph,
            (&first.world, &journal),
            &expected,
            Schedule { seed: rng.bits(), ..base },
        )
        .map_err(|error| format!("after a crash at event {at} of {len}: {error}"))?;
        if outside.changes() != second.world.changes() && expected.status == "completed" {
            return Err(format!(
                "after a crash at event {at}: the world was changed a different number of times"
            ));
        }
        let again = at + rng.below(12).min(second.journal.len() - at);
        let journal = second.journal.cut(again);
        recovered(plan, &graph, (&second.world, &journal), &expected, Schedule { seed: rng.bits(), ..base })
            .map_err(|error| format!("after crashes at events {at} and {again}: {error}"))?;
    }
    Ok(())
}

fn recovered<'p>(
    plan: &'p SimPlan,
    graph: &Arc<Graph>,
    (world, journal): (&World, &Journal),
    expected: &Observed,
    schedule: Schedule,
) -> Result<Sim<'p>, String> {
    let mut sim = Sim::recover(plan, graph, world.clone(), schedule, journal)?;
    sim.run(None)?;
    expected.same(&sim.observed().without_requests(), "recovered")?;
    sim.in_list_order()?;
    replay(graph, &sim.journal)?;
    Ok(sim)
}

/// P-21, E-29: a failed run whose cause is fixed ends, once resumed, like one that never failed.
///
/// Where a call that changes the world has to run again (an idempotent one, or a write that a person let run
/// again), the world is another one, and there is nothing to compare.
///
/// # Errors
/// What differs.
pub fn mending(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let mut sim = finished(plan, &graph, Schedule { seed, ..MARKED })?;
    for _ in 0..plan.nodes.len() {
        let Some((End::Failed, Some(fault))) = sim.state.ended() else { break };
        let Some(node) = fault.node.clone() else { break };
        if !sim.world.mended.insert(node.to_string()) {
            break;
        }
        let before = sim.journal.len();
        sim.input(Input::Resume(Vec::new()))?;
        sim.run(None)?;
        replay(&graph, &sim.journal)?;
        let mut fresh = World::new(plan.seed, plan.faults);
        fresh.mended.clone_from(&sim.world.mended);
        let expected = reference::run(plan, &mut fresh, Mistake::None).without_requests();
        if repeats(plan, &sim.journal, before)? {
            break;
        }
        if fresh.changes() != sim.world.changes() && expected.status == "completed" {
            return Err(format!(
                "resumed after mending {node}: the world was changed a different number of times"
            ));
        }
        let what = format!("resumed after mending {node}");
        expected.same(&sim.observed().without_requests(), &what)?;
        let folded = Sim::recover(plan, &graph, sim.world.clone(), MARKED, &sim.journal)
            .map_err(|error| format!("{what}: {error}"))?;
        expected.same(&folded.observed().without_requests(), &format!("{what}, folded"))?;
    }
    Ok(())
}

/// Whether the world was changed again by something that had been done before the event at `resumed`.
fn repeats(plan: &SimPlan, journal: &Journal, resumed: usize) -> Result<bool, String> {
    let mut idempotent = BTreeSet::new();
    for (at, record) in journal.records()?.iter().enumerate() {
        match &record.event {
            Event::Asked(asked) if at >= resumed && asked.prompt.contains("with success before") => {
                return Ok(true);
            }
            Event::Requested { effect, .. } => {
                let node = effect.place().ok_or("an effect without a place")?.place.node.into_owned();
                let changes = plan.node(&node).is_some_and(|(_, def)| {
                    let called = def.tools.iter().chain(def.initial.iter().map(|initial| &initial.tool));
                    called.into_iter().any(|tool| plan.effects(def, tool) == Effects::Idempotent)
                });
                if changes && at >= resumed && idempotent.contains(&node) {
                    return Ok(true);
                }
                if changes && at < resumed {
                    idempotent.insert(node);
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

/// A run that was stopped by its time limit anywhere and resumed ends like one that was not. For plans whose
/// tools are all `pure`; others pass.
///
/// # Errors
/// What differs.
pub fn expiry(plan: &SimPlan, seed: u64) -> Result<(), String> {
    if !plan.is_pure() {
        return Ok(());
    }
    let graph = graph(plan)?;
    let (expected, _) = expected(plan, Mistake::None);
    let expected = expected.without_requests();
    let mut rng = Rng::new(seed);
    let len = finished(plan, &graph, Schedule { seed, ..Schedule::default() })?.journal.len();
    for _ in 0..3 {
        let mut sim = Sim::new(plan, &graph, world(plan), Schedule { seed: rng.bits(), ..MARKED });
        let at = 1 + rng.below(len);
        sim.run(Some(at))?;
        sim.input(Input::Expire(7))?;
        sim.run(None)?;
        if matches!(sim.state.ended(), Some((End::Failed, Some(f))) if f.message.contains("7 s")) {
            sim.input(Input::Resume(Vec::new()))?;
            sim.run(None)?;
        }
        let what = format!("stopped at event {at} and resumed");
        expected.same(&sim.observed().without_requests(), &what)?;
        let folded = Sim::recover(plan, &graph, world(plan), MARKED, &sim.journal)
            .map_err(|error| format!("{what}: {error}"))?;
        expected.same(&folded.observed().without_requests(), &format!("{what}, folded"))?;
        replay(&graph, &sim.journal).map_err(|error| format!("{what}: {error}"))?;
    }
    Ok(())
}

/// E-13: a cancelled run ends at once, and stays ended.
///
/// # Errors
/// What happened instead.
pub fn cancelling(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let mut rng = Rng::new(seed);
    let mut sim = Sim::new(plan, &graph, world(plan), Schedule { seed: rng.bits(), ..MARKED });
    sim.run(Some(1 + rng.below(60)))?;
    if sim.state.ended().is_some() {
        return Ok(());
    }
    let late: Vec<_> = sim.state.pending().keys().cloned().collect();
    sim.input(Input::Cancel)?;
    sim.run(None)?;
    if !matches!(sim.state.ended(), Some((End::Cancelled, _))) {
        return Err("E-13: a cancelled run did not end as cancelled".into());
    }
    for effect in late {
        let outcome = selvedge_engine::Outcome::Output(Arc::new(serde_json::Value::Null));
        if sim.state.accept(Input::Complete(effect.clone(), outcome, 0, None, None)).is_some() {
            return Err(format!("E-13: the late outcome of {effect} was accepted"));
        }
    }
    replay(&graph, &sim.journal)
}

/// E-05: a person who does not want a lost write run again gets `unknown_outcome`, and the run goes on by its
/// rules. What must hold after every event is all there is to compare with.
///
/// # Errors
/// A broken rule.
pub fn denied_writes(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let mut rng = Rng::new(seed);
    let first = finished(plan, &graph, Schedule { seed: rng.bits(), ..MARKED })?;
    for _ in 0..4 {
        let journal = first.journal.cut(1 + rng.below(first.journal.len()));
        let schedule = Schedule { seed: rng.bits(), lost: Said::No, ..MARKED };
        let mut sim = Sim::recover(plan, &graph, first.world.clone(), schedule, &journal)?;
        sim.run(None)?;
        sim.in_list_order()?;
        replay(&graph, &sim.journal)?;
        if let Some(ask) = sim.state.declined().map(|(ask, _)| ask.clone()) {
            changed_word(&mut sim, &ask)?;
            replay(&graph, &sim.journal)?;
        }
    }
    Ok(())
}

/// E-29: who said no to a write may still say that it happened; then the node has what came back, and nothing is sent.
fn changed_word(sim: &mut Sim<'_>, ask: &Arc<str>) -> Result<(), String> {
    let before = sim.journal.len();
    sim.input(Input::Resume(Vec::new()))?;
    let Some(output) = sim.what_came_back(ask) else { return Ok(()) };
    sim.input(Input::Answer(ask.clone(), done(&output)))?;
    sim.run(None)?;
    let events: Vec<Event> = sim.journal.records()?.into_iter().skip(before).map(|r| r.event).collect();
    let takes = |event: &Event| matches!(event, Event::Reused { from, .. } if from.0 == *ask);
    match events.iter().find(|event| matches!(event, Event::Asked(_)) || takes(event)) {
        Some(event) if takes(event) => Ok(()),
        first => Err(format!("E-29: the write {ask} is known to have happened, and then came {first:?}")),
    }
}

/// E-20: a cap on model calls holds, whatever runs at the same time.
///
/// # Errors
/// A broken rule.
pub fn budgets(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let mut rng = Rng::new(seed);
    let cap = rng.below(6) as u64;
    let sim = finished(plan, &graph, Schedule { seed: rng.bits(), budget: Some(cap), ..MARKED })?;
    let used = sim.state.usage().model_calls;
    if used > cap {
        return Err(format!("E-20: {used} model calls were answered under a cap of {cap}"));
    }
    replay(&graph, &sim.journal)
}

/// A journal with one derived event missing must not pass for a whole one: for the canary.
///
/// # Errors
/// What does not hold, as it should.
pub fn forgetting(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let graph = graph(plan)?;
    let sim = finished(plan, &graph, Schedule { seed, ..Schedule::default() })?;
    let at = 1 + Rng::new(seed).below(sim.journal.len().saturating_sub(1));
    replay(&graph, &sim.journal.without(at))
}
