//! Progress on stderr: one line when a node starts and one when it ends, more with `-v` (C-01).

use crate::durations::offset;
use crate::inspect::page::wrap;
use crate::live::text::{cut, width};
use crate::ui::Ui;
use crowd::Crowds;
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::text::one_line;
use selvedge_host::timeline::{Moment, News, Timeline};
use selvedge_runtime::{Clock, Delta, SystemClock};
use selvedge_store::RunInfo;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use telling::{Telling, request, title};
use tells::Told;
use waits::Waits;
use warned::Warned;

mod crowd;
mod data;
mod telling;
mod tells;
mod waits;
mod warned;

/// Characters of a value that a line shows.
const SHOWN: usize = 160;
const SHOWN_FIELD: usize = 60;
/// Characters of a line in all, and columns that it takes in the narrowest terminal.
const LONGEST: usize = 400;
const SHORTEST: usize = 12;
/// What somebody has to read to its end.
const URGENT: [&str; 11] =
    ["fail ", "warn ", "retry", "deny ", "ask  ", "param", "sync ", "fault", "mend ", "plan ", "skip "];

/// Prints what happens to a run: its timeline says what, and this only says it.
pub(crate) struct Progress {
    ui: Ui,
    /// Whether a live view shows what has started and what waits.
    live: bool,
    /// Whether it tells of a run that another process drives, by the times of its journal.
    told: bool,
    /// When the telling begins, by the clock of the timeline.
    begun: i64,
    /// The run that this one is a fork of.
    source: Option<Arc<str>>,
    said: Mutex<Said>,
}

/// What was said so far.
#[derive(Default)]
struct Said {
    /// What calls last told of how far they have come.
    told: HashMap<EffectId, Told>,
    crowds: Crowds,
    waits: Option<Waits>,
    warned: Warned,
    /// How many steps of the ladder.
    rungs: usize,
}

impl Progress {
    /// What prints, unless nothing is to be printed. `source`: the run that it is a fork of; `begun`: when
    /// this process began to drive it, by a clock that nobody can set.
    pub(crate) fn new(ui: &Ui, state: &State, (source, begun): (Option<&str>, i64)) -> Option<Self> {
        if ui.quiet {
            return None;
        }
        let mut said = Said::default();
        said.warned.skip(state);
        let source = source.map(Into::into);
        Some(Self { ui: ui.clone(), live: false, told: false, begun, source, said: Mutex::new(said) })
    }

    /// The same of a run that another process drives, and by the times of its journal.
    pub(crate) fn follow(ui: &Ui, state: &State, run: &RunInfo) -> Option<Self> {
        let source = run.fork.as_ref().map(|fork| fork.run.as_str());
        Some(Self { told: true, ..Self::new(ui, state, (source, run.started_ms))? })
    }

    /// What is known of the run before anything is told of it. What is in flight, because the run goes on after a crash or an
    /// interrupt, is said at once if it is run `again`.
    pub(crate) fn begin(&self, state: &State, again: bool) -> Timeline {
        let (journal, running) = (SystemClock.now_ms(), running_ms());
        let since = |at: i64| journal.saturating_sub(at);
        let timeline = Timeline::so_far_by(state, journal, |at| {
            if self.told { at } else { running.saturating_sub(since(at)) }
        });
        for effect in state.pending().keys().filter(|_| again) {
            if let Some((row, call, _)) = timeline.attempt(effect) {
                let text = format!("{}: {} was in flight", title(&timeline, row), request(call));
                self.line(running, ("36", "again"), &text);
            }
        }
        if self.ui.verbose > 0 {
            locked(&self.said).waits = Some(Waits::new(&timeline, state));
        }
        timeline
    }

    /// Whether a live view shows what has started and what waits.
    pub(crate) fn live(self, live: bool) -> Self {
        Self { live, ..self }
    }

