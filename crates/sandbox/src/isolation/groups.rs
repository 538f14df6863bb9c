//! Control groups (cgroup v2), where this process may make some below its own: all processes of a call in one, with
//! a bound on the memory and the number of them together, and one word that ends them all.
//!
//! Groups are made below the group of this process and nowhere else: a limit that somebody set for it holds for its tools
//! too. The kernel gives limits only below a group without processes of its own, so a process that is alone in its group
//! moves one level down; one that is not alone gets no limits.

use crate::policy::Policy;
use rustix::fs::{Access, access};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The first part of the names of all groups that are made here.
const PREFIX: &str = "selvedge-";
/// Where a process that is alone in its group goes.
const OWN: &str = "selvedge-main";
/// Processes of a call that are ours: bubblewrap, launchers, what waits for it.
const OURS: u64 = 8;
/// How often, and how long apart, a group whose processes are ending is tried to be removed.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// Where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    base: PathBuf,
    /// Whether they can limit memory and processes; all of them can be ended as a whole.
    pub(crate) limits: bool,
    /// What the kernel said when limits were asked for.
    refused: Option<String>,
}

impl Groups {
    /// Finds out what can be done below the group of this process; the text says why nothing can.
    pub(crate) fn find() -> Result<Self, String> {
        let read = |file: &str| std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
        let own = own_folder(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)?;
        // Where this process has gone down already, or one that started it.
        let above = own.parent().filter(|_| own.ends_with(OWN));
        let groups = Self::below(above.unwrap_or(&own))?;
        groups.sweep();
        Ok(groups)
    }

    fn below(own: &Path) -> Result<Self, String> {
        let shown = own.display();
        let sealed = |e: &dyn std::fmt::Display| format!("no group can be made in {shown}: {e}");
        access(own.join("cgroup.procs"), Access::WRITE_OK).map_err(|e| sealed(&e))?;
        let mut groups = Self { base: own.to_owned(), limits: false, refused: None };
        let mut has = groups.try_one().map_err(|e| sealed(&e))?;
        if !has.limits && is_alone(own) {
            // Of no use where the kernel gives no limits below it all the same: then nothing is changed.
            let offered = std::fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
            if ["memory", "pids"].iter().all(|name| offered.split_whitespace().any(|word| word == *name)) {
                groups.refused = groups.make_room().err().map(|e| e.to_string());
                has = groups.try_one().map_err(|e| sealed(&e))?;
            }
        }
        if !has.kill {
            return Err("this kernel can't end a group as a whole (cgroup.kill, Linux 5.14)".to_owned());
        }
        groups.limits = has.limits;
        Ok(groups)
    }

    /// Why there are no limits, if there are none.
    pub(crate) fn lack(&self) -> Option<String> {
        if self.limits {
            return None;
        }
        if let Some(why) = &self.refused {
            return Some(format!("{} gives no limits: {why}", self.base.display()));
        }
        let offered = std::fs::read_to_string(self.base.join("cgroup.controllers")).unwrap_or_default();
        let absent: Vec<_> = ["memory", "pids"]
            .into_iter()
            .filter(|name| !offered.split_whitespace().any(|word| word == *name))
            .collect();
        Some(match absent.is_empty() {
            true => format!("this process is not alone in its group {}", self.base.display()),
            false => format!(
                "{} has no control of {} (cgroups v1 may have it)",
                self.base.display(),
                absent.join(" and ")
            ),
        })
    }

    /// Moves this process one level down, and asks for limits on that level. Nothing is moved out of the root of all
    /// groups: there the kernel allows both.
    fn make_room(&self) -> io::Result<()> {
        let control = self.base.join("cgroup.subtree_control");
        if std::fs::write(&control, "+memory +pids").is_ok() {
            return Ok(());
        }
        let own = self.base.join(OWN);
        match std::fs::create_dir(&own) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => std::fs::write(own.join("cgroup.procs"), "0")?,
        }
        std::fs::write(control, "+memory +pids")
    }

    fn try_one(&self) -> io::Result<Has> {
        let group = self.empty()?;
        let is = |name: &str| access(group.dir.join(name), Access::WRITE_OK).is_ok();
        Ok(Has { kill: is("cgroup.kill"), limits: is("memory.max") && is("pids.max") })
    }

    /// A new group for the processes of one call.
    ///
    /// # Errors
    /// When it can't be made, or a limit can't be set that groups have here.
    pub(crate) fn limited(&self, policy: &Policy) -> io::Result<Group> {
        let group = self.empty()?;
        if self.limits {
            if let Some(bytes) = policy.total_bytes {
                std::fs::write(group.dir.join("memory.max"), bytes.to_string())?;
                // Not there where there is no swap at all.
                let _ = std::fs::write(group.dir.join("memory.swap.max"), "0");
            }
            if let Some(most) = policy.processes {
                std::fs::write(group.dir.join("pids.max"), most.saturating_add(OURS).to_string())?;
            }
        }
        Ok(group)
    }

    /// A new group without limits.
    ///
    /// # Errors
    /// When it can't be made.
    pub(crate) fn empty(&self) -> io::Result<Group> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = self.base.join(format!("{}{}-{number}", family(), std::process::id()));
        std::fs::create_dir(&dir)?;
        Ok(Group { dir })
    }

    /// Ends and removes what processes of this machine have left that were killed.
    fn sweep(&self) {
        let family = family();
        for entry in std::fs::read_dir(&self.base).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(&family)?.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                drop(Group { dir: entry.path() });
            }
        }
    }
}

struct Has {
    kill: bool,
    limits: bool,
}

/// What names of groups begin with that are made where process numbers mean the same as here.
fn family() -> String {
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().display().to_string();
    let number: String = space.chars().filter(char::is_ascii_digit).collect();
    format!("{PREFIX}{number}-")
}

/// Where the group of this process is in the file system.
fn own_folder(mounts: &str, groups: &str) -> Result<PathBuf, String> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let group = group.ok_or("this kernel has no cgroups v2, or they are switched off")?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ").then(|| (root.to_owned(), point.to_owned()))
    });
    let (root, point) = mount.ok_or("no cgroups v2 are mounted here")?;
    match Path::new(group).strip_prefix(&root) {
        // A group above the mounted ones is shown as `/..`.
        Ok(below) if !group.contains("..") => Ok(Path::new(&point).join(below)),
        _ => Err(format!("the group of this process ({group}) is not in reach")),
    }
}

/// Whether this process is the only one of its group.
fn is_alone(own: &Path) -> bool {
    let all = std::fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
    // The root of all groups, which has no type, takes limits below it with processes in it.
    all.trim() == std::process::id().to_string() || !own.join("cgroup.type").exists()
}

/// One group. Dropping it ends all that is in it and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
}

impl Group {
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What a process writes `0` to, to be in it: with the rights of who opened it.
    pub(crate) fn entrance(&self) -> io::Result<File> {
        File::options().write(true).open(self.dir.join("cgroup.procs"))
    }

    /// Ends every process in it at once, those that are being made too.
    pub(crate) fn kill(&self) {
        // An error means that it is gone.
        let _ = std::fs::write(self.dir.join("cgroup.kill"), "1");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
            return;
        }
        self.kill();
        let dir = std::mem::take(&mut self.dir);
        let remove = move || {
            for _ in 0..TRIES {
                if std::fs::remove_dir(&dir).is_ok() || !dir.exists() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => drop(handle.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

#[cfg(test)]
mod tests;
