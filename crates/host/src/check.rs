//! What is found about a document without running it (C-04). Tools are known by their metadata: nothing is installed or run.

use crate::config::Config;
use crate::error::{Error, tool_diagnostic};
use crate::host::Host;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::prepare::findings::{choice, not_allowed, overdeclared};
use crate::prepare::naming::Naming;
use crate::tools::{self, Known, Pins};
use crate::ways::WayOut;
use crate::{compose, models, places, prepare, secrets};
use selvedge_dialects::compile::{self, Document};
use selvedge_dialects::{Diagnostic, Diagnostics, Finding, Severity, Source};
use selvedge_engine::{Budget, Graph};
use selvedge_tools::{Catalogue, CatalogueConfig, Offer, ToolError};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks at documents and tools with one configuration.
pub struct Check {
    /// What is configured.
    pub config: Config,
    /// The state folder.
    pub state_dir: PathBuf,
    options: RunOptions,
    /// The names of the inputs that are given.
    pub(crate) given: Vec<String>,
    observer: Arc<dyn Observer>,
}

/// What was found about a document.
#[derive(Debug, Default)]
pub struct Checked {
    /// All that is wrong with it or doubtful, each with its place.
    pub findings: Vec<Diagnostic>,
    /// What it lowers to, unless there are errors.
    pub graph: Option<Graph>,
}

/// What is known of a document that could be compiled, besides what it lowers to.
pub(crate) struct Compiled {
    /// Its tools.
    pub(crate) catalogue: Catalogue,
    /// The first data layer, as far as it is given.
    pub(crate) initial: Map<String, Value>,
    /// Inputs without a value, each with its type if it says one.
    pub(crate) missing: Vec<(Arc<str>, Option<&'static str>)>,
    /// The document's own caps.
    pub(crate) budget: Budget,
}

/// For what a document is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// To tell what is found.
    Reading,
    /// To run it in a world in which every model answers.
    Simulation,
}

impl Checked {
    fn of(findings: Vec<Diagnostic>) -> Self {
        Self { findings, graph: None }
    }
}

impl Host {
    /// Looks at documents and tools as a run with these choices would.
    ///
    /// # Errors
    /// Something is wrong with the choices or the configuration.
    pub fn check(&self, options: RunOptions) -> Result<Check, Error> {
        choice(options.plan.as_deref(), options.dialect.as_deref())?;
        let (config, observer) = (self.config(&options)?, Arc::clone(&self.observer));
        let given = options.input_names();
        Ok(Check { config, state_dir: self.state_dir()?, options, given, observer })
    }
}

impl Check {
    /// The tools that a document in the current folder could name, to look at, and what is wrong with those of these names.
    ///
    /// # Errors
    /// Tools can't be looked for.
    pub async fn catalogue(&self, names: &[&str]) -> Result<Catalogue, Error> {
        let here = self.config.environment.cwd().to_owned();
        let mut settings = self.settings(&here)?;
        (settings.wanted.any, settings.replay) = (true, true);
        settings.wanted.names = names.iter().map(|name| Arc::from(*name)).collect();
        Ok(Catalogue::load(settings).await?)
    }

    /// Where the tools of documents in `workspace` come from.
    ///
    /// # Errors
    /// A folder of tools is not there.
    pub fn settings(&self, workspace: &Path) -> Result<CatalogueConfig, Error> {
        tools::settings(&self.options, &self.config, &self.state_dir, workspace, &self.observer)
    }

    /// Who hears what goes on.
    pub(crate) fn observer(&self) -> &dyn Observer {
        self.observer.as_ref()
    }

    /// The keys that are never recorded (C-06).
    pub fn secrets(&self) -> Vec<secrets::Known> {
        secrets::named(&self.config)
    }

    /// What is found about one document.
    ///
    /// # Errors
    /// Tools can't be looked for. What is wrong with the document is a finding.
    pub async fn document(&self, file: &Path) -> Result<Checked, Error> {
        Ok(self.looked_at(file, For::Reading).await?.0)
    }

