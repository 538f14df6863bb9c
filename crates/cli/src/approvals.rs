//! Approvals on the terminal at which a run is driven, once nothing else of it can go on (C-13, E-21).

use crate::asks;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::{AskKind, Asking, Input, State, reasoned};
use selvedge_host::text::one_line;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Characters of a reason.
const REASON: usize = 4_000;

/// What a person said to a question.
enum Word {
    Answer(Value),
    /// It stays open.
    Later,
    /// Nobody answers any more: the terminal is closed, or the run was interrupted.
    Gone,
}

/// The questions of one process.
pub(crate) struct Approvals<'a> {
    ui: &'a Ui,
    signals: &'a Signals,
    /// Those that were left open: nobody is asked twice.
    left: HashSet<Arc<str>>,
    /// The line that is being read. A read can't be called off: the next question takes it up where a word from elsewhere
    /// came first (E-43).
    reading: Option<oneshot::Receiver<Option<String>>>,
}

impl<'a> Approvals<'a> {
    pub(crate) fn new(ui: &'a Ui, signals: &'a Signals) -> Self {
        Self { ui, signals, left: HashSet::new(), reading: None }
    }

    /// The question was answered elsewhere, or asked no more, while it stood there.
    pub(crate) fn cut_short(&self) {
        self.ui.error_text("\n");
    }

    /// Whether there is something to ask about.
    pub(crate) fn any(&self, state: &State) -> bool {
        self.ui.may_ask && self.open(state).next().is_some()
    }

    fn open<'s>(&'s self, state: &'s State) -> impl Iterator<Item = (&'s Arc<str>, &'s Asking)> {
        let open =
            |(id, ask): &(&Arc<str>, &Asking)| ask.kind == AskKind::Approve && !self.left.contains(*id);
        state.asks().iter().filter(open)
    }

    /// Asks all that is open; what was answered, which the run goes on with together.
    pub(crate) async fn ask(&mut self, state: &State) -> Vec<Input> {
        let open: Vec<(Arc<str>, Asking)> =
            self.open(state).map(|(id, ask)| (Arc::clone(id), ask.clone())).collect();
        let mut answers = Vec::new();
        for (id, ask) in open {
            match self.one(state, &ask).await {
                Word::Answer(value) => answers.push(Input::Answer(id, value)),
                Word::Later => drop(self.left.insert(id)),
                Word::Gone => {
                    self.left.extend(state.asks().keys().cloned());
                    return Vec::new();
                }
            }
        }
        answers
    }

    async fn one(&mut self, state: &State, ask: &Asking) -> Word {
        let ui = self.ui;
        let doubted = state.doubted_call(ask);
        let words = if doubted.is_some() { "y, n, done [JSON]" } else { "y, n" };
        let prompt = one_line(&asks::prompt(state, ask), asks::LINE);
        ui.error_text(&format!("\n{} {prompt}\n", ui.paint("1;35", "approve")));
        loop {
            ui.error_text(&format!(
                "  {words}, show, or Enter to leave it open; a reason may follow y or n: "
            ));
            let Some(line) = self.line().await else {
                ui.error_text("\n");
                return Word::Gone;
            };
            let line = line.trim();
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let rest = rest.trim();
            let said = match (word.to_ascii_lowercase().as_str(), &doubted) {
                ("", _) => return Word::Later,
                ("y" | "yes", _) => self.reasoned("yes", rest),
                ("n" | "no", _) => self.reasoned("no", rest),
                ("done", Some(call)) => {
                    let output = Some(rest).filter(|rest| !rest.is_empty());
                    asks::happened(state, &call.name, output, |json| format!("done {json}"))
                        .map_err(|unfit| format!("{}; {}", unfit.why, unfit.help))
                        .and_then(|value| self.kept(rest, value))
                }
                ("s" | "show", _) => {
                    ui.error_lines(&asks::whole(state, ask));
                    continue;
                }
                _ => Err(format!("{:?} is none of them", one_line(word, 40))),
            };
            match said {
                Ok(value) => return Word::Answer(value),
                Err(why) => ui.error_text(&format!("  {why}\n")),
            }
        }
    }

    fn reasoned(&self, word: &str, why: &str) -> Result<Value, String> {
        let why: String = why.chars().take(REASON).collect();
        self.kept(
            &why,
            reasoned(Value::from(word), None, Some(&why).filter(|why| !why.is_empty()).map(String::as_str)),
        )
    }

    /// An answer is recorded: it holds no key (C-06).
    fn kept(&self, text: &str, value: Value) -> Result<Value, String> {
        match *self.ui.redacted(text) == *text {
            true => Ok(value),
            false => Err("that holds a key, which must not be recorded".to_owned()),
        }
    }

    /// A line from the terminal; `None` if nobody answers any more. What was typed before the question is no answer to it.
    async fn line(&mut self) -> Option<String> {
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
            () = self.signals.came() => return None,
            read = line => read.ok().flatten(),
        };
        self.reading = None;
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
