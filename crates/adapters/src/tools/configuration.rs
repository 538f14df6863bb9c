//! What Selvedge reads for itself is not for tools to write: `selvedge.toml` says which programs it starts for the user,
//! outside of any sandbox; a state folder and a cache hold what it believes and runs, and the folders of tools their code.
//! Where such a thing lies in what may be written, a sandbox shows it as it is. What is made under one of these names is set
//! aside when the call is over, before anybody is told that it is.

use crate::tools::permissions::settle;
use std::path::{Component, Path, PathBuf};

/// The names under which a project's configuration and its state folder are found.
pub(crate) const NAMES: [&str; 2] = ["selvedge.toml", ".selvedge"];

/// Where these are, or would be found: in the granted folders, and in those between them and what is `read` or where this
/// process is. One that was granted by its own name is the user's will.
pub(crate) fn places(granted: &[PathBuf], read: &[PathBuf]) -> Vec<PathBuf> {
    let roots = real(granted);
    let here = std::env::current_dir().into_iter();
    let starts: Vec<PathBuf> = real(read).into_iter().chain(here).collect();
    let mut places = Vec::new();
    for root in roots.iter().filter(|root| !root.is_file()) {
        let below = starts.iter().filter(|path| path.starts_with(root) && path.is_dir());
        let between = below.flat_map(|path| path.ancestors().take_while(|folder| folder.starts_with(root)));
        for place in std::iter::once(root.as_path()).chain(between).flat_map(|f| NAMES.map(|n| f.join(n))) {
            if !places.contains(&place) && !roots.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// What is there of these places, and of `own` code, in what was granted for writing: it stays as it is. What was granted by
/// its own name is the user's will.
pub(crate) fn kept(granted: &[PathBuf], read: &[PathBuf], own: &[PathBuf]) -> Vec<PathBuf> {
    let roots = real(granted);
    if roots.is_empty() {
        return Vec::new();
    }
    let all = places(granted, read).into_iter().chain(own.iter().cloned());
    let mut kept: Vec<PathBuf> = all.filter_map(|path| path.canonicalize().ok()).collect();
    kept.retain(|path| roots.iter().any(|root| path.starts_with(root)) && !roots.contains(path));
    kept.sort();
    kept.dedup();
    kept
}

/// Whether a place is a configuration, or a part of a state folder.
pub(crate) fn is_one(real: &Path) -> bool {
    let [file, folder] = NAMES;
    real.file_name().is_some_and(|name| name == file)
        || real.components().any(|part| matches!(part, Component::Normal(name) if name == folder))
}

fn real(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| settle(path)).collect()
}
