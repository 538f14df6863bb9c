//! The examination of files that are to enter the library.

use crate::config::CatalogueConfig;
use crate::diag::{CatalogueErrors, ToolError};
use crate::permissions::Granted;
use crate::python::Metadata;
use crate::python::context::PythonContext;
use crate::python::load::load;
use crate::store::text_of;
use futures_util::StreamExt;
use selvedge_engine::library::Facts;
use selvedge_sandbox::grant::Resolver;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// How many files are examined at the same time.
const EXAMINING: usize = 4;

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

impl Metadata {
    /// What the library keeps of a version that says this about itself, and this of its input.
    pub fn facts(&self, input_schema: Value) -> Facts {
        Facts {
            description: self.description.as_str().into(),
            effects: self.effects,
            input_schema,
            metadata: serde_json::to_value(self).unwrap_or_default(),
        }
    }
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
    let mut resolver = Resolver::default();
    let granted = Granted::new(&config.permissions, &workspace, &mut resolver);
    let context = Arc::new(PythonContext::new(config, workspace, granted, &mut resolver));
    let (tools, errors) = load(&context, files).await;
    if !errors.is_empty() {
        return Err(CatalogueErrors(errors));
    }
    let work = tools.into_iter().enumerate().map(|(index, tool)| {
        let context = Arc::clone(&context);
        Box::pin(async move {
            let examined = async {
                tool.prepare(&context).await?;
                let text = text_of(&context.cache, &tool.version).await.ok_or_else(|| {
                    let message = format!("{} cannot be read", context.cache.display());
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
