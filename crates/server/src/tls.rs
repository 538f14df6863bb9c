//! TLS of its own (S-02).

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use selvedge_host::Error;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What takes connections with this certificate, the chain behind it, and its key.
///
/// # Errors
/// A file can't be read, or holds something else; or the key is of another certificate.
pub(crate) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let unfit = |file: &Path, why: &str, help: &str| {
        let message = format!("{}: {why}", file.display());
        Error::usage("S-02", "bad-certificate", &message).help(help)
    };
    let read = |error: rustls::pki_types::pem::Error, file: &Path, what: &str, help: &str| {
        let why = match error {
            rustls::pki_types::pem::Error::Io(error) => format!("it can't be read: {error}"),
            rustls::pki_types::pem::Error::NoItemsFound => format!("there is no {what} in it"),
            other => format!("it is no PEM file: {other}"),
        };
        unfit(file, &why, help)
    };
    let help = "--tls-cert names a PEM file with the certificate first and the chain behind it";
    let found = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found: Vec<CertificateDer<'static>> =
        found.map_err(|error| read(error, chain, "certificate", help))?;
    if found.is_empty() {
        return Err(unfit(chain, "there is no certificate in it", help));
    }
    let help = "--tls-key names a PEM file with the certificate's private key, unencrypted";
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| read(error, key, "private key", help))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(found, secret));
    let mut config = config.map_err(|error| {
        let message = format!("{} and {} don't fit: {error}", chain.display(), key.display());
        Error::usage("S-02", "bad-certificate", &message).help("name a certificate and its own key")
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
