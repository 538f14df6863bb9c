//! What a run's events and graphs name by hash: graphs, and the texts of tools.

use crate::error::Error;
use selvedge_engine::{Event, Graph, Outcome, ToolDef};
use selvedge_runtime::{LoadError, recorded};
use selvedge_store::{BlobHash, Entry, Store};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Collects contents.
pub(super) struct Texts<'s> {
    store: &'s Store,
    pub(super) hashes: BTreeSet<BlobHash>,
    /// Tools whose texts are among them: version by name.
    pub(super) tools: BTreeMap<String, String>,
}

impl<'s> Texts<'s> {
    pub(super) fn of(store: &'s Store) -> Self {
        Self { store, hashes: BTreeSet::new(), tools: BTreeMap::new() }
    }

    /// A graph, and the texts of its tools.
    pub(super) fn graph(&mut self, run: &str, hash: &str) -> Result<(), Error> {
        let unreadable = |cause: String| LoadError::Unreadable {
            run: run.to_owned(),
            what: "its compiled graph".to_owned(),
            cause,
        };
        let hash: BlobHash = hash.parse()?;
        if !self.hashes.insert(hash) {
            return Ok(());
        }
        let graph: Graph =
            recorded(&self.store.get_blob(hash)?).map_err(|error| unreadable(error.to_string()))?;
        self.pinned(graph.all().flat_map(|graph| graph.tools.values()).map(|tool| &**tool))
    }

    /// What an event names.
    pub(super) fn event(&mut self, run: &str, entry: &Entry) -> Result<(), Error> {
        // Definitions of tools have a version, and few events anything of that name.
        if !entry.json.contains("\"version\":") && !entry.json.contains("\"graph\":") {
            return Ok(());
        }
        let event: Event = recorded(entry.json.as_bytes()).map_err(|error| LoadError::Unreadable {
            run: run.to_owned(),
            what: format!("event {}", entry.n),
            cause: error.to_string(),
        })?;
        match &event {
            Event::Started(start) => self.graph(run, &start.graph),
            Event::Forked(fork) => {
                fork.graph.iter().try_for_each(|graph| self.graph(run, graph))?;
                self.pinned(fork.tools.iter())
            }
            Event::Resumed { tools } => self.pinned(tools.iter()),
            Event::Bound { tools, .. } => self.pinned(tools.values().flatten().map(|tool| &**tool)),
            Event::Completed { outcome: Outcome::Output(output), .. } => self.brought(output),
            Event::Completed { outcome: Outcome::Operated(operated), .. } => self.brought(&operated.output),
            _ => Ok(()),
        }
    }

    /// The tools that came with compiled steps (D-20).
    fn brought(&mut self, output: &Value) -> Result<(), Error> {
        let Some(tools) = output.get("tools").and_then(Value::as_object) else { return Ok(()) };
        let tools = tools.values().filter_map(|tool| serde_json::from_value::<ToolDef>(tool.clone()).ok());
        self.pinned(tools.collect::<Vec<_>>().iter())
    }

    /// The texts of tools that have one: Python files, whose version is its hash.
    fn pinned<'t>(&mut self, tools: impl Iterator<Item = &'t ToolDef>) -> Result<(), Error> {
        for tool in tools {
            let Ok(hash) = tool.version.parse::<BlobHash>() else { continue };
            if self.store.has_blob(hash)? {
                self.hashes.insert(hash);
                self.tools.insert(tool.name.to_string(), tool.version.to_string());
            }
        }
        Ok(())
    }
}
