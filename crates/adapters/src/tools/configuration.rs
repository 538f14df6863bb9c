//! `selvedge.toml` is not for tools: it says which programs Selvedge starts for the user, outside of any sandbox. Where
//! it lies in what may be written, a sandbox shows it as it is; one that a tool makes is set aside before anybody reads it.

use crate::tools::failures::denied;
use selvedge_engine::Failure;
use std::path::{Path, PathBuf};

/// The name under which a project's configuration is found.
pub(crate) const NAME: &str = "selvedge.toml";
/// What one that a tool has made is called from there on.
const ASIDE: &str = "selvedge.toml.set-aside";

/// Where a configuration is, or would be found: in the granted folders, and in those between them and what is `read`. One
/// that was granted by its own name is the user's will.
pub(crate) fn places(granted: &[PathBuf], read: &[PathBuf]) -> Vec<PathBuf> {
    let real = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let (roots, read): (Vec<PathBuf>, Vec<PathBuf>) = (real(granted), real(read));
    let mut places = Vec::new();
    for root in roots.iter().filter(|root| root.is_dir()) {
        let below = read.iter().filter(|path| path.starts_with(root) && path.is_dir());
        let between = below.flat_map(|path| path.ancestors().take_while(|folder| folder.starts_with(root)));
        for folder in std::iter::once(root.as_path()).chain(between) {
            let place = folder.join(NAME);
            if !places.contains(&place) && !roots.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// The places of a call where there was no configuration before it.
pub(crate) struct Absent(Vec<PathBuf>);

impl Absent {
    /// What a call with these grants is not to make.
    pub(crate) fn before(granted: &[PathBuf], read: &[PathBuf]) -> Self {
        let absent = |place: &PathBuf| place.symlink_metadata().is_err();
        Self(places(granted, read).into_iter().filter(absent).collect())
    }

    /// Sets aside what the call has made there.
    ///
    /// # Errors
    /// It has made one: the call is denied, whatever it answered.
    pub(crate) fn after(mut self, tool: &str) -> Result<(), Failure> {
        match self.set_aside().first() {
            None => Ok(()),
            Some(place) => Err(denied(format!(
                "while the tool `{tool}` ran, {} was made, which configures Selvedge and is not for tools to write: it is \
                 called {ASIDE} now",
                place.display()
            ))),
        }
    }

    fn set_aside(&mut self) -> Vec<PathBuf> {
        let made = |place: &PathBuf| std::fs::rename(place, place.with_file_name(ASIDE)).is_ok();
        std::mem::take(&mut self.0).into_iter().filter(made).collect()
    }
}

impl Drop for Absent {
    /// Of a call that was cancelled, nobody is told (E-13).
    fn drop(&mut self) {
        self.set_aside();
    }
}

/// Whether a place is one of a configuration.
pub(crate) fn is_one(real: &Path) -> bool {
    real.file_name().is_some_and(|name| name == NAME)
}
