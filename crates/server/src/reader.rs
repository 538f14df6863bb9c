//! Documents that runs begin with are read by one thread, one after the other.
//!
//! Of 1,000 starts that come at once, each would else wake a thread of its own, which then is in the way of the runs that go on
//! already: the changes from thread to thread cost as much as the reading. This one is awake as long as there is something to read.

use crate::app::{BUG, blocking};
use crate::problem::Problem;
use selvedge_host::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// Bytes of a body that nobody need wait behind. Longer ones are read beside the others.
pub(crate) const SHORT: usize = 64 * 1024;

type Work = Box<dyn FnOnce() + Send>;

/// The thread, from the first document on; it ends when this is dropped.
#[derive(Default)]
pub(crate) struct Reader(OnceLock<Option<Sender<Work>>>);

impl Reader {
    /// Reads the document of a body of so many bytes.
    ///
    /// # Errors
    /// Those of `read`, or it came upon a bug.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        bytes: usize,
        read: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let reader = self.0.get_or_init(started).as_ref().filter(|_| bytes <= SHORT);
        let Some(reader) = reader else { return blocking(read).await };
        let (tell, told) = oneshot::channel();
        // Whoever asked may be gone when it has been read.
        let work = move || drop(tell.send(read()));
        // Neither the thread nor what was asked of it is there any more only where it came upon a bug.
        let _ = reader.send(Box::new(work));
        told.await.unwrap_or_else(|_| Err(Error::internal(BUG).into()))
    }
}

/// `None`: the system has no thread for it.
fn started() -> Option<Sender<Work>> {
    let (sender, works) = channel();
    std::thread::Builder::new().name("selvedge-read".to_owned()).spawn(move || in_turn(&works)).ok()?;
    Some(sender)
}

fn in_turn(works: &Receiver<Work>) {
    for work in works {
        // The panic is told where it happens, and this request alone ends with it.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s06_a_document_that_comes_upon_a_bug_ends_its_own_request_alone() {
        let reader = Reader::default();
        for bytes in [0, SHORT + 1] {
            let read = reader.read(bytes, || -> Result<u8, Problem> { panic!("a bug, on purpose") });
            assert!(read.await.is_err());
        }
        assert!(matches!(reader.read(0, || Ok(1)).await, Ok(1)));
    }
}
