//! A configured server: started when it is first needed, and again a few times when it dies.

use super::config::{McpServer, Reached};
use super::connection::{Connection, Unanswered};
use super::content::output;
use super::context::McpContext;
use super::definition::Pinned;
use super::error::ServerError;
use super::handshake::Generation;
use super::http;
use super::listing::Listing;
use super::message::{Reader, code_of};
use super::patience::Patience;
use crate::failures::{failure, input_error, over_limit, tool_failure};
use crate::limits::ToolLimits;
use crate::progress::Progress;
use rmcp::model::{ErrorCode, InputRequest, InputRequiredResult, ServerResult};
use rmcp::service::ServiceError;
use selvedge_engine::{Effects, Failure, FaultKind, ToolRequest};
use selvedge_runtime::ports::{Delta, Watch};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How often a server is started again after failures, without a call in between that it answered.
const RESTARTS: u32 = 3;
/// How many times the bytes of an output its message may have: `é` takes two bytes and escaped six, and servers say an
/// output as data and as a text, in which it is escaped once more.
const TRANSPORT: usize = 8;
/// After how long people are told that a server is waited for.
const SLOW: Duration = Duration::from_secs(3);

/// A server, running or not.
pub(crate) struct Server {
    pub(super) config: McpServer,
    limits: ToolLimits,
    context: McpContext,
    progress: Progress,
    state: Mutex<State>,
    /// Failures in a row.
    failures: AtomicU32,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    generation: Option<Generation>,
    /// Why it failed last.
    last: String,
}

/// What a server is found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of its tools.
    pub tools: usize,
    /// Those that are wrong, with why.
    pub wrong: Vec<(String, String)>,
    /// The version of the protocol that it speaks.
    pub protocol: String,
    /// What it calls itself.
    pub called: Option<String>,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    /// The tool as the run has pinned it.
    pub(crate) pinned: &'a Pinned,
    /// What is asked.
    pub(crate) request: &'a ToolRequest,
    /// Who watches.
    pub(crate) watch: Option<Watch>,
}

impl Server {
    pub(super) fn new(
        config: McpServer,
        limits: &ToolLimits,
        context: &McpContext,
        progress: &Progress,
    ) -> Self {
        Self {
            config,
            limits: limits.clone(),
            context: context.clone(),
            progress: Arc::clone(progress),
            state: Mutex::default(),
            failures: AtomicU32::new(0),
        }
    }

