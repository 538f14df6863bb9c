//! What isolation means for the tools of a catalogue: warnings, refusals, and effects that need not be declared.

use super::{Catalogue, Kind};
use crate::builtin::Builtin;
use crate::diag::{CatalogueErrors, ToolError};
use selvedge_engine::Warning;
use selvedge_sandbox::isolation::Isolation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The code of the warning about a layer that is missing.
pub const ISOLATION_MISSING: &str = "isolation-layer-missing";

impl Kind {
    /// Whether it runs code that is not the user's own: the user's commands are not isolated, and what other built-ins
    /// reach is checked by themselves.
    pub(super) fn is_confined(&self) -> bool {
        matches!(self, Self::Python(_) | Self::Builtin(Builtin::Python | Builtin::Shell, _))
    }
}

impl Catalogue {
    /// What enforces permissions.
    pub fn isolation(&self) -> &Isolation {
        &self.0.shared.isolation
    }

    /// One warning for each layer of isolation that is missing, if one of the named tools needs it.
    pub async fn isolation_warnings(&self, names: &[&str]) -> Vec<Warning> {
        if !self.any_confined(names) {
            return Vec::new();
        }
        let missing = &self.isolation().found().await.missing;
        let warning = |missing: &selvedge_sandbox::isolation::Missing| Warning {
            code: ISOLATION_MISSING.into(),
            message: format!(
                "tools run without the isolation layer `{}` ({}): {}",
                missing.layer,
                missing.layer.holds(),
                missing.why
            ),
            node: None,
        };
        missing.iter().map(warning).collect()
    }

    /// Refuses the named tools where isolation is required and a layer of it is missing: what
    /// [`Self::prepare`] does too, for runs that go on without preparing anything.
    ///
    /// # Errors
    /// `Environment`, with each missing layer and why.
    pub async fn require_isolation(&self, names: &[&str]) -> Result<(), CatalogueErrors> {
        match self.unconfined(names).await {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Why none of the named tools is to run, where isolation is required and a layer of it is missing.
    pub(super) async fn unconfined(&self, names: &[&str]) -> Option<ToolError> {
        if self.any_confined(names) { self.lacks_isolation().await } else { None }
    }

    /// Why no confined tool is to run: a layer of isolation is missing where it is required.
    pub(super) async fn lacks_isolation(&self) -> Option<ToolError> {
        if !self.0.require_isolation {
            return None;
        }
        let found = self.isolation().found().await;
        if found.enforced() {
            return None;
        }
        let message = format!("isolation is required, and layers of it are missing: {}", found.complaint());
        Some(ToolError::environment("A-20", message).help("`selvedge doctor` says what each layer needs"))
    }

    fn any_confined(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0.named(name).is_some_and(Kind::is_confined))
    }
}

/// Makes known whether isolation is enforced, if the effects of a tool depend on it (E-22).
pub(super) async fn settle_effects(isolation: &Isolation, by_name: &BTreeMap<Arc<str>, Kind>) {
    let depends = |kind: &Kind| matches!(kind, Kind::Python(tool) if tool.meta.effects.is_none());
    if isolation.is_possible() && by_name.values().any(depends) {
        isolation.found().await;
    }
}
