//! One life of a server: the handshake, its tools, calls.

use super::config::{McpServer, Reached};
use super::context::McpContext;
use super::error::{ServerError, line};
use super::flights::Flights;
use super::handler::{Handler, Progress};
use super::handshake::{Generation, Service, late, over_http, over_stdio};
use super::http::{self, Way};
use super::listing::{Listing, NoListing};
use super::message::{Reader, UnreadableReply, code_of};
use super::process::{Process, Start};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ProtocolVersion, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use selvedge_engine::{Effects, FaultKind};
use selvedge_runtime::ports::Watch;
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

/// For how long definitions are taken to be what they were when nothing says otherwise; and the same before a call that may
/// change something: it may have waited for a person, who takes longer than that to approve it.
const FRESH: Duration = Duration::from_secs(10);
const FRESH_TO_WRITE: Duration = Duration::from_secs(1);
/// How long a server may take to show that it lives, after a call that it did not answer in time.
const CHECK: Duration = Duration::from_secs(5);
/// How long a server over HTTP may take to end a session.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why a call has no result.
pub(super) enum Unanswered {
    /// The connection has none, or the server refuses.
    Service(ServiceError),
    /// There is one, and it can't be taken.
    UnreadableReply(UnreadableReply),
}

/// When a server was last asked for its tools, and what it answered.
struct Listed {
    at: Instant,
    listing: Arc<Listing>,
    /// Whether it was asked again since it was first asked, which is when runs take up what they pin.
    again: bool,
}

/// A server that answers.
pub(super) struct Connection {
    service: Service,
    process: Option<Process>,
    /// Calls under way.
    flights: Flights,
    handler: Handler,
    reader: Reader,
    schema_steps: u64,
    listed: Mutex<Listed>,
}

