//! Where the document of a run defines a node (S-24).

use crate::environment::Environment;
use crate::options::RunOptions;
use crate::prepare::{naming::Naming, source};
use selvedge_dialects::{DocumentLimits, Source, Span};
use selvedge_engine::graph::Node;
use selvedge_store::RunInfo;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A place in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Defined {
    /// The document's file, as short as it can be said from here; of one that came in a request, a name that stands for it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Whether the file was written after the run had begun, so that it may say something else now.
    pub changed: bool,
}

/// The document of a run, as far as it tells where nodes are defined.
pub struct Definitions {
    source: Source,
    names: BTreeMap<String, Vec<Span>>,
    file: String,
    changed: bool,
}

impl Definitions {
    /// Reads the document of a run, if it is still there.
    pub fn read(environment: &Environment, info: &RunInfo, limits: &DocumentLimits) -> Option<Self> {
        let options = RunOptions::stored(&info.options);
        let source = source(&options.document, &options, limits).ok()?;
        let names = Naming::of_nodes(&source, *limits).all();
        let written = |file: &Path| file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
        let written = written(&options.document).filter(|_| options.given.is_none());
        let changed =
            written.is_some_and(|written| written.as_millis() > u128::from(info.started_ms.unsigned_abs()));
        let file = match options.given {
            Some(_) => options
                .document
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            None => environment.shown(&options.document),
        };
        Some(Self { source, names, file, changed })
    }

    /// Where a node is defined, if the document names it once: nodes of another file, and those that a model has planned, are in none.
    pub fn of(&self, def: &Node) -> Option<Defined> {
        let names: [&str; 4] = [&def.id, def.shown_id(), &def.name, def.shown_name()];
        let span = names.into_iter().find_map(|name| match self.names.get(name).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        })?;
        let place = self.source.place(span.start as usize);
        Some(Defined {
            file: self.file.clone(),
            line: place.line,
            column: place.column,
            changed: self.changed,
        })
    }
}
