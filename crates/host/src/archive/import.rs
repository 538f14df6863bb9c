//! Taking an archive in: unpacked and proved beside the state folder's database, then taken over in one transaction.

use super::proved::prove;
use super::staging::Staging;
use super::texts::Texts;
use super::{Failure, failed};
use crate::environment::Environment;
use crate::error::Error;
use crate::ids::checked_id;
use crate::options::{Origin, RunOptions};
use crate::stores;
use crate::text::counted;
use rustix::fs::{CWD, Mode, OFlags, openat};
use selvedge_store::archive::{self, ArchiveError, ArchivedRun, Manifest};
use selvedge_store::{Entry, Store, StoreError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// What was found of a run where it was to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it is there now.
    New,
    /// The same.
    Same,
    /// The same, and what it has done since.
    Further,
    /// An earlier import of it, which had fewer events: it has those of the archive now.
    Extended,
}

/// What came of an import.
pub struct Imported {
    /// What the archive holds: the run last, its sources before it.
    pub runs: Vec<(ArchivedRun, Found)>,
    /// Tools whose texts it has: version by name.
    pub tools: BTreeMap<String, String>,
}

impl Imported {
    /// The run that the archive is of.
    pub fn run(&self) -> Option<&(ArchivedRun, Found)> {
        self.runs.last()
    }
}

/// Takes the runs of an archive into a state folder: all of them or none. Nothing of them is run.
///
/// # Errors
/// There is no such file, it is no archive, of a newer format, damaged or more than an archive may hold; a run in it is none; another run has
/// its id; or the state folder can't be written.
pub fn import(environment: &Environment, state: &Path, file: &Path) -> Result<Imported, Error> {
    let from = BufReader::with_capacity(1 << 16, opened(file)?);
    let staging = Staging::new(state)?;
    let done = taken_in(environment, state, file, from, &staging.store);
    staging.clear();
    done
}

fn taken_in(
    environment: &Environment,
    state: &Path,
    file: &Path,
    from: impl Read,
    staged: &Store,
) -> Result<Imported, Error> {
    let manifest = archive::read(from, staged, options).map_err(|failure: Failure| failure.about(file))?;
    prove(staged, &manifest)?;
    let mut texts = Texts::of(staged);
    for run in &manifest.runs {
        run.graph.iter().try_for_each(|graph| texts.graph(&run.id, graph))?;
        staged.journal(&run.id, run.first())?.try_for_each(|entry| texts.event(&run.id, &entry?))?;
    }
    let tools = texts.tools;
    // Until here nothing was made that stays.
    let store = stores::open_or_make(environment, state)?;
    let runs = taken_over(&store, staged, manifest)?;
    Ok(Imported { runs, tools })
}

/// Takes over what is not there yet. Whoever has begun a run of one of these ids meanwhile was first.
fn taken_over(store: &Store, staged: &Store, manifest: Manifest) -> Result<Vec<(ArchivedRun, Found)>, Error> {
    let (mut runs, mut further, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for run in manifest.runs {
        let (found, events) = compared(store, staged, &run)?;
        match found {
            Found::New => new.push(run.id.clone()),
            Found::Extended => further.push((run.id.clone(), events + 1)),
            Found::Same | Found::Further => {}
        }
        runs.push((run, found));
    }
    // Nobody goes on with them meanwhile.
    let locks = further.iter().map(|(run, _)| store.drive(run)).collect::<Result<Vec<_>, _>>()?;
    if !new.is_empty() || !further.is_empty() {
        store.adopt(staged, further, new).wait()?;
    }
    drop(locks);
    Ok(runs)
}

/// What there is of a run already, and how many events.
fn compared(store: &Store, staged: &Store, run: &ArchivedRun) -> Result<(Found, u64), Error> {
    let there = match store.run(&run.id) {
        Ok(there) => there,
        Err(StoreError::UnknownRun { .. }) => return Ok((Found::New, 0)),
        Err(error) => return Err(error.into()),
    };
    let source = there.fork.as_ref().map(|fork| (&fork.run, fork.events));
    let other = run.fork.as_ref().map(|fork| (&fork.run, fork.events)) != source;
    if other {
        return Err(another(run, "it has another source"));
    }
    let events = store.last_event(&run.id)?;
    let both = store.journal(&run.id, run.first())?.zip(staged.journal(&run.id, run.first())?);
    for (here, there) in both {
        let (here, there): (Entry, Entry) = (here?, there?);
        if here != there {
            return Err(another(run, &format!("event {} is another one", here.n)));
        }
    }
    let found = match events.cmp(&run.events) {
        std::cmp::Ordering::Equal => Found::Same,
        std::cmp::Ordering::Greater => Found::Further,
        // What its fork left of it, or what it had done when it was exported, may be less than another archive has.
        std::cmp::Ordering::Less if RunOptions::stored(&there.options).origin == Origin::Imported => {
            Found::Extended
        }
        std::cmp::Ordering::Less => {
            let why = format!(
                "it has {} there, and {} in the archive: it has gone on elsewhere",
                counted(events, "event"),
                run.events
            );
            return Err(another(run, &why));
        }
    };
    Ok((found, events))
}

fn another(run: &ArchivedRun, why: &str) -> Error {
    let message = format!("a run with the id \"{}\" is there already, and not the same: {why}", run.id);
    Error::usage("C-14", "run-id-used", &message)
        .help("nothing was changed; import it into another folder with --state-dir DIR")
}

/// What a run is recorded to have been started with: what an archive says of it, and nothing that gives it anything here.
fn options(run: &ArchivedRun) -> Result<String, Failure> {
    let damaged = |why: String| Failure::from(ArchiveError::Damaged(why));
    checked_id(&run.id).map_err(|_| damaged(format!("{:?} can't be the id of a run", run.id)))?;
    let said: RunOptions = serde_json::from_value(run.options.clone())
        .map_err(|error| damaged(format!("what run {} was started with can't be read: {error}", run.id)))?;
    let options = RunOptions { origin: Origin::Imported, ..said.portable() };
    options.to_stored().map_err(|error| damaged(error.to_string()))
}

/// Opens the file. Nothing is waited for: a pipe has no archive.
fn opened(file: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let unread = |why: String| {
        let message = format!("{} can't be read: {why}", file.display());
        Error::usage("C-12", "file-not-found", &message).help("check the path")
    };
    let opened = openat(CWD, file, flags, Mode::empty());
    let opened = File::from(opened.map_err(|error| unread(std::io::Error::from(error).to_string()))?);
    match opened.metadata() {
        Ok(about) if about.is_file() => Ok(opened),
        Ok(_) => Err(failed(file, ArchiveError::Foreign("it is no regular file".to_owned()))),
        Err(error) => Err(unread(error.to_string())),
    }
}
