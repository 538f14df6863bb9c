//! Finding these names in what was granted, before a call: by a walk that has bounds.

use super::{STATE, UNASKED, is_name, places, repositories};
use crate::policy::Policy;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many entries of folders are looked at in one grant, the upper ones first, and how deep.
const ENTRIES: usize = 20_000;
const DEPTH: usize = 8;
/// How many of them are kept from a call below the places that are looked at first: each takes mounts.
const MOST: usize = 64;
/// How long what was found in what is only read is believed.
const FRESH: Duration = Duration::from_secs(5);
/// What a package manager fills and replaces: nobody works in there.
const PACKAGES: &str = "node_modules";

/// What was found so far, by the granted folder. What was found once is looked for again, however much else there is by then.
#[derive(Clone, Debug)]
pub struct Found {
    here: Option<PathBuf>,
    looks: Arc<Mutex<HashMap<PathBuf, Look>>>,
}

#[derive(Clone, Debug)]
struct Look {
    at: Instant,
    names: Vec<PathBuf>,
}

impl Found {
    /// Nothing yet, in a process that is in this folder.
    pub fn new(here: Option<&Path>) -> Self {
        Self { here: here.and_then(|here| here.canonicalize().ok()), looks: Arc::default() }
    }

    /// The folder that this process is in, without links.
    pub fn here(&self) -> Option<PathBuf> {
        self.here.clone()
    }

    /// Adds to a policy what is hidden in what it grants, and what stays as it is: `own` code, and what has one of the names.
    pub async fn guard(&self, policy: &mut Policy, own: &[PathBuf]) {
        policy.unasked = true;
        policy.here.clone_from(&self.here);
        let reals = |grants: &[crate::grant::Grant]| {
            grants.iter().map(|grant| grant.real.clone()).collect::<Vec<_>>()
        };
        let (read, write) = (reals(&policy.read), reals(&policy.write));
        let state: Vec<PathBuf> = policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
        // A warm call is not to wait for a thread if nothing has to be looked at.
        let (hidden, kept) = match self.known(&read).filter(|_| write.is_empty()) {
            Some(names) => (hidden(names, &read), Vec::new()),
            None => {
                let (found, own) = (self.clone(), own.to_owned());
                let look = move || found.look(&read, &write, &own, &state);
                // It fails only when the process is being shut down.
                tokio::task::spawn_blocking(look).await.unwrap_or_default()
            }
        };
        policy.hidden.extend(hidden);
        policy.hidden.sort();
        policy.hidden.dedup();
        policy.kept = kept;
    }

    /// The same of what may be written, for one file: what stays as it is.
    pub fn kept(&self, write: &[PathBuf], own: &[PathBuf]) -> Vec<PathBuf> {
        self.look(&[], write, own, &[]).1
    }

    fn look(
        &self,
        read: &[PathBuf],
        write: &[PathBuf],
        own: &[PathBuf],
        state: &[PathBuf],
    ) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut names: Vec<PathBuf> =
            write.iter().flat_map(|root| self.names(root, Duration::ZERO)).collect();
        names.extend(read.iter().flat_map(|root| self.names(root, FRESH)));
        let first = places(write, read, self.here.as_ref());
        let mut kept: Vec<PathBuf> = own.to_vec();
        for name in first.iter().chain(&names) {
            kept.push(name.clone());
            if name.ends_with(UNASKED[0]) {
                kept.extend(repositories(name));
            }
        }
        let within =
            |path: &PathBuf| write.iter().any(|root| path.starts_with(root)) && !write.contains(path);
        let kept: BTreeSet<PathBuf> =
            kept.iter().filter_map(|path| path.canonicalize().ok()).filter(within).collect();
        let all: Vec<PathBuf> = first.into_iter().chain(names).collect();
        let roots = [read, write].concat();
        let hidden = hidden(all, &roots);
        // What is hidden need not be kept as it is, unless it was granted there.
        let granted = |state: &Path, path: &Path| {
            write.iter().any(|root| root.starts_with(state) && path.starts_with(root))
        };
        let seen = |path: &PathBuf| {
            let mut states = hidden.iter().chain(state).filter(|state| path.starts_with(state));
            states.all(|state| granted(state, path))
        };
        let kept = kept.into_iter().filter(seen).collect();
        (hidden, kept)
    }

    /// What was found in these folders not long ago, if all of them were looked at.
    fn known(&self, roots: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for root in roots {
            all.extend(looks.get(root).filter(|look| look.at.elapsed() < FRESH)?.names.iter().cloned());
        }
        Some(all)
    }

    /// The names in a granted folder.
    fn names(&self, root: &Path, fresh: Duration) -> Vec<PathBuf> {
        let before = {
            let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
            looks.get(root).cloned()
        };
        if let Some(look) = before.as_ref().filter(|look| look.at.elapsed() < fresh) {
            return look.names.clone();
        }
        let at = Instant::now();
        let mut names = before.map(|look| look.names).unwrap_or_default();
        names.retain(|name| name.symlink_metadata().is_ok());
        for name in walk(root) {
            let alike = names.iter().filter(|other| other.ends_with(STATE) == name.ends_with(STATE));
            if alike.count() < MOST && !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort();
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.insert(root.to_owned(), Look { at, names: names.clone() });
        names
    }
}

/// The state folders among these that lie in what was granted.
fn hidden(names: Vec<PathBuf>, roots: &[PathBuf]) -> Vec<PathBuf> {
    let states = names.into_iter().filter(|name| name.ends_with(STATE));
    let real = states.filter_map(|name| name.canonicalize().ok());
    real.filter(|path| roots.iter().any(|root| path.starts_with(root))).collect()
}

/// Entries with one of the names, those of outer folders first; links are not followed.
fn walk(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), ENTRIES);
    let mut folders = VecDeque::from([(root.to_owned(), DEPTH)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let Some(rest) = left.checked_sub(1) else { return found };
            left = rest;
            let name = entry.file_name();
            if is_name(Path::new(&name)) {
                found.push(folder.join(name));
            } else if depth > 0 && name != PACKAGES && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back((folder.join(name), depth - 1));
            }
        }
    }
    found
}
