//! Files that coders write, on their way to be tools: the same examination as of every other file, and in words that
//! a coder can act on.

use super::{Catalogue, Kind};
use crate::coder::of_size;
use crate::diag::{ErrorClass, ToolError};
use crate::python::PythonTool;
use crate::python::load::load_text;
use selvedge_engine::ToolDef;
use selvedge_engine::library::Facts;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// A coder's file that is a tool of this run from now on: it is called by its version, like one that a run has pinned.
#[derive(Clone, Debug, PartialEq)]
pub struct Drafted {
    /// Its definition, which names its version.
    pub definition: Arc<ToolDef>,
    /// What the library keeps of it.
    pub facts: Facts,
}

/// Why a coder's file is no tool.
#[derive(Clone, Debug, PartialEq)]
pub enum NotDrafted {
    /// What is wrong with it, each in words for the coder.
    Wrong(Vec<String>),
    /// Nothing that is known of it: the state folder can't be written.
    Unkept(ToolError),
}

impl From<Vec<String>> for NotDrafted {
    fn from(wrong: Vec<String>) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<ToolError> for NotDrafted {
    fn from(error: ToolError) -> Self {
        match error.class {
            ErrorClass::State => Self::Unkept(error),
            _ => Self::Wrong(vec![words(&error)]),
        }
    }
}

impl Catalogue {
    /// Takes in a file that a coder has written for a tool of this name: it parses, its metadata is a literal and has
    /// the name, what it declares is allowed in this run, its dependencies install, it has no key in it, and in the
    /// sandbox it loads and says its schema within 30 s.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn draft(&self, name: &str, text: &str) -> Result<Drafted, NotDrafted> {
        of_size(text).map_err(|error| vec![error])?;
        let context = &self.0.shared;
        let file = PathBuf::from(format!("{name}.py"));
        let tool = load_text(context, file, text.as_bytes().to_vec()).await?;
        let mut wrong = Vec::new();
        if tool.meta.name != name {
            wrong.push(format!(
                "`name` in __TOOL_META__ is \"{}\", and has to be \"{name}\"",
                tool.meta.name.chars().take(60).flat_map(char::escape_default).collect::<String>()
            ));
        }
        match context.granted.lacks(name, &tool.meta.declared()) {
            Ok(lacks) if lacks.is_empty() => {}
            Ok(lacks) => {
                let what: Vec<&str> = lacks.iter().map(|lack| &*lack.declared).collect();
                wrong.push(format!(
                    "the file declares {}, which is not allowed in this run: leave that out of __TOOL_META__, and do the work without",
                    what.join(" and ")
                ));
            }
            Err(error) => wrong.push(words(&error)),
        }
        wrong.extend(self.lacks_isolation().await.as_ref().map(words));
        if !wrong.is_empty() {
            return Err(wrong.into());
        }
        tool.prepare(context).await.map_err(|error| match error.class {
            ErrorClass::State => NotDrafted::Unkept(error),
            _ => vec![unprepared(&tool, &error)].into(),
        })?;
        if tool.meta.effects.is_none() && context.isolation.is_possible() {
            // E-22: what it does to the world follows from what holds it.
            context.isolation.found().await;
        }
        let Some(definition) = tool.definition().map(Arc::new) else {
            return Err(vec!["the file says no schema of its input".to_owned()].into());
        };
        let facts = tool.meta.facts(definition.input_schema.clone());
        let mut known = self.0.by_version.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is known has its place in a folder, or in the library.
        known.entry(definition.version.clone()).or_insert_with(|| Kind::Python(Arc::new(tool)));
        Ok(Drafted { definition, facts })
    }
}

/// An error of a file as its author is told it: where, what, and what to do.
fn words(error: &ToolError) -> String {
    let mut words = String::new();
    match (error.line, error.column) {
        (Some(line), Some(column)) => _ = write!(words, "line {line}, column {column}: "),
        (Some(line), None) => _ = write!(words, "line {line}: "),
        (None, _) => {}
    }
    words.push_str(&error.message);
    if let Some(line) = &error.shown {
        _ = write!(words, " (the line is `{}`)", line.trim().chars().take(200).collect::<String>());
    }
    // What to do about a machine is nothing that a coder does.
    if error.class == ErrorClass::Document && !error.help.is_empty() {
        _ = write!(words, ": {}", error.help);
    }
    words
}

/// The same where the machine may be why: what it can't install, a file can do without.
fn unprepared(tool: &PythonTool, error: &ToolError) -> String {
    let mut words = words(error);
    if error.class == ErrorClass::Environment && !tool.meta.dependencies.is_empty() {
        words.push_str(": do without these packages, with the standard library and pydantic");
    }
    words
}
