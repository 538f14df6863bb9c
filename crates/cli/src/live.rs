//! The live view of a run on a terminal: threads as lanes, what each node does or waits for, the text that streams.
//!
//! - [`view`]: the run's timeline, what no journal has (deltas, whose turn it is), and [`track`] for what waits; cheap for the run (E-15).
//! - [`frame`]: one picture of it, with [`text`] for columns. Pure.
//! - [`screen`]: the escape sequences that put a picture over the last one. Pure.
//! - [`painter`]: a thread that paints ten times a second, so that no terminal, however slow, holds up a run.
//! - [`tasks`]: the picture of an evolution (V-14).

mod frame;
mod painter;
mod screen;
pub(crate) mod tasks;
pub(crate) mod text;
pub(crate) mod track;
mod view;

use crate::progress::running_ms;
use crate::ui::Ui;
use painter::{Picture, locked};
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::timeline::{News, Rung, Timeline};
use selvedge_runtime::{Clock, Delta, Stop, SystemClock};
use selvedge_store::RunInfo;
use std::sync::{Arc, Mutex};
use view::View;

/// Two readings of the clocks: what is shown goes by the one that nobody can set.
#[derive(Clone, Copy, Debug)]
struct Now {
    /// Milliseconds since some moment before this process began.
    running: i64,
    /// Milliseconds since 1970, as in journals.
    journal: i64,
}

impl Now {
    fn new() -> Self {
        Self { running: running_ms(), journal: SystemClock.now_ms() }
    }
}

/// A live view that is on until this is dropped.
pub(crate) struct Live {
    view: Arc<Mutex<View>>,
    picture: Picture,
}

impl Live {
    /// Begins to show a run that this process drives, if stderr is a terminal that can and is to show it: what is known of it, the
    /// run that it is a fork of, and when this process began to drive it, by a clock that nobody can set. Else the timeline is given
    /// back.
    pub(crate) fn start(
        ui: &Ui,
        run: &str,
        state: &State,
        timeline: Timeline,
        (source, begun): (Option<&str>, i64),
        stop: &Stop,
    ) -> Result<Self, Timeline> {
        let mut view = View::new(run, state, timeline, source, Now::new());
        view.begun = begun;
        Self::show(ui, view, stop)
    }

    /// The same of a run that another process drives, with times since it began and its nodes started.
    pub(crate) fn follow(
        ui: &Ui,
        run: &RunInfo,
        state: &State,
        timeline: Timeline,
    ) -> Result<Self, Timeline> {
        let (now, source) = (Now::new(), run.fork.as_ref().map(|fork| fork.run.as_str()));
        let mut view = View::new(&run.id, state, timeline, source, now);
        view.begun = now.running.saturating_sub(now.journal.saturating_sub(run.started_ms).max(0));
        view.since_started(now);
        Self::show(ui, view, &Stop::default())
    }

    fn show(ui: &Ui, view: View, stop: &Stop) -> Result<Self, Timeline> {
        let view = Arc::new(Mutex::new(view));
        let painted = Arc::clone(&view);
        let picture = Picture::show(ui, stop, move |ui, stopping, (width, height)| {
            let now = running_ms();
            let mut view = locked(&painted);
            if stopping {
                view.stop(now);
            }
            view.tick(now);
            frame::frame(&view, now, width, height, &|text| ui.redacted(text))
        });
        match picture {
            Some(picture) => Ok(Self { view, picture }),
            None => Err(std::mem::take(&mut locked(&view).timeline)),
        }
    }

    /// Takes records in, by way of who tells of them in lines.
    pub(crate) fn events(&self, state: &State, records: &[Record], tell: impl FnOnce(&mut Timeline) -> News) {
        let mut view = locked(&self.view);
        let news = tell(&mut view.timeline);
        view.events(state, records, &news, Now::new());
    }

    /// An effect has its turn.
    pub(crate) fn began(&self, effect: &EffectId) {
        locked(&self.view).began(effect, running_ms());
    }

    /// A piece of what an effect says while it goes on, which is told in lines, too.
    pub(crate) fn delta(&self, effect: &EffectId, delta: Delta, tell: impl FnOnce(&Timeline, Delta)) {
        let mut view = locked(&self.view);
        tell(&view.timeline, delta.clone());
        view.delta(effect, delta, running_ms());
    }

    /// What was done about what failed, so far (D-22).
    pub(crate) fn rungs(&self) -> Vec<Rung> {
        locked(&self.view).timeline.recovery().rungs().to_vec()
    }

    /// What the run has used, for the record: when it began, and the rest in a line.
    pub(crate) fn summary(&self) -> (i64, String) {
        let view = locked(&self.view);
        (view.begun, frame::summary(&view))
    }

    /// Takes the picture away; from then on everybody writes by themselves.
    pub(crate) fn close(&self) {
        self.picture.close();
    }
}

#[cfg(test)]
mod tests;
