//! Yes or no, and of a call in doubt that it happened.

use super::{Questions, Word};
use crate::asks;
use selvedge_engine::{Asking, State, reasoned};
use selvedge_host::text::one_line;
use serde_json::Value;

/// Characters of a reason.
const REASON: usize = 4_000;

impl Questions<'_> {
    pub(super) async fn approval(&mut self, state: &State, ask: &Asking) -> Word {
        let doubted = state.doubted_call(ask);
        let words = if doubted.is_some() { "y, n, done [JSON]" } else { "y, n" };
        self.head("approve", &asks::prompt(state, ask));
        if let Some(value) = &ask.value {
            self.value(value, false);
        }
        let prompt = format!("  {words}, show, or Enter to leave it open; a reason may follow y or n: ");
        loop {
            let Some(line) = self.line(&prompt).await else { return Word::Gone };
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
                    match &ask.value {
                        Some(value) => self.value(value, true),
                        None => self.ui.error_lines(&asks::whole(state, ask)),
                    }
                    continue;
                }
                _ => Err(format!("{:?} is none of them", one_line(word, 40))),
            };
            match said {
                Ok(value) => return Word::Answer(value),
                Err(why) => self.told(&why),
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
}
