//! What JSON Schemas say of the types of values: enough to know that one value can't stand where another is wanted
//! (D-15).
//!
//! Everything errs to one side: what a schema says in a way that is not looked at (conditions, `not`, references to
//! elsewhere) is taken as nothing said. So two sets without a common type are a contradiction whatever else is said.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// A set of types of JSON values. Integers are numbers without a fraction, and `number` is both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Types = Types(1);
    const BOOLEAN: Types = Types(1 << 1);
    const INTEGER: Types = Types(1 << 2);
    const FRACTION: Types = Types(1 << 3);
    const NUMBER: Types = Types(Self::INTEGER.0 | Self::FRACTION.0);
    pub(crate) const STRING: Types = Types(1 << 4);
    const ARRAY: Types = Types(1 << 5);
    pub(crate) const OBJECT: Types = Types(1 << 6);
    const NONE: Types = Types(0);
    /// Nothing is known.
    pub(crate) const ANY: Types = Types((1 << 7) - 1);

    /// The types of either set.
    pub(crate) fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    /// Whether a value of one set may be one of the other.
    pub(crate) fn meets(self, other: Types) -> bool {
        self.and(other) != Self::NONE
    }

    fn of(value: &Value) -> Types {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            // As in JSON Schema, 2.0 is an integer.
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
                Self::FRACTION
            }
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn named(name: &Value) -> Types {
        match name.as_str() {
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOLEAN,
            Some("integer") => Self::INTEGER,
            Some("number") => Self::NUMBER,
            Some("string") => Self::STRING,
            Some("array") => Self::ARRAY,
            Some("object") => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    fn union(sets: impl Iterator<Item = Types>) -> Types {
        sets.fold(Self::NONE, Self::or)
    }
}

impl fmt::Display for Types {
    /// "a string", "an integer or null".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WORDS: [(Types, &str); 8] = [
            (Types::STRING, "a string"),
            (Types::NUMBER, "a number"),
            (Types::INTEGER, "an integer"),
            (Types::FRACTION, "a number with a fraction"),
            (Types::BOOLEAN, "a boolean"),
            (Types::ARRAY, "an array"),
            (Types::OBJECT, "an object"),
            (Types::NULL, "null"),
        ];
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        let mut left = *self;
        let mut said = "";
        for (types, words) in WORDS {
            if left.and(types) == types {
                write!(f, "{said}{words}")?;
                (said, left) = (" or ", Types(left.0 & !types.0));
            }
        }
        Ok(())
    }
}

/// One step of a way into a value.
#[derive(Clone, Debug)]
pub(crate) enum Way<'a> {
    /// A member of an object; if it is made of digits, an element of an array as well.
    Key(Cow<'a, str>),
    /// An element of an array; a negative one counts from the end.
    Index(i64),
}

/// The way that a JSON pointer goes.
pub(crate) fn ways_of(pointer: &str) -> Vec<Way<'_>> {
    fn key(part: &str) -> Cow<'_, str> {
        match part.contains('~') {
            true => part.replace("~1", "/").replace("~0", "~").into(),
            false => part.into(),
        }
    }
    pointer.split('/').skip(1).map(|part| Way::Key(key(part))).collect()
}

/// The types of what stands at the end of a way into a value that fits `schema`. All of them, if nothing is known of it.
pub(crate) fn types_at(schema: &Value, ways: &[Way<'_>]) -> Types {
    let found = Look { root: schema, left: Look::MOST }.at(schema, ways);
    // Where no value can be, it is not the type that is wrong.
    if found == Types::NONE { Types::ANY } else { found }
}

struct Look<'s> {
    /// Where references inside the schema start.
    root: &'s Value,
    /// How many more schemas are looked at: one may refer to itself.
    left: u32,
}

impl<'s> Look<'s> {
    const MOST: u32 = 200;

    fn at(&mut self, schema: &'s Value, ways: &[Way<'_>]) -> Types {
        let Some(said) = schema.as_object() else { return Types::ANY };
        if self.left == 0 {
            return Types::ANY;
        }
        self.left -= 1;
        // References inside of it start somewhere else.
        if said.contains_key("$id") && !std::ptr::eq(schema, self.root) {
            return Types::ANY;
        }
        if let Some(to) = said.get("$ref") {
            // Older drafts let nothing else count beside a reference; newer ones let it only add to it.
            let inside = to.as_str().and_then(|to| to.strip_prefix('#'));
            let target = inside.and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Types::ANY, |target| self.at(target, ways));
        }
        let mut types = match ways.split_first() {
            None => here(said),
            Some((way, rest)) => self.below(said, way, rest),
        };
        for schema in list(said, "allOf") {
            types = types.and(self.at(schema, ways));
        }
        for any in ["anyOf", "oneOf"] {
            let branches = list(said, any);
            if !branches.is_empty() {
                types = types.and(Types::union(branches.iter().map(|schema| self.at(schema, ways))));
            }
        }
        types
    }

    /// One step into what a schema says by itself.
    fn below(&mut self, said: &'s Map<String, Value>, way: &Way<'_>, rest: &[Way<'_>]) -> Types {
        let here = here(said);
        let mut types = Types::NONE;
        let index = match way {
            Way::Key(key) => {
                if here.meets(Types::OBJECT) {
                    types = self.member(said, key, rest);
                }
                key.parse().ok().map(Some)
            }
            Way::Index(index) => Some(usize::try_from(*index).ok()),
        };
        match index {
            Some(index) if here.meets(Types::ARRAY) => types.or(self.element(said, index, rest)),
            _ => types,
        }
    }

    fn member(&mut self, said: &'s Map<String, Value>, key: &str, rest: &[Way<'_>]) -> Types {
        let known = said.get("properties").and_then(|properties| properties.get(key));
        match (known, said.get("additionalProperties")) {
            (Some(known), _) => self.at(known, rest),
            (None, _) if said.contains_key("patternProperties") => Types::ANY,
            (None, Some(Value::Bool(false))) => Types::NONE,
            (None, Some(others)) => self.at(others, rest),
            (None, None) => Types::ANY,
        }
    }

    /// `index`: `None` if it counts from the end.
    fn element(&mut self, said: &'s Map<String, Value>, index: Option<usize>, rest: &[Way<'_>]) -> Types {
        let first = list(said, "prefixItems");
        match (index, said.get("items")) {
            (None, _) if !first.is_empty() => Types::ANY,
            (Some(index), _) if index < first.len() => self.nth(first, index, rest),
            (Some(index), Some(Value::Array(schemas))) => self.nth(schemas, index, rest),
            (_, Some(items)) => self.at(items, rest),
            (_, None) => Types::ANY,
        }
    }

    fn nth(&mut self, schemas: &'s [Value], index: usize, rest: &[Way<'_>]) -> Types {
        schemas.get(index).map_or(Types::ANY, |schema| self.at(schema, rest))
    }
}

/// What a schema says of the type of a value itself.
fn here(said: &Map<String, Value>) -> Types {
    let mut types = match said.get("type") {
        None => Types::ANY,
        Some(Value::Array(names)) => Types::union(names.iter().map(Types::named)),
        Some(name) => Types::named(name),
    };
    if let Some(only) = said.get("const") {
        types = types.and(Types::of(only));
    }
    if let Some(Value::Array(values)) = said.get("enum") {
        types = types.and(Types::union(values.iter().map(Types::of)));
    }
    // OpenAPI's way to say it.
    if said.get("nullable") == Some(&Value::Bool(true)) { types.or(Types::NULL) } else { types }
}

fn list<'s>(said: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    said.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
