//! The parts of a configuration file that start programs, send keys, or give tools more than they have (C-20): what a person
//! trusts, or does not. Taken from the file's tree, so that nothing is lost in reading it, and variables are as they stand there.

use super::hidden;
use crate::environment::Environment;
use crate::text::one_line;
use crate::text::quoted;
use crate::trust::{Does, Part};
use selvedge_dialects::Source;
use selvedge_dialects::json::{Member, Node};
use selvedge_http::is_loopback;
use selvedge_models::Provider;
use selvedge_store::BlobHash;
use selvedge_tools::coder::{CODEX_ADDRESS, CODEX_KEY};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use url::Url;

/// Characters of a text that are shown: enough for any command line that is meant to be read.
const SHOWN: usize = 2_000;

/// The parts of a file, in its order.
pub(super) fn of(environment: &Environment, root: &Node<'_>, folder: &Path, source: &Source) -> Vec<Part> {
    let mut parts = Parts { environment, folder, source, found: Vec::new() };
    for model in members(root.get("models")) {
        parts.model(model);
    }
    let tools = root.get("tools");
    for member in members(tools) {
        match &*member.key {
            "command" => members(Some(&member.value)).for_each(|command| parts.command(command)),
            "dirs" => parts.dirs(member),
            _ => parts.grant(member),
        }
    }
    if let Some(agent) = root.get("agent") {
        parts.codex(agent);
    }
    for server in members(root.get("mcp").and_then(|mcp| mcp.get("servers"))) {
        parts.server(server);
    }
    if let Some(webhooks) = members(Some(root)).find(|member| &*member.key == "webhooks") {
        parts.webhooks(webhooks);
    }
    parts.found.sort_by_key(|part| part.line);
    parts.found
}

fn members<'n, 's>(node: Option<&'n Node<'s>>) -> impl Iterator<Item = &'n Member<'s>> {
    node.and_then(Node::as_object).unwrap_or_default().iter()
}

struct Parts<'a> {
    environment: &'a Environment,
    folder: &'a Path,
    source: &'a Source,
    found: Vec<Part>,
}

