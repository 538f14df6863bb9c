//! The configuration files (C-06, C-14): TOML, read with places, later files over earlier ones.

mod hidden;
mod limits;
mod mcp;
pub mod parts;
mod read;
mod recovery;
mod toml;
mod withheld;

pub use parts::{Does, Part};
pub use read::shapes;
pub use withheld::Off;

pub use hidden::in_addresses as keys_in_addresses;
pub use hidden::not_a_variable;

use crate::environment::Environment;
use crate::error::{Error, ErrorKind};
use crate::observer::Observer;
use crate::options::{RunOptions, joined};
use crate::places::Files;
use crate::trust::Gate;
use read::Promise;
use selvedge_dialects::fields::misspelt;
use selvedge_dialects::steps::Recovery;
use selvedge_dialects::{Diagnostic, Diagnostics, DocumentLimits, Finding, Source};
use selvedge_engine::Budget;
use selvedge_models::{CallLimits, Price, Provider};
use selvedge_tools::mcp::McpServer;
use selvedge_tools::{CommandTool, Network, ToolLimits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `[models.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// `provider`.
    pub provider: Provider,
    /// `model`: its name at the endpoint.
    pub model: String,
    /// `base_url`.
    pub base_url: Option<String>,
    /// `api_key_env`: the variable that holds the key.
    pub api_key_env: Option<String>,
    /// `context_tokens`.
    pub context_tokens: Option<u64>,
    /// `price`.
    pub price: Option<Price>,
    /// Whether nothing is to be sent there, as nobody trusts who says so (C-20).
    pub withheld: bool,
}

/// Limits that are set; the others have their defaults (E-28).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    values: BTreeMap<&'static str, f64>,
}

/// Everything that is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What it is configured in.
    pub environment: Environment,
    /// `[models.NAME]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// `[roles]`.
    pub roles: BTreeMap<String, String>,
    /// Where each role is given away: an error that is none as long as there is a model of that name.
    pub places: BTreeMap<String, Diagnostic>,
    /// `[tools] dirs`.
    pub tool_dirs: Vec<PathBuf>,
    /// Where each of them is named: an error that is none as long as the folder is there.
    pub dir_places: BTreeMap<PathBuf, Diagnostic>,
    /// `[tools] allow_read`.
    pub allow_read: Vec<PathBuf>,
    /// `[tools] allow_write`.
    pub allow_write: Vec<PathBuf>,
    /// `[tools] allow_network`.
    pub allow_network: Network,
    /// `[tools] allow_env`, and `--allow-env`.
    pub allow_env: Vec<String>,
    /// `[tools] shell_approval = false` lets `shell` run without asking.
    pub shell_approval: Option<bool>,
    /// `[tools] python`.
    pub python: Option<PathBuf>,
    /// `[tools.command.NAME]`, by name.
    pub commands: BTreeMap<String, CommandTool>,
    /// `[mcp.servers.NAME]`, and those of `--mcp`, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// `[limits]`.
    pub limits: Limits,
    /// `[budget]`.
    pub budget: Budget,
    /// `[recovery]`: what a step task's own `recovery` goes over (D-19, D-23).
    pub recovery: Recovery,
    /// What is off, as nobody trusts it (C-20).
    pub off: Option<Off>,
}

/// What a file had besides its settings.
pub struct Added {
    /// Warnings about it.
    pub findings: Vec<Diagnostic>,
    /// What of it a person would have to trust.
    pub parts: Vec<Part>,
}

impl Config {
    /// Nothing is configured, in this environment.
    pub fn new(environment: &Environment) -> Self {
        Self { environment: environment.clone(), ..Self::default() }
    }

    /// Reads the files in order, without what of the project's is not trusted (C-20), and says what that is.
    ///
    /// # Errors
    /// All findings of the first file that has errors, or all roles that are given to a model that no file has.
    pub fn load(
        environment: &Environment,
        files: &Files,
        gate: Gate,
        observer: &dyn Observer,
    ) -> Result<Self, Error> {
        let mut config = Self::new(environment);
        let said = |findings: &[Diagnostic]| findings.iter().for_each(|finding| observer.finding(finding));
        if let Some(file) = &files.user {
            said(&config.add(file)?.findings);
        }
        if let Some(file) = &files.project {
            let added = config.add_project(file, gate, observer)?;
            said(&added);
        }
        // Another file may have the model: known only after the last.
        let nobodys = config.nobodys_roles();
        if !nobodys.is_empty() {
            return Err(Error::findings(ErrorKind::Environment, nobodys));
        }
        if let Some(off) = &config.off {
            observer.alert(&off.untrusted.finding());
        }
        Ok(config)
    }

    /// Puts what options say over what is configured: servers of `--mcp`, whose warnings go to stderr, and the names of
    /// `--allow-env`.
    ///
    /// # Errors
    /// Exit 2 if there is no such file, exit 4 with all that is wrong with it.
    pub fn add_options(&mut self, chosen: &RunOptions, observer: &dyn Observer) -> Result<(), Error> {
        self.allow_env = joined(std::mem::take(&mut self.allow_env), chosen.allow_env.clone());
        self.add_mcp(chosen.mcp.as_deref(), observer)
    }

