//! Schemas of a run's tools and replies, each compiled once.

use super::metered::taken;
use super::{Schema, Unusable};
use crate::graph::Graph;
use crate::ids::{LeafIx, NodeIx};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A schema, or why it is none.
type Compiled = Arc<Result<Schema, Unusable>>;

/// Compiled schemas, by what they belong to. A cache only: nothing of a run's state is in it.
#[derive(Default)]
pub(crate) struct Checks {
    compiled: Mutex<HashMap<(Owner, Option<u64>), Compiled>>,
    taken: AtomicU64,
}

/// Whose schema it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A version of a tool.
    Tool(Arc<str>),
    /// A leaf of a node.
    Leaf(Same, NodeIx, LeafIx),
}

/// A graph, which is itself and none that says the same: its instances share what is compiled.
#[derive(Clone, Debug)]
pub(crate) struct Same(pub(crate) Arc<Graph>);

impl PartialEq for Same {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Same {}

impl Hash for Same {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.0).hash(hasher);
    }
}

/// Why a value is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// What it violates, in words.
    Violates(String),
    /// Nobody knows whether it does: a limit was reached first (E-45).
    OverLimit(String),
}

impl Refusal {
    /// The words.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Violates(text) | Self::OverLimit(text) => text,
        }
    }
}

impl Checks {
    /// Why `value` is not taken, or `None` if it fits `schema`. Without a number of steps it is what it was before there was
    /// one.
    pub(crate) fn refusal(
        &self,
        owner: Owner,
        schema: &Value,
        value: &Value,
        steps: Option<u64>,
    ) -> Option<Refusal> {
        const SHOWN: usize = 3;
        let compiled = self.compiled(owner, schema, steps);
        let before = taken();
        let found = compiled.as_ref().as_ref().map(|schema| schema.violations(value, SHOWN));
        self.taken.fetch_add(taken().wrapping_sub(before), Ordering::Relaxed);
        match found {
            Ok(Ok(violations)) => {
                let words: Vec<String> = violations.iter().map(ToString::to_string).collect();
                (!words.is_empty()).then(|| Refusal::Violates(words.join("; ")))
            }
            Ok(Err(excess)) => Some(Refusal::OverLimit(format!("to hold it against its schema {excess}"))),
            Err(error) => Some(error.refusal()),
        }
    }

    /// Why nothing can be held against `schema`, if that is so.
    pub(crate) fn unusable(&self, owner: Owner, schema: &Value, steps: Option<u64>) -> Option<Refusal> {
        self.compiled(owner, schema, steps).as_ref().as_ref().err().map(Unusable::refusal)
    }

    fn compiled(&self, owner: Owner, schema: &Value, steps: Option<u64>) -> Compiled {
        let mut compiled = self.compiled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let compile = || match steps {
            Some(steps) => Schema::new(schema, steps),
            None => Schema::before_limits(schema),
        };
        Arc::clone(compiled.entry((owner, steps)).or_insert_with(|| Arc::new(compile())))
    }
}

impl Unusable {
    fn refusal(&self) -> Refusal {
        match self {
            error @ Self::Invalid { .. } => {
                Refusal::Violates(format!("its schema is not a valid JSON Schema: {error}"))
            }
            Self::OverLimit(limit) => Refusal::OverLimit(format!("its schema can't be used: {limit}")),
        }
    }
}

impl Checks {
    /// The steps that all checks have taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checks")
    }
}
