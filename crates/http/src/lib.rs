//! What models and tools share: the HTTP client, the secrets that are sent with it, and halves of characters.
//!
//! Clients are built when first needed: a run against a server on this machine never loads root certificates.

mod proxy;
mod public;
mod roots;
mod secret;
pub mod surrogates;
mod trouble;

pub use proxy::{PROXY_VARIABLES, Proxies, ProxyInUse, proxy_passwords, url_passwords};
pub use public::NotPublic;
pub use roots::{Certificates, Roots};
pub use secret::{Flow, REDACTED, Secret, Secrets};
pub use trouble::Trouble;

use reqwest::{Client, Url};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What every request says it comes from.
pub const USER_AGENT: &str = concat!("selvedge/", env!("CARGO_PKG_VERSION"));

/// How long a connection to another machine may take to come about: one that answers takes far less, and one that
/// does not would take minutes to give up.
const CONNECT: Duration = Duration::from_secs(15);

/// What the environment says about requests to other machines and what can't be used: no such request can be made, and
/// none is made past it (C-06).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misconfigured {
    /// A stable name: `bad-proxy` or `bad-certificates`.
    pub code: &'static str,
    /// Which variable is wrong, and what is wrong with it. Holds no password.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.help)
    }
}

/// Why there is no client for an address.
#[derive(Debug)]
pub enum Unreached {
    /// It is not public.
    NotPublic(NotPublic),
    /// A sentence for the user about what can't be used.
    Unusable(String),
}

/// Whether a URL names this machine: `localhost`, `*.localhost`, `127.0.0.0/8`, `::1`, or `0.0.0.0` and `::`, which a
/// connection takes for it (C-01).
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let near = |ip: std::net::Ipv4Addr| ip.is_loopback() || ip.is_unspecified();
    match bare.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => near(ip),
        Ok(std::net::IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.to_ipv4_mapped().is_some_and(near)
        }
        Err(_) => {
            let name = bare.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// Whether an answer of this status may be another one later, so that what was asked is asked again (E-14).
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// A URL as faults and logs show it: without user, password, query and fragment, where keys may hide (C-06).
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both setters fail only on URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// The shared clients: HTTP/1.1 with keep-alive, no redirects, no time-outs of their own.
///
/// Cloning shares the connection pools. Redirects are not followed because a request carries a key and a body
/// that were meant for one address; who calls sees the 3xx answer.
#[derive(Clone)]
pub struct Http {
    clients: Arc<Clients>,
}

#[derive(Default)]
struct Clients {
    local: OnceLock<Client>,
    local_tls: OnceLock<Client>,
    outside: OnceLock<Client>,
    public: OnceLock<Client>,
    elsewhere: OnceLock<Client>,
    proxies: Proxies,
    certificates: Certificates,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Clients of a process whose variables these are. Nothing is built yet.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let (proxies, certificates) = (Proxies::of(&variable), Certificates::of(&variable));
        Self { clients: Arc::new(Clients { proxies, certificates, ..Clients::default() }) }
    }

    /// The client for a URL. What goes to this machine goes past any proxy, and plain HTTP to it without TLS;
    /// everything else honours `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. The system's certificates
    /// are trusted, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    ///
    /// # Errors
    /// A sentence for the user, when the system's root certificates can't be loaded, or the proxy that a variable names
    /// can't be used.
    pub fn client(&self, url: &Url) -> Result<Client, String> {
        match (is_loopback(url), url.scheme()) {
            (true, "http") => made_once(&self.clients.local, local_client),
            (true, _) => made_once(&self.clients.local_tls, || self.tls_client(Client::builder().no_proxy())),
            (false, _) => {
                self.proxies().check(url).map_err(|wrong| wrong.to_string())?;
                let outside = || {
                    let builder = self.proxies().of_client(Client::builder().connect_timeout(CONNECT));
                    self.tls_client(builder.map_err(|error| unbuilt(&error))?)
                };
                made_once(&self.clients.outside, outside)
            }
        }
    }

    /// The client for a URL that is to lead to a public address: it connects to no other, whatever a name means. Where a
    /// proxy is in use, it is the proxy that resolves names, and that decides where they may lead; addresses are checked here
    /// all the same.
    ///
    /// # Errors
    /// An address that is not public, or what [`Http::client`] says.
    pub fn public_client(&self, url: &Url) -> Result<Client, Unreached> {
        self.but(public::kind, &self.clients.public, url)
    }

    /// The client for a URL that is to lead anywhere but to this machine, in the same way.
    ///
    /// # Errors
    /// An address of this machine, or what [`Http::client`] says.
    pub fn client_elsewhere(&self, url: &Url) -> Result<Client, Unreached> {
        self.but(public::here, &self.clients.elsewhere, url)
    }

    fn but(
        &self,
        refused: public::Refused,
        client: &OnceLock<Client>,
        url: &Url,
    ) -> Result<Client, Unreached> {
        let proxies = self.proxies().hosts();
        public::check(url, &proxies, refused).map_err(Unreached::NotPublic)?;
        self.proxies().check(url).map_err(|wrong| Unreached::Unusable(wrong.to_string()))?;
        let made = || {
            let resolver = Arc::new(public::Public { proxies, refused });
            let builder = Client::builder().connect_timeout(CONNECT).dns_resolver(resolver);
            self.tls_client(self.proxies().of_client(builder).map_err(|error| unbuilt(&error))?)
        };
        made_once(client, made).map_err(Unreached::Unusable)
    }

    /// Looks, before anything is begun, at what the environment says about requests to `url`: the proxy that they go
    /// through, and the certificates that are trusted. Nothing is connected, nor are the system's certificates loaded.
    ///
    /// # Errors
    /// Variables that can't be used, and of which [`Http::client`] would say so.
    pub fn check(&self, url: &Url) -> Result<(), Misconfigured> {
        if !is_loopback(url) {
            self.proxies().check(url)?;
        }
        self.clients.certificates.check(url)
    }

    fn proxies(&self) -> &Proxies {
        &self.clients.proxies
    }

    fn tls_client(&self, builder: reqwest::ClientBuilder) -> Result<Client, String> {
        let tls = tls_builder()?.with_platform_verifier().map_err(|error| {
            match self.clients.certificates.roots() {
                Err(wrong) => wrong.to_string(),
                Ok(_) => format!("the root certificates can't be loaded ({error})"),
            }
        })?;
        build(builder, tls.with_no_client_auth())
    }
}

