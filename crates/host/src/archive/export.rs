//! Writing an archive.

use super::Failure;
use super::chain::chain;
use super::texts::Texts;
use crate::config::Config;
use crate::error::Error;
use crate::new_file::NewFile;
use crate::secrets;
use selvedge_store::Store;
use selvedge_store::archive::{ArchivedRun, Writer};
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
    let new = NewFile::at(file)?;
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
    let bytes = new.write(|_, out| {
        writer.write(&texts.hashes, out).map_err(|error| super::failed(file, error))?;
        Ok(())
    })?;
    Ok(Exported { runs, tools: texts.tools.into_keys().collect(), bytes })
}
