//! Answers.

use crate::problem::Problem;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;

/// An answer that comes later.
pub(crate) type Later = Pin<Box<dyn Future<Output = Result<Reply, Problem>> + Send>>;

/// A body: all at once, or as it comes.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Nothing from anywhere else, nothing inline, and no page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
                      manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer.
pub(crate) struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    content: Content,
}

/// What is in it.
pub(crate) enum Content {
    Nothing,
    /// A JSON text, to be shown as all of them are.
    Json(String),
    Bytes(&'static str, Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl Reply {
    /// JSON.
    pub(crate) fn json(value: impl std::fmt::Display) -> Self {
        Self::of(StatusCode::OK, Content::Json(value.to_string()))
    }

    /// Anything.
    pub(crate) fn of(status: StatusCode, content: Content) -> Self {
        Self { status, headers: Vec::new(), content }
    }

    /// The same with another status.
    #[must_use]
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same with a header, if its value can be one.
    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// What it says as JSON.
    pub(crate) fn into_json(self) -> Value {
        match self.content {
            Content::Json(text) => serde_json::from_str(&text).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    /// The response: `shown` makes of a JSON text what anybody may see.
    pub(crate) fn response(self, shown: impl Fn(&str) -> String) -> Response<Body> {
        let (kind, body) = match self.content {
            Content::Nothing => (None, full(Bytes::new())),
            Content::Json(json) => (Some("application/json"), full(Bytes::from(shown(&json) + "\n"))),
            Content::Bytes(kind, bytes) => (Some(kind), full(bytes)),
            Content::Stream(stream) => {
                let frames = futures_util::StreamExt::map(stream, |bytes| Ok(Frame::data(bytes)));
                (Some("text/event-stream"), BodyExt::boxed_unsync(StreamBody::new(frames)))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

impl Problem {
    /// The response.
    pub(crate) fn response(self, shown: impl Fn(&str) -> String) -> Response<Body> {
        let reply = Reply::of(self.status, Content::Json(self.json().to_string()))
            .header(CONTENT_TYPE, "application/problem+json");
        let mut response = reply.response(shown);
        let headers = response.headers_mut();
        headers.extend(self.retry_after.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds))));
        headers.extend(self.allow.and_then(|allow| Some((ALLOW, HeaderValue::from_str(&allow).ok()?))));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}
