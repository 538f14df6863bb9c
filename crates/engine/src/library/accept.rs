//! What may be done to the library, and why not. Nothing changes here: a command that is right becomes events.

use super::command::refused;
use super::{
    CALL_BYTES, Call, Command, Event, FAILING_CALLS, GOOD_CALLS, LARGE_CALL_BYTES, Library, Place, Refusal,
    Stage, Taken,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first digits of a hash, for people.
fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// Several commands that are to take effect together, each decided after those before it. Nothing happens to the
/// library itself: whoever appends the events, all in one commit, changes it.
#[derive(Clone, Debug)]
pub struct Change {
    after: Library,
    events: Vec<Event>,
}

impl Change {
    /// A change of this library that changes nothing yet.
    pub fn new(library: &Library) -> Self {
        Self { after: library.clone(), events: Vec::new() }
    }

    /// Adds a command.
    ///
    /// # Errors
    /// What the library, as it is after the commands before, does not allow. Then this command adds nothing.
    pub fn accept(&mut self, command: Command) -> Result<(), Refusal> {
        for event in self.after.accept(command)? {
            self.after.apply(0, &event);
            self.events.push(event);
        }
        Ok(())
    }

    /// The library as it would be; times are not known yet.
    pub fn after(&self) -> &Library {
        &self.after
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Takes back the events behind the first `kept` of a change of `library`. What is kept is applied anew: nothing is
    /// copied for those that are never taken back.
    pub fn take_back(&mut self, library: &Library, kept: usize) {
        self.events.truncate(kept);
        self.after = library.clone();
        self.events.iter().for_each(|event| self.after.apply(0, event));
    }

    /// The events, in order.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }
}

impl Library {
    /// The events that a command leads to; none if it asks for what is so already.
    ///
    /// # Errors
    /// What the library does not allow, with the reason.
    pub fn accept(&self, command: Command) -> Result<Vec<Event>, Refusal> {
        match command {
            Command::Draft { place, version, name, author, parents, members, request } => {
                self.may_draft(&place, &version, &name, parents.iter().chain(&members))?;
                Ok(vec![Event::Drafted { place, version, name, author, parents, members, request }])
            }
            Command::Validate { place, version, facts } => {
                self.expect(&place, &version, &[Stage::Drafted], "validated")?;
                Ok(vec![Event::Validated { place, version, facts: Box::new(facts) }])
            }
            Command::Keep { task, version, name } => {
                let place = Place::Task(task);
                self.expect(&place, &version, &[Stage::Validated], "used")?;
                let own = self.version(&version).map(|known| Arc::clone(&known.name)).unwrap_or_default();
                let name = name.filter(|name| *name != own);
                let meant = name.as_ref().unwrap_or(&own);
                if let Some(head) = self.head(&place, meant) {
                    let message = format!(
                        "the task has a tool `{meant}` already, version {}: a better one replaces it",
                        short(head)
                    );
                    return refused("name-taken", message);
                }
                Ok(vec![Event::Kept { place, version, name }])
            }
            Command::Enhance { task, name, by, reason } => self.enhance(task, name, by, reason),
            Command::Prove { task, version } => {
                let place = Place::Task(task);
                self.expect(&place, &version, &[Stage::Private], "proven")?;
                let life = self.version(&version).and_then(|known| known.lives.get(&place));
                let proven = life.is_some_and(|life| life.proven);
                Ok(if proven { Vec::new() } else { vec![Event::Proven { place, version }] })
            }
            Command::Publish { place, version, name } => self.publishing(place, version, name),
            Command::Merge { place, version, name, members, taken } => {
                self.may_merge(&place, &version, &name, &members)?;
                self.may_take(&version, &taken)?;
                if members.is_empty() && taken.is_empty() {
                    return refused("bad-merge", "a merge has members");
                }
                Ok(vec![Event::Merged { place, version, name, members, taken }])
            }
            Command::Retire { place, version, reason } => {
                let from = [Stage::Drafted, Stage::Validated, Stage::Private, Stage::Public];
                self.expect(&place, &version, &from, "retired")?;
                Ok(vec![Event::Retired { place, version, reason }])
            }
            Command::Rollback { name, to, reason } => self.rollback(name, to, reason),
            Command::Restore { version, name, stage, reason } => {
                self.expect(&Place::Library, &version, &[Stage::Validated], "restored")?;
                if !matches!(stage, Stage::Enhanced | Stage::Merged | Stage::Retired | Stage::RolledBack) {
                    let message = format!("a version that was in use can't be {} again", stage.name());
                    return refused("illegal-transition", message);
                }
                Ok(vec![Event::Restored { version, name, stage, reason }])
            }
            Command::Record { version, call, bytes } => self.record(version, call, bytes),
            Command::Test { version, report } => {
                self.validated(&version)?;
                Ok(vec![Event::Tested { version, report }])
            }
            Command::Alias { alias, name } => self.alias(alias, name),
            Command::EndTask { task, publish, left } => Ok(self.end_task(task, publish, left)),
            Command::ResumeTask { task } => Ok(self.resume_task(&task)),
            Command::TakeOver { task, from, until } => self.take_over(task, from, until),
            Command::Answer { run, key, answer } => match self.answer(&run, &key) {
                None => Ok(vec![Event::Answered { run, key, answer }]),
                Some(_) => refused("answered", format!("the operation {key} of run {run} was answered")),
            },
        }
    }

    /// The events of several commands, each after those before it: all of them, or none.
    ///
    /// # Errors
    /// The first refusal.
    pub fn accept_all(&self, commands: impl IntoIterator<Item = Command>) -> Result<Vec<Event>, Refusal> {
        let mut change = Change::new(self);
        commands.into_iter().try_for_each(|command| change.accept(command))?;
        Ok(change.events)
    }

    fn may_draft<'a>(
        &self,
        place: &Place,
        version: &str,
        name: &Arc<str>,
        mut older: impl Iterator<Item = &'a Arc<str>>,
    ) -> Result<(), Refusal> {
        let hash = version.len() == 64 && version.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !hash {
            return refused("bad-version", format!("`{version}` is no content hash"));
        }
        if name.trim().is_empty() {
            return refused("bad-name", "a tool has a name");
        }
        if let Some(unknown) = older.find(|older| self.version(older).is_none()) {
            return refused(
                "unknown-version",
                format!("there is no version {} to come from", short(unknown)),
            );
        }
        // Content has one name: the one in its metadata.
        if let Some(known) = self.version(version).filter(|known| known.name != *name) {
            let message = format!("version {} is a tool `{}`, not `{name}`", short(version), known.name);
            return refused("bad-name", message);
        }
        match self.version(version).and_then(|known| known.stage(place)) {
            // What was given up may be taken up again.
            None | Some(Stage::Retired) => Ok(()),
            Some(stage) => {
                let message =
                    format!("version {} of `{name}` is there already, {}", short(version), stage.name());
                refused("version-known", message)
            }
        }
    }

    fn enhance(
        &self,
        task: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        reason: String,
    ) -> Result<Vec<Event>, Refusal> {
        let Some(old) = self.for_task(&task, &name).map(|known| Arc::clone(&known.hash)) else {
            return refused("unknown-tool", format!("there is no tool `{name}` that could be replaced"));
        };
        let place = Place::Task(task);
        self.expect(&place, &by, &[Stage::Validated], "used")?;
        let is_child = self.lineage(&by).iter().any(|known| known.hash == old);
        if !is_child {
            let message =
                format!("version {} does not come from version {} of `{name}`", short(&by), short(&old));
            return refused("not-a-child", message);
        }
        Ok(vec![Event::Enhanced { place, name, version: old, by, reason }])
    }

    fn publishing(
        &self,
        place: Place,
        version: Arc<str>,
        name: Option<Arc<str>>,
    ) -> Result<Vec<Event>, Refusal> {
        match place {
            Place::Library => self.expect(&place, &version, &[Stage::Validated], "published")?,
            Place::Task(_) => self.proven(&place, &version)?,
        }
        let Some(known) = self.version(&version) else { return Ok(Vec::new()) };
        // What another task has published keeps the name that it got there: one content is one tool.
        let name = self.public_name(&version).or(name).unwrap_or_else(|| Arc::clone(&known.name));
        if let Some(leads) = self.aliases().get(&name).filter(|_| self.head(&Place::Library, &name).is_none())
        {
            let message = format!("the name `{name}` leads to the tool `{leads}`");
            return refused("name-taken", message);
        }
        Ok(vec![Event::Published { place, version, name }])
    }

    fn may_merge(
        &self,
        place: &Place,
        version: &Arc<str>,
        name: &Arc<str>,
        members: &[Arc<str>],
    ) -> Result<(), Refusal> {
        match place {
            Place::Library => self.expect(place, version, &[Stage::Validated, Stage::Public], "published")?,
            Place::Task(_) => self.proven(place, version)?,
        }
        let distinct: BTreeSet<&Arc<str>> = members.iter().collect();
        if distinct.len() != members.len() {
            return refused("bad-merge", "a member is named twice");
        }
        if let Some(unknown) = members.iter().find(|name| self.head(&Place::Library, name).is_none()) {
            return refused("unknown-tool", format!("there is no public tool `{unknown}`"));
        }
        // A name that leads somewhere else has callers there.
        let meant = self.resolve(name);
        let other = |head: &Arc<str>| *head != *version && members.iter().all(|member| **member != *meant);
        if self.head(&Place::Library, meant).is_some_and(other) {
            return refused("name-taken", format!("`{name}` is a tool that is no member"));
        }
        // Of a version that is public, the name it has stays.
        let elsewhere =
            |known: &Arc<str>| self.head(&Place::Library, known) == Some(version) && known != name;
        if self.names(&Place::Library).any(|known| elsewhere(known) && !members.contains(known)) {
            return refused("bad-merge", format!("version {} is public by another name", short(version)));
        }
        Ok(())
    }

    /// Of tasks, only what is proven and in use there, and nobody else's yet, is merged.
    fn may_take(&self, by: &str, taken: &[Taken]) -> Result<(), Refusal> {
        for Taken { place, version } in taken {
            if **version == *by {
                return refused("bad-merge", "a version can't take itself in");
            }
            if *place == Place::Library {
                return refused("bad-merge", "what is everybody's is merged by its name");
            }
            self.proven(place, version)?;
        }
        Ok(())
    }

    /// Refuses a version of a task that is not in use there, or not proven.
    fn proven(&self, place: &Place, version: &str) -> Result<(), Refusal> {
        self.expect(place, version, &[Stage::Private], "published")?;
        match self.version(version) {
            Some(known) if !known.lives.get(place).is_some_and(|life| life.proven) => {
                refused("not-proven", format!("version {} of `{}` is not proven", short(version), known.name))
            }
            _ => Ok(()),
        }
    }

    fn rollback(&self, name: Arc<str>, to: Arc<str>, reason: String) -> Result<Vec<Event>, Refusal> {
        let past = self.past(&Place::Library, &name);
        if past.is_empty() {
            return refused("unknown-tool", format!("no public tool was ever named `{name}`"));
        }
        if !past.contains(&to) {
            return refused("unknown-version", format!("`{name}` has never meant version {}", short(&to)));
        }
        let from = self.head(&Place::Library, &name).cloned();
        if from.as_ref() == Some(&to) {
            return refused("same-version", format!("`{name}` means version {} already", short(&to)));
        }
        // One content is one tool: under two names it would be in two stages at once.
        if let Some(other) = self.public_name(&to) {
            return refused("name-taken", format!("version {} is the tool `{other}` now", short(&to)));
        }
        Ok(vec![Event::RolledBack { name, from, to, reason }])
    }

    fn record(&self, version: Arc<str>, mut call: Call, bytes: usize) -> Result<Vec<Event>, Refusal> {
        let known = self.validated(&version)?;
        let origin = call.origin.as_ref();
        let told = origin.is_some_and(|origin| self.has_call(&origin.run, &origin.effect));
        let same = known.calls.iter().any(|other| other.sample == call.sample);
        let like = known.calls.iter().filter(|other| other.ok == call.ok).count();
        let full = like >= if call.ok { GOOD_CALLS } else { FAILING_CALLS };
        if told || same || full {
            return Ok(Vec::new());
        }
        if bytes > CALL_BYTES {
            let large: u64 = known.calls.iter().map(|call| call.bytes).sum();
            call.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            call.left_out = large.saturating_add(call.bytes) > LARGE_CALL_BYTES;
            // One of a file is not counted: nothing tells that it was there before.
            if call.left_out && call.origin.is_none() {
                return Ok(Vec::new());
            }
        }
        Ok(vec![Event::CallRecorded { version, call }])
    }

    fn alias(&self, alias: Arc<str>, name: Arc<str>) -> Result<Vec<Event>, Refusal> {
        if self.head(&Place::Library, &alias).is_some() {
            return refused("name-taken", format!("`{alias}` is a tool itself"));
        }
        if self.head(&Place::Library, &name).is_none() {
            return refused("unknown-tool", format!("there is no public tool `{name}`"));
        }
        let same = self.aliases().get(&alias) == Some(&name);
        Ok(if same { Vec::new() } else { vec![Event::Aliased { alias, name }] })
    }

    /// The public name of a version: its own, if it is free or means a version that this one was made of.
    pub(super) fn place_for(&self, version: &str) -> Arc<str> {
        let Some(known) = self.version(version) else { return version.into() };
        if let Some(name) = self.public_name(version) {
            return name;
        }
        let head = self.head(&Place::Library, &known.name);
        let descends = |head: &Arc<str>| self.lineage(version).iter().any(|known| known.hash == *head);
        if head.is_some_and(descends) { Arc::clone(&known.name) } else { self.free_name(&known.name) }
    }

    /// The public name that means a version.
    pub fn public_name(&self, version: &str) -> Option<Arc<str>> {
        let means =
            |name: &&Arc<str>| self.head(&Place::Library, name).is_some_and(|head| **head == *version);
        self.names(&Place::Library).find(means).cloned()
    }

    /// A version that is a tool.
    fn validated(&self, version: &str) -> Result<&super::Version, Refusal> {
        match self.version(version) {
            Some(known) if known.facts.is_some() => Ok(known),
            Some(_) => refused("not-validated", format!("version {} is a draft", short(version))),
            None => refused("unknown-version", format!("there is no version {}", short(version))),
        }
    }

    /// Refuses a version that is not at one of these stages.
    fn expect(&self, place: &Place, version: &str, from: &[Stage], to: &str) -> Result<(), Refusal> {
        let Some(known) = self.version(version) else {
            return refused("unknown-version", format!("there is no version {}", short(version)));
        };
        match known.stage(place) {
            Some(stage) if from.contains(&stage) => Ok(()),
            stage => {
                let stage = stage.map_or("not there", Stage::name);
                let from: Vec<&str> = from.iter().map(|stage| stage.name()).collect();
                let message = format!(
                    "version {} of `{}` is {stage}: only what is {} can be {to}",
                    short(version),
                    known.name,
                    from.join(" or ")
                );
                refused("illegal-transition", message)
            }
        }
    }
}
