//! `http_get`: one document, with its redirects, within limits. A refusal by the site is an output.

use super::{BuiltinContext, passing};
use crate::failures::{denied, input_error, over_limit, tool_failure};
use crate::permissions::Network;
use reqwest::{Client, Response, Url};
use selvedge_engine::Failure;
use selvedge_http::{NotPublic, Trouble, Unreached, chain, is_loopback, shown};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How many redirects are followed.
const REDIRECTS: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetArgs {
    url: String,
}

pub(super) async fn get(bench: &BuiltinContext, args: GetArgs) -> Result<Value, Failure> {
    let mut url =
        Url::parse(&args.url).map_err(|e| input_error(format!("`{}` is no address: {e}", args.url)))?;
    let (started_outside, mut led) = (!is_loopback(&url), false);
    for _ in 0..=REDIRECTS {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(input_error(format!("`{}`: only http and https are fetched", shown(&url))));
        }
        let sent = client(bench, &url, led)?.get(url.clone()).send().await;
        let response = sent.map_err(|e| unreachable(&url, e, led && bench.network == Network::Local))?;
        match redirect(&url, &response) {
            None => return document(bench, &url, response).await,
            Some(next) => url = next,
        }
        // A site must not be able to reach, through us, what listens on this machine only, whatever name it has for that.
        led = started_outside;
        if led && is_loopback(&url) {
            return Err(led_here(&url));
        }
    }
    Err(tool_failure(
        "tool_execution_error",
        format!("more than {REDIRECTS} redirects, the last to {}", shown(&url)),
    ))
}

/// The client for an address that may be reached; `led` there by a site.
fn client(bench: &BuiltinContext, url: &Url, led: bool) -> Result<Client, Failure> {
    let unusable = |e| tool_failure("tool_execution_error", e);
    let local = bench.network == Network::Local;
    let client = match (local, led) {
        (true, false) => return bench.http.client(url).map_err(unusable),
        (true, true) => bench.http.client_elsewhere(url),
        (false, _) => bench.http.public_client(url),
    };
    client.map_err(|unreached| match unreached {
        Unreached::NotPublic(_) if local => led_here(url),
        Unreached::NotPublic(what) => not_public(url, &what),
        Unreached::Unusable(why) => unusable(why),
    })
}

fn led_here(url: &Url) -> Failure {
    denied(format!("a site redirected to this machine ({}), which is not followed", shown(url)))
}

fn not_public(url: &Url, what: &NotPublic) -> Failure {
    denied(format!(
        "{} is not fetched: {what}, and `http_get` reaches public addresses only; allow it with `--allow-network=local`, or \
         `allow_network = \"local\"` in `[tools]` of selvedge.toml",
        shown(url)
    ))
}

fn redirect(url: &Url, response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let place = response.headers().get("location")?.to_str().ok()?;
    url.join(place).ok()
}

/// No connection: in the words that model endpoints have for it (C-04).
fn unreachable(url: &Url, error: reqwest::Error, local: bool) -> Failure {
    if let Some(what) = NotPublic::find(&error) {
        return if local { led_here(url) } else { not_public(url, what) };
    }
    let Trouble { words, help, lasting } = Trouble::of(&error.without_url(), url);
    let mut message = format!("{} can't be reached: {words}", shown(url));
    if !help.is_empty() {
        // What a model's endpoint is configured with is an argument here.
        message.push_str(&format!("; {}", help.replace("base_url", "the address")));
    }
    Failure { transient: !lasting, ..passing(message) }
}

/// A connection that broke before the reply was whole.
fn broken(url: &Url, error: reqwest::Error) -> Failure {
    passing(format!("{} broke the connection off: {}", shown(url), chain(&error.without_url())))
}

async fn document(bench: &BuiltinContext, url: &Url, mut response: Response) -> Result<Value, Failure> {
    let status = response.status().as_u16();
    let mut headers = Map::new();
    for (name, value) in response.headers() {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        // Fields that come more than once are one list, as HTTP has it.
        match headers.get_mut(name.as_str()) {
            Some(Value::String(first)) => *first = format!("{first}, {text}"),
            _ => drop(headers.insert(name.as_str().to_owned(), text.into())),
        }
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|e| broken(url, e))? {
        body.extend_from_slice(&piece);
        if body.len() as u64 > bench.limits.tool_output_bytes {
            return Err(over_limit("http_get", &bench.limits));
        }
    }
    Ok(json!({ "status": status, "headers": headers, "body": text(body, &headers) }))
}

/// The body as text: UTF-8, or Latin-1 where the site says so; anything else with replacement characters.
fn text(body: Vec<u8>, headers: &Map<String, Value>) -> String {
    let kind = headers.get("content-type").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    if kind.contains("charset=iso-8859-1") || kind.contains("charset=latin1") {
        return body.iter().map(|byte| char::from(*byte)).collect();
    }
    String::from_utf8(body).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
