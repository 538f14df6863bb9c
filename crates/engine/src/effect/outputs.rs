//! What a tool declares of its output (D-24).

use crate::template::{member, normalized};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The types of JSON values, as JSON Schema names them.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// The fields of its output object that a tool declares, each with what it says of the value (D-05, D-24).
///
/// Serialized as the list of the names, or, where something is said of a value, as an object whose keys are the names
/// and whose values are JSON Schemas (`true`: nothing is said). Either is read back. Cloning shares it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs(Arc<Declared>);

#[derive(Clone, Debug, Default)]
struct Declared {
    /// In the order of the declaration.
    names: Vec<Arc<str>>,
    /// What is said of values.
    schemas: Map<String, Value>,
    /// Whether there are no other fields. For checkers only: it is neither serialized nor compared.
    closed: bool,
}

impl PartialEq for Declared {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.schemas == other.schemas
    }
}

/// What the schema of a field says that an output may lack (D-24).
const OPTIONAL: &str = "optional";

impl Outputs {
    /// Those of an object whose keys are the names. A value is a JSON Schema, or the name of a type, or a list of such
    /// names; anything else, such as a text for people, says nothing of the value.
    pub fn of_fields(fields: &Map<String, Value>) -> Self {
        let names = fields.keys().map(|name| Arc::from(name.as_str())).collect();
        let said = |(name, value): (&String, &Value)| Some((name.clone(), schema_of(value)?));
        Self(Arc::new(Declared { names, schemas: fields.iter().filter_map(said).collect(), closed: false }))
    }

    /// The properties of the schema of an output object; `None` if it names none. What a property refers to inside of
    /// the schema is put in its place.
    pub fn of_schema(schema: &Value) -> Option<Self> {
        let properties = schema.get("properties")?.as_object()?;
        let mut inline = Inline { root: schema, left: Inline::MOST };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let fields = properties.iter().map(|(name, value)| {
            let mut value = inline.value(value, 0);
            if !is_required(name) {
                if value == Value::Bool(true) {
                    value = Value::Object(Map::new());
                }
                value.as_object_mut().map(|fields| fields.insert(OPTIONAL.to_owned(), true.into()));
            }
            (name.clone(), value)
        });
        let Self(declared) = Self::of_fields(&fields.collect());
        let declared = Arc::unwrap_or_clone(declared);
        Some(Self(Arc::new(Declared { closed: is_closed(schema), ..declared })))
    }

    /// What is declared as JSON: a list of names or an object; `None` if it is neither.
    pub fn read(declared: &Value) -> Option<Self> {
        match declared {
            Value::Object(fields) => Some(Self::of_fields(fields)),
            Value::Array(names) => names.iter().map(Value::as_str).collect(),
            _ => None,
        }
    }

    /// The names, in the order of the declaration.
    pub fn names(&self) -> &[Arc<str>] {
        &self.0.names
    }

    /// Whether a field of this name is declared.
    pub fn has(&self, name: &str) -> bool {
        self.0.schemas.contains_key(name)
            || self.0.names.iter().any(|known| &**known == name)
            || !name.is_ascii() && self.0.names.iter().any(|known| normalized(known) == normalized(name))
    }

    /// The JSON Schema that the values of a field fit, if the declaration says so.
    pub fn schema(&self, name: &str) -> Option<&Value> {
        member(&self.0.schemas, name)
    }

    /// Whether an output may lack a field.
    pub fn is_optional(&self, name: &str) -> bool {
        self.schema(name).and_then(|schema| schema.get(OPTIONAL)).is_some_and(|optional| optional == true)
    }

    /// Whether an output has no fields but these, by the schema that they are from. Not known of what was read back.
    pub fn is_closed(&self) -> bool {
        self.0.closed
    }

    /// Whether something is said of the value of any field.
    pub fn is_typed(&self) -> bool {
        !self.0.schemas.is_empty()
    }
}

/// Whether a schema of objects says that there are no properties but those it names.
fn is_closed(schema: &Value) -> bool {
    let adding = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && adding.iter().all(|keyword| schema.get(keyword).is_none())
}

/// A schema from what stands beside a name.
fn schema_of(value: &Value) -> Option<Value> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::String(_) if is_type(value) => Some(serde_json::json!({ "type": value })),
        Value::Array(types) if !types.is_empty() && types.iter().all(is_type) => {
            Some(serde_json::json!({ "type": value }))
        }
        Value::Object(schema) if !schema.is_empty() => Some(value.clone()),
        _ => None,
    }
}

impl<S: Into<Arc<str>>> FromIterator<S> for Outputs {
    /// Fields of whose values nothing is said.
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self(Arc::new(Declared { names, schemas: Map::new(), closed: false }))
    }
}

impl<S: Into<Arc<str>>, const N: usize> From<[S; N]> for Outputs {
    fn from(names: [S; N]) -> Self {
        names.into_iter().collect()
    }
}

impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.is_typed() {
            return self.names().serialize(serializer);
        }
        let said = |name: &Arc<str>| self.schema(name).unwrap_or(&Value::Bool(true));
        serializer.collect_map(self.names().iter().map(|name| (name, said(name))))
    }
}

impl<'de> Deserialize<'de> for Outputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong =
            || serde::de::Error::custom("expected a list of names, or an object with the names as keys");
        Self::read(&Value::deserialize(deserializer)?).ok_or_else(wrong)
    }
}

/// Puts what is referred to in the place of references, so that a part of a schema says by itself what it says.
struct Inline<'s> {
    root: &'s Value,
    /// How many values may still be copied: references can multiply a schema without end.
    left: usize,
}

impl Inline<'_> {
    const MOST: usize = 2_000;
    /// References behind each other, or inside each other.
    const DEEPEST: usize = 8;

    fn value(&mut self, value: &Value, followed: usize) -> Value {
        if self.left == 0 {
            return Value::Bool(true);
        }
        self.left -= 1;
        match value {
            Value::Object(schema) => {
                if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
                    // What stands beside a reference only adds to it.
                    let inside = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                    return match inside.filter(|_| followed < Self::DEEPEST) {
                        Some(target) => self.value(target, followed + 1),
                        None => Value::Bool(true),
                    };
                }
                let members = schema.iter().map(|(name, value)| (name.clone(), self.value(value, followed)));
                Value::Object(members.collect())
            }
            Value::Array(values) => values.iter().map(|value| self.value(value, followed)).collect(),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
