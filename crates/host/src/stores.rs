//! State folders as they are opened: to look at, to go on with a run, to begin one.

use crate::environment::Environment;
use crate::error::Error;
use crate::text::or_meant;
use crate::{places, trust};
use rustix::fs::{Access, access};
use selvedge_store::{DB_FILE, Mode, RunFilter, Store, StoreError};
use std::path::{Path, PathBuf};

/// The state folder for reading; `None` if it holds no database yet.
pub fn open(dir: &Path) -> Result<Option<Store>, StoreError> {
    match Store::open(dir, Mode::ReadOnly) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing { .. }) => Ok(None),
        // A database of an older format is brought up to date, which takes writing.
        Err(StoreError::ReadOnly { .. }) => match Store::open(dir, Mode::ReadWrite) {
            // Who may not even read it need not write it to look at it.
            Err(StoreError::ReadOnly { path, .. }) if access(&path, Access::READ_OK).is_err() => {
                Err(StoreError::Io { path, why: "this user may not read it".to_owned() })
            }
            opened => opened.map(Some),
        },
        Err(error) => Err(error),
    }
}

/// The state folder of a run that must exist; a folder without a database has no runs (C-12).
pub fn open_existing(
    environment: &Environment,
    state_dir: Option<&Path>,
    run: &str,
) -> Result<(PathBuf, Store), Error> {
    let dir = places::state_dir(environment, state_dir)?;
    if !dir.join(DB_FILE).exists() {
        let message = format!("there is no run \"{run}\": {} holds no runs", dir.display());
        return Err(Error::usage("C-12", "unknown-run", &message).help("check --state-dir"));
    }
    let store = match Store::open(&dir, Mode::ReadWrite) {
        // An ended run can be shown all the same.
        Err(StoreError::ReadOnly { .. }) => Store::open(&dir, Mode::ReadOnly)?,
        opened => opened?,
    };
    Ok((dir, store))
}

/// The id of the run that is meant; an unknown one is told with what it is near to.
pub fn find_run(store: &Store, text: &str) -> Result<String, Error> {
    store.find_run(text).map_err(|error| {
        let unknown = matches!(error, StoreError::UnknownRun { .. });
        let failure = Error::from(error);
        let help = failure.diagnostics.first().map(|first| first.help.clone()).unwrap_or_default();
        match store.runs(&RunFilter::default()) {
            Ok(runs) if unknown => {
                let ids: Vec<&str> = runs.sound.iter().map(|run| run.id.as_str()).collect();
                failure.help(&or_meant(text, &ids, &help))
            }
            _ => failure,
        }
    })
}

/// Opens a state folder to write to it. What is made now is the user's own (C-20).
pub fn open_or_make(environment: &Environment, dir: &Path) -> Result<Store, StoreError> {
    let there = dir.join(DB_FILE).exists();
    let store = Store::open(dir, Mode::ReadWrite)?;
    if !there {
        trust::state::made(environment, dir);
    }
    Ok(store)
}