impl Connection {
    /// Starts a server, or opens the way to it, and asks for its tools. What generation it speaks is asked unless
    /// `known`, and kept there.
    pub(super) async fn start(
        server: &McpServer,
        McpContext { http, supervisor, env: process }: &McpContext,
        (reader, schema_steps): (Reader, u64),
        known: &mut Option<Generation>,
    ) -> Result<Self, ServerError> {
        if let Some(name) = server.unset.first() {
            let message =
                format!("the MCP server `{}` can't be started: the variable {name} is not set", server.name);
            return Err(ServerError::lasting(message)
                .help(format!("set {name}, or take it out of the configuration")));
        }
        let deadline = Instant::now() + server.start_timeout;
        let handler = Handler { progress: Progress::default(), changed: Arc::default() };
        let (service, process) = match &server.reached {
            Reached::Command { program, args, env, dir } => {
                let reader = &reader;
                let start =
                    || Start { server: &server.name, program, args, env, dir, process, reader, supervisor };
                over_stdio(server, start, &handler, known, deadline).await?
            }
            Reached::Url { url, headers, sse } => {
                let way = Way::to(&server.name, url, headers, http, &reader)?;
                let begun = timeout_at(deadline, over_http(&way, &handler, *sse)).await;
                let begun = begun.map_err(|_| late(server, String::new()))?;
                (begun.map_err(|error| http::not_begun(&server.name, url, &error))?, None)
            }
            Reached::Wrong { why, help, place } => {
                let message = format!("the MCP server `{}` can't be had: {why} ({place})", server.name);
                return Err(ServerError::lasting(message).help(help.clone()));
            }
            Reached::Off { place } => return Err(ServerError::off(&server.name, place)),
        };
        if let Some(info) = service.peer().peer_info()
            && !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version)
        {
            let (name, version) = (&server.name, line(info.protocol_version.as_str()));
            let message = format!(
                "the MCP server `{name}` speaks version \"{version}\" of the protocol, which is not known"
            );
            return Err(
                ServerError::lasting(message).help("take a version of the server that speaks an older one")
            );
        }
        let flights = Flights::new(service.peer().clone());
        let listed = Mutex::new(Listed { at: Instant::now(), listing: Arc::default(), again: false });
        let connection = Self { service, process, flights, handler, reader, schema_steps, listed };
        match timeout_at(deadline, connection.list(server, false)).await {
            Ok(listed) => listed.map(|()| connection),
            Err(_) => Err(late(server, connection.process.as_ref().map(Process::said).unwrap_or_default())),
        }
    }

    /// Which version of the protocol is spoken, and what the server calls itself.
    pub(super) fn introduced(&self) -> (String, Option<String>) {
        let Some(info) = self.service.peer().peer_info() else { return (String::new(), None) };
        let called = info.server_info.as_ref().map(|own| line(&format!("{} {}", own.name, own.version)));
        (line(info.protocol_version.as_str()), called)
    }

    /// Whether it can still be asked.
    pub(super) fn is_alive(&self) -> bool {
        let ended = self.process.as_ref().is_some_and(Process::has_ended);
        !ended && !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Its tools, as they were last.
    pub(super) fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listed().listing)
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that it lives, and before a call with these effects that its tools are known as they are now:
    /// before the first call at any rate, as no server has to say that a definition is another one.
    pub(super) async fn check(&self, server: &McpServer, call: Option<Effects>) -> Result<(), ServerError> {
        if self.flights.is_suspect() {
            return match timeout(CHECK, self.list(server, true)).await {
                Ok(listed) => listed,
                Err(_) => Err(ServerError::passing(format!("the MCP server `{}` hangs", server.name))),
            };
        }
        let fresh = match call {
            Some(Effects::Write) => FRESH_TO_WRITE,
            _ => FRESH,
        };
        let is_fresh = {
            let listed = self.listed();
            listed.at.elapsed() < fresh && (listed.again || call.is_none())
        };
        if is_fresh && !self.handler.changed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.list(server, true).await
    }

    async fn list(&self, server: &McpServer, again: bool) -> Result<(), ServerError> {
        // News that come while it is asked count for the next time.
        self.handler.changed.store(false, Ordering::Relaxed);
        let before = self.listing();
        let listed = Listing::of(server, self.service.peer(), &self.reader, &before, self.schema_steps).await;
        let listing = match listed {
            Ok(listing) => listing,
            Err(NoListing::Wrong(trouble)) => return Err(trouble),
            Err(NoListing::UnreadableReply(unheard)) => {
                let (name, words) = (&server.name, unheard.words(self.reader.nesting()));
                let message = format!("the MCP server `{name}` answers `tools/list` with {words}");
                return Err(ServerError { kind: FaultKind::LimitExceeded, ..ServerError::lasting(message) });
            }
            Err(NoListing::Service(error)) => {
                return Err(self.trouble(server, error, "told its tools").await);
            }
        };
        self.flights.lives();
        *self.listed() = Listed { at: Instant::now(), listing: Arc::new(listing), again };
        Ok(())
    }

    /// Calls a tool. Progress that the server tells of goes to `watch`, and is a `beat`. Dropped, the call is cancelled at
    /// the server (E-13).
    pub(super) async fn call(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        (watch, beat): (Option<Watch>, &Arc<Notify>),
    ) -> Result<ServerResult, Unanswered> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.service.peer();
        let mut flight = self.flights.take_off();
        let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = handle.map_err(Unanswered::Service)?;
        let id = handle.id.clone();
        flight.sent(&id);
        let _watching = self.handler.progress.watch(&handle.progress_token, watch, beat);
        let died = async {
            match &self.process {
                Some(process) => process.ended().await,
                None => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            biased;
            result = handle.await_response() => result,
            () = died => Err(ServiceError::TransportClosed),
        };
        flight.landed();
        match (result, self.reader.fetch(&id)) {
            (Err(ServiceError::McpError(_)), Some(answer)) => answer.map_err(Unanswered::UnreadableReply),
            (result, _) => result.map_err(Unanswered::Service),
        }
    }

    /// What an error of the connection means; `doing` is what the server did, as the rest of a sentence.
    pub(super) async fn trouble(&self, server: &McpServer, error: ServiceError, doing: &str) -> ServerError {
        let name = &server.name;
        match (error, &self.process, &server.reached) {
            (ServiceError::McpError(error), ..) => {
                let code = code_of(&error).map(|code| format!(" ({code})")).unwrap_or_default();
                ServerError::lasting(format!(
                    "the MCP server `{name}` refuses{code}: {}",
                    line(&error.message)
                ))
            }
            (ServiceError::TransportSend(error), None, Reached::Url { url, .. }) => {
                http::trouble(name, url, &error)
            }
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), Some(process), _) => {
                let fate = process.fate().await;
                ServerError::passing(format!("the MCP server `{name}` {fate} (while it {doing})"))
            }
            (ServiceError::TransportClosed, None, Reached::Url { url, .. }) => {
                let place = http::place(url);
                ServerError::passing(format!(
                    "the connection to the MCP server `{name}` at {place} was lost while it {doing}"
                ))
            }
            (error, ..) => ServerError::passing(format!(
                "the MCP server `{name}`: {} (while it {doing})",
                line(&error.to_string())
            )),
        }
    }

    /// Ends it, and with it the calls that are still under way.
    pub(super) async fn close(self: Arc<Self>) {
        self.flights.give_up().await;
        if let Some(process) = &self.process {
            process.close().await;
        }
        // A session over HTTP is ended by a request of its own. Where a call is still under way its end ends it.
        if let Some(Self { mut service, .. }) = Arc::into_inner(self) {
            let _ = service.close_with_timeout(GOODBYE).await;
        }
    }
}
