//! What tools may reach: what was allowed, what a tool declares, and the confinement of built-ins.

mod granted;

use crate::variables::Variables;
pub(crate) use granted::{Access, Granted};
use selvedge_sandbox::configuration::{Found, guarded, is_own, repository_with, state_of};
use selvedge_sandbox::exact;
use selvedge_sandbox::grant::{Grant, is_ours, reason, settle};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What of the network tools may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Said", into = "Said")]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// `--allow-network`: tools that declare it use the network; `http_get` reaches public addresses.
    Public,
    /// `--allow-network=local`: `http_get` also reaches this machine and its networks.
    Local,
}

impl Network {
    /// Whether there is any.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// What a word for it says.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "public" => Some(Self::Public),
            "local" => Some(Self::Local),
            _ => None,
        }
    }
}

/// As it is written: a flag, or a word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Said {
    Flag(bool),
    Word(String),
}

impl TryFrom<Said> for Network {
    type Error = String;

    fn try_from(said: Said) -> Result<Self, String> {
        match said {
            Said::Flag(false) => Ok(Self::Off),
            Said::Flag(true) => Ok(Self::Public),
            Said::Word(word) => {
                Self::named(&word).ok_or_else(|| format!("{word:?} is nothing of the network"))
            }
        }
    }
}

impl From<Network> for Said {
    fn from(network: Network) -> Self {
        match network {
            Network::Local => Self::Word("local".into()),
            other => Self::Flag(other.is_on()),
        }
    }
}

/// What the user allowed: `--allow-read`, `--allow-write`, `--allow-network`, `--allow-env`, or `[tools]` in the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// Folders and files that may be read besides the document's folder. Here and below, relative paths start at
    /// the document's folder; options of the command line, which start at the current one, come as absolute paths.
    pub allow_read: Vec<PathBuf>,
    /// Folders and files that may be written.
    pub allow_write: Vec<PathBuf>,
    /// What of the network tools that declare it may use.
    pub allow_network: Network,
    /// Variables that tools which declare them are given.
    pub allow_env: Variables,
}

/// What a tool declares that it reaches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    /// Whether it uses the network.
    pub network: bool,
    /// What it reads besides what is allowed anyway.
    pub read_paths: Vec<PathBuf>,
    /// What it writes outside its scratch folder.
    pub write_paths: Vec<PathBuf>,
    /// The variables that it needs.
    pub env: Vec<String>,
}

/// Why a path was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// It lies outside of what is allowed; the text says so and names the option.
    Outside(String),
    /// It is inside, but not there or not usable.
    Unusable(String),
}

/// The folders a built-in may reach, with symbolic links resolved.
#[derive(Clone, Debug)]
pub struct Reach {
    base: PathBuf,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    names: Found,
}

impl Reach {
    /// The reach of built-ins over documents of `workspace`; `names` are those that are kept from all tools.
    pub(crate) fn new(granted: &Granted, names: Found) -> Self {
        let real = |grants: &[Grant]| grants.iter().map(|grant| grant.real.clone()).collect();
        let (read, write) = (real(&granted.read), real(&granted.write));
        Self { base: granted.workspace.clone(), read, write, hidden: Vec::new(), kept: Vec::new(), names }
    }

    /// The same without these folders, their links resolved, wherever they lie in what may be reached: the state folder.
    #[must_use]
    pub fn without(self, hidden: Vec<PathBuf>) -> Self {
        Self { hidden, ..self }
    }

    /// The same without writing these, their links resolved, wherever they lie in what may be written: what Selvedge reads for
    /// itself.
    #[must_use]
    pub fn keeping(self, kept: Vec<PathBuf>) -> Self {
        Self { kept, ..self }
    }

    /// Whether writing is allowed anywhere.
    pub fn may_write(&self) -> bool {
        !self.write.is_empty()
    }

