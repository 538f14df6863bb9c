//! Work that may block, away from the threads of the runtime that must not.

use crate::problem::Problem;
use selvedge_host::Error;

/// What is said of a request that panicked: that was told where it happened.
pub(crate) const BUG: &str = "the request has come upon a bug";

/// Does work that may block, as reading the store does, on a thread for it.
///
/// # Errors
/// Those of the work, or it came upon a bug.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Its panic was told where it happened; this request alone ends with it.
        Err(_) => Err(Error::internal(BUG).into()),
    }
}
