//! What the driver needs from the outside: models, tools and operations, each behind one door.

use selvedge_engine::{Failure, ModelReply, ModelRequest, Operated, Printed, ToolRequest};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A future of a port: dropping it cancels the call, down to the last child process (E-13).
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// What a call may say to watchers while it goes on (E-15): never journaled, never steering.
#[derive(Clone, Debug)]
pub enum Delta {
    /// A piece of the reply's text.
    Text(String),
    /// A line of a tool's own progress.
    Progress(String),
}

/// Where deltas go.
pub type Watch = Arc<dyn Fn(Delta) + Send + Sync>;

/// The circumstances of one call.
#[derive(Clone)]
pub struct CallContext {
    /// The run that calls.
    pub run: Arc<str>,
    /// Where deltas go, if anybody watches.
    pub watch: Option<Watch>,
    /// Where a tool's adapter puts what the tool printed.
    pub printing: Printing,
    /// Where an operation says why there is no answer to it.
    pub unanswered: Unanswered,
    /// Where a call of a model says that it waits for its turn at its endpoint.
    pub turn: Turn,
}

impl CallContext {
    /// A call of this run that nobody watches.
    pub fn of(run: &str) -> Self {
        Self {
            run: run.into(),
            watch: None,
            printing: Printing::default(),
            unanswered: Unanswered::default(),
            turn: Turn::default(),
        }
    }
}

/// Whether a call waits for its turn at an endpoint: nothing was sent yet, and no time of the call has begun (E-51).
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<Mutex<(Option<Instant>, Duration)>>);

impl Turn {
    /// The call waits from now on.
    pub fn waits(&self) {
        self.lock().0.get_or_insert_with(Instant::now);
    }

    /// It is the call's turn; whether it had waited.
    pub fn begins(&self) -> bool {
        let mut turn = self.lock();
        let since = turn.0.take();
        turn.1 += since.map(|since| since.elapsed()).unwrap_or_default();
        since.is_some()
    }

    /// Whether it waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.lock().0.is_some()
    }

    /// How long it has waited.
    pub(crate) fn waited(&self) -> Duration {
        self.lock().1
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Instant>, Duration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an operation has no answer, a full disk for example: that is no outcome of it, and nothing may follow from it. The driver stops with
/// this as its error; whoever takes the run up again asks for the operation again.
#[derive(Clone, Debug, Default)]
pub struct Unanswered(Arc<(Mutex<Option<Trouble>>, Notify)>);

/// What stands in the way of an answer.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

impl Unanswered {
    /// Says why, and waits for the end of the call.
    pub async fn because<T>(&self, trouble: impl Into<Trouble>) -> T {
        let (told, notify) = &*self.0;
        told.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trouble.into());
        notify.notify_one();
        std::future::pending().await
    }

    /// Waits until an operation says so.
    pub(crate) async fn told(&self) -> Trouble {
        let (told, notify) = &*self.0;
        loop {
            if let Some(trouble) = told.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return trouble;
            }
            notify.notified().await;
        }
    }
}

/// The end of a stream of a tool, as it came.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The end of what was written: twice what is kept of it, or all.
    pub text: String,
    /// Bytes that came before, and are gone.
    pub lost: u64,
}

impl Stream {
    /// How much of the end of a stream is handed on where there is more.
    pub const MOST: usize = 2 * Printed::MOST;

    /// What is kept, with the number of bytes that are not. Where something was lost, the first half is not kept
    /// whatever its length: only there can a part of a key be that was not seen as one (C-06).
    fn kept(self) -> (String, u64) {
        let margin = if self.lost > 0 { Printed::MOST } else { 0 };
        let cut = self.text.len().saturating_sub(Printed::MOST).max(margin.min(self.text.len()));
        let cut = self.text.ceil_char_boundary(cut);
        (self.text.get(cut..).unwrap_or_default().to_owned(), self.lost.saturating_add(cut as u64))
    }
}

/// What a tool printed during one call, on its way to the journal. Whatever becomes of the call, the last that was put here
/// counts.
#[derive(Clone, Debug, Default)]
pub struct Printing(Arc<Mutex<Option<[Stream; 2]>>>);

impl Printing {
    /// Puts the ends of stdout and stderr here.
    pub fn put(&self, streams: [Stream; 2]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(streams);
    }

    /// Takes them.
    pub fn take(&self) -> Option<[Stream; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What is kept of them; `None` if nothing was printed.
    pub fn kept(&self) -> Option<Arc<Printed>> {
        let [stdout, stderr] = self.take()?;
        let ((stdout, stdout_cut), (stderr, stderr_cut)) = (stdout.kept(), stderr.kept());
        let printed = Printed { stdout, stdout_cut, stderr, stderr_cut };
        (!printed.is_empty()).then(|| Arc::new(printed))
    }
}

/// The one way to call a model. One implementation serves all roles of a run.
pub trait Model: Send + Sync {
    /// Starts a call. It is invoked in the order of the run's requests; the work happens in the future.
    ///
    /// A failure says by [`Failure::transient`] whether E-14's attempts go on; the adapter itself never retries.
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply>;

    /// Whether it wants to be told of requests by [`Self::recorded`]: else none is built for it.
    fn counts(&self) -> bool {
        false
    }

    /// A request that this run made in an earlier process and that came to an end (C-07's `nth` counts them).
    fn recorded(&self, request: &ModelRequest, run: &str) {
        let _ = (request, run);
    }
}

/// The one way to call a tool. One implementation serves all tools of a run.
pub trait Tools: Send + Sync {
    /// Starts a call; the output is the tool's JSON value (E-25).
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value>;
}

/// The one way to call an operation of Selvedge's own (E-40). One implementation serves all operations of a run.
///
/// What an operation changes outside the run it keeps with the run ([`CallContext::run`]) and the key of the request
/// ([`ToolRequest::key`]): asked again with both, by another attempt or after a crash, it changes nothing and answers the
/// same.
pub trait Operations: Send + Sync {
    /// Starts an operation. Nothing is held for it that other calls wait for: it may wait for a run of its own.
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated>;
}
