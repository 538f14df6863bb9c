//! The outermost layer and the order for the inner ones: how a program is started confined.

use crate::exact;
use crate::isolation::confine::{Limits, Order};
use crate::isolation::view::{Place, SHARED_MEMORY, Seen, View, swapped, system};
use crate::isolation::{Found, Isolation, Layer, Start};
use crate::launcher::Launcher;
use crate::policy::Policy;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the launcher lies inside.
const LAUNCHER: &str = "/.launcher";
/// How much memory processes of one sandbox may share by name.
pub(crate) const SHARED_MEMORY_BYTES: u64 = 64 << 20;
/// The rights with which root enters a sandbox: becoming somebody else, and mapping users while doing so.
const RIGHTS: [&str; 4] = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETFCAP"];

/// A program to be started confined.
pub(crate) struct Inside<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [OsString],
    pub(crate) cwd: &'a Path,
    /// A writable folder of its own.
    pub(crate) scratch: &'a Path,
    pub(crate) policy: &'a Policy,
    /// The seconds of processor time of each process.
    pub(crate) cpu_seconds: Option<u64>,
    /// Whether it starts calls of its own.
    pub(crate) server: bool,
    /// The descriptor on which it tells that it runs.
    pub(crate) told: Option<i32>,
}

impl Isolation {
    /// How to start a program with the layers that were found to work; without a launcher, it is started as it is.
    pub(crate) fn start(&self, found: &Found, inside: &Inside<'_>) -> io::Result<Start> {
        let Some(launcher) = &self.0.launcher else {
            return Ok(Start::plain(inside.program.to_owned(), inside.args.to_vec()));
        };
        let user = self.user(found);
        if let Some(user) = user {
            chown(inside.scratch, Some(user), Some(user))?;
        }
        let view = View::new(inside.policy, &[inside.scratch])?;
        let mut order = order(launcher, found, inside, user, &view);
        order.keep_rights = self.0.off.contains(&Layer::Identity);
        let mut tail =
            vec![OsString::from(serde_json::to_string(&order)?), "--".into(), inside.program.into()];
        tail.extend_from_slice(inside.args);
        let start = match &found.bubblewrap {
            Some(bubblewrap) => wrapped(bubblewrap, launcher, inside, user, &view, tail)?,
            None => {
                let mut args: Vec<OsString> = launcher.args.iter().map(Into::into).collect();
                args.append(&mut tail);
                Start { user, ..Start::plain(launcher.program.clone(), args) }
            }
        };
        let group = match &found.groups {
            // Each of its calls has one.
            Some(groups) if inside.server => groups.empty(),
            Some(groups) => groups.limited(inside.policy),
            None => return Ok(start),
        };
        let group = group.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", Layer::Cgroups)))?;
        Ok(start.in_group(launcher, group))
    }

    /// How to try all layers: the program says how each of them went.
    pub(super) fn trial(launcher: &Launcher, bubblewrap: Option<&Path>, user: Option<u32>) -> Option<Start> {
        let (policy, nowhere) = (Policy::default(), Path::new("/"));
        let inside = Inside {
            program: nowhere,
            args: &[],
            cwd: nowhere,
            scratch: nowhere,
            policy: &policy,
            cpu_seconds: None,
            server: bubblewrap.is_some(),
            told: None,
        };
        let view = View::new(&policy, &[]).ok()?;
        let everything = Found { held: Layer::ALL.into(), ..Found::default() };
        let mut order = order(launcher, &everything, &inside, user, &view);
        order.probe = true;
        let tail = vec![OsString::from(serde_json::to_string(&order).ok()?)];
        Some(match bubblewrap {
            Some(bubblewrap) => wrapped(bubblewrap, launcher, &inside, user, &view, tail).ok()?,
            None => {
                let args = launcher.args.iter().map(OsString::from).chain(tail).collect();
                Start { user, ..Start::plain(launcher.program.clone(), args) }
            }
        })
    }
}

fn order(launcher: &Launcher, found: &Found, inside: &Inside<'_>, user: Option<u32>, view: &View) -> Order {
    let policy = inside.policy;
    let limits = Limits {
        memory_bytes: policy.memory_bytes,
        file_bytes: policy.file_bytes,
        open_files: policy.open_files,
        // A server's calls have limits of their own.
        processes: policy.processes.filter(|_| !inside.server),
        cpu_seconds: inside.cpu_seconds,
    };
    Order {
        launcher: launcher.args.clone(),
        become_user: user,
        writes: !policy.write.is_empty(),
        server: inside.server,
        told: inside.told,
        limits: found.holds(Layer::Limits).then_some(limits),
        // A server restricts each of its calls to the call's own scratch folder, and has mounts to make before.
        files: (found.holds(Layer::Landlock) && !inside.server)
            .then(|| view.files(found.holds(Layer::Namespaces))),
        seccomp: found.holds(Layer::Seccomp),
        network: policy.network,
        keep_rights: false,
        probe: false,
    }
}

