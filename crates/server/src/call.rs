//! A request, read.

use crate::blocking::blocking;
use crate::body;
use crate::params::{Kind, Param, Parts};
use crate::problem::Problem;
use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use percent_encoding::percent_decode_str;
use selvedge_dialects::DocumentLimits;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Bytes of a body that are read at once; more would hold up the runtime's thread, and are read on another.
const SHORT: usize = 64 * 1024;

/// A request to a route.
pub(crate) struct Call {
    /// What stands in the path where the route has a name.
    path: Parts,
    query: BTreeMap<String, Vec<String>>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// Reads what a route wants to know.
    pub(crate) fn new(
        known: &'static [Param],
        path: Parts,
        query: &str,
        headers: HeaderMap,
    ) -> Result<Self, Problem> {
        let query = read_query(known, query)?;
        Ok(Self { path, query, headers, body: Bytes::new() })
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str)
    }

    /// A parameter that may be there several times.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        self.query.get(name).map_or(&[], Vec::as_slice)
    }

    /// A parameter that is a number, which was looked at when the request was read.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// A parameter that may be negative.
    pub(crate) fn signed(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// The body, which has to be an object of this type and nothing else.
    pub(crate) async fn json<T>(&self, limits: &DocumentLimits) -> Result<T, Problem>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.with_document(limits).await.map(|(read, _)| read)
    }

    /// The same, with the text of the document in it, if it has one.
    pub(crate) async fn with_document<T>(
        &self,
        limits: &DocumentLimits,
    ) -> Result<(T, Option<String>), Problem>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let (body, limits) = (self.body.clone(), *limits);
        let read = move || body::read(&body, limits);
        if self.body.len() > SHORT { blocking(read).await } else { read() }
    }

    /// Whether the answer may be of that type, said by name.
    pub(crate) fn accepts(&self, kind: &str) -> bool {
        let accept = self.headers.get(hyper::header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let mut kinds = accept.unwrap_or_default().split(',').filter_map(|part| part.split(';').next());
        kinds.any(|known| known.trim().eq_ignore_ascii_case(kind))
    }
}

fn read_query(params: &'static [Param], query: &str) -> Result<BTreeMap<String, Vec<String>>, Problem> {
    let mut read: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?);
        let Some(known) = params.iter().find(|param| param.name == name) else {
            let known: Vec<&str> = params.iter().map(|param| param.name).collect();
            let help = match known.is_empty() {
                true => "it takes none".to_owned(),
                false => format!("it takes {}", known.join(", ")),
            };
            return Err(
                Problem::bad("unknown-field", &format!("there is no parameter \"{name}\" here")).help(&help)
            );
        };
        known.kind.fits(&value).map_err(|why| {
            Problem::bad("bad-parameter", &format!("the parameter \"{name}\" is {why}, not {value:?}"))
        })?;
        let values = read.entry(name.clone()).or_default();
        if !values.is_empty() && !matches!(known.kind, Kind::Texts) {
            return Err(Problem::bad("bad-parameter", &format!("the parameter \"{name}\" is there twice")));
        }
        values.push(value);
    }
    match params.iter().find(|param| param.required && !read.contains_key(param.name)) {
        Some(missing) => {
            Err(Problem::bad("bad-parameter", &format!("the parameter \"{}\" is missing", missing.name)))
        }
        None => Ok(read),
    }
}

/// A text without percent signs.
pub(crate) fn decoded(text: &str) -> Result<String, Problem> {
    percent_decode_str(text)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "S-06", "bad-address", "the address is no UTF-8"))
}
