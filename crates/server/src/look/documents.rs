//! Documents that the server has, by their names (S-03).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_dialects::compile;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostics, DocumentLimits};
use serde_json::{Map, Value, json};
use std::path::Path;

/// `GET /v1/documents`.
pub(crate) fn list(app: &App, _: &Call) -> Result<Reply, Problem> {
    let documents = app.documents()?;
    let all: Vec<Value> = documents.0.iter().map(|(name, file)| Value::Object(head(name, file))).collect();
    Ok(Reply::json(json!({"documents": all})))
}

/// `GET /v1/documents/{name}`.
pub(crate) fn one(app: &App, call: &Call) -> Result<Reply, Problem> {
    let name = call.part("name");
    let file = app.documents()?.file(name)?;
    let mut fields = head(name, &file);
    let text = std::fs::read_to_string(&file).ok();
    fields.insert("text".to_owned(), json!(text));
    Ok(Reply::json(Value::Object(fields)))
}

/// What a document says of itself; of one that is wrong only its name, as `check` tells the rest.
fn head(name: &str, file: &Path) -> Map<String, Value> {
    let limits = DocumentLimits::default();
    let read = selvedge_dialects::document::read_file(file, &limits)
        .ok()
        .and_then(|source| compile::read(&source, Choice::default(), &limits, &mut Diagnostics::new()));
    let head = read.as_ref().map(|document| document.head());
    let text = |text: Option<&str>| json!(text);
    let inputs = head.map(|head| {
        let inputs = head.inputs.iter().map(|input| {
            (
                input.name.value.to_string(),
                json!({
                    "type": input.kind.as_ref().map(|kind| kind.value.name()),
                    "description": input.description.as_ref().map(|text| &text.value),
                    "default": input.default.as_ref().map(|value| &value.value),
                    "required": input.default.is_none(),
                }),
            )
        });
        Value::Object(inputs.collect())
    });
    let fields = [
        ("name", json!(name)),
        ("file", json!(file.file_name().map(|file| file.to_string_lossy()))),
        ("dialect", json!(read.as_ref().map(|document| document.dialect().name()))),
        ("title", text(head.and_then(|head| Some(&*head.name.as_ref()?.value)))),
        ("description", text(head.and_then(|head| Some(&*head.description.as_ref()?.value)))),
        ("inputs", json!(inputs)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
