//! Programs of ours that take long end with this process, however it ends (E-13). What is confined does so anyway, as its
//! namespace does.

use super::{Reaper, Watched};
use crate::launcher::Launcher;
use crate::spawn::Handed;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::process::{Child, Command};

/// One for all programs of this process, as it is the end of this process that matters.
static REAPER: OnceLock<Arc<Reaper>> = OnceLock::new();

/// Makes it known how a reaper is started; the first launcher that is told is taken. Without one, a program that was
/// started may outlive a process that is killed.
pub(crate) fn started_as(launcher: &Launcher) {
    REAPER.get_or_init(|| Arc::new(Reaper::new(Some(launcher.clone()))));
}

/// Starts a program as [`Reaper::start`] does.
pub(crate) async fn start(
    program: &OsStr,
    args: &[OsString],
    handed: Handed,
    set: impl FnOnce(&mut Command),
) -> io::Result<(Child, Watched)> {
    let reaper = REAPER.get().map_or_else(|| Arc::new(Reaper::new(None)), Arc::clone);
    reaper.start(program, args, handed, set).await
}
