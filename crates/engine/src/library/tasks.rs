//! Tasks: where they begin with tools, where they end, and where they go on.

use super::command::refused;
use super::{Event, Library, Place, Refusal, Stage};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a version is retired that its task had not proven.
const UNPROVEN: &str = "not proven when its task ended";
/// The same where its run was left as it was.
const LEFT: &str = "not proven when its run was left";

impl Library {
    /// Whether a task has ever had a tool.
    pub fn knows_task(&self, task: &str) -> bool {
        self.ended.contains_key(task) || self.open_tasks().contains(task)
    }

    /// Whether a task is over because its run was left: it goes on if that does.
    pub fn was_left(&self, task: &str) -> bool {
        self.ended.get(task) == Some(&true)
    }

    /// The tasks of a run that have ever had a tool.
    pub fn tasks_of<'l>(&'l self, run: &'l str) -> impl Iterator<Item = &'l Arc<str>> {
        let of = move |task: &&Arc<str>| {
            task.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.open_tasks().iter().chain(self.ended.keys()).filter(of)
    }

    /// A name that a tool of other origin has gets a number; nothing is dropped.
    pub(super) fn end_task(&self, task: Arc<str>, publish: bool, left: bool) -> Vec<Event> {
        let place = Place::Task(Arc::clone(&task));
        let mut after = self.clone();
        let mut events = Vec::new();
        for known in self.versions_of(&task) {
            let Some(life) = known.lives.get(&place) else { continue };
            let (place, version) = (place.clone(), Arc::clone(&known.hash));
            let event = match life.stage {
                Stage::Private if life.proven && publish => {
                    let name = after.place_for(&known.hash);
                    Event::Published { place, version, name }
                }
                Stage::Private if life.proven => continue,
                Stage::Drafted | Stage::Validated | Stage::Private => {
                    let reason = if left { LEFT } else { UNPROVEN };
                    Event::Retired { place, version, reason: reason.to_owned() }
                }
                _ => continue,
            };
            after.apply(0, &event);
            events.push(event);
        }
        if self.open_tasks().contains(&task) {
            events.push(Event::TaskEnded { task, left });
        }
        events
    }

    /// What was in use when the run was left is in use again.
    pub(super) fn resume_task(&self, task: &Arc<str>) -> Vec<Event> {
        let place = Place::Task(Arc::clone(task));
        let Some(shelf) = self.shelves.get(&place).filter(|_| self.was_left(task)) else { return Vec::new() };
        let (mut events, mut taken) = (Vec::new(), BTreeSet::new());
        for (name, past) in &shelf.past {
            let retired = past.iter().rev().filter(|version| !taken.contains(*version)).find(|version| {
                let life = self.version(version).and_then(|known| known.lives.get(&place));
                life.is_some_and(|life| life.stage == Stage::Retired && life.reason == LEFT)
            });
            if let Some(version) = retired.filter(|_| !shelf.heads.contains_key(name)) {
                taken.insert(version);
                events.extend(self.again(&place, name, version));
            }
        }
        events
    }

    /// What the names of another task meant at a time, with what was proven of it.
    pub(super) fn take_over(
        &self,
        task: Arc<str>,
        from: Arc<str>,
        until: i64,
    ) -> Result<Vec<Event>, Refusal> {
        if self.knows_task(&task) {
            return refused("task-known", format!("the task {task} has tools already"));
        }
        let (place, from) = (Place::Task(task), Place::Task(from));
        let Some(shelf) = self.shelves.get(&from) else { return Ok(Vec::new()) };
        let (mut events, mut taken) = (Vec::new(), BTreeSet::new());
        for (name, past) in &shelf.past {
            let meant = past.iter().filter(|version| !taken.contains(*version)).find_map(|version| {
                let known = self.version(version)?;
                let life = known.lives.get(&from)?;
                let over = matches!(life.stage, Stage::Enhanced | Stage::Retired) && life.at <= until;
                (known.drafted <= until && !over).then_some((version, life.proven))
            });
            let Some((version, proven)) = meant else { continue };
            taken.insert(version);
            events.extend(self.again(&place, name, version));
            if proven {
                events.push(Event::Proven { place: place.clone(), version: Arc::clone(version) });
            }
        }
        Ok(events)
    }

    /// The life of a known version, in a place where it has none or has ended, up to its use by a name.
    fn again(&self, place: &Place, name: &Arc<str>, version: &Arc<str>) -> Vec<Event> {
        let Some(known) = self.version(version) else { return Vec::new() };
        let Some(facts) = &known.facts else { return Vec::new() };
        let (place, version) = (place.clone(), Arc::clone(version));
        vec![
            Event::Drafted {
                place: place.clone(),
                version: Arc::clone(&version),
                name: Arc::clone(&known.name),
                author: known.author.clone(),
                parents: known.parents.clone(),
                members: Vec::new(),
                request: known.request.clone(),
            },
            Event::Validated {
                place: place.clone(),
                version: Arc::clone(&version),
                facts: Box::new((**facts).clone()),
            },
            Event::Kept { place, version, name: Some(Arc::clone(name)).filter(|name| *name != known.name) },
        ]
    }
}
