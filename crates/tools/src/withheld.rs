//! What is configured where nobody trusts the configuration (C-20).

use crate::mcp::tool_of;
use std::sync::Arc;

/// What a configuration that is not trusted would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// The configuration, for people.
    pub file: String,
    /// Command tools.
    pub commands: Vec<Arc<str>>,
    /// MCP servers.
    pub servers: Vec<Arc<str>>,
    /// Folders of tools.
    pub folders: Vec<String>,
    /// What to do about it.
    pub help: String,
}

impl Withheld {
    /// Why a name may mean nothing for want of trust: it is a command's or of a server, or it is nowhere, and might be of a
    /// server or in a folder that nobody looked at.
    pub(crate) fn reason(&self, name: &str) -> Option<String> {
        let file = &self.file;
        let server = self.servers.iter().find(|server| tool_of(name, server).is_some());
        if let Some(server) = server {
            return Some(format!(
                "`{name}` can't be called: the MCP server `{server}` of {file} is not trusted"
            ));
        }
        if self.commands.iter().any(|command| &**command == name) {
            return Some(format!("`{name}` can't be called: this command of {file} is not trusted"));
        }
        let servers = self.servers.iter().map(|server| format!("the MCP server `{server}`"));
        let folders = self.folders.iter().map(|folder| format!("the folder {folder}"));
        let elsewhere: Vec<String> = servers.chain(folders).collect();
        let verb = if elsewhere.len() == 1 { "is" } else { "are" };
        let listed = elsewhere.join(", ");
        (!elsewhere.is_empty())
            .then(|| format!("`{name}` can't be looked for: {listed} of {file} {verb} not trusted"))
    }
}
