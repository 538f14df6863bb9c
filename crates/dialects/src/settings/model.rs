//! Settings that go to a model: of nodes of plans and workflows, and of agents (`P-28`).

use super::names;
use crate::diagnostic::shown;
use crate::fields::{Fields, TypeError, type_error};
use crate::json::{Node, Span, Spanned};
use crate::{Diagnostics, Finding, Source};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Fields of a request's body that `extra` can't have: Selvedge writes them itself.
pub const RESERVED: [&str; 12] = [
    "contents",
    "functions",
    "input",
    "instructions",
    "messages",
    "model",
    "stream",
    "stream_options",
    "system",
    "systemInstruction",
    "system_instruction",
    "tools",
];

/// Settings that go to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    /// `temperature`
    pub temperature: Option<Spanned<f64>>,
    /// `top_p`
    pub top_p: Option<Spanned<f64>>,
    /// `max_tokens`
    pub max_tokens: Option<Spanned<u64>>,
    /// `seed`
    pub seed: Option<Spanned<i64>>,
    /// `stop`: texts at which the model stops.
    pub stop: Vec<Spanned<Arc<str>>>,
    /// `enable_search` and `enable_thinking` of plans, which only some providers know.
    pub known: Vec<(&'static str, Spanned<Value>)>,
    /// `extra`: fields of the request's body.
    pub extra: Option<Spanned<Map<String, Value>>>,
}

impl ModelSettings {
    /// The fields that are written, each with its place.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&'static str, Span)> {
        [
            ("temperature", self.temperature.as_ref().map(|value| value.span)),
            ("top_p", self.top_p.as_ref().map(|value| value.span)),
            ("max_tokens", self.max_tokens.as_ref().map(|value| value.span)),
            ("seed", self.seed.as_ref().map(|value| value.span)),
            ("stop", self.stop.first().map(|value| value.span)),
            ("extra", self.extra.as_ref().map(|value| value.span)),
        ]
        .into_iter()
        .filter_map(|(field, at)| Some((field, at?)))
    }

    /// The settings as the engine has them.
    pub(crate) fn lowered(&self) -> selvedge_engine::ModelSettings {
        selvedge_engine::ModelSettings {
            temperature: self.temperature.as_ref().map(|value| value.value),
            top_p: self.top_p.as_ref().map(|value| value.value),
            max_tokens: self.max_tokens.as_ref().map(|value| value.value),
            seed: self.seed.as_ref().map(|value| value.value),
            stop: self.stop.iter().map(|stop| stop.value.to_string()).collect(),
            extra: self.known.iter().map(|(name, value)| ((*name).to_owned(), value.value.clone())).collect(),
            body: self.extra.as_ref().map(|extra| extra.value.clone()).unwrap_or_default(),
        }
    }
}

/// Reads the settings among these fields.
pub(crate) fn model_settings(
    fields: &Fields<'_, '_>,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> ModelSettings {
    let stop = fields.given("stop").map(|node| stop(node, diagnostics));
    ModelSettings {
        temperature: fields.number("temperature", "P-28", diagnostics),
        top_p: fields.number("top_p", "P-28", diagnostics),
        max_tokens: fields.count("max_tokens", "P-28", source, diagnostics),
        seed: seed(fields, source, diagnostics),
        stop: stop.unwrap_or_default(),
        known: Vec::new(),
        extra: fields.given("extra").and_then(|node| extra(node, diagnostics)),
    }
}

fn seed(fields: &Fields<'_, '_>, source: &Source, diagnostics: &mut Diagnostics) -> Option<Spanned<i64>> {
    let node = fields.given("seed")?;
    let integer = node.as_integer(source).filter(|integer| !integer.clamped);
    if integer.is_none() {
        let help = "write an integer of at most 64 bits";
        let error = TypeError { field: "seed", expected: "an integer", rule: "P-28", help };
        diagnostics.push(type_error(node, error));
    }
    Some(Spanned::new(integer?.value, node.span))
}

/// `stop`: a text or a list of texts.
fn stop(node: &Node<'_>, diagnostics: &mut Diagnostics) -> Vec<Spanned<Arc<str>>> {
    match node.as_str() {
        Some(text) => vec![Spanned::new(text.into(), node.span)],
        None => names(node, "stop", "P-28", diagnostics),
    }
}

/// `extra`: an object, without the fields that are Selvedge's own.
fn extra(node: &Node<'_>, diagnostics: &mut Diagnostics) -> Option<Spanned<Map<String, Value>>> {
    let Some(members) = node.as_object() else {
        let help = "write the fields of the request's body by name: {\"name\": value}";
        let error = TypeError { field: "extra", expected: "an object", rule: "P-28", help };
        diagnostics.push(type_error(node, error));
        return None;
    };
    for member in members.iter().filter(|member| RESERVED.contains(&&*member.key)) {
        let message = format!("{} in `extra` is written by Selvedge itself", shown(&member.key));
        let finding = Finding::error("P-28", "reserved-field", member.key_span, message);
        diagnostics.push(finding.help("remove it, or use the field of the document that says it"));
    }
    let fields = members.iter().map(|member| (member.key.to_string(), member.value.to_value())).collect();
    Some(Spanned::new(fields, node.span))
}
