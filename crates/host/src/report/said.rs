//! What people said to the questions of a run, with who said it and why (E-21).

use crate::error::Error;
use selvedge_engine::Event;
use selvedge_runtime::recorded;
use selvedge_store::Store;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// All that people said to a run until an event, in the order in which they said it, with the id of the ask.
///
/// # Errors
/// If its journal can't be read.
pub fn said(store: &Store, run: &str, until: u64) -> Result<Vec<Said>, Error> {
    let mut answers = Vec::new();
    for entry in store.journal(run, 1)?.until(until) {
        let entry = entry?;
        // Cheaper than reading each event.
        if entry.json.contains("\"answered\"")
            && let Ok(Event::Answered { ask, value }) = recorded(entry.json.as_bytes())
        {
            answers.push(Said::new(&ask, &value));
        }
    }
    Ok(answers)
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Said {
    ask: Arc<str>,
    value: Value,
}

impl Said {
    /// As it is recorded.
    pub fn new(ask: &Arc<str>, value: &Value) -> Self {
        Self { ask: Arc::clone(ask), value: value.clone() }
    }

    /// The ask's id.
    pub fn ask(&self) -> &str {
        &self.ask
    }

    /// The word or the text that was said, and what came back from a call that is done.
    pub(crate) fn said(&self) -> (Value, Option<&Value>) {
        let output = self.value.get("done");
        match (output, self.value.get("answer")) {
            (Some(_), _) => ("done".into(), output),
            (None, Some(answer)) => (answer.clone(), None),
            (None, None) => (self.value.clone(), None),
        }
    }

    fn reason(&self, field: &str) -> Option<&str> {
        self.value.get(field).and_then(Value::as_str)
    }

    /// C-15's object.
    pub fn json(&self) -> Value {
        let (said, output) = self.said();
        let more = [
            ("output", output.cloned()),
            ("by", self.reason("by").map(Value::from)),
            ("why", self.reason("why").map(Value::from)),
        ];
        let mut object = Map::from_iter([("ask".to_owned(), json!(self.ask)), ("answer".to_owned(), said)]);
        object.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(object)
    }

    /// The same in words: `yes, by Ann: it is right`.
    pub fn told(&self) -> String {
        let (said, output) = self.said();
        let mut text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
        if let Some(output) = output {
            text.push_str(&format!(", with {output}"));
        }
        if let Some(by) = self.reason("by") {
            text.push_str(&format!(", by {by}"));
        }
        if let Some(why) = self.reason("why") {
            text.push_str(&format!(": {why}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_word_with_who_and_why() {
        let told = |value: Value| {
            let answer = Said::new(&"n/approve".into(), &value);
            (answer.told(), answer.json())
        };
        for (value, text, json) in [
            (json!("yes"), "yes", json!({"ask": "n/approve", "answer": "yes"})),
            (json!("a text"), "a text", json!({"ask": "n/approve", "answer": "a text"})),
            (
                json!({"answer": "no", "by": "Ann", "why": "too early"}),
                "no, by Ann: too early",
                json!({"ask": "n/approve", "answer": "no", "by": "Ann", "why": "too early"}),
            ),
            (
                json!({"done": {"id": 7}, "why": "seen"}),
                "done, with {\"id\":7}: seen",
                json!({"ask": "n/approve", "answer": "done", "output": {"id": 7}, "why": "seen"}),
            ),
        ] {
            assert_eq!(told(value), (text.to_owned(), json));
        }
    }
}