/// The arguments of bubblewrap, and what it starts. Places are handed over open: bubblewrap refuses to start where what it
/// has mounted is not that, whatever has taken its name meanwhile.
fn wrapped(
    bubblewrap: &Path,
    launcher: &Launcher,
    inside: &Inside<'_>,
    user: Option<u32>,
    view: &View,
    tail: Vec<OsString>,
) -> io::Result<Start> {
    let mut args = Arguments(Vec::new());
    args.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    if !inside.policy.network {
        args.add(["--unshare-net"]);
    }
    // The launcher is the first process, with which all others end: bubblewrap ends after all of them.
    args.add(["--die-with-parent", "--new-session", "--as-pid-1"]);
    if rustix::process::geteuid().is_root() {
        args.add(["--cap-drop", "ALL"]);
        for right in RIGHTS.iter().filter(|_| user.is_some()) {
            args.add(["--cap-add", right]);
        }
    }
    for path in system() {
        match std::fs::read_link(path) {
            Ok(target) => args.add([OsString::from("--symlink"), target.into(), path.into()]),
            Err(_) => args.add([OsString::from("--ro-bind"), path.into(), path.into()]),
        }
    }
    args.add(["--proc", "/proc", "--dev", "/dev"]);
    let size = SHARED_MEMORY_BYTES.to_string();
    args.add(["--perms", "1777", "--size", &size, "--tmpfs", SHARED_MEMORY]);
    let (mut hidden, mut handed, mut folders) = (Vec::new(), Vec::new(), Vec::new());
    for (index, place) in view.0.iter().enumerate() {
        for folder in between(place, view.0.get(..index).unwrap_or_default()) {
            if !folders.contains(&folder) {
                args.add([OsString::from("--perms"), "0755".into(), "--dir".into(), folder.into()]);
                folders.push(folder);
            }
        }
        let at = place.place.clone().into_os_string();
        let mut bind = |option: &str| {
            let file = exact::hold(&place.source).map_err(|_| swapped(&place.source))?;
            let number = file.as_raw_fd().to_string();
            handed.push(Arc::new(file));
            Ok::<_, io::Error>([OsString::from(option), number.into(), at.clone()])
        };
        match place.seen {
            _ if place.is_alias() => {
                args.add([OsString::from("--symlink"), place.source.clone().into(), at]);
            }
            Seen::Read => args.add(bind("--ro-bind-fd")?),
            Seen::Write => args.add(bind("--bind-fd")?),
            Seen::Hidden if place.source.is_dir() => {
                args.add(["--tmpfs".into(), at.clone()]);
                hidden.push(at);
            }
            Seen::Hidden => args.add([OsString::from("--ro-bind"), "/dev/null".into(), at]),
        }
    }
    // Only now: what was granted below a hidden folder needed a place in it.
    for at in hidden {
        args.add(["--remount-ro".into(), at]);
    }
    args.add([OsString::from("--ro-bind"), launcher.program.clone().into(), LAUNCHER.into()]);
    args.add(["--remount-ro", "/"]);
    args.add([OsString::from("--chdir"), inside.cwd.into(), "--".into(), LAUNCHER.into()]);
    args.add(launcher.args.iter().map(String::as_str));
    args.0.extend(tail);
    Ok(Start { sandbox: true, user, handed, ..Start::plain(PathBuf::from(bubblewrap), args.0) })
}

/// The folders on the way to a place that no mount before it brings along, outer ones first: made by bubblewrap itself, they
/// would be closed to everybody but root, and programs that ask whether they may go there (`access`) would be told no.
fn between<'a>(place: &'a Place, before: &'a [Place]) -> impl Iterator<Item = &'a Path> {
    let around = before.iter().rfind(|outer| place.place.starts_with(&outer.place));
    let inside = around.filter(|outer| outer.seen != Seen::Hidden || outer.is_alias()).is_some();
    let folders: Vec<&Path> = place.place.ancestors().skip(1).collect();
    let own = move |folder: &&'a Path| {
        let made = ["/", "/proc", "/dev", SHARED_MEMORY].map(Path::new);
        let outer = around.is_none_or(|outer| folder.starts_with(&outer.place) && **folder != *outer.place);
        !inside && outer && !made.contains(folder) && !system().any(|own| folder.starts_with(own))
    };
    folders.into_iter().rev().filter(own)
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, more: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.extend(more.into_iter().map(Into::into));
    }
}
