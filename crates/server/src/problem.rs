//! Errors, as problems of RFC 9457 with the fields of C-04 (S-06).

use bytes::Bytes;
use hyper::{Method, StatusCode};
use selvedge_dialects::Severity;
use selvedge_dialects::diagnostic::check_json;
use selvedge_host::{Error, ErrorKind};
use selvedge_runtime::LoadError;
use selvedge_store::StoreError;
use serde_json::{Map, Value, json};

/// Why a request gets no answer.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    fields: Map<String, Value>,
    /// Seconds after which it may be tried again.
    pub(crate) retry_after: Option<u32>,
    /// Methods that there are instead.
    pub(crate) allow: Option<String>,
}

impl Problem {
    /// One that has to do with the request alone.
    pub(crate) fn new(status: StatusCode, rule: &'static str, code: &'static str, message: &str) -> Self {
        let error = Error::usage(rule, code, message);
        Self { status, ..Self::from(error) }
    }

    /// A request that is wrong.
    pub(crate) fn bad(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "S-06", code, message)
    }

    /// An address that takes other methods.
    pub(crate) fn method(path: &str, allow: &str, method: &Method) -> Self {
        let message = format!("{path} takes {allow}, not {method}");
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "S-03", "bad-method", &message);
        Self { allow: Some(allow.to_owned()), ..problem }
    }

    /// The same with a way out.
    #[must_use]
    pub(crate) fn help(mut self, help: &str) -> Self {
        self.fields.insert("help".to_owned(), help.into());
        self
    }

    /// The same, which may be tried again after so many seconds.
    #[must_use]
    pub(crate) fn after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The same for who has no use for HTTP.
    pub(crate) fn error(&self) -> Error {
        let message = self.fields.get("message").and_then(Value::as_str).unwrap_or("the run can't be read");
        Error::environment("S-31", "not-exported", message)
    }

    /// Its object.
    pub(crate) fn json(&self) -> Value {
        let mut object = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.fields.get("message"),
        });
        if let Some(known) = object.as_object_mut() {
            known.extend(self.fields.clone());
        }
        object
    }

    /// Its text, for who is not even heard.
    pub(crate) fn body(&self) -> Bytes {
        Bytes::from(self.json().to_string())
    }
}

/// The status that an error's code stands for, where it has one of its own.
fn status(error: &Error) -> Option<StatusCode> {
    let code = error.diagnostics.first().map_or("", |first| first.code);
    Some(match code {
        "unknown-run" | "unknown-node" | "unknown-thread" | "unknown-event" | "unknown-ask"
        | "unknown-tool" | "unknown-document" | "unknown-version" => StatusCode::NOT_FOUND,
        "run-id-used" | "run-driven" | "run-ended" | "ask-answered" | "ask-expired" | "which-ask"
        | "write-in-doubt" | "ambiguous-run" | "library-changed" => StatusCode::CONFLICT,
        "not-trusted" => StatusCode::FORBIDDEN,
        "state-full" => StatusCode::INSUFFICIENT_STORAGE,
        "state-locked" | "state-vanished" | "state-read-only" => StatusCode::SERVICE_UNAVAILABLE,
        _ => return None,
    })
}

/// Whether something is wrong with what is recorded, whoever asks.
fn about_state(error: &Error) -> bool {
    let code = error.diagnostics.first().map_or("", |first| first.code);
    ["state-", "run-", "no-documents"].iter().any(|part| code.starts_with(part))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let about_document =
            error.diagnostics.iter().any(|found| !found.file.is_empty() || found.line.is_some())
                || error.diagnostics.iter().filter(|found| found.severity == Severity::Error).count() > 1;
        let status = status(&error).unwrap_or(match error.kind {
            ErrorKind::Usage if about_document => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::Environment if about_state(&error) => StatusCode::INTERNAL_SERVER_ERROR,
            // What was asked for needs what this machine does not have: a model, an interpreter, isolation.
            ErrorKind::Environment => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        });
        let mut fields = match error.json().get_mut("error").map(Value::take) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        if status == StatusCode::UNPROCESSABLE_ENTITY
            && let Some(all) = check_json(&error.diagnostics).get_mut("diagnostics").map(Value::take)
        {
            fields.insert("diagnostics".to_owned(), all);
        }
        Self { status, fields, retry_after: None, allow: None }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        Error::from(error).into()
    }
}