impl Parts<'_> {
    fn add(&mut self, name: String, member: &Member<'_>, does: Does, what: &str, content: &Value) {
        let line = self.source.place(member.key_span.range().start).line;
        let canonical = canonical(content).to_string();
        let hash = BlobHash::of(format!("{name}\n{canonical}").as_bytes()).to_string();
        self.found.push(Part { name, does, what: one_line(what, SHOWN), line, hash });
    }

    /// A model counts that is at an address of its own, where any key may go, or is sent a key that is not its provider's.
    fn model(&mut self, member: &Member<'_>) {
        let text = |field| member.value.get(field).and_then(Node::as_str);
        let provider = text("provider").and_then(Provider::parse).unwrap_or_default();
        let (address, variable) = (text("base_url"), text("api_key_env"));
        let keyed = |address: &&str| variable.is_some() || may_carry_key(self.environment, address);
        let far = address.filter(|address| !is_own(provider, address)).filter(keyed);
        let own = |name: &&str| {
            let spare = provider.key_variable() == Some("OPENAI_API_KEY") && *name == "SELVEDGE_API_KEY";
            provider.key_variables().contains(name) || spare
        };
        let foreign = variable.filter(|name| !own(name));
        if far.is_none() && foreign.is_none() {
            return;
        }
        let key = match variable {
            Some(name) if hidden::names_variable(self.environment, name) => format!("${name}"),
            Some(_) => "a variable".to_owned(),
            None => {
                let names = ["SELVEDGE_API_KEY"].into_iter().chain(provider.key_variable());
                format!(
                    "{} if it is set",
                    names.map(|name| format!("${name}")).collect::<Vec<_>>().join(" or ")
                )
            }
        };
        let place = address.unwrap_or(provider.default_base_url());
        let what = format!("what is asked, and {key}, to {}", without_keys(place));
        let content = fields(&member.value, |name| matches!(name, "provider" | "base_url" | "api_key_env"));
        self.add(format!("models.{}", member.key), member, Does::Send, &what, &content);
    }

    /// A program that writes tools, with the key that it is given, and where that goes: each of them counts.
    fn codex(&mut self, agent: &Node<'_>) {
        const FIELDS: [&str; 3] = ["codex", "codex_api_key_env", "codex_base_url"];
        let said = members(Some(agent)).find(|member| FIELDS.contains(&&*member.key));
        let Some(member) = said else { return };
        let text = |field| agent.get(field).and_then(Node::as_str);
        let key = match text("codex_api_key_env") {
            Some(name) if hidden::names_variable(self.environment, name) => format!("${name}"),
            Some(_) => "a variable".to_owned(),
            None => format!("${CODEX_KEY}"),
        };
        let place = text("codex_base_url").map(without_keys).unwrap_or_else(|| CODEX_ADDRESS.to_owned());
        let program = quoted(&without_keys(text("codex").unwrap_or("codex")));
        let what = format!("{program} for tools of agents, with {key}, which goes to {place}");
        let content = fields(agent, |name| FIELDS.contains(&name));
        self.add("agent.codex".to_owned(), member, Does::Start, &what, &content);
    }

    /// A command tool: all of it but what describes it.
    fn command(&mut self, member: &Member<'_>) {
        let content = fields(&member.value, |name| {
            !matches!(name, "description" | "input_schema" | "output_params" | "timeout_s")
        });
        let given = variables(self.environment, member.value.get("env"));
        let given = if given.is_empty() { given } else { format!(", with {given}") };
        let what = format!("{}{given}", words(member.value.get("command")));
        self.add(format!("tools.command.{}", member.key), member, Does::Start, &what, &content);
    }

    /// A server: all of it but its limits. One that is switched off does nothing.
    fn server(&mut self, member: &Member<'_>) {
        let server = &member.value;
        if server.get("disabled").is_some_and(|node| node.to_value() == Value::Bool(true)) {
            return;
        }
        let content = fields(server, |name| !matches!(name, "timeout_s" | "start_timeout_s" | "disabled"));
        let pairs = |field, between: &str| {
            let pair = |member: &Member<'_>| {
                let value = member.value.as_str().map_or_else(|| "…".to_owned(), without_keys);
                format!("{}{between}{value}", member.key)
            };
            let all: Vec<String> = members(server.get(field)).map(pair).collect();
            if all.is_empty() { String::new() } else { format!(", with {}", all.join(", ")) }
        };
        let name = format!("mcp.servers.{}", member.key);
        if let Some(url) = ["url", "httpUrl", "serverUrl"].iter().find_map(|field| server.get(field)) {
            let url = url.as_str().map(without_keys).unwrap_or_default();
            let what = format!("what is called to {url}{}", pairs("headers", ": "));
            return self.add(name, member, Does::Send, &what, &content);
        }
        let cwd = server.get("cwd").and_then(Node::as_str).map(|cwd| format!(", in {cwd}"));
        let args = words(server.get("args"));
        let line = [words(server.get("command")), args].join(" ");
        let what = format!("{}{}{}", line.trim(), cwd.unwrap_or_default(), pairs("env", "="));
        self.add(name, member, Does::Start, &what, &content);
    }

    /// Who is told what becomes of runs, and what for: all of them together.
    fn webhooks(&mut self, member: &Member<'_>) {
        let items = member.value.as_array().unwrap_or_default();
        let urls = items.iter().filter_map(|item| item.get("url").and_then(Node::as_str));
        let urls: Vec<String> = urls.map(without_keys).collect();
        if !urls.is_empty() {
            let what = format!("what becomes of runs to {}", urls.join(", "));
            self.add("webhooks".to_owned(), member, Does::Send, &what, &member.value.to_value());
        }
    }

    /// Folders of tools outside of the project: those in it have what the project's documents have, a sandbox.
    fn dirs(&mut self, member: &Member<'_>) {
        let dirs = member.value.as_array().unwrap_or_default().iter().filter_map(Node::as_str);
        let outside: Vec<&str> = dirs.filter(|dir| is_outside(self.folder, &self.folder.join(dir))).collect();
        if !outside.is_empty() {
            let what = format!("tools to be taken from {}", outside.join(", "));
            let content = outside.into();
            self.add("tools.dirs".to_owned(), member, Does::Allow, &what, &content);
        }
    }

    /// What else there is in `[tools]`, unless it gives nothing.
    fn grant(&mut self, member: &Member<'_>) {
        let content = member.value.to_value();
        let (does, what) = match (&*member.key, &content) {
            (_, Value::Array(list)) if list.is_empty() => return,
            ("shell_approval", Value::Bool(true)) | ("allow_network", Value::Bool(false)) => return,
            ("shell_approval", _) => (Does::Allow, "`shell` to run without asking a person".to_owned()),
            ("allow_network", _) => (Does::Allow, "tools to use the network".to_owned()),
            ("allow_env", _) => (
                Does::Allow,
                format!("tools to be given {}", variables(self.environment, Some(&member.value))),
            ),
            ("allow_read", _) => (Does::Allow, format!("tools to read {}", listed(&member.value))),
            ("allow_write", _) => (Does::Allow, format!("tools to write {}", listed(&member.value))),
            ("python", Value::String(program)) => {
                (Does::Start, format!("{} for Python tools", quoted(program)))
            }
            (_, other) => (Does::Allow, without_keys(&other.to_string())),
        };
        self.add(format!("tools.{}", member.key), member, does, &what, &content);
    }
}

