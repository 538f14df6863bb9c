//! The body of a request, read.

use crate::problem::Problem;
use selvedge_dialects::json::{self, Kind, Node};
use selvedge_dialects::{Diagnostics, DocumentLimits, Finding, Source};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The fields of a body, which has to be an object of this type and nothing else, and the text of the document in it.
pub(crate) fn read<T: DeserializeOwned>(
    body: &[u8],
    limits: DocumentLimits,
) -> Result<(T, Option<String>), Problem> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    Ok((fields(body)?, document(body, limits)?))
}

/// What is read from an object, and from nothing that only has its fields in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Fields<T>;

            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Fields<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Fields)
            }
        }
        from.deserialize_any(Object(PhantomData))
    }
}

fn fields<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let read = serde_json::from_slice(body);
    let Fields(read) = read.map_err(|error| {
        let why = error.to_string();
        if error.classify() != serde_json::error::Category::Data {
            return unreadable("no-json", &why);
        }
        let code = if why.contains("unknown field") { "unknown-field" } else { "bad-body" };
        unreadable(code, &why).help("/v1/openapi.json has the fields of each body, and what they hold")
    })?;
    Ok(read)
}

/// The text of the document in a body: of an object as it was sent, so that places in it are those of its author, and what is wrong with
/// it is found when it is read.
///
/// # Errors
/// Elsewhere in the body a key stands twice, or a number would become another one, which [`fields`] does not see (E-28, A-21).
fn document(body: &[u8], limits: DocumentLimits) -> Result<Option<String>, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| unreadable("no-json", &error.to_string()))?;
    // How deep a document may be is said when it is read by itself.
    let limits = DocumentLimits { json_nesting: usize::MAX, ..limits };
    let (source, mut found) = (Source::new("body", text), Diagnostics::new());
    let root = json::parse(&source, &limits, &mut found);
    let members = root.as_ref().and_then(Node::as_object).unwrap_or_default();
    let document = members.iter().find(|member| member.key == "document").map(|member| &member.value);
    let others = members.iter().filter(|member| member.key != "document");
    others.filter_map(|member| member.value.inexact(&source)).for_each(|finding| found.push(finding));
    let outside = |finding: &&Finding| !document.is_some_and(|document| document.span.holds(finding.span));
    if let Some(first) = found.findings().iter().find(outside) {
        let place = source.place(first.span.start as usize);
        let why = format!("{} at line {} column {}", first.message, place.line, place.column);
        return Err(unreadable(if root.is_none() { "no-json" } else { "bad-body" }, &why).help(&first.help));
    }
    match document.map(|document| &document.kind) {
        None | Some(Kind::Null) => Ok(None),
        Some(Kind::String(text)) => Ok(Some(text.clone().into_owned())),
        Some(Kind::Object(_)) => Ok(document.map(|document| source.slice(document.span).to_owned())),
        Some(_) => Err(Problem::bad("bad-body", "the document is an object, or its text")),
    }
}

fn unreadable(code: &'static str, why: &str) -> Problem {
    Problem::bad(code, &format!("the body can't be read: {why}"))
}