    /// The tools that it has, started if need be.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, ServerError> {
        Ok(self.ready(None).await?.listing())
    }

    /// What it is.
    pub(super) async fn report(&self) -> Result<Report, ServerError> {
        let connection = self.ready(None).await?;
        let listing = connection.listing();
        let (protocol, called) = connection.introduced();
        let called = called.map(|called| self.config.clean(&called));
        let wrong = listing.wrong.iter().map(|(name, why)| (name.to_string(), why.clone())).collect();
        Ok(Report { tools: listing.tools.len(), wrong, protocol, called })
    }

    /// Calls a tool, if it still is what the run has pinned.
    ///
    /// # Errors
    /// `definition_changed`, without anything having been called; `timeout`; `limit_exceeded`; `input_error` and
    /// `execution_failure` as the server says. A server that dies under a call is a transient failure (D-17).
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Value, Failure> {
        let Call { pinned, request, watch } = call;
        let name = &request.tool.name;
        let sent = AtomicBool::new(false);
        let watch = watch.map(|watch| self.clean(watch));
        let patience = self.patience(pinned, request);
        let work = async {
            match self.ask(pinned, request, &sent, (watch.clone(), &patience.beat)).await {
                // Nobody looked at what was asked in a session that is no more.
                Err(Ended::Session(_)) => {
                    sent.store(false, Ordering::Relaxed);
                    self.ask(pinned, request, &sent, (watch, &patience.beat)).await
                }
                asked => asked,
            }
        };
        let done = tokio::select! {
            done = work => done,
            () = patience.over() => {
                let unsent = !sent.load(Ordering::Relaxed);
                let message = format!("`{name}` {} and was given up", patience.words());
                let late = failure(FaultKind::Timeout, "tool_execution_timeout", message, Map::new());
                Err(Ended::Failed(Failure { transient: true, unsent, ..late }))
            }
        };
        let value = done.map_err(|ended| match ended {
            Ended::Session(why) => {
                let message =
                    format!("the MCP server `{}` ends its sessions at once: {why}", self.config.name);
                ServerError::passing(message).fault().unsent()
            }
            Ended::Failed(failure) => failure,
        })?;
        if size(&value) > self.limits.tool_output_bytes {
            return Err(over_limit(name, &self.limits));
        }
        Ok(value)
    }

    /// How long a call is waited for. What the document says is the limit; progress extends any other.
    fn patience(&self, pinned: &Pinned, request: &ToolRequest) -> Patience {
        let limit = self.limits.timeout(request.timeout_s, pinned.timeout_s);
        let most = match request.timeout_s {
            Some(_) => limit,
            None => self.config.max_timeout.max(limit),
        };
        Patience { limit, most, beat: Arc::default() }
    }

    /// Asks once.
    async fn ask(
        &self,
        pinned: &Pinned,
        request: &ToolRequest,
        sent: &AtomicBool,
        watching: (Option<Watch>, &Arc<Notify>),
    ) -> Result<Value, Ended> {
        let name = &request.tool.name;
        let effects = Some(pinned.effects);
        let connection = self.ready(effects).await.map_err(|trouble| trouble.fault().unsent())?;
        let listing = connection.listing();
        let definition = listing.tools.get(&pinned.tool).filter(|definition| definition.is(pinned));
        let definition = definition.ok_or_else(|| self.changed(name, pinned, &listing))?;
        sent.store(true, Ordering::Relaxed);
        let nothing = Map::new();
        let args = request.args.as_object().unwrap_or(&nothing);
        let result = match connection.call(&pinned.tool, args, watching).await {
            Ok(ServerResult::InputRequiredResult(wanted)) => {
                let message = format!("`{name}` {} in the middle, which is not offered", wants(&wanted));
                return Err(tool_failure("tool_execution_error", message).into());
            }
            Ok(result) => result,
            Err(Unanswered::UnreadableReply(unheard)) => {
                self.reset_failures();
                return Err(unheard.failure(name, &self.limits).into());
            }
            Err(Unanswered::Service(ServiceError::McpError(error))) => {
                self.reset_failures();
                return Err(refused(name, error).into());
            }
            Err(Unanswered::Service(error)) if http::is_expired(&error) => {
                self.drop_connection(&connection).await;
                let trouble = connection.trouble(&self.config, error, "").await;
                return Err(Ended::Session(self.config.clean(&trouble.message)));
            }
            Err(Unanswered::Service(error)) => {
                if http::may_be_expired(&error) {
                    self.drop_connection(&connection).await;
                }
                let (doing, unsent) = (format!("worked on `{}`", pinned.tool), http::is_unsent(&error));
                let mut trouble = connection.trouble(&self.config, error, &doing).await;
                trouble.message = self.config.clean(&trouble.message);
                return Err(Failure { unsent, ..trouble.fault() }.into());
            }
        };
        self.reset_failures();
        let (name, definition, limits) = (Arc::clone(name), Arc::clone(definition), self.limits.clone());
        // Servers choose what is to be held against what.
        let read = spawn_blocking(move || output(&name, &definition, result, &limits)).await;
        Ok(read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?)
    }

    /// Takes a connection out of use, if it still is.
    async fn drop_connection(&self, ended: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, ended)) {
            state.connection = None;
        }
    }

    /// A watcher who sees no key that the server was given (C-06).
    fn clean(&self, watch: Watch) -> Watch {
        if self.config.secrets.is_empty() {
            return watch;
        }
        let config = self.config.clone();
        Arc::new(move |delta| match delta {
            Delta::Progress(line) => watch(Delta::Progress(config.clean(&line))),
            other => watch(other),
        })
    }

    /// Ends it, if it runs.
    pub(super) async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    fn changed(&self, name: &str, pinned: &Pinned, listing: &Listing) -> Failure {
        let (server, tool) = (&self.config.name, &pinned.tool);
        let message = match listing.wrong.get(tool) {
            _ if listing.tools.contains_key(tool) => format!(
                "the MCP server `{server}` defines `{name}` otherwise than when the run took it up: it was not called"
            ),
            Some(why) => {
                format!("the definition of `{name}` by the MCP server `{server}` is wrong now: {why}")
            }
            None => format!("the MCP server `{server}` has no tool `{tool}` any more"),
        };
        failure(FaultKind::DefinitionChanged, "tool_execution_error", message, Map::new()).unsent()
    }

    /// The server, running and with its tools as a call with these effects must know them.
    async fn ready(&self, call: Option<Effects>) -> Result<Arc<Connection>, ServerError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.clone() {
            let checked = match connection.is_alive() {
                true => connection.check(&self.config, call).await,
                false => Err(ServerError::passing("it had ended")),
            };
            match checked {
                Ok(()) => return Ok(connection),
                Err(trouble) => {
                    state.connection = None;
                    self.record_failure(&mut state, &trouble);
                }
            }
        }
        let failures = self.failures.load(Ordering::Relaxed);
        if failures > RESTARTS {
            let message = format!(
                "the MCP server `{}` has failed {failures} times in a row and is not started again; the last time: {}",
                self.config.name, state.last
            );
            return Err(ServerError::lasting(message));
        }
        let mut generation = state.generation;
        let output = usize::try_from(self.limits.tool_output_bytes).unwrap_or(usize::MAX);
        let longest = output.saturating_mul(TRANSPORT).saturating_add(1 << 20);
        let reader = Reader::new(self.limits.json_nesting, longest, &self.config.secrets);
        let starting = Connection::start(
            &self.config,
            &self.context,
            (reader, self.limits.schema_steps),
            &mut generation,
        );
        let started = self.telling(starting).await;
        match started {
            Ok(connection) => {
                state.generation = generation;
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(mut trouble) => {
                trouble.message = self.config.clean(&trouble.message);
                self.record_failure(&mut state, &trouble);
                Err(trouble)
            }
        }
    }

    /// It has answered a call, if only that it refuses.
    fn reset_failures(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// What is only connected to is not started, and may come back whenever it likes.
    fn record_failure(&self, state: &mut State, trouble: &ServerError) {
        if matches!(self.config.reached, Reached::Command { .. }) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        state.last = self.config.clean(&trouble.message);
    }

    /// Tells people what takes long.
    async fn telling<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = sleep(SLOW) => (self.progress)(&format!("waiting for the MCP server `{}`", self.config.name)),
        }
        work.await
    }
}