/// The client that there is, or else is made now. One that can't be made is tried again by who is next: what was in the way may be gone.
fn made_once(
    client: &OnceLock<Client>,
    make: impl FnOnce() -> Result<Client, String>,
) -> Result<Client, String> {
    if let Some(client) = client.get() {
        return Ok(client.clone());
    }
    let made = make()?;
    Ok(client.get_or_init(|| made).clone())
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS can't be set up: {error}"))
}

fn build(builder: reqwest::ClientBuilder, tls: ClientConfig) -> Result<Client, String> {
    builder
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| unbuilt(&error))
}

fn unbuilt(error: &reqwest::Error) -> String {
    format!("the HTTP client can't be set up: {}", chain(error))
}

fn local_client() -> Result<Client, String> {
    // The client library wants some TLS configuration; one that trusts nobody costs no file access.
    let tls = tls_builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    build(Client::builder().no_proxy(), tls)
}

/// An error with what lies behind it, outermost first, without repeats and without the URL.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(inner) = next {
        let part = inner.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        for local in ["http://localhost:1/v1", "http://127.9.0.1", "http://[::1]:8/", "http://a.localhost"]
            .into_iter()
            .chain(["http://0.0.0.0:8000/v1", "http://0/", "http://[::]:1", "http://[::ffff:0.0.0.0]"])
        {
            assert!(is_loopback(&url(local)), "{local}");
        }
        for outside in
            ["http://localhost.example.com", "http://10.0.0.1", "https://[2001:db8::1]/", "http://0.0.0.1"]
        {
            assert!(!is_loopback(&url(outside)), "{outside}");
        }
    }

    #[test]
    fn urls_are_shown_without_what_may_be_secret() {
        assert_eq!(shown(&url("http://u:p@h/v1?key=k#f")), "http://h/v1");
    }
}
