//! Runs that a cancelled run has begun, which end with it (E-39).

use crate::error::Error;
use crate::recorded::LockedRun;
use selvedge_runtime::{Command, Controls, send_command};
use selvedge_store::{RunStatus as Stored, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often a run that somebody else is about to leave is tried again, and after how long.
const TRIES: (u32, Duration) = (100, Duration::from_millis(100));

/// Cancels the runs that a run has begun and that have not ended: it was cancelled itself.
///
/// # Errors
/// One of them can't be read or written. The others are cancelled all the same.
pub(crate) async fn cancel_children(store: &Arc<Store>, parent: &str) -> Result<(), Error> {
    let mut failed = Ok(());
    for child in store.children(parent)? {
        if matches!(child.status, Stored::Running | Stored::Waiting)
            && let Err(error) = cancel_one(store, &child.id).await
        {
            failed = Err(error);
        }
    }
    failed
}

async fn cancel_one(store: &Arc<Store>, run: &str) -> Result<(), Error> {
    for _ in 0..TRIES.0 {
        let dir = store.dir().map(PathBuf::from).unwrap_or_default();
        match LockedRun::take(dir, Arc::clone(store), run) {
            Ok(locked) if locked.run.state.ended().is_some() => return Ok(()),
            Ok(locked) => {
                let mut begun = locked.cancel()?;
                Box::pin(begun.drive(&mut Controls::default())).await?;
                begun.close().await;
                return Ok(());
            }
            // Its driver is told, or is about to end.
            Err(error) if error.is("run-driven") => {
                if let Ok(Ok(())) = send_command(store, run, &Command::Cancel {}).await.map_err(drop) {
                    return Ok(());
                }
                tokio::time::sleep(TRIES.1).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
