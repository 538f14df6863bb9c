//! Why a connection could not be made, in words that say what to do, and whether a later attempt can go better
//! (C-04, E-14).

use super::chain;
use reqwest::Url;
use rustls::{AlertDescription, CertificateError};
use std::error::Error;

/// A connection that could not be made.
#[derive(Debug, PartialEq)]
pub struct Trouble {
    /// What is wrong.
    pub words: String,
    /// What to do about it; may be empty.
    pub help: String,
    /// No later attempt can go better: a certificate that is not trusted, a proxy that wants a password.
    pub lasting: bool,
}

impl Trouble {
    /// Finds out what an error of connecting to `url` means.
    pub fn of(error: &(dyn Error + 'static), url: &Url) -> Self {
        let text = chain(error);
        if let Some(error) = find(error) {
            return tls(error, url);
        }
        if text.contains("proxy authorization required") {
            return Self {
                words: "the proxy refuses to connect (407): it wants a user and a password, or other ones"
                    .into(),
                help: format!("write them into {}, as http://USER:PASSWORD@HOST:PORT", proxy_variable(url)),
                lasting: true,
            };
        }
        let host = url.host_str().unwrap_or_default();
        // Addresses of this machine go past any proxy.
        let or_proxy = match super::is_loopback(url) {
            true => String::new(),
            false => format!("; or the proxy, if {} names one", proxy_variable(url)),
        };
        let (words, help) = if text.contains("tunnel error") {
            let what = text.rsplit("tunnel error").next().unwrap_or_default().trim_start_matches([':', ' ']);
            (
                format!("the proxy does not connect to it ({what})"),
                format!("check {}, or name {host} in NO_PROXY", proxy_variable(url)),
            )
        } else if text.contains("dns error") {
            (
                format!("the name {host} can't be resolved ({})", last(&text)),
                format!("check base_url{or_proxy}"),
            )
        } else if text.contains("Connection refused") {
            (
                "nothing listens there (connection refused)".to_owned(),
                format!("start the server, or check base_url{or_proxy}"),
            )
        } else if text.contains("tls handshake eof") {
            (
                "it closed the connection instead of agreeing on TLS".to_owned(),
                "check base_url: http:// instead of https://, or another port".to_owned(),
            )
        } else {
            (useful(&text), String::new())
        };
        Self { words, help, lasting: false }
    }
}

/// The TLS error in a chain. An I/O error hides the one it was made of from `source`.
fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

fn tls(error: &rustls::Error, url: &Url) -> Trouble {
    let host = url.host_str().unwrap_or_default();
    let trouble = |words: String, help: &str, lasting| Trouble { words, help: help.to_owned(), lasting };
    match error {
        rustls::Error::InvalidCertificate(error) => {
            let (what, help) = certificate(error, host);
            trouble(format!("its certificate is refused: {what}"), &help, true)
        }
        rustls::Error::InvalidMessage(_) => trouble(
            "what answers there does not speak TLS".to_owned(),
            "check base_url: http:// instead of https://, or another port",
            true,
        ),
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::CertificateRequired
            | AlertDescription::UnrecognisedName),
        ) => trouble(format!("it refuses the TLS connection ({alert:?})"), "check base_url", true),
        rustls::Error::PeerIncompatible(why) => trouble(
            format!("it offers no TLS that is understood ({why:?})"),
            "TLS 1.2 or 1.3 is needed",
            true,
        ),
        other => trouble(format!("the TLS connection fails ({other})"), "", false),
    }
}

/// What is wrong with a certificate, and what to do.
fn certificate(error: &CertificateError, host: &str) -> (String, String) {
    use CertificateError as E;
    let trust = "put the certificate of its issuer into a PEM file and name that in SSL_CERT_FILE (`selvedge doctor` \
                 says what is trusted now)";
    match error {
        E::Expired | E::ExpiredContext { .. } => (
            "it has expired".to_owned(),
            "have the server's certificate renewed, and check this machine's clock".to_owned(),
        ),
        E::NotValidYet | E::NotValidYetContext { .. } => {
            ("it is not valid yet".to_owned(), "check this machine's clock, and the server's".to_owned())
        }
        E::BadSignature => {
            ("another issuer of the same name as a trusted one has issued it".to_owned(), trust.to_owned())
        }
        E::UnknownIssuer => ("nobody whom this machine trusts has issued it".to_owned(), trust.to_owned()),
        E::NotValidForName => (
            format!("it is not for the name {host}"),
            "put a name that the certificate has into base_url".to_owned(),
        ),
        E::NotValidForNameContext { presented, .. } => {
            // As in `DnsName("localhost")`.
            let name = |shown: &String| shown.split('"').nth(1).unwrap_or(shown).to_owned();
            let names = presented.iter().take(5).map(name).collect::<Vec<_>>().join(", ");
            (
                format!("it is not for the name {host} but for {names}"),
                "put a name that the certificate has into base_url".to_owned(),
            )
        }
        E::Revoked => ("it was revoked".to_owned(), "have the server's certificate replaced".to_owned()),
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => (
            "it is the certificate of an issuer (CA:TRUE) and not of a server".to_owned(),
            format!("have the server show a certificate that this issuer signed, and {trust}"),
        ),
        other => (format!("{other}"), "have the server's certificate replaced".to_owned()),
    }
}

/// The variables that a proxy for this address may come from.
fn proxy_variable(url: &Url) -> &'static str {
    if url.scheme() == "https" { "HTTPS_PROXY (or ALL_PROXY)" } else { "HTTP_PROXY (or ALL_PROXY)" }
}

/// A chain without the levels that only say that something failed.
fn useful(text: &str) -> String {
    let mut rest = text;
    for level in ["error sending request", "client error (Connect)", "tcp connect error"] {
        rest = rest.strip_prefix(level).unwrap_or(rest).trim_start_matches([':', ' ']);
    }
    if rest.is_empty() { text.to_owned() } else { rest.to_owned() }
}

/// The innermost part of a chain.
fn last(text: &str) -> &str {
    text.rsplit(": ").next().unwrap_or(text)
}
