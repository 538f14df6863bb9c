//! Isolation of tools by layers, outermost first: namespaces and mounts (bubblewrap), a user of their own,
//! limits, Landlock, seccomp. What each of them holds is in `docs/decisions/0007-isolation.md`.
//!
//! [`Isolation`] knows which of them this machine gives: each is tried once, for real, when a tool is first to run, and
//! the answer is kept. A layer that was found to work is never left out silently: where it fails later, the tool does
//! not run.

#[cfg(target_os = "linux")]
pub(crate) mod bubblewrap;
#[cfg(target_os = "linux")]
pub mod confine;
#[cfg(target_os = "linux")]
pub(crate) mod groups;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
pub(crate) mod view;

use crate::env::ProcessEnv;
use crate::launcher::Launcher;
use crate::spawn::Handed;
use crate::supervisor;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::OnceCell;

/// One layer of isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Mounts with only what was granted, processes, network and host name of its own: bubblewrap.
    Namespaces,
    /// A user that owns nothing, where Selvedge runs as root.
    Identity,
    /// Memory, processes, file size, open files, processor time.
    Limits,
    /// Files and TCP ports once more, enforced by the kernel on the process itself.
    Landlock,
    /// Dangerous system calls.
    Seccomp,
    /// All processes of a call as one: control groups. Optional: where it is missing, nothing is refused or warned of.
    Cgroups,
}

impl Layer {
    /// All that isolation takes, outermost first; [`Self::Cgroups`] is a further one.
    pub const ALL: [Self; 5] =
        [Self::Namespaces, Self::Identity, Self::Limits, Self::Landlock, Self::Seccomp];

    /// Its name for people and in warnings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Identity => "identity",
            Self::Limits => "limits",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Cgroups => "cgroups",
        }
    }

    /// What it keeps tools from.
    pub fn holds(self) -> &'static str {
        match self {
            Self::Namespaces => "files outside of what was granted, the network, other processes",
            Self::Identity => "the rights of root, and more processes than a tool may have",
            Self::Limits => "more memory, processes and disk than a tool may have",
            Self::Landlock => "files outside of what was granted, and other calls' files",
            Self::Seccomp => "system calls that attacks on the kernel use, and sockets without permission",
            Self::Cgroups => {
                "more memory and processes for all processes of a call together than one may have"
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A layer that does not work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which one.
    pub layer: Layer,
    /// Why.
    pub why: String,
}

/// What this machine gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The bubblewrap that works.
    pub(crate) bubblewrap: Option<PathBuf>,
    /// The layers that work.
    pub held: Vec<Layer>,
    /// The layers that do not.
    pub missing: Vec<Missing>,
    /// Those of them that are optional: not in `missing`, and without effect on [`Self::enforced`].
    #[serde(skip)]
    pub optional: Vec<Missing>,
    /// Where calls get a control group each.
    #[cfg(target_os = "linux")]
    #[serde(skip)]
    pub(crate) groups: Option<groups::Groups>,
    /// The first of the numbers that tools' users get, where Selvedge runs as root.
    pub(crate) users: Option<u32>,
    /// Why interpreters cannot be kept warm, if they cannot: each call then starts one.
    pub warm: Option<String>,
}

impl Found {
    /// Whether a layer works.
    pub fn holds(&self, layer: Layer) -> bool {
        self.held.contains(&layer)
    }

    /// Whether all of them work that isolation takes.
    pub fn enforced(&self) -> bool {
        self.missing.is_empty()
    }

    /// The layers that do not work and why, for people; empty if there is none.
    pub fn complaint(&self) -> String {
        let each = self.missing.iter().map(|missing| format!("{}: {}", missing.layer, missing.why));
        each.collect::<Vec<_>>().join("; ")
    }
}

/// How many users tools may have at a time.
#[cfg(target_os = "linux")]
const USERS: u32 = 1 << 15;

#[derive(Debug)]
struct Inner {
    launcher: Option<Launcher>,
    /// Folders of programs.
    search: Vec<PathBuf>,
    off: Vec<Layer>,
    #[cfg(target_os = "linux")]
    grouped: bool,
    kept: Option<PathBuf>,
    found: OnceCell<Found>,
    users: AtomicU32,
}

/// The isolation of this machine. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Isolation(Arc<Inner>);

impl Isolation {
    /// Isolation with this launcher; other programs that it takes are looked for on the search path of this process.
    pub fn new(launcher: Launcher, env: &ProcessEnv) -> Self {
        supervisor::started_as(&launcher);
        Self::made(Some(launcher), env.search_path().collect(), None, Vec::new())
    }

