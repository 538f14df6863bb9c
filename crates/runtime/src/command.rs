//! Commands to a run while it is driven, and why they may be refused (E-43).

use selvedge_engine::{AskKind, Asking, Event, Input, PersonMessage, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What a person may say to a run at any moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// The answer to an open ask (E-21): `"yes"` or `"no"`, [`done`](selvedge_engine::done) of a call in doubt, and what
    /// [`answered`](selvedge_engine::answered) makes of an answer to any other question.
    Answer {
        /// The ask's id.
        ask: Arc<str>,
        /// What is journaled.
        value: Value,
    },
    /// Something that answers no question ([`State::message_refusal`]).
    Message(PersonMessage),
    /// The run is to end now (E-13).
    Cancel {},
}

/// Why a command was not taken: nothing of it is in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Refusal {
    /// Nobody is asked that, or somebody has answered already.
    #[error("the ask {ask} is not open")]
    NotOpen {
        /// The ask's id.
        ask: Arc<str>,
    },
    /// The ask stays open.
    #[error("that does not answer the ask {ask}: {misfit}")]
    Misfit {
        /// The ask's id.
        ask: Arc<str>,
        /// What does not fit.
        misfit: String,
    },
    /// Nobody takes such a message: [`State::message_refusal`] says why.
    #[error("nobody takes this message")]
    Untaken {},
    /// There is nothing left to say to it.
    #[error("the run has ended")]
    Ended,
    /// Its driver has stopped, or has died: the next one may be told.
    #[error("nobody drives the run any more")]
    NotDriven,
    /// It is no command.
    #[error("it is no command: {cause}")]
    Unreadable {
        /// Why not.
        cause: String,
    },
}

impl Command {
    /// Its text in the inbox.
    ///
    /// # Errors
    /// If it can't be written as JSON, which is a bug.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The command of a text that anybody may have written.
    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        serde_json::from_str(text).map_err(|error| Refusal::Unreadable { cause: error.to_string() })
    }

    /// The event that records it, unless the run as it stands has no use for it.
    pub(crate) fn accepted(self, state: &State) -> Result<Event, Refusal> {
        if state.ended().is_some() {
            return Err(Refusal::Ended);
        }
        match self {
            Self::Message(message) => state.accept(Input::PersonMessage(message)).ok_or(Refusal::Untaken {}),
            Self::Cancel {} => state.accept(Input::Cancel).ok_or(Refusal::Ended),
            Self::Answer { ask, value } => {
                let Some(asking) = state.asks().get(&ask) else { return Err(Refusal::NotOpen { ask }) };
                if let Some(misfit) = misfit(state, asking, &value) {
                    return Err(Refusal::Misfit { ask, misfit });
                }
                let event = state.accept(Input::Answer(Arc::clone(&ask), value));
                event.ok_or_else(|| Refusal::Misfit { ask, misfit: "it says more than an answer".into() })
            }
        }
    }
}

/// Why a value is no answer to an open ask. The engine takes any word but yes for a no; here a slip of the pen is none.
fn misfit(state: &State, asking: &Asking, value: &Value) -> Option<String> {
    let said = value.get("answer");
    match asking.kind {
        AskKind::Approve if value.get("done").is_some() => state
            .doubted_call(asking)
            .is_none()
            .then(|| "nobody doubts that its call has not happened: it takes yes or no".to_owned()),
        AskKind::Approve => match said.unwrap_or(value).as_str() {
            Some("yes" | "no") => None,
            _ => Some("it takes yes or no".to_owned()),
        },
        AskKind::Answer | AskKind::Edit => match said {
            Some(answer) => state.answer_misfit(asking, answer),
            None => Some("it says no `answer`".to_owned()),
        },
    }
}
