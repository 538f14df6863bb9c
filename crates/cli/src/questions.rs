//! Questions on the terminal at which a run is driven, once nothing else of it can go on (C-13, C-32, E-21).
//!
//! `approve`, `answer` and `edit` say what each kind shows and takes; what is read and who may interrupt it is here.

mod answer;
mod approve;
mod edit;

use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::{AskKind, Asking, Input, State, shown_at};
use selvedge_host::text::one_line;
use selvedge_runtime::{Clock, SystemClock};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Lines of a value that are shown with its question; `show` has all of it.
const LINES: usize = 20;

/// What a person said to a question.
enum Word {
    Answer(Value),
    /// It stays open.
    Later,
    /// Nobody answers any more: the terminal is closed, or the run was interrupted.
    Gone,
}

/// What came of asking.
pub(crate) enum Reply {
    /// An answer to an open question.
    Answer(Input),
    /// A timer of the run is due, which goes first (E-37), or somebody said something elsewhere (E-43).
    Elsewhere,
    /// All that is open stays so.
    None,
}

/// The questions of one process.
pub(crate) struct Questions<'a> {
    ui: &'a Ui,
    signals: &'a Signals,
    /// Those that were left open: nobody is asked twice.
    left: HashSet<Arc<str>>,
    /// The line that is being read. A read can't be called off: the next question takes it up where a word from elsewhere
    /// came first (E-43).
    reading: Option<oneshot::Receiver<Option<String>>>,
    /// Whether another question was shown before, since the run went on.
    has_shown: bool,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(ui: &'a Ui, signals: &'a Signals) -> Self {
        Self { ui, signals, left: HashSet::new(), reading: None, has_shown: false }
    }

    /// The run has just stopped to ask.
    pub(crate) fn begin(&mut self) {
        self.has_shown = false;
    }

    /// The question was answered elsewhere, or is asked no more, while it stood there.
    pub(crate) fn cut_short(&self) {
        self.ui.error_text("\n");
    }

    /// Whether there is something to ask about.
    pub(crate) fn any(&self, state: &State) -> bool {
        self.ui.may_ask && self.open(state).next().is_some()
    }

    fn open<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (&'s Arc<str>, &'s Asking)> {
        state.asks().iter().filter(|(id, _)| !self.left.contains(*id))
    }

    /// Asks what is open, one question after another, until one is answered.
    pub(crate) async fn ask(&mut self, state: &State) -> Reply {
        let _asking = self.signals.only_asking();
        let due = state.timers().values().map(|wait| wait.left_ms(SystemClock.now_ms())).min();
        let due = async move {
            match due {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms.saturating_add(1))).await,
                None => std::future::pending().await,
            }
        };
        let open: Vec<(Arc<str>, Asking)> =
            self.open(state).map(|(id, ask)| (Arc::clone(id), ask.clone())).collect();
        let all = async {
            for (id, ask) in open {
                let shown = self.has_shown.then(|| SystemClock.now_ms());
                self.has_shown = true;
                match self.one(state, &ask).await {
                    Word::Answer(value) => {
                        let value = match shown {
                            Some(at) => shown_at(value, at),
                            None => value,
                        };
                        return Reply::Answer(Input::Answer(id, value));
                    }
                    Word::Later => drop(self.left.insert(id)),
                    Word::Gone => {
                        self.left.extend(state.asks().keys().cloned());
                        break;
                    }
                }
            }
            Reply::None
        };
        tokio::select! {
            biased;
            reply = all => reply,
            () = due => Reply::Elsewhere,
        }
    }

    async fn one(&mut self, state: &State, ask: &Asking) -> Word {
        match ask.kind {
            AskKind::Approve => self.approval(state, ask).await,
            AskKind::Answer => self.answer(state, ask).await,
            AskKind::Edit => self.edit(state, ask).await,
        }
    }

    /// The heading of a question: its first line beside the kind, the others below it.
    fn head(&self, kind: &str, prompt: &str) {
        let mut shown: String = prompt.chars().take(crate::asks::LINE).collect();
        if shown.len() < prompt.len() {
            shown.push('…');
        }
        let mut lines = shown.trim_end().lines().map(|line| one_line(line, usize::MAX));
        let first = lines.next().unwrap_or_default();
        let more: String = lines.map(|line| format!("  | {line}\n")).collect();
        self.ui.error_text(&format!("\n{} {first}\n", self.ui.paint("1;35", kind)));
        self.ui.error_lines(&more);
    }

    /// The first lines of a value, or all of them.
    fn value(&self, value: &Value, all: bool) {
        let text = crate::output::plain(value);
        let count = text.lines().count();
        let most = if all { count } else { LINES };
        let lines = text.lines().take(most);
        let shown: String = lines.map(|line| format!("  | {}\n", one_line(line, usize::MAX))).collect();
        self.ui.error_lines(&shown);
        if count > most {
            self.ui.error_text(&format!("  … {} more lines: show\n", count - most));
        }
    }

    fn told(&self, why: &str) {
        self.ui.error_text(&format!("  {why}\n"));
    }

    /// An answer is recorded: it holds no key (C-06).
    fn kept(&self, text: &str, value: Value) -> Result<Value, String> {
        match *self.ui.redacted(text) == *text {
            true => Ok(value),
            false => Err("that holds a key, which must not be recorded".to_owned()),
        }
    }

    /// A line from the terminal; `None` if nobody answers any more. What was typed before the question is no answer to it.
    async fn line(&mut self, prompt: &str) -> Option<String> {
        self.ui.error_text(prompt);
        #[cfg(unix)]
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        let unread = self.reading.take().filter(|line| line.is_empty());
        let line = match unread {
            Some(line) => line,
            None => read_line()?,
        };
        // It stays here, should this be dropped.
        let line = self.reading.insert(line);
        let read = tokio::select! {
            biased;
            () = self.signals.came() => None,
            read = line => {
                let read = read.ok().flatten();
                self.reading = None;
                read
            }
        };
        if read.is_none() {
            self.ui.error_text("\n");
        }
        read
    }
}

/// Reads a line on a thread of its own: an interrupt does not wait for it, nor does the end of the process.
fn read_line() -> Option<oneshot::Receiver<Option<String>>> {
    let (tell, heard) = oneshot::channel();
    let reader = std::thread::Builder::new().name("answer".into()).spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = tell.send(matches!(read, Ok(count) if count > 0).then_some(line));
    });
    reader.ok().map(|_| heard)
}
