//! What a frame is given, by name: the first data layer of its own.

use serde_json::Value;
use std::sync::{Arc, LazyLock, OnceLock};

/// What the number of a path over a list, or of an iteration, is called within it.
pub(super) static INDEX: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("index"));

/// What a frame is given.
#[derive(Debug, Default)]
pub(crate) enum Inputs {
    #[default]
    Nothing,
    /// Sorted by name.
    #[allow(clippy::box_collection, reason = "the box is a pointer where the list is three")]
    Own(Box<Vec<(Arc<str>, Value)>>),
    /// One element of a list that a fork goes over, and its number: there may be thousands of such frames.
    Element(Arc<Elements>, u32),
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
    pub(super) fn new(name: Arc<str>, values: Vec<Value>) -> Self {
        Self { name, values, numbers: OnceLock::new() }
    }
    fn number(&self, at: usize) -> Option<&Value> {
        let numbers = || (0..self.values.len()).map(Value::from).collect();
        self.numbers.get_or_init(numbers).get(at)
    }
}

impl Inputs {
    /// The last of several values of a name counts.
    pub(super) fn new(mut values: Vec<(Arc<str>, Value)>) -> Self {
        if values.is_empty() {
            return Self::Nothing;
        }
        values.reverse();
        values.sort_by(|(a, _), (b, _)| a.cmp(b));
        values.dedup_by(|(a, _), (b, _)| a == b);
        values.shrink_to_fit();
        Self::Own(Box::new(values))
    }
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Nothing => None,
            Self::Own(values) => {
                let at = values.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
                values.get(at).map(|(_, value)| value)
            }
            Self::Element(elements, at) if *elements.name == *name => elements.values.get(*at as usize),
            Self::Element(elements, at) if **INDEX == *name => elements.number(*at as usize),
            Self::Element(..) => None,
        }
    }
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Element(elements, _) => [&elements.name, &*INDEX].into_iter().any(|known| **known == *name),
            _ => self.get(name).is_some(),
        }
    }
    pub(super) fn names(&self) -> Vec<&Arc<str>> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Own(values) => values.iter().map(|(name, _)| name).collect(),
            Self::Element(elements, _) => vec![&elements.name, &*INDEX],
        }
    }
}
