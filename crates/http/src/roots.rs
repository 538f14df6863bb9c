//! Which certificates are trusted: told before a request needs them, and to people who look at what works here.

use super::Misconfigured;
use reqwest::Url;
use std::ffi::OsString;
use std::path::PathBuf;

const FILE: &str = "SSL_CERT_FILE";
const DIR: &str = "SSL_CERT_DIR";

/// The certificates that connections are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// How many there are.
    pub count: usize,
    /// Where they are from: "the system's", or the variables with what they name.
    pub origin: String,
    /// What of it can't be read, and why.
    pub wrong: Vec<String>,
}

/// What the variables of this process say about certificates. What is trusted is read by the verifier, from the variables
/// of these names.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    named: Vec<(&'static str, PathBuf)>,
}

impl Certificates {
    /// What the variables name. An empty `SSL_CERT_FILE` is one that is set: so has it who reads it, the verifier.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let file = variable(FILE).map(|file| (FILE, PathBuf::from(file)));
        let dirs = variable(DIR).unwrap_or_default();
        let dirs = std::env::split_paths(&dirs).filter(|dir| !dir.as_os_str().is_empty());
        Self { named: file.into_iter().chain(dirs.map(|dir| (DIR, dir))).collect() }
    }

    /// Refuses variables that leave no certificate to trust, where a request to `url` needs one (C-06).
    pub(super) fn check(&self, url: &Url) -> Result<(), Misconfigured> {
        if url.scheme() == "https" && !self.named.is_empty() { self.roots().map(|_| ()) } else { Ok(()) }
    }

    /// The root certificates that are trusted; `None` where the system decides by itself.
    ///
    /// # Errors
    /// There is none, so that no server's certificate can be checked: what is wrong.
    pub fn roots(&self) -> Result<Option<Roots>, Misconfigured> {
        variables::roots(&self.named)
    }
}

#[cfg(all(unix, not(target_os = "android"), not(target_vendor = "apple")))]
mod variables {
    use super::{FILE, Misconfigured, Roots};
    use rustls::RootCertStore;
    use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
    use std::path::{Path, PathBuf};

    /// How many certificates can be used, and what was wrong with others.
    fn usable(found: CertificateResult) -> (usize, Vec<String>) {
        let mut wrong: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        let mut store = RootCertStore::empty();
        let (count, ignored) = store.add_parsable_certificates(found.certs);
        if ignored > 0 {
            wrong.push(format!("{ignored} in PEM format are no certificates"));
        }
        (count, wrong)
    }

    /// What is wrong with what a variable names; `None` if it has a certificate and nothing else.
    fn trouble(variable: &str, path: &Path) -> Option<String> {
        if path.as_os_str().is_empty() {
            return Some(format!("{variable} is set and names nothing"));
        }
        let is_file = variable == FILE;
        let head = format!("{variable} names {}", path.display());
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(format!("{head}, which is not there"));
            }
            Err(error) => return Some(format!("{head}, which can't be read ({error})")),
            Ok(found) if is_file && !found.is_file() => return Some(format!("{head}, which is no file")),
            Ok(found) if !is_file && !found.is_dir() => return Some(format!("{head}, which is no folder")),
            Ok(_) => {}
        }
        let (file, dir) = if is_file { (Some(path), None) } else { (None, Some(path)) };
        match usable(load_certs_from_paths(file, dir)) {
            (0, wrong) if wrong.is_empty() => Some(format!("{head}, which has no certificate in PEM format")),
            (_, wrong) if wrong.is_empty() => None,
            (_, wrong) => Some(format!("{head}, which can't be read ({})", wrong.join("; "))),
        }
    }

    pub(super) fn roots(named: &[(&'static str, PathBuf)]) -> Result<Option<Roots>, Misconfigured> {
        let (count, mut wrong) = usable(load_native_certs());
        if !named.is_empty() {
            wrong = named.iter().filter_map(|(variable, path)| trouble(variable, path)).collect();
        }
        if count > 0 {
            let of = |(variable, path): &(&str, PathBuf)| format!("of {variable}, {}", path.display());
            let origin =
                named.iter().filter(|(_, path)| path.exists()).map(of).collect::<Vec<_>>().join(" and ");
            let origin = if origin.is_empty() { "the system's".to_owned() } else { origin };
            return Ok(Some(Roots { count, origin, wrong }));
        }
        let (message, help) = match (named.is_empty(), wrong.is_empty()) {
            (false, _) => (
                wrong.join("; "),
                "name a file of certificates in PEM format, or unset it for those of the system".to_owned(),
            ),
            (true, empty) => {
                let why = if empty { String::new() } else { format!(" ({})", wrong.join("; ")) };
                let help = "install the package ca-certificates, or name a PEM file in SSL_CERT_FILE";
                (format!("there are no root certificates of the system{why}"), help.to_owned())
            }
        };
        Err(Misconfigured { code: "bad-certificates", message, help })
    }
}

#[cfg(not(all(unix, not(target_os = "android"), not(target_vendor = "apple"))))]
mod variables {
    use super::{Misconfigured, Roots};
    use std::path::PathBuf;

    #[allow(clippy::unnecessary_wraps, reason = "elsewhere there may be no certificates")]
    pub(super) fn roots(_named: &[(&'static str, PathBuf)]) -> Result<Option<Roots>, Misconfigured> {
        Ok(None)
    }
}
