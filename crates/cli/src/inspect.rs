//! The commands that only look at what is recorded and configured. They open the state folder for reading, so
//! they work on one that can't be written, and while another process drives the run.

pub(crate) mod args;
pub(crate) mod completions;
pub(crate) mod diff;
mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod graph;
pub(crate) mod help;
pub(crate) mod init;
mod models;
mod out;
pub(crate) mod page;
pub(crate) mod pager;
mod replay;
mod runs;
pub(crate) mod schema;
mod show;
pub(crate) use selvedge_host::time;
mod timeline;

pub(crate) use doctor::doctor;
pub(crate) use events::of_fork;
pub(crate) use export::export;
pub(crate) use help::help;
pub(crate) use models::models;
pub(crate) use replay::replay;
pub(crate) use runs::{runs, stored};
pub(crate) use show::show;

use crate::args::Common;
use crate::ui::Ui;
use selvedge_host::Environment;
use selvedge_host::Error;
use selvedge_host::places;
use selvedge_host::stores::open;
use selvedge_runtime::LoadError;
use selvedge_store::{RunInfo, Store};

/// A recorded run.
struct Found {
    store: Store,
    info: RunInfo,
    /// Whether a live process drives it; as of before its journal is read, so that a run that ends meanwhile is
    /// not taken for one that lost its driver.
    driven: bool,
}

impl Found {
    /// Finds a run by its id or the beginning of it.
    ///
    /// # Errors
    /// Exit 2 if there is none (C-12), exit 4 if the state folder can't be read.
    fn new(common: &Common, run: &str, ui: &Ui) -> Result<Self, Error> {
        let (store, id) = find(common, run, ui)?;
        let driven = is_driven(&store, &id);
        let info = store.run(&id)?;
        Ok(Self { store, info, driven })
    }

    fn run(&self) -> &str {
        &self.info.id
    }

    /// A part of the run that this version can't read.
    fn unreadable(&self, what: String, cause: String) -> Error {
        unreadable(self.run(), what, cause)
    }
}

/// A part of a run that this version can't read.
fn unreadable(run: &str, what: String, cause: String) -> Error {
    LoadError::Unreadable { run: run.to_owned(), what, cause }.into()
}

/// The store, and the id of the run that `run` means there.
fn find(common: &Common, run: &str, ui: &Ui) -> Result<(Store, String), Error> {
    let dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    let Some(store) = open(&dir)? else {
        let message = format!("there is no run \"{run}\": {} holds no runs", dir.display());
        return Err(Error::usage("C-12", "unknown-run", &message).help("check --state-dir"));
    };
    let id = selvedge_host::stores::find_run(&store, run)?;
    Ok((store, id))
}

/// Whether a live process drives a run. Where that can't be found out, nobody is said to be gone.
fn is_driven(store: &Store, run: &str) -> bool {
    store.is_driven(run).unwrap_or(true)
}

/// A talker that knows the keys of this environment: should one have got into a journal, it is not shown (C-06).
fn guarded(ui: &Ui) -> Ui {
    ui.guarded()
}

fn config_files(environment: &Environment) -> places::Files {
    places::config_files(environment, environment.cwd())
}
