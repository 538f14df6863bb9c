//! From the tree of a configuration file to [`Config`]; unknown keys are findings (C-14, E-32).

use super::hidden::{self, not_a_variable};
use super::settings::{Config, ModelConfig};
use crate::environment::Environment;
use selvedge_dialects::fields::{Fields, Shape, TypeError, type_error};
use selvedge_dialects::json::{Kind, Span};
use selvedge_dialects::json::{Member, Node, to_map};
use selvedge_dialects::{Diagnostics, Finding};
use selvedge_engine::{Effects, Outputs};
use selvedge_models::{Pace, Price, Provider};
use selvedge_tools::{CommandTool, Network, reserved};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const ROOT: Shape = Shape {
    what: "the configuration",
    fields: &["agent", "budget", "limits", "mcp", "models", "recovery", "roles", "tools", "webhooks"],
};
pub(super) const MODEL: Shape = Shape {
    what: "a model",
    fields: &[
        "api_key_env",
        "base_url",
        "context_tokens",
        "extra",
        "max_parallel",
        "max_tokens",
        "model",
        "price",
        "provider",
        "requests_per_minute",
        "seed",
        "stop",
        "temperature",
        "tokens_per_minute",
        "top_p",
    ],
};
pub(super) const PRICE: Shape =
    Shape { what: "a price", fields: &["cached_input_per_mtok", "input_per_mtok", "output_per_mtok"] };
pub(super) const TOOLS: Shape = Shape {
    what: "[tools]",
    fields: &[
        "allow_env",
        "allow_network",
        "allow_read",
        "allow_write",
        "command",
        "dirs",
        "python",
        "shell_approval",
    ],
};
pub(super) const COMMAND: Shape = Shape {
    what: "a command tool",
    fields: &["command", "description", "effects", "env", "input_schema", "output_params", "timeout_s"],
};
pub(super) const BUDGET: Shape = Shape { what: "[budget]", fields: &["calls", "cost", "tokens"] };
const PROVIDERS: [(&str, Provider); 5] = [
    ("openai", Provider::OpenAi),
    ("openai-responses", Provider::OpenAiResponses),
    ("anthropic", Provider::Anthropic),
    ("gemini", Provider::Gemini),
    ("ollama", Provider::Ollama),
];
pub(super) const EFFECTS: [(&str, Effects); 4] = [
    ("pure", Effects::Pure),
    ("read", Effects::Read),
    ("idempotent", Effects::Idempotent),
    ("write", Effects::Write),
];

/// One file being read.
pub(super) struct Reader<'a> {
    pub(super) environment: &'a Environment,
    pub(super) folder: &'a Path,
    pub(super) diagnostics: &'a mut Diagnostics,
}

/// What a file says that may be found to be wrong later: told with its place then.
pub(super) enum Promise {
    /// There is a model for this role.
    Role(String),
    /// There is this folder of tools.
    Dir(PathBuf),
}

/// Puts what a file says over what `config` has; relative paths start at `folder`. Returns what it promises, with the
/// places.
pub(super) fn read(
    root: &Node<'_>,
    folder: &Path,
    config: &mut Config,
    diagnostics: &mut Diagnostics,
) -> Vec<(Promise, Span)> {
    let mut promises = Vec::new();
    let environment = &config.environment.clone();
    let mut reader = Reader { environment, folder, diagnostics };
    let Some(fields) = Fields::open(root, &ROOT, "C-14", reader.diagnostics) else { return promises };
    for model in reader.members(&fields, "models") {
        if let Some(value) = reader.model(&model.value) {
            config.models.insert(model.key.to_string(), value);
        }
    }
    for role in reader.members(&fields, "roles") {
        match role.value.as_str() {
            Some(name) => {
                config.roles.insert(role.key.to_string(), name.to_owned());
                promises.push((Promise::Role(role.key.to_string()), role.value.span));
            }
            None => reader.wrong(&role.value, "roles", "the name of a model", "write role = \"NAME\""),
        }
    }
    // They hold for what follows.
    if let Some(limits) = fields.given("limits") {
        reader.limits(limits, config);
    }
    if let Some(tools) = fields.given("tools") {
        reader.tools(tools, config);
        let dirs = tools.get("dirs").and_then(Node::as_array).unwrap_or_default();
        let dir = |node: &Node<'_>| Some((Promise::Dir(folder.join(node.as_str()?)), node.span));
        promises.extend(dirs.iter().filter_map(dir));
    }
    if let Some(budget) = fields.given("budget") {
        reader.budget(budget, config);
    }
    if let Some(recovery) = fields.given("recovery") {
        reader.recovery(recovery, config);
    }
    if let Some(agent) = fields.given("agent") {
        reader.agent(agent, config);
    }
    if let Some(mcp) = fields.given("mcp") {
        reader.mcp(mcp, &mut config.mcp);
    }
    if let Some(webhooks) = fields.given("webhooks") {
        reader.webhooks(webhooks, config);
    }
    promises
}

