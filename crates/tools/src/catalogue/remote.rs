//! Tools of MCP servers in the catalogue: which servers are asked, and which names their tools have.

use super::gathered::Gathered;
use super::{Inner, Kind};
use crate::diag::ToolError;
use crate::mcp::{Answers, Definition, Found, McpServer, Pinned, Servers, Wanted, tool_of};
use crate::names::reserved;
use crate::store::{keep, sha256};
use selvedge_engine::{ToolDef, Warning};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

impl Inner {
    fn pinned_file(&self, version: &str) -> PathBuf {
        self.shared.cache.join(format!("{version}.mcp.json"))
    }

    /// Keeps what a run pins, for processes to come.
    pub(super) fn keep_pinned(&self, pinned: &Pinned, version: &str) -> Result<(), ToolError> {
        let copy = self.pinned_file(version);
        keep(&copy, &pinned.bytes()).map_err(|e| ToolError::unkept(&copy, &e))
    }

    /// What a run has pinned.
    pub(super) async fn pinned(&self, version: &str) -> Option<Pinned> {
        let bytes = tokio::fs::read(self.pinned_file(version)).await.ok()?;
        if sha256(&bytes) != version {
            return None;
        }
        serde_json::from_slice(&bytes).ok()
    }
}

impl Gathered {
    /// The last rank. Servers are started only where a tool that is wanted may be theirs: those whose name a full name
    /// begins with; all, where a name means nothing else, or where any tool may come to be called.
    pub(super) async fn mcp(&mut self, servers: &Servers, wanted: &Wanted) {
        if servers.is_empty() {
            return;
        }
        let all: BTreeSet<Arc<str>> = servers.names().cloned().collect();
        let named = wanted.names.iter().flat_map(|name| servers.of_full_name(name).cloned());
        let first: BTreeSet<Arc<str>> = if wanted.any { all.clone() } else { named.collect() };
        let mut asked = Asked::default();
        self.ask(servers, &first, wanted, &mut asked).await;
        if wanted.names.iter().any(|name| !self.has(name, &asked) && servers.off(name).is_none()) {
            let rest: BTreeSet<Arc<str>> = all.difference(&first).cloned().collect();
            self.ask(servers, &rest, wanted, &mut asked).await;
        }
        self.name(servers, wanted, &asked);
    }

    /// Whether a name means something without asking more servers. A tool that is wrong is found too.
    fn has(&self, name: &str, asked: &Asked) -> bool {
        let full = |server: &Arc<str>| tool_of(name, server).is_some();
        self.by_name.contains_key(name) || self.broken.contains_key(name) || asked.failed.keys().any(full)
    }

    async fn ask(
        &mut self,
        servers: &Servers,
        names: &BTreeSet<Arc<str>>,
        wanted: &Wanted,
        asked: &mut Asked,
    ) {
        let Answers { found, wrong, failed } = servers.ask(names).await;
        for found in &found {
            let definition = &found.definition;
            let pinned = Arc::new(definition.pinned(found.config()));
            let def = Arc::new(definition.tool(&pinned));
            let kind = Kind::Mcp(pinned, Arc::clone(&def));
            self.by_version.insert(Arc::clone(&def.version), kind.clone());
            asked.by_tool.entry(Arc::clone(&definition.name)).or_default().push(kind.clone());
            self.full_name(definition, found.config(), &def, kind, asked);
        }
        for (server, tool) in unknown_effects(&found, &wrong) {
            let message =
                format!("`effects` of the MCP server `{server}` names `{tool}`, which is none of its tools");
            self.warnings.push(Warning { code: "unknown-tool".into(), message, node: None });
        }
        for (server, tool, why) in wrong {
            let full: Arc<str> = format!("{server}__{tool}").into();
            let message = format!("the tool `{tool}` of the MCP server `{server}` is left out: {why}");
            let error = ToolError::document("A-22", message.clone()).help("tell who maintains the server");
            asked.wrong.entry(tool).or_insert_with(|| error.clone());
            // Who can't come to call it need not hear of it.
            if wanted.any {
                self.warnings.push(Warning { code: "tool-left-out".into(), message, node: None });
            }
            if wanted.any || wanted.names.contains(&full) {
                self.broken.insert(full, error);
            }
        }
        for (server, trouble) in failed {
            asked.failed.insert(server, trouble.error());
        }
    }

