//! The tool library as it is kept: its journal in the store, folded by the engine.

pub mod export;
pub mod held;
pub mod import;
mod left;
pub mod manifest;
mod names;
pub mod operations;
pub mod record;
pub mod regular;
pub mod replay;
pub mod samples;
pub mod verbatim;

use crate::environment::Environment;
use crate::error::Error;
use crate::stores;
use crate::ways::WayOut;
use selvedge_engine::library::{Call, Event, LARGE_CALL_BYTES, Library, Refusal, Sample, Version};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::{BlobHash, Entry, Store, StoreError};
use selvedge_tools::library::LibrarySource;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How often a change is decided anew when others change the library at the same time.
const TRIES: usize = 100;

/// The library of a store.
///
/// # Errors
/// `Environment` if it can't be read.
pub fn read(store: &Store) -> Result<Library, Error> {
    Ok(fold(store, |_| true)?.0)
}

/// The library as far as events tell of it that are wanted, and the number of the journal's last event.
fn fold(store: &Store, wanted: impl Fn(&Entry) -> bool) -> Result<(Library, u64), Error> {
    let (mut library, mut last) = (Library::default(), 0);
    for entry in store.library(1)? {
        last = entry.n;
        if wanted(&entry) {
            library.apply(entry.at_ms, &event(&entry)?);
        }
    }
    Ok((library, last))
}

/// An event of the library's journal.
///
/// # Errors
/// `Environment` if it is none that this version knows.
pub fn event(entry: &Entry) -> Result<Event, Error> {
    selvedge_runtime::recorded(entry.json.as_bytes()).map_err(|error| {
        let message = format!("event {} of the tool library can't be read: {error}", entry.n);
        Error::environment("C-03", "library-unreadable", &message)
            .help("use the selvedge that wrote it or a later one")
    })
}

/// A store with its library, for reading; without a database the library is empty.
///
/// # Errors
/// `Environment` if the state folder can't be read.
pub fn open(dir: &Path) -> Result<(Option<Store>, Library), Error> {
    let Some(store) = stores::open(dir)? else { return Ok((None, Library::default())) };
    let mut library = read(&store)?;
    if left::end(&store, dir, library.open_tasks())? {
        library = read(&store)?;
    }
    Ok((Some(store), library))
}

/// Events that are to be appended, the contents that they name, and what to say about it.
pub struct Decided<T> {
    /// In order.
    pub events: Vec<Event>,
    /// Texts of versions, and samples of calls.
    pub contents: Vec<Vec<u8>>,
    /// What came of it.
    pub what: T,
}

/// Changes the library in one commit: all of it or nothing (V-10). `decide` is asked again if somebody else was faster.
///
/// # Errors
/// Those of `decide`, and `Environment` if the library can't be written.
pub fn change<T>(
    store: &Store,
    mut decide: impl FnMut(&Library) -> Result<Decided<T>, Error>,
) -> Result<T, Error> {
    let held = held::of(store);
    let mut held = held::locked(&held);
    for _ in 0..TRIES {
        held.follow(store)?;
        let decided = decide(held.library())?;
        if let Some(done) = appended(store, held.last(), decided)? {
            return Ok(done);
        }
    }
    Err(too_busy())
}

/// [`change`] where these versions by themselves decide what may be done: the library that is shown has no other.
///
/// # Errors
/// Those of `decide`, and `Environment` if the library can't be written.
pub fn change_versions<T>(
    store: &Store,
    versions: &BTreeSet<Arc<str>>,
    mut decide: impl FnMut(&Library) -> Result<Decided<T>, Error>,
) -> Result<T, Error> {
    if held::is_held(store) {
        return change(store, decide);
    }
    let wanted = |entry: &Entry| about(entry).is_some_and(|version| versions.contains(version));
    for _ in 0..TRIES {
        let (library, last) = fold(store, wanted)?;
        if let Some(done) = appended(store, last, decide(&library)?)? {
            return Ok(done);
        }
    }
    Err(too_busy())
}

