//! The protocol over HTTP: the way to a server, and what its troubles mean.

use super::client::{Bad, Failed, Headers, RESERVED, Wire};
use super::config::Hidden;
use super::error::{ServerError, line};
use super::handshake::begun_as;
use super::message::Reader;
use super::sse::Sse;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use selvedge_http::{Http, chain, shown};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// How often a stream that broke is taken up again in vain before the calls that wait for it fail.
const RESUMED: usize = 4;

/// The way to a server.
pub(super) struct Way {
    url: Url,
    headers: Headers,
    wire: Wire,
}

impl Way {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The address is none, a header can't be sent, or no client can be set up.
    pub(super) fn to(
        server: &str,
        url: &Hidden,
        headers: &BTreeMap<String, Hidden>,
        http: &Http,
        reader: &Reader,
    ) -> Result<Self, ServerError> {
        let wrong = |message: String| ServerError::lasting(format!("the MCP server `{server}`: {message}"));
        let address = Url::parse(&url.0).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = address.filter(Url::has_host).ok_or_else(|| {
            wrong("its `url` is no http or https address".into()).help("write url = \"https://HOST/mcp\"")
        })?;
        let mut sent = HashMap::new();
        for (name, value) in headers {
            if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
                return Err(wrong(format!("the header `{name}` belongs to the protocol"))
                    .help("leave it out of `headers`"));
            }
            let header =
                HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&value.0).ok());
            let Some((header, mut value)) = header else {
                return Err(wrong(format!("the header `{name}` has characters that no header may have")));
            };
            value.set_sensitive(true);
            sent.insert(header, value);
        }
        let wire = Wire::new(http.client(&url).map_err(wrong)?, reader);
        Ok(Self { url, headers: sent, wire })
    }

    /// Streamable HTTP.
    pub(super) fn transport(&self) -> StreamableHttpClientTransport<Wire> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            // A new session may be of another server than the one whose tools are known: it is begun anew, and asked for them.
            .reinit_on_expired_session(false);
        let mut again = ExponentialBackoff::default();
        again.max_times = Some(RESUMED);
        again.base_duration = Duration::from_millis(500);
        config.retry_config = Arc::new(again);
        StreamableHttpClientTransport::with_client(self.wire.clone(), config)
    }

    /// HTTP with SSE, as it was before.
    pub(super) async fn sse(&self) -> Result<Sse, Failed> {
        Sse::open(self.wire.clone(), &self.url, self.headers.clone()).await
    }
}

/// Whether a conversation did not begin as a server refuses it that speaks only the transport before streamable HTTP.
pub(super) fn may_be_older(error: &ClientInitializeError) -> bool {
    let refused = match error {
        ClientInitializeError::TransportError { error, .. } => found(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return may_be_older(fallback),
        _ => None,
    };
    matches!(refused, Some(StreamableHttpError::Client(Bad::Refused { status: 400 | 404 | 405, .. })))
        || matches!(error, ClientInitializeError::JsonRpcError(_))
}

/// The address as messages show it.
pub(super) fn place(url: &Hidden) -> String {
    Url::parse(&url.0).map(|url| shown(&url)).unwrap_or_else(|_| "its address".to_owned())
}

/// Why a conversation over HTTP did not begin.
pub(super) fn not_begun(server: &str, url: &Hidden, error: &ClientInitializeError) -> ServerError {
    match error {
        ClientInitializeError::TransportError { error, .. } => trouble(server, url, error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_begun(server, url, fallback),
        ClientInitializeError::JsonRpcError(_) => ServerError::passing(format!(
            "the MCP server `{server}` at {} does not begin as MCP has it: {}",
            place(url),
            line(&begun_as(error))
        )),
        other => trouble(server, url, other),
    }
}

/// Whether a request was refused because its session is no more: nothing was done about it.
pub(super) fn is_expired(error: &ServiceError) -> bool {
    matches!(bad(error), Some(Bad::Lost { .. }))
}

/// Whether it may be: what was refused was refused, and the next request had better be made in a new session.
pub(super) fn may_be_expired(error: &ServiceError) -> bool {
    matches!(bad(error), Some(Bad::Unclear { .. }))
}

fn bad(error: &ServiceError) -> Option<&Bad> {
    let ServiceError::TransportSend(error) = error else { return None };
    match found(error) {
        Some(StreamableHttpError::Client(bad)) => Some(bad),
        _ => None,
    }
}

/// Whether a request can't have reached whoever does what it asks for: there was no connection, or it was turned away before.
pub(super) fn is_unsent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    match found(error) {
        Some(StreamableHttpError::AuthRequired(_)) => true,
        Some(StreamableHttpError::Client(bad)) => match bad {
            Bad::Wire(error) => error.is_connect(),
            Bad::Refused { status, .. } => *status == 429,
            Bad::Moved { .. } | Bad::Lost { .. } => true,
            Bad::NoMessage(_) | Bad::NoAnswer { .. } | Bad::Unclear { .. } => false,
        },
        _ => false,
    }
}

/// The transport's own error in one that is told.
fn found<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e StreamableHttpError<Bad>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref() {
            return Some(own);
        }
        next = error.source();
    }
    None
}

/// Why a request over HTTP failed.
pub(super) fn trouble(server: &str, url: &Hidden, error: &(dyn Error + 'static)) -> ServerError {
    let place = place(url);
    let strange = |error: &(dyn Error + 'static)| {
        let why = line(&chain(error));
        ServerError::passing(format!(
            "the MCP server `{server}` at {place} does not answer as it should: {why}"
        ))
    };
    match found(error) {
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            ServerError::lasting(format!("the MCP server `{server}` at {place} wants another authorization"))
                .help("give it a key: headers = { Authorization = \"Bearer ${NAME_OF_A_VARIABLE}\" }")
        }
        Some(StreamableHttpError::ServerDoesNotSupportSse) => {
            let message = format!("the MCP server `{server}` at {place} answers with no stream of events");
            ServerError::lasting(message).help("leave `type` out, or write type = \"http\"")
        }
        Some(StreamableHttpError::Client(bad)) => match bad {
            Bad::Wire(error) if error.is_connect() => {
                let why = chain(error);
                ServerError::passing(format!("the MCP server `{server}` at {place} can't be reached: {why}"))
                    .help("check that it runs, and its `url`")
            }
            Bad::Wire(error) => strange(error),
            Bad::Moved { status, to } => {
                let message = format!("the MCP server `{server}` at {place} is at {to} (status {status})");
                ServerError::lasting(message).help("write that address as its `url`, if it is the right one")
            }
            Bad::Lost { .. } => ServerError::passing(format!(
                "the MCP server `{server}` at {place} has ended the session: {bad}"
            )),
            Bad::Refused { status: 404, said, .. } => {
                ServerError::lasting(format!("there is no MCP server at {place} (status 404{said})"))
                    .help(format!("check the `url` of `{server}`"))
            }
            Bad::Refused { status, said, retry_after } if *status == 429 || *status >= 500 => {
                let message =
                    format!("the MCP server `{server}` at {place} answers with status {status}{said}");
                let seconds = retry_after.as_deref().and_then(|after| after.trim().parse::<u64>().ok());
                let retry_after_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
                ServerError { retry_after_ms, ..ServerError::passing(message) }
            }
            // What it refuses once it refuses again.
            Bad::Refused { .. } | Bad::Unclear { .. } => {
                ServerError::lasting(format!("the MCP server `{server}` at {place} refuses: {bad}"))
            }
            Bad::NoMessage(_) | Bad::NoAnswer { .. } => strange(bad),
        },
        Some(other) => strange(other),
        None => strange(error),
    }
}
