//! The library's tools in a catalogue: a rank of their own, and texts that pins go back to.

use super::gathered::Gathered;
use super::{Catalogue, Kind};
use crate::diag::ToolError;
use crate::library::{LIBRARY, LibrarySource};
use crate::python::context::PythonContext;
use crate::python::{Metadata, PythonTool};
use crate::store::text_of;
use selvedge_engine::Warning;
use std::sync::Arc;

impl Gathered {
    /// Adds the library's tools, behind all that a user names by folder. One whose text is lost is left out.
    pub(super) async fn library(
        &mut self,
        context: &PythonContext,
        library: Option<&Arc<dyn LibrarySource>>,
    ) {
        let mut tools = Vec::new();
        for (name, version) in library.map(|library| library.offered()).unwrap_or_default() {
            // A library may be large: texts are looked at when they are used.
            let known = match PythonTool::indexed(context, &version) {
                Some(known) => Some(known),
                None => PythonTool::at_version(context, &version).await.unwrap_or_default(),
            };
            match known {
                Some(tool) => tools.push((Arc::clone(&name), Kind::Python(Arc::new(tool.of_library(&name))))),
                None => {
                    let message = format!("version {version} of the library's tool `{name}` can't be read");
                    let said = format!("the library's tool is left out: {message}");
                    self.warnings.push(Warning { code: "tool-left-out".into(), message: said, node: None });
                    if !self.by_name.contains_key(&name) {
                        let error = ToolError::environment("A-23", message)
                            .help("import its file again with `selvedge tools import`");
                        self.broken.entry(name).or_insert(error);
                    }
                }
            }
        }
        self.rank("the library", tools);
    }
}

impl Catalogue {
    /// The text of a Python tool's version, from the cache or wherever it is kept; `None` for other tools.
    pub async fn text(&self, version: &str) -> Option<Vec<u8>> {
        let context = &self.0.shared;
        if let Some(text) = text_of(&context.cache, version).await {
            return Some(text);
        }
        // One that was only listed has no copy yet.
        if let Some(Kind::Python(tool)) = self.0.at_version(version).await
            && let Some(text) = tool.text()
        {
            return Some(text.to_vec());
        }
        context.restore(version).await.ok()??;
        text_of(&context.cache, version).await
    }

    /// What the file of the Python tool that a name means says about itself; `None` for other tools.
    pub fn metadata(&self, name: &str) -> Option<&Metadata> {
        match self.0.by_name.get(name)? {
            Kind::Python(tool) => Some(&tool.meta),
            _ => None,
        }
    }

    /// Whether a name means a tool of the library.
    pub fn is_of_library(&self, name: &str) -> bool {
        matches!(self.0.by_name.get(name), Some(Kind::Python(tool)) if tool.source.as_os_str() == LIBRARY)
    }
}
