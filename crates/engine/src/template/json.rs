//! JSON values whose strings and object keys are templates (D-08).

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind};

use super::layers::Layers;
use super::parse::{Ending, TemplateError};
use super::render::{OnMissing, Placeholder, Template};
use super::unresolved::Unresolved;

/// A JSON value, parsed once (D-13): all strings of nested arrays and objects, and object keys, are templates.
/// Equal when the sources are; serialized as its source. Parsing and resolving recurse as deep as the value is
/// nested, which its reader limits (`json_nesting`, E-28). Cloning shares it.
#[derive(Debug, Clone)]
pub struct JsonTemplate(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    source: Value,
    root: Node,
    leaves: Vec<Arc<Leaf>>,
}

/// An unfinished placeholder somewhere in a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at `{pointer}`: {error}")]
pub struct JsonTemplateError {
    /// JSON pointer of the string, or of the member whose key it is; `""` for the value itself.
    pub pointer: String,
    /// What is wrong in that text.
    #[source]
    pub error: TemplateError,
}

/// Why a value could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ResolveError {
    /// A placeholder without a value: the fault `unresolved_placeholder` (D-10).
    #[error(transparent)]
    Unresolved(#[from] Box<Unresolved>),
    /// Two keys of one object became equal: the fault `input_error` (D-08).
    #[error("two keys of the object at `{pointer}` became `{key}`")]
    DuplicateKey {
        /// JSON pointer of the object.
        pointer: String,
        /// The key, resolved.
        key: String,
    },
}

/// A subtree. What holds neither placeholders nor escapes is copied as it is.
#[derive(Debug, Clone)]
enum Node {
    Fixed(Value),
    Leaf(Arc<Leaf>),
    Array(Vec<Node>),
    Object { pointer: Box<str>, members: Vec<(Key, Node)> },
}

#[derive(Debug, Clone)]
enum Key {
    Fixed(String),
    Leaf(Arc<Leaf>),
}

/// A string or key that is not its own rendering, and its place.
#[derive(Debug)]
struct Leaf {
    pointer: Box<str>,
    template: Template,
}

impl JsonTemplate {
    /// Parses all strings and keys of `value`.
    ///
    /// # Errors
    /// [`JsonTemplateError`] for the first unfinished placeholder.
    pub fn parse(value: &Value) -> Result<Self, JsonTemplateError> {
        Self::from_value(value.clone())
    }

    /// The same of a value that nobody else needs.
    ///
    /// # Errors
    /// As [`JsonTemplate::parse`].
    pub fn from_value(source: Value) -> Result<Self, JsonTemplateError> {
        Self::read(source, Ending::Text)
    }

    /// What a model wrote in a run of this edition ([`crate::Start::edition`]), read as it was then (E-18).
    ///
    /// # Errors
    /// As [`JsonTemplate::parse`].
    pub(crate) fn of_edition(edition: u32, value: &Value) -> Result<Self, JsonTemplateError> {
        Self::read(value.clone(), if edition < 1 { Ending::Error } else { Ending::Text })
    }

    fn read(source: Value, ending: Ending) -> Result<Self, JsonTemplateError> {
        let mut builder = Builder { pointer: String::new(), leaves: Vec::new(), ending };
        let root = builder.node(&source)?;
        Ok(Self(Arc::new(Parsed { source, root, leaves: builder.leaves })))
    }

    /// The value it was parsed from.
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    /// The strings and keys that are not their own rendering, in document order (a key before its value).
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.0.leaves.iter().map(|leaf| &leaf.template)
    }

    /// All placeholders in document order (a key before its value), each with the JSON pointer of its string or, for
    /// a key, of that member.
    pub fn placeholders(&self) -> impl Iterator<Item = (&str, &Placeholder)> {
        self.0
            .leaves
            .iter()
            .flat_map(|leaf| leaf.template.placeholders().map(|found| (&*leaf.pointer, found)))
    }

    /// Whether resolving needs no look-up.
    pub fn is_literal(&self) -> bool {
        self.placeholders().next().is_none()
    }

    /// The bytes that its texts with placeholders come to, counted without building them and no further than
    /// beyond `most`. What is fixed is not counted: the document's own size limits it.
    ///
    /// # Errors
    /// As [`JsonTemplate::resolve`].
    pub fn measure(&self, layers: &dyn Layers, missing: OnMissing, most: u64) -> Result<u64, ResolveError> {
        let mut bytes = 0u64;
        for leaf in &self.0.leaves {
            let left = most.saturating_sub(bytes);
            let measured = leaf.template.measure(layers, missing, left).map_err(|error| leaf.error(error))?;
            bytes = bytes.saturating_add(measured);
            if bytes > most {
                break;
            }
        }
        Ok(bytes)
    }

    /// Resolves all placeholders. Keys are rendered as text; the order of members is kept (D-08).
    ///
    /// # Errors
    /// [`ResolveError`]: the first placeholder without a value under [`OnMissing::Fault`], or keys that became equal.
    pub fn resolve(&self, layers: &dyn Layers, missing: OnMissing) -> Result<Value, ResolveError> {
        self.0.root.resolve(layers, missing)
    }
}

