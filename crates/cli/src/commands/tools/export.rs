//! `selvedge tools export`: the library as a folder of files (V-12).

use super::args::ExportArgs;
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::library::{Library, Place, Version};
use selvedge_host::Error;
use selvedge_host::library;
use selvedge_host::library::manifest::{self, Manifest};
use selvedge_host::library::samples;
use selvedge_host::places;
use selvedge_store::Store;
use selvedge_tools::python::meta::safe_name;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder of versions that are not in use.
const OLDER: &str = "versions";
/// The longest name of a tool that is the name of its file.
const LONGEST: usize = 100;

/// Writes the library into a folder: all of it or nothing.
pub(super) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, library) = library::open(&places::state_dir(&ui.environment, common.state_dir.as_deref())?)?;
    let target = ui.environment.absolute(&args.dir);
    let taken = std::fs::read_dir(&target).map(|mut entries| entries.next().is_some());
    if target.exists() && taken.unwrap_or(true) {
        let message = format!("{} is there already and is no empty folder", args.dir.display());
        return Err(Error::usage("A-17", "folder-not-empty", &message)
            .help("name a folder that is not there yet, or move this one away"));
    }
    let unwritable = |error: std::io::Error| {
        Error::environment("C-14", "export", &format!("{} can't be written: {error}", args.dir.display()))
            .help("check the path and the room on the disk")
    };
    let parent = target.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(unwritable)?;
    // Beside its place, so that it gets there in one step.
    let fresh =
        tempfile::Builder::new().prefix(".selvedge-export-").tempdir_in(parent).map_err(unwritable)?;
    let folder = fresh.path().join("library");
    let mut writer = Writer { folder: &folder, store: store.as_ref(), unwritable: &unwritable };
    let manifest = writer.all(&library)?;
    if target.exists() {
        std::fs::remove_dir(&target).map_err(unwritable)?;
    }
    std::fs::rename(&folder, &target).map_err(unwritable)?;
    let tools = manifest.tools.len();
    if ui.json {
        let names: Vec<&str> = manifest.tools.iter().map(|tool| &*tool.name).collect();
        ui.result(&format!("{}\n", json!({"dir": target, "tools": names})));
    } else {
        let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
        ui.result(&format!("wrote {tools} to {}\n", args.dir.display()));
    }
    Ok(Exit::Completed)
}

struct Writer<'w> {
    folder: &'w Path,
    store: Option<&'w Store>,
    unwritable: &'w dyn Fn(std::io::Error) -> Error,
}

impl Writer<'_> {
    fn all(&mut self, library: &Library) -> Result<Manifest, Error> {
        std::fs::create_dir_all(self.folder).map_err(self.unwritable)?;
        let mut manifest = Manifest::new();
        let mut files = BTreeSet::new();
        for name in library.names(&Place::Library) {
            let Some(current) = library.head(&Place::Library, name) else { continue };
            let mut versions = Vec::new();
            // Names that lead here have their past here.
            let lead = library.aliases().keys().filter(|alias| library.resolve(alias) == &**name);
            let pasts = lead
                .chain(std::iter::once(name))
                .flat_map(|name| library.past(&Place::Library, name).iter().map(move |hash| (name, hash)));
            let mut seen = BTreeSet::new();
            for (meant_by, hash) in pasts {
                let Some(version) = library.version(hash).filter(|_| seen.insert(hash)) else { continue };
                if hash == current && meant_by != name {
                    continue;
                }
                let file = if hash == current { file_name(name, hash, &mut files) } else { older(hash) };
                self.version(version, &file)?;
                let past = version.lives.get(&Place::Library).filter(|_| hash != current);
                versions.push(manifest::Version {
                    version: hash.to_string(),
                    file,
                    author: version.author.clone(),
                    parents: version.parents.iter().map(ToString::to_string).collect(),
                    request: version.request.clone(),
                    name: Some(meant_by.to_string()).filter(|meant_by| **meant_by != **name),
                    state: past.and_then(|life| manifest::Recording::of(life.stage)),
                    reason: past.map(|life| life.reason.clone()).unwrap_or_default(),
                });
            }
            manifest.tools.push(manifest::Tool {
                name: name.to_string(),
                current: current.to_string(),
                versions,
            });
        }
        let kept = |(alias, name): (_, &std::sync::Arc<str>)| {
            library.public(name).map(|_| (std::sync::Arc::<str>::to_string(alias), name.to_string()))
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
