//! A model that answers from a file of rules: no key, no network (C-07).
//!
//! The first rule that fits a request answers it. Which rule that is gets decided when the call starts, in the
//! order of the run's requests; only the delay happens in the future that is returned. The fault kinds `timeout`
//! and `provider_error` count as transport faults that are tried again (E-14), as do the statuses 408, 409, 429
//! and 5xx.

mod rules;

pub use rules::ScriptError;

use super::protocol::{arguments_in, finished};
use super::text::bounded;
use rules::{Call, Reply, Rule};
use selvedge_engine::{Failure, Fault, FaultKind, ModelReply, ModelRequest, ToolCall};
use selvedge_runtime::ports::{CallContext, Delta, Model, Pending, Watch};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Bytes of a message that the fault of a request without a rule shows.
const SHOWN: usize = 1000;
/// The most pieces that a delayed reply is streamed in.
const PIECES: usize = 20;

/// A scripted model. One instance serves any number of runs; each has its own counts.
#[derive(Debug)]
pub struct Scripted {
    file: String,
    rules: Vec<Rule>,
    /// By run.
    counts: Mutex<HashMap<String, Counts>>,
}

/// How many requests of a run met each rule's conditions, `nth` aside.
#[derive(Clone, Debug, Default)]
pub struct Counts(Vec<u64>);

