//! What requests to other machines go through: proxies, and the certificates that are trusted.

use super::{Report, Verdict};
use crate::environment::variable;
use crate::secrets::proxies;
use selvedge_adapters::http::{roots, shown};
use std::path::Path;

/// Looks at the variables; nobody is asked.
pub(super) fn look(report: &mut Report) {
    for (name, url) in proxies() {
        let whose = if url.username().is_empty() { "" } else { ", with a user and a password" };
        let address = shown(&url);
        let text = format!("{name}: {}{whose}", address.trim_end_matches('/'));
        if matches!(url.scheme(), "http" | "https") {
            report.add("proxy", Verdict::Ok, text);
        } else {
            report.add(
                "proxy",
                Verdict::Warning,
                format!("{text}, which is no kind of proxy that can be used"),
            );
            report.help(format!(
                "set {name} to an http:// or https:// address; as it is, requests may go past it"
            ));
        }
    }
    if let Some(hosts) = variable("NO_PROXY").or_else(|| variable("no_proxy"))
        && !proxies().is_empty()
    {
        report.add("proxy", Verdict::Ok, format!("not for {hosts}, nor for this machine"));
    }
    certificates(report);
}

fn certificates(report: &mut Report) {
    let file = variable("SSL_CERT_FILE");
    if let Some(file) = file.as_deref().filter(|file| !Path::new(file).is_file()) {
        report.add("tls", Verdict::Broken, format!("SSL_CERT_FILE names {file}, which is not there"));
        return report.help("correct it, or leave it out for the system's certificates");
    }
    let place = file.map_or_else(|| "the system's".to_owned(), |file| format!("of SSL_CERT_FILE, {file}"));
    match roots() {
        Ok(None) => report.add("tls", Verdict::Ok, "the system decides which certificates are trusted"),
        Ok(Some((count, wrong))) => {
            let verdict = if wrong.is_empty() { Verdict::Ok } else { Verdict::Warning };
            report.add("tls", verdict, format!("{count} root certificates are trusted, {place}"));
            if !wrong.is_empty() {
                report.help(format!("some can't be read: {}", wrong.join("; ")));
            }
        }
        Err(why) => {
            report.add("tls", Verdict::Warning, format!("no root certificate is trusted, {place}: {why}"));
            report.help("install the package ca-certificates, or name a PEM file in SSL_CERT_FILE");
        }
    }
}