/// Puts the servers of a file of `mcpServers` over what `config` has; relative paths start at `folder`.
pub(super) fn read_mcp(root: &Node<'_>, folder: &Path, config: &mut Config, diagnostics: &mut Diagnostics) {
    let environment = &config.environment.clone();
    Reader { environment, folder, diagnostics }.mcp_file(root, &mut config.mcp);
}

impl Reader<'_> {
    pub(super) fn wrong(&mut self, node: &Node<'_>, field: &str, expected: &str, help: &str) {
        self.diagnostics.push(type_error(node, TypeError { field, expected, rule: "C-14", help }));
    }

    /// The members of a table of named things.
    pub(super) fn members<'n, 's>(
        &mut self,
        fields: &Fields<'n, 's>,
        field: &'static str,
    ) -> &'n [Member<'s>] {
        let Some(node) = fields.given(field) else { return &[] };
        let members = node.as_object();
        if members.is_none() {
            self.wrong(node, field, "a table", &format!("write [{field}] and its entries below"));
        }
        members.unwrap_or_default()
    }

    fn model(&mut self, node: &Node<'_>) -> Option<ModelConfig> {
        let node = &self.without_keys(node);
        let fields = Fields::open(node, &MODEL, "C-14", self.diagnostics)?;
        // Names that the message need not offer are taken as well.
        let known = fields.given("provider").and_then(|node| Provider::parse(node.as_str()?));
        let provider = known.or_else(|| {
            fields.choice("provider", "C-14", &PROVIDERS, self.diagnostics).map(|provider| provider.value)
        });
        let help = "write model = \"NAME\", its name at the provider";
        let model = fields.required_name("model", "C-14", help, self.diagnostics)?;
        let price = fields.given("price").and_then(|node| self.price(node));
        let text = |field, reader: &mut Self| {
            fields.name(field, "C-14", reader.diagnostics).map(|text| text.value.to_string())
        };
        Some(ModelConfig {
            provider: provider.unwrap_or_default(),
            model: model.value.to_string(),
            base_url: text("base_url", self),
            api_key_env: self.variable(&fields, "api_key_env"),
            context_tokens: self.count(&fields, "context_tokens", "C-14"),
            price,
            pace: Pace {
                requests_per_minute: self.count_from(1, &fields, "requests_per_minute", "C-14"),
                tokens_per_minute: self.count_from(1, &fields, "tokens_per_minute", "C-14"),
                max_parallel: self.count_from(1, &fields, "max_parallel", "C-14"),
            },
            settings: self.model_settings(&fields),
            withheld: false,
        })
    }

    /// The name of a variable. What is none may be the key itself: it is not shown (C-06).
    pub(super) fn variable(&mut self, fields: &Fields<'_, '_>, field: &'static str) -> Option<String> {
        let name = fields.name(field, "C-14", self.diagnostics)?;
        if hidden::names_variable(self.environment, &name.value) {
            return Some(name.value.to_string());
        }
        let message =
            format!("`{field}` must be the name of a variable, which what stands there does not look like");
        let help = format!(
            "write {field} = \"NAME\" (letters, digits and _), and set the variable NAME to the key; if a key stands \
             there, take it out of the file"
        );
        self.diagnostics.push(Finding::error("C-06", "bad-variable-name", name.span, message).help(help));
        None
    }

    /// The names of variables that tools may be given. What is none may be a key.
    fn variables(&mut self, fields: &Fields<'_, '_>, field: &'static str) -> Option<Vec<String>> {
        let node = fields.given(field)?;
        let names = self.texts(node, field)?;
        let items = node.as_array().unwrap_or_default();
        for (name, item) in names.iter().zip(items) {
            if let Some(why) = not_a_variable(self.environment, name) {
                let message = format!("`{field}` has names of variables, and what stands there {why}");
                let help = format!("write {field} = [\"NAME\"], and set the variable NAME to the key");
                self.diagnostics
                    .push(Finding::error("C-06", "bad-variable-name", item.span, message).help(help));
            }
        }
        Some(names.iter().map(ToString::to_string).collect())
    }

    /// A model without the keys that stand in it: each is an error, as a file is no place for them (C-06).
    pub(super) fn without_keys<'n>(&mut self, node: &Node<'n>) -> Node<'n> {
        let mut node = node.clone();
        let Kind::Object(members) = &mut node.kind else { return node };
        members.retain(|member| {
            let secret = hidden::is_secret(&member.key);
            if secret {
                let message = format!("`{}`: keys don't stand in configuration files", member.key);
                let help =
                    "put the key into a variable of the environment, and name that: api_key_env = \"NAME\"";
                self.diagnostics
                    .push(Finding::error("C-06", "key-in-config", member.key_span, message).help(help));
            }
            !secret
        });
        node
    }

    fn price(&mut self, node: &Node<'_>) -> Option<Price> {
        let fields = Fields::open(node, &PRICE, "C-14", self.diagnostics)?;
        let mut rate = |field| {
            let rate = fields.number(field, "C-14", self.diagnostics)?;
            if rate.value < 0.0 {
                let message = format!("`{field}` must not be negative");
                self.diagnostics.push(
                    Finding::error("C-14", "negative-price", rate.span, message)
                        .help("write what a million tokens cost, or leave the price out"),
                );
            }
            Some(rate.value)
        };
        let input_per_mtok = rate("input_per_mtok").unwrap_or_default();
        let output_per_mtok = rate("output_per_mtok").unwrap_or_default();
        Some(Price { input_per_mtok, output_per_mtok, cached_input_per_mtok: rate("cached_input_per_mtok") })
    }

    fn tools(&mut self, node: &Node<'_>, config: &mut Config) {
        let Some(fields) = Fields::open(node, &TOOLS, "C-14", self.diagnostics) else { return };
        let folder = self.folder.to_owned();
        let mut paths = |field| {
            let node = fields.given(field)?;
            let texts = self.texts(node, field)?;
            Some(texts.iter().map(|path| folder.join(path.as_ref())).collect::<Vec<_>>())
        };
        if let Some(dirs) = paths("dirs") {
            config.tool_dirs = dirs;
        }
        if let Some(allowed) = paths("allow_read") {
            config.allow_read = allowed;
        }
        if let Some(allowed) = paths("allow_write") {
            config.allow_write = allowed;
        }
        if let Some(names) = self.variables(&fields, "allow_env") {
            config.allow_env = names;
        }
        if let Some(network) = self.network(&fields) {
            config.allow_network = network;
        }
        if let Some(flag) = fields.boolean("shell_approval", "C-14", self.diagnostics) {
            config.shell_approval = Some(flag.value);
        }
        if let Some(python) = fields.name("python", "C-14", self.diagnostics) {
            config.python = Some(self.program(&python.value));
        }
        for command in self.members(&fields, "command") {
            if let Some(tool) = self.command(command, config.limits.document().schema_steps) {
                config.commands.insert(tool.name.clone(), tool);
            }
        }
    }

    /// A bare name is looked up on PATH; anything else is a path.
    pub(super) fn program(&self, name: &str) -> std::path::PathBuf {
        if name.contains('/') { self.folder.join(name) } else { name.into() }
    }

    fn command(&mut self, member: &Member<'_>, schema_steps: u64) -> Option<CommandTool> {
        let nameless =
            || Some("a command tool needs a name".to_owned()).filter(|_| member.key.trim().is_empty());
        let misnamed = reserved(&member.key).or_else(nameless);
        let mut told = misnamed.is_some();
        if let Some(message) = misnamed {
            self.diagnostics.push(
                Finding::error("A-27", "reserved-name", member.key_span, message)
                    .help("give the tool another name"),
            );
        }
        let fields = Fields::open(&member.value, &COMMAND, "A-27", self.diagnostics)?;
        let program = "write command = [\"program\", \"argument\"]";
        let line = fields.required("command", "A-27", program, self.diagnostics);
        let command = line.and_then(|node| self.texts(node, "command"));
        if let (Some(line), Some(words)) = (line, &command)
            && words.first().is_none_or(|program| program.trim().is_empty())
        {
            told = true;
            let message = "`command` must begin with a program";
            self.diagnostics.push(Finding::error("A-27", "no-program", line.span, message).help(program));
        }
        let help = "write input_schema = { type = \"object\", properties = { … } }";
        let schema = fields.required("input_schema", "A-27", help, self.diagnostics);
        // D-24: a list of names, or an object whose keys are the names.
        let output_params = fields.given("output_params").and_then(|node| match node.as_object() {
            Some(members) => Some(Outputs::of_fields(&to_map(members))),
            None => self.texts(node, "output_params").map(Outputs::from_iter),
        });
        let description = fields.text("description", "A-27", self.diagnostics);
        let timeout = fields.seconds("timeout_s", "A-27", false, self.diagnostics);
        let effects = fields.choice("effects", "A-27", &EFFECTS, self.diagnostics);
        let schema_span = schema.map(|node| node.span);
        let tool = CommandTool {
            name: member.key.to_string(),
            description: description.map(|text| text.value.to_string()).unwrap_or_default(),
            command: command?.iter().map(ToString::to_string).collect(),
            input_schema: schema?.to_value(),
            output_params,
            effects: effects.map(|effects| effects.value),
            timeout_s: timeout.map(|time| time.value.as_secs_f64()),
            env: self.variables(&fields, "env").unwrap_or_default(),
            dir: self.folder.to_owned(),
        };
        // What stands at a place of its own is told there already; what is left to be wrong is the schema.
        if let (Err(error), Some(span), false) = (tool.definition(schema_steps), schema_span, told) {
            let message = error.message.split_once("]: ").map_or(&*error.message, |(_, why)| why);
            self.diagnostics.push(Finding::error("A-27", "bad-schema", span, message).help(help));
        }
        Some(tool)
    }

    /// What of the network tools may use: true, false, or "local".
    fn network(&mut self, fields: &Fields<'_, '_>) -> Option<Network> {
        const FIELD: &str = "allow_network";
        let node = fields.given(FIELD)?;
        if matches!(&node.kind, Kind::String(word) if word == "local") {
            return Some(Network::Local);
        }
        let flag = fields.boolean(FIELD, "C-14", self.diagnostics)?;
        Some(if flag.value { Network::Public } else { Network::Off })
    }

    /// A whole number from 0 on; 1e6 is one too, as on the command line.
    pub(super) fn count(
        &mut self,
        fields: &Fields<'_, '_>,
        field: &'static str,
        rule: &'static str,
    ) -> Option<u64> {
        self.count_from(0, fields, field, rule)
    }

    fn count_from(
        &mut self,
        least: u32,
        fields: &Fields<'_, '_>,
        field: &'static str,
        rule: &'static str,
    ) -> Option<u64> {
        let number = fields.number(field, rule, self.diagnostics)?;
        if number.value >= f64::from(least) && number.value.fract() == 0.0 {
            return Some(number.value as u64);
        }
        let message = format!("`{field}` must be a whole number from {least} on, not {}", number.value);
        self.diagnostics.push(
            Finding::error(rule, "bad-count", number.span, message)
                .help(format!("write {field} = 1000, for example")),
        );
        None
    }

    /// A list of strings.
    pub(super) fn texts(&mut self, node: &Node<'_>, field: &str) -> Option<Vec<Arc<str>>> {
        let texts: Option<Vec<Arc<str>>> =
            node.as_array().and_then(|list| list.iter().map(|text| text.as_str().map(Arc::from)).collect());
        if texts.is_none() {
            self.wrong(node, field, "a list of strings", &format!("write {field} = [\"…\"]"));
        }
        texts
    }

    fn budget(&mut self, node: &Node<'_>, config: &mut Config) {
        let Some(fields) = Fields::open(node, &BUDGET, "E-20", self.diagnostics) else { return };
        if let Some(calls) = self.count(&fields, "calls", "E-20") {
            config.budget.calls = Some(calls);
        }
        if let Some(tokens) = self.count(&fields, "tokens", "E-20") {
            config.budget.tokens = Some(tokens);
        }
        if let Some(cost) = fields.number("cost", "E-20", self.diagnostics) {
            config.budget.cost = Some(cost.value.max(0.0));
        }
    }
}
