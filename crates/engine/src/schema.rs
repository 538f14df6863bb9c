//! JSON Schemas of tools and replies, compiled once per run (D-15, E-33).

use crate::ids::{LeafIx, NodeIx};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Compiled schemas, by what they belong to. A cache only: nothing of a run's state is in it.
#[derive(Default)]
pub(crate) struct Checks {
    compiled: Mutex<HashMap<Owner, Arc<Result<jsonschema::Validator, String>>>>,
}

/// Whose schema it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A version of a tool.
    Tool(Arc<str>),
    /// A leaf of a node.
    Reply(NodeIx, LeafIx),
}

impl Checks {
    /// What `value` violates, in words, or `None` if it fits `schema`.
    pub(crate) fn refusal(&self, owner: Owner, schema: &Value, value: &Value) -> Option<String> {
        let compiled = {
            let mut compiled = self.compiled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let entry = compiled.entry(owner).or_insert_with(|| {
                Arc::new(jsonschema::validator_for(schema).map_err(|error| error.to_string()))
            });
            Arc::clone(entry)
        };
        match compiled.as_ref() {
            Ok(validator) => violations(validator, value),
            Err(error) => Some(format!("its schema is not a valid JSON Schema: {error}")),
        }
    }
}

/// The first few violations, each with the place in the value.
fn violations(validator: &jsonschema::Validator, value: &Value) -> Option<String> {
    const SHOWN: usize = 3;
    let errors: Vec<String> = validator
        .iter_errors(value)
        .take(SHOWN)
        .map(|error| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        })
        .collect();
    (!errors.is_empty()).then(|| errors.join("; "))
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checks")
    }
}