    fn add_mcp(&mut self, file: Option<&Path>, observer: &dyn Observer) -> Result<(), Error> {
        let Some(file) = file.map(|file| self.environment.absolute(file)) else { return Ok(()) };
        let limits = DocumentLimits::default();
        let source = selvedge_dialects::document::read_file(&file, &limits)
            .map_err(|diagnostic| Error::findings(ErrorKind::Usage, vec![*diagnostic]))?;
        let source = Source::new(self.environment.shown(&file), source.text());
        let mut diagnostics = Diagnostics::new();
        if let Some(root) = selvedge_dialects::json::parse(&source, &limits, &mut diagnostics) {
            read::read_mcp(&root, file.parent().unwrap_or(Path::new(".")), self, &mut diagnostics);
            mcp::place_off(&root, &source, &mut self.mcp);
        }
        // Keys may stand in it: no value is shown in any line.
        let findings = diagnostics.report(&Source::new(source.name(), &hidden::masked_json(source.text())));
        if diagnostics.has_errors() {
            return Err(Error::findings(ErrorKind::Environment, findings));
        }
        findings.iter().for_each(|finding| observer.finding(finding));
        Ok(())
    }

    /// An error for each role that is given to a model that is not configured (C-14).
    pub fn nobodys_roles(&self) -> Vec<Diagnostic> {
        let names: Vec<&str> = self.models.keys().map(String::as_str).collect();
        let nobodys = self.roles.iter().filter(|(_, name)| !self.models.contains_key(*name));
        let told = nobodys.filter_map(|(role, name)| {
            let configured = match names.as_slice() {
                [] => "none is configured".to_owned(),
                names => format!("configured: {}", names.join(", ")),
            };
            let message = format!("no model is called `{name}`; {configured}");
            let help = match misspelt(name, &names) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("add [models.{name}], or give `{role}` to another model"),
            };
            Some(Diagnostic { message, help, ..self.places.get(role)?.clone() })
        });
        told.collect()
    }

    /// All MCP servers, also those that are not trusted: nobody starts them, and their keys are there.
    pub fn servers(&self) -> impl Iterator<Item = &McpServer> {
        self.mcp.values().chain(self.off.iter().flat_map(|off| &off.servers))
    }

    /// Checks that the folders of tools are there (C-14).
    ///
    /// # Errors
    /// Exit 4 with the places of those that are not.
    pub fn dirs_there(&self) -> Result<(), Error> {
        let lost = self.tool_dirs.iter().filter(|dir| !dir.is_dir());
        let told = lost.filter_map(|dir| {
            let message = format!("there is no folder {}", dir.display());
            let help = "correct `dirs`; its paths start at the folder of this file".to_owned();
            Some(Diagnostic { message, help, ..self.dir_places.get(dir)?.clone() })
        });
        let told: Vec<Diagnostic> = told.collect();
        if told.is_empty() { Ok(()) } else { Err(Error::findings(ErrorKind::Environment, told)) }
    }

    /// Puts a project's file over what there is, as far as it is trusted, and returns its warnings.
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn add_project(
        &mut self,
        file: &Path,
        gate: Gate,
        observer: &dyn Observer,
    ) -> Result<Vec<Diagnostic>, Error> {
        let before = self.clone();
        let Added { findings, parts } = self.add(file)?;
        if let Some(untrusted) = gate.pass(&self.environment, file, parts, observer) {
            self.withhold(untrusted, before, file);
        }
        Ok(findings)
    }

    /// Puts one file over what there is, trusted or not: to act on it takes [`Self::load`].
    ///
    /// # Errors
    /// Exit 4 with all findings of a file that has errors.
    pub fn add(&mut self, file: &Path) -> Result<Added, Error> {
        let name = self.environment.shown(file);
        crate::killed::refuse_of_tool(file)?;
        let limits = DocumentLimits::default();
        let source = match selvedge_dialects::document::read_file(file, &limits) {
            Ok(source) => Source::new(name, source.text()),
            // An empty file configures nothing.
            Err(diagnostic) if diagnostic.code == "empty-document" => {
                return Ok(Added { findings: Vec::new(), parts: Vec::new() });
            }
            Err(diagnostic) => return Err(Error::findings(ErrorKind::Environment, vec![*diagnostic])),
        };
        let mut diagnostics = Diagnostics::new();
        let folder = file.parent().unwrap_or(Path::new("."));
        let (mut promises, mut parts) = (Vec::new(), Vec::new());
        if let Some(root) = toml::parse(&source, &mut diagnostics) {
            promises = read::read(&root, folder, self, &mut diagnostics);
            parts = parts::of(&self.environment, &root, folder, &source);
            mcp::place_off(&root, &source, &mut self.mcp);
        }
        // Places are the same in it; a key that stands in the file is shown in no line of it.
        let shown = Source::new(source.name(), &hidden::masked(&self.environment, source.text()));
        for (promise, span) in promises {
            let code = match promise {
                Promise::Role(_) => "no-such-model",
                Promise::Dir(_) => "no-such-folder",
            };
            let mut place = Diagnostics::new();
            place.push(Finding::error("C-14", code, span, String::new()));
            let Some(place) = place.report(&shown).pop() else { continue };
            let place = Diagnostic { pointer: String::new(), ..place };
            match promise {
                Promise::Role(role) => drop(self.places.insert(role, place)),
                Promise::Dir(dir) => drop(self.dir_places.insert(dir, place)),
            }
        }
        let mut findings = diagnostics.report(&shown);
        // Pointers are JSON's; the line says where it is.
        findings.iter_mut().for_each(|finding| finding.pointer.clear());
        if diagnostics.has_errors() {
            return Err(Error::findings(ErrorKind::Environment, findings));
        }
        Ok(Added { findings, parts })
    }
}

