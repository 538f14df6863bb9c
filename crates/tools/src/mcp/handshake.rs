//! The beginning of a conversation: a process or a connection, and which generation of the protocol is spoken.

use super::config::{McpServer, Reached};
use super::error::{ServerError, line, seconds};
use super::handler::{Handler, config};
use super::http::{self, Way};
use super::message::code_of;
use super::pipe::{PROBE, Pipe, closed};
use super::process::{Process, Start};
use super::sse::Sse;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode, JsonRpcMessage,
    ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService, RxJsonRpcMessage,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a server may think about which generation of the protocol it speaks; one that is older than the question
/// may leave it without an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The generations of the protocol: without a handshake (2026-07-28), and with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    Modern,
    Legacy,
}

/// A conversation.
pub(super) type Service = RunningService<RoleClient, Handler>;

/// Starts a server and shakes hands with it.
pub(super) async fn over_stdio<'s>(
    server: &McpServer,
    start: impl Fn() -> Start<'s>,
    handler: &Handler,
    known: &mut Option<Generation>,
    deadline: Instant,
) -> Result<(Service, Option<Process>), ServerError> {
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
        if known.is_none() && closed(&mut pipe).await {
            *known = Some(Generation::Legacy);
            continue;
        }
        let name = &server.name;
        return Err(match &error {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                let fate = process.fate().await;
                ServerError::lasting(format!("the MCP server `{name}` {fate} instead of starting to serve"))
                    .help("run its command by hand to see what it lacks")
            }
            other => ServerError::lasting(format!(
                "the MCP server `{name}` does not begin as MCP has it: {}{}",
                line(&begun_as(other)),
                process.said()
            ))
            .help("check that its command starts an MCP server on stdio"),
        });
    }
}

/// A server that has not begun to serve in time.
pub(super) fn late(server: &McpServer, said: String) -> ServerError {
    let limit = seconds(server.start_timeout);
    let message = format!("the MCP server `{}` was not ready within {limit}{said}", server.name);
    let what = match server.reached {
        Reached::Command { .. } => "command",
        Reached::Url { .. } | Reached::Off { .. } | Reached::Wrong { .. } => "address",
    };
    ServerError::passing(message)
        .help(format!("check its {what}; `start_timeout_s` in its table is the limit"))
}

/// How a server began that does not begin as it should.
pub(super) fn begun_as(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => match code_of(error) {
            Some(code) => format!("it refuses ({code}): {}", error.message),
            None => format!("it refuses: {}", error.message),
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => begun_as(fallback),
        other => other.to_string(),
    }
}

/// The beginning of a conversation over HTTP. Which generation the server speaks is found out on the way, and whether it
/// knows only the transport before streamable HTTP, which is all that is tried where it is said to be `sse`.
pub(super) async fn over_http(
    way: &Way,
    handler: &Handler,
    sse: bool,
) -> Result<Service, ClientInitializeError> {
    if sse {
        let stream = way.sse().await;
        let stream =
            stream.map_err(|error| ClientInitializeError::transport::<Sse>(error, "open the stream"))?;
        return serve_client_with_lifecycle(
            handler.clone(),
            handler.hears(stream),
            ClientLifecycleMode::Initialize,
        )
        .await;
    }
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let error = match serve_client_with_lifecycle(handler.clone(), handler.hears(way.transport()), mode).await
    {
        // It knows the question, and speaks the older generation only.
        Err(ClientInitializeError::NoCompatibleProtocolVersion { .. }) => {
            let mode = ClientLifecycleMode::Initialize;
            return serve_client_with_lifecycle(handler.clone(), handler.hears(way.transport()), mode).await;
        }
        Ok(begun) => return Ok(begun),
        Err(error) => error,
    };
    if !http::may_be_older(&error) {
        return Err(error);
    }
    let Ok(stream) = way.sse().await else { return Err(error) };
    serve_client_with_lifecycle(handler.clone(), handler.hears(stream), ClientLifecycleMode::Initialize).await
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
    serve_client_with_lifecycle(handler.clone(), handler.hears(pipe), mode).await
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
    let gone = || ClientInitializeError::ConnectionClosed("discover".to_owned());
    pipe.send(ClientJsonRpcMessage::request(question, RequestId::String(PROBE.into())))
        .await
        .map_err(|_| gone())?;
    match timeout(patience, pipe.probed()).await {
        Ok(Some(answer)) => Ok(generation_of(&answer)),
        Ok(None) => Err(gone()),
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
