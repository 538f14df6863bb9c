//! The live view of a run on a terminal: threads as lanes, what each node does or waits for, the text that streams.
//!
//! - [`view`]: the run's timeline, what no journal has (deltas, whose turn it is), and [`track`] for what waits; cheap for the run (E-15).
//! - [`frame`]: one picture of it, with [`text`] for columns. Pure.
//! - [`screen`]: the escape sequences that put a picture over the last one. Pure.
//! - here: a thread that paints ten times a second, so that no terminal, however slow, holds up a run.
//!
//! What others say on stderr meanwhile goes above the picture by way of [`above`], and stays there.

mod frame;
mod screen;
pub(crate) mod text;
pub(crate) mod track;
mod view;

use crate::progress::running_ms;
use crate::ui::Ui;
use screen::Screen;
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::timeline::{News, Rung, Timeline};
use selvedge_runtime::{Clock, Delta, Stop, SystemClock};
use selvedge_store::RunInfo;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use view::View;

/// How often the picture is painted.
const TICK: Duration = Duration::from_millis(100);
/// A tick that took so much longer was one in which the process stood still (Ctrl-Z).
const STOOD_STILL: Duration = Duration::from_secs(1);
/// How long the end of a run waits for a terminal that takes nothing (Ctrl-S).
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines that are kept for a terminal that takes nothing.
const BACKLOG: usize = 10_000;
/// Columns and rows of a terminal that does not say.
const SIZE: (usize, usize) = (80, 24);

/// The live view that is on, if one is.
static ON: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Puts text above the picture; `false` if there is none, so that it has to be printed.
fn above(text: &str) -> bool {
    let Some(shared) = locked(&ON).clone() else { return false };
    let mut board = locked(&shared.board);
    if board.done {
        return false;
    }
    board.lines.extend(text.lines().map(str::to_owned));
    while board.lines.len() > BACKLOG {
        board.lines.pop_front();
        board.left_out += 1;
    }
    true
}

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
    shared: Arc<Shared>,
}

/// What the run tells and the painter shows.
struct Shared {
    view: Mutex<View>,
    board: Mutex<Board>,
    changed: Condvar,
}

