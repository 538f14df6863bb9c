//! A picture that is painted over itself at the bottom of a terminal, by a thread of its own. What others say on stderr meanwhile goes above it,
//! by way of [`above`], and stays there.

use super::frame::Line;
use super::screen::Screen;
use crate::ui::Ui;
use selvedge_host::text::counted;
use selvedge_runtime::Stop;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// What is to be seen now, on a terminal of so many columns and rows; whether it is being stopped.
type Frame = dyn FnMut(&Ui, bool, (usize, usize)) -> Vec<Line> + Send;

/// A picture that is on until this is dropped.
pub(super) struct Picture {
    shared: Arc<Shared>,
}

/// What is said beside the picture, and its end.
struct Shared {
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

impl Picture {
    /// Shows it, if stderr is a terminal that can and is to show one.
    pub(super) fn show(
        ui: &Ui,
        stop: &Stop,
        frame: impl FnMut(&Ui, bool, (usize, usize)) -> Vec<Line> + Send + 'static,
    ) -> Option<Self> {
        let terminal = ui.live.then(terminal).flatten()?;
        let shared = Arc::new(Shared { board: Mutex::default(), changed: Condvar::new() });
        let painter = Painter {
            shared: Arc::clone(&shared),
            frame: Box::new(frame),
            ui: ui.clone(),
            stop: stop.clone(),
            terminal,
            screen: Screen::new(ui.colour),
        };
        // Where the system refuses a thread there are plain lines.
        std::thread::Builder::new().name("live view".into()).spawn(move || painter.paint()).ok()?;
        crate::ui::draws(above);
        *locked(&ON) = Some(Arc::clone(&shared));
        Some(Self { shared })
    }

    /// Takes the picture away; from then on everybody writes by themselves.
    pub(super) fn close(&self) {
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

impl Drop for Picture {
    fn drop(&mut self) {
        self.close();
    }
}

/// The thread that paints.
struct Painter {
    shared: Arc<Shared>,
    frame: Box<Frame>,
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
            let lines =
                if end || !ours { Vec::new() } else { (self.frame)(&self.ui, self.stop.level() > 0, size) };
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
            above
                .push_str(&format!("… left out: {}\n", counted(std::mem::take(&mut board.left_out), "line")));
        }
        for line in board.lines.drain(..) {
            above.push_str(&line);
            above.push('\n');
        }
        (above, board.end)
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
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