/// The text of a configuration file as a tree of values; `None` if it is no TOML.
pub fn tree_of(text: &str) -> Option<serde_json::Value> {
    let mut diagnostics = Diagnostics::new();
    let root = toml::parse(&Source::new("selvedge.toml", text), &mut diagnostics)?;
    (!diagnostics.has_errors()).then(|| root.to_value())
}

impl Limits {
    fn count(&self, key: &str) -> Option<u64> {
        // Settings are checked to be whole numbers from 0 on where they are read.
        self.values.get(key).map(|value| *value as u64)
    }

    fn size(&self, key: &str, default: usize) -> usize {
        self.count(key).and_then(|count| usize::try_from(count).ok()).unwrap_or(default)
    }

    fn time(&self, key: &str, default: Duration) -> Duration {
        // Thirty years stand for "none"; the clock could not hold much more.
        self.values.get(key).and_then(|s| Duration::try_from_secs_f64(s.min(1e9)).ok()).unwrap_or(default)
    }

    fn millis(&self, key: &str, default: u64) -> u64 {
        let time = self.time(key, Duration::from_millis(default));
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// Limits of documents.
    pub fn document(&self) -> DocumentLimits {
        let default = DocumentLimits::default();
        DocumentLimits {
            document_bytes: self.count("document_bytes").unwrap_or(default.document_bytes),
            nodes: self.size("nodes", default.nodes),
            json_nesting: self.size("json_nesting", default.json_nesting),
            schema_steps: self.count("schema_steps").unwrap_or(default.schema_steps),
        }
    }

    /// Limits that the machine applies.
    pub fn machine(&self) -> selvedge_engine::Limits {
        let default = selvedge_engine::Limits::default();
        selvedge_engine::Limits {
            message_bytes: self.count("message_bytes").unwrap_or(default.message_bytes),
            events: self.count("events").unwrap_or(default.events),
            model_attempts: self
                .count("model_attempts")
                .map_or(default.model_attempts, |attempts| u32::try_from(attempts).unwrap_or(u32::MAX)),
            retry_span_ms: self.millis("retry_span_s", default.retry_span_ms),
            retry_wait_ms: self.millis("retry_wait_s", default.retry_wait_ms),
            rate_limit_wait_ms: self.millis("rate_limit_wait_s", default.rate_limit_wait_ms),
            calls_per_reply: self.count("calls_per_reply").or(default.calls_per_reply),
            schema_steps: self.count("schema_steps").or(default.schema_steps),
            model_request_bytes: self.count("model_request_bytes").unwrap_or(default.model_request_bytes),
            ..default
        }
    }

    /// Limits that the driver applies; options go over settings.
    pub fn driver(&self, max_parallel: Option<u32>, timeout_s: Option<u64>) -> selvedge_runtime::Limits {
        let default = selvedge_runtime::Limits::default();
        let parallel = max_parallel.and_then(|n| usize::try_from(n).ok());
        selvedge_runtime::Limits {
            max_parallel: parallel.unwrap_or_else(|| self.size("max_parallel", default.max_parallel)),
            concurrency: self.size("concurrency", default.concurrency),
            run_timeout_s: timeout_s.or(self.count("run_timeout_s")),
        }
    }

    /// Limits of model calls.
    pub fn calls(&self) -> CallLimits {
        let default = CallLimits::default();
        CallLimits {
            model_timeout: self.time("model_timeout_s", default.model_timeout),
            first_token_timeout: self.time("first_token_timeout_s", default.first_token_timeout),
            message_bytes: self.size("message_bytes", default.message_bytes),
            rate_limit_wait: self.time("rate_limit_wait_s", default.rate_limit_wait),
        }
    }

    /// Limits of tool calls.
    pub fn tools(&self) -> ToolLimits {
        let default = ToolLimits::default();
        ToolLimits {
            tool_timeout_s: self.values.get("tool_timeout_s").copied().unwrap_or(default.tool_timeout_s),
            tool_output_bytes: self.count("tool_output_bytes").unwrap_or(default.tool_output_bytes),
            json_nesting: self.document().nesting_in_force(),
            schema_steps: self.document().schema_steps,
            ..default
        }
    }
}

#[cfg(test)]
mod tests;
