//! Files become tools of the library, all of them or none (A-08, A-17, V-12).

mod taking;

use super::export::OLDER;
use super::manifest::{self, Manifest, Recording};
use super::samples::{self, Line};
use super::{Decided, regular, short};
use crate::check::Check;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::unrecordable;
use crate::{library, secrets, stores};
use rustix::fs::{Access, access};
use selvedge_engine::library::{Author, Change, Stage};
use selvedge_store::StoreError;
use selvedge_tools::examine::{Examined, examine};
use selvedge_tools::python::helpers;
use selvedge_tools::python::load::files_of;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taking::Import;

/// How much of a tool file is looked through for keys: all that a tool file may have, and more.
const FILE_BYTES: u64 = 1 << 30;

/// A version that is to be in the library.
struct Incoming {
    file: PathBuf,
    author: Author,
    /// Which versions it was made of, as far as the library will have them.
    parents: Vec<Arc<str>>,
    /// Whose work it did there, as far as the library will have them.
    members: Vec<Arc<str>>,
    /// What caused it.
    request: Value,
    /// The version that the manifest says; a file may have been edited since.
    said: Option<Arc<str>>,
    /// The name that meant it, if it was another one than the tool's.
    name: Option<Arc<str>>,
    /// What became of it, if another version is in use.
    past: Option<(Stage, String)>,
    calls: Vec<Line>,
}

/// A tool that is to be in the library: its versions, oldest first, and which of them is in use.
struct Tool {
    /// The manifest's name for it; without a manifest its metadata's.
    name: Option<Arc<str>>,
    /// None if the tool was retired.
    current: Option<usize>,
    versions: Vec<Incoming>,
}

/// What a folder or file has for the library.
struct Gathered {
    tools: Vec<Tool>,
    /// Names that lead to tools of other names.
    aliases: BTreeMap<String, String>,
    /// Whether the folder has a manifest.
    exported: bool,
}

/// What became of a tool.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name.
    pub name: Arc<str>,
    /// The version that the name means now; of a retired tool its last one.
    pub version: Arc<str>,
    /// `new`, `unchanged`, `mended`, `replaced`, `known` (the library is ahead of it), or `retired` (its past is new here).
    pub result: &'static str,
    /// Recorded calls that came with it.
    pub calls: usize,
}

/// What becomes of a tool whose name means something else here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// It is an error.
    Refused,
    /// The incoming one is a new version of it.
    Replaces,
    /// The same, unless the library had the incoming one before, and went on from there.
    GoesOn,
}

impl Check {
    /// Makes tools of the library of a file, or of all files of a folder: all of them or none. Whoever drops this on its way has changed nothing.
    ///
    /// # Errors
    /// Something is wrong with one of them, or the library can't be read or written.
    pub async fn import(&self, given: &Path, meeting: Meeting) -> Result<Vec<Imported>, Error> {
        let environment = &self.config.environment;
        let path = environment.absolute(given);
        // The record of a tool names its file.
        if path.to_str().is_none() {
            return Err(unrecordable("the tools", &path));
        }
        let Gathered { mut tools, aliases, exported } = gathered(&path, self.observer())?;
        // A library may be empty, and its export then is.
        if tools.is_empty() && !exported {
            let message = format!("there is no Python file in {}", given.display());
            return Err(Error::usage("A-08", "no-tools", &message).help(
                "name a folder of Python files, or a Python file; files that begin with `_` are no tools",
            ));
        }
        no_keys(self, &tools)?;
        writable(&self.state_dir)?;
        let config = self.settings(environment.cwd())?;
        let files: Vec<PathBuf> =
            tools.iter().flat_map(|tool| &tool.versions).map(|version| version.file.clone()).collect();
        let examined = examine(&config, files).await?;
        let examined: BTreeMap<PathBuf, Examined> =
            examined.into_iter().map(|tool| (tool.file.clone(), tool)).collect();
        as_they_are(&mut tools, &examined)?;
        // From here on the state folder is there, whatever comes of it.
        let store = stores::open_or_make(environment, &self.state_dir)?;
        library::change(&store, |library| {
            let mut import = Import {
                store: &store,
                change: Change::new(library),
                contents: Vec::new(),
                meeting,
                names: BTreeMap::new(),
            };
            let mut imported = Vec::new();
            for tool in &tools {
                imported.push(import.tool(tool, &examined)?);
            }
            for (alias, name) in &aliases {
                import.alias(alias, name)?;
            }
            Ok(Decided { events: import.change.into_events(), contents: import.contents, what: imported })
        })
    }
}

/// A state folder that can't be written is told of once, not for each tool.
fn writable(state: &Path) -> Result<(), Error> {
    let there = state.ancestors().find(|folder| folder.exists()).unwrap_or(state);
    match access(there, Access::WRITE_OK) {
        Err(error) => {
            Err(StoreError::ReadOnly { path: there.to_owned(), why: std::io::Error::from(error).to_string() }
                .into())
        }
        Ok(()) => Ok(()),
    }
}

