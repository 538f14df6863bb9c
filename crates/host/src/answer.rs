//! What a person says to an open ask, as the input that the run takes (E-21, C-13).

use crate::asks::{self, ask_kind};
use crate::error::Error;
use crate::report::Said;
use crate::text::quoted;
use crate::timeline::Followed;
use crate::ways::{Output, WayOut};
use selvedge_engine::{AskKind, Asking, Input, RunStatus, State, answered, reasoned};
use serde_json::Value;
use std::sync::Arc;

/// What a person says, and to which ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The ask's id, or the node that asks ([`asks::called`]); without it the only one that is open.
    pub ask: Option<String>,
    /// To an approval `yes`, `no`, or `done` for a call in doubt; to any other question JSON, or a text if it is none.
    pub said: String,
    /// With `done`: what came back from the call, as JSON; without it null.
    pub output: Option<String>,
    /// Who answers, for the record.
    pub by: Option<String>,
    /// Why, for the record.
    pub why: Option<String>,
}

impl Answer {
    /// This answer to the only ask that is open.
    pub fn new(said: impl Into<String>) -> Self {
        Self { said: said.into(), ..Self::default() }
    }

    /// All that somebody wrote.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let more = [&self.output, &self.by, &self.why].into_iter().filter_map(|text| text.as_deref());
        std::iter::once(self.said.as_str()).chain(more)
    }

    /// What a run is told by it: nothing but the answer, or that it goes on first, as it has failed of a no.
    ///
    /// # Errors
    /// No such ask is open, several are and none is named, or the answer does not fit. The ask stays open.
    pub fn inputs(&self, run: &str, state: &State) -> Result<Vec<Input>, Error> {
        if let Some((ask, declined)) =
            state.declined().filter(|(ask, _)| self.ask.as_deref().is_none_or(|named| *named == ***ask))
        {
            // The run has failed of a no, which is taken back.
            return match self.to_doubted(run, ask, &declined.call.name, state)? {
                value if value == "no" => Err(self.said_before(run, ask)),
                value => {
                    Ok(vec![Input::Resume(Vec::new()), Input::Answer(ask.clone(), self.reasoned(value))])
                }
            };
        }
        let ask = self.open_ask(run, state)?;
        let Some(asking) = state.asks().get(&ask) else { return Err(no_such_ask(&ask, run, state)) };
        let called = asks::called(state, &ask);
        let value = match (asking.kind, state.doubted_call(asking)) {
            (AskKind::Approve, Some(call)) => self.to_doubted(run, &called, &call.name, state)?,
            (AskKind::Approve, None) => self.to_approval(run, &called)?,
            _ if self.output.is_some() => return Err(self.no_output()),
            _ => return Ok(vec![Input::Answer(ask.clone(), self.to_question(&called, asking, state)?)]),
        };
        Ok(vec![Input::Answer(ask, self.reasoned(value))])
    }

    /// Whether the same was answered to the question that is named, which is closed (S-07).
    pub fn repeats(&self, run: &Followed) -> bool {
        let Some(named) = self.ask.as_deref() else { return false };
        let Ok(own) = asks::answer_of(&self.said) else { return false };
        let output = self.output.as_deref().and_then(|output| serde_json::from_str::<Value>(output).ok());
        let output = output.filter(|value| !value.is_null());
        let mut all = run.timeline.nodes().iter().flat_map(|node| &node.answers);
        let meant = |ask: &str| ask == named || asks::called(&run.state, ask) == named;
        let last = all.rfind(|said| meant(&said.ask));
        last.is_some_and(|said| {
            let said = Said::new(&said.ask, &said.value);
            let (word, came_back) = said.said();
            word == own && came_back.filter(|value| !value.is_null()) == output.as_ref()
        })
    }

    /// With who answers and why, if that is said.
    fn reasoned(&self, value: Value) -> Value {
        reasoned(value, self.by.as_deref(), self.why.as_deref())
    }

    /// The id of the ask that is meant.
    fn open_ask(&self, run: &str, state: &State) -> Result<Arc<str>, Error> {
        let mut open = state.asks().keys().filter(|_| state.ended().is_none());
        match (self.ask.as_deref(), open.next(), open.next()) {
            (Some(named), ..) => {
                let found = asks::open(state, named).filter(|_| state.ended().is_none());
                found.cloned().ok_or_else(|| no_such_ask(named, run, state))
            }
            (None, Some(only), None) if **only == self.said => {
                let message =
                    format!("the ask {} is there, and the answer is missing", asks::called(state, only));
                Err(Error::usage("C-13", "bad-answer", &message).help(&asks::answers(state, run, only)))
            }
            (None, Some(only), None) => Ok(only.clone()),
            (None, None, _) => Err(no_such_ask("", run, state)),
            (None, Some(_), Some(_)) => {
                let message =
                    format!("run {run} has {} open asks: say which one is answered", state.asks().len());
                let open = state.asks().keys().map(|id| asks::answers(state, run, id));
                Err(Error::usage("C-13", "which-ask", &message).help(&open.collect::<Vec<_>>().join(", or ")))
            }
        }
    }

    /// Yes or no.
    fn to_approval(&self, run: &str, ask: &str) -> Result<Value, Error> {
        let yes_or_no = WayOut::Answer { run, ask, said: "yes|no", output: Output::None };
        match self.said.trim().to_ascii_lowercase().as_str() {
            answer @ ("yes" | "no") if self.output.is_none() => Ok(Value::from(answer)),
            "yes" | "no" => Err(self.no_output()),
            "done" => {
                let message = format!(
                    "the ask {ask} wants yes or no: only of a call of which nobody knows whether it happened can \
                     somebody say that it is done"
                );
                Err(Error::usage("C-13", "bad-answer", &message).help(&yes_or_no.to_string()))
            }
            _ => {
                let message = format!("the ask {ask} wants yes or no, not {:?}", self.said);
                Err(Error::usage("C-13", "bad-answer", &message).help(&yes_or_no.to_string()))
            }
        }
    }

    /// What a question is answered with: JSON if it is some, else a text (C-13). One that does not fit is refused, and the ask stays open.
    fn to_question(&self, ask: &str, asking: &Asking, state: &State) -> Result<Value, Error> {
        let value = asks::answer_of(&self.said).map_err(|why| {
            Error::usage("C-13", "bad-answer", &format!("the ask {ask} can't take this answer: {why}"))
                .help("the ask stays open; an answer is JSON, or a text as it is")
        })?;
        if let Some(why) = state.answer_misfit(asking, &value) {
            let message = format!("the ask {ask} can't take this answer: {why}");
            let help = "the ask stays open; an answer is JSON, or a text as it is";
            return Err(Error::usage("C-13", "bad-answer", &message).help(help));
        }
        Ok(answered(value, self.by.as_deref(), self.why.as_deref()))
    }

    /// Yes, no, or that it happened with what came back.
    fn to_doubted(&self, run: &str, ask: &str, tool: &str, state: &State) -> Result<Value, Error> {
        match self.said.trim().to_ascii_lowercase().as_str() {
            answer @ ("yes" | "no") if self.output.is_none() => Ok(Value::from(answer)),
            "yes" | "no" => Err(self.no_output()),
            "done" => self.happened(run, ask, tool, state),
            _ => {
                let message = format!("the ask {ask} wants yes, no or done, not {:?}", self.said);
                let help = WayOut::Answer { run, ask, said: "yes|no|done", output: Output::None };
                Err(Error::usage("C-13", "bad-answer", &message).help(&help.to_string()))
            }
        }
    }

    fn happened(&self, run: &str, ask: &str, tool: &str, state: &State) -> Result<Value, Error> {
        let done = |output: Output<'_>| WayOut::Answer { run, ask, said: "done", output }.to_string();
        let typed = |json: &str| done(Output::Json(json));
        // Other options take a file so, and this one what it holds.
        let file = self
            .output
            .as_deref()
            .and_then(|output| output.strip_prefix('@'))
            .filter(|file| !file.is_empty());
        asks::happened(state, tool, self.output.as_deref(), typed).map_err(|unfit| {
            let failure = Error::usage("C-13", "bad-output", &unfit.why);
            match file {
                None => failure.help(&unfit.help),
                Some(file) => failure.help(&format!(
                    "--output takes the JSON itself, {} for example; what a file holds: {}",
                    quoted("{\"id\": 7}"),
                    done(Output::OfFile(file))
                )),
            }
        })
    }

    fn no_output(&self) -> Error {
        let message =
            format!("--output is what came back from a call that is done, and the answer is {:?}", self.said);
        Error::usage("C-13", "bad-output", &message).help("leave it out, or answer done")
    }

    fn said_before(&self, run: &str, ask: &str) -> Error {
        let message = format!("the question {ask} was answered: no, and run {run} has failed of it");
        Error::usage("S-07", "ask-answered", &message).help(&asks::ways_in_line(run, ask))
    }
}

/// There is no such ask, or none at all if `ask` is empty: what there is to do.
pub fn no_such_ask(ask: &str, run: &str, state: &State) -> Error {
    let named = if ask.is_empty() { String::new() } else { format!(" {ask:?}") };
    let message = format!("run {run} has no open ask{named}");
    let open: Vec<String> = match state.ended() {
        Some(_) => Vec::new(),
        None => state
            .asks()
            .iter()
            .map(|(id, ask)| format!("{} ({})", asks::called(state, id), ask_kind(ask.kind)))
            .collect(),
    };
    let help = match open.is_empty() {
        true => match state.status() {
            RunStatus::Completed | RunStatus::Cancelled => {
                format!("the run has ended: {}", WayOut::Show { run, at: None })
            }
            RunStatus::Failed => {
                format!("the run has failed, and waits for nobody: {} goes on with it", WayOut::Resume(run))
            }
            // Its process has ended before it asked, or before it went on with the answer.
            _ => format!("it waits for nobody now: {} goes on with it", WayOut::Resume(run)),
        },
        false => format!("its open asks are: {}", open.join(", ")),
    };
    Error::usage("C-13", "unknown-ask", &message).help(&help)
}
