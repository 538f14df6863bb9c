//! MCP servers: `[mcp.servers.NAME]` of a configuration file, and the JSON with `mcpServers` that other programs read
//! as well (A-22, C-14).

use super::hidden;
use super::read::{EFFECTS, Reader};
use selvedge_adapters::http::Secret;
use selvedge_adapters::tools::mcp::{EffectsRule, Hidden, McpServer, Reached};
use selvedge_adapters::tools::reserved;
use selvedge_dialects::fields::{Fields, Shape, misspelt};
use selvedge_dialects::json::{Member, Node};
use selvedge_dialects::{Finding, Source};
use std::collections::BTreeMap;
use std::sync::Arc;
use url::form_urlencoded;

const MCP: Shape = Shape { what: "[mcp]", fields: &["servers"] };
const FILE: Shape = Shape { what: "a file of MCP servers", fields: &["mcpServers"] };
const SERVER: Shape = Shape {
    what: "an MCP server",
    fields: &[
        "args",
        "command",
        "cwd",
        "disabled",
        "effects",
        "env",
        "headers",
        "start_timeout_s",
        "timeout_s",
        "type",
        "url",
    ],
};

/// In what kind of file servers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `selvedge.toml`, where no key stands (C-06).
    Toml,
    /// A file of `mcpServers`, which may be shared with programs that want keys in it.
    Json,
}