    /// The same of a document that is to run in a world in which every model answers, with what it compiles to; nothing if there are
    /// errors.
    pub(crate) async fn simulated(&self, file: &Path) -> Result<(Checked, Option<Compiled>), Error> {
        self.looked_at(file, For::Simulation).await
    }

    async fn looked_at(&self, file: &Path, what_for: For) -> Result<(Checked, Option<Compiled>), Error> {
        let none = |findings| Ok((Checked::of(findings), None));
        let limits = self.config.limits.document();
        let source = match prepare::source(file, &self.options, &limits) {
            Ok(source) => source,
            Err(diagnostic) => return none(vec![*diagnostic]),
        };
        let in_document = |source: &Source| secrets::in_document(&self.secrets(), source, &limits);
        // Nothing else is said about it: any line that is shown might hold the key (C-06).
        let found = in_document(&source);
        if !found.is_empty() {
            return none(found);
        }
        let choice = choice(self.options.plan.as_deref(), self.options.dialect.as_deref())?;
        let mut diagnostics = Diagnostics::new();
        let Some(document) = compile::read(&source, choice, &limits, &mut diagnostics) else {
            return none(diagnostics.report(&source));
        };
        let found: Vec<_> = document.others().iter().flat_map(in_document).collect();
        if !found.is_empty() {
            return none(found);
        }
        self.compiled(file, &source, &document, diagnostics, what_for).await
    }

    /// Compiles a document that holds no key.
    async fn compiled(
        &self,
        file: &Path,
        source: &Source,
        document: &Document,
        mut diagnostics: Diagnostics,
        what_for: For,
    ) -> Result<(Checked, Option<Compiled>), Error> {
        let (options, config) = (&self.options, &self.config);
        let mut capabilities = compose::capabilities(document, options, config);
        if what_for == For::Simulation {
            capabilities.model = !document.optional_models(&capabilities).is_empty();
        }
        let wanted = tools::wanted(document, &capabilities);
        let workspace = places::workspace(&config.environment, file);
        let catalogue =
            tools::catalogue_of(wanted, options, config, &self.state_dir, &workspace, &self.observer).await?;
        let names = document.tools();
        let unloaded = get_ready(&catalogue, &names).await;
        // Values of inputs come with a run; that some are missing here is no finding.
        let mut of_inputs = Diagnostics::new();
        let mut given = options.clone();
        given.read_inputs(Some(document.head()))?;
        document.head().unknown_inputs(self.given.iter(), &mut of_inputs);
        let initial = document.inputs(&given.inputs, &mut of_inputs);
        let of_values = of_inputs.findings().iter().filter(|finding| finding.code != "missing-input");
        of_values.for_each(|finding| diagnostics.push(finding.clone()));
        let known = Known { catalogue: &catalogue, pins: &Pins::new(), environment: &config.environment };
        let graph = document.compile(&known, &initial, &capabilities, &mut diagnostics);
        if what_for == For::Reading {
            self.unplayed(source, document, &mut diagnostics);
        }
        let as_warning = |finding| Finding { severity: Severity::Warning, ..finding };
        let places = Naming::of_tools(source, config.limits.document());
        // A run may be given permissions that a check is not: only a warning.
        let denied = graph.as_ref().map(|graph| not_allowed(graph, &catalogue, &places));
        let (denied, denied_elsewhere) = denied.unwrap_or_default();
        denied.into_iter().map(as_warning).for_each(|finding| diagnostics.push(finding));
        let called = graph.as_ref().map_or_else(|| names.clone(), tools::called);
        let unchecked = unchecked(&called, &catalogue, &places, &options.tools);
        unchecked.into_iter().for_each(|finding| diagnostics.push(finding));
        let (placed, unplaced) = overdeclared(&names, &catalogue, &places);
        placed.into_iter().map(as_warning).for_each(|finding| diagnostics.push(finding));
        // A file that does not load is said before what follows from it.
        let mut found: Vec<Diagnostic> = unloaded.into_iter().map(tool_diagnostic).collect();
        found.extend(diagnostics.report(source));
        let mut findings = with_broken(found, &names, &catalogue);
        findings.extend(self.keys_in_commands(&names));
        let as_warning = |error| Diagnostic { severity: Severity::Warning, ..tool_diagnostic(error) };
        findings.extend(unplaced.into_iter().chain(denied_elsewhere).map(as_warning));
        let graph = graph.filter(|_| findings.iter().all(|finding| finding.severity != Severity::Error));
        let missing = document.head().inputs.iter().filter(|input| !initial.contains_key(&*input.name.value));
        let missing = missing.map(|input| {
            let kind = input.kind.as_ref().map(|kind| kind.value.name());
            (Arc::clone(&input.name.value), kind)
        });
        let compiled = Compiled { missing: missing.collect(), catalogue, budget: document.budget(), initial };
        let compiled = Some(compiled).filter(|_| graph.is_some());
        Ok((Checked { findings, graph }, compiled))
    }

