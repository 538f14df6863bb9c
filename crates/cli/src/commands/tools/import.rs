//! `selvedge tools import`: files become tools of the library, all of them or none (A-08, A-17, V-12).

mod taking;

use super::args::ImportArgs;
use super::test::too_large;
use crate::args::{Common, Grants, Sources};
use crate::block_on::block_on;
use crate::commands::check;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use rustix::fs::{Access, access};
use selvedge_engine::library::{Author, Change, Stage};
use selvedge_host::library::manifest::{Manifest, Recording};
use selvedge_host::library::regular;
use selvedge_host::library::samples::{self, Line};
use selvedge_host::library::{self, Decided, short};
use selvedge_host::secrets;
use selvedge_host::text::harmless;
use selvedge_host::{Check, Error};
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
    current: usize,
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
struct Imported {
    name: Arc<str>,
    version: Arc<str>,
    result: &'static str,
    calls: usize,
}

/// What becomes of a tool whose name means something else here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    /// It is an error.
    Refused,
    /// The incoming one is a new version of it.
    Replaces,
    /// The same, unless the library had the incoming one before, and went on from there.
    GoesOn,
}

/// Imports tools.
pub(super) fn import(args: &ImportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let ui = &ui.guarded();
    let meeting = if args.replace { Meeting::Replaces } else { Meeting::Refused };
    print(&imported(&args.path, meeting, &args.grants, common, ui)?, ui);
    Ok(Exit::Completed)
}

/// Makes sure that the library has the tools of a folder before anything begins (V-12). It may have them already, and be ahead of them.
///
/// # Errors
/// Those of an import; then nothing is imported.
pub(crate) fn warm(folder: &Path, grants: &Grants, common: &Common, ui: &Ui) -> Result<(), Error> {
    let tools = imported(folder, Meeting::GoesOn, grants, common, &ui.guarded())?;
    let new = tools.iter().filter(|tool| tool.result == "new").count();
    ui.note(&format!("library {}: {} tools, {new} of them new here", folder.display(), tools.len()));
    Ok(())
}

fn imported(
    path: &Path,
    meeting: Meeting,
    grants: &Grants,
    common: &Common,
    ui: &Ui,
) -> Result<Vec<Imported>, Error> {
    let given = path;
    let from = Sources { grants: grants.clone(), ..Sources::default() };
    let check = check::of_tools(&from, common, ui)?;
    let path = ui.environment.absolute(path);
    // The record of a tool names its file.
    if path.to_str().is_none() {
        return Err(selvedge_host::options::unrecordable("the tools", &path));
    }
    let Gathered { mut tools, aliases, exported } = gathered(&path, ui)?;
    // A library may be empty, and its export then is.
    if tools.is_empty() && !exported {
        let message = format!("there is no Python file in {}", given.display());
        return Err(Error::usage("A-08", "no-tools", &message).help(
            "name a folder of Python files, or a Python file; files that begin with `_` are no tools",
        ));
    }
    no_keys(&check, &tools)?;
    writable(&check.state_dir)?;
    let here = ui.environment.absolute(Path::new("."));
    let config = check.settings(&here)?;
    let files: Vec<PathBuf> = tools.iter().flat_map(|tool| &tool.versions).map(|v| v.file.clone()).collect();
    let examined = block_on(0, async {
        let signals = Signals::listen(ui);
        tokio::select! {
            biased;
            () = signals.came() => Err(Error::interrupted()),
            examined = examine(&config, files) => Ok(examined?),
        }
    })??;
    let examined: BTreeMap<PathBuf, Examined> =
        examined.into_iter().map(|tool| (tool.file.clone(), tool)).collect();
    as_they_are(&mut tools, &examined)?;
    // From here on the state folder is there, whatever comes of it.
    let store = selvedge_host::stores::open_or_make(&ui.environment, &check.state_dir)?;
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
fn gathered(path: &Path, ui: &Ui) -> Result<Gathered, Error> {
    if path.is_file() {
        let one = incoming(path.to_owned(), ui)?;
        let tools = vec![Tool { name: None, current: 0, versions: vec![one] }];
        return Ok(Gathered { tools, aliases: BTreeMap::new(), exported: false });
    }
    if !path.is_dir() {
        let message = format!("there is no folder or file {}", path.display());
        return Err(Error::usage("C-12", "file-not-found", &message).help("check the path"));
    }
    let manifest = Manifest::of(path)?;
    let exported = manifest.is_some();
    let manifest = manifest.unwrap_or_else(Manifest::new);
    let mut tools = Vec::new();
    let mut named = BTreeSet::new();
    for tool in &manifest.tools {
        let mut versions = Vec::new();
        let current = tool.versions.iter().position(|version| version.version == tool.current).unwrap_or(0);
        for (at, version) in tool.versions.iter().enumerate() {
            let file = path.join(&version.file);
            // What came after the version in use was given up for it.
            let usual = if at < current { Recording::Enhanced } else { Recording::RolledBack };
            let past = (version.state.unwrap_or(usual).stage(), version.reason.clone());
            named.insert(file.clone());
            versions.push(Incoming {
                author: version.author.clone(),
                parents: version.parents.iter().map(|parent| Arc::from(parent.as_str())).collect(),
                request: version.request.clone(),
                said: Some(version.version.as_str().into()),
                name: version.name.as_deref().map(Arc::from),
                past: Some(past).filter(|_| at != current),
                ..incoming(file, ui)?
            });
        }
        tools.push(Tool { name: Some(tool.name.as_str().into()), current, versions });
    }
    let files = files_of(path)?;
    let helpers = helpers::among(&files);
    for file in files.into_iter().filter(|file| !named.contains(file) && !helpers.contains(file)) {
        tools.push(Tool { name: None, current: 0, versions: vec![incoming(file, ui)?] });
    }
    Ok(Gathered { tools, aliases: manifest.aliases, exported })
}

/// A file by itself.
fn incoming(file: PathBuf, ui: &Ui) -> Result<Incoming, Error> {
    let beside = samples::beside(&file);
    let calls = samples::read(&beside, |line| too_large(ui, &beside, line))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request = json!({ "imported": name });
    let (author, parents) = (Author::Person, Vec::new());
    Ok(Incoming { file, author, parents, request, said: None, name: None, past: None, calls })
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
            if at != last {
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

fn print(imported: &[Imported], ui: &Ui) {
    if ui.json {
        let tools: Vec<Value> = imported
            .iter()
            .map(|tool| json!({"name": tool.name, "version": tool.version, "result": tool.result, "calls": tool.calls}))
            .collect();
        ui.result(&format!("{}\n", json!({ "tools": tools })));
        return;
    }
    if imported.is_empty() {
        ui.note("the library that was exported there is empty: nothing is imported");
    }
    let width = imported.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default();
    for Imported { name, version, result, calls } in imported {
        let calls =
            if *calls == 1 { "1 recorded call".to_owned() } else { format!("{calls} recorded calls") };
        let line = format!("{name:width$}  {}  {result:9}  {calls}", short(version));
        ui.result(&format!("{}\n", harmless(&line)));
    }
}
