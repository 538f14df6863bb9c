//! Servers end with this process, however it ends (E-13): another process, which is told of each, sees to it.

pub(crate) mod bound;

use crate::launcher::Launcher;
use crate::spawn::{Handed, started};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Mutex;

/// The first argument of a launcher that is a reaper.
pub(crate) const REAPER: &str = "--reaper";

/// The other process; it starts with the first server.
pub struct Reaper {
    launcher: Option<Launcher>,
    running: Mutex<Option<(Child, ChildStdin)>>,
}

impl Reaper {
    /// One that is started as this launcher; without one, servers that do not end by themselves outlive a process that
    /// is killed.
    pub fn new(launcher: Option<Launcher>) -> Self {
        Self { launcher: launcher.filter(|_| cfg!(target_os = "linux")), running: Mutex::default() }
    }

    /// Starts it if there is none yet: before a process is started that it is to be told of, since until it has been
    /// told nobody would end that one.
    pub async fn ready(&self) {
        let Some(launcher) = &self.launcher else { return };
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = start(launcher).await.ok().flatten();
        }
    }

    /// A process group has begun.
    pub async fn watch(&self, group: u32) {
        let Some(launcher) = &self.launcher else { return };
        let mut running = self.running.lock().await;
        let line = format!("+{group}\n");
        if let Some((_, pipe)) = running.as_mut()
            && pipe.write_all(line.as_bytes()).await.is_ok()
        {
            return;
        }
        // There is none yet, or somebody has ended it. Without one a run goes on all the same.
        if let Ok(Some((child, mut pipe))) = start(launcher).await
            && pipe.write_all(line.as_bytes()).await.is_ok()
        {
            *running = Some((child, pipe));
        }
    }

    /// It has ended: its number may be another's from here on.
    pub async fn forget(&self, group: u32) {
        if let Some((_, pipe)) = self.running.lock().await.as_mut() {
            let _ = pipe.write_all(format!("-{group}\n").as_bytes()).await;
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
