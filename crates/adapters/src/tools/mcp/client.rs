//! Requests of the protocol over HTTP. Answers are read within the limits of a run, however they come: as one JSON body, or
//! as events (E-28).

use super::message::Reader;
use crate::http::shown;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{BoxStream, StreamExt};
use futures_util::{Stream, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use rmcp_sse::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// Headers that are the protocol's own.
pub(super) const RESERVED: [&str; 5] =
    ["accept", "content-type", SESSION, LAST_EVENT, "mcp-protocol-version"];

/// The longest answer that is no success, in bytes: it is told to people.
const REFUSAL: usize = 64 << 10;
/// How much of it is told.
const TOLD: usize = 300;
/// The time between two streams that are opened: a server that cuts each at once is not asked in a loop.
const BETWEEN: Duration = Duration::from_millis(250);

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Bad {
    /// There is no connection, or it broke.
    #[error(transparent)]
    Wire(reqwest::Error),
    /// The server is somewhere else.
    #[error("it redirects to {to} (status {status})")]
    Moved { status: u16, to: String },
    /// A status that is no success.
    #[error("it answers with status {status}{said}")]
    Refused { status: u16, said: String },
    /// No message of the protocol.
    #[error("it answers with what is no message of the protocol: {0}")]
    NoMessage(String),
}

type Failed = StreamableHttpError<Bad>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

fn wire(error: reqwest::Error) -> Failed {
    // The address may have a key in it (C-06).
    StreamableHttpError::Client(Bad::Wire(error.without_url()))
}

/// A client whose answers go through a [`Reader`].
#[derive(Clone)]
pub(super) struct Wire {
    client: Client,
    reader: Reader,
    /// The longest body and event, in bytes.
    longest: usize,
    /// When the last stream was opened.
    opened: Arc<Mutex<Option<Instant>>>,
}

impl Wire {
    pub(super) fn new(client: Client, (reader, longest): (&Reader, usize)) -> Self {
        Self { client, reader: reader.clone(), longest, opened: Arc::default() }
    }

    async fn send(
        request: RequestBuilder,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, Failed> {
        let mut request = request.header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(session) = session {
            request = request.header(SESSION, &*session);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.headers(headers.into_iter().collect()).send().await.map_err(wire)?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new())))
            }
            status if status.is_redirection() => {
                let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
                let to = to.and_then(|to| response.url().join(to).ok());
                let to = to.map_or_else(|| "nowhere".to_owned(), |to: Url| shown(&to));
                Err(StreamableHttpError::Client(Bad::Moved { status: status.as_u16(), to }))
            }
            _ => Ok(response),
        }
    }

    /// What an answer that is no success means for `message`.
    async fn refused(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let (status, json) = (response.status(), is(response.headers(), JSON));
        let failed = status_error(status, response.headers());
        let body = body(response, REFUSAL).await.unwrap_or_default().unwrap_or_default();
        // The error that the server answers is told in its own words.
        let said = self.reader.read(&body).filter(|said| matches!(said, JsonRpcMessage::Error(_)));
        if let ClientJsonRpcMessage::Request(asked) = message
            && matches!(asked.request, ClientRequest::DiscoverRequest(_))
            && status.is_client_error()
            && failed.is_none()
        {
            // Servers that do not know the question refuse it in many ways; none of them knows whose answer it is.
            let error = match said {
                Some(JsonRpcMessage::Error(said)) => said.error,
                _ => ErrorData::invalid_request(format!("status {status}"), None),
            };
            let error = JsonRpcMessage::error(error, Some(asked.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        match said {
            Some(error) if json => Ok(StreamableHttpPostResponse::Json(error, None)),
            _ => Err(failed.unwrap_or_else(|| {
                let said = match told(&body) {
                    said if said.is_empty() => said,
                    said => format!(": {said}"),
                };
                StreamableHttpError::Client(Bad::Refused { status: status.as_u16(), said })
            })),
        }
    }

    /// The events of an answer to `asked`; one that is too long is the end of them.
    fn events(&self, response: Response, asked: Option<RequestId>) -> Events {
        let reader = self.reader.clone();
        let bytes = bounded(response.bytes_stream(), self.longest);
        let event = move |event: Result<Sse, SseError>| match (event, &asked) {
            (Ok(Sse { data: Some(data), event, id, retry }), _) => {
                Ok(Sse { data: Some(reader.readable(data)), event, id, retry })
            }
            (Err(SseError::Body(error)), Some(asked))
                if matches!(error.downcast_ref(), Some(Broken::TooLong)) =>
            {
                let data = serde_json::to_string(&reader.too_long(asked)).unwrap_or_default();
                Ok(Sse::default().data(data))
            }
            (event, _) => event,
        };
        SseStream::from_bytes_stream(bytes).map(event).boxed()
    }
}

impl StreamableHttpClient for Wire {
    type Error = Bad;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session.is_some();
        let request = self.client.post(&*uri).json(&message);
        let response = Self::send(request, session, token, headers).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.refused(response, &message).await;
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        // Nothing is said to what is no question.
        let ClientJsonRpcMessage::Request(asked) = message else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if is(response.headers(), EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response, Some(asked.id)), session));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let message = match body(response, self.longest).await.map_err(wire)? {
            None => self.reader.too_long(&asked.id),
            Some(body) => self
                .reader
                .read(&body)
                .ok_or_else(|| StreamableHttpError::Client(Bad::NoMessage(told(&body))))?,
        };
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        _: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post_message(uri, message, session, token, headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        // Whatever the server says to that, the session is over.
        Self::send(self.client.delete(&*uri), Some(session), token, headers).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let next = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let next = opened.map_or(now, |opened| now.max(opened + BETWEEN));
            *opened = Some(next);
            next
        };
        sleep_until(next).await;
        let mut request = self.client.get(&*uri);
        if let Some(last) = last_event {
            request = request.header(LAST_EVENT, last);
        }
        let response = Self::send(request, session, token, headers).await?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            let refused = Bad::Refused { status: status.as_u16(), said: String::new() };
            return Err(StreamableHttpError::Client(refused));
        }
        if !is(response.headers(), EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response, None))
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        _: usize,
    ) -> Result<Events, Failed> {
        self.get_stream(uri, session, last_event, token, headers).await
    }
}

