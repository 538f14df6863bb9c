//! What servers are reached and started with.

use selvedge_http::Http;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::supervisor::Supervisor;

/// What all servers of a catalogue share. Cloning shares it.
#[derive(Clone)]
pub(crate) struct McpContext {
    /// Reaches those that have an address.
    pub(crate) http: Http,
    /// Ends those that are programs, if this process can't.
    pub(crate) supervisor: Supervisor,
    /// Of which they are given some variables.
    pub(crate) env: ProcessEnv,
}

impl McpContext {
    /// What a process has of this environment, and with this isolation.
    pub(crate) fn new(isolation: &Isolation, env: &ProcessEnv) -> Self {
        let http = Http::new(|name| env.variable(name).map(ToOwned::to_owned));
        Self { http, supervisor: Supervisor::new(isolation.launcher()), env: env.clone() }
    }
}
