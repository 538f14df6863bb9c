//! Waiting for a request to become durable, from async code or from a plain thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_channel::oneshot;

use crate::StoreError;

/// The promise of one request: `Ok(())` once it is durable, or why it is not (then nothing of it was kept).
///
/// It is a future for any executor; [`Commit::wait`] blocks instead. Dropping it does not take the request back.
#[derive(Debug)]
#[must_use = "a request is durable only after its commit was awaited"]
pub struct Commit {
    answer: oneshot::Receiver<Result<(), StoreError>>,
}

/// The writer's end of a [`Commit`].
pub(crate) type Done = oneshot::Sender<Result<(), StoreError>>;

impl Commit {
    pub(crate) fn channel() -> (Done, Self) {
        let (done, answer) = oneshot::channel();
        (done, Self { answer })
    }

    /// A commit that has its answer already.
    pub(crate) fn ready(result: Result<(), StoreError>) -> Self {
        let (done, commit) = Self::channel();
        // The receiver is alive: it is in `commit`.
        let _ = done.send(result);
        commit
    }

    /// Blocks the calling thread until the request is durable or has failed. Not for async code: await it there.
    pub fn wait(mut self) -> Result<(), StoreError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A writer that went away without an answer has committed nothing that it could vouch for.
        Pin::new(&mut self.answer).poll(cx).map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
