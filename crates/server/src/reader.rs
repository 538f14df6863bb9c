//! Documents that runs begin with are read one after the other where many come at once.
//!
//! Of 1,000 starts at once, each would else wake a thread of its own, which then is in the way of the runs that go on already: the
//! changes from thread to thread cost as much as the reading. Here one thread is awake for as long as there is something to read, and
//! another one joins it where it is busy with something long.

use crate::blocking::BUG;
use crate::problem::Problem;
use selvedge_host::Error;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// After how long something that is read has others wait no longer behind it.
const LATE: Duration = Duration::from_millis(100);

type Work = Box<dyn FnOnce() + Send>;

/// What is to be read, and how many threads read.
#[derive(Clone, Default)]
pub(crate) struct Reader(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    works: VecDeque<Work>,
    threads: usize,
    /// When one of these threads last took something, or was started to.
    taken: Option<Instant>,
}

impl Reader {
    /// Reads a document when it is its turn.
    ///
    /// # Errors
    /// Those of `read`, or it came upon a bug.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (tell, mut told) = oneshot::channel();
        self.lock().works.push_back(Box::new(move || {
            // Whoever asked may be gone by now.
            if !tell.is_closed() {
                let _ = tell.send(read());
            }
        }));
        loop {
            self.hurry();
            if let Ok(read) = timeout(LATE, &mut told).await {
                return read.unwrap_or_else(|_| Err(Error::internal(BUG).into()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one more thread read if there is none, or if those that there are have taken nothing for a while.
    fn hurry(&self) {
        let mut queue = self.lock();
        let wanting = queue.threads == 0 || queue.taken.is_none_or(|taken| taken.elapsed() >= LATE);
        if wanting && !queue.works.is_empty() {
            queue.threads += 1;
            queue.taken = Some(Instant::now());
            let reader = self.clone();
            tokio::task::spawn_blocking(move || reader.read_all());
        }
    }

    fn read_all(&self) {
        loop {
            let mut queue = self.lock();
            let Some(work) = queue.works.pop_front() else {
                queue.threads -= 1;
                return;
            };
            queue.taken = Some(Instant::now());
            drop(queue);
            // A panic is told where it happens, and this request alone ends with it.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn s06_a_document_that_comes_upon_a_bug_ends_its_own_request_alone() {
        let reader = Reader::default();
        let bug = reader.read(|| -> Result<u8, Problem> { panic!("a bug, on purpose") });
        assert!(bug.await.is_err());
        assert!(matches!(reader.read(|| Ok(1)).await, Ok(1)));
    }

    #[tokio::test]
    async fn s06_nobody_waits_for_a_document_that_takes_long() {
        let reader = Reader::default();
        let (go, wait) = mpsc::channel::<()>();
        let long = tokio::spawn({
            let reader = reader.clone();
            async move { reader.read(move || Ok(wait.recv().is_err())).await }
        });
        while reader.lock().threads == 0 {
            tokio::task::yield_now().await;
        }
        // They come while the other is read, and none of them behind it.
        for n in 0..3 {
            assert!(matches!(reader.read(move || Ok(n)).await, Ok(read) if read == n));
        }
        assert!(!long.is_finished());
        drop(go);
        assert!(matches!(long.await, Ok(Ok(true))));
    }
}
