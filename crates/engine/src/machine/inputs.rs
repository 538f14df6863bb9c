//! What a frame is given, by name: the first data layer of its own.

use crate::effect::ToolDef;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

/// What the number of a path over a list, or of an iteration, is called within it.
pub(super) static INDEX: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("index"));

/// Definitions by name. Frames share them until one of them binds.
pub(crate) type Bindings = BTreeMap<Arc<str>, Arc<ToolDef>>;

/// What a frame is given. Paths over a list share it, and there may be thousands of those.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Sorted by name.
    Own(Box<[(Arc<str>, Value)]>),
    /// To each path one element of a list, and its number.
    Elements(Elements),
}

/// What the paths of a fork go over.
#[derive(Debug)]
pub(crate) struct Elements {
    /// What a path calls its element.
    name: Arc<str>,
    values: Vec<Value>,
    /// Their numbers, as values, once a path asks for one.
    numbers: OnceLock<Vec<Value>>,
}

impl Elements {
    fn number(&self, at: usize) -> Option<&Value> {
        let numbers = || (0..self.values.len()).map(Value::from).collect();
        self.numbers.get_or_init(numbers).get(at)
    }
}

impl Inputs {
    /// The last of several values of a name counts.
    pub(super) fn new(mut values: Vec<(Arc<str>, Value)>) -> Option<Arc<Self>> {
        values.reverse();
        values.sort_by(|(a, _), (b, _)| a.cmp(b));
        values.dedup_by(|(a, _), (b, _)| a == b);
        (!values.is_empty()).then(|| Arc::new(Self::Own(values.into())))
    }
    /// Those of all paths over a list.
    pub(super) fn elements(name: Arc<str>, values: Vec<Value>) -> Arc<Self> {
        Arc::new(Self::Elements(Elements { name, values, numbers: OnceLock::new() }))
    }
    /// The value of a name, in the frame that is this one of those that share them.
    pub(super) fn get(&self, name: &str, at: usize) -> Option<&Value> {
        match self {
            Self::Own(values) => {
                let at = values.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
                values.get(at).map(|(_, value)| value)
            }
            Self::Elements(elements) if *elements.name == *name => elements.values.get(at),
            Self::Elements(elements) if **INDEX == *name => elements.number(at),
            Self::Elements(_) => None,
        }
    }
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Own(_) => self.get(name, 0).is_some(),
            Self::Elements(elements) => *elements.name == *name || **INDEX == *name,
        }
    }
    pub(super) fn names(&self) -> Vec<&Arc<str>> {
        match self {
            Self::Own(values) => values.iter().map(|(name, _)| name).collect(),
            Self::Elements(elements) => vec![&elements.name, &*INDEX],
        }
    }
}
