//! Arguments against the tool's schema, before anything runs (D-15).
//!
//! A value that holds a placeholder is not known yet: it is checked at run time, once resolved, and then a refusal is
//! the fault `input_error`. What does not depend on such a value is checked here.

use super::doc::Parameters;
use crate::json::{Kind, Node, Span};
use selvedge_engine::ToolDef;
use selvedge_engine::schema::{Schema, Violation};
use selvedge_engine::template::Template;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Findings told of one call.
const MOST: usize = 20;

/// Why a call would be refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Where, in the parameters' own text; `None` where there are no parameters.
    pub(super) place: Option<Span>,
    /// What is refused and why, as the end of a sentence.
    pub(super) why: String,
    /// What to do.
    pub(super) help: String,
}

/// What the tool's schema refuses of a call with these arguments.
pub(super) fn refusals(def: &ToolDef, schema: &Schema, parameters: Option<&Parameters>) -> Vec<Refusal> {
    let template = parameters.and_then(Parameters::template);
    // Where nothing is escaped, the arguments are held against the schema as they are written.
    let as_written = template.filter(|all| all.templates().all(|text| text.literal().is_none()));
    if as_written.is_some_and(|arguments| schema.fits(arguments.source()) == Ok(true)) {
        return Vec::new();
    }
    let mut open = Open::default();
    let value = match parameters {
        Some(parameters) => open.value(&parameters.root, &mut String::new()),
        None => Value::Object(Map::new()),
    };
    let mut found = Vec::new();
    // What takes too long to find out is found out, and told, by the call.
    let violations = schema.violations(&value, usize::MAX).unwrap_or_default();
    for Violation { message, place: pointer, keyword, schema_place } in violations {
        if !open.certain(&pointer, &keyword, &schema_place) {
            continue;
        }
        let place = parameters.map(|given| given.root.at(&pointer).unwrap_or(&given.root).span);
        let what = if pointer.is_empty() { "these arguments".to_owned() } else { format!("`{pointer}`") };
        let why: String = message.chars().take(300).collect();
        found.push(Refusal { place, why: format!("{what}: {why}"), help: help(def, &keyword) });
        if found.len() == MOST {
            break;
        }
    }
    found
}

fn help(def: &ToolDef, keyword: &str) -> String {
    const SHOWN: usize = 30;
    let names = def.input_schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = names.into_iter().flat_map(Map::keys).map(String::as_str).take(SHOWN).collect();
    match keyword {
        "required" | "additionalProperties" if !names.is_empty() => {
            format!("the tool takes {}", names.join(", "))
        }
        _ => "see the tool's input schema".to_owned(),
    }
}

/// What is not known before the placeholders are resolved.
#[derive(Default)]
struct Open {
    /// JSON pointers of strings that hold placeholders. Of what type they are is looked at elsewhere.
    values: BTreeSet<String>,
    /// JSON pointers of objects with keys that hold placeholders.
    keys: BTreeSet<String>,
}

impl Open {
    /// The value, with unknown strings as they are written; escapes are taken out of the others, as the call will have
    /// them.
    fn value(&mut self, node: &Node<'_>, pointer: &mut String) -> Value {
        match &node.kind {
            Kind::String(text) => {
                let Ok(template) = Template::parse(text) else {
                    // An error of its own.
                    self.values.insert(pointer.clone());
                    return Value::String(text.to_string());
                };
                if let Some(literal) = template.literal() {
                    return Value::String(literal.to_owned());
                }
                self.values.insert(pointer.clone());
                Value::String(text.to_string())
            }
            Kind::Array(elements) => {
                let elements = elements.iter().enumerate();
                Value::Array(elements.map(|(at, e)| self.below(&at.to_string(), e, pointer)).collect())
            }
            Kind::Object(members) => {
                let mut map = Map::with_capacity(members.len());
                for member in members {
                    let template = Template::parse(&member.key).ok();
                    let literal = template.as_ref().and_then(Template::literal).map(str::to_owned);
                    if literal.is_none() {
                        self.keys.insert(pointer.clone());
                    }
                    let key = literal.unwrap_or_else(|| member.key.to_string());
                    let value = self.below(&key, &member.value, pointer);
                    map.insert(key, value);
                }
                Value::Object(map)
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => node.to_value(),
        }
    }

    fn below(&mut self, segment: &str, node: &Node<'_>, pointer: &mut String) -> Value {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        let value = self.value(node, pointer);
        pointer.truncate(length);
        value
    }

    /// Whether an error at `pointer` stands whatever the placeholders become.
    fn certain(&self, pointer: &str, keyword: &str, schema_path: &str) -> bool {
        if self.values.is_empty() && self.keys.is_empty() {
            return true;
        }
        // What holds only under a condition may hold under another one once the values are known.
        let conditional = ["if", "then", "else", "not", "anyOf", "oneOf", "dependentSchemas", "contains"];
        if schema_path.split('/').any(|part| conditional.contains(&part)) {
            return false;
        }
        if self.values.contains(pointer) {
            return false;
        }
        let inside = |open: &BTreeSet<String>| {
            let prefix = format!("{pointer}/");
            open.range(prefix.clone()..).next().is_some_and(|first| first.starts_with(&prefix))
        };
        let keys_here = self.keys.contains(pointer);
        let known = !inside(&self.values) && !inside(&self.keys) && !keys_here;
        let of_shape = match keyword {
            "type" | "minItems" | "maxItems" => true,
            "required" | "additionalProperties" | "minProperties" | "maxProperties" => !keys_here,
            _ => false,
        };
        known || of_shape
    }
}
