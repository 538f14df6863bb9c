//! The tool library as a second journaled state machine: commands in, events out, a fold of the events (A-17).
//!
//! It is to tools what [`crate::State`] is to runs: [`Library::accept`] decides and changes nothing, [`Library::apply`]
//! is the only mutation and cannot fail, and nothing here knows of files, clocks or processes. File texts and calls lie
//! beside the journal under their hashes; whoever appends events stores them in the same commit, so that no version is
//! ever half there (V-10).
//!
//! ```text
//! drafted → validated → private → enhanced → … → public → enhanced | merged | retired | rolled back
//! ```
//!
//! A *version* is a file's text, named by its SHA-256. It lives in *places*: a task's own, or everybody's. In each
//! place a name means one version, its *head*.
//!
//! # Example
//! ```
//! use selvedge_engine::library::{Author, Command, Facts, Library, Place};
//!
//! let mut library = Library::default();
//! let version = "a".repeat(64);
//! let place = Place::Library;
//! let draft = Command::Draft {
//!     place: place.clone(), version: version.as_str().into(), name: "add".into(), author: Author::Person,
//!     parents: Vec::new(), members: Vec::new(), request: "imported".into(),
//! };
//! let validate =
//!     Command::Validate { place: place.clone(), version: version.as_str().into(), facts: Facts::default() };
//! let publish = Command::Publish { place, version: version.as_str().into(), name: None };
//! // All of it or nothing; the caller appends the events in one commit.
//! for event in library.accept_all([draft, validate, publish.clone()])? {
//!     library.apply(0, &event);
//! }
//! assert_eq!(library.public("add").map(|tool| &*tool.hash), Some(&*version));
//! assert!(library.accept(publish).is_err(), "it is public already");
//! # Ok::<(), selvedge_engine::library::Refusal>(())
//! ```

mod accept;
mod apply;
mod command;
mod event;
mod names;
mod tasks;
mod versions;

pub use accept::Change;
pub use command::{Command, Refusal};
pub use event::{Author, Call, Event, Facts, Origin, Place, Report, Sample, SampleFault, Stage, Taken};
pub use names::Names;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use versions::Versions;

/// Calls kept a version that gave an output; together with [`FAILING_CALLS`] a hundred.
pub const GOOD_CALLS: usize = 80;
/// Calls kept a version that failed: what a better version has to get right (A-15).
pub const FAILING_CALLS: usize = 20;
/// A call whose JSON has more bytes is large.
pub const CALL_BYTES: usize = 64 << 10;
/// Bytes that the large calls of a version have together, at most. Others are left out.
pub const LARGE_CALL_BYTES: u64 = 64 << 20;
/// Test results kept a version: the latest.
const REPORTS: usize = 20;

/// A version: what is known of one content, wherever it is in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// SHA-256 of its text.
    pub hash: Arc<str>,
    /// Its metadata name (A-18).
    pub name: Arc<str>,
    /// Who wrote it first.
    pub author: Author,
    /// The versions that it was made of.
    pub parents: Vec<Arc<str>>,
    /// The versions in whose place a merge has put it without its being made of them (V-09).
    pub members: Vec<Arc<str>>,
    /// What caused it.
    pub request: Value,
    /// When it was first drafted, in milliseconds since 1970 (UTC).
    pub drafted: i64,
    /// What validation found out; `None` while it is a draft.
    pub facts: Option<Arc<Facts>>,
    /// Its life, place by place.
    pub lives: BTreeMap<Place, Life>,
    /// The calls of it that are kept, in the order in which they came.
    pub calls: Vec<Call>,
    /// How many large calls were left out.
    pub left_out: u32,
    /// The latest replays with their times.
    pub reports: Vec<(i64, Report)>,
}

impl Version {
    /// Its stage in a place.
    pub fn stage(&self, place: &Place) -> Option<Stage> {
        self.lives.get(place).map(|life| life.stage)
    }

    /// Its stage for people: in the library, if it ever came there, else in its latest task.
    pub fn shown(&self) -> &Life {
        const NONE: &Life = &Life { stage: Stage::Drafted, at: 0, reason: String::new(), proven: false };
        let own = || self.lives.values().max_by_key(|life| life.at);
        self.lives.get(&Place::Library).or_else(own).unwrap_or(NONE)
    }
}

/// Where a version is in one place, since when and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// The stage.
    pub stage: Stage,
    /// Since when, in milliseconds since 1970 (UTC).
    pub at: i64,
    /// Why, where somebody said so.
    pub reason: String,
    /// Whether an execution of it succeeded (A-15).
    pub proven: bool,
}

/// The tools of one place by name. What everybody's names mean now is in [`Names`].
#[derive(Clone, Debug, Default, PartialEq)]
struct Shelf {
    /// What each name means.
    heads: BTreeMap<Arc<str>, Arc<str>>,
    /// What each name has ever meant, oldest first; each version once.
    past: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Of a task: all versions that it ever had.
    drafted: BTreeSet<Arc<str>>,
}

/// What is known of one run by its effects.
type Texts = BTreeMap<Arc<str>, Arc<str>>;

