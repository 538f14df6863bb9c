//! Writing an archive.

use super::Failure;
use super::chain::chain;
use super::texts::Texts;
use crate::config::Config;
use crate::error::Error;
use crate::secrets;
use selvedge_store::Store;
use selvedge_store::archive::{ArchivedRun, Writer};
use std::io::{BufWriter, Write};
use std::path::Path;

/// What was written.
pub struct Exported {
    /// The run and its sources, as far as they are in it, these first.
    pub runs: Vec<ArchivedRun>,
    /// Tools whose texts are in it, by name.
    pub tools: Vec<String>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes the run `run` of a store as it is now to `file`, which is not there yet: all of it or nothing.
///
/// # Errors
/// A file of that name is there, a key of this process is in the run (C-06), the run is damaged (E-44) or too large, or the file can't be
/// written.
pub fn export(store: &Store, config: &Config, run: &str, file: &Path) -> Result<Exported, Error> {
    let unwritable = |error: std::io::Error| {
        let message = format!("{} can't be written: {error}", file.display());
        Error::environment("C-14", "archive", &message).help("check the path and the room on the disk")
    };
    if file.symlink_metadata().is_ok() {
        return Err(taken(file));
    }
    let known = secrets::named(config);
    let (mut writer, mut texts) = (Writer::new(store), Texts::of(store));
    let runs = chain(store, run)?;
    for row in &runs {
        let id = &row.id;
        secrets::refuse_text(&known, "what the run was started with", &row.options.to_string())?;
        row.graph.iter().try_for_each(|graph| texts.graph(id, graph))?;
        let added = writer.add(row.clone(), |entry| {
            secrets::refuse_text(&known, &format!("event {} of run {id}", entry.n), &entry.json)?;
            texts.event(id, entry)?;
            Ok::<(), Failure>(())
        });
        added.map_err(|failure| failure.about(file))?;
    }
    for hash in &texts.hashes {
        secrets::refuse_text(
            &known,
            "what the run has pinned",
            &String::from_utf8_lossy(&store.get_blob(*hash)?),
        )?;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Beside its place, so that it gets there in one step.
    let fresh = tempfile::Builder::new().prefix(".selvedge-export-").tempfile_in(folder);
    // The name that it has on its way is nobody's business.
    let fresh = fresh.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => unwritable(std::io::Error::other("its folder is not there")),
        kind => unwritable(kind.into()),
    })?;
    let mut out = BufWriter::with_capacity(1 << 16, fresh);
    writer.write(&texts.hashes, &mut out).map_err(|error| super::failed(file, error))?;
    out.flush().map_err(unwritable)?;
    let fresh = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
    fresh.as_file().sync_all().map_err(unwritable)?;
    let bytes = fresh.as_file().metadata().map_err(unwritable)?.len();
    fresh.persist_noclobber(file).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(file),
        _ => unwritable(error.error),
    })?;
    Ok(Exported { runs, tools: texts.tools.into_keys().collect(), bytes })
}

fn taken(file: &Path) -> Error {
    let message = format!("{} is there already", file.display());
    Error::usage("C-14", "file-exists", &message)
        .help("name a file that is not there yet, or move this one away")
}
