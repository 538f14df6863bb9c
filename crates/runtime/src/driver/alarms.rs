//! When timers are due, by the clock that can't be set (E-37).

use crate::clock::Clock;
use selvedge_engine::{Event, Record, State, Wait};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How many alarms there may be for timers that are no more, beside as many as there are timers.
const STALE: usize = 1_024;

/// The alarms of a run. Those of timers that are no more are left out where they would be next, so that a change costs no look
/// at the others.
#[derive(Debug, Default)]
pub(super) struct Alarms(BTreeSet<(Duration, Arc<str>)>);

impl Alarms {
    /// The timers of a run that is taken up. Of those that an earlier process set, the time in which nobody drove has passed.
    pub(super) fn set(&mut self, state: &State, clock: &dyn Clock) {
        self.0.clear();
        state.timers().iter().for_each(|(timer, wait)| self.add(timer, *wait, clock));
    }

    /// What events have changed that were just applied.
    pub(super) fn note(&mut self, state: &State, records: &[Record], clock: &dyn Clock) {
        if records.iter().any(|record| matches!(record.event, Event::Resumed { .. } | Event::Forked(_))) {
            return self.set(state, clock);
        }
        for record in records {
            if let Some((timer, wait)) = state.timer_set_by(&record.event) {
                self.add(timer, wait, clock);
            }
        }
        let timers = state.timers();
        if self.0.len() > 2 * timers.len() + STALE {
            self.0.retain(|(_, timer)| timers.contains_key(timer));
        }
    }

    fn add(&mut self, timer: &Arc<str>, wait: Wait, clock: &dyn Clock) {
        let left = Duration::from_millis(wait.left_ms(clock.now_ms()));
        self.0.insert((clock.running().saturating_add(left), timer.clone()));
    }

    /// The one that is next, and when.
    pub(super) fn next(&mut self, state: &State) -> Option<(Duration, Arc<str>)> {
        while let Some(first) = self.0.first() {
            if state.timers().contains_key(&first.1) {
                return Some(first.clone());
            }
            self.0.pop_first();
        }
        None
    }
}
