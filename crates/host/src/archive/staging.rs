//! A folder in which an archive is unpacked and proved, before anything of it is in the state folder: of what goes wrong, and of who dies
//! meanwhile, nothing stays.

use crate::error::Error;
use selvedge_store::{Mode, Store};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where archives are unpacked, in the state folder: on the same disk, and as private.
const STAGING: &str = "imports";

/// An empty store beside the one that is to take it in.
pub(super) struct Staging {
    pub(super) store: Store,
    // Dropped in this order, so that the next one finds nothing.
    folder: TempDir,
    lock: File,
    place: PathBuf,
    /// The state folder, where it was made for this.
    made: Option<PathBuf>,
}

impl Staging {
    /// Makes one, alone: who comes second waits, and clears away what somebody left who was killed.
    pub(super) fn new(state: &Path) -> Result<Self, Error> {
        let place = state.join(STAGING);
        let made = (!state.exists()).then(|| state.to_owned());
        let prepared = locked(&place).and_then(|lock| {
            for entry in fs::read_dir(&place)?.filter_map(Result::ok) {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    fs::remove_dir_all(entry.path())?;
                }
            }
            Ok((tempfile::Builder::new().prefix("run-").tempdir_in(&place)?, lock))
        });
        let (folder, lock) = prepared.map_err(|error| {
            let message = format!("{} can't be written: {error}", place.display());
            Error::environment("C-14", "state-read-only", &message)
                .help("make the folder writable for this user, or choose another with --state-dir")
        })?;
        let store = Store::open(folder.path(), Mode::ReadWrite)?;
        Ok(Self { store, folder, lock, place, made })
    }

    /// Takes away all that was made.
    pub(super) fn clear(self) {
        let Self { store, folder, lock, place, made } = self;
        drop(store);
        // What can't be taken away the next import takes away.
        let _ = folder.close();
        let _ = lock.unlock();
        let _ = made.map(|state| {
            let _ = fs::remove_file(place.join("lock"));
            let _ = fs::remove_dir(&place);
            // Only where nothing is in it.
            fs::remove_dir(state)
        });
    }
}

/// The lock of that place, which is made for it. One that has been taken away meanwhile is nobody's.
fn locked(place: &Path) -> io::Result<File> {
    let path = place.join("lock");
    loop {
        fs::create_dir_all(place)?;
        let lock = match OpenOptions::new().create(true).truncate(false).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        lock.lock()?;
        let held = lock.metadata()?;
        if fs::metadata(&path).is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
            return Ok(lock);
        }
    }
}
