//! TOML as the same tree with places that documents have, so that findings look the same everywhere.

use selvedge_dialects::json::{Kind, Member, Node, Span};
use selvedge_dialects::{Diagnostics, Finding, Source};
use serde_json::Number;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Parses a file; `None`, with one error among the findings, if it is no TOML.
pub(super) fn parse(source: &Source, diagnostics: &mut Diagnostics) -> Option<Node<'static>> {
    match DeTable::parse(source.text()) {
        Ok(table) => Some(Node { span: Span::new(0, source.text().len()), kind: object(table.get_ref()) }),
        Err(error) => {
            let span = error.span().map(span).unwrap_or_default();
            let message = format!("this is no TOML: {}", error.message());
            diagnostics.push(
                Finding::error("C-14", "bad-toml", span, message.replace('\n', ", "))
                    .help("correct the file"),
            );
            None
        }
    }
}

fn span(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

fn object(table: &DeTable<'_>) -> Kind<'static> {
    let mut members: Vec<Member<'static>> = table
        .iter()
        .map(|(key, value)| Member {
            key: Cow::Owned(key.get_ref().to_string()),
            key_span: span(key.span()),
            value: node(value),
        })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Kind::Object(members)
}

fn node(value: &Spanned<DeValue<'_>>) -> Node<'static> {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::String(Cow::Owned(text.to_string())),
        DeValue::Integer(integer) => whole(integer),
        DeValue::Float(float) => {
            let number = float.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
            // JSON has neither infinities nor "not a number": they are told apart as text.
            number.map_or_else(|| Kind::String(Cow::Owned(float.to_string())), Kind::Number)
        }
        DeValue::Boolean(flag) => Kind::Bool(*flag),
        DeValue::Datetime(time) => Kind::String(Cow::Owned(time.to_string())),
        DeValue::Array(array) => Kind::Array(array.iter().map(node).collect()),
        DeValue::Table(table) => object(table),
    };
    Node { span: span(value.span()), kind }
}

fn whole(integer: &DeInteger<'_>) -> Kind<'static> {
    let digits = integer.as_str().replace('_', "");
    let signed = i64::from_str_radix(&digits, integer.radix()).map(Number::from);
    let number = signed.or_else(|_| u64::from_str_radix(&digits, integer.radix()).map(Number::from));
    // Beyond 64 bits only its size counts; one of another radix has no shorter spelling.
    let number = number.ok().or_else(|| Number::from_f64(digits.parse().ok()?));
    number.map_or(Kind::String(Cow::Owned(digits)), Kind::Number)
}