/// Whether a body is of this type, whatever follows it: `application/json; charset=utf-8`.
fn is(headers: &HeaderMap, kind: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
}

/// A status that may pass by itself (E-14), with what the server says about when.
fn status_error(status: StatusCode, headers: &HeaderMap) -> Option<Failed> {
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let after = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(str::to_owned);
    Some(HttpStatusError::new(status.as_u16(), after).into())
}

/// The whole body; `None` if it is longer than that.
async fn body(response: Response, longest: usize) -> Result<Option<Bytes>, reqwest::Error> {
    let mut bytes = response.bytes_stream();
    let mut body = BytesMut::new();
    while let Some(piece) = bytes.try_next().await? {
        if piece.len() > longest.saturating_sub(body.len()) {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body.freeze()))
}

/// The beginning of a body, for people.
fn told(body: &[u8]) -> String {
    super::trouble::line(&String::from_utf8_lossy(body)).chars().take(TOLD).collect()
}

/// Why events end before their end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Wire(reqwest::Error),
    #[error("an event is longer than a message may be")]
    TooLong,
}

/// Bytes of events, of which none is longer than `longest`: an event ends with an empty line.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    longest: usize,
) -> BoxStream<'static, Result<Bytes, Broken>> {
    let counted = (bytes.boxed(), 0_usize, 0_usize);
    let stream = futures_util::stream::unfold(Some(counted), move |state| async move {
        let (mut bytes, mut event, mut line) = state?;
        let piece = match bytes.next().await? {
            Ok(piece) => piece,
            Err(error) => return Some((Err(Broken::Wire(error.without_url())), None)),
        };
        for byte in &piece {
            match byte {
                b'\n' if line == 0 => event = 0,
                b'\n' => line = 0,
                b'\r' => {}
                _ => line += 1,
            }
            event += 1;
            if event > longest {
                return Some((Err(Broken::TooLong), None));
            }
        }
        Some((Ok(piece), Some((bytes, event, line))))
    });
    stream.boxed()
}
