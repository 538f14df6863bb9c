//! Tools as they are found: by rank, so that the first to have a name keeps it.

use super::Kind;
use crate::builtin::Builtin;
use crate::command::CommandTool;
use crate::diag::{ErrorClass, ToolError};
use crate::native::NativeTool;
use crate::python::PythonTool;
use crate::python::context::PythonContext;
use crate::python::load::{files_of, load};
use selvedge_engine::{ToolDef, Warning};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// Tools as they are found, rank by rank: the first rank to have a name keeps it.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) by_name: BTreeMap<Arc<str>, Kind>,
    pub(super) bare: BTreeMap<Arc<str>, Kind>,
    pub(super) by_version: HashMap<Arc<str>, Kind>,
    pub(super) broken: BTreeMap<Arc<str>, ToolError>,
    pub(super) warnings: Vec<Warning>,
    pub(super) errors: Vec<ToolError>,
}

impl Gathered {
    pub(super) fn rank(&mut self, what: &str, tools: Vec<(Arc<str>, Kind)>) {
        let mut here: BTreeMap<Arc<str>, Kind> = BTreeMap::new();
        for (name, kind) in tools {
            self.by_version.insert(kind.version().clone(), kind.clone());
            match here.get(&name) {
                None => drop(here.insert(name, kind)),
                Some(first) => {
                    let message = format!(
                        "{what} have two tools named `{name}`: {} and {}",
                        first.source(),
                        kind.source()
                    );
                    let mut error = ToolError::document("A-22", message).help("rename or remove one of them");
                    if let Kind::Python(tool) = &kind {
                        error = error.at(&tool.source, None);
                    }
                    self.errors.push(error);
                }
            }
        }
        for (name, kind) in here {
            self.by_name.entry(name).or_insert(kind);
        }
    }

    pub(super) async fn python(&mut self, context: &PythonContext, folders: &[PathBuf], what: &str) {
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut files = Vec::new();
        for folder in folders {
            // The same folder named twice is one folder.
            let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if seen.contains(&real) {
                continue;
            }
            seen.push(real);
            match files_of(folder) {
                Ok(found) => files.extend(found),
                Err(error) => self.errors.push(error),
            }
        }
        let (tools, errors) = load(context, files).await;
        errors.into_iter().for_each(|error| self.left_out(error));
        for tool in &tools {
            self.warnings.extend(tool.meta.warnings(&tool.source));
        }
        let named = |tool: PythonTool| (Arc::from(tool.meta.name.as_str()), Kind::Python(Arc::new(tool)));
        self.rank(what, tools.into_iter().map(named).collect());
    }

    /// A file that is wrong stops nobody who does not use it; what is wrong with the machine stops all.
    fn left_out(&mut self, error: ToolError) {
        let stem = error.file.as_ref().and_then(|file| file.file_stem());
        let stem = stem.map(|stem| Arc::<str>::from(stem.to_string_lossy().as_ref()));
        let (Some(name), ErrorClass::Document) = (stem, error.class) else { return self.errors.push(error) };
        let message = format!("the tool file is left out: {error}");
        self.warnings.push(Warning { code: "tool-left-out".into(), message, node: None });
        // A tool of higher rank has the name already.
        if !self.by_name.contains_key(&name) {
            self.broken.entry(name).or_insert(error);
        }
    }

    pub(super) async fn commands(&mut self, commands: Vec<CommandTool>, schema_steps: u64) {
        let mut tools = Vec::new();
        for command in commands {
            let (command, def) = defined(command, schema_steps).await;
            match def {
                Ok(def) => tools.push((def.name.clone(), Kind::Command(Arc::new(command), Arc::new(def)))),
                Err(error) => self.errors.push(error),
            }
        }
        self.rank("the command tools", tools);
    }

    pub(super) fn natives(&mut self, tools: Vec<NativeTool>) {
        let named = |tool: NativeTool| (Arc::clone(&tool.def.name), Kind::Native(tool));
        self.rank("the tools of the program", tools.into_iter().map(named).collect());
    }

    pub(super) fn builtins(&mut self, shell_approval: bool) {
        let all = Builtin::definitions(shell_approval);
        let all = all.map(|(builtin, def)| (def.name.clone(), Kind::Builtin(builtin, def)));
        self.rank("the built-ins", all.collect());
    }
}

/// A command tool with its definition. Reading its schema may take a while, which nobody else is to wait for.
pub(super) async fn defined(
    command: CommandTool,
    schema_steps: u64,
) -> (CommandTool, Result<ToolDef, ToolError>) {
    let read = move || {
        let def = command.definition(schema_steps);
        (command, def)
    };
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
