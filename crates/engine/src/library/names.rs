//! What public names mean: all that a run has to know of the library when it begins.

use super::{Event, Place};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The meanings of public names: a fold of the library's events by itself, small beside the whole, so that it can be
/// kept and continued. What is kept so is only a cache: the events are the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    events: u64,
    /// The version that a name means.
    heads: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Names that lead to tools of other names.
    aliases: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Tasks that have begun and are not over.
    open: BTreeSet<Arc<str>>,
}

impl Names {
    /// How many events it is a fold of.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Applies the next event of the library's journal.
    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Published { version, name, .. } => self.put(name, version),
            Event::Merged { version, name, members, .. } => {
                for member in members.iter().filter(|member| *member != name) {
                    Arc::make_mut(&mut self.heads).remove(member);
                    Arc::make_mut(&mut self.aliases).insert(Arc::clone(member), Arc::clone(name));
                }
                self.put(name, version);
            }
            Event::Retired { place: Place::Library, version, .. } => {
                Arc::make_mut(&mut self.heads).retain(|_, head| head != version);
            }
            Event::RolledBack { name, to, .. } => self.put(name, to),
            Event::Aliased { alias, name } => {
                Arc::make_mut(&mut self.aliases).insert(Arc::clone(alias), Arc::clone(name));
            }
            // A task's tools begin with their drafts.
            Event::Drafted { place: Place::Task(task), .. } => {
                self.open.insert(Arc::clone(task));
            }
            Event::TaskEnded { task, .. } => {
                self.open.remove(task);
            }
            Event::Drafted { .. }
            | Event::Validated { .. }
            | Event::Kept { .. }
            | Event::Enhanced { .. }
            | Event::Proven { .. }
            | Event::Retired { .. }
            | Event::Restored { .. }
            | Event::CallRecorded { .. }
            | Event::Tested { .. }
            | Event::Answered { .. } => {}
        }
    }

    fn put(&mut self, name: &Arc<str>, version: &Arc<str>) {
        if self.aliases.contains_key(name) {
            Arc::make_mut(&mut self.aliases).remove(name);
        }
        Arc::make_mut(&mut self.heads).insert(Arc::clone(name), Arc::clone(version));
    }

    /// The version that a name means, aliases left out.
    pub fn head(&self, name: &str) -> Option<&Arc<str>> {
        self.heads.get(name)
    }

    /// The names that mean a version by themselves, with it.
    pub fn heads(&self) -> &BTreeMap<Arc<str>, Arc<str>> {
        &self.heads
    }

    /// Names that lead to tools of other names.
    pub fn aliases(&self) -> &BTreeMap<Arc<str>, Arc<str>> {
        &self.aliases
    }

    /// The tasks that have tools and are not over.
    pub fn open_tasks(&self) -> &BTreeSet<Arc<str>> {
        &self.open
    }

    /// The name that a name leads to: its own, or that of the tool it was merged into (V-09).
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        // An alias never leads to itself; the bound holds whatever the journal says.
        for _ in 0..=self.aliases.len() {
            match self.aliases.get(name) {
                Some(next) if self.head(name).is_none() => name = next,
                _ => break,
            }
        }
        name
    }

    /// The names that may be used, aliases too, with the versions that they mean.
    pub fn offered(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let leading =
            |alias: &Arc<str>| Some((Arc::clone(alias), Arc::clone(self.head(self.resolve(alias))?)));
        let mut offered: BTreeMap<Arc<str>, Arc<str>> = self.aliases.keys().filter_map(leading).collect();
        offered.extend(self.heads.iter().map(|(name, head)| (Arc::clone(name), Arc::clone(head))));
        offered
    }
}
