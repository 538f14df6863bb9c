//! A task, its place in the library, and how the library is changed for it: once (E-40).

use super::{Bench, Undone, beside};
use crate::error::Error;
use crate::library::{self, Decided, held};
use selvedge_engine::library::{Change, Command, Library, Place, Refusal, Stage};
use selvedge_engine::place::FramePath;
use selvedge_engine::{Failure, FaultKind, ToolRequest};
use selvedge_store::{BlobHash, Store, StoreError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// An operation that a task asks for.
pub(super) struct Task {
    pub(super) bench: Arc<Bench>,
    /// The run.
    pub(super) run: Arc<str>,
    /// The frame that the task is in the run.
    pub(super) frame: FramePath,
    /// Its id in the library: the run, and the path of that frame.
    pub(super) id: Arc<str>,
    /// The operation's key.
    pub(super) key: Arc<str>,
    /// Its arguments.
    pub(super) args: Value,
}

impl Task {
    /// The task of a request: the frame of the node that asks, or one around it.
    pub(super) fn of(bench: Arc<Bench>, request: &ToolRequest, run: &Arc<str>) -> Result<Self, Failure> {
        let depth = request.args.get("depth").and_then(Value::as_u64).unwrap_or(0);
        let mut frame = request.effect.place().map(|place| place.place.frames.to_path()).unwrap_or_default();
        for _ in 0..depth {
            let Some((around, _)) = frame.parent() else {
                let message = format!("there are no {depth} frames around {}", request.effect);
                return Err(Failure::permanent(FaultKind::InputError, message).unsent());
            };
            frame = around;
        }
        let id = id_of(run, &frame);
        let (run, key, args) = (Arc::clone(run), request.key().0, request.args.clone());
        Ok(Self { bench, run, frame, id, key, args })
    }

    /// The arguments, as the operation takes them.
    pub(super) fn given<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_value(self.args.clone()).map_err(|error| {
            Failure::permanent(FaultKind::InputError, format!("{}: {error}", self.key)).unsent()
        })
    }

    /// The task's place.
    pub(super) fn place(&self) -> Place {
        Place::Task(Arc::clone(&self.id))
    }

    /// What has been answered already, if this is asked again.
    pub(super) async fn answered(self: &Arc<Self>) -> Result<Option<Value>, Undone> {
        let task = Arc::clone(self);
        beside(move || {
            let store = &task.bench.store;
            let known = held::look(store, |library| library.answer(&task.run, &task.key).cloned())?;
            known.map(|hash| recorded(store, &hash)).transpose()
        })
        .await
    }

    /// Looks at the library as the task sees it.
    pub(super) fn look<T>(&self, see: impl FnOnce(&Library) -> T) -> Result<T, Error> {
        let store = &self.bench.store;
        let seen = held::look(store, |library| -> Result<T, Error> {
            let Some(command) = self.beginning(library)? else { return Ok(see(library)) };
            let mut change = Change::new(library);
            change.accept(command).map_err(|refusal| library::refused(&refusal))?;
            Ok(see(change.after()))
        });
        seen?
    }

    /// Changes the library, all of it or nothing, and keeps the answer with the change. What is asked again is answered from there.
    pub(super) async fn once(
        self: &Arc<Self>,
        mut decide: impl FnMut(&mut Changing<'_>) -> Result<Value, Error> + Send + 'static,
    ) -> Result<Value, Undone> {
        let task = Arc::clone(self);
        beside(move || {
            let store = &task.bench.store;
            library::change(store, |library| {
                if let Some(hash) = library.answer(&task.run, &task.key) {
                    let what = recorded(store, hash)?;
                    return Ok(Decided { events: Vec::new(), contents: Vec::new(), what });
                }
                let mut changing = Changing {
                    before: library,
                    change: Change::new(library),
                    contents: Vec::new(),
                    task: &task,
                };
                if let Some(command) = task.beginning(library)? {
                    changing.sure(command)?;
                }
                let what = decide(&mut changing)?;
                let Changing { mut change, mut contents, .. } = changing;
                if !change.is_empty() {
                    let answer = what.to_string().into_bytes();
                    let hash = BlobHash::of(&answer).to_string().into();
                    let (run, key) = (Arc::clone(&task.run), Arc::clone(&task.key));
                    let accepted = change.accept(Command::Answer { run, key, answer: hash });
                    accepted.map_err(|refusal| library::refused(&refusal))?;
                    contents.push(answer);
                }
                Ok(Decided { events: change.into_events(), contents, what })
            })
        })
        .await
    }

    /// What there is to be done first: a place that is new begins with what the task's earlier visit has, or, in a fork, with what the
    /// source's had where the fork leaves it; one whose run had been left goes on.
    fn beginning(&self, library: &Library) -> Result<Option<Command>, Error> {
        let task = || Arc::clone(&self.id);
        if library.was_left(&self.id) {
            return Ok(Some(Command::ResumeTask { task: task() }));
        }
        if library.knows_task(&self.id) {
            return Ok(None);
        }
        let before = self.before(library)?;
        Ok(before.map(|(from, until)| Command::TakeOver { task: task(), from, until }))
    }

    /// The place that this one's begins like, and the time until which that counts.
    fn before(&self, library: &Library) -> Result<Option<(Arc<str>, i64)>, Error> {
        if let Some(earlier) = self.like(library, &self.run) {
            return Ok(Some((earlier, i64::MAX)));
        }
        let (mut run, mut until) = (Arc::clone(&self.run), i64::MAX);
        let store = &self.bench.store;
        loop {
            let info = match store.run(&run) {
                Err(StoreError::UnknownRun { .. }) => return Ok(None),
                found => found?,
            };
            let Some(fork) = info.fork.filter(|fork| fork.events > 0) else { return Ok(None) };
            let Some(shared) = store.journal(&fork.run, fork.events)?.next() else { return Ok(None) };
            until = until.min(shared?.at_ms);
            run = fork.run.into();
            if let Some(like) = self.like(library, &run) {
                return Ok(Some((like, until)));
            }
        }
    }

    /// The latest place of a run that is this one but for visits.
    fn like(&self, library: &Library, run: &Arc<str>) -> Option<Arc<str>> {
        let own = self.frame.without_visits();
        let same = |id: &&Arc<str>| {
            let path = id.get(run.len()..).unwrap_or_default().trim_start_matches('/');
            **id != self.id && path.parse::<FramePath>().is_ok_and(|path| path.without_visits() == own)
        };
        // Of a task that said itself that it is over, nothing is gone on with.
        let goes_on = |id: &&Arc<str>| library.open_tasks().contains(*id) || library.was_left(id);
        library.tasks_of(run).filter(same).filter(goes_on).max().cloned()
    }
}

/// The id of a task in the library.
fn id_of(run: &Arc<str>, frame: &FramePath) -> Arc<str> {
    if frame.is_root() { Arc::clone(run) } else { format!("{run}/{frame}").into() }
}

/// An answer that was kept.
fn recorded(store: &Store, hash: &str) -> Result<Value, Error> {
    let text = library::text(store, hash)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("the answer {hash} of an operation can't be read: {error}");
        Error::environment("C-03", "state-damaged", &message).help("restore the state folder from a backup")
    })
}

