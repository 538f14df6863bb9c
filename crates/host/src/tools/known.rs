//! Tools as the compiler of a document sees them, and what is said of those that it can't see.

use crate::environment::Environment;
use crate::error::tool_diagnostic;
use crate::text::one_line;
use selvedge_dialects::Diagnostic;
use selvedge_dialects::{NameTrouble, ToolSource};
use selvedge_engine::ToolDef;
use selvedge_tools::{Catalogue, ToolError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The errors of tool files that are left out, in two: those of files that one of these names may mean, which it does
/// if the file has it, or if it is nowhere; and the others.
pub fn broken<'n>(
    catalogue: &Catalogue,
    names: impl Iterator<Item = &'n str> + Clone,
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let all = catalogue.broken();
    let nowhere = names.clone().any(|name| !catalogue.contains(name) && !all.contains_key(name));
    let files = all.iter().filter(|(_, error)| error.file.is_some());
    let (meant, others): (Vec<_>, Vec<_>) =
        files.partition(|(name, _)| nowhere || names.clone().any(|named| *named == ***name));
    let told = |errors: Vec<(&Arc<str>, &ToolError)>| {
        errors.into_iter().map(|(_, error)| tool_diagnostic(error.clone())).collect()
    };
    (told(meant), told(others))
}

/// Why a name means no tool, told where a document has the name; what is wrong with a file is told beside it.
fn trouble(catalogue: &Catalogue, environment: &Environment, name: &str) -> Option<NameTrouble> {
    let ToolError { rule, message, help, file, .. } = catalogue.broken().get(name)?.clone();
    let Some(file) = file else { return Some(NameTrouble { rule, message, help }) };
    let message = format!("`{name}` can't be called: its file {} is wrong", environment.shown(&file));
    Some(NameTrouble { rule, message, help: "correct the file: what is wrong with it is told above".into() })
}

/// Tools of a recorded run by name, whose texts are kept.
pub type Pins = BTreeMap<Arc<str>, Arc<ToolDef>>;

/// A catalogue as the compiler sees it. Python tools need not be prepared: while a schema is not known, metadata says the
/// rest, and any arguments fit.
pub struct Known<'a> {
    /// The tools that there are.
    pub catalogue: &'a Catalogue,
    /// What stands in for those that are there no more.
    pub pins: &'a Pins,
    /// Where paths are told from.
    pub environment: &'a Environment,
}

impl ToolSource for Known<'_> {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        // A file that is wrong is told of, not stood in for.
        let lost = || self.pins.get(name).filter(|_| !self.catalogue.broken().contains_key(name)).cloned();
        self.catalogue.sketch(name).or_else(lost)
    }

    fn names(&self) -> Vec<String> {
        self.catalogue.names().map(ToString::to_string).collect()
    }

    fn available(&self) -> Vec<String> {
        self.catalogue.offered().iter().map(ToString::to_string).collect()
    }

    fn withheld(&self) -> Vec<(String, String)> {
        let said = |error: ToolError| match error.help.is_empty() {
            true => one_line(&error.message, 300),
            false => format!("{} ({})", one_line(&error.message, 300), one_line(&error.help, 300)),
        };
        let all = self.catalogue.withheld().into_iter();
        all.map(|(name, error)| (name.to_string(), said(error))).collect()
    }

    fn trouble(&self, name: &str) -> Option<NameTrouble> {
        trouble(self.catalogue, self.environment, name)
    }
}
