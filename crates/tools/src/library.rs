//! Tools of a library: what a catalogue is told of them, and the examination of files that are to enter it.
//!
//! The library itself is kept by others; a catalogue sees it as a [`Shelf`] of names, versions and texts.

use crate::catalogue::CatalogueConfig;
use crate::diag::{CatalogueErrors, ToolError};
use crate::permissions::Granted;
use crate::python::Metadata;
use crate::python::load::load;
use crate::python::tool::Workshop;
use crate::store::{keep, sha256};
use futures_util::StreamExt;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The `source` of a library tool's definition (C-15).
pub const LIBRARY: &str = "library";

/// How many files are examined at the same time.
const EXAMINING: usize = 4;

/// Texts of tool files by version, and which versions are in use under which names.
pub trait Shelf: Send + Sync {
    /// The tools that may be used: bound name and version.
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)>;

    /// The text that is kept under a version, also one that is not in use any more.
    fn text(&self, version: &str) -> Option<Vec<u8>>;
}

/// Puts a version's text back into the cache from where it is kept. `None` if it is kept nowhere.
pub(crate) async fn restore(workshop: &Workshop, version: &str) -> Option<PathBuf> {
    let shelf = Arc::clone(workshop.shelf.as_ref()?);
    let (wanted, copy) = (version.to_owned(), workshop.cache.join(format!("{version}.py")));
    let restoring = tokio::task::spawn_blocking(move || {
        let text = shelf.text(&wanted).filter(|text| sha256(text) == wanted)?;
        keep(&copy, &text).ok().map(|()| copy)
    });
    restoring.await.ok().flatten()
}

/// A file that is a tool.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The file.
    pub file: PathBuf,
    /// The SHA-256 of its text.
    pub version: Arc<str>,
    /// Its text.
    pub text: Vec<u8>,
    /// What it says about itself.
    pub metadata: Metadata,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// Examines files as A-08 says: each parses, its metadata is a literal and right, its dependencies install, and its
/// schema loads in the sandbox. They need not have names of their own.
///
/// # Errors
/// Everything that is wrong with any of them.
pub async fn examine(
    config: &CatalogueConfig,
    files: Vec<PathBuf>,
) -> Result<Vec<Examined>, CatalogueErrors> {
    let workspace = config.folder();
    let granted = Granted::new(&config.permissions, &workspace);
    let workshop = Arc::new(Workshop::new(config, workspace, granted));
    let (tools, errors) = load(&workshop, files).await;
    if !errors.is_empty() {
        return Err(CatalogueErrors(errors));
    }
    let work = tools.into_iter().enumerate().map(|(index, tool)| {
        let workshop = Arc::clone(&workshop);
        Box::pin(async move {
            let examined = async {
                tool.prepare(&workshop).await?;
                let text = text_of(&workshop.cache, &tool.version).await.ok_or_else(|| {
                    let message = format!("{} cannot be read", workshop.cache.display());
                    ToolError::environment("A-23", message)
                })?;
                let schema = tool.definition().map(|def| def.input_schema).unwrap_or_default();
                Ok::<_, ToolError>(Examined {
                    file: tool.source.clone(),
                    version: tool.version.clone(),
                    text,
                    metadata: tool.meta.clone(),
                    input_schema: schema,
                })
            };
            (index, examined.await)
        })
    });
    let mut done: Vec<_> = futures_util::stream::iter(work).buffer_unordered(EXAMINING).collect().await;
    done.sort_by_key(|(index, _)| *index);
    let mut errors = Vec::new();
    let mut examined = Vec::new();
    for (_, result) in done {
        match result {
            Ok(tool) => examined.push(tool),
            Err(error) => errors.push(error),
        }
    }
    // A machine without Python says so once, not for each file.
    errors.dedup_by(|a, b| a.message == b.message);
    if errors.is_empty() { Ok(examined) } else { Err(CatalogueErrors(errors)) }
}

/// A version's text from the cache, if it is there as it should be.
pub(crate) async fn text_of(cache: &Path, version: &str) -> Option<Vec<u8>> {
    let text = tokio::fs::read(cache.join(format!("{version}.py"))).await.ok()?;
    (sha256(&text) == version).then_some(text)
}
