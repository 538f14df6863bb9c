//! Documents in simulated worlds: those of `crates/world/corpus`, each with a defect that a search has to find, or without any.

use crate::conformance::case::Tool;
use crate::conformance::ports::Definitions;
use selvedge_dialects::Capabilities;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, read};
use selvedge_engine::{EDITION, Start};
use selvedge_world::World;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A document, and what is wrong with it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// Unique in its file.
    pub name: String,
    /// The kind of finding that it is; a sound document has none.
    #[serde(default)]
    pub kind: Option<String>,
    /// The tools there are.
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    /// The document.
    pub document: Value,
}

impl Planted {
    /// The document in a world in which chance answers.
    ///
    /// # Errors
    /// What the dialect has against it.
    pub fn world(&self) -> Result<World, String> {
        let source = Source::new("document.json", &self.document.to_string());
        let mut found = Diagnostics::new();
        let document = read(&source, Choice::default(), &DocumentLimits::default(), &mut found);
        let compiled = document.and_then(|document| {
            let mut missing = Diagnostics::new();
            let initial = document.inputs(&Map::new(), &mut missing);
            let unknown = document.head().inputs.iter().map(|input| {
                let kind = input.kind.as_ref().map(|kind| kind.value.name());
                (Arc::clone(&input.name.value), kind.map_or(json!(true), |kind| json!({ "type": kind })))
            });
            let unknown: Vec<(Arc<str>, Value)> = unknown.collect();
            let graph = document.compile(
                &Definitions(&self.tools),
                &initial,
                &Capabilities::default(),
                &mut found,
            )?;
            Some((graph, initial, unknown))
        });
        let Some((graph, initial, unknown)) = compiled.filter(|_| !found.has_errors()) else {
            return Err(format!("{}: {:#?}", self.name, found.report(&source)));
        };
        let start = Start { initial, edition: EDITION, ..Start::default() };
        let mut world = World::new(Arc::new(graph), start);
        world.unknown = unknown;
        Ok(world)
    }
}

/// The documents of a corpus.
///
/// # Errors
/// It is no list of them.
pub fn corpus(yaml: &str) -> Result<Vec<Planted>, String> {
    serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
}