    /// Takes records into the timeline, and says what there is to say of each.
    pub(crate) fn events(&self, timeline: &mut Timeline, state: &State, records: &[Record]) -> News {
        let mut said = locked(&self.said);
        // Of what this process drives, by a clock that nobody can set.
        let now = running_ms();
        let clock = |record: &Record| if self.told { record.at } else { now };
        let news = timeline.follow(state, records, clock, |timeline, now, record| {
            let mut telling = Telling { lines: self, said: &mut said, timeline, state, now };
            telling.event(&record.event);
        });
        let last = Moment { n: state.events(), at: records.last().map(clock).unwrap_or_default() };
        let warnings = said.warned.news(state);
        // With -v: what the nodes that could be next wait for (P-20).
        let waits = said.waits.as_mut().map(|waits| waits.news(timeline, state, &news)).unwrap_or_default();
        Telling { lines: self, said: &mut said, timeline, state, now: last }.warn(&warnings);
        waits.iter().for_each(|text| self.line(last.at, ("2", "wait "), text));
        news
    }

    /// With -v: how far a call has come, as it tells itself. Not more often than a person reads; the last of it always.
    pub(crate) fn delta(&self, timeline: &Timeline, effect: &EffectId, delta: Delta) {
        let Delta::Progress(told) = delta else { return };
        if self.ui.verbose > 0 && timeline.attempt(effect).is_some() {
            self.told_now(&mut locked(&self.said), timeline, running_ms(), effect, told);
        }
    }

    fn line(&self, at: i64, mark: (&str, &str), text: &str) {
        self.line_to(at, mark, text, "");
    }

    /// A line whose end stays when it is cut. On a terminal one line takes one row, except for what somebody has
    /// to read to its end; a pipe gets all of it.
    fn line_to(&self, at: i64, mark: (&str, &str), text: &str, end: &str) {
        let since = format!("{:>8}", offset(at.saturating_sub(self.begun)));
        let mut text = one_line(text, LONGEST);
        if let Some(columns) = self.ui.columns() {
            let before = since.len() + mark.1.len() + 3;
            let room = columns.saturating_sub(before + width(end)).max(SHORTEST);
            text = match URGENT.contains(&mark.1) {
                true => wrap(&text, room, usize::MAX).join(&format!("\n{}", " ".repeat(before))),
                false => narrowed(&text, room),
            };
        }
        let mark = self.ui.paint(mark.0, mark.1);
        self.ui.error_text(&format!("{since}  {mark} {text}{end}\n"));
    }

    /// The beginning of a value. Keys are taken out before it is cut: half of one would be shown as it is (C-06).
    fn short(&self, text: &str, most: usize) -> String {
        one_line(&self.ui.redacted(text), most)
    }
}

/// A node's title in so many columns: of the place that it begins with the outermost parts go first, since what is said of the node, and the
/// node's own id, say more than where it is.
fn narrowed(title: &str, room: usize) -> String {
    let (mut shown, mut rest) = (title.to_owned(), title);
    while width(&shown) > room
        && let Some((outer, inner)) = rest.split_once('/')
        && !outer.contains(' ')
    {
        rest = inner;
        shown = format!("…/{inner}");
    }
    cut(&shown, room)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds by a clock that nobody can set, and that runs on while the machine is suspended: for how long something
/// takes.
pub(crate) fn running_ms() -> i64 {
    i64::try_from(SystemClock.running().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::narrowed;

    #[test]
    fn a_title_loses_the_outer_parts_of_its_place_first() {
        let title = "rounds#0/executor#0/mend[0]/attempts#0/write has a coder write";
        assert_eq!(narrowed(title, 80), title);
        assert_eq!(narrowed(title, 40), "…/attempts#0/write has a coder write");
        assert_eq!(narrowed(title, 30), "…/write has a coder write");
        assert_eq!(narrowed(title, 12), "…/write has…");
        assert_eq!(narrowed("load reads a/b and more of it", 12), "load reads …");
    }
}
