//! What operations are given.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A call of a tool, and what became of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Call {
    /// Its id.
    pub(super) id: Arc<str>,
    /// The name that the model called.
    pub(super) tool: Arc<str>,
    /// The version that was called.
    #[serde(default)]
    pub(super) version: Arc<str>,
    /// What it was given.
    #[serde(default)]
    pub(super) arguments: Value,
    /// What it gave: all of it, and not what stands for it in a thread.
    #[serde(default, deserialize_with = "present")]
    pub(super) output: Option<Value>,
    /// How it failed.
    #[serde(default)]
    pub(super) error: Option<CallError>,
}

/// How a call failed: a kind of E-16, or a type of A-21.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CallError {
    /// The kind or the type.
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    /// What was said.
    #[serde(default)]
    pub(super) message: String,
}

/// What [`super::calls`] has found.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Looked {
    /// Ids of calls whose class a model was asked for.
    #[serde(default)]
    pub(super) ask: Vec<Arc<str>>,
    /// Ids of calls that failed.
    #[serde(default)]
    pub(super) failed: Vec<Arc<str>>,
    /// Ids of calls that the schema refused.
    #[serde(default)]
    pub(super) misused: Vec<Arc<str>>,
}

/// What models said, by the index of the question: an object, or a list. What one of them could not say, or said in another shape, is
/// nothing, whatever the others said.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Verdicts(Value);

impl Verdicts {
    /// What was said of the question of this index.
    pub(super) fn get<T: serde::de::DeserializeOwned>(&self, index: usize) -> Option<T> {
        let said = self.0.get(index).or_else(|| self.0.get(index.to_string()))?;
        serde_json::from_value(said.clone()).ok()
    }
}

/// The class of a call.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Class {
    /// `Success`, `Input Error` or `Execution Failure`.
    #[serde(default)]
    pub(super) class: String,
    /// Why.
    #[serde(default)]
    pub(super) reason: String,
}

/// Whether two outputs are as good as each other.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Equal {
    /// Whether they are.
    #[serde(default)]
    pub(super) equal: bool,
    /// Why.
    #[serde(default)]
    pub(super) reason: String,
}

/// A field that is there, even if it is null.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Arguments as they are kept: an object.
pub(super) fn object(arguments: &Value) -> Value {
    if arguments.is_object() { arguments.clone() } else { Value::Object(Map::new()) }
}