    /// The real place of a file or folder that is to be read: exists, without links, inside what may be read.
    ///
    /// # Errors
    /// Outside: nothing is said about what is there, not even whether it exists.
    pub fn readable(&self, path: &str) -> Result<PathBuf, Refusal> {
        let outside = || {
            Refusal::Outside(format!(
                "`{path}` is outside of what may be read: the document's folder and what `--allow-read PATH` allows"
            ))
        };
        let real = settle(&self.base.join(path)).ok_or_else(outside)?;
        if !self.is_readable(&real) {
            return Err(self.kept_back(path, &real).unwrap_or_else(outside));
        }
        match exact::stat(&real) {
            Ok(_) => Ok(real),
            Err(e) => Err(Refusal::Unusable(format!("`{path}`: {}", reason(&e)))),
        }
    }

    /// Whether a path without links is inside what may be read.
    pub fn is_readable(&self, real: &Path) -> bool {
        self.is_granted(&self.read, real)
    }

    /// Whether one of these grants holds for a path without links. In a folder that is hidden, only grants of that
    /// folder or of what is in it hold, and none for what is ours.
    fn is_granted(&self, roots: &[PathBuf], real: &Path) -> bool {
        let hidden: Vec<&Path> = self.hidden(real).collect();
        if hidden.iter().any(|hidden| is_ours(hidden, real)) {
            return false;
        }
        let within = |root: &Path| hidden.iter().all(|hidden| root.starts_with(hidden));
        roots.iter().any(|root| real.starts_with(root) && within(root))
    }

    /// The state folders that a path lies in: the one in use, and by their name.
    fn hidden<'a>(&'a self, real: &'a Path) -> impl Iterator<Item = &'a Path> {
        let in_use = self.hidden.iter().map(PathBuf::as_path).filter(|hidden| real.starts_with(hidden));
        in_use.chain(state_of(real))
    }

    /// The real place of a file that is to be written, whether it exists or not, inside what may be written.
    ///
    /// # Errors
    /// Outside of it, or no name of a file.
    pub fn writable(&self, path: &str) -> Result<PathBuf, Refusal> {
        let outside = || {
            Refusal::Outside(format!(
                "`{path}` may not be written: `--allow-write PATH` allows a folder or a file"
            ))
        };
        let real = settle(&self.base.join(path)).ok_or_else(outside)?;
        if !self.is_granted(&self.write, &real) {
            return Err(self.kept_back(path, &real).unwrap_or_else(outside));
        }
        // What was granted by its own name, or in it, is the user's will.
        let meant =
            |own: &Path| self.write.iter().any(|root| root.starts_with(own) && real.starts_with(root));
        let kept = |own: &&Path| real.starts_with(own) && !meant(own);
        let ours = guarded(&real).filter(|place| place.file_name().is_some_and(is_own));
        if ours.into_iter().chain(self.kept.iter().map(PathBuf::as_path)).any(|own| kept(&own)) {
            let message = format!(
                "`{path}` is what Selvedge reads for itself (its configuration, its state, the code of tools): tools do not write it, \
                 whatever is allowed around it"
            );
            return Err(Refusal::Outside(message));
        }
        let found = self.names.kept(&self.write, &[]);
        let repository = repository_with(&real, &self.write);
        if let Some(other) = repository.as_deref() {
            let message = format!(
                "`{path}` would be a part of a repository at {}, in which git runs what its settings name: tools do not write that, \
                 whatever is allowed around it, unless the repository is there and granted by its own name",
                other.display()
            );
            return Err(Refusal::Outside(message));
        }
        if let Some(other) = guarded(&real).into_iter().chain(found.iter().map(PathBuf::as_path)).find(kept) {
            let message = format!(
                "`{path}` is what other programs run unasked: tools do not write it, whatever is allowed around it, unless it is \
                 granted by its own name (`--allow-write {}`)",
                other.display()
            );
            return Err(Refusal::Outside(message));
        }
        Ok(real)
    }

    /// The refusal of a place in the state folder, wherever that lies in what was granted.
    fn kept_back(&self, path: &str, real: &Path) -> Option<Refusal> {
        self.hidden(real).next().map(|_| {
            Refusal::Outside(format!(
                "`{path}` is in a state folder, which Selvedge reads for itself: tools neither read nor write it, whatever is \
                 allowed around it"
            ))
        })
    }

    /// A path as the caller would write it: relative to the document's folder when it is inside.
    pub fn shown(&self, real: &Path) -> String {
        let base = self.read.first().unwrap_or(&self.base);
        real.strip_prefix(base).unwrap_or(real).display().to_string()
    }
}
