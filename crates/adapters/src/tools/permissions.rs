//! What tools may reach: what was allowed, what a tool declares, and the confinement of built-ins.

use crate::tools::configuration;
use crate::tools::diag::ToolError;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What is Selvedge's own in a state folder: hidden from tools even where the folder itself was granted.
pub(crate) const OURS: [&str; 6] =
    ["cache", "locks", "selvedge.db", "selvedge.db-wal", "selvedge.db-shm", "selvedge.db-journal"];

/// Whether a place in a state folder is one of these, or in one.
pub(crate) fn is_ours(state: &Path, real: &Path) -> bool {
    OURS.iter().any(|name| real.starts_with(state.join(name)))
}

/// What the user allowed: `--allow-read`, `--allow-write`, `--allow-network`, or `[tools]` in the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// Folders and files that may be read besides the document's folder. Here and below, relative paths start at
    /// the document's folder; options of the command line, which start at the current one, come as absolute paths.
    pub allow_read: Vec<PathBuf>,
    /// Folders and files that may be written.
    pub allow_write: Vec<PathBuf>,
    /// Whether tools that declare it may use the network.
    pub allow_network: bool,
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
}

impl Permissions {
    /// Checks a declaration before anything runs; relative paths start at `workspace`.
    ///
    /// # Errors
    /// One error (exit 2) that names the tool, what it declares and the options that allow it.
    pub fn check(&self, tool: &str, declared: &Declared, workspace: &Path) -> Result<(), ToolError> {
        let mut what = Vec::new();
        let mut options = Vec::new();
        if declared.network && !self.allow_network {
            what.push("`network: true`".to_owned());
            options.push("`--allow-network`".to_owned());
        }
        let allowed = roots(&self.allow_write, workspace);
        for path in &declared.write_paths {
            let real = settle(&workspace.join(path));
            if real.as_deref().is_some_and(is_system) {
                return Err(whole_system(tool, path));
            }
            if !real.is_some_and(|p| allowed.iter().any(|root| p.starts_with(root))) {
                what.push(format!("`write_paths: [\"{}\"]`", path.display()));
                // An option of the command line starts elsewhere than a declaration: it is shown in full.
                options.push(format!("`--allow-write {}`", workspace.join(path).display()));
            }
        }
        if what.is_empty() {
            return Ok(());
        }
        let message = format!("the tool `{tool}` declares {}, which is not allowed here", what.join(" and "));
        Err(ToolError::document("A-20", message)
            .help(format!("allow it with {}, or in `[tools]` of selvedge.toml", options.join(" "))))
    }
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
}

impl Reach {
    /// The reach of built-ins over documents of `workspace`.
    pub fn new(workspace: &Path, permissions: &Permissions) -> Self {
        let mut read = roots(&[workspace.to_owned()], workspace);
        read.extend(roots(&permissions.allow_read, workspace));
        let write = roots(&permissions.allow_write, workspace);
        Self { base: workspace.to_owned(), read, write, hidden: Vec::new(), kept: Vec::new() }
    }

    /// The same without these folders, wherever they lie in what may be reached: the state folder.
    #[must_use]
    pub fn without(self, hidden: &[PathBuf]) -> Self {
        let hidden = hidden.iter().filter_map(|path| settle(path)).collect();
        Self { hidden, ..self }
    }

    /// The same without writing these, wherever they lie in what may be written: what Selvedge reads for itself.
    #[must_use]
    pub fn keeping(self, kept: &[PathBuf]) -> Self {
        let kept = kept.iter().filter_map(|path| settle(path)).collect();
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
        match std::fs::metadata(&real) {
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
        let hidden = self.hidden.iter().find(|hidden| real.starts_with(hidden));
        if hidden.is_some_and(|hidden| is_ours(hidden, real)) {
            return false;
        }
        let within = |root: &Path| hidden.is_none_or(|hidden| root.starts_with(hidden));
        roots.iter().any(|root| real.starts_with(root) && within(root))
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
        let meant = |own: &Path| self.write.iter().any(|root| root.starts_with(own));
        let ours = configuration::is_one(&real)
            && !self.hidden.iter().any(|hidden| real.starts_with(hidden))
            && !self.write.iter().any(|root| configuration::is_one(root) && real.starts_with(root));
        if ours || self.kept.iter().any(|own| real.starts_with(own) && !meant(own)) {
            let message = format!(
                "`{path}` is what Selvedge reads for itself (its configuration, its state, the code of tools): tools do not write it, \
                 whatever is allowed around it"
            );
            return Err(Refusal::Outside(message));
        }
        Ok(real)
    }

    /// The refusal of a place in the state folder, wherever that lies in what was granted.
    fn kept_back(&self, path: &str, real: &Path) -> Option<Refusal> {
        let hidden = self.hidden.iter().any(|hidden| real.starts_with(hidden));
        hidden.then(|| {
            Refusal::Outside(format!(
                "`{path}` is in the state folder, which tools neither read nor write, whatever is allowed around it"
            ))
        })
    }

    /// A path as the caller would write it: relative to the document's folder when it is inside.
    pub fn shown(&self, real: &Path) -> String {
        let base = self.read.first().unwrap_or(&self.base);
        real.strip_prefix(base).unwrap_or(real).display().to_string()
    }
}

/// The reason of a failed file operation, without the system's error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "the system denies access".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether a place is the system as a whole, or made by the kernel: no sandbox has it, so that it can't be granted.
pub(crate) fn is_system(real: &Path) -> bool {
    real == Path::new("/") || ["/proc", "/dev"].iter().any(|own| real.starts_with(own))
}

fn whole_system(tool: &str, path: &Path) -> ToolError {
    let message = format!(
        "the tool `{tool}` declares `write_paths: [\"{}\"]`, which is the system itself: nobody can allow that",
        path.display()
    );
    ToolError::document("A-20", message).help("declare the folders that it writes")
}

fn roots(paths: &[PathBuf], workspace: &Path) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| settle(&workspace.join(path))).collect()
}

/// Resolves all links of the part of a path that exists and appends the rest, which must be plain names:
/// after a missing folder, `..` means nothing. `None` where no such place can be named.
pub(crate) fn settle(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut existing = path.as_path();
    let mut missing = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A link to nowhere exists as itself, and may come to lead anywhere.
                if existing.symlink_metadata().is_ok() {
                    return None;
                }
                match existing.components().next_back()? {
                    Component::Normal(name) => missing.push(name),
                    _ => return None,
                }
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    }
}
