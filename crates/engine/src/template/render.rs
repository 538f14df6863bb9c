//! Texts with placeholders, and their rendering (D-08, D-10, D-11).

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::layers::{Layers, lookup};
use super::parse::{self, Ending, TemplateError};
use super::path::Path;
use super::unresolved::Unresolved;

/// What an unresolved placeholder becomes (D-10, `on_missing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissing {
    /// An error.
    #[default]
    Fault,
    /// JSON null; inside longer text, the text `null`.
    Null,
    /// The placeholder as it was written.
    Keep,
}

/// One placeholder of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// As written, braces included.
    pub raw: Arc<str>,
    /// What it refers to.
    pub path: Path,
    /// Byte offset of `raw` in the source text.
    pub offset: usize,
}

/// A piece of a parsed text.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Text(Box<str>),
    Placeholder(Placeholder),
}

/// A text, parsed once (D-13). Cheap to clone; equal when the sources are; serialized as its source.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

struct Inner {
    source: Box<str>,
    parts: Vec<Part>,
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// [`TemplateError`] for an unfinished placeholder (D-09). Whatever else is not a placeholder is text.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_to(text, Ending::Text)
    }

    pub(super) fn parse_to(text: &str, ending: Ending) -> Result<Self, TemplateError> {
        Ok(Self(Arc::new(Inner { source: text.into(), parts: parse::parse(text, ending)? })))
    }

    /// A template that renders to exactly this text, whatever it looks like (D-11).
    pub fn exactly(text: &str) -> Self {
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(text.into())] };
        Self(Arc::new(Inner { source: escaped(text).into(), parts }))
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Whether the source is `""`.
    pub fn is_empty(&self) -> bool {
        self.0.source.is_empty()
    }

    /// The placeholders, in the order of the text.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(placeholder) => Some(placeholder),
        })
    }

    /// What every rendering gives, if there is no placeholder: the source with its escapes taken out.
    pub fn literal(&self) -> Option<&str> {
        match self.0.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Renders to text: strings as they are, other values as compact JSON (D-08).
    ///
    /// # Errors
    /// [`Unresolved`] for the first placeholder without a value, under [`OnMissing::Fault`].
    pub fn render_text(&self, layers: &dyn Layers, missing: OnMissing) -> Result<String, Unresolved> {
        let mut out = String::with_capacity(self.0.source.len());
        self.write(&mut out, layers, missing)?;
        Ok(out)
    }

    /// The bytes of [`Template::render_text`], counted without rendering and no further than beyond `most`.
    ///
    /// # Errors
    /// As [`Template::render_text`].
    pub fn measure(&self, layers: &dyn Layers, missing: OnMissing, most: u64) -> Result<u64, Unresolved> {
        let mut size = Size { bytes: 0, most };
        self.write(&mut size, layers, missing)?;
        Ok(size.bytes)
    }

    /// Writes until the writer has enough.
    fn write(
        &self,
        out: &mut dyn fmt::Write,
        layers: &dyn Layers,
        missing: OnMissing,
    ) -> Result<(), Unresolved> {
        for part in &self.0.parts {
            let written = match part {
                Part::Text(text) => out.write_str(text),
                Part::Placeholder(placeholder) => match placeholder.find(layers, missing)? {
                    Found::Value(Value::String(text)) => out.write_str(text),
                    Found::Value(value) => write!(out, "{value}"),
                    Found::Null => out.write_str("null"),
                    Found::Keep => out.write_str(&placeholder.raw),
                },
            };
            if written.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Renders to a value: one placeholder and nothing else keeps its value's type, anything else is text (D-08).
    ///
    /// # Errors
    /// As [`Template::render_text`].
    pub fn render_value(&self, layers: &dyn Layers, missing: OnMissing) -> Result<Value, Unresolved> {
        let [Part::Placeholder(placeholder)] = self.0.parts.as_slice() else {
            return self.render_text(layers, missing).map(Value::String);
        };
        Ok(match placeholder.find(layers, missing)? {
            Found::Value(value) => value.clone(),
            Found::Null => Value::Null,
            Found::Keep => Value::String(placeholder.raw.to_string()),
        })
    }
}

/// The source whose text is `text`: openings escaped, and the backslashes before them doubled (D-09).
fn escaped(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let bare = rest.trim_start_matches('\\');
        let (slashes, _) = rest.split_at(rest.len() - bare.len());
        source.push_str(slashes);
        if bare.starts_with("{{") || bare.starts_with("${") {
            source.push_str(slashes);
            source.push('\\');
            let (opening, after) = bare.split_at(2);
            source.push_str(opening);
            rest = after;
            continue;
        }
        let next = bare.chars().next().map_or(0, char::len_utf8);
        let (one, after) = bare.split_at(next);
        source.push_str(one);
        rest = after;
    }
    source
}

/// Counts what is written, and has enough beyond `most` bytes.
struct Size {
    bytes: u64,
    most: u64,
}

impl fmt::Write for Size {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if self.bytes > self.most { Err(fmt::Error) } else { Ok(()) }
    }
}

/// What stands for a placeholder.
enum Found<'a> {
    Value(&'a Value),
    Null,
    Keep,
}

impl Placeholder {
    fn find<'a>(&self, layers: &'a dyn Layers, missing: OnMissing) -> Result<Found<'a>, Unresolved> {
        match (lookup(&self.path, layers), missing) {
            (Ok(value), _) => Ok(Found::Value(value)),
            (Err(miss), OnMissing::Fault) => Err(Unresolved::explain(self, miss, layers)),
            (Err(_), OnMissing::Null) => Ok(Found::Null),
            (Err(_), OnMissing::Keep) => Ok(Found::Keep),
        }
    }
}

impl Default for Template {
    /// The empty text.
    fn default() -> Self {
        Self(Arc::new(Inner { source: "".into(), parts: Vec::new() }))
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.source())
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
