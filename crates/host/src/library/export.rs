//! The library as a folder of files (V-12).

use super::manifest::{self, Manifest};
use super::samples;
use crate::error::Error;
use crate::library;
use selvedge_engine::library::{Library, Place, Version};
use selvedge_store::Store;
use selvedge_tools::python::meta::safe_name;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The folder of versions that are not in use.
pub(super) const OLDER: &str = "versions";
/// The longest name of a tool that is the name of its file.
const LONGEST: usize = 100;

/// Writes a library into a folder that is not there yet or is empty: all of it or nothing. It is read from that store, if it has anything.
///
/// # Errors
/// `Usage` if something is there already, `Environment` if it can't be written.
pub fn export(target: &Path, store: Option<&Store>, library: &Library) -> Result<Manifest, Error> {
    let taken = std::fs::read_dir(target).map(|mut entries| entries.next().is_some());
    if target.exists() && taken.unwrap_or(true) {
        let message = format!("{} is there already and is no empty folder", target.display());
        return Err(Error::usage("A-17", "folder-not-empty", &message)
            .help("name a folder that is not there yet, or move this one away"));
    }
    written(target, (store, library), |_| true)
}

/// Writes a library into a folder, in the place of what an earlier export has left there (V-15), with those of its tools that are wanted. Should the
/// process die between the two steps of that, there is no folder: whoever had it written has it written again.
///
/// # Errors
/// `Environment` if it can't be written; `Usage` if what is there is no export.
pub fn replace(
    target: &Path,
    (store, library): (Option<&Store>, &Library),
    wanted: impl Fn(&str) -> bool,
) -> Result<Manifest, Error> {
    let empty = std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if target.exists() && !empty && !target.join(manifest::FILE).is_file() {
        let message = format!("{} is there already and is no library", target.display());
        return Err(Error::usage("V-15", "folder-not-empty", &message).help("move it away"));
    }
    written(target, (store, library), wanted)
}

fn written(
    target: &Path,
    (store, library): (Option<&Store>, &Library),
    wanted: impl Fn(&str) -> bool,
) -> Result<Manifest, Error> {
    let unwritable = |error: std::io::Error| {
        Error::environment("C-14", "export", &format!("{} can't be written: {error}", target.display()))
            .help("check the path and the room on the disk")
    };
    let parent = target.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(unwritable)?;
    // Beside its place, so that it gets there in one step.
    let fresh =
        tempfile::Builder::new().prefix(".selvedge-export-").tempdir_in(parent).map_err(unwritable)?;
    let folder = fresh.path().join("library");
    let mut writer = Writer { folder: &folder, store, unwritable: &unwritable };
    let manifest = writer.all(library, wanted)?;
    if target.exists() {
        // What is there goes with the folder that this was written in.
        std::fs::rename(target, fresh.path().join("before")).map_err(unwritable)?;
    }
    std::fs::rename(&folder, target).map_err(unwritable)?;
    Ok(manifest)
}

struct Writer<'w> {
    folder: &'w Path,
    store: Option<&'w Store>,
    unwritable: &'w dyn Fn(std::io::Error) -> Error,
}

impl Writer<'_> {
    fn all(&mut self, library: &Library, wanted: impl Fn(&str) -> bool) -> Result<Manifest, Error> {
        std::fs::create_dir_all(self.folder).map_err(self.unwritable)?;
        let mut manifest = Manifest::new();
        let mut files = BTreeSet::new();
        // Retired tools stand first: an import may need their versions as parents of others.
        let retired = library.known_names().filter(|name| is_retired(library, name));
        for name in retired.chain(library.names(&Place::Library)).filter(|name| wanted(name)) {
            let current = library.head(&Place::Library, name);
            let mut versions = Vec::new();
            // Names that lead here have their past here.
            let lead = library.aliases().keys().filter(|alias| library.resolve(alias) == &**name);
            let pasts = lead
                .chain(std::iter::once(name))
                .flat_map(|name| library.past(&Place::Library, name).iter().map(move |hash| (name, hash)));
            let mut seen = BTreeSet::new();
            for (meant_by, hash) in pasts {
                let Some(version) = library.version(hash).filter(|_| seen.insert(hash)) else { continue };
                let is_current = Some(hash) == current;
                if is_current && meant_by != name {
                    continue;
                }
                let file = if is_current { file_name(name, hash, &mut files) } else { older(hash) };
                self.version(version, &file)?;
                let past = version.lives.get(&Place::Library).filter(|_| !is_current);
                versions.push(manifest::Version {
                    version: hash.to_string(),
                    file,
                    author: version.author.clone(),
                    parents: version.parents.iter().map(ToString::to_string).collect(),
                    members: version.members.iter().map(ToString::to_string).collect(),
                    calls: version.calls.len(),
                    request: version.request.clone(),
                    name: Some(meant_by.to_string()).filter(|meant_by| **meant_by != **name),
                    state: past.and_then(|life| manifest::Recording::of(life.stage)),
                    reason: past.map(|life| life.reason.clone()).unwrap_or_default(),
                });
            }
            manifest.tools.push(manifest::Tool {
                name: name.to_string(),
                current: current.map(Arc::<str>::to_string),
                versions,
            });
        }
        let kept = |(alias, name): (_, &Arc<str>)| {
            let kept = library.public(name).filter(|_| wanted(library.resolve(name)));
            kept.map(|_| (Arc::<str>::to_string(alias), name.to_string()))
        };
        manifest.aliases = library.aliases().iter().filter_map(kept).collect();
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|error| Error::internal(&format!("the manifest can't be written: {error}")))?;
        self.write(manifest::FILE, &format!("{text}\n"))?;
        Ok(manifest)
    }

    /// A version's file, and its recorded calls beside it.
    fn version(&self, version: &Version, file: &str) -> Result<(), Error> {
        let Some(store) = self.store else { return Ok(()) };
        self.write(file, &library::text(store, &version.hash)?)?;
        let mut lines = String::new();
        for call in &version.calls {
            lines.push_str(&library::text(store, &call.sample)?);
            lines.push('\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        let path = samples::beside(Path::new(file));
        self.write(&path.to_string_lossy(), &lines)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text)).map_err(self.unwritable)
    }
}

/// Whether a name means nothing any more and leads to no other tool.
fn is_retired(library: &Library, name: &str) -> bool {
    library.head(&Place::Library, name).is_none() && !library.aliases().contains_key(name)
}

/// The file of a tool: its name as far as a file may have it, with the version where two would be alike.
fn file_name(name: &str, hash: &str, files: &mut BTreeSet<String>) -> String {
    let safe = safe_name(name);
    // A file that begins with `_` is no tool.
    let safe = if safe.starts_with('_') { format!("tool{safe}") } else { safe };
    // With what else is in its name, a file system takes it.
    let shortened = safe.len() > LONGEST;
    let safe: String = safe.chars().take(LONGEST).collect();
    // Names that differ in case only are one file on some disks.
    let (plain, longer) = (format!("{safe}.py"), format!("{safe}_{}.py", library::short(hash)));
    let file = if shortened || files.contains(&plain.to_lowercase()) { longer } else { plain };
    files.insert(file.to_lowercase());
    file
}

fn older(hash: &str) -> String {
    format!("{OLDER}/{}.py", hash.get(..16).unwrap_or(hash))
}