impl Reader<'_> {
    /// `[mcp]`.
    pub(super) fn mcp(&mut self, node: &Node<'_>, servers: &mut BTreeMap<String, McpServer>) {
        let Some(fields) = Fields::open(node, &MCP, "C-14", self.diagnostics) else { return };
        let members = self.members(&fields, "servers");
        self.servers(members, Form::Toml, servers);
    }

    /// A file of `mcpServers`.
    pub(super) fn mcp_file(&mut self, root: &Node<'_>, servers: &mut BTreeMap<String, McpServer>) {
        let Some(fields) = Fields::open(root, &FILE, "A-22", self.diagnostics) else { return };
        let help = "write {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}";
        if fields.required("mcpServers", "A-22", help, self.diagnostics).is_some() {
            let members = self.members(&fields, "mcpServers");
            self.servers(members, Form::Json, servers);
        }
    }

    fn servers(&mut self, members: &[Member<'_>], form: Form, servers: &mut BTreeMap<String, McpServer>) {
        for member in members {
            let name = member.key.as_ref();
            if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                let message = "the name of an MCP server must not be empty or have white space in it";
                self.diagnostics.push(
                    Finding::error("A-22", "bad-server-name", member.key_span, message)
                        .help("its tools are called NAME__TOOL: choose a short word"),
                );
                continue;
            }
            if let Some(why) = reserved(&format!("{name}__TOOL")) {
                let message = format!("tools of an MCP server can't be named after `{name}`: {why}");
                self.diagnostics.push(
                    Finding::error("A-22", "reserved-name", member.key_span, message)
                        .help("give the server another name"),
                );
                continue;
            }
            // A server that is switched off here is off, wherever else it is configured.
            if let Some(server) = self.server(member, form) {
                servers.insert(name.to_owned(), server);
            }
        }
    }

    /// One server. Of one that is switched off nothing else counts: what it names may not be there.
    fn server(&mut self, member: &Member<'_>, form: Form) -> Option<McpServer> {
        let fields = Fields::open(&member.value, &SERVER, "C-14", self.diagnostics)?;
        if fields.boolean("disabled", "C-14", self.diagnostics).is_some_and(|off| off.value) {
            return Some(off(&member.key));
        }
        let mut words = Words { form, ..Words::default() };
        let kind = fields.name("type", "C-14", self.diagnostics);
        if let Some(kind) = kind.filter(|kind| !["stdio", "http", "streamable-http"].contains(&&*kind.value))
        {
            let message = format!("an MCP server can't be reached over `{}`", kind.value);
            self.diagnostics.push(
                Finding::error("A-22", "unknown-transport", kind.span, message)
                    .help("there are \"stdio\" and \"http\" (streamable HTTP); leave `type` out"),
            );
        }
        let command = fields.given("command");
        let reached = match (command, fields.given("url")) {
            (Some(command), None) => self.command_line(&fields, command, &mut words)?,
            (None, Some(url)) => {
                let Some(text) = url.as_str() else {
                    self.wrong(url, "url", "an address", "write url = \"https://HOST/mcp\"");
                    return None;
                };
                let url = words.expanded(text);
                Reached::Url { url: Hidden(url), headers: self.table(&fields, "headers", &mut words) }
            }
            // A slip of the pen is told already (E-32).
            (None, None) if misspelt_way(&member.value) => return None,
            _ => {
                let message = "an MCP server needs either `command` or `url`";
                self.diagnostics.push(
                    Finding::error("C-14", "no-command-or-url", member.key_span, message)
                        .help("write the program that is the server, or the address where it is"),
                );
                return None;
            }
        };
        let timeout = fields.seconds("timeout_s", "C-14", false, self.diagnostics);
        let start_timeout = fields.seconds("start_timeout_s", "C-14", false, self.diagnostics);
        Some(McpServer {
            name: Arc::from(member.key.as_ref()),
            reached,
            effects: self.effects(&fields),
            timeout_s: timeout.map(|time| time.value.as_secs_f64()),
            start_timeout: start_timeout.map_or(McpServer::START_TIMEOUT, |time| time.value),
            secrets: words.secrets,
            unset: words.unset,
        })
    }

    /// `command` with `args`, or both in one list.
    fn command_line(
        &mut self,
        fields: &Fields<'_, '_>,
        command: &Node<'_>,
        words: &mut Words,
    ) -> Option<Reached> {
        let mut line: Vec<Arc<str>> = match command.as_str() {
            Some(program) => vec![program.into()],
            None => self.texts(command, "command")?,
        };
        if let Some(args) = fields.given("args") {
            line.extend(self.texts(args, "args")?);
        }
        if line.first().is_none_or(|program| program.trim().is_empty()) {
            self.wrong(command, "command", "a program", "write command = \"PROGRAM\" and args = [\"…\"]");
            return None;
        }
        let mut line = line.iter().map(|word| words.expanded(word));
        let program = line.next()?;
        let args = line.map(Hidden).collect();
        let cwd = fields.name("cwd", "C-14", self.diagnostics);
        let dir =
            cwd.map_or_else(|| self.folder.to_owned(), |cwd| self.folder.join(words.expanded(&cwd.value)));
        let dir = crate::environment::absolute(&dir);
        Some(Reached::Command { program, args, env: self.table(fields, "env", words), dir })
    }

    /// `env` and `headers`: texts by name, among which keys may be.
    fn table(
        &mut self,
        fields: &Fields<'_, '_>,
        field: &'static str,
        words: &mut Words,
    ) -> BTreeMap<String, Hidden> {
        let mut table = BTreeMap::new();
        for member in self.members(fields, field) {
            let Some(text) = member.value.as_str() else {
                // What stands there may be a key: it is not shown.
                let message = format!("the values of `{field}` must be strings");
                self.diagnostics.push(
                    Finding::error("C-14", "wrong-type", member.key_span, message)
                        .help("write the value in quotes"),
                );
                continue;
            };
            let secret = hidden::may_be_secret(&member.key);
            if secret && words.form == Form::Toml && !text.is_empty() && !text.contains("${") {
                let message = format!("`{}`: keys don't stand in configuration files", member.key);
                let help = "put the key into a variable of the environment, and write \"${NAME}\"";
                self.diagnostics
                    .push(Finding::error("C-06", "key-in-config", member.key_span, message).help(help));
                continue;
            }
            let value = words.expanded(text);
            if secret {
                words.secret(&value);
            }
            table.insert(member.key.to_string(), Hidden(value));
        }
        table
    }

    /// `effects`: of all tools of the server, or by tool (E-22).
    fn effects(&mut self, fields: &Fields<'_, '_>) -> EffectsRule {
        let Some(node) = fields.given("effects") else { return EffectsRule::default() };
        let Some(tools) = node.as_object() else {
            let all = fields.choice("effects", "E-22", &EFFECTS, self.diagnostics);
            return EffectsRule { all: all.map(|all| all.value), ..EffectsRule::default() };
        };
        let mut rule = EffectsRule::default();
        for tool in tools {
            match EFFECTS.iter().find(|(name, _)| tool.value.as_str() == Some(name)) {
                Some((_, effects)) => drop(rule.by_tool.insert(tool.key.to_string(), *effects)),
                None => self.wrong(
                    &tool.value,
                    "effects",
                    "\"pure\", \"read\", \"idempotent\" or \"write\"",
                    "write one of them, for all tools or by tool",
                ),
            }
        }
        rule
    }
}

