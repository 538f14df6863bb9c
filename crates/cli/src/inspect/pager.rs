//! Long pages on a terminal go through a pager, as `git`'s and `man`'s do: never JSON, never where a pipe or a file reads (C-15).

use crate::ui::Ui;
use std::io::{IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Whether `--no-pager` was given.
static OFF: OnceLock<bool> = OnceLock::new();

/// Takes note of `--no-pager`.
pub(crate) fn choose(off: bool) {
    OFF.get_or_init(|| off);
}

/// A pager that shows what is written to it. Ctrl-C is the pager's own meanwhile.
pub(crate) struct Pager {
    child: Child,
    /// Keeps the signal's own effect off this process: it ends when its pager does.
    #[cfg(unix)]
    _interrupt: (Option<tokio::runtime::Runtime>, Option<tokio::signal::unix::Signal>),
}

impl Pager {
    /// Starts it, if standard output is a terminal for people and there is one.
    pub(crate) fn start(ui: &Ui) -> Option<Self> {
        let wanted = !ui.json && OFF.get() != Some(&true) && !is_set("NO_PAGER");
        if !wanted
            || !std::io::stdout().is_terminal()
            || std::env::var_os("TERM").is_none_or(|term| term == "dumb")
        {
            return None;
        }
        #[cfg(unix)]
        let interrupt = interrupts();
        let mut command = match std::env::var_os("PAGER") {
            Some(pager) if pager.is_empty() || pager == "cat" => return None,
            Some(pager) => {
                // A shell that finds no such program would take the page with it.
                let mut look = Command::new("sh");
                look.args(["-c", "command -v -- \"${PAGER%% *}\""])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                if !look.status().is_ok_and(|status| status.success()) {
                    return None;
                }
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(pager);
                shell
            }
            None => {
                let mut less = Command::new("less");
                less.arg("-FRX");
                less
            }
        };
        // One that is not there is none: then the text is printed as it is.
        let child = command.stdin(Stdio::piped()).spawn().ok()?;
        Some(Self {
            child,
            #[cfg(unix)]
            _interrupt: interrupt,
        })
    }

    /// Shows a text, and waits until who reads it has seen enough.
    pub(crate) fn show(mut self, text: &str) {
        let _ = self.write_all(text.as_bytes());
        self.end();
    }

    /// Waits until who reads it has seen enough.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.child.stdin {
            Some(input) => input.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Whether the terminal has fewer rows than a text has lines.
pub(crate) fn is_long(text: &str) -> bool {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.is_some_and(|(_, rows)| text.lines().count() >= usize::from(rows.0))
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[cfg(unix)]
fn interrupts() -> (Option<tokio::runtime::Runtime>, Option<tokio::signal::unix::Signal>) {
    use tokio::runtime::{Builder, Handle, Runtime};
    use tokio::signal::unix::{SignalKind, signal};
    let own = Handle::try_current()
        .is_err()
        .then(|| Builder::new_current_thread().enable_io().build().ok())
        .flatten();
    let entered = own.as_ref().map(Runtime::enter);
    let signal = signal(SignalKind::interrupt()).ok();
    drop(entered);
    (own, signal)
}
