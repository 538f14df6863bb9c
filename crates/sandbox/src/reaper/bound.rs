//! Programs of ours that take long end with this process, however it ends (E-13): a reaper, which is told of each, sees
//! to it. What is confined ends with it anyway, as its namespace does.

use super::Reaper;
use crate::launcher::Launcher;
use crate::spawn::KillHandle;
use std::sync::OnceLock;
use tokio::runtime::Handle;

/// One for all programs of this process, as it is the end of this process that matters.
static REAPER: OnceLock<Reaper> = OnceLock::new();

/// Makes it known how a reaper is started; the first launcher that is told is taken. Without one, a program that was
/// started may outlive a process that is killed.
pub(crate) fn started_as(launcher: &Launcher) {
    REAPER.get_or_init(|| Reaper::new(Some(launcher.clone())));
}

/// Starts the reaper, before a program is started that it is to be told of.
pub(crate) async fn ready() {
    if let Some(reaper) = REAPER.get() {
        reaper.ready().await;
    }
}

/// A process group that the reaper knows of, until this is dropped.
pub(crate) struct Watched(u32);

impl Watched {
    /// Tells the reaper of the group of a process that has just been started.
    pub(crate) async fn new(started: KillHandle) -> Option<Self> {
        let group = u32::try_from(started.leader?.as_raw_nonzero().get()).ok()?;
        REAPER.get()?.watch(group).await;
        Some(Self(group))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let group = self.0;
        // Its number may be another group's from here on. Where no runtime is left, this process ends now.
        if let (Some(reaper), Ok(runtime)) = (REAPER.get(), Handle::try_current()) {
            runtime.spawn(reaper.forget(group));
        }
    }
}
