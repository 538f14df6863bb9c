//! What the names of tools mean, in a row each (A-22, C-15).

use crate::environment::Environment;
use selvedge_engine::Effects;
use selvedge_engine::library::{Facts, Library, Stage, Version};
use selvedge_tools::Catalogue;
use selvedge_tools::library::LIBRARY;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A tool, as a list of them has it.
pub struct Listed {
    /// Its name.
    pub name: Arc<str>,
    /// The version that the name means.
    pub version: Arc<str>,
    /// Where it is from.
    pub source: Arc<str>,
    /// What it does to the outside, where that is declared.
    pub effects: Option<Effects>,
    /// How it stands in the library, if it is of that.
    pub state: Option<&'static str>,
    /// What it is for.
    pub description: Arc<str>,
}

impl Listed {
    /// All that a catalogue has.
    pub fn all(environment: &Environment, catalogue: &Catalogue, library: &Library) -> Vec<Self> {
        let listed = |name: &Arc<str>| {
            let tool = catalogue.sketch(name)?;
            let shelved = (&*tool.source == LIBRARY).then(|| library.public(name)).flatten();
            Some(Self {
                name: Arc::clone(name),
                version: tool.version.clone(),
                source: relative(&tool.source, environment).into(),
                effects: tool.effects,
                state: shelved.map(|_| Stage::Public.name()),
                description: tool.description.clone(),
            })
        };
        catalogue.names().filter_map(listed).collect()
    }

    /// A version of the library that no name means.
    pub fn unused(version: &Version) -> Self {
        let facts = version.facts.clone().unwrap_or_else(|| Arc::new(Facts::default()));
        Self {
            name: Arc::clone(&version.name),
            version: Arc::clone(&version.hash),
            source: LIBRARY.into(),
            effects: facts.effects,
            state: Some(version.shown().stage.name()),
            description: Arc::clone(&facts.description),
        }
    }

    /// C-15's object; what has no state in the library has none.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "version": self.version,
            "source": self.source,
            "effects": self.effects.map(effects),
            "state": self.state,
            "description": self.description,
        })
    }
}

/// The word for effects.
pub fn effects(effects: Effects) -> &'static str {
    match effects {
        Effects::Pure => "pure",
        Effects::Read => "read",
        Effects::Idempotent => "idempotent",
        Effects::Write => "write",
    }
}

/// A path below the current folder as people write it there.
pub fn relative(source: &str, environment: &Environment) -> String {
    let path = Path::new(source).strip_prefix(environment.cwd());
    path.map_or_else(|_| source.to_owned(), |path| path.display().to_string())
}
