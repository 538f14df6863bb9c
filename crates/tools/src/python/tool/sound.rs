//! Whether what a Python tool says of its input and of its outputs is JSON Schema (A-08, E-45): looked at once for each
//! content, as its schema is asked for.

use super::PythonTool;
use crate::diag::{ToolError, shown};
use selvedge_engine::Outputs;
use selvedge_engine::schema::{STEPS, Schema, Unusable};
use serde_json::Value;

/// What is wrong, and the text with which the line begins where that is written.
type Wrong = (String, &'static [&'static str]);

impl PythonTool {
    /// Whether a run has pinned this version: it stays what it was, and calls that can't be checked are refused one by one.
    pub(super) fn is_pinned(&self) -> bool {
        self.source == self.copy()
    }

    /// The schema that the file has said, if that is one, and what is said of outputs too.
    ///
    /// # Errors
    /// One is none: an error of the file, with the place in the schema.
    pub(super) async fn sound(&self, schema: Value) -> Result<Value, ToolError> {
        if self.is_pinned() {
            return Ok(schema);
        }
        let outputs = self.meta.output_params.clone();
        // A schema may take a while, which nobody else is to wait for.
        let looking =
            tokio::task::spawn_blocking(move || looked(&schema, outputs.as_ref()).map_or(Ok(schema), Err));
        let looked = looking.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let (message, begins) = match looked {
            Ok(schema) => return Ok(schema),
            Err(wrong) => wrong,
        };
        let text = tokio::fs::read(self.copy()).await.unwrap_or_default();
        let message = format!("the tool `{}`: {message}", self.meta.name);
        let error = ToolError::document("A-08", message).at(&self.source, line_of(&text, begins));
        Err(error.showing(&text).help("correct it in the file"))
    }
}

fn looked(input: &Value, outputs: Option<&Outputs>) -> Option<Wrong> {
    if let Some(why) = wrong(input) {
        return Some((
            format!("the schema of its InputModel is no valid JSON Schema: {why}"),
            &["class InputModel"],
        ));
    }
    let outputs = outputs?;
    let field = outputs.names().iter().find_map(|name| Some((name, wrong(outputs.schema(name)?)?)));
    let (name, why) = field?;
    let message = format!("what `output_params` says of `{}` is no valid JSON Schema: {why}", shown(name));
    Some((message, &["\"output_params\"", "'output_params'"]))
}

/// Why a schema is none. One that is beyond a limit is told of by who uses it.
fn wrong(schema: &Value) -> Option<String> {
    match Schema::new(schema, STEPS) {
        Err(Unusable::Invalid { message, place, .. }) if place.is_empty() => Some(message),
        Err(Unusable::Invalid { message, place, .. }) => Some(format!("{message} (at {})", shown(&place))),
        Err(Unusable::OverLimit(_)) | Ok(_) => None,
    }
}

/// The first line that begins with one of these.
fn line_of(text: &[u8], begins: &[&str]) -> Option<u32> {
    let text = String::from_utf8_lossy(text);
    let at = text.lines().position(|line| begins.iter().any(|begin| line.trim_start().starts_with(begin)))?;
    u32::try_from(at + 1).ok()
}