fn off(name: &str) -> McpServer {
    McpServer {
        name: Arc::from(name),
        reached: Reached::Off { place: String::new() },
        effects: EffectsRule::default(),
        timeout_s: None,
        start_timeout: McpServer::START_TIMEOUT,
        secrets: Vec::new(),
        unset: Vec::new(),
    }
}

/// Says of each server that a file switches off where it does so.
pub(super) fn place_off(root: &Node<'_>, source: &Source, servers: &mut BTreeMap<String, McpServer>) {
    let tables = [root.get("mcp").and_then(|mcp| mcp.get("servers")), root.get("mcpServers")];
    for member in tables.into_iter().flatten().filter_map(Node::as_object).flatten() {
        let (Some(server), Some(word)) = (servers.get_mut(&*member.key), member.value.get("disabled")) else {
            continue;
        };
        if let Reached::Off { place } = &mut server.reached {
            let line = source.place(word.span.range().start).line;
            *place = format!("{}:{line}", source.name());
        }
    }
}

/// Whether a field is a misspelt `command` or `url`.
fn misspelt_way(server: &Node<'_>) -> bool {
    let mut members = server.as_object().unwrap_or_default().iter();
    members.any(|member| matches!(misspelt(&member.key, SERVER.fields), Some("command" | "url")))
}

/// The texts of a server's table, variables in place.
struct Words {
    form: Form,
    unset: Vec<String>,
    secrets: Vec<Secret>,
}

impl Default for Words {
    fn default() -> Self {
        Self { form: Form::Toml, unset: Vec::new(), secrets: Vec::new() }
    }
}

impl Words {
    /// `${NAME}` and `${NAME:-DEFAULT}` as other programs that read such files have them. A `$` by itself is one.
    fn expanded(&mut self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            expanded.push_str(before);
            let inner = behind.split_once('}').map(|(inner, after)| (inner.split_once(":-"), inner, after));
            let Some((default, inner, after)) = inner else {
                expanded.push_str("${");
                rest = behind;
                continue;
            };
            let name = default.map_or(inner, |(name, _)| name);
            match (std::env::var(name).ok().filter(|value| !value.is_empty()), default) {
                (Some(value), _) => {
                    if hidden::may_be_secret(name) {
                        self.secret(&value);
                    }
                    expanded.push_str(&value);
                }
                (None, Some((_, default))) => expanded.push_str(default),
                (None, None) if hidden::names_variable(name) => self.unset.push(name.to_owned()),
                // It may be the key itself.
                (None, None) => self.unset.push("${…} (what stands there is no name of one)".to_owned()),
            }
            rest = after;
        }
        expanded.push_str(rest);
        self.secrets_of_addresses(&expanded);
        expanded
    }

    /// A key, and what follows its scheme in a header: `Bearer KEY`.
    fn secret(&mut self, value: &str) {
        for value in [Some(value), value.rsplit_once(' ').map(|(_, last)| last)].into_iter().flatten() {
            let secret = Secret::new(value);
            if !value.trim().is_empty() && !self.secrets.contains(&secret) {
                self.secrets.push(secret);
            }
        }
    }

    /// Keys in the addresses of a text, as they stand there and as they are meant: `%40` is an `@`.
    fn secrets_of_addresses(&mut self, text: &str) {
        for range in hidden::in_addresses(text) {
            let Some(key) = text.get(range) else { continue };
            self.secret(key);
            let meant = form_urlencoded::parse(key.replace('+', "%2B").replace('&', "%26").as_bytes())
                .map(
                    |(name, value)| {
                        if value.is_empty() { name.into_owned() } else { format!("{name}={value}") }
                    },
                )
                .collect::<String>();
            self.secret(&meant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-06: a key in an address is known as it stands there and as it is meant, and with the user it belongs to.
    #[test]
    fn keys_of_addresses_are_known() {
        let mut words = Words::default();
        let text = "postgres://me:p%40ss+word%261@h/db?sslkey=k%3D0123456#x";
        assert_eq!(words.expanded(text), text);
        let known: Vec<&str> = words.secrets.iter().map(Secret::expose).collect();
        for key in ["me:p%40ss+word%261", "p%40ss+word%261", "p@ss+word&1", "k%3D0123456", "k=0123456"] {
            assert!(known.contains(&key), "{key}: {known:?}");
        }
        let mut words = Words::default();
        words.expanded("https://example.com:8080/a?page=2 -p 80:80 user@example.com");
        assert!(words.secrets.is_empty(), "{:?}", words.secrets.len());
    }
}
