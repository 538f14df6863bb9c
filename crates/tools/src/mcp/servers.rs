//! All configured servers, and which of them a document can need.

use super::config::McpServer;
use super::context::McpContext;
use super::definition::Definition;
use super::error::ServerError;
use super::server::{Call, Report, Server};
use crate::diag::ToolError;
use crate::limits::ToolLimits;
use crate::progress::Progress;
use futures_util::StreamExt;
use futures_util::future::join_all;
use selvedge_engine::{Failure, FaultKind};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many servers start at the same time.
const STARTING: usize = 8;

/// Which tools a document can call: no server starts that has none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those that it names.
    pub names: Vec<Arc<str>>,
    /// Whether it may come to call any other, as planning and recovery do.
    pub any: bool,
}

impl Wanted {
    /// Exactly these.
    pub fn names(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { names: names.into_iter().collect(), any: false }
    }
}

/// The servers of a run.
#[derive(Default)]
pub(crate) struct Servers {
    on: BTreeMap<Arc<str>, Arc<Server>>,
    /// Those that are switched off, and where.
    off: BTreeMap<Arc<str>, String>,
}

/// A tool that was found.
pub(crate) struct Found {
    /// Its server.
    server: Arc<Server>,
    /// Its definition.
    pub(crate) definition: Arc<Definition>,
}

/// What servers answered.
#[derive(Default)]
pub(crate) struct Answers {
    /// Their tools, by server and name.
    pub(crate) found: Vec<Found>,
    /// Tools that are wrong: server, name, why.
    pub(crate) wrong: Vec<(Arc<str>, Arc<str>, String)>,
    /// Servers that did not answer.
    pub(crate) failed: Vec<(Arc<str>, ServerError)>,
}

impl Servers {
    pub(crate) fn new(
        servers: Vec<McpServer>,
        limits: &ToolLimits,
        context: &McpContext,
        progress: &Progress,
    ) -> Self {
        let mut all = Self::default();
        for config in servers {
            let name = Arc::clone(&config.name);
            match config.off().map(str::to_owned) {
                Some(place) => drop(all.off.insert(name, place)),
                None => {
                    let server = Server::new(config, limits, context, progress);
                    all.on.insert(name, Arc::new(server));
                }
            }
        }
        all
    }

    /// Why a full name means no tool, if it is of a server that is switched off.
    pub(crate) fn off(&self, name: &str) -> Option<ToolError> {
        let (server, place) = self.off.iter().find(|(server, _)| tool_of(name, server).is_some())?;
        let ServerError { message, help, .. } = ServerError::off(server, place);
        let message = format!("`{name}` can't be called: {message}");
        Some(ToolError::document("A-22", message).help(help))
    }

    /// Whether none is configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.on.is_empty() && self.off.is_empty()
    }

    /// The servers to which a full name, `SERVER__TOOL`, may belong; a server's own name may have `__` in it.
    pub(crate) fn of_full_name<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Arc<str>> {
        self.on.keys().filter(|server| tool_of(name, server).is_some())
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.on.keys()
    }

    /// Starts these servers side by side, and asks them for their tools.
    pub(crate) async fn ask(&self, names: &BTreeSet<Arc<str>>) -> Answers {
        let servers: Vec<_> = names.iter().filter_map(|name| self.on.get(name).cloned()).collect();
        let work = servers.into_iter().map(|server| async move {
            let listing = server.listing().await;
            (server, listing)
        });
        let mut done: Vec<_> = futures_util::stream::iter(work).buffer_unordered(STARTING).collect().await;
        done.sort_by(|(a, _), (b, _)| a.config.name.cmp(&b.config.name));
        let mut answers = Answers::default();
        for (server, listing) in done {
            let name = &server.config.name;
            match listing {
                Err(trouble) => answers.failed.push((Arc::clone(name), trouble)),
                Ok(listing) => {
                    let wrong = listing.wrong.iter();
                    answers.wrong.extend(wrong.map(|(tool, why)| (name.clone(), tool.clone(), why.clone())));
                    answers.found.extend(listing.tools.values().map(|definition| Found {
                        server: Arc::clone(&server),
                        definition: Arc::clone(definition),
                    }));
                }
            }
        }
        answers
    }

    /// Whether a server of that name is configured and may be started.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.on.contains_key(name)
    }

    /// Calls a tool that a run has pinned.
    ///
    /// # Errors
    /// Those of [`Server::call`]; `unknown_tool` where its server is not configured.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Value, Failure> {
        let name = &call.pinned.server;
        match (self.on.get(name), self.off.get(name)) {
            (Some(server), _) => server.call(call).await,
            (None, Some(place)) => {
                let message = ServerError::off(name, place).message;
                Err(Failure::permanent(FaultKind::UnknownTool, message).unsent())
            }
            (None, None) => Err(Failure::permanent(
                FaultKind::UnknownTool,
                format!(
                    "the tool `{}` is of the MCP server `{}`, which is not configured any more",
                    call.request.tool.name, call.pinned.server
                ),
            )
            .unsent()),
        }
    }

    /// Ends all that run, without waiting long for any.
    pub(crate) async fn close(&self) {
        join_all(self.on.values().map(|server| server.close())).await;
    }
}

impl Found {
    /// What is configured about its server.
    pub(crate) fn config(&self) -> &McpServer {
        &self.server.config
    }
}

/// The tool that a full name means at a server.
pub(crate) fn tool_of<'n>(name: &'n str, server: &str) -> Option<&'n str> {
    name.strip_prefix(server)?.strip_prefix("__").filter(|tool| !tool.is_empty())
}

/// Starts all of these servers but those that are switched off, asks what they are and ends them again: for people who look at what is configured.
pub async fn survey(
    servers: Vec<McpServer>,
    limits: &ToolLimits,
    isolation: &Isolation,
    env: &ProcessEnv,
) -> Vec<(Arc<str>, Result<Report, ToolError>)> {
    let quiet: Progress = Arc::new(|_| {});
    let context = McpContext::new(isolation, env);
    let look = servers.into_iter().filter(|config| config.off().is_none()).map(|config| {
        let server = Server::new(config, limits, &context, &quiet);
        async move {
            let report = server.report().await.map_err(ServerError::error);
            server.close().await;
            (Arc::clone(&server.config.name), report)
        }
    });
    join_all(look).await
}
