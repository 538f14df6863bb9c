//! What of a project's file is off, as nobody trusts it (C-20).

use super::parts::is_outside;
use super::settings::{AgentConfig, Config};
use crate::error::{Error, ErrorKind, NOT_TRUSTED};
use crate::trust::Untrusted;
use selvedge_dialects::Diagnostic;
use selvedge_engine::Warning;
use selvedge_tools::Withheld;
use selvedge_tools::mcp::McpServer;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is off.
#[derive(Clone, Debug, PartialEq)]
pub struct Off {
    /// What a person would have to trust.
    pub untrusted: Untrusted,
    /// The servers that do not start: what they were to be given stays secret all the same.
    pub servers: Vec<McpServer>,
    folders: Vec<PathBuf>,
}

/// Whether a tool is refused for want of a permission.
fn refusal(found: &Diagnostic) -> bool {
    found.code == "tool-not-allowed" || found.rule == "A-20"
}

impl Config {
    /// Takes out what is not trusted of the file that was put over `before`.
    pub(super) fn withhold(&mut self, untrusted: Untrusted, before: Self, file: &Path) {
        let (mut servers, mut folders) = (Vec::new(), Vec::new());
        for (part, _) in &untrusted.parts {
            let name = part.name.as_str();
            if let Some(model) = name.strip_prefix("models.").and_then(|name| self.models.get_mut(name)) {
                model.withheld = true;
            } else if let Some(server) = name.strip_prefix("mcp.servers.") {
                servers.extend(self.mcp.remove(server));
            } else if let Some(tool) = name.strip_prefix("tools.command.") {
                self.commands.remove(tool);
            }
            match name {
                "agent.codex" => {
                    let settings = Arc::clone(&self.agent.settings);
                    self.agent = AgentConfig { settings, ..before.agent.clone() };
                }
                "tools.allow_read" => self.allow_read.clone_from(&before.allow_read),
                "tools.allow_write" => self.allow_write.clone_from(&before.allow_write),
                "tools.allow_env" => self.allow_env.clone_from(&before.allow_env),
                "tools.allow_network" => self.allow_network = before.allow_network,
                "tools.shell_approval" => self.shell_approval = before.shell_approval,
                "webhooks" => self.webhooks.clone_from(&before.webhooks),
                "tools.python" => self.python.clone_from(&before.python),
                "tools.dirs" => {
                    let folder = file.parent().unwrap_or(Path::new("."));
                    folders = self.tool_dirs.extract_if(.., |dir| is_outside(folder, dir)).collect();
                }
                _ => {}
            }
        }
        self.off = Some(Off { untrusted, servers, folders });
    }

    /// What the catalogue is to say about names that are of none of its tools.
    pub fn withheld(&self) -> Withheld {
        let Some(off) = &self.off else { return Withheld::default() };
        let of = |prefix: &'static str| {
            let names =
                off.untrusted.parts.iter().filter_map(move |(part, _)| part.name.strip_prefix(prefix));
            names.map(Arc::from).collect()
        };
        Withheld {
            file: off.untrusted.file.clone(),
            commands: of("tools.command."),
            servers: off.servers.iter().map(|server| Arc::clone(&server.name)).collect(),
            folders: off.folders.iter().map(|folder| folder.display().to_string()).collect(),
            help: off.untrusted.help(),
        }
    }

    /// What a run warns of.
    pub fn untrusted_warning(&self) -> Option<Warning> {
        self.off.as_ref().map(|off| off.untrusted.warning())
    }

    /// The failure of a command that needed what is off: what is missing is trust, not a better document (C-03).
    pub fn explained(&self, mut failure: Error) -> Error {
        let Some(off) = &self.off else { return failure };
        let grants = off.untrusted.parts.iter().any(|(part, _)| part.name.starts_with("tools.allow"));
        let mut refused = failure.diagnostics.iter_mut().filter(|found| refusal(found)).peekable();
        if !grants || refused.peek().is_none() {
            return failure;
        }
        for found in refused {
            let way = format!("or trust what {} allows: {}", off.untrusted.file, off.untrusted.help());
            found.help = if found.help.is_empty() { way } else { format!("{}; {way}", found.help) };
        }
        let of_trust = |found: &Diagnostic| refusal(found) || found.code == NOT_TRUSTED;
        if failure.kind == ErrorKind::Usage && failure.diagnostics.iter().all(of_trust) {
            failure.kind = ErrorKind::Environment;
        }
        failure
    }

    /// Puts what is not trusted now in the place of what was not when a run was last driven.
    pub fn told(&self, warnings: &mut Vec<Warning>) {
        warnings.retain(|warning| &*warning.code != NOT_TRUSTED);
        warnings.extend(self.untrusted_warning());
    }
}
