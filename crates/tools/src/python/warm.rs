//! Warm interpreters: one sandboxed server for each environment and policy, which forks a child per call. It has
//! imported the environment's basics and what its tools import, and never a tool's code, and ends when it has been idle for a while, with the
//! catalogue, and with this process.

mod imports;
mod server;

use imports::{Import, add, imports};
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::server::Server;
use server::Warmed;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// How long a server waits for another call.
const IDLE: Duration = Duration::from_secs(60);
/// How many servers are kept at a time, and how much memory they may take together before another one starts; those that
/// have been idle longest go first. More than these only ever work.
const MOST: usize = 8;
const MOST_BYTES: u64 = 1 << 30;
/// How long one that did not start is not tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// What calls must have in common to share a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) python: PathBuf,
    pub(crate) policy: Policy,
    /// Which environment it is: one that was built again at the same place is another.
    environment: Option<(u64, i64)>,
}

impl Key {
    pub(crate) fn new(python: &Path, policy: &Policy) -> Self {
        let environment = python.parent().and_then(Path::parent);
        let meta = environment.and_then(|folder| std::fs::metadata(folder).ok());
        let environment = meta.map(|meta| (meta.ino(), meta.ctime_nsec() ^ meta.ctime()));
        Self { python: python.to_owned(), policy: policy.clone(), environment }
    }
}

type Slot = Arc<OnceCell<Arc<Warmed>>>;

/// The servers of a catalogue.
#[derive(Debug, Default)]
pub(crate) struct Warm {
    servers: Arc<Mutex<HashMap<Key, Slot>>>,
    /// Those that did not start, and when.
    refused: Mutex<HashMap<Key, Instant>>,
    /// What the tools of an environment import, by its `python`: those that the document names, and those that came later.
    wanted: Mutex<HashMap<PathBuf, Vec<Import>>>,
}

impl Warm {
    /// Takes note of a tool file that will be called in the environment of this `python`.
    pub(crate) fn expect(&self, python: &Path, source: &[u8]) {
        self.want(python, &imports(source));
    }

    /// All that is imported in an environment, with this.
    fn want(&self, python: &Path, more: &[Import]) -> Vec<Import> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let all = wanted.entry(python.to_owned()).or_default();
        add(all, more);
        all.clone()
    }

    /// The server for calls of the tool file `source`, started if need be; one that has not tried to import what the file does is
    /// left to the calls that it has. `None` where interpreters cannot be kept warm, or
    /// this one does not start: then each call starts one of its own, which says what is wrong.
    pub(crate) async fn server(
        &self,
        isolation: &Isolation,
        key: &Key,
        scratch_root: PathBuf,
        source: &[u8],
    ) -> Option<Arc<Server>> {
        if isolation.found().await.warm.is_some() || self.has_refused(key) {
            return None;
        }
        let own = imports(source);
        let wanted = self.want(&key.python, &own);
        let slot = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            servers.retain(|_, slot| slot.get().is_none_or(|server| !server.server.has_ended()));
            let tried = |slot: &Slot| {
                slot.get().is_none_or(|server| {
                    own.iter().all(|import| !wanted.contains(import) || server.has_tried(import))
                })
            };
            if servers.get(key).is_some_and(|slot| !tried(slot)) {
                servers.remove(key);
            }
            if !servers.contains_key(key) {
                while has_enough(&servers) && remove_idlest(&mut servers) {}
            }
            servers.entry(key.clone()).or_default().clone()
        };
        let start = || async {
            let server = Arc::new(Warmed::start(isolation, key, scratch_root, wanted).await?);
            tokio::spawn(end_when_idle(Arc::downgrade(&self.servers), key.clone(), Arc::downgrade(&server)));
            Ok::<_, std::io::Error>(server)
        };
        let started = slot.get_or_try_init(start).await;
        if started.is_err() {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.insert(key.clone(), Instant::now());
        }
        started.ok().map(|warmed| warmed.server.clone())
    }

    /// Whether this one did not start a short time ago.
    fn has_refused(&self, key: &Key) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(key).is_some_and(|since| since.elapsed() < AGAIN)
    }
}

fn has_enough(servers: &HashMap<Key, Slot>) -> bool {
    let bytes = servers.values().filter_map(|slot| slot.get()).map(|server| server.server.bytes());
    servers.len() >= MOST || bytes.fold(0, u64::saturating_add) > MOST_BYTES
}

/// Whether there was one that has nothing to do.
fn remove_idlest(servers: &mut HashMap<Key, Slot>) -> bool {
    let idle = |slot: &Slot| slot.get().and_then(|server| server.server.idle_for());
    let idle = servers.iter().filter_map(|(key, slot)| Some((idle(slot)?, key.clone())));
    let longest = idle.max_by_key(|(time, _)| *time);
    longest.is_some_and(|(_, key)| servers.remove(&key).is_some())
}

async fn end_when_idle(servers: Weak<Mutex<HashMap<Key, Slot>>>, key: Key, server: Weak<Warmed>) {
    loop {
        let idle = match server.upgrade() {
            Some(server) => server.server.idle_for().unwrap_or_default(),
            None => return,
        };
        if idle >= IDLE {
            let Some(servers) = servers.upgrade() else { return };
            let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
            // Another one may have taken its place.
            let same =
                |slot: &Slot| slot.get().is_some_and(|other| Weak::ptr_eq(&Arc::downgrade(other), &server));
            if servers.get(&key).is_some_and(same) {
                servers.remove(&key);
            }
            return;
        }
        tokio::time::sleep(IDLE.saturating_sub(idle) + Duration::from_millis(10)).await;
    }
}
