//! Paths into what tools declare of their outputs (D-24), and fields that are not among it.
//!
//! A declaration need not be all that a tool gives, so a field that it lacks is a warning, unless its schema says that
//! there are no others.

use crate::Finding;
use crate::diagnostic::listed;
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::Span;
use selvedge_engine::Outputs;
use selvedge_engine::template::{Placeholder, Seg};
use serde_json::{Map, Value};

/// A field that a path names, and that is not among those that are declared in its place.
pub(crate) struct Undeclared<'a> {
    field: &'a str,
    declared: Vec<&'a str>,
    /// Whether no others can be there.
    closed: bool,
}

impl<'a> Undeclared<'a> {
    /// The first field of a path into an output that its declaration lacks; `None` also where it does not tell.
    pub(crate) fn find(outputs: &'a Outputs, path: &'a [Seg]) -> Option<Self> {
        let (Seg::Key(field), rest) = path.split_first()? else { return None };
        if outputs.has(field) {
            return outputs.schema(field).and_then(|schema| Self::below(schema, rest));
        }
        let declared: Vec<&str> = outputs.names().iter().map(AsRef::as_ref).collect();
        (!declared.is_empty()).then(|| Self { field, declared, closed: outputs.is_closed() })
    }

    /// Where any of several declarations may hold: what all of them lack.
    pub(crate) fn in_all(all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        all.reduce(|one, other| {
            let (mut one, other) = (one?, other?);
            one.declared.extend(other.declared);
            one.closed &= other.closed;
            Some(one)
        })?
    }

    fn below(mut schema: &'a Value, path: &'a [Seg]) -> Option<Self> {
        for seg in path {
            let said = schema.as_object().filter(|said| is_plain(said))?;
            schema = match (seg, said.get("type").and_then(Value::as_str)?) {
                (Seg::Key(field), "object") => {
                    let declared = said.get("properties")?.as_object()?;
                    match (declared.get(&**field), said.get("additionalProperties")) {
                        (Some(known), _) => known,
                        (None, None | Some(Value::Bool(_))) => {
                            let closed = said.get("additionalProperties") == Some(&Value::Bool(false));
                            let declared = declared.keys().map(String::as_str).collect();
                            return Some(Self { field, declared, closed });
                        }
                        (None, Some(_)) => return None,
                    }
                }
                (Seg::Index(_), "array") => said.get("items")?,
                (Seg::Key(key), "array") if key.bytes().all(|byte| byte.is_ascii_digit()) => {
                    said.get("items")?
                }
                _ => return None,
            };
        }
        None
    }

    /// The finding at a placeholder; `whose` says who declares: `tool "fit"`.
    pub(crate) fn finding(mut self, placeholder: &Placeholder, whose: &str, place: Span) -> Finding {
        let message = format!("{}: {whose} declares no field {} there", placeholder.raw, shown(self.field));
        let finding = match self.closed {
            true => Finding::error("D-24", "undeclared-field", place, message),
            false => Finding::warning("D-24", "undeclared-field", place, message),
        };
        self.declared.sort_unstable();
        self.declared.dedup();
        finding.help(match meant(self.field, &self.declared) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None => format!("declared: {}", listed(&self.declared)),
        })
    }
}

/// Whether a schema says all that it says of members by `properties`, `items` and `additionalProperties`.
fn is_plain(said: &Map<String, Value>) -> bool {
    const OTHERS: [&str; 9] = [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "patternProperties",
        "prefixItems",
    ];
    OTHERS.iter().all(|keyword| !said.contains_key(*keyword))
}
