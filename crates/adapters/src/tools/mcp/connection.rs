//! One life of a server: the handshake, its tools, calls.

use super::config::{McpServer, Reached};
use super::flights::Flights;
use super::handler::{Handler, Progress, config};
use super::listing::{Listing, NoListing};
use super::pipe::{PROBE, Pipe};
use super::process::{Process, Start};
use super::trouble::{Trouble, line, seconds};
use super::warden::Warden;
use super::{http, pipe};
use crate::http::Http;
use reqwest::Client;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, DiscoverRequest,
    DiscoverRequestParams, ErrorCode, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RoleClient, RunningService,
    RxJsonRpcMessage, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use selvedge_runtime::ports::Watch;
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a server may think about which generation of the protocol it speaks; one that is older than the question
/// may leave it without an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long definitions are taken to be what they were when nothing says otherwise.
const FRESH: Duration = Duration::from_secs(10);
/// How long a server may take to show that it lives, after a call that it did not answer in time.
const CHECK: Duration = Duration::from_secs(5);
/// How long a server over HTTP may take to end a session.
const GOODBYE: Duration = Duration::from_secs(2);

/// The generations of the protocol: without a handshake (2026-07-28), and with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    Modern,
    Legacy,
}

type Service = RunningService<RoleClient, Handler>;

/// A server that answers.
pub(super) struct Connection {
    service: Service,
    process: Option<Process>,
    /// Calls under way.
    flights: Flights,
    handler: Handler,
    listed: Mutex<(Instant, Arc<Listing>)>,
}

