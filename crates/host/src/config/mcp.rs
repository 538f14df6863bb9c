//! MCP servers: `[mcp.servers.NAME]` of a configuration file, and the JSON with `mcpServers` that other programs read
//! as well (A-22, C-14).

mod words;

use super::hidden;
use super::read::{EFFECTS, Reader};
use selvedge_dialects::diagnostic::Severity;
use selvedge_dialects::fields::{Fields, Shape, misspelt};
use selvedge_dialects::json::{Kind, Member, Node};
use selvedge_dialects::{Diagnostics, Finding, Source};
use selvedge_tools::mcp::{EffectsRule, Hidden, McpServer, Reached};
use selvedge_tools::reserved;
use std::collections::BTreeMap;
use std::sync::Arc;
use words::Words;

const MCP: Shape = Shape { what: "[mcp]", fields: &["servers"] };
const FILE: Shape = Shape { what: "a file of MCP servers", fields: &["mcpServers"] };
pub(super) const SERVER: Shape = Shape {
    what: "an MCP server",
    fields: &[
        "args",
        "command",
        "cwd",
        "disabled",
        "effects",
        "env",
        "headers",
        "max_timeout_s",
        "start_timeout_s",
        "timeout_s",
        "type",
        "url",
    ],
};
/// The same in a file that other programs read: with their names for what we have, and with what only they know.
const SHARED: Shape = Shape {
    what: SERVER.what,
    fields: &[
        "alwaysAllow",
        "args",
        "autoApprove",
        "command",
        "cwd",
        "description",
        "disabled",
        "disabledTools",
        "effects",
        "enabled",
        "env",
        "envFile",
        "excludeTools",
        "gallery",
        "headers",
        "httpUrl",
        "icon",
        "includeTools",
        "max_timeout_s",
        "name",
        "serverUrl",
        "start_timeout_s",
        "timeout",
        "timeout_s",
        "transport",
        "transportType",
        "trust",
        "type",
        "url",
        "version",
    ],
};
/// Where an address may stand: what says more goes first.
const ADDRESSES: [&str; 3] = ["httpUrl", "url", "serverUrl"];
/// More of a `timeout` than these seconds are milliseconds: some programs count in these.
const LONGEST_S: f64 = 3600.0;

