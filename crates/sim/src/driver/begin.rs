//! Processes that begin where another one left off: after a crash, or as a fork.

use super::{Schedule, Sim};
use crate::journal::Journal;
use crate::plan::SimPlan;
use crate::world::World;
use selvedge_engine::{EffectId, Effects, Event, Fork, Graph, Input};
use std::sync::Arc;

impl<'p> Sim<'p> {
    /// A process that finds `journal` on disk after a crash (E-05).
    ///
    /// # Errors
    /// A fold that differs from the state that was live (E-03), or a broken rule.
    pub fn recover(
        plan: &'p SimPlan,
        graph: &Arc<Graph>,
        world: World,
        schedule: Schedule,
        journal: &Journal,
    ) -> Result<Self, String> {
        let mut sim = Self::new(plan, graph, world, schedule);
        sim.world.rewind(journal.marks.last().map_or(0, |mark| mark.changes));
        sim.world.sent_writes.clear();
        for (at, (record, mark)) in journal.records()?.iter().zip(&journal.marks).enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            sim.keep_source(&record.event);
            sim.note(record, journal.lines.get(at).cloned().unwrap_or_default(), mark.changes)?;
            if let Event::Requested { effect, .. } | Event::Retried { effect, .. } = &record.event
                && sim.state.pending().get(effect).is_some_and(|p| p.effects == Effects::Write)
            {
                sim.world.sent_writes.insert(effect.to_string());
            }
            let digest = sim.journal.marks.last().and_then(|mark| mark.digest);
            if digest.is_some() && digest != mark.digest {
                return Err(format!("E-03: folding {} events gives another state than the live one", at + 1));
            }
        }
        sim.lose_writes()?;
        Ok(sim)
    }

    /// A process that makes a fork of a run, which shares `prefix` with it (E-19). The world is as the source left
    /// it, or goes on changing it.
    ///
    /// # Errors
    /// A broken rule.
    pub fn forked(
        source: &Sim<'p>,
        graph: &Arc<Graph>,
        schedule: Schedule,
        prefix: &Journal,
        fork: Fork,
    ) -> Result<Self, String> {
        let mut sim = Self::new(source.plan, graph, source.world.clone(), schedule);
        sim.contents.clone_from(&source.contents);
        for (at, record) in prefix.records()?.iter().enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            sim.keep_source(&record.event);
            sim.note(record, prefix.lines.get(at).cloned().unwrap_or_default(), sim.world.changes())?;
        }
        sim.now = sim.now.max(source.now);
        sim.input(Input::Fork(Box::new(fork)))?;
        Ok(sim)
    }

    /// What was in flight is sent again, a write is lost (E-05).
    fn lose_writes(&mut self) -> Result<(), String> {
        let flying: Vec<(EffectId, Effects)> =
            self.state.pending().iter().map(|(id, pending)| (id.clone(), pending.effects)).collect();
        if self.rng.chance(50) {
            self.quiesce()?;
        }
        for (effect, effects) in flying {
            match effects {
                Effects::Write if self.schedule.rerun_writes => {}
                Effects::Write => self.input(Input::Lose(effect))?,
                // It may have happened: then it must not happen again.
                Effects::Idempotent if self.rng.chance(50) => drop(self.outcome(&effect)),
                _ => {}
            }
        }
        Ok(())
    }
}
