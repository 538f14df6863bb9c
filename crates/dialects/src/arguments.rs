//! Arguments against the tool's schema, before anything runs (D-15).
//!
//! A value that holds a placeholder is not known yet: it is checked at run time, once resolved, and then a refusal is
//! the fault `input_error`. What does not depend on such a value is checked here.

use crate::Finding;
use crate::diagnostic::shown;
use crate::json::{Kind, Node, Span};
use selvedge_engine::ToolDef;
use selvedge_engine::schema::{Schema, Violation};
use selvedge_engine::template::{JsonTemplate, Template};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Findings told of one call.
const MOST: usize = 20;

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The object.
    pub(crate) root: &'a Node<'a>,
    /// The object as a template, if the document has it.
    pub(crate) template: Option<&'a JsonTemplate>,
}

/// What a tool's schema refuses of a call, whatever its placeholders become: errors, each at the argument. A call
/// without arguments is held against the schema as `{}`, and the errors are at `call`. `place` says where in the
/// document a part of the arguments is. A model is told of no command line.
pub(crate) fn refusals(
    def: &ToolDef,
    schema: &Schema,
    given: Option<Arguments<'_>>,
    call: Span,
    place: impl Fn(Span) -> Span,
    for_model: bool,
) -> Vec<Finding> {
    // If nothing is escaped, the arguments are held against the schema as they are written.
    let template = given.and_then(|given| given.template);
    let as_written = template.filter(|all| all.templates().all(|text| text.literal().is_none()));
    if as_written.is_some_and(|arguments| schema.fits(arguments.source()) == Ok(true)) {
        return Vec::new();
    }
    let mut open = Open::default();
    let value = match given {
        Some(given) => open.value(given.root, &mut String::new()),
        None => Value::Object(Map::new()),
    };
    let violations = match schema.violations(&value, usize::MAX) {
        Ok(violations) => violations,
        Err(_) => match schema.violation(&value) {
            Err(excess) if open.is_empty() => {
                let message = format!(
                    "tool {} will refuse this call: to hold it against its schema {excess}",
                    shown(&def.name)
                );
                let finding = Finding::error(
                    "D-15",
                    "arguments-refused",
                    given.map_or(call, |given| place(given.root.span)),
                    message,
                );
                return vec![finding.help(help(def, "", for_model))];
            }
            found => found.ok().flatten().into_iter().collect(),
        },
    };
    let certain = violations
        .into_iter()
        .filter(|found| open.certain(&found.place, &found.keyword, &found.schema_place));
    let finding = |Violation { message, place: pointer, keyword, .. }: Violation| {
        let at = given.map_or(call, |given| place(given.root.at(&pointer).unwrap_or(given.root).span));
        let what = match (given, pointer.is_empty()) {
            (None, _) => "a call without arguments".to_owned(),
            (_, true) => "these arguments".to_owned(),
            (_, false) => format!("`{pointer}`"),
        };
        let why: String = message.chars().take(300).collect();
        let message = format!("tool {} will refuse {what}: {why}", shown(&def.name));
        Finding::error("D-15", "arguments-refused", at, message).help(help(def, &keyword, for_model))
    };
    certain.take(MOST).map(finding).collect()
}

fn help(def: &ToolDef, keyword: &str, for_model: bool) -> String {
    const SHOWN: usize = 30;
    let names = def.input_schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = names.into_iter().flat_map(Map::keys).map(String::as_str).take(SHOWN).collect();
    let takes = match keyword {
        "required" | "additionalProperties" if !names.is_empty() => {
            Some(format!("the tool takes {}", names.join(", ")))
        }
        _ => None,
    };
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = if def.name.chars().all(is_plain) { &*def.name } else { "NAME" };
    match (takes, for_model) {
        (Some(takes), true) => takes,
        (None, true) => "see the tool's input schema".to_owned(),
        (Some(takes), false) => format!("{takes}; `selvedge tools show {name}` prints its input schema"),
        (None, false) => format!("`selvedge tools show {name}` prints its input schema"),
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
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.keys.is_empty()
    }

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
        if self.is_empty() {
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