impl Scripted {
    /// Reads the rules in `yaml`; `file` is the name for messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(file: &str, yaml: &str) -> Result<Self, ScriptError> {
        let rules = rules::parse(file, yaml)?;
        Ok(Self { file: file.to_owned(), rules, counts: Mutex::default() })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, Counts>> {
        // Counts are whole after every step, so those of a thread that panicked are good.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it says to a request of a run with these counts, and after how long; nothing waits for that.
    ///
    /// # Errors
    /// The failure that the script asks for, or that no rule fits.
    pub fn says(
        &self,
        request: &ModelRequest,
        counts: &mut Counts,
    ) -> (Result<ModelReply, Failure>, Duration) {
        let Some(rule) = self.decide(request, counts) else {
            return (Err(self.no_rule(request)), Duration::ZERO);
        };
        match limit_of(request).filter(|limit| *limit < rule.delay) {
            Some(limit) => (Err(late(&self.file, limit)), limit),
            None => (self.answer(&rule.reply), rule.delay),
        }
    }

    /// The rule for a request of a run.
    fn decide_for(&self, request: &ModelRequest, run: &str) -> Option<&Rule> {
        self.decide(request, self.counts().entry(run.to_owned()).or_default())
    }

    /// Counts a request and finds its rule. Every rule with `nth` counts, whichever rule answers.
    fn decide(&self, request: &ModelRequest, Counts(counts): &mut Counts) -> Option<&Rule> {
        counts.resize(self.rules.len(), 0);
        let mut found = None;
        for (rule, count) in self.rules.iter().zip(counts) {
            if found.is_some() && rule.when.nth.is_none() {
                continue;
            }
            if rule.when.fits(request) {
                *count += 1;
                if found.is_none() && rule.when.nth.is_none_or(|nth| nth == *count) {
                    found = Some(rule);
                }
            }
        }
        found
    }

    /// The fault of a request that no rule fits: it shows the request, so that a rule can be written for it.
    fn no_rule(&self, request: &ModelRequest) -> Failure {
        let ModelRequest { role, thread, node, messages, tools, schema, .. } = request;
        let last =
            messages.last().map(|last| json!({"role": last.role, "content": bounded(&last.content, SHOWN)}));
        let shown = last.as_ref().map_or_else(|| "none".to_owned(), Value::to_string);
        // A step works on no thread.
        let on = if thread.is_empty() { String::new() } else { format!("thread {thread}, ") };
        let message = format!(
            "no rule of {} fits the request of node {node}: role {role}, {on}{} messages, the last one {shown}",
            self.file,
            messages.len()
        );
        let tools: Vec<&str> = tools.iter().take(PIECES).map(|tool| &*tool.name).collect();
        let cause = json!({
            "script": self.file, "role": &**role, "thread": &**thread, "node": &**node,
            "messages": messages.len(), "last_message": last, "tools": tools,
            "schema": schema.as_ref().map(|schema| &*schema.name),
        });
        let mut failure = Failure::permanent(FaultKind::ProviderError, message).unsent();
        failure.fault.cause = Some(cause);
        failure
    }

    fn answer(&self, reply: &Reply) -> Result<ModelReply, Failure> {
        match reply {
            Reply::Says { text, calls, tokens, stop } => {
                let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
                let stop = stop.as_deref().unwrap_or(usual);
                let calls = calls.iter().map(call).collect();
                Ok(finished(text.clone(), calls, *tokens, Some(stop.to_owned())))
            }
            Reply::Status { status, message, retry_after_ms, tokens } => {
                let words = format!("{} answered {status}: {message}", self.file);
                let cause = json!({"status": status, "body": message, "url": self.file});
                let fault = Fault::new(FaultKind::ProviderError, words).because(cause);
                let transient = selvedge_http::is_transient(*status);
                let (retry_after_ms, tokens) = (*retry_after_ms, *tokens);
                Err(Failure { transient, retry_after_ms, tokens, ..Failure::of(fault) })
            }
            Reply::Fails(kind, tokens) => {
                let words = format!("{} answered with the fault {}", self.file, kind.name());
                let cause = json!({"status": null, "url": self.file});
                let fault = Fault::new(*kind, words).because(cause);
                let transient = matches!(kind, FaultKind::Timeout | FaultKind::ProviderError);
                Err(Failure { transient, tokens: *tokens, ..Failure::of(fault) })
            }
        }
    }
}

/// A call as a provider's would come: text as arguments is parsed, and kept where it is no object (E-10).
fn call(call: &Call) -> ToolCall {
    let arguments = arguments_in(call.arguments.clone());
    ToolCall { id: call.id.as_deref().unwrap_or_default().into(), name: call.name.as_str().into(), arguments }
}

/// Lets the delay pass and the text arrive piece by piece, as a stream's would (E-15).
async fn play(
    reply: Result<ModelReply, Failure>,
    delay: Duration,
    watch: Option<Watch>,
) -> Result<ModelReply, Failure> {
    let text = reply.as_ref().map(|reply| reply.text.as_str()).unwrap_or_default();
    let Some(watch) = watch.filter(|_| !text.is_empty()) else {
        if !delay.is_zero() {
            sleep(delay).await;
        }
        return reply;
    };
    if delay.is_zero() {
        watch(Delta::Text(text.to_owned()));
        return reply;
    }
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let pieces = words.chunks(words.len().div_ceil(PIECES).max(1));
    let pause = delay / u32::try_from(pieces.len()).unwrap_or(u32::MAX).max(1);
    for piece in pieces {
        sleep(pause).await;
        watch(Delta::Text(piece.concat()));
    }
    reply
}

/// How long a reply may take.
fn limit_of(request: &ModelRequest) -> Option<Duration> {
    request.timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn late(file: &str, limit: Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    let message = format!("{file} did not finish its reply within {seconds} s (setting: the node's timeout)");
    Failure::transient(FaultKind::Timeout, message)
}

impl Model for Scripted {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let Some(rule) = self.decide_for(&request, &context.run) else {
            let failure = self.no_rule(&request);
            return Box::pin(std::future::ready(Err(failure)));
        };
        let (reply, delay) = (self.answer(&rule.reply), rule.delay);
        let limit = limit_of(&request);
        let file = self.file.clone();
        Box::pin(async move {
            let playing = play(reply, delay, context.watch);
            let Some(limit) = limit else { return playing.await };
            timeout(limit, playing).await.unwrap_or_else(|_| Err(late(&file, limit)))
        })
    }

    fn counts(&self) -> bool {
        self.rules.iter().any(|rule| rule.when.nth.is_some())
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        self.decide_for(request, run);
    }
}
