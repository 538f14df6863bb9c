//! Programs of ours that take long end with this process, however it ends (E-13): a warden, which is told of each, sees
//! to it. What is confined ends with it anyway, as its namespace does.

use super::Victim;
use crate::isolation::Launcher;
use crate::warden::Warden;
use std::sync::OnceLock;
use tokio::runtime::Handle;

/// One for all programs of this process, as it is the end of this process that matters.
static WARDEN: OnceLock<Warden> = OnceLock::new();

/// Makes it known how a warden is started; the first launcher that is told is taken. Without one, a program that was
/// started may outlive a process that is killed.
pub(crate) fn started_as(launcher: &Launcher) {
    WARDEN.get_or_init(|| Warden::new(Some(launcher.clone())));
}

/// Starts the warden, before a program is started that it is to be told of.
pub(super) async fn ready() {
    if let Some(warden) = WARDEN.get() {
        warden.ready().await;
    }
}

/// A process group that the warden knows of, until this is dropped.
pub(super) struct Watched(u32);

impl Watched {
    /// Tells the warden of the group of a process that has just been started.
    pub(super) async fn new(victim: Victim) -> Option<Self> {
        let group = u32::try_from(victim.leader?.as_raw_nonzero().get()).ok()?;
        WARDEN.get()?.watch(group).await;
        Some(Self(group))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let group = self.0;
        // Its number may be another group's from here on. Where no runtime is left, this process ends now.
        if let (Some(warden), Ok(runtime)) = (WARDEN.get(), Handle::try_current()) {
            runtime.spawn(warden.forget(group));
        }
    }
}
