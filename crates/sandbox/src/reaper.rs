//! Programs end with this process, however it ends (E-13): another process, which is told of each, sees to it. Until it has been
//! told, a program is held and does nothing.

pub(crate) mod bound;
mod held;

use crate::launcher::Launcher;
use crate::spawn::{Guard, Handed, KillHandle, started};
use held::Held;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// The first argument of a launcher that is a reaper.
pub(crate) const REAPER: &str = "--reaper";
/// The first argument of a launcher that waits before it becomes a program: `--held GO FAILED -- PROGRAM ARG…`, with the
/// numbers of the descriptors on which it is told to, and says with which error it could not.
pub(crate) const HELD: &str = "--held";

/// The other process; it starts with the first program.
pub struct Reaper {
    launcher: Option<Launcher>,
    running: Mutex<Option<(Child, ChildStdin)>>,
}

impl Reaper {
    /// One that is started as this launcher; without one, programs that do not end by themselves outlive a process that
    /// is killed.
    pub fn new(launcher: Option<Launcher>) -> Self {
        Self { launcher: launcher.filter(|_| cfg!(target_os = "linux")), running: Mutex::default() }
    }

    /// Starts a program that ends with this process; `set` says the rest of how it is started. It does nothing before the
    /// reaper knows of it: nobody else would end it if this process were killed between.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn start(
        self: &Arc<Self>,
        program: &OsStr,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        handed: Handed,
        set: impl FnOnce(&mut Command),
    ) -> io::Result<(Child, Watched)> {
        let Some(launcher) = self.ready().await else {
            // Without it a run goes on all the same.
            let mut command = Command::new(program);
            set(command.args(args));
            return Ok((started(command, handed).await?, Watched(None)));
        };
        let mut held = Held::new()?;
        let mut command = held.command(launcher, program);
        set(command.args(args));
        let child = started(command, [handed, held.handed()].concat()).await?;
        let mut guard = Guard(Some(KillHandle::of(&child, false)));
        let watched = Watched(child.id().map(|group| (Arc::clone(self), group)));
        if let Some(group) = child.id() {
            self.watch(launcher, group).await;
        }
        held.go().await?;
        // The caller's from here on.
        guard.0 = None;
        Ok((child, watched))
    }

    /// Starts it if there is none yet; nothing where there can be none.
    async fn ready(&self) -> Option<&Launcher> {
        let launcher = self.launcher.as_ref()?;
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = start(launcher).await.ok().flatten();
        }
        running.is_some().then_some(launcher)
    }

    /// A process group has begun.
    async fn watch(&self, launcher: &Launcher, group: u32) {
        let mut running = self.running.lock().await;
        let line = format!("+{group}\n");
        if let Some((_, pipe)) = running.as_mut()
            && pipe.write_all(line.as_bytes()).await.is_ok()
        {
            return;
        }
        // Somebody has ended it. Without one a run goes on all the same.
        if let Ok(Some((child, mut pipe))) = start(launcher).await
            && pipe.write_all(line.as_bytes()).await.is_ok()
        {
            *running = Some((child, pipe));
        }
    }

    /// It has ended.
    async fn forget(&self, group: u32) {
        if let Some((_, pipe)) = self.running.lock().await.as_mut() {
            let _ = pipe.write_all(format!("-{group}\n").as_bytes()).await;
        }
    }
}

/// A process group that the reaper knows of, until this is dropped: its number may be another's from there on.
pub struct Watched(Option<(Arc<Reaper>, u32)>);

impl Drop for Watched {
    fn drop(&mut self) {
        // Where no runtime is left, this process ends now.
        if let (Some((reaper, group)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { reaper.forget(group).await });
        }
    }
}

async fn start(launcher: &Launcher) -> io::Result<Option<(Child, ChildStdin)>> {
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).arg(REAPER).env_clear().current_dir(PathBuf::from("/"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = started(command, Handed::default()).await?;
    Ok(child.stdin.take().map(|pipe| (child, pipe)))
}