/// What a tool wants of us in the middle of a call.
fn wants(wanted: &InputRequiredResult) -> String {
    let wants = wanted.input_requests.iter().flat_map(BTreeMap::values).map(|wanted| match wanted {
        InputRequest::CreateMessage(_) => "asks for a model's reply (sampling)",
        InputRequest::Elicitation(_) => "asks a person for more input (elicitation)",
        InputRequest::ListRoots(_) => "asks which folders it may use (roots)",
        _ => "asks for something",
    });
    let wants: BTreeSet<&str> = wants.collect();
    match wants.is_empty() {
        true => "asks for more input".to_owned(),
        false => wants.into_iter().collect::<Vec<_>>().join(" and "),
    }
}

/// Why a call has no output.
enum Ended {
    /// The session is over, and nothing was called; what the server says.
    Session(String),
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The server answers with an error of the protocol.
fn refused(name: &str, error: rmcp::ErrorData) -> Failure {
    let said = super::error::words(&error.message);
    if error.code == ErrorCode::INVALID_PARAMS {
        return input_error(format!("`{name}` refuses its arguments: {said}"));
    }
    let mut more = Map::new();
    let mut message = format!("`{name}` failed");
    if let Some(code) = code_of(&error) {
        more.insert("code".into(), json!(code));
        message.push_str(&format!(" (error {code})"));
    }
    message.push_str(&format!(": {said}"));
    failure(FaultKind::ExecutionFailure, "tool_execution_error", message, more)
}

/// The number of bytes of a value as JSON.
fn size(value: &Value) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len() as u64);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing to a counter cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