/// The library: a fold of its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    versions: Versions,
    shelves: BTreeMap<Place, Arc<Shelf>>,
    names: Names,
    /// Which calls of which runs are kept, by their effects, with the versions that they called.
    seen: BTreeMap<Arc<str>, Arc<Texts>>,
    /// Tasks that are over, and whether their run was left (A-19).
    ended: BTreeMap<Arc<str>, bool>,
    /// What operations of runs have answered, by their keys (E-40).
    answers: BTreeMap<Arc<str>, Arc<Texts>>,
}

impl Library {
    /// How many events it is a fold of.
    pub fn events(&self) -> u64 {
        self.names.events()
    }

    /// Whether nothing was ever drafted.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// A version by its hash.
    pub fn version(&self, hash: &str) -> Option<&Version> {
        self.versions.get(hash).map(|version| &**version)
    }

    /// All versions, by hash.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter()
    }

    /// The versions that a task ever had, by hash.
    pub fn versions_of(&self, task: &str) -> impl Iterator<Item = &Version> {
        let shelf = self.shelves.get(&Place::Task(task.into()));
        shelf.into_iter().flat_map(|shelf| &shelf.drafted).filter_map(|hash| self.version(hash))
    }

    /// The name that a public name leads to: its own, or that of the tool it was merged into (V-09).
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.resolve(name)
    }

    /// The public version that a name means, through aliases.
    pub fn public(&self, name: &str) -> Option<&Version> {
        self.version(self.head(&Place::Library, self.resolve(name))?)
    }

    /// What a name means to a task: its own version, else the public one (A-18).
    pub fn for_task(&self, task: &str, name: &str) -> Option<&Version> {
        let place = Place::Task(task.into());
        match self.head(&place, name) {
            Some(own) => self.version(own),
            None => self.public(name),
        }
    }

    /// The names that may be used, with their versions: everybody's and aliases; with a task, its own in their place.
    pub fn offered(&self, task: Option<&str>) -> BTreeMap<Arc<str>, &Version> {
        let mut offered = self.names.offered();
        let own = task.and_then(|task| self.shelves.get(&Place::Task(task.into())));
        offered.extend(own.into_iter().flat_map(|shelf| shelf.heads.clone()));
        let version = |(name, hash): (Arc<str>, Arc<str>)| Some((name, self.version(&hash)?));
        offered.into_iter().filter_map(version).collect()
    }

    /// The names of a place that mean something.
    pub fn names(&self, place: &Place) -> impl Iterator<Item = &Arc<str>> {
        self.heads(place).into_iter().flat_map(BTreeMap::keys)
    }

    /// What a name means in a place, aliases left out.
    pub fn head(&self, place: &Place, name: &str) -> Option<&Arc<str>> {
        self.heads(place)?.get(name)
    }

    fn heads(&self, place: &Place) -> Option<&BTreeMap<Arc<str>, Arc<str>>> {
        match place {
            Place::Library => Some(self.names.heads()),
            Place::Task(_) => self.shelves.get(place).map(|shelf| &shelf.heads),
        }
    }

    /// Everything that a name has meant in a place, oldest first (A-17).
    pub fn past(&self, place: &Place, name: &str) -> &[Arc<str>] {
        self.shelves.get(place).and_then(|shelf| shelf.past.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Public names that mean something or ever did.
    pub fn known_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let own = self.shelves.get(&Place::Library).into_iter().flat_map(|shelf| shelf.past.keys());
        own.chain(self.aliases().keys()).collect::<BTreeSet<_>>().into_iter()
    }

    /// Names that lead to tools of other names.
    pub fn aliases(&self) -> &BTreeMap<Arc<str>, Arc<str>> {
        self.names.aliases()
    }

    /// A version with all it was made of or does the work of, nearest first, each once (V-09).
    pub fn lineage(&self, hash: &str) -> Vec<&Version> {
        let mut found: Vec<&Version> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = std::collections::VecDeque::from([hash]);
        while let Some(hash) = next.pop_front() {
            if let Some(version) = self.version(hash).filter(|_| seen.insert(hash)) {
                found.push(version);
                next.extend(version.parents.iter().chain(&version.members).map(|older| &**older));
            }
        }
        found
    }

    /// Whether a call of a run is kept already.
    pub fn has_call(&self, run: &str, effect: &str) -> bool {
        self.seen.get(run).is_some_and(|seen| seen.contains_key(effect))
    }

    /// The SHA-256 of what an operation of a run has answered that changed the library (E-40).
    pub fn answer(&self, run: &str, key: &str) -> Option<&Arc<str>> {
        self.answers.get(run)?.get(key)
    }

    /// The tasks that have tools and are not over (A-19).
    pub fn open_tasks(&self) -> &BTreeSet<Arc<str>> {
        self.names.open_tasks()
    }

    /// A name that nothing public has: the name itself, else with the first number behind it that is free (V-05).
    pub fn free_name(&self, name: &str) -> Arc<str> {
        let taken =
            |name: &str| self.aliases().contains_key(name) || self.head(&Place::Library, name).is_some();
        if !taken(name) {
            return name.into();
        }
        let numbered = (2u64..).map(|n| format!("{name}_{n}")).find(|name| !taken(name));
        numbered.unwrap_or_else(|| name.to_owned()).into()
    }
}

#[cfg(test)]
mod tests;
