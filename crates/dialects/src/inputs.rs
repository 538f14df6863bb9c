//! Declared inputs of a document, and the initial metadata that they lead to (`P-23`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, almost, type_error};
use crate::json::{Member, Node, Span, Spanned};
use crate::{Diagnostics, Finding};
use selvedge_engine::template::{Template, normalized};

/// A declared input (`P-23`).
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name, at its key.
    pub name: Spanned<Arc<str>>,
    /// What it is for, for people.
    pub description: Option<Spanned<Arc<str>>>,
    /// The type that its value must have.
    pub kind: Option<Spanned<InputType>>,
    /// Its value when none is given.
    pub default: Option<Spanned<Value>>,
}

/// The type of an input's value, as JSON Schema names types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// A text.
    String,
    /// A number.
    Number,
    /// A number without a fraction.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl InputType {
    /// All types with their names.
    pub const NAMES: [(&'static str, InputType); 6] = [
        ("string", InputType::String),
        ("number", InputType::Number),
        ("integer", InputType::Integer),
        ("boolean", InputType::Boolean),
        ("array", InputType::Array),
        ("object", InputType::Object),
    ];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            InputType::String => "string",
            InputType::Number => "number",
            InputType::Integer => "integer",
            InputType::Boolean => "boolean",
            InputType::Array => "array",
            InputType::Object => "object",
        }
    }

    /// Whether `value` is of this type. As in JSON Schema, `2.0` is an integer.
    pub fn admits(self, value: &Value) -> bool {
        match self {
            InputType::String => value.is_string(),
            InputType::Number => value.is_number(),
            InputType::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            InputType::Boolean => value.is_boolean(),
            InputType::Array => value.is_array(),
            InputType::Object => value.is_object(),
        }
    }
}

pub(crate) const INPUT: Shape = Shape { what: "an input", fields: &["default", "description", "type"] };

/// Reads `inputs`: `{name: {description?, type?, default?}}`.
pub(crate) fn read(node: &Node<'_>, diagnostics: &mut Diagnostics) -> Vec<Input> {
    let Some(members) = node.as_object() else {
        let help = "write {\"name\": {\"description\": …, \"type\": …, \"default\": …}}";
        let error = TypeError { field: "inputs", expected: "an object", rule: "P-23", help };
        diagnostics.push(type_error(node, error));
        return Vec::new();
    };
    members.iter().filter_map(|member| read_one(member, diagnostics)).collect()
}

fn read_one(member: &Member<'_>, diagnostics: &mut Diagnostics) -> Option<Input> {
    if member.key.is_empty() {
        diagnostics.push(
            Finding::error("P-23", "empty-name", member.key_span, "an input's name must not be empty")
                .help("give the input a name"),
        );
        return None;
    }
    let fields = Fields::open(&member.value, &INPUT, "P-23", diagnostics)?;
    let kind = fields.choice("type", "P-23", &InputType::NAMES, diagnostics);
    // A default of null is a value like any other, so the raw member counts here.
    let default =
        fields.member("default").map(|member| Spanned::new(member.value.to_value(), member.value.span));
    let input = Input {
        name: Spanned::new(Arc::from(normalized(&member.key)), member.key_span),
        description: fields.text("description", "P-23", diagnostics),
        kind,
        default,
    };
    if let Some(default) = &input.default {
        check_type(&input, &default.value, default.span, "its default", diagnostics);
    }
    Some(input)
}

fn check_type(input: &Input, value: &Value, span: Span, which: &str, diagnostics: &mut Diagnostics) {
    let Some(kind) = &input.kind else { return };
    if let Some((message, help)) = wrong_type(&input.name.value, kind.value, value, which) {
        diagnostics.push(Finding::error("P-23", "input-type", span, message).help(help));
    }
}

/// Whether a shell takes a name as it stands.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// Why a value can't be given under a name (P-23): of a document that declares inputs, it is none of them and no other name of its
/// metadata; of another one, it is almost a name of its metadata. `None` if it can be given. The first part is the message, the second the help.
pub fn unknown_input(declared: &[&str], metadata: &[&str], name: &str) -> Option<(String, String)> {
    let known = [declared, metadata].concat();
    let name = normalized(name);
    let name = name.as_ref();
    if known.contains(&name) {
        return None;
    }
    let help = match almost(name, &known) {
        Some(near) => format!("did you mean {}?", shown(near)),
        None if declared.is_empty() => return None,
        None => {
            /// Names that are listed.
            const LISTED: usize = 10;
            let names: Vec<String> = declared.iter().take(LISTED).map(|name| shown(name)).collect();
            let more = if declared.len() > LISTED { ", …" } else { "" };
            format!(
                "the document declares {}{more}: leave this one out, or declare it in `inputs`",
                names.join(", ")
            )
        }
    };
    Some((format!("there is no input {}", shown(name)), help))
}

/// Why a given value is not of the type that an input is declared with: the message and the help.
pub fn wrong_type(name: &str, kind: InputType, value: &Value, which: &str) -> Option<(String, String)> {
    let kind = Some(kind).filter(|kind| !kind.admits(value))?.name();
    let message = format!("the input {} is of type {kind}; {which} is not", shown(name));
    Some((message, format!("give a value of type {kind}, or change the input's `type`")))
}

/// A value that another document gives, if it is known before it runs.
pub(crate) fn check_written(input: &Input, value: &Node<'_>, diagnostics: &mut Diagnostics) {
    let mut open = false;
    value.each_string(&mut |text, _| {
        open |= Template::parse(text).map_or(true, |text| text.placeholders().next().is_some());
    });
    if !open {
        check_type(input, &value.to_value(), value.span, "this", diagnostics);
    }
}

/// A value that somebody gives for a run.
pub const GIVEN: &str = "the given value";

/// The first data layer of a run, as [`crate::head::Head::initial`] says.
pub(crate) fn layer(
    inputs: &[Input],
    metadata: &Map<String, Value>,
    given: &Map<String, Value>,
    diagnostics: &mut Diagnostics,
) -> Map<String, Value> {
    let given: Map<String, Value> =
        given.iter().map(|(name, value)| (normalized(name).into_owned(), value.clone())).collect();
    let mut values = Map::new();
    for input in inputs {
        let name = input.name.value.as_ref();
        let (value, which) = match (given.get(name), metadata.get(name)) {
            (Some(value), _) => (value, GIVEN),
            (None, Some(value)) => (value, "its value in `metadata`"),
            (None, None) => match &input.default {
                // Its type was checked when the document was read.
                Some(default) => {
                    values.insert(name.to_owned(), default.value.clone());
                    continue;
                }
                None => {
                    let message = format!("the input {} has no value", shown(name));
                    // A name that a shell may not take as it stands is the reader's to quote.
                    let option = if is_plain(name) { name } else { "NAME" };
                    let help = format!("give it with `--input {option}=VALUE`, or write a `default`");
                    let finding = Finding::error("P-23", "missing-input", input.name.span, message);
                    diagnostics.push(finding.help(help));
                    continue;
                }
            },
        };
        check_type(input, value, input.name.span, which, diagnostics);
    }
    values.extend(metadata.clone());
    values.extend(given);
    values
}
