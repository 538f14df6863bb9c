//! Which calls say something about a tool that is not proven.

use super::beside;
use super::given::Call;
use super::place::Task;
use super::texts::{cut, value};
use crate::library::is_empty;
use crate::library::operations::Undone;
use selvedge_engine::library::{Library, Place, Stage};
use selvedge_store::BlobHash;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The most that a question says of each of its parts, in bytes.
const PART: usize = 8 << 10;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    calls: Vec<Call>,
}

/// What became of a call, as far as it says so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    /// It gave something.
    Output,
    /// The tool failed.
    Failed,
    /// A site refused a request: a model says whether the tool failed.
    Refused,
    /// The schema refused the arguments.
    Misused,
    /// Something else that says nothing about the tool: a limit, a permission, an interrupt.
    Other,
}

impl Call {
    /// What became of it.
    pub(super) fn became(&self) -> Became {
        let Some(error) = &self.error else {
            return match &self.output {
                Some(output) if is_empty(output) => Became::Failed,
                Some(_) => Became::Output,
                None => Became::Other,
            };
        };
        match error.kind.as_str() {
            "timeout" | "tool_execution_timeout" => Became::Failed,
            "execution_failure"
            | "subprocess_execution_error"
            | "parsing_tool_error"
            | "tool_execution_error" => {
                if is_refusal(&error.message) {
                    Became::Refused
                } else {
                    Became::Failed
                }
            }
            "input_error" => Became::Misused,
            _ => Became::Other,
        }
    }

    /// Whether it ran out of time.
    pub(super) fn ran_out(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind.contains("timeout"))
    }
}

/// Whether an error is what a site answered to a request: `HTTP Error 403: Forbidden`, `404 Client Error: Not Found for url: …`.
fn is_refusal(message: &str) -> bool {
    let status = |word: &str| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        digits.len() == 3
            && digits.starts_with(['4', '5'])
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let words: Vec<&str> = message.split_whitespace().collect();
    let named = |at: usize, near: &[&str]| {
        let word = |at: usize| words.get(at).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let around = [at.checked_sub(2), at.checked_sub(1), at.checked_add(1), at.checked_add(2)];
        around.into_iter().flatten().map(word).any(|word| near.iter().any(|near| word.contains(near)))
    };
    words
        .iter()
        .enumerate()
        .any(|(at, word)| status(word) && named(at, &["http", "client", "server", "status"]))
}

/// Looks at what became of calls.
pub(super) async fn calls(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { mut calls } = task.given()?;
    // Only files have their content's hash for a version: of others the library knows nothing, and is not asked.
    calls.retain(|call| call.version.parse::<BlobHash>().is_ok());
    if calls.is_empty() {
        return Ok(looked(&Library::default(), &task, &[]));
    }
    let looking = Arc::clone(&task);
    beside(move || looking.look(|library| looked(library, &looking, &calls))).await
}

fn looked(library: &Library, task: &Task, calls: &[Call]) -> Value {
    let (mut ask, mut failed, mut misused, mut keep) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for call in calls {
        // Others' tools are not the library's to mend.
        let Some(version) = library.version(&call.version) else { continue };
        let life = version.lives.get(&task.place());
        let public = version.stage(&Place::Library) == Some(Stage::Public);
        let proven = public || life.is_some_and(|life| life.proven);
        match call.became() {
            Became::Failed => failed.push(Arc::clone(&call.id)),
            Became::Misused => misused.push(Arc::clone(&call.id)),
            Became::Output if proven => keep.push(Arc::clone(&call.id)),
            Became::Output | Became::Refused => {
                let about =
                    version.facts.as_ref().map(|facts| Arc::clone(&facts.description)).unwrap_or_default();
                let question = question(call, &about);
                ask.push(json!({"id": call.id, "tool": call.tool, "question": question}));
            }
            Became::Other => {}
        }
    }
    json!({"ask": ask, "failed": failed, "misused": misused, "keep": keep})
}

/// What a model is told of a call whose class it says.
fn question(call: &Call, description: &str) -> String {
    let came = match (&call.error, &call.output) {
        (Some(error), _) => format!("It failed with {}:\n{}", error.kind, cut(&error.message, PART)),
        (None, output) => format!("Its output:\n{}", value(output.as_ref().unwrap_or(&Value::Null), PART)),
    };
    format!(
        "The tool `{}`: {}\n\nIts arguments:\n{}\n\n{came}",
        call.tool,
        cut(description, PART),
        value(&call.arguments, PART)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(error: Option<(&str, &str)>, output: Option<Value>) -> Call {
        let error = error.map(|(kind, message)| json!({"type": kind, "message": message}));
        let mut call = json!({"id": "1", "tool": "t", "version": "v", "arguments": {}});
        let fields = call.as_object_mut().unwrap();
        fields.extend(error.map(|error| ("error".to_owned(), error)));
        fields.extend(output.map(|output| ("output".to_owned(), output)));
        serde_json::from_value(call).unwrap()
    }

    /// what is clear is not asked about.
    #[test]
    fn a14_what_became_of_a_call_is_read_off_it() {
        for (kind, message, became) in [
            ("execution_failure", "ValueError: day is out of range for month", Became::Failed),
            ("subprocess_execution_error", "ended with exit code 1", Became::Failed),
            ("tool_execution_timeout", "took longer", Became::Failed),
            ("timeout", "HTTP Error 504", Became::Failed),
            ("execution_failure", "urllib.error.HTTPError: HTTP Error 403: Forbidden", Became::Refused),
            ("tool_execution_error", "HTTPError: 404 Client Error: Not Found for url", Became::Refused),
            ("execution_failure", "row 404 of the table is no number", Became::Failed),
            ("input_error", "`x` is required", Became::Misused),
            ("denied", "no", Became::Other),
            ("cancelled", "no", Became::Other),
        ] {
            assert_eq!(call(Some((kind, message)), None).became(), became, "{kind} {message}");
        }
        for empty in [json!(null), json!(""), json!(" \n"), json!([]), json!({})] {
            assert_eq!(call(None, Some(empty.clone())).became(), Became::Failed, "{empty}");
        }
        for output in [json!(0), json!(false), json!({"rows": []}), json!("x")] {
            assert_eq!(call(None, Some(output)).became(), Became::Output);
        }
        assert_eq!(call(None, None).became(), Became::Other);
    }
}
