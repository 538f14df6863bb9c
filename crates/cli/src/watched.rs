//! A run that somebody looks on while it goes on: lines for the record, on a terminal with a live view under them, both of one
//! timeline.

use crate::durations::duration;
use crate::live::Live;
use crate::progress::{Progress, running_ms};
use crate::ui::Ui;
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::timeline::{Rung, Timeline};
use selvedge_runtime::{Delta, Stop, Watcher};
use selvedge_store::RunInfo;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run that is looked on.
pub(crate) struct Watched {
    lines: Progress,
    shown: Shown,
}

/// Who has the timeline.
enum Shown {
    /// Nobody else: there are lines alone.
    Lines(Box<Mutex<Timeline>>),
    Live(Live),
}

impl Watched {
    /// A run that this process drives, unless nothing is to be told: the run that it is a fork of, and when this process began to
    /// drive it, by a clock that nobody can set. `again`: what was in flight is run again.
    pub(crate) fn drive(
        ui: &Ui,
        run: &str,
        state: &State,
        begun: (Option<&str>, i64),
        stop: &Stop,
        again: bool,
    ) -> Option<Arc<Self>> {
        let lines = Progress::new(ui, state, begun)?;
        let timeline = lines.begin(state, again);
        Some(Arc::new(Self::new(lines, Live::start(ui, run, state, timeline, begun, stop))))
    }

    /// A run that another process drives, from its beginning on, in lines.
    pub(crate) fn follow(ui: &Ui, run: &RunInfo, state: &State) -> Option<Self> {
        let lines = Progress::follow(ui, state, run)?.live(ui.live);
        let timeline = lines.begin(state, false);
        Some(Self { lines, shown: Shown::Lines(Box::new(Mutex::new(timeline))) })
    }

    /// The same from now on with a live view, if there can be one.
    pub(crate) fn with_live(self, ui: &Ui, run: &RunInfo, state: &State) -> Self {
        match self.shown {
            Shown::Lines(timeline) => {
                let timeline = timeline.into_inner().unwrap_or_else(PoisonError::into_inner);
                Self::new(self.lines, Live::follow(ui, run, state, timeline))
            }
            shown @ Shown::Live(_) => Self { shown, ..self },
        }
    }

    fn new(lines: Progress, live: Result<Live, Timeline>) -> Self {
        let lines = lines.live(live.is_ok());
        let alone = |timeline| Shown::Lines(Box::new(Mutex::new(timeline)));
        Self { lines, shown: live.map_or_else(alone, Shown::Live) }
    }

    /// What was done about what failed, so far (D-22).
    pub(crate) fn rungs(&self) -> Vec<Rung> {
        match &self.shown {
            Shown::Lines(timeline) => locked(timeline).recovery().rungs().to_vec(),
            Shown::Live(live) => live.rungs(),
        }
    }

    /// Takes the picture away, if there is one; of a run that goes on no more it leaves what it has used as a line.
    pub(crate) fn close(&self, ui: &Ui, goes_on: bool) {
        let Shown::Live(live) = &self.shown else { return };
        if !goes_on {
            // Above the picture: a terminal that takes nothing holds nobody up.
            let (begun, summary) = live.summary();
            let since = duration(running_ms() - begun);
            ui.error_text(&format!("{since:>8}  {} {summary}\n", ui.paint("1", "total")));
        }
        live.close();
    }
}

impl Watcher for Watched {
    fn events(&self, state: &State, records: &[Record]) {
        let tell = |timeline: &mut Timeline| self.lines.events(timeline, state, records);
        match &self.shown {
            Shown::Lines(timeline) => drop(tell(&mut locked(timeline))),
            Shown::Live(live) => live.events(state, records, tell),
        }
    }

    fn began(&self, effect: &EffectId) {
        if let Shown::Live(live) = &self.shown {
            live.began(effect);
        }
    }

    fn delta(&self, effect: &EffectId, delta: Delta) {
        let tell = |timeline: &Timeline, delta| self.lines.delta(timeline, effect, delta);
        match &self.shown {
            Shown::Lines(timeline) => tell(&locked(timeline), delta),
            Shown::Live(live) => live.delta(effect, delta, tell),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
