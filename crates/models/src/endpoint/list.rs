//! The list of an endpoint's models.

use super::base_url;
use crate::protocol::{ModelPage, Protocol};
use crate::target::Target;
use crate::target::secrets;
use crate::{CallLimits, Provider};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use selvedge_engine::{Failure, FaultKind};
use selvedge_http::{Http, Secret, shown};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// The most pages of a list that are read.
const PAGES: usize = 20;

/// The names of an endpoint's models, in its order (C-01). Without `base_url` it is the provider's own.
///
/// # Errors
/// The faults of [`super::Endpoint`]'s calls; a permanent `provider_error` when the list is empty.
pub async fn list_models(
    http: &Http,
    provider: Provider,
    base_url: Option<&str>,
    key: Option<Secret>,
    key_variable: &str,
    wait: Duration,
) -> Result<Vec<String>, Failure> {
    let base = self::base_url(base_url.unwrap_or(provider.default_base_url()))
        .map_err(|error| Failure::permanent(FaultKind::ProviderError, error))?;
    let protocol = provider.protocol(&base, None);
    let url = protocol.models_url(&base, None);
    let (model, key_variable) = (String::new(), key_variable.to_owned());
    let secrets = secrets(key.as_ref(), &base);
    let longest_wait = CallLimits::default().rate_limit_wait;
    let target = Target { url, base: base.clone(), model, key, key_variable, secrets, longest_wait };
    let client = http.client(&base).map_err(|error| target.hopeless(error))?;
    let ask = pages(&*protocol, &base, &target, &client);
    let names =
        timeout(wait, ask).await.map_err(|_| target.late("sent no list of models", wait, "fixed"))??;
    if names.is_empty() {
        return Err(target
            .hopeless(format!("{} lists no model: load one, or name one with --model", shown(&target.url))));
    }
    Ok(names)
}

async fn pages(
    protocol: &dyn Protocol,
    base: &Url,
    target: &Target,
    client: &Client,
) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..PAGES {
        let found = page(protocol, &target.at(protocol.models_url(base, next.as_deref())), client).await?;
        names.extend(found.names);
        next = found.next;
        if next.is_none() {
            break;
        }
    }
    Ok(names)
}

async fn page(protocol: &dyn Protocol, target: &Target, client: &Client) -> Result<ModelPage, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    protocol.sign(&mut headers, target)?;
    let sent = client.get(target.url.clone()).headers(headers).send().await;
    let response = sent.map_err(|error| target.unreached(&error.without_url()))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = body(response, target).await?;
    if !status.is_success() {
        return Err(target.refused(status, &headers, &body));
    }
    protocol.models(&body).map_err(|error| {
        if let Some(error) = serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(|v| v.get("error"))
        {
            return target.in_reply(error, &headers);
        }
        target.unparsable(status, &error.to_string(), &String::from_utf8_lossy(&body))
    })
}

/// A list of models; the longest known one has some hundred kilobytes.
async fn body(mut response: Response, target: &Target) -> Result<Vec<u8>, Failure> {
    let limit = CallLimits::default().message_bytes;
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(target.broken("broke off its answer", Some(&error.without_url()))),
        }
        if body.len() > limit {
            return Err(target.too_long(limit));
        }
    }
}