    /// None at all: no launcher is known. Limits on time, output and memory hold all the same.
    pub fn none() -> Self {
        Self::made(None, Vec::new(), None, Vec::new())
    }

    /// The same with the answers of the kernel kept in a file, so that the next process need not ask.
    #[must_use]
    pub fn kept_in(self, file: PathBuf) -> Self {
        Self::made(self.0.launcher.clone(), self.0.search.clone(), Some(file), self.0.off.clone())
    }

    /// The same without some layers: for tests that show what each of them holds.
    #[must_use]
    pub fn without(self, off: &[Layer]) -> Self {
        Self::made(self.0.launcher.clone(), self.0.search.clone(), None, off.to_vec())
    }

    /// The same with control groups also where they hold nothing that other layers do not: for tests of them.
    #[must_use]
    #[cfg(target_os = "linux")]
    pub fn grouped(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.grouped = true;
        }
        self
    }

    fn made(
        launcher: Option<Launcher>,
        search: Vec<PathBuf>,
        kept: Option<PathBuf>,
        off: Vec<Layer>,
    ) -> Self {
        // Processes that run at the same time start at different numbers.
        let users = AtomicU32::new(std::process::id().wrapping_mul(2_654_435_761));
        Self(Arc::new(Inner {
            launcher,
            search,
            off,
            #[cfg(target_os = "linux")]
            grouped: false,
            kept,
            found: OnceCell::new(),
            users,
        }))
    }

    /// What works here: tried when first asked for.
    pub async fn found(&self) -> &Found {
        self.0.found.get_or_init(|| self.look()).await
    }

    /// What [`Self::found`] said, if it has been asked.
    pub fn known(&self) -> Option<&Found> {
        self.0.found.get()
    }

    /// The launcher, if one is known.
    pub fn launcher(&self) -> Option<Launcher> {
        self.0.launcher.clone()
    }

    /// Whether a launcher is known: without one, nothing is isolated.
    pub fn is_possible(&self) -> bool {
        self.0.launcher.is_some()
    }

    #[cfg(not(target_os = "linux"))]
    async fn look(&self) -> Found {
        let why = || "only Linux has it".to_owned();
        let missing = Layer::ALL.map(|layer| Missing { layer, why: why() });
        Found { missing: missing.into(), warm: Some(why()), ..Found::default() }
    }

    /// A user for one call, or one group of calls.
    #[cfg(target_os = "linux")]
    pub(crate) fn user(&self, found: &Found) -> Option<u32> {
        let next = self.0.users.fetch_add(1, Ordering::Relaxed) % USERS;
        found.users.map(|first| first.saturating_add(next))
    }

    /// The numbers that only tools have: what belongs to one of them was made by a tool. None in a container with few
    /// numbers, where others may have the same.
    #[cfg(target_os = "linux")]
    pub(crate) fn unassigned_uids(&self) -> std::ops::Range<u32> {
        let first = self.known().and_then(|found| found.users).filter(|first| *first == probe::FIRST_USER);
        first.map(|first| first..first.saturating_add(USERS)).unwrap_or_default()
    }
}

/// Whether a file of this owner was made by a tool: the number is one that only tools of root's have.
#[cfg(target_os = "linux")]
pub fn is_tools_number(owner: u32) -> bool {
    (probe::FIRST_USER..probe::FIRST_USER.saturating_add(USERS)).contains(&owner)
}

/// A program with its arguments.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Whether it is bubblewrap with a sandbox.
    pub(crate) sandbox: bool,
    /// The number of its user, where that is another than the caller's.
    pub(crate) user: Option<u32>,
    /// What it inherits.
    pub(crate) handed: Handed,
    /// The control group that it starts in: ended with this.
    #[cfg(target_os = "linux")]
    pub(crate) group: Option<groups::Group>,
}

impl Start {
    /// A program as it is.
    pub(crate) fn plain(program: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            program,
            args,
            sandbox: false,
            user: None,
            handed: Handed::default(),
            #[cfg(target_os = "linux")]
            group: None,
        }
    }

    /// The same as a member of a control group from its first moment on.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_group(mut self, launcher: &Launcher, group: groups::Group) -> Self {
        let mut args: Vec<OsString> = launcher.args.iter().map(Into::into).collect();
        args.extend([confine::JOIN.into(), group.dir().into(), "--".into(), self.program.into()]);
        args.append(&mut self.args);
        Self { program: launcher.program.clone(), args, group: Some(group), ..self }
    }
}