/// A change that is decided on for a task.
pub(super) struct Changing<'t> {
    /// The library as it is.
    before: &'t Library,
    change: Change,
    contents: Vec<Vec<u8>>,
    task: &'t Task,
}

impl Changing<'_> {
    /// The library as it would be.
    pub(super) fn library(&self) -> &Library {
        self.change.after()
    }

    /// The task's place.
    pub(super) fn place(&self) -> Place {
        self.task.place()
    }

    /// What a name means in the task's own place.
    pub(super) fn own(&self, name: &str) -> Option<Arc<str>> {
        self.library().head(&self.task.place(), name).cloned()
    }

    /// Adds a command.
    pub(super) fn accept(&mut self, command: Command) -> Result<(), Refusal> {
        self.change.accept(command)
    }

    /// Adds a command that nothing speaks against.
    pub(super) fn sure(&mut self, command: Command) -> Result<(), Error> {
        self.accept(command).map_err(|refusal| library::refused(&refusal))
    }

    /// Adds all of what is decided, or, where something speaks against a part of it, nothing.
    pub(super) fn together<T>(
        &mut self,
        decide: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let kept = self.change.len();
        let decided = decide(self);
        if decided.is_err() {
            self.change.take_back(self.before, kept);
        }
        decided
    }

    /// The text of a version that is known.
    pub(super) fn text(&self, version: &str) -> Result<String, Error> {
        library::text(&self.task.bench.store, version)
    }

    /// Keeps a content with the change.
    pub(super) fn keep(&mut self, content: Vec<u8>) {
        self.contents.push(content);
    }

    /// Where a version is in the task's place.
    pub(super) fn stage(&self, version: &str) -> Option<Stage> {
        self.library().version(version)?.stage(&self.task.place())
    }

    /// Makes a version one of the task's that is known, and not there: as the run of a fork has it in its events, or one that was
    /// given up.
    pub(super) fn take_in(&mut self, version: &Arc<str>) -> Result<(), Refusal> {
        let place = self.task.place();
        let Some(known) = self.library().version(version).cloned() else {
            let message = format!("the library has no version {version}");
            return Err(Refusal { code: "unknown-version", message });
        };
        if matches!(known.stage(&place), None | Some(Stage::Retired)) {
            let (version, name) = (Arc::clone(version), known.name);
            let (author, parents, request) = (known.author, known.parents, known.request);
            let place = place.clone();
            // It has those that are known of it.
            let members = Vec::new();
            self.accept(Command::Draft { place, version, name, author, parents, members, request })?;
        }
        if let (Some(Stage::Drafted), Some(facts)) = (self.stage(version), &known.facts) {
            let (version, facts) = (Arc::clone(version), (**facts).clone());
            self.accept(Command::Validate { place, version, facts })?;
        }
        Ok(())
    }

    /// Has a name mean a version that the run uses, unless it means something already, to the task or to everybody.
    pub(super) fn has(&mut self, name: &Arc<str>, version: &Arc<str>) -> Result<(), Error> {
        let library = self.library();
        let meant = library.for_task(&self.task.id, name).is_some() || library.version(version).is_none();
        if meant { Ok(()) } else { self.bind(name, version, false, "in use by the run") }
    }

    /// Has a name mean a version that is the task's, in place of what it means to it: the task's own, or what is everybody's too, where
    /// that is to be mended.
    pub(super) fn bind(
        &mut self,
        name: &Arc<str>,
        version: &Arc<str>,
        mends: bool,
        why: &str,
    ) -> Result<(), Error> {
        let (task, place) = (Arc::clone(&self.task.id), self.task.place());
        if matches!(self.stage(version), Some(Stage::Private | Stage::Public)) {
            return Ok(());
        }
        self.take_in(version).map_err(|refusal| library::refused(&refusal))?;
        let own = self.library().head(&place, name).cloned();
        let public = || self.library().public(name).map(|known| Arc::clone(&known.hash));
        let old = own.clone().or_else(|| public().filter(|_| mends));
        let child = |old: &Arc<str>| self.library().lineage(version).iter().any(|known| known.hash == *old);
        if old.as_ref().is_some_and(child) {
            let (name, by, reason) = (Arc::clone(name), Arc::clone(version), why.to_owned());
            return self.sure(Command::Enhance { task, name, by, reason });
        }
        if let Some(version) = own {
            // The same content came from somewhere else before: nothing says that it is made of this one.
            self.sure(Command::Retire { place, version, reason: why.to_owned() })?;
        }
        self.sure(Command::Keep { task, version: Arc::clone(version), name: Some(Arc::clone(name)) })
    }
}