    /// The full name always works, whatever tool of higher rank has it; but two servers can come to the same one.
    fn full_name(
        &mut self,
        definition: &Definition,
        server: &McpServer,
        def: &Arc<ToolDef>,
        kind: Kind,
        asked: &mut Asked,
    ) {
        let name = &def.name;
        let own = format!("`{}` of `{}`", definition.name, server.name);
        let first = asked.full.insert(Arc::clone(name), own.clone());
        if let Some(first) = first {
            let message = format!("two tools of MCP servers are called `{name}`: {first} and {own}");
            let error = ToolError::document("A-22", message).help("give one of the servers another name");
            self.by_name.remove(name);
            self.broken.insert(Arc::clone(name), error);
            return;
        }
        if let Some(other) = self.by_name.insert(Arc::clone(name), kind) {
            let message =
                format!("`{name}` is a tool of an MCP server, and hides one from {}", other.source());
            self.warnings.push(Warning { code: "tool-hidden".into(), message, node: None });
        }
        self.broken.remove(name);
    }

    /// Gives bare names to those that nobody of higher rank has, and says what is wrong with names that are wanted.
    fn name(&mut self, servers: &Servers, wanted: &Wanted, asked: &Asked) {
        for (tool, kinds) in &asked.by_tool {
            // No bare name is one of Selvedge's own tools.
            let taken = self.by_name.contains_key(tool) || reserved(tool).is_some();
            if let ([Kind::Mcp(pinned, def)], false) = (kinds.as_slice(), taken) {
                let def = ToolDef { name: Arc::clone(tool), ..(**def).clone() };
                self.bare.insert(Arc::clone(tool), Kind::Mcp(Arc::clone(pinned), Arc::new(def)));
            }
        }
        for name in &wanted.names {
            let known = self.by_name.contains_key(name) || self.broken.contains_key(name);
            if known || self.bare.contains_key(name) {
                continue;
            }
            if let Some(error) = servers.off(name).or_else(|| asked.wrong_with(name, servers)) {
                self.broken.insert(Arc::clone(name), error);
            }
        }
        // Servers that were started for whatever may be called: the run does without.
        for (server, error) in &asked.failed {
            let needed = wanted.names.iter().any(|name| tool_of(name, server).is_some());
            if !needed {
                let message = format!("{}: its tools are left out", error.message);
                self.warnings.push(Warning { code: "mcp-server".into(), message, node: None });
            }
        }
    }
}

/// The names in `effects` of servers that answered which none of their tools has (E-22): the user is not to believe that
/// they count.
fn unknown_effects(found: &[Found], wrong: &[(Arc<str>, Arc<str>, String)]) -> BTreeSet<(Arc<str>, String)> {
    let mut named = BTreeSet::new();
    for found in found {
        let server = found.config();
        named.extend(server.effects.by_tool.keys().map(|tool| (Arc::clone(&server.name), tool.clone())));
    }
    let there = found.iter().map(|found| (&found.config().name, &found.definition.name));
    for (server, tool) in there.chain(wrong.iter().map(|(server, tool, _)| (server, tool))) {
        named.remove(&(Arc::clone(server), tool.to_string()));
    }
    named
}

/// What servers answered, by the names that tools have there.
#[derive(Default)]
struct Asked {
    /// Whose each full name is, in words.
    full: BTreeMap<Arc<str>, String>,
    by_tool: BTreeMap<Arc<str>, Vec<Kind>>,
    wrong: BTreeMap<Arc<str>, ToolError>,
    failed: BTreeMap<Arc<str>, ToolError>,
}

impl Asked {
    /// Why a name that is wanted means nothing, if that is not simply so.
    fn wrong_with(&self, name: &Arc<str>, servers: &Servers) -> Option<ToolError> {
        if let Some(kinds) = self.by_tool.get(name).filter(|kinds| kinds.len() > 1) {
            let full: Vec<String> =
                kinds.iter().filter_map(Kind::def).map(|def| def.name.to_string()).collect();
            let message = format!("several MCP servers have a tool `{name}`: {}", full.join(", "));
            return Some(
                ToolError::document("A-22", message).help("write the full name of the one that is meant"),
            );
        }
        if let Some(error) = self.wrong.get(name) {
            return Some(error.clone());
        }
        if let (Some(message), Some(kinds)) = (reserved(name), self.by_tool.get(name)) {
            let full = kinds.first().and_then(Kind::def).map(|def| Arc::clone(&def.name)).unwrap_or_default();
            return Some(ToolError::document("A-22", message).help(format!("write its full name, `{full}`")));
        }
        let own = servers.of_full_name(name).find_map(|server| self.failed.get(server));
        own.cloned().or_else(|| {
            let error = self.failed.values().next()?;
            let message = format!("`{name}` can't be looked for: {}", error.message);
            Some(ToolError { message, ..error.clone() })
        })
    }
}