/// The tools of a folder or file, and the aliases of its manifest.
fn gathered(path: &Path, observer: &dyn Observer) -> Result<Gathered, Error> {
    if path.is_file() {
        let one = incoming(path.to_owned(), observer)?;
        let tools = vec![Tool { name: None, current: Some(0), versions: vec![one] }];
        return Ok(Gathered { tools, aliases: BTreeMap::new(), exported: false });
    }
    if !path.is_dir() {
        let message = format!("there is no folder or file {}", path.display());
        return Err(Error::usage("C-12", "file-not-found", &message).help("check the path"));
    }
    let manifest = Manifest::of(path)?;
    let exported = manifest.is_some();
    if !exported && path.join(OLDER).is_dir() {
        observer.warning(&format!(
            "{} has the versions of an exported library, but no {}: its tools come without their past",
            path.display(),
            manifest::FILE
        ));
    }
    let manifest = manifest.unwrap_or_else(Manifest::new);
    let mut tools = Vec::new();
    let mut named = BTreeSet::new();
    for tool in &manifest.tools {
        let mut versions = Vec::new();
        let current = tool.current.as_ref();
        let current =
            current.and_then(|current| tool.versions.iter().position(|version| version.version == *current));
        for (at, version) in tool.versions.iter().enumerate() {
            let file = path.join(&version.file);
            // What came after the version in use was given up for it.
            let usual = match current {
                None => Recording::Retired,
                Some(current) if at < current => Recording::Enhanced,
                Some(_) => Recording::RolledBack,
            };
            let past = (version.state.unwrap_or(usual).stage(), version.reason.clone());
            named.insert(file.clone());
            let one = incoming(file, observer)?;
            if one.calls.len() < version.calls {
                observer.warning(&format!(
                    "{} has {} of the {} calls that were recorded: the others are no tests any more",
                    samples::beside(&one.file).display(),
                    one.calls.len(),
                    version.calls
                ));
            }
            versions.push(Incoming {
                author: version.author.clone(),
                parents: version.parents.iter().map(|older| Arc::from(older.as_str())).collect(),
                members: version.members.iter().map(|older| Arc::from(older.as_str())).collect(),
                request: version.request.clone(),
                said: Some(version.version.as_str().into()),
                name: version.name.as_deref().map(Arc::from),
                past: Some(past).filter(|_| Some(at) != current),
                ..one
            });
        }
        tools.push(Tool { name: Some(tool.name.as_str().into()), current, versions });
    }
    let files = files_of(path)?;
    let helpers = helpers::among(&files);
    for file in files.into_iter().filter(|file| !named.contains(file) && !helpers.contains(file)) {
        tools.push(Tool { name: None, current: Some(0), versions: vec![incoming(file, observer)?] });
    }
    Ok(Gathered { tools, aliases: manifest.aliases, exported })
}

/// A file by itself.
fn incoming(file: PathBuf, observer: &dyn Observer) -> Result<Incoming, Error> {
    let beside = samples::beside(&file);
    let calls = samples::read(&beside, |line| observer.warning(&samples::too_large(&beside, line)))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request = json!({ "imported": name });
    let (author, parents, members) = (Author::Person, Vec::new(), Vec::new());
    Ok(Incoming { file, author, parents, members, request, said: None, name: None, past: None, calls })
}

/// A library keeps what it is given: none of it holds a key (C-06).
fn no_keys(check: &Check, tools: &[Tool]) -> Result<(), Error> {
    let keys = check.secrets();
    for version in tools.iter().flat_map(|tool| &tool.versions) {
        let file = version.file.display();
        let text = regular::read(&version.file, FILE_BYTES).ok().flatten().unwrap_or_default();
        let text = helpers::with_modules(&version.file, text);
        secrets::refuse_text(&keys, &format!("the file {file}"), &String::from_utf8_lossy(&text))?;
        for line in &version.calls {
            secrets::refuse_text(&keys, &format!("a recorded call of {file}"), &line.json)?;
        }
        secrets::refuse_text(&keys, "the manifest", &version.request.to_string())?;
        let reason = version.past.as_ref().map(|(_, reason)| reason.as_str()).unwrap_or_default();
        secrets::refuse_text(&keys, "the manifest", reason)?;
    }
    Ok(())
}

/// Files that were edited since the manifest was written are new versions, by whoever imports them.
fn as_they_are(tools: &mut [Tool], examined: &BTreeMap<PathBuf, Examined>) -> Result<(), Error> {
    for tool in tools {
        let last = tool.current;
        for (at, incoming) in tool.versions.iter_mut().enumerate() {
            let Some(found) = examined.get(&incoming.file) else { continue };
            let Some(said) = incoming.said.clone().filter(|said| **said != *found.version) else { continue };
            if Some(at) != last {
                let file = incoming.file.display().to_string();
                let why = format!("the file is not version {} any more, as the manifest says", short(&said));
                return Err(Error::about_file(&file, "A-23", "file-changed", &why)
                    .help("put the file back as it was, or take this version out of library.json"));
            }
            let name = incoming.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (incoming.author, incoming.parents) = (Author::Person, vec![said]);
            incoming.request = json!({ "imported": name });
        }
    }
    Ok(())
}
