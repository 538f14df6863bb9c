//! What all requests share.

use crate::access::{Hosts, Tokens};
use crate::call::Call;
use crate::documents::Documents;
use crate::drives::Drives;
use crate::feed::Feeds;
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::webhooks::Webhooks;
use selvedge_dialects::DocumentLimits;
use selvedge_host::options::RunOptions;
use selvedge_host::{Environment, Error, Host, report, stores};
use selvedge_http::Secret;
use selvedge_store::Store;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A server, as its requests see it.
pub(crate) struct App {
    pub(crate) host: Host,
    pub(crate) store: Arc<Store>,
    pub(crate) kept: Kept,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) drives: Arc<Drives>,
    pub(crate) webhooks: Arc<Webhooks>,
    /// What documents are read by.
    pub(crate) reader: Reader,
    /// Whose turn it is to look at the tools of folders.
    pub(crate) cataloguing: tokio::sync::Mutex<()>,
    /// TLS of its own.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether each request is told of.
    pub(crate) log: bool,
    /// What runs are started with, where a request says nothing else.
    pub(crate) defaults: RunOptions,
    /// The folder of named documents.
    pub(crate) documents: Option<PathBuf>,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    /// Keys that nobody is shown (C-06).
    pub(crate) secrets: Vec<Secret>,
    /// How large documents may be, and with them bodies of requests.
    pub(crate) limits: DocumentLimits,
}

impl App {
    /// Where the host's runs are: made, if there is nothing yet.
    pub(crate) fn open(host: &Host) -> Result<Arc<Store>, Error> {
        let dir = host.state_dir()?;
        let environment: &Environment = &host.environment;
        let store = stores::open_or_make(environment, &dir)?;
        Ok(Arc::new(store))
    }

    /// A JSON text as anybody may see it: without keys, and with nothing in it that steers a terminal.
    pub(crate) fn shown(&self, json: &str) -> String {
        report::escaped(&report::redacted(json, &self.secrets)).into_owned()
    }

    /// Bytes that a body may have.
    pub(crate) fn body_bytes(&self) -> usize {
        usize::try_from(self.limits.document_bytes).unwrap_or(usize::MAX)
    }

    /// The documents that there are by name.
    pub(crate) fn documents(&self) -> Result<Documents, Problem> {
        Documents::of(self.documents.as_deref())
    }

    /// The id of the run that is meant (C-12).
    pub(crate) fn run_id(&self, call: &Call) -> Result<String, Problem> {
        Ok(stores::find_run(&self.store, call.part("id"))?)
    }
}