impl Connection {
    /// Starts a server, or opens the way to it, and asks for its tools. What generation it speaks is asked unless
    /// `known`, and kept there.
    pub(super) async fn start(
        server: &McpServer,
        (http, warden): (&Http, &Arc<Warden>),
        longest: usize,
        known: &mut Option<Generation>,
    ) -> Result<Self, Trouble> {
        if let Some(name) = server.unset.first() {
            let message =
                format!("the MCP server `{}` can't be started: the variable {name} is not set", server.name);
            return Err(
                Trouble::lasting(message).help(format!("set {name}, or take it out of the configuration"))
            );
        }
        let deadline = Instant::now() + server.start_timeout;
        let handler = Handler { progress: Progress::default(), changed: Arc::default() };
        let (service, process) = match &server.reached {
            Reached::Command { program, args, env, dir } => {
                let start = || Start { server: &server.name, program, args, env, dir, longest, warden };
                Self::over_stdio(server, start, &handler, known, deadline).await?
            }
            Reached::Url { url, headers } => {
                let open = || http::transport(&server.name, url, headers, http, longest);
                let begun = timeout_at(deadline, over_http(open, &handler)).await;
                let begun = begun.map_err(|_| late(server, String::new()))??;
                (begun.map_err(|error| http::not_begun(&server.name, url, &error))?, None)
            }
        };
        let listed = Mutex::new((Instant::now(), Arc::default()));
        if let Some(info) = service.peer().peer_info()
            && !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version)
        {
            let (name, version) = (&server.name, line(info.protocol_version.as_str()));
            let message = format!(
                "the MCP server `{name}` speaks version \"{version}\" of the protocol, which is not known"
            );
            return Err(
                Trouble::lasting(message).help("take a version of the server that speaks an older one")
            );
        }
        let flights = Flights::new(service.peer().clone());
        let connection = Self { service, process, flights, handler, listed };
        match timeout_at(deadline, connection.list(server)).await {
            Ok(listed) => listed.map(|()| connection),
            Err(_) => Err(late(server, connection.process.as_ref().map(Process::said).unwrap_or_default())),
        }
    }

    async fn over_stdio<'s>(
        server: &McpServer,
        start: impl Fn() -> Start<'s>,
        handler: &Handler,
        known: &mut Option<Generation>,
        deadline: Instant,
    ) -> Result<(Service, Option<Process>), Trouble> {
        loop {
            let (process, mut pipe) = Process::start(start()).await?;
            let patience = PATIENCE.min(server.start_timeout / 3);
            let error = match timeout_at(deadline, shake(&mut pipe, handler, *known, patience)).await {
                Ok(Ok((service, generation))) => {
                    *known = Some(generation);
                    return Ok((service, Some(process)));
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(late(server, process.said())),
            };
            // It may be one that can't bear the question.
            if known.is_none() && pipe::closed(&mut pipe).await {
                *known = Some(Generation::Legacy);
                continue;
            }
            let name = &server.name;
            return Err(match &error {
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                    let fate = process.fate().await;
                    Trouble::lasting(format!("the MCP server `{name}` {fate} instead of starting to serve"))
                        .help("run its command by hand to see what it lacks")
                }
                other => Trouble::lasting(format!(
                    "the MCP server `{name}` does not begin as MCP has it: {}{}",
                    line(&other.to_string()),
                    process.said()
                ))
                .help("check that its command starts an MCP server on stdio"),
            });
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
        Arc::clone(&self.listed.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Makes sure that it lives and that its tools are known as they are now.
    pub(super) async fn check(&self, server: &McpServer) -> Result<(), Trouble> {
        if self.flights.is_suspect() {
            return match timeout(CHECK, self.list(server)).await {
                Ok(listed) => listed,
                Err(_) => Err(Trouble::passing(format!("the MCP server `{}` hangs", server.name))),
            };
        }
        let listed_at = self.listed.lock().unwrap_or_else(PoisonError::into_inner).0;
        if listed_at.elapsed() < FRESH && !self.handler.changed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.list(server).await
    }

    async fn list(&self, server: &McpServer) -> Result<(), Trouble> {
        // News that come while it is asked count for the next time.
        self.handler.changed.store(false, Ordering::Relaxed);
        let listing = match Listing::of(server, self.service.peer()).await {
            Ok(listing) => listing,
            Err(NoListing::Wrong(trouble)) => return Err(trouble),
            Err(NoListing::Service(error)) => {
                return Err(self.trouble(server, error, "told its tools").await);
            }
        };
        self.flights.lives();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), Arc::new(listing));
        Ok(())
    }

    /// Calls a tool. Dropped, the call is cancelled at the server (E-13).
    pub(super) async fn call(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        watch: Option<Watch>,
    ) -> Result<ServerResult, ServiceError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.service.peer();
        let mut flight = self.flights.take_off();
        let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        flight.sent(&handle.id);
        let _watching = watch.map(|watch| self.handler.progress.watch(&handle.progress_token, watch));
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
        result
    }

    /// What an error of the connection means; `doing` is what the server did, as the rest of a sentence.
    pub(super) async fn trouble(&self, server: &McpServer, error: ServiceError, doing: &str) -> Trouble {
        let name = &server.name;
        match (error, &self.process, &server.reached) {
            (ServiceError::McpError(error), ..) => Trouble::lasting(format!(
                "the MCP server `{name}` refuses ({}): {}",
                error.code.0,
                line(&error.message)
            )),
            (ServiceError::TransportSend(error), None, Reached::Url { url, .. }) => {
                http::trouble(name, url, &error)
            }
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), Some(process), _) => {
                let fate = process.fate().await;
                Trouble::passing(format!("the MCP server `{name}` {fate} (while it {doing})"))
            }
            (ServiceError::TransportClosed, None, Reached::Url { url, .. }) => {
                let place = http::place(url);
                Trouble::passing(format!(
                    "the connection to the MCP server `{name}` at {place} was lost while it {doing}"
                ))
            }
            (error, ..) => Trouble::passing(format!(
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

fn late(server: &McpServer, said: String) -> Trouble {
    let limit = seconds(server.start_timeout);
    let message = format!("the MCP server `{}` was not ready within {limit}{said}", server.name);
    let what = match server.reached {
        Reached::Command { .. } => "command",
        Reached::Url { .. } => "address",
    };
    Trouble::passing(message).help(format!("check its {what}; `start_timeout_s` in its table is the limit"))
}

/// The beginning of a conversation over HTTP. Which generation the server speaks is found out on the way.
async fn over_http(
    open: impl Fn() -> Result<StreamableHttpClientTransport<Client>, Trouble>,
    handler: &Handler,
) -> Result<Result<Service, ClientInitializeError>, Trouble> {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    match serve_client_with_lifecycle(handler.clone(), open()?, mode).await {
        // It knows the question, and speaks the older generation only.
        Err(ClientInitializeError::NoCompatibleProtocolVersion { .. }) => {
            let mode = ClientLifecycleMode::Initialize;
            Ok(serve_client_with_lifecycle(handler.clone(), open()?, mode).await)
        }
        begun => Ok(begun),
    }
}

/// The beginning of a conversation, in the generation of the protocol that the server speaks.
async fn shake(
    pipe: &mut Pipe,
    handler: &Handler,
    known: Option<Generation>,
    patience: Duration,
) -> Result<(Service, Generation), ClientInitializeError> {
    let generation = match known {
        Some(known) => known,
        None => probe(pipe, patience).await?,
    };
    let done = serve(pipe.clone(), handler, generation).await;
    // One that took long to start answers the question after all.
    let late =
        done.is_err() && pipe.late().is_some_and(|answer| generation_of(&answer) == Generation::Modern);
    match done {
        Err(_) if late => Ok((serve(pipe.clone(), handler, Generation::Modern).await?, Generation::Modern)),
        done => Ok((done?, generation)),
    }
}

async fn serve(
    pipe: Pipe,
    handler: &Handler,
    generation: Generation,
) -> Result<Service, ClientInitializeError> {
    let mode = match generation {
        Generation::Modern => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        Generation::Legacy => ClientLifecycleMode::Initialize,
    };
    serve_client_with_lifecycle(handler.clone(), pipe, mode).await
}

/// Asks which generation it is: only the newer one knows the question.
async fn probe(pipe: &mut Pipe, patience: Duration) -> Result<Generation, ClientInitializeError> {
    let us = config();
    let mut discover = DiscoverRequest::new(DiscoverRequestParams {});
    discover.extensions.insert(RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        us.client_info,
        us.capabilities,
    ));
    let question = ClientRequest::DiscoverRequest(discover);
    let closed = || ClientInitializeError::ConnectionClosed("discover".to_owned());
    pipe.send(ClientJsonRpcMessage::request(question, RequestId::String(PROBE.into())))
        .await
        .map_err(|_| closed())?;
    match timeout(patience, pipe.probed()).await {
        Ok(Some(answer)) => Ok(generation_of(&answer)),
        Ok(None) => Err(closed()),
        Err(_) => Ok(Generation::Legacy),
    }
}

fn generation_of(answer: &RxJsonRpcMessage<RoleClient>) -> Generation {
    let modern = match answer {
        JsonRpcMessage::Response(response) => match &response.result {
            ServerResult::DiscoverResult(found) => {
                found.supported_versions.contains(&ProtocolVersion::V_2026_07_28)
            }
            _ => false,
        },
        // Only the newer generation refuses in this way. One that does not know the version is taken at its word.
        JsonRpcMessage::Error(error) => {
            [ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, ErrorCode::HEADER_MISMATCH]
                .contains(&error.error.code)
        }
        _ => false,
    };
    if modern { Generation::Modern } else { Generation::Legacy }
}
