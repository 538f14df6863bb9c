//! Reads of the store from async code.

use selvedge_store::{Store, StoreError};
use std::panic::resume_unwind;
use std::sync::Arc;

/// Reads on a thread that may block, so that a disk which takes its time holds up no other run.
pub(crate) async fn blocking<T: Send + 'static>(
    store: &Arc<Store>,
    read: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let store = Arc::clone(store);
    match tokio::task::spawn_blocking(move || read(&store)).await {
        Ok(read) => read,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is being shut down, and nobody goes on.
            Err(_) => std::future::pending().await,
        },
    }
}
