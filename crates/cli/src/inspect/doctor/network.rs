//! What requests to other machines go through: proxies, and the certificates that are trusted.

use super::{Report, Verdict};
use selvedge_host::Environment;
use selvedge_http::{Certificates, Proxies, Roots};
use std::ffi::OsString;

/// Looks at the variables; nobody is asked.
pub(super) fn look(environment: &Environment, report: &mut Report) {
    let variable = |name: &str| environment.process().variable(name).map(OsString::from);
    let proxies = Proxies::of(variable);
    let used = proxies.in_use();
    for proxy in &used {
        let name = proxy.variable;
        match &proxy.address {
            Ok((address, user)) => {
                let whose = if *user { ", with a user and a password" } else { "" };
                let what = match proxy.schemes {
                    "all" => String::new(),
                    scheme => format!(", for {scheme} addresses"),
                };
                let address = address.trim_end_matches('/');
                report.add("proxy", Verdict::Ok, format!("{name}: {address}{whose}{what}"));
            }
            Err(wrong) => {
                report.add("proxy", Verdict::Broken, wrong.message.as_str());
                report.help(wrong.help.as_str());
            }
        }
    }
    if proxies.is_http_proxy_foreign() {
        let why =
            "HTTP_PROXY is not used: with REQUEST_METHOD set, it may be a header of a request from the web";
        report.add("proxy", Verdict::Warning, why);
        report.help("name the proxy in http_proxy");
    }
    if let Some(hosts) = proxies.spared().filter(|_| !used.is_empty()) {
        report.add("proxy", Verdict::Ok, format!("not for {hosts}, nor for this machine"));
    }
    certificates(&Certificates::of(variable), report);
}

fn certificates(found: &Certificates, report: &mut Report) {
    match found.roots() {
        Ok(None) => report.add("tls", Verdict::Ok, "the system decides which certificates are trusted"),
        Ok(Some(Roots { count, origin, wrong })) => {
            let verdict = if wrong.is_empty() { Verdict::Ok } else { Verdict::Warning };
            report.add("tls", verdict, format!("{count} root certificates are trusted, {origin}"));
            if !wrong.is_empty() {
                report.help(format!("some can't be read: {}", wrong.join("; ")));
            }
        }
        Err(wrong) => {
            let named = wrong.message.contains("SSL_CERT_");
            // Without any, endpoints of this machine can be asked all the same.
            let verdict = if named { Verdict::Broken } else { Verdict::Warning };
            report.add("tls", verdict, format!("no root certificate is trusted: {}", wrong.message));
            report.help(wrong.help);
        }
    }
}