    /// A model that nobody plays here: a run may be given one.
    fn unplayed(&self, source: &Source, document: &Document, diagnostics: &mut Diagnostics) {
        let Some(role) = models::unplayed(&self.options, &self.config, &document.models()) else { return };
        let (message, help) = models::unplayed_words(&role, &self.options, &self.config);
        for span in Naming::of_models(source, self.config.limits.document()).of(&role) {
            let finding = Finding::warning("C-08", "no-model-for-role", *span, message.clone());
            diagnostics.push(finding.help(help.clone()));
        }
    }

    /// Keys in the definitions of command tools, each of which a run that calls one of them would record (C-06).
    fn keys_in_commands(&self, called: &[Arc<str>]) -> impl Iterator<Item = Diagnostic> {
        let known = self.secrets();
        self.config.commands.values().filter_map(move |tool| {
            let found = secrets::in_command(&known, tool)?;
            let is_called = called.iter().any(|name| **name == tool.name);
            Some(if is_called { found } else { Diagnostic { severity: Severity::Warning, ..found } })
        })
    }
}

/// Gets the schemas of named tools as far as that takes moments, so that what they refuse is found. The errors are of those
/// that do not load.
async fn get_ready(catalogue: &Catalogue, names: &[Arc<str>]) -> Vec<ToolError> {
    let new = |name: &&Arc<str>| catalogue.is_fit(name) && catalogue.def(name).is_none();
    let new: Vec<Arc<str>> = names.iter().filter(new).cloned().collect();
    if new.is_empty() {
        return Vec::new();
    }
    catalogue.offer(&new, Offer::Light).await.into_iter().map(|(_, error)| error).collect()
}

/// Tools that the document itself calls and whose schema is not known without building their environment first: what they are given is not checked,
/// which must not look as if it were right (D-15).
fn unchecked(
    names: &[Arc<str>],
    catalogue: &Catalogue,
    places: &Naming<'_>,
    folders: &[PathBuf],
) -> Vec<Finding> {
    let unknown = names
        .iter()
        .filter(|name| catalogue.contains(name) && catalogue.is_fit(name) && catalogue.def(name).is_none());
    let finding = |name: &Arc<str>| {
        let span = *places.of(name).first()?;
        let message = format!("what `{name}` is given is not checked: its schema is not known yet");
        let show = WayOut::ShowTool { name, folders };
        let help = format!("build its environment, which takes moments: `{show}`; a run checks it first");
        Some(Finding::warning("D-15", "schema-unknown", span, message).help(help))
    };
    unknown.filter_map(finding).collect()
}

/// The findings with those about tool files that are wrong: errors, and first, if the document may mean them.
fn with_broken(findings: Vec<Diagnostic>, names: &[Arc<str>], catalogue: &Catalogue) -> Vec<Diagnostic> {
    let (mut all, others) = tools::broken(catalogue, names.iter().map(|name| &**name));
    all.extend(findings);
    all.extend(others.into_iter().map(|finding| Diagnostic {
        severity: Severity::Warning,
        message: format!("the tool file is left out: {}", finding.message),
        ..finding
    }));
    // What is in no file is told where the document has the name.
    let elsewhere =
        catalogue.broken().iter().filter(|(name, error)| error.file.is_none() && !names.contains(name));
    all.extend(
        elsewhere
            .map(|(_, error)| Diagnostic { severity: Severity::Warning, ..tool_diagnostic(error.clone()) }),
    );
    all
}
