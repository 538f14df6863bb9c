//! What nodes of every dialect may say of how they run: `retry` and `budget` (`P-24`), limits on tools (`P-14`), effects
//! (`E-22`), `output_schema` (`E-33`), and settings of their models.

mod model;

pub(crate) use model::model_settings;
pub use model::{ModelSettings, RESERVED};

use std::sync::Arc;
use std::time::Duration;

use selvedge_engine::schema::{Schema, Unchecked, Unusable};
use serde_json::Value;

use crate::checks::BEYOND;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, count_of, type_error};
use crate::json::{Kind, Node, Spanned};
use crate::{Diagnostics, Finding, Source};

/// Limits on what a run or node may use (`P-24`, `E-20`); `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// Model calls.
    pub calls: Option<Spanned<u64>>,
    /// Tokens, in and out.
    pub tokens: Option<Spanned<u64>>,
    /// Money, in the currency of the configured prices.
    pub cost: Option<Spanned<f64>>,
}

/// Extra attempts (`P-24`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts after the first.
    pub max: u32,
    /// Time between attempts, if written.
    pub backoff: Option<Duration>,
}

/// What a tool does to the world (`E-22`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffects {
    /// Nothing, and its output depends on its arguments alone.
    Pure,
    /// It reads.
    Read,
    /// It writes, and doing it twice is as good as once.
    Idempotent,
    /// It writes.
    Write,
}

impl ToolEffects {
    /// All kinds with their names in documents.
    pub const NAMES: [(&'static str, ToolEffects); 4] = [
        ("pure", ToolEffects::Pure),
        ("read", ToolEffects::Read),
        ("idempotent", ToolEffects::Idempotent),
        ("write", ToolEffects::Write),
    ];
}

/// The limit on one tool's calls in one node (`P-14`).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolLimit {
    /// The tool, at its key.
    pub tool: Spanned<Arc<str>>,
    /// Most calls; 0 is never.
    pub limit: Spanned<u64>,
}

pub(crate) const RETRY: Shape = Shape { what: "`retry`", fields: &["backoff_s", "max"] };
pub(crate) const BUDGET: Shape = Shape { what: "`budget`", fields: &["calls", "cost", "tokens"] };

/// `retry`: an integer, or `{"max", "backoff_s"}` (`P-24`).
pub(crate) fn retry(
    node: &Node<'_>,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<Retry>> {
    let (max, backoff) = match &node.kind {
        Kind::Object(_) => {
            let fields = Fields::open(node, &RETRY, "P-24", diagnostics)?;
            let help = "write how many extra attempts: {\"max\": 2}";
            let max = fields.required("max", "P-24", help, diagnostics)?;
            let backoff: Option<Spanned<Duration>> = fields.seconds("backoff_s", "P-24", true, diagnostics);
            (count_of(max, "max", "P-24", source, diagnostics)?, backoff.map(|backoff| backoff.value))
        }
        Kind::Number(_) => (count_of(node, "retry", "P-24", source, diagnostics)?, None),
        _ => {
            let help = "write the number of extra attempts, such as 2, or {\"max\": 2, \"backoff_s\": 1}";
            let expected = "an integer or an object";
            diagnostics.push(type_error(node, TypeError { field: "retry", expected, rule: "P-24", help }));
            return None;
        }
    };
    let max = u32::try_from(max.value).unwrap_or(u32::MAX);
    Some(Spanned::new(Retry { max, backoff }, node.span))
}

/// `budget`: `{"calls", "tokens", "cost"}` (`P-24`). Whole numbers may be written as `1e6`.
pub(crate) fn budget(node: &Node<'_>, source: &Source, diagnostics: &mut Diagnostics) -> Budget {
    let Some(fields) = Fields::open(node, &BUDGET, "P-24", diagnostics) else {
        return Budget::default();
    };
    Budget {
        calls: fields.given("calls").and_then(|node| whole(node, "calls", source, diagnostics)),
        tokens: fields.given("tokens").and_then(|node| whole(node, "tokens", source, diagnostics)),
        cost: fields.number("cost", "P-24", diagnostics).filter(|cost| {
            let fits = cost.value >= 0.0;
            if !fits {
                diagnostics.push(
                    Finding::error("P-24", "out-of-range", cost.span, "`cost` must not be negative")
                        .help("write an amount of money that is 0 or more"),
                );
            }
            fits
        }),
    }
}

