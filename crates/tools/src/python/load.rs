//! Finding tool files and reading what they say about themselves, many at a time.

use crate::diag::ToolError;
use crate::python::context::PythonContext;
use crate::python::helpers::{self, Folders};
use crate::python::index::Index;
use crate::python::keys::Keys;
use crate::python::meta::{self, LARGE, MAX_FILE, Metadata, Text};
use crate::python::tool::PythonTool;
use crate::store::{keep, sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many files are not worth a thread of their own.
const FEW: usize = 32;

/// A file as it was found.
struct Found {
    /// Where it stands among all files.
    place: usize,
    version: String,
    text: Text,
    /// What it says about itself, if that is known.
    meta: Option<Arc<Metadata>>,
    /// The files of its helper modules.
    helpers: Vec<PathBuf>,
}

/// The tool files of a folder: `*.py` that do not start with `_`, by name.
///
/// # Errors
/// A folder that is not there or cannot be read.
pub fn files_of(folder: &Path) -> Result<Vec<PathBuf>, ToolError> {
    let wrong = |e: std::io::Error| {
        let message = format!("the folder of tools {} cannot be read: {e}", folder.display());
        ToolError::document("A-08", message).help("name a folder of Python tools, as in `--tools tools/`")
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A link to nowhere is a file that can't be read, which is told; folders and pipes are none.
        let is_file = || path.is_file() || (path.is_symlink() && !path.exists());
        if name.ends_with(".py") && !name.starts_with(['_', '.']) && is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Does the same for many items, on as many threads as there are cores; results come in the order of the items.
async fn spread<T, R>(items: Vec<T>, work: impl Fn(T) -> R + Clone + Send + 'static) -> Vec<R>
where
    T: Send + 'static,
    R: Send + 'static,
{
    // To count the cores takes reading files.
    if items.is_empty() {
        return Vec::new();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(FEW);
    let mut items = items.into_iter().peekable();
    let mut working = Vec::new();
    while items.peek().is_some() {
        let (some, work) = (items.by_ref().take(share).collect::<Vec<_>>(), work.clone());
        working.push(tokio::task::spawn_blocking(move || some.into_iter().map(work).collect::<Vec<_>>()));
    }
    let mut all = Vec::new();
    for done in working {
        // It fails only when the process is being shut down.
        all.extend(done.await.unwrap_or_default());
    }
    all
}

/// A file as it was looked at, or what is wrong with it, with its place among all files.
type Looked = (usize, Result<Found, ToolError>);

/// Reads tool files, each once: the index first, then an interpreter for many that are new.
pub(crate) async fn load(context: &PythonContext, files: Vec<PathBuf>) -> (Vec<PythonTool>, Vec<ToolError>) {
    let (cache, index) = (context.cache.clone(), Arc::clone(&context.index));
    let keys = Arc::clone(&context.keys);
    let items = files.into_iter().enumerate().collect();
    let folders = Arc::new(Folders::default());
    let looked =
        spread(items, move |(place, file)| (place, look(&cache, &index, (&folders, &keys), place, file)))
            .await;
    read(context, looked).await
}

/// The tool of a text that lies in no folder, and is called `file` for people.
pub(crate) async fn load_text(
    context: &PythonContext,
    file: PathBuf,
    text: Vec<u8>,
) -> Result<PythonTool, ToolError> {
    let (cache, index) = (context.cache.clone(), Arc::clone(&context.index));
    let keys = Arc::clone(&context.keys);
    let looked = spread(vec![text], move |text| {
        let looked = keys.refuse(&file, &text);
        (0, looked.and_then(|()| found(&cache, &index, 0, file.clone(), (text, Vec::new()))))
    });
    let (tools, errors) = read(context, looked.await).await;
    let ended = || ToolError::environment("A-08", "the process ends");
    tools.into_iter().next().ok_or_else(|| errors.into_iter().next().unwrap_or_else(ended))
}

/// Reads what files say about themselves, as far as that is not known.
async fn read(context: &PythonContext, looked: Vec<Looked>) -> (Vec<PythonTool>, Vec<ToolError>) {
    let (mut tools, mut errors, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    let of = |looked: &Result<Found, _>| looked.as_ref().map_or(&[][..], |found| &found.helpers).to_vec();
    let helpers: BTreeSet<PathBuf> = looked.iter().flat_map(|(_, looked)| of(looked)).collect();
    for (place, looked) in looked {
        match looked {
            Ok(Found { version, text, meta: Some(meta), .. }) => {
                tools.push((place, tool(&meta, version, text, context)));
            }
            // What a tool imports from beside it is no tool that lacks something.
            Ok(found) if helpers.contains(&found.text.file) => {}
            Ok(found) => fresh.push(found),
            Err(error) => errors.push((place, error)),
        }
    }
    if !fresh.is_empty() {
        match context.environments.interpreter().await {
            Err(error) => errors.push((0, error)),
            Ok(python) => {
                let (places, texts): (Vec<_>, Vec<_>) =
                    fresh.into_iter().map(|found| ((found.place, found.version), found.text)).unzip();
                let read = meta::read(python, &texts).await;
                let mut new = Vec::with_capacity(read.len());
                for (((place, version), text), meta) in places.into_iter().zip(texts).zip(read) {
                    match meta.map(Arc::new) {
                        Ok(meta) => {
                            new.push((version.clone(), Arc::clone(&meta)));
                            tools.push((place, tool(&meta, version, text, context)));
                        }
                        Err(error) => errors.push((place, error)),
                    }
                }
                let index = Arc::clone(&context.index);
                // It fails only when the process is being shut down.
                let _ = tokio::task::spawn_blocking(move || index.add(new)).await;
            }
        }
    }
    tools.sort_by_key(|(place, _)| *place);
    errors.sort_by_key(|(place, _)| *place);
    let tools = tools.into_iter().map(|(_, tool)| tool).collect();
    (tools, errors.into_iter().map(|(_, error)| error).collect())
}

fn tool(meta: &Metadata, version: String, text: Text, context: &PythonContext) -> PythonTool {
    let tool = PythonTool::new(meta, version, text.file, context);
    // Large ones have their copy already.
    if text.bytes.len() > LARGE { tool } else { tool.with_text(text.bytes) }
}

/// Reads a file. What is hashed here is what its metadata is read from, and what its copy is made of when it is
/// prepared: the file itself is not read again.
fn look(
    cache: &Path,
    index: &Index,
    (folders, keys): (&Folders, &Keys),
    place: usize,
    file: PathBuf,
) -> Result<Found, ToolError> {
    if file.file_name().is_some_and(|name| name.to_str().is_none()) {
        let error = ToolError::document("A-08", "the file's name is no Unicode text");
        return Err(error.at(&file, None).help("rename the file"));
    }
    let mut bytes = Vec::new();
    // Whatever its size was said to be: it may grow, and some files have none.
    let read = std::fs::File::open(&file).and_then(|open| open.take(MAX_FILE + 1).read_to_end(&mut bytes));
    if let Err(e) = read {
        return Err(ToolError::document("A-08", format!("cannot be read: {e}")).at(&file, None));
    }
    let mut helpers = Vec::new();
    if bytes.len() as u64 <= MAX_FILE {
        // A version that a run has pinned is looked at by who goes on with it.
        let pinned = file.parent() == Some(cache);
        if !pinned {
            keys.refuse(&file, &bytes)?;
        }
        (bytes, helpers) = helpers::whole(&file, bytes, folders)?;
        keys.refuse_modules(&file, &bytes, &helpers)?;
    }
    found(cache, index, place, file, (bytes, helpers))
}

/// A file of these bytes, with the files of its helper modules.
fn found(
    cache: &Path,
    index: &Index,
    place: usize,
    file: PathBuf,
    (bytes, helpers): (Vec<u8>, Vec<PathBuf>),
) -> Result<Found, ToolError> {
    if bytes.len() as u64 > MAX_FILE {
        let with = if helpers.is_empty() { "" } else { ", with the modules that it imports from beside it," };
        let message = format!("the file{with} is larger than the {MAX_FILE} bytes that a tool may have");
        return Err(ToolError::document("A-08", message).at(&file, None));
    }
    let version = sha256(&bytes);
    if bytes.len() > LARGE {
        // Not kept in memory.
        let copy = cache.join(format!("{version}.py"));
        keep(&copy, &bytes).map_err(|e| ToolError::unkept(&copy, &e))?;
    }
    // What an earlier version of this program let pass is read again, so that it is told of at its place.
    let meta = index.get(&version).filter(|meta| meta.contradiction().is_none());
    Ok(Found { place, version, text: Text { bytes: bytes.into(), file }, meta, helpers })
}
