//! The configuration files (C-06, C-14): TOML, read with places, later files over earlier ones.

mod agent;
mod hidden;
mod limits;
mod mcp;
mod model_settings;
pub mod parts;
mod read;
mod recovery;
mod settings;
mod shapes;
mod toml;
mod webhooks;
mod withheld;

pub use settings::{AgentConfig, Config, Limits, ModelConfig, WebhookConfig};
pub use shapes::shapes;
pub use withheld::Off;

pub use hidden::in_addresses as keys_in_addresses;
pub use hidden::not_a_variable;

use crate::environment::Environment;
use crate::error::{Error, ErrorKind};
use crate::observer::Observer;
use crate::options::{RunOptions, joined};
use crate::places;
use crate::places::Files;
use crate::trust::{Gate, Part};
use read::Promise;
use selvedge_dialects::fields::misspelt;
use selvedge_dialects::{Diagnostic, Diagnostics, DocumentLimits, Finding, Source};
use selvedge_tools::mcp::McpServer;
use std::path::Path;

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

    /// What the files of this environment say of keys (C-06), trusted or not: for who shows or writes what a key may have got into, and acts on
    /// nothing.
    pub fn of_keys(environment: &Environment) -> Self {
        let mut config = Self::new(environment);
        for file in places::config_files(environment, environment.cwd()).all() {
            // What is wrong with it is told by the commands that use it.
            let _ = config.add(file);
        }
        config
    }

    /// Reads the files in order, without what of the project's is not trusted (C-20), and says what that is.
    ///
    /// # Errors
    /// All findings of the first file that has errors, or all roles that are given to a model that no file has.
    pub fn load(
        environment: &Environment,
        files: Files,
        gate: Gate,
        observer: &dyn Observer,
    ) -> Result<Self, Error> {
        let mut config = Self { files, ..Self::new(environment) };
        let said = |findings: &[Diagnostic]| findings.iter().for_each(|finding| observer.finding(finding));
        if let Some(file) = config.files.user.clone() {
            said(&config.add(&file)?.findings);
        }
        if let Some(file) = config.files.project.clone() {
            let added = config.add_project(&file, gate, observer)?;
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
    /// `Usage` if there is no such file, `Environment` with all that is wrong with it.
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
    /// `Environment` with the places of those that are not.
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
    /// `Environment` with all findings of a file that has errors.
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

#[cfg(test)]
mod tests;
