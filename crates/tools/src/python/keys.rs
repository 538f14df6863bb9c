//! Keys in the files of tools (C-06): what a file says is copied, pinned, and told to models, so one with a key in it is wrong.

use crate::diag::ToolError;
use selvedge_http::{Secret, Secrets};
use std::path::{Path, PathBuf};

/// Keys that stand in no tool's file, each with what it is for people: "the value of $OPENAI_API_KEY".
#[derive(Debug, Default)]
pub(crate) struct Keys {
    each: Vec<(String, Secret)>,
    all: Secrets,
}

/// A key in a text.
struct Held<'k> {
    origin: &'k str,
    line: u32,
    column: u32,
    /// That line, without keys.
    shown: String,
}

impl Keys {
    pub(crate) fn new(each: Vec<(String, Secret)>) -> Self {
        let all = Secrets::new(each.iter().map(|(_, key)| key));
        Self { each, all }
    }

    fn find(&self, text: &[u8]) -> Option<Held<'_>> {
        if self.all.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(text);
        let at = self.all.find(&text)?.start;
        let (origin, _) = self.each.iter().find(|(_, key)| Secrets::new([key]).find(&text).is_some())?;
        let before = text.get(..at)?;
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next()?.chars().count() + 1;
        // Nothing is taken out before the first key.
        let shown = self.all.redact(&text).split('\n').nth(line)?.trim_end().to_owned();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Held { origin, line: number(line + 1), column: number(column), shown })
    }

    /// Refuses a file with a key in it.
    ///
    /// # Errors
    /// The key's origin, with its place.
    pub(super) fn refuse(&self, file: &Path, text: &[u8]) -> Result<(), ToolError> {
        let Some(held) = self.find(text) else { return Ok(()) };
        let message = format!("the tool's file holds {}, which must not be recorded", held.origin);
        Err(refused(message).at(file, Some(held.line)).column(Some(held.column)).hiding(&held.shown))
    }

    /// Refuses a command tool with a key in what is kept of it: its words, what it says of itself.
    ///
    /// # Errors
    /// The key's origin.
    pub(crate) fn refuse_definition(&self, name: &str, declaration: &[u8]) -> Result<(), ToolError> {
        let Some(held) = self.find(declaration) else { return Ok(()) };
        let message =
            format!("the definition of the tool `{name}` holds {}, which must not be recorded", held.origin);
        Err(refused(message))
    }

    /// Refuses a file that has a key in it with the modules that it imports from beside it.
    ///
    /// # Errors
    /// The key's origin, with its place in the module.
    pub(super) fn refuse_modules(
        &self,
        file: &Path,
        whole: &[u8],
        modules: &[PathBuf],
    ) -> Result<(), ToolError> {
        let Some(held) = (!modules.is_empty()).then(|| self.find(whole)).flatten() else { return Ok(()) };
        let place = |module: &PathBuf| {
            let line = self.find(&std::fs::read(module).ok()?)?.line;
            Some(format!("{}:{line}", module.display()))
        };
        let place = modules.iter().find_map(place).unwrap_or_else(|| "a module beside it".to_owned());
        let message = format!("it imports {place}, which holds {}: that must not be recorded", held.origin);
        Err(refused(message).at(file, None))
    }
}

fn refused(message: String) -> ToolError {
    ToolError::document("C-06", message).help(
        "leave it out: a run keeps the texts of its tools. A tool that declares a variable in `env` is given it with \
         --allow-env NAME",
    )
}