/// Whether an address is the provider's own: its scheme, host and port.
fn is_own(provider: Provider, address: &str) -> bool {
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    origin(address).is_some_and(|found| Some(found) == origin(provider.default_base_url()))
}

/// Whether a key may go to an address for which no variable is named (C-06): one of this machine gets none but
/// `SELVEDGE_API_KEY`.
pub fn may_carry_key(environment: &Environment, address: &str) -> bool {
    let near = Url::parse(address).is_ok_and(|url| is_loopback(&url));
    !near || environment.variable("SELVEDGE_API_KEY").is_some()
}

/// Whether a folder, links followed, is outside of another. One that can't be found is, unless it is said to be inside.
pub fn is_outside(folder: &Path, dir: &Path) -> bool {
    let Ok(root) = folder.canonicalize() else { return true };
    match dir.canonicalize() {
        Ok(real) => !real.starts_with(root),
        Err(_) => {
            let up = dir.components().any(|part| matches!(part, std::path::Component::ParentDir));
            up || !dir.starts_with(folder)
        }
    }
}

/// The fields of a table that `counts` says count.
fn fields(node: &Node<'_>, counts: impl Fn(&str) -> bool) -> Value {
    match node.as_object() {
        None => node.to_value(),
        Some(all) => {
            let kept = all.iter().filter(|member| counts(&member.key));
            Value::Object(kept.map(|member| (member.key.to_string(), member.value.to_value())).collect())
        }
    }
}

/// A command line as a shell reads it, without keys.
fn words(node: Option<&Node<'_>>) -> String {
    let Some(node) = node else { return String::new() };
    let list: Vec<&str> = match node.as_str() {
        Some(word) => vec![word],
        None => node.as_array().unwrap_or_default().iter().filter_map(Node::as_str).collect(),
    };
    list.into_iter().map(|word| quoted(&without_keys(word))).collect::<Vec<_>>().join(" ")
}

fn listed(node: &Node<'_>) -> String {
    let list = node.as_array().unwrap_or_default().iter().filter_map(Node::as_str);
    list.collect::<Vec<_>>().join(", ")
}

/// Variables by name; what is none is not shown.
fn variables(environment: &Environment, node: Option<&Node<'_>>) -> String {
    let names = node.and_then(Node::as_array).unwrap_or_default().iter().filter_map(Node::as_str);
    let shown =
        |name| if hidden::names_variable(environment, name) { format!("${name}") } else { "…".to_owned() };
    names.map(shown).collect::<Vec<_>>().join(", ")
}

/// A text without the keys in its addresses (C-06).
fn without_keys(text: &str) -> String {
    let mut shown = text.to_owned();
    for range in hidden::in_addresses(text) {
        // A variable that is named is what a person has to see.
        if text.get(range.clone()).is_some_and(|key| !key.contains("${")) {
            let stars = "*".repeat(range.len());
            shown.replace_range(range, &stars);
        }
    }
    shown
}

/// The same with the fields of all objects in one order.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(k, v)| (k, canonical(v))).collect();
            Value::Object(sorted.into_iter().map(|(k, v)| (k.clone(), v)).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
