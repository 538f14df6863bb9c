//! A question that any JSON value answers, or one that fits its schema.

use super::{Questions, Word};
use crate::asks;
use selvedge_engine::{Asking, State, answered};
use serde_json::Value;

impl Questions<'_> {
    pub(super) async fn answer(&mut self, state: &State, ask: &Asking) -> Word {
        self.head("answer", &asks::prompt(state, ask));
        if let Some(value) = &ask.value {
            self.value(value, false);
        }
        if let Some(takes) = asks::takes(state, ask) {
            self.told(&takes);
        }
        let shows = if ask.value.is_some() { ", show" } else { "" };
        let prompt = format!("  JSON or a text, @FILE{shows}, or Enter to leave it open: ");
        loop {
            let Some(line) = self.line(&prompt).await else { return Word::Gone };
            let said = match (line.trim(), &ask.value) {
                ("", _) => return Word::Later,
                ("show", Some(value)) => {
                    self.value(value, true);
                    continue;
                }
                // What stdin holds are the lines typed here.
                ("-", _) => Err("a file is named as @FILE".to_owned()),
                (said, _) => asks::read_text(said)
                    .and_then(|text| asks::answer_of(&text))
                    .and_then(|value| self.fitting(state, ask, value)),
            };
            match said {
                Ok(value) => return Word::Answer(value),
                Err(why) => self.told(&why),
            }
        }
    }

    /// The answer as it is recorded, if the ask can take it; one that does not fit is asked for again, with why.
    pub(super) fn fitting(&self, state: &State, ask: &Asking, value: Value) -> Result<Value, String> {
        if let Some(why) = state.answer_misfit(ask, &value) {
            return Err(format!("that can't be the answer: {why}"));
        }
        self.kept(&value.to_string(), answered(value, None, None))
    }
}
