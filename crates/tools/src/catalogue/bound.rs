//! Tools that a run binds while it runs (E-41): the library's versions, and those that names mean here.

use super::{Catalogue, Kind};
use crate::config::CatalogueConfig;
use crate::diag::{CatalogueErrors, ToolError};
use crate::python::PythonTool;
use selvedge_engine::ToolDef;
use std::sync::{Arc, PoisonError};

impl Catalogue {
    /// What it was made with.
    pub fn config(&self) -> &CatalogueConfig {
        &self.0.config
    }

    /// A version of the library's, bound by this name and ready to be called: it may be one that nothing here knew when the run began.
    ///
    /// # Errors
    /// What it declares is not allowed here, its text is nowhere, or it can't be made ready.
    pub async fn of_library(&self, name: &Arc<str>, version: &str) -> Result<Arc<ToolDef>, ToolError> {
        let shared = &self.0.shared;
        let lost = || {
            let message = format!("version {version} of the library's tool `{name}` can't be read");
            ToolError::environment("A-23", message)
        };
        let tool = PythonTool::at_version(shared, version).await?.ok_or_else(lost)?.of_library(name);
        shared.granted.check(name, &tool.meta.declared())?;
        if let Some(error) = self.lacks_isolation().await {
            return Err(error);
        }
        // What it does to the world may depend on what holds it (E-22).
        if tool.meta.effects.is_none() && self.isolation().is_possible() {
            self.isolation().found().await;
        }
        tool.prepare(shared).await?;
        let def = Arc::new(tool.definition().ok_or_else(lost)?);
        let mut known = self.0.by_version.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(Arc::clone(&def.version)).or_insert_with(|| Kind::Python(Arc::new(tool)));
        Ok(def)
    }

    /// The tool that a name means here, ready to be called; `None` if there is none.
    ///
    /// # Errors
    /// Every call of it would be refused, or it can't be made ready.
    pub async fn ready(&self, name: &str) -> Result<Option<Arc<ToolDef>>, CatalogueErrors> {
        if let Some(refused) = self.refusal(name) {
            return Err(refused.into());
        }
        self.prepare(&[name]).await?;
        Ok(self.def(name))
    }
}
