//! The protocol over HTTP.

use super::config::Hidden;
use super::trouble::{Trouble, line};
use crate::http::{Http, chain, shown};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::service::ClientInitializeError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;

/// Opens the way to a server; nothing is sent yet.
///
/// # Errors
/// The address is none, a header can't be sent, or no client can be set up.
pub(super) fn transport(
    server: &str,
    url: &Hidden,
    headers: &BTreeMap<String, Hidden>,
    http: &Http,
    longest: usize,
) -> Result<StreamableHttpClientTransport<Client>, Trouble> {
    let wrong = |message: String| Trouble::lasting(format!("the MCP server `{server}`: {message}"));
    let address = Url::parse(&url.0).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let address = address.filter(Url::has_host).ok_or_else(|| {
        wrong("its `url` is no http or https address".into()).help("write url = \"https://HOST/mcp\"")
    })?;
    let mut sent = HashMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&value.0).ok());
        let Some((header, mut value)) = header else {
            return Err(wrong(format!("the header `{name}` has characters that no header may have")));
        };
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let client = http.client(&address).map_err(wrong)?;
    let config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
        .custom_headers(sent)
        .max_sse_event_size(longest);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The address as messages show it.
pub(super) fn place(url: &Hidden) -> String {
    Url::parse(&url.0).map(|url| shown(&url)).unwrap_or_else(|_| "its address".to_owned())
}

/// Why a conversation over HTTP did not begin.
pub(super) fn not_begun(server: &str, url: &Hidden, error: &ClientInitializeError) -> Trouble {
    match error {
        ClientInitializeError::TransportError { error, .. } => trouble(server, url, error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_begun(server, url, fallback),
        other => trouble(server, url, other),
    }
}

/// Why a request over HTTP failed.
pub(super) fn trouble(server: &str, url: &Hidden, error: &(dyn Error + 'static)) -> Trouble {
    let place = place(url);
    let refused = || {
        Trouble::lasting(format!("the MCP server `{server}` at {place} wants another authorization"))
            .help("give it a key: headers = { Authorization = \"Bearer ${NAME_OF_A_VARIABLE}\" }")
    };
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
                return refused();
            }
            Some(StreamableHttpError::HttpStatus(status)) => {
                let message =
                    format!("the MCP server `{server}` at {place} answers with status {}", status.status);
                let seconds =
                    status.retry_after.as_deref().and_then(|after| after.trim().parse::<u64>().ok());
                let retry_after_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
                return Trouble { retry_after_ms, ..Trouble::passing(message) };
            }
            Some(StreamableHttpError::Client(error)) if error.is_connect() => {
                let why = chain(error);
                return Trouble::passing(format!(
                    "the MCP server `{server}` at {place} can't be reached: {why}"
                ))
                .help("check that it runs, and its `url`");
            }
            Some(StreamableHttpError::ReservedHeaderConflict(name)) => {
                let message =
                    format!("the MCP server `{server}`: the header `{name}` belongs to the protocol");
                return Trouble::lasting(message).help("leave it out of `headers`");
            }
            Some(StreamableHttpError::UnexpectedServerResponse(said))
                if said.starts_with("HTTP 401") || said.starts_with("HTTP 403") =>
            {
                return refused();
            }
            Some(StreamableHttpError::UnexpectedServerResponse(said)) if said.starts_with("HTTP 404") => {
                let message = format!("there is no MCP server at {place} (status 404)");
                return Trouble::lasting(message).help(format!("check the `url` of `{server}`"));
            }
            Some(other) => return strange(server, &place, other),
            None => next = error.source(),
        }
    }
    strange(server, &place, error)
}

fn strange(server: &str, place: &str, error: &(dyn Error + 'static)) -> Trouble {
    let why = line(&chain(error));
    Trouble::passing(format!("the MCP server `{server}` at {place} does not answer as it should: {why}"))
}
