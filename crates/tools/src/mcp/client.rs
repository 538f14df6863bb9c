//! Requests of the protocol over HTTP. Answers are read within the limits of a run, however they come: as one JSON body, or
//! as events (E-28).

mod body;
mod listening;
mod lost;
mod refused;

use super::message::{Reader, cancelled, id_of, same};
use body::{Broken, body, bounded};
use futures_util::stream::{BoxStream, StreamExt};
use listening::Listening;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp_sse::{Sse, SseStream};
use selvedge_http::shown;
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
    Refused { status: u16, said: String, retry_after: Option<String> },
    /// There is no such session, or no more: nothing was done about what was asked in it.
    #[error("it answers with status {status}{said}")]
    Lost { status: u16, said: String },
    /// Perhaps there is no such session: the server refuses, and says neither what nor whom.
    #[error("it answers with status {status}{said}")]
    Unclear { status: u16, said: String },
    /// No message of the protocol.
    #[error("it answers with what is no message of the protocol: {0}")]
    NoMessage(String),
    /// No answer, where one was asked for.
    #[error(
        "it answers with status {status}{said}, which is no answer to a request, and there is no stream on which one \
         could come"
    )]
    NoAnswer { status: u16, said: String },
}

pub(super) type Failed = StreamableHttpError<Bad>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

fn wire(error: reqwest::Error) -> Failed {
    // The address may have a key in it (C-06).
    StreamableHttpError::Client(Bad::Wire(error.without_url()))
}

/// A client whose answers go through a [`Reader`].
#[derive(Clone)]
pub(super) struct Wire {
    client: Client,
    reader: Reader,
    /// When the last stream was opened.
    opened: Arc<Mutex<Option<Instant>>>,
    /// The streams that are open, or being opened, for whatever the server says.
    listening: Listening,
}

impl Wire {
    pub(super) fn new(client: Client, reader: &Reader) -> Self {
        Self { client, reader: reader.clone(), opened: Arc::default(), listening: Listening::default() }
    }

    /// Who reads what it brings.
    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// A stream of all that a server of the older transport says.
    pub(super) async fn listen(&self, url: &Url, headers: Headers) -> Result<Events, Failed> {
        let response = Self::send(self.client.get(url.clone()), None, None, headers).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(status, response).await);
        }
        if !is(response.headers(), EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response, None))
    }

    /// Says something to one; the answer comes over its stream.
    pub(super) async fn say(
        &self,
        url: &Url,
        message: &ClientJsonRpcMessage,
        headers: Headers,
    ) -> Result<(), Failed> {
        let request = self.client.post(url.clone()).json(message);
        let response = Self::send(request, None, None, headers).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        match self.refusal(status, response).await {
            // Its sessions are streams: one that it does not know has ended with the server that knew it.
            StreamableHttpError::Client(Bad::Refused { status: status @ (400 | 404), said, .. })
                if said.to_ascii_lowercase().contains("session") =>
            {
                Err(StreamableHttpError::Client(Bad::Lost { status, said }))
            }
            refused => Err(refused),
        }
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

    async fn posted(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session.is_some();
        let request = self.client.post(uri).json(message);
        let response = Self::send(request, session, token, headers).await?;
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, message, has_session).await;
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        // Nothing is said to what is no question.
        let ClientJsonRpcMessage::Request(asked) = message else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if is(response.headers(), EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(response, Some(asked.id.clone())),
                session,
            ));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return self.accepted(response, message, &asked.id, session).await;
        }
        match body(response, self.reader.longest()).await.map_err(wire)? {
            None => Ok(StreamableHttpPostResponse::Json(self.reader.too_long(&asked.id), session)),
            Some(body) => self.answers(&body, &asked.id, session),
        }
    }

    /// The messages of a body that answers `asked`.
    fn answers(
        &self,
        body: &[u8],
        asked: &RequestId,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut answers = self.reader.answer(body, asked);
        match (answers.pop(), answers.is_empty()) {
            (Some(answer), true) if id_of(&answer).is_some_and(|id| same(id, asked)) => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            // Several in a list are as several events.
            (Some(last), false) => {
                answers.push(last);
                answers.sort_by_key(|answer| id_of(answer).is_some());
                let events = answers.into_iter().filter_map(|answer| serde_json::to_string(&answer).ok());
                let events: Vec<_> = events.map(|data| Ok(Sse::default().data(data))).collect();
                Ok(StreamableHttpPostResponse::Sse(futures_util::stream::iter(events).boxed(), session))
            }
            // No answer to it; nothing else will come.
            _ => Err(StreamableHttpError::Client(Bad::NoMessage(self.reader.told(body)))),
        }
    }

    /// The events of an answer to `asked`; one that is too long is the end of them.
    fn events(&self, response: Response, asked: Option<RequestId>) -> Events {
        let reader = self.reader.clone();
        let bytes = bounded(response.bytes_stream(), reader.longest());
        let event = move |event: Result<Sse, SseError>| match (event, &asked) {
            (Ok(Sse { data: Some(data), event, id, retry }), asked)
                if matches!(event.as_deref(), None | Some("" | "message")) =>
            {
                let read = reader.readable(data, asked.as_ref()).into_iter();
                let mut read: Vec<_> =
                    read.map(|data| Ok(Sse { event: event.clone(), ..Sse::default().data(data) })).collect();
                // Where it could be taken up is said even if nothing else is.
                match read.last_mut() {
                    Some(Ok(last)) => (last.id, last.retry) = (id, retry),
                    _ => read.push(Ok(Sse { data: None, event, id, retry })),
                }
                read
            }
            (Err(SseError::Body(error)), asked) if matches!(error.downcast_ref(), Some(Broken::TooLong)) => {
                let only = asked.clone().or_else(|| reader.only_one());
                let data = only.and_then(|asked| serde_json::to_string(&reader.too_long(&asked)).ok());
                let data = data.map(|data| Ok(Sse::default().data(data)));
                data.into_iter().chain([Err(SseError::Body(error))]).collect()
            }
            (event, _) => vec![event],
        };
        SseStream::from_bytes_stream(bytes).flat_map(move |e| futures_util::stream::iter(event(e))).boxed()
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
        match &message {
            ClientJsonRpcMessage::Request(asked) => self.reader.asked(&asked.id),
            other => cancelled(other).into_iter().for_each(|id| self.reader.given_up(id)),
        }
        let posted = self.posted(&uri, &message, session, token, headers).await;
        if let (Err(_), ClientJsonRpcMessage::Request(asked)) = (&posted, &message) {
            self.reader.given_up(&asked.id);
        }
        posted
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
        let open = self.listening.open();
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
            let refused = Bad::Refused { status: status.as_u16(), said: String::new(), retry_after: None };
            return Err(StreamableHttpError::Client(refused));
        }
        if !is(response.headers(), EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(open.during(self.events(response, None)))
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

/// What the server says about when to come again.
fn after(headers: &HeaderMap) -> Option<String> {
    headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(str::to_owned)
}