/// The version that an event is about: told without reading all of it. Inside of a text its name would be escaped.
fn about(entry: &Entry) -> Option<&str> {
    const FIELD: &str = "\"version\":\"";
    let (_, rest) = entry.json.split_once(FIELD)?;
    Some(rest.split_once('"')?.0)
}

fn too_busy() -> Error {
    Error::environment("C-14", "library-changed", "other processes change the tool library all the time")
        .help("try again when they have ended")
}

/// Appends what was decided on by a library that ended with that event; `None` if it has gone on since.
fn appended<T>(store: &Store, last: u64, decided: Decided<T>) -> Result<Option<T>, Error> {
    let Decided { events, contents, what } = decided;
    if events.is_empty() {
        // Of what is known already only contents can be new: those that were damaged (E-44).
        for stored in contents.into_iter().map(|content| store.put_blob(content).1).collect::<Vec<_>>() {
            stored.wait()?;
        }
        return Ok(Some(what));
    }
    let at_ms = SystemClock.now_ms();
    let mut entries = Vec::with_capacity(events.len());
    for (n, event) in (last + 1..).zip(&events) {
        let json = serde_json::to_string(event)
            .map_err(|error| Error::internal(&format!("the library can't be written: {error}")))?;
        entries.push(Entry { n, at_ms, json });
    }
    match store.append_library(entries, contents).wait() {
        Err(StoreError::LibraryChanged { .. }) => Ok(None),
        done => Ok(done.map(|()| Some(what))?),
    }
}

/// What the library does not allow, as a failure of the call (C-04).
pub fn refused(refusal: &Refusal) -> Error {
    Error::usage("A-17", refusal.code, &refusal.message)
}

/// A recorded call.
///
/// # Errors
/// `Environment` if the store does not have it, or it is none that this version knows.
pub fn sample_of(store: &Store, hash: &str) -> Result<Sample, Error> {
    serde_json::from_str(&text(store, hash)?).map_err(|error| {
        let message = format!("a recorded call can't be read: {error}");
        Error::environment("C-03", "library-unreadable", &message)
            .help("use the selvedge that wrote it or a later one")
    })
}

/// What is said of calls that are left out.
pub const TOO_LARGE: &str = "it is too large to be kept or repeated with the others";

/// Room for the contents of recorded calls.
pub struct CallRoom(u64);

impl Default for CallRoom {
    fn default() -> Self {
        Self(LARGE_CALL_BYTES)
    }
}

impl CallRoom {
    /// The content of a call; `None` if there is no room for it.
    ///
    /// # Errors
    /// As [`sample_of`].
    pub fn load(&mut self, store: &Store, call: &Call) -> Result<Option<Sample>, Error> {
        let Some(left) = self.0.checked_sub(call.bytes) else { return Ok(None) };
        self.0 = left;
        sample_of(store, &call.sample).map(Some)
    }
}

/// Whether an output has nothing in it: a tool that did its work says what came of it.
pub fn is_empty(output: &serde_json::Value) -> bool {
    use serde_json::Value;
    match output {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The text of a version.
///
/// # Errors
/// `Environment` if the store does not have it.
pub fn text(store: &Store, version: &str) -> Result<String, Error> {
    let bytes = store.get_blob(version.parse()?)?;
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("version {version} is no text");
        Error::environment("C-03", "state-damaged", &message).help("restore the state folder from a backup")
    })
}

