//! The library's only mutation. It cannot fail: an event that fits nothing changes nothing.

use super::{Call, Event, Library, Life, Place, REPORTS, Shelf, Stage, Taken, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Library {
    /// Applies an event that happened at `at` (milliseconds since 1970).
    pub fn apply(&mut self, at: i64, event: &Event) {
        self.history(at, event);
        // Last: what names meant before is part of the history.
        self.names.apply(event);
    }

    /// What becomes of versions.
    fn history(&mut self, at: i64, event: &Event) {
        match event {
            Event::Drafted { place, version, name, author, parents, members, request } => {
                let fresh = || Version {
                    hash: Arc::clone(version),
                    name: Arc::clone(name),
                    author: author.clone(),
                    parents: parents.clone(),
                    members: Vec::new(),
                    request: request.clone(),
                    drafted: at,
                    facts: None,
                    lives: BTreeMap::new(),
                    calls: Vec::new(),
                    left_out: 0,
                    reports: Vec::new(),
                };
                let known = self.versions.entry(version, fresh);
                let life = Life { stage: Stage::Drafted, at, reason: String::new(), proven: false };
                known.lives.insert(place.clone(), life);
                self.add_members(version, members);
                if let Place::Task(task) = place {
                    // It goes on.
                    self.ended.remove(task);
                    let shelf = self.shelves.entry(place.clone()).or_default();
                    Arc::make_mut(shelf).drafted.insert(Arc::clone(version));
                }
            }
            Event::Validated { place, version, facts } => {
                self.change(version, |known| known.facts = Some(Arc::new((**facts).clone())));
                self.become_(place, version, Stage::Validated, at, "");
            }
            Event::Kept { place, version, name } => {
                self.become_(place, version, Stage::Private, at, "");
                self.put(place, name.clone(), version);
            }
            Event::Enhanced { place, name, version, by, reason } => {
                self.become_(place, version, Stage::Enhanced, at, reason);
                self.become_(place, by, Stage::Private, at, "");
                // The better one answers to the name of the one it replaces.
                self.put(place, Some(Arc::clone(name)), by);
            }
            Event::Proven { place, version } => self.life(place, version, |life| life.proven = true),
            Event::Published { place, version, name } => self.publish(place, version, name, at),
            Event::Merged { place, version, name, members, taken } => {
                let public = members.iter().filter_map(|member| self.names.head(member));
                let all: Vec<_> = public.chain(taken.iter().map(|taken| &taken.version)).cloned().collect();
                self.add_members(version, &all);
                for member in members.iter().filter(|member| *member != name) {
                    if let Some(old) = self.names.head(member).cloned() {
                        self.become_(&Place::Library, &old, Stage::Merged, at, name);
                    }
                }
                for Taken { place, version } in taken {
                    self.take(place, version, name, at);
                }
                self.publish(place, version, name, at);
            }
            Event::Retired { place, version, reason } => {
                if let Some(shelf) = self.shelf(place) {
                    shelf.heads.retain(|_, head| head != version);
                }
                self.become_(place, version, Stage::Retired, at, reason);
            }
            Event::RolledBack { name, from, to, reason } => {
                if let Some(from) = from {
                    self.become_(&Place::Library, from, Stage::RolledBack, at, reason);
                }
                self.become_(&Place::Library, to, Stage::Public, at, reason);
                self.remember(&Place::Library, name, to);
            }
            Event::Restored { version, name, stage, reason } => {
                self.become_(&Place::Library, version, *stage, at, reason);
                self.remember(&Place::Library, name, version);
            }
            Event::CallRecorded { version, call } => self.called(version, call),
            Event::Tested { version, report } => self.change(version, |known| {
                known.reports.push((at, report.clone()));
                let surplus = known.reports.len().saturating_sub(REPORTS);
                known.reports.drain(..surplus);
            }),
            Event::TaskEnded { task, left } => drop(self.ended.insert(Arc::clone(task), *left)),
            Event::Answered { run, key, answer } => {
                let answers = self.answers.entry(Arc::clone(run)).or_default();
                Arc::make_mut(answers).insert(Arc::clone(key), Arc::clone(answer));
            }
            Event::Aliased { .. } => {}
        }
    }

    fn called(&mut self, version: &str, call: &Call) {
        if let Some(origin) = &call.origin {
            let seen = self.seen.entry(Arc::clone(&origin.run)).or_default();
            Arc::make_mut(seen).insert(Arc::clone(&origin.effect), version.into());
        }
        self.change(version, |known| match call.left_out {
            true => known.left_out = known.left_out.saturating_add(1),
            false => known.calls.push(call.clone()),
        });
    }

    /// Everybody's from here on; what the name meant before has had its time.
    fn publish(&mut self, place: &Place, version: &Arc<str>, name: &Arc<str>, at: i64) {
        if *place != Place::Library {
            self.life(place, version, |life| (life.stage, life.at) = (Stage::Public, at));
            if let Some(shelf) = self.shelf(place) {
                shelf.heads.retain(|_, head| head != version);
            }
        }
        let before = self.names.head(name).cloned();
        if let Some(before) = before.filter(|before| before != version) {
            self.become_(&Place::Library, &before, Stage::Enhanced, at, "");
        }
        self.become_(&Place::Library, version, Stage::Public, at, "");
        self.remember(&Place::Library, name, version);
    }

    /// A version does the work of these, too (V-09).
    fn add_members(&mut self, version: &Arc<str>, members: &[Arc<str>]) {
        self.change(version, |known| {
            for member in members.iter().filter(|member| *member != version) {
                if !known.parents.contains(member) && !known.members.contains(member) {
                    known.members.push(Arc::clone(member));
                }
            }
        });
    }

    /// What a task has proved is part of another tool: its history is that one's.
    fn take(&mut self, place: &Place, version: &Arc<str>, name: &Arc<str>, at: i64) {
        self.become_(place, version, Stage::Merged, at, name);
        if let Some(shelf) = self.shelf(place) {
            shelf.heads.retain(|_, head| head != version);
        }
        self.change(version, |known| {
            let life = Life { stage: Stage::Merged, at, reason: name.to_string(), proven: true };
            known.lives.entry(Place::Library).or_insert(life);
        });
        self.remember(&Place::Library, name, version);
    }

    fn change(&mut self, version: &str, edit: impl FnOnce(&mut Version)) {
        if let Some(known) = self.versions.get_mut(version) {
            edit(known);
        }
    }

    fn life(&mut self, place: &Place, version: &str, edit: impl FnOnce(&mut Life)) {
        self.change(version, |known| {
            if let Some(life) = known.lives.get_mut(place) {
                edit(life);
            }
        });
    }

    /// A version that comes to a place by being published there begins its life in it. One that was only used there,
    /// as a public tool that a task replaces, has none.
    fn become_(&mut self, place: &Place, version: &str, stage: Stage, at: i64, reason: &str) {
        self.change(version, |known| match known.lives.get_mut(place) {
            Some(life) => {
                (life.stage, life.at) = (stage, at);
                reason.clone_into(&mut life.reason);
            }
            None if stage == Stage::Public => {
                let life = Life { stage, at, reason: reason.to_owned(), proven: true };
                known.lives.insert(place.clone(), life);
            }
            None => {}
        });
    }

    /// A name of a task means this version; without a name it is the version's own.
    fn put(&mut self, place: &Place, name: Option<Arc<str>>, version: &Arc<str>) {
        let Some(known) = self.versions.get(version) else { return };
        let name = name.unwrap_or_else(|| Arc::clone(&known.name));
        self.remember(place, &name, version);
        let shelf = self.shelves.entry(place.clone()).or_default();
        Arc::make_mut(shelf).heads.insert(name, Arc::clone(version));
    }

    /// The tools of a task, to be changed. What everybody's names mean now is not kept there.
    fn shelf(&mut self, place: &Place) -> Option<&mut Shelf> {
        self.shelves.get_mut(place).filter(|shelf| !shelf.heads.is_empty()).map(Arc::make_mut)
    }

    /// A name has meant this version.
    fn remember(&mut self, place: &Place, name: &Arc<str>, version: &Arc<str>) {
        let shelf = Arc::make_mut(self.shelves.entry(place.clone()).or_default());
        let past = shelf.past.entry(Arc::clone(name)).or_default();
        if !past.contains(version) {
            past.push(Arc::clone(version));
        }
    }
}