/// How a server is spoken to, as far as its entry says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
    Sse,
}

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
        // It may be the settings of another program: what else stands there is its own.
        let mut others = Diagnostics::new();
        let known = root.get("mcpServers").is_some();
        let told = if known { &mut others } else { &mut *self.diagnostics };
        let Some(fields) = Fields::open(root, &FILE, "A-22", told) else { return };
        let help = "write {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}";
        if fields.required("mcpServers", "A-22", help, self.diagnostics).is_some() {
            let members = self.members(&fields, "mcpServers");
            self.servers(members, Form::Json, servers);
        }
    }

    fn servers(&mut self, members: &[Member<'_>], form: Form, servers: &mut BTreeMap<String, McpServer>) {
        for member in members {
            let mut own = Diagnostics::new();
            let mut reader =
                Reader { environment: self.environment, folder: self.folder, diagnostics: &mut own };
            // A server that is switched off here is off, wherever else it is configured.
            let server = if reader.named(member) { reader.server(member, form) } else { None };
            let wrong = own.findings().iter().find(|finding| finding.severity == Severity::Error);
            let server = match (form, wrong) {
                // One entry does not spoil the others of a file that is not ours alone.
                (Form::Json, Some(wrong)) => Some(left_out(&member.key, wrong)),
                (Form::Toml, Some(_)) => None,
                (_, None) => server,
            };
            for finding in own.findings() {
                self.diagnostics.push(match (form, finding.severity) {
                    (Form::Json, Severity::Error) => Finding {
                        severity: Severity::Warning,
                        message: format!("{} (the server is left out)", finding.message),
                        ..finding.clone()
                    },
                    _ => finding.clone(),
                });
            }
            if let Some(server) = server {
                servers.insert(member.key.to_string(), server);
            }
        }
    }

    /// Whether tools can be named after a server.
    fn named(&mut self, member: &Member<'_>) -> bool {
        let name = member.key.as_ref();
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let message = "the name of an MCP server must not be empty or have white space in it";
            self.diagnostics.push(
                Finding::error("A-22", "bad-server-name", member.key_span, message)
                    .help("its tools are called NAME__TOOL: choose a short word"),
            );
            return false;
        }
        if let Some(why) = reserved(&format!("{name}__TOOL")) {
            let message = format!("tools of an MCP server can't be named after `{name}`: {why}");
            self.diagnostics.push(
                Finding::error("A-22", "reserved-name", member.key_span, message)
                    .help("give the server another name"),
            );
            return false;
        }
        true
    }

    /// One server. Of one that is switched off nothing else counts: what it names may not be there.
    fn server(&mut self, member: &Member<'_>, form: Form) -> Option<McpServer> {
        let shape = if form == Form::Json { &SHARED } else { &SERVER };
        let fields = Fields::open(&member.value, shape, "C-14", self.diagnostics)?;
        let mut flag = |field: &'static str| {
            let known = shape.fields.contains(&field);
            known.then(|| fields.boolean(field, "C-14", self.diagnostics)).flatten().map(|flag| flag.value)
        };
        if flag("disabled") == Some(true) || flag("enabled") == Some(false) {
            return Some(nowhere(&member.key, Reached::Off { place: String::new() }));
        }
        let mut words = Words::new(self.environment, form);
        let way = self.way(&fields, form);
        let command =
            fields.given("command").filter(|_| way.is_none_or(|way| way == Way::Stdio || form == Form::Toml));
        let addresses: &[&str] = if form == Form::Json { &ADDRESSES } else { &["url"] };
        let address = addresses.iter().find_map(|field| fields.given(field));
        let address = address.filter(|_| form == Form::Toml || way != Some(Way::Stdio));
        let reached = match (command, address) {
            (Some(command), None) => self.command_line(&fields, command, &mut words)?,
            (None, Some(url)) => {
                let Some(text) = url.as_str() else {
                    self.wrong(url, "url", "an address", "write url = \"https://HOST/mcp\"");
                    return None;
                };
                let url = Hidden(words.expanded(text));
                Reached::Url {
                    url,
                    headers: self.table(&fields, "headers", &mut words),
                    sse: way == Some(Way::Sse),
                }
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
        let mut seconds =
            |field| fields.seconds(field, "C-14", false, self.diagnostics).map(|time| time.value);
        let (timeout, longest, start) =
            (seconds("timeout_s"), seconds("max_timeout_s"), seconds("start_timeout_s"));
        let shared = if form == Form::Json { self.shared(&fields) } else { None };
        Some(McpServer {
            reached,
            effects: self.effects(&fields),
            timeout_s: timeout.map(|time| time.as_secs_f64()).or(shared),
            max_timeout: longest.unwrap_or(McpServer::MAX_TIMEOUT),
            start_timeout: start.unwrap_or(McpServer::START_TIMEOUT),
            given: words.given(),
            secrets: words.secrets,
            unset: words.unset,
            ..nowhere(&member.key, Reached::Off { place: String::new() })
        })
    }

    /// `type`, as programs write it.
    fn way(&mut self, fields: &Fields<'_, '_>, form: Form) -> Option<Way> {
        let names: &[&'static str] =
            if form == Form::Json { &["type", "transport", "transportType"] } else { &["type"] };
        let name = names.iter().find(|name| fields.given(name).is_some())?;
        let kind = fields.name(name, "C-14", self.diagnostics)?;
        match kind.value.to_ascii_lowercase().replace(['-', '_', ' '], "").as_str() {
            "stdio" => Some(Way::Stdio),
            "http" | "streamablehttp" => Some(Way::Http),
            "sse" => Some(Way::Sse),
            _ => {
                let message = format!("an MCP server can't be reached over `{}`", kind.value);
                self.diagnostics.push(
                    Finding::error("A-22", "unknown-transport", kind.span, message).help(
                        "there are \"stdio\", \"http\" (streamable HTTP) and \"sse\"; leave `type` out",
                    ),
                );
                None
            }
        }
    }

    /// What other programs call otherwise than we do: the time limit of calls, in seconds.
    fn shared(&mut self, fields: &Fields<'_, '_>) -> Option<f64> {
        if let Some(file) = fields.member("envFile").filter(|file| !file.value.is_null()) {
            let message = "`envFile` is not read";
            self.diagnostics.push(
                Finding::warning("A-22", "env-file", file.key_span, message)
                    .help("write the variables that the server needs into `env`, as \"${NAME}\""),
            );
        }
        let timeout = fields.number("timeout", "C-14", self.diagnostics)?.value;
        let seconds = if timeout > LONGEST_S { timeout / 1000.0 } else { timeout };
        // Programs write 0 for none.
        (seconds > 0.0).then_some(seconds)
    }

    /// `command` with `args`, or both in one list.
    fn command_line(
        &mut self,
        fields: &Fields<'_, '_>,
        command: &Node<'_>,
        words: &mut Words<'_>,
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
        let dir = self.environment.absolute(&dir);
        Some(Reached::Command { program, args, env: self.table(fields, "env", words), dir })
    }

    /// `env` and `headers`: texts by name, among which keys may be.
    fn table(
        &mut self,
        fields: &Fields<'_, '_>,
        field: &'static str,
        words: &mut Words<'_>,
    ) -> BTreeMap<String, Hidden> {
        let mut table = BTreeMap::new();
        for member in self.members(fields, field) {
            let number = match &member.value.kind {
                Kind::Number(_) | Kind::Bool(_) if words.form == Form::Json => {
                    Some(member.value.to_value().to_string())
                }
                _ => None,
            };
            let Some(text) = member.value.as_str().or(number.as_deref()) else {
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
            let value = words.value(text);
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

/// A server that can't be had.
fn nowhere(name: &str, reached: Reached) -> McpServer {
    McpServer {
        name: Arc::from(name),
        reached,
        effects: EffectsRule::default(),
        timeout_s: None,
        max_timeout: McpServer::MAX_TIMEOUT,
        start_timeout: McpServer::START_TIMEOUT,
        secrets: Vec::new(),
        given: Vec::new(),
        unset: Vec::new(),
    }
}

/// A server whose entry is wrong: who names a tool of it is told so.
fn left_out(name: &str, wrong: &Finding) -> McpServer {
    let (why, help) = (wrong.message.clone(), wrong.help.clone());
    nowhere(name, Reached::Wrong { why, help, place: String::new() })
}

/// Says of each server that a file switches off, or has wrong, where it does so.
pub(super) fn place_off(root: &Node<'_>, source: &Source, servers: &mut BTreeMap<String, McpServer>) {
    let tables = [root.get("mcp").and_then(|mcp| mcp.get("servers")), root.get("mcpServers")];
    for member in tables.into_iter().flatten().filter_map(Node::as_object).flatten() {
        let Some(server) = servers.get_mut(&*member.key) else { continue };
        let word = ["disabled", "enabled"].iter().find_map(|word| member.value.get(word));
        let (place, span) = match &mut server.reached {
            Reached::Off { place } => (place, word.map_or(member.key_span, |word| word.span)),
            Reached::Wrong { place, .. } => (place, member.key_span),
            _ => continue,
        };
        *place = format!("{}:{}", source.name(), source.place(span.range().start).line);
    }
}

/// Whether a field is a misspelt `command` or `url`.
fn misspelt_way(server: &Node<'_>) -> bool {
    let mut members = server.as_object().unwrap_or_default().iter();
    members.any(|member| matches!(misspelt(&member.key, SERVER.fields), Some("command" | "url")))
}