fn whole(
    node: &Node<'_>,
    field: &str,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<u64>> {
    // 2^53: up to there every whole number is exact as a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Kind::Number(number) = &node.kind
        && node.as_integer(source).is_none()
        && let Some(float) = number.as_f64()
        && float.fract() == 0.0
        && (0.0..=EXACT).contains(&float)
    {
        return Some(Spanned::new(float as u64, node.span));
    }
    count_of(node, field, "P-24", source, diagnostics)
}

/// A JSON Schema in a field such as `output_schema`: an object or a boolean (`E-33`).
pub(crate) fn output_schema(
    node: &Node<'_>,
    field: &'static str,
    steps: u64,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<Arc<Value>>> {
    if !matches!(node.kind, Kind::Object(_) | Kind::Bool(_)) {
        let help = "write a JSON Schema, such as {\"type\": \"object\", \"properties\": {…}}";
        let expected = "a JSON Schema (an object)";
        diagnostics.push(type_error(node, TypeError { field, expected, rule: "E-33", help }));
        return None;
    }
    let schema = node.to_value();
    let (path, value, message) = match Schema::new(&schema, steps) {
        Ok(read) => {
            unchecked(node, &read, diagnostics);
            return Some(Spanned::new(Arc::new(schema), node.span));
        }
        Err(Unusable::OverLimit(limit)) => {
            let message = format!("`{field}` can't be used: {limit}");
            let help =
                "make it simpler: fewer references to the same definitions, fewer and shorter patterns";
            diagnostics.push(Finding::error("E-45", "schema-too-large", node.span, message).help(help));
            return None;
        }
        Err(Unusable::Invalid { message, place, value }) => (place, value, message),
    };
    // The fault is a part of the schema: point at it when its path leads there.
    let at = descend(node, &path).unwrap_or(node);
    let place = if path.is_empty() { String::new() } else { format!("at {}: ", shown(&path)) };
    let reason = wrong(&path, &value).unwrap_or(message);
    let reason: String = reason.chars().take(300).collect();
    diagnostics.push(
        Finding::error(
            "E-33",
            "bad-schema",
            at.span,
            format!("`{field}` is no valid JSON Schema: {place}{reason}"),
        )
        .help("correct the schema; references to other files or addresses are not followed"),
    );
    None
}

/// Patterns that nothing is held against (E-45), where they stand.
fn unchecked(node: &Node<'_>, schema: &Schema, diagnostics: &mut Diagnostics) {
    for Unchecked { place, pattern } in schema.unchecked() {
        let at = descend(node, place).unwrap_or(node);
        let message = format!("the pattern {} is not checked: {BEYOND}", shown(pattern));
        let help = "say it without; several patterns can stand in an `allOf`";
        diagnostics.push(Finding::warning("E-45", "unchecked-pattern", at.span, message).help(help));
    }
}

/// What is wrong with the value of a keyword that has several forms, of which the validator only says that it is none.
fn wrong(path: &str, value: &Value) -> Option<String> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
    let mut steps = path.rsplit('/');
    let keyword = steps.next()?;
    // A property may be called like a keyword.
    if steps.next().is_some_and(|parent| NAMED.contains(&parent)) {
        return None;
    }
    let value = match value {
        Value::String(text) => shown(text),
        other => other.to_string().chars().take(60).collect(),
    };
    match keyword {
        "type" => Some(format!("`type` is one of {}, or a list of these, not {value}", TYPES.join(", "))),
        "items" => Some(format!("`items` is a schema, not {value}")),
        _ => None,
    }
}

/// The part of `node` at a JSON pointer.
fn descend<'n, 's>(node: &'n Node<'s>, pointer: &str) -> Option<&'n Node<'s>> {
    pointer.split('/').skip(1).try_fold(node, |node, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match &node.kind {
            Kind::Array(elements) => elements.get(step.parse::<usize>().ok()?),
            _ => node.get(&step),
        }
    })
}

/// A list of names, each once: a repetition is a warning. `null` elements and empty names are errors.
pub(crate) fn names(
    node: &Node<'_>,
    field: &'static str,
    rule: &'static str,
    diagnostics: &mut Diagnostics,
) -> Vec<Spanned<Arc<str>>> {
    let help = "write a list of names in double quotes: [\"a\", \"b\"]";
    let Some(elements) = node.as_array() else {
        let expected = "an array of strings";
        diagnostics.push(type_error(node, TypeError { field, expected, rule, help }));
        return Vec::new();
    };
    let mut seen = std::collections::HashSet::new();
    let mut names = Vec::with_capacity(elements.len());
    for element in elements {
        match element.as_str() {
            None => {
                let message = format!("`{field}` must hold strings, not {}", element.type_in_words());
                diagnostics.push(Finding::error(rule, "wrong-type", element.span, message).help(help));
            }
            Some("") => {
                let message = format!("a name in `{field}` is empty");
                diagnostics.push(Finding::error(rule, "empty-name", element.span, message).help("remove it"));
            }
            Some(name) if !seen.insert(name) => {
                let message = format!("{} stands twice in `{field}`", shown(name));
                diagnostics
                    .push(Finding::warning(rule, "repeated-name", element.span, message).help("remove one"));
            }
            Some(name) => names.push(Spanned::new(name.into(), element.span)),
        }
    }
    names
}