struct Builder {
    pointer: String,
    leaves: Vec<Arc<Leaf>>,
    ending: Ending,
}

impl Builder {
    fn node(&mut self, value: &Value) -> Result<Node, JsonTemplateError> {
        match value {
            Value::String(text) => {
                Ok(self.leaf(text)?.map_or_else(|| Node::Fixed(value.clone()), Node::Leaf))
            }
            Value::Array(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    nodes.push(self.below(&index.to_string(), |builder| builder.node(item))?);
                }
                let fixed = nodes.iter().all(|node| matches!(node, Node::Fixed(_)));
                Ok(if fixed { Node::Fixed(value.clone()) } else { Node::Array(nodes) })
            }
            Value::Object(map) => {
                let mut members = Vec::with_capacity(map.len());
                for (name, item) in map {
                    members.push(self.below(name, |builder| {
                        let key = builder.leaf(name)?.map_or_else(|| Key::Fixed(name.clone()), Key::Leaf);
                        Ok((key, builder.node(item)?))
                    })?);
                }
                let fixed =
                    |(key, node): &(Key, Node)| matches!((key, node), (Key::Fixed(_), Node::Fixed(_)));
                Ok(if members.iter().all(fixed) {
                    Node::Fixed(value.clone())
                } else {
                    Node::Object { pointer: self.pointer.as_str().into(), members }
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Node::Fixed(value.clone())),
        }
    }

    /// The template of a text, unless rendering would always give that text.
    fn leaf(&mut self, text: &str) -> Result<Option<Arc<Leaf>>, JsonTemplateError> {
        let template = Template::parse_to(text, self.ending)
            .map_err(|error| JsonTemplateError { pointer: self.pointer.clone(), error })?;
        if template.literal() == Some(text) {
            return Ok(None);
        }
        let leaf = Arc::new(Leaf { pointer: self.pointer.as_str().into(), template });
        self.leaves.push(leaf.clone());
        Ok(Some(leaf))
    }

    /// Runs `inside` with one more segment on the pointer.
    fn below<T>(&mut self, segment: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        match segment.contains(['~', '/']) {
            true => self.pointer.push_str(&segment.replace('~', "~0").replace('/', "~1")),
            false => self.pointer.push_str(segment),
        }
        let result = inside(self);
        self.pointer.truncate(length);
        result
    }
}

impl Node {
    fn resolve(&self, layers: &dyn Layers, missing: OnMissing) -> Result<Value, ResolveError> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Leaf(leaf) => {
                leaf.template.render_value(layers, missing).map_err(|error| leaf.error(error))
            }
            Self::Array(nodes) => nodes.iter().map(|node| node.resolve(layers, missing)).collect(),
            Self::Object { pointer, members } => {
                let mut map = Map::with_capacity(members.len());
                for (key, node) in members {
                    let key = match key {
                        Key::Fixed(key) => key.clone(),
                        Key::Leaf(leaf) => {
                            leaf.template.render_text(layers, missing).map_err(|error| leaf.error(error))?
                        }
                    };
                    if map.contains_key(&key) {
                        return Err(ResolveError::DuplicateKey { pointer: pointer.to_string(), key });
                    }
                    map.insert(key, node.resolve(layers, missing)?);
                }
                Ok(Value::Object(map))
            }
        }
    }
}

impl Leaf {
    fn error(&self, error: Unresolved) -> ResolveError {
        ResolveError::Unresolved(Box::new(error.at(&self.pointer)))
    }
}

impl PartialEq for JsonTemplate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.source == other.0.source
    }
}

impl Serialize for JsonTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<ResolveError> for Fault {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Unresolved(error) => (*error).into(),
            ResolveError::DuplicateKey { .. } => Self::new(FaultKind::InputError, error.to_string()),
        }
    }
}