/// The version of a tool that `prefix` means: the only one, of all that ever had the name, whose hash begins with it.
///
/// # Errors
/// `Usage` if there is none, or several.
pub fn find<'l>(library: &'l Library, name: &str, prefix: &str) -> Result<&'l Version, Error> {
    let versions = of_name(library, name)?;
    let fitting: Vec<&Version> = versions
        .into_iter()
        .filter(|version| !prefix.is_empty() && version.hash.starts_with(prefix))
        .collect();
    match fitting[..] {
        [version] => Ok(version),
        [] => Err(Error::usage("A-17", "unknown-version", &format!("`{name}` has no version {prefix:?}"))
            .help(&format!("`{}` lists its versions", WayOut::ToolVersions(name)))),
        _ => {
            let all: Vec<&str> = fitting.iter().map(|version| short(&version.hash)).collect();
            let message = format!("several versions of `{name}` begin with {prefix:?}: {}", all.join(", "));
            Err(Error::usage("A-17", "ambiguous-version", &message).help("give more digits"))
        }
    }
}

/// Every version that a name has meant, or that has it in its metadata, oldest first.
///
/// # Errors
/// `Usage` if there is none.
pub fn of_name<'l>(library: &'l Library, name: &str) -> Result<Vec<&'l Version>, Error> {
    use selvedge_engine::library::Place;
    let public = library.past(&Place::Library, library.resolve(name));
    let own = library.past(&Place::Library, name);
    let meant = |version: &&Version| {
        *version.name == *name || public.contains(&version.hash) || own.contains(&version.hash)
    };
    let mut versions: Vec<&Version> = library.versions().filter(meant).collect();
    if versions.is_empty() {
        let known: Vec<&str> = library.known_names().map(|name| &**name).collect();
        let near = known.iter().find(|known| strsim::levenshtein(known, name) <= 2);
        let help = match near {
            Some(near) => format!("is `{near}` meant?"),
            None => format!("`{}` lists the library", WayOut::AllTools),
        };
        let message = format!("the library has no tool `{name}`");
        return Err(Error::new(crate::error::ErrorKind::Usage, "A-17", "unknown-tool", &message).help(&help));
    }
    // What came in one commit has one time: then the order in which the name got them.
    let order = |version: &Version| own.iter().chain(public).position(|known| *known == version.hash);
    versions.sort_by_key(|version| (version.drafted, order(version)));
    Ok(versions)
}

/// The first digits of a hash, for people.
pub fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// The library as a catalogue sees it.
struct Shelved {
    state: PathBuf,
    /// Opened for reading, once there is a state folder: that may come with the run's first event.
    store: OnceLock<Arc<Store>>,
    offered: Vec<(Arc<str>, Arc<str>)>,
}

impl LibrarySource for Shelved {
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.offered.clone()
    }

    fn text(&self, version: &str) -> Option<Vec<u8>> {
        let hash: BlobHash = version.parse().ok()?;
        if self.store.get().is_none() {
            // Another thread may have been first.
            let _ = self.store.set(stores::open(&self.state).ok()??.into());
        }
        self.store.get()?.get_blob(hash).ok()
    }
}

/// How many names of a state folder's library mean a tool.
///
/// # Errors
/// `Environment` if it can't be read.
pub fn count(state: &Path) -> Result<usize, Error> {
    Ok(stores::open(state)?
        .map(|store| names::names(&store, state))
        .transpose()?
        .map_or(0, |names| names.heads().len()))
}

/// The library for the tools of a run.
///
/// # Errors
/// `Environment` if the state folder can't be read.
pub fn source(environment: &Environment, state: &Path) -> Result<Arc<dyn LibrarySource>, Error> {
    let mut shelved = Shelved { state: state.to_owned(), store: OnceLock::new(), offered: Vec::new() };
    let open = environment.store().filter(|store| store.dir() == Some(state));
    let store = match open {
        Some(store) => Some(Arc::clone(store)),
        None => stores::open(state)?.map(Arc::new),
    };
    if let Some(store) = store {
        let mut names = names::names(&store, state)?;
        if left::end(&store, state, names.open_tasks())? {
            names = names::names(&store, state)?;
        }
        shelved.offered = names.offered().into_iter().collect();
        shelved.store = store.into();
    }
    Ok(Arc::new(shelved))
}
