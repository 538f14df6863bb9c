//! JSON that others wrote: replies of models (D-17, D-21, E-33), arguments of calls (E-10), outputs of tools. It is read
//! as strictly as documents are (E-28).

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reads a text that is one JSON value. A key that stands twice in an object is an error, as in a document: nobody
/// knows which of the two is meant.
///
/// # Errors
/// The text is no JSON.
pub fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text.trim()).map(|Unique(value)| value)
}

/// Whether JSON was refused only because of a key that stands twice in an object.
pub fn is_duplicate_key(error: &serde_json::Error) -> bool {
    error.is_data() && error.to_string().starts_with(TWICE)
}

/// Reads a model's reply that is to be one JSON value (E-33). A byte-order mark, thoughts and a Markdown fence around the
/// whole reply are no part of it.
///
/// # Errors
/// What is left is no JSON: what is wrong, and what stands there.
pub(crate) fn reply(text: &str) -> Result<Value, String> {
    // Thoughts are searched for last: a JSON text may hold their marks.
    read(text).or_else(|_| {
        let text = bare(text);
        read(text).map_err(|error| match standing_at(text, &error) {
            Some(there) => format!("{error}, where {} stands", Value::from(there)),
            None => error.to_string(),
        })
    })
}

/// The beginning of a reply, in quotes and bounded, for people.
pub(crate) fn beginning(text: &str) -> String {
    /// Characters that are shown.
    const SHOWN: usize = 200;
    let text = text.trim();
    let more = text.char_indices().nth(SHOWN).map(|(at, _)| at);
    let shown = Value::from(text.get(..more.unwrap_or(text.len())).unwrap_or_default());
    if more.is_some() { format!("{shown} […]") } else { shown.to_string() }
}

/// What a reply says without the mark, the thoughts and the fence around it.
fn bare(text: &str) -> &str {
    let mut text = text.trim_start_matches('\u{feff}').trim();
    loop {
        match (within_fence(text), behind_thoughts(text)) {
            (Some(inner), _) => return inner.trim(),
            (None, Some(behind)) => text = behind,
            (None, None) => return text,
        }
    }
}

/// What follows the thoughts at the beginning. Some servers leave out the mark that opens the first of them.
fn behind_thoughts(text: &str) -> Option<&str> {
    let (opened, _) = text.split_once('>').unwrap_or_default();
    let name = match opened {
        "<thinking" => "</thinking>",
        "<think" => "</think>",
        _ => {
            let ends = ["</think>", "</thinking>"].map(|end| text.find(end).map(|at| (at, end)));
            ends.into_iter().flatten().min()?.1
        }
    };
    text.split_once(name).map(|(_, behind)| behind.trim())
}

/// What stands between a Markdown fence at the beginning and the one that closes it at the end, without the info word.
fn within_fence(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let inner = text.trim_start_matches(mark);
    let fence = text.get(..text.len() - inner.len()).filter(|fence| fence.len() >= 3)?;
    let inner = inner.strip_suffix(fence)?;
    let inner = inner.trim_start_matches([' ', '\t']);
    Some(inner.trim_start_matches(|c: char| !c.is_whitespace() && !"{[\"".contains(c)))
}

/// A few characters from the place of a syntax error on.
fn standing_at<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    /// Characters that are shown.
    const SHOWN: usize = 30;
    let text = Some(text).filter(|_| error.is_syntax())?;
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?;
    let rest = (0..error.column()).rev().find_map(|at| line.get(at..))?;
    let end = rest.char_indices().nth(SHOWN).map_or(rest.len(), |(at, _)| at);
    rest.get(..end).filter(|rest| !rest.is_empty())
}

/// The bytes of a value as compact JSON, counted without building it.
pub(crate) fn bytes(value: &Value) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let written = serde_json::to_writer(&mut count, value);
    debug_assert!(written.is_ok(), "a value is JSON, and a count takes what is written to it");
    count.0
}

/// How an error about a key that stands twice begins.
const TWICE: &str = "the key ";

/// A value without duplicate keys.
#[derive(Debug)]
pub struct Unique(pub Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Unique, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = elements.next_element()? {
            values.push(value);
        }
        Ok(Unique(Value::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(60).collect();
                return Err(A::Error::custom(format!("{TWICE}{shown:?} stands twice in an object")));
            }
            let Unique(value) = members.next_value()?;
            map.insert(key, value);
        }
        Ok(Unique(Value::Object(map)))
    }
}

#[cfg(test)]
mod tests;