/// What goes above the picture, and whether it goes on.
#[derive(Default)]
struct Board {
    lines: VecDeque<String>,
    left_out: usize,
    /// The picture is to be taken away.
    end: bool,
    /// It was, or there is no terminal any more.
    done: bool,
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
        let Some(terminal) = ui.live.then(terminal).flatten() else { return Err(view.timeline) };
        let shared =
            Arc::new(Shared { view: Mutex::new(view), board: Mutex::default(), changed: Condvar::new() });
        let painter = Painter {
            shared: Arc::clone(&shared),
            ui: ui.clone(),
            stop: stop.clone(),
            terminal,
            screen: Screen::new(ui.colour),
        };
        if std::thread::Builder::new().name("live view".into()).spawn(move || painter.paint()).is_err() {
            // Where the system refuses a thread there are plain lines.
            return Err(std::mem::take(&mut locked(&shared.view).timeline));
        }
        crate::ui::draws(above);
        *locked(&ON) = Some(Arc::clone(&shared));
        Ok(Self { shared })
    }

    /// Takes records in, by way of who tells of them in lines.
    pub(crate) fn events(&self, state: &State, records: &[Record], tell: impl FnOnce(&mut Timeline) -> News) {
        let mut view = locked(&self.shared.view);
        let news = tell(&mut view.timeline);
        view.events(state, records, &news, Now::new());
    }

    /// An effect has its turn.
    pub(crate) fn began(&self, effect: &EffectId) {
        locked(&self.shared.view).began(effect, running_ms());
    }

    /// A piece of what an effect says while it goes on, which is told in lines, too.
    pub(crate) fn delta(&self, effect: &EffectId, delta: Delta, tell: impl FnOnce(&Timeline, Delta)) {
        let mut view = locked(&self.shared.view);
        tell(&view.timeline, delta.clone());
        view.delta(effect, delta, running_ms());
    }

    /// What was done about what failed, so far (D-22).
    pub(crate) fn rungs(&self) -> Vec<Rung> {
        locked(&self.shared.view).timeline.recovery().rungs().to_vec()
    }

    /// What the run has used, for the record: when it began, and the rest in a line.
    pub(crate) fn summary(&self) -> (i64, String) {
        let view = locked(&self.shared.view);
        (view.begun, frame::summary(&view))
    }

    /// Takes the picture away; from then on everybody writes by themselves.
    pub(crate) fn close(&self) {
        let mut board = locked(&self.shared.board);
        board.end = true;
        self.shared.changed.notify_all();
        let deadline = Instant::now() + PATIENCE;
        while !board.done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            board = self.shared.changed.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // From here on the painter writes nothing.
        board.done = true;
        drop(board);
        let mut on = locked(&ON);
        if on.as_ref().is_some_and(|on| Arc::ptr_eq(on, &self.shared)) {
            *on = None;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

/// The thread that paints.
struct Painter {
    shared: Arc<Shared>,
    ui: Ui,
    stop: Stop,
    terminal: File,
    screen: Screen,
}

impl Painter {
    fn paint(mut self) {
        loop {
            let began = Instant::now();
            let (above, end) = self.wait();
            if began.elapsed() > TICK + STOOD_STILL {
                self.screen.forget();
            }
            let size = self.size();
            let ours = foreground(&self.terminal);
            if !ours {
                self.screen.forget();
            }
            let lines = if end || !ours { Vec::new() } else { self.picture(size) };
            let text = self.screen.paint(&above, lines, size);
            let gone = self.write(text.as_bytes()).is_err();
            if end || gone {
                let mut board = locked(&self.shared.board);
                board.done = true;
                self.shared.changed.notify_all();
                return;
            }
        }
    }

    /// Waits for a tick or the end; what is to go above the picture.
    fn wait(&self) -> (String, bool) {
        let board = locked(&self.shared.board);
        let waited = self.shared.changed.wait_timeout_while(board, TICK, |board| !board.end);
        let mut board = waited.unwrap_or_else(PoisonError::into_inner).0;
        let mut above = String::new();
        if board.left_out > 0 {
            above.push_str(&format!("… {} lines were left out\n", std::mem::take(&mut board.left_out)));
        }
        for line in board.lines.drain(..) {
            above.push_str(&line);
            above.push('\n');
        }
        (above, board.end)
    }

    fn picture(&self, (width, height): (usize, usize)) -> Vec<frame::Line> {
        let now = running_ms();
        let mut view = locked(&self.shared.view);
        if self.stop.level() > 0 {
            view.stop(now);
        }
        view.tick(now);
        frame::frame(&view, now, width, height, &|text| self.ui.redacted(text))
    }

    fn size(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size_of(&self.terminal);
        size.map_or(SIZE, |(columns, rows)| (columns.0.into(), rows.0.into()))
    }

    /// Writes all of it, however long the terminal takes; an error is a terminal that is gone.
    fn write(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            match self.terminal.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !locked(&self.shared.board).done => {
                    std::thread::sleep(TICK / 10);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A handle of its own: one that is stuck in a write must not hold the lock of the standard one.
#[cfg(unix)]
fn terminal() -> Option<File> {
    use std::os::fd::AsFd;
    std::io::stderr().as_fd().try_clone_to_owned().ok().map(File::from)
}

#[cfg(not(unix))]
fn terminal() -> Option<File> {
    None
}

/// Whether the terminal is ours now: in the background only whole lines are written.
#[cfg(unix)]
fn foreground(terminal: &File) -> bool {
    rustix::termios::tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn foreground(_: &File) -> bool {
    true
}

/// Locks what stays whole whoever panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
