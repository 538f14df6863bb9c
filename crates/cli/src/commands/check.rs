//! `selvedge check`: diagnostics only (C-04). Tools are known by their metadata: nothing is installed or run.

use crate::args::{CheckArgs, Common, Reading, Sources};
use crate::block_on::block_on;
use crate::commands::tools::list::showing;
use crate::failure::{Exit, text};
use crate::ui::Ui;
use selvedge_dialects::compile;
use selvedge_dialects::diagnostic::check_json;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostic, Diagnostics, Finding, Severity};
use selvedge_engine::Graph;
use selvedge_host::Environment;
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::error::tool_diagnostic;
use selvedge_host::models;
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::prepare::findings::{choice, kind_of, not_allowed, overdeclared};
use selvedge_host::prepare::naming::Naming;
use selvedge_host::secrets;
use selvedge_host::tools::{Known, Pins};
use selvedge_tools::{Catalogue, CatalogueConfig, Offer, ToolError};
use serde_json::Map;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks documents.
pub(crate) fn check(args: &CheckArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let check = Check::new(&args.reading, common, ui)?;
    let mut findings = Vec::new();
    block_on(0, async {
        for file in &args.files {
            findings.extend(check.one(file).await?.0);
        }
        Ok::<(), Error>(())
    })??;
    if ui.json {
        // For people it was said when the configuration was read.
        findings.extend(check.config.off.as_ref().map(|off| off.untrusted.finding()));
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    print(&findings, errors, args.files.len(), ui);
    Ok(if errors > 0 { kind_of(&findings).into() } else { Exit::Completed })
}

/// Compiles documents without running them, with one configuration.
pub(crate) struct Check<'c> {
    choice: Choice<'c>,
    chosen: RunOptions,
    config: Config,
    state_dir: PathBuf,
    ui: &'c Ui,
}

impl<'c> Check<'c> {
    /// Reads what is configured here.
    pub(crate) fn new(reading: &'c Reading, common: &Common, ui: &'c Ui) -> Result<Self, Error> {
        let choice = choice(reading.plan.as_deref(), reading.dialect.as_deref())?;
        Ok(Self { choice, ..Self::of_tools(&reading.from, common, ui)? })
    }

    /// The same for commands that look at tools, and at no document.
    pub(crate) fn of_tools(from: &Sources, common: &Common, ui: &'c Ui) -> Result<Self, Error> {
        let chosen = crate::options::for_reading(&ui.environment, from)?;
        let mut config = Config::load(
            &ui.environment,
            &places::config_files(&ui.environment, &chosen.cwd),
            ui.gate(common)?,
            ui,
        )?;
        config.add_options(&chosen, ui)?;
        let state_dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
        Ok(Self { choice: Choice::default(), chosen, config, state_dir, ui })
    }

    /// The state folder.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The tools that a document in the current folder could name, to look at, and what is wrong with those of these names.
    pub(crate) async fn catalogue(&self, names: &[&str]) -> Result<Catalogue, Error> {
        let here = self.ui.environment.cwd().to_owned();
        let mut settings = self.settings(&here)?;
        (settings.wanted.any, settings.replay) = (true, true);
        settings.wanted.names = names.iter().map(|name| Arc::from(*name)).collect();
        Ok(Catalogue::load(settings).await?)
    }

    /// Where the tools of documents in `workspace` come from.
    pub(crate) fn settings(&self, workspace: &Path) -> Result<CatalogueConfig, Error> {
        selvedge_host::tools::settings(
            &self.chosen,
            &self.config,
            &self.state_dir,
            workspace,
            &self.ui.observer(),
        )
    }

    /// The keys that are never recorded (C-06).
    pub(crate) fn secrets(&self) -> Vec<secrets::Known> {
        secrets::named(&self.config)
    }

    /// A talker that shows none of them.
    pub(crate) fn guarded(&self, ui: &Ui) -> Ui {
        ui.guarded_by(&self.config)
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

    /// What is found about one document, and its graph unless there are errors.
    pub(crate) async fn one(&self, file: &Path) -> Result<(Vec<Diagnostic>, Option<Graph>), Error> {
        let (chosen, config) = (&self.chosen, &self.config);
        let limits = config.limits.document();
        let source = match selvedge_dialects::document::read_file(file, &limits) {
            Ok(source) => source,
            Err(diagnostic) => return Ok((vec![*diagnostic], None)),
        };
        // Nothing else is said about it: any line that is shown might hold the key (C-06).
        let secrets = secrets::in_document(&secrets::named(config), &source, &limits);
        if !secrets.is_empty() {
            return Ok((secrets, None));
        }
        let mut diagnostics = Diagnostics::new();
        if let Some(document) = compile::read(&source, self.choice, &limits, &mut diagnostics) {
            let known = secrets::named(config);
            let others = document.others().iter();
            let secrets: Vec<_> =
                others.flat_map(|other| secrets::in_document(&known, other, &limits)).collect();
            if !secrets.is_empty() {
                return Ok((secrets, None));
            }
            let capabilities = selvedge_host::compose::capabilities(&document, chosen, config);
            let (wanted, workspace) = (
                selvedge_host::tools::wanted(&document, &capabilities),
                selvedge_host::places::workspace(&config.environment, file),
            );
            let catalogue = selvedge_host::tools::catalogue_of(
                wanted,
                chosen,
                config,
                &self.state_dir,
                &workspace,
                &self.ui.observer(),
            )
            .await?;
            let names = document.tools();
            let unloaded = ready(&catalogue, &names).await;
            // Values of inputs come with a run; that some are missing here is no finding.
            let initial = document.inputs(&Map::new(), &mut Diagnostics::new());
            let tools = Known { catalogue: &catalogue, pins: &Pins::new(), environment: &config.environment };
            let graph = document.compile(&tools, &initial, &capabilities, &mut diagnostics);
            if let Some(role) = models::unplayed(chosen, config, &document.models()) {
                let (message, help) = models::unplayed_words(&role, chosen, config);
                for span in Naming::of_models(&source, limits).of(&role) {
                    let finding = Finding::warning("C-08", "no-model-for-role", *span, message.clone());
                    diagnostics.push(finding.help(help.clone()));
                }
            }
            let places = Naming::of_tools(&source, limits);
            // A run may be given permissions that a check is not: only a warning.
            for finding in graph.iter().flat_map(|graph| not_allowed(graph, &catalogue, &places).0) {
                diagnostics.push(Finding { severity: Severity::Warning, ..finding });
            }
            let called = graph.as_ref().map_or_else(|| names.clone(), selvedge_host::tools::called);
            for finding in unchecked(&called, &catalogue, &places, &chosen.tools, &config.environment) {
                diagnostics.push(finding);
            }
            let (placed, unplaced) = overdeclared(&names, &catalogue, &places);
            for finding in placed {
                diagnostics.push(Finding { severity: Severity::Warning, ..finding });
            }
            // A file that does not load is said before what follows from it.
            let mut found: Vec<Diagnostic> = unloaded.into_iter().map(tool_diagnostic).collect();
            found.extend(diagnostics.report(&source));
            let mut findings = with_broken(found, &names, &catalogue);
            findings.extend(self.keys_in_commands(&names));
            let as_warning = |error| Diagnostic { severity: Severity::Warning, ..tool_diagnostic(error) };
            findings.extend(unplaced.into_iter().map(as_warning));
            let graph = graph.filter(|_| findings.iter().all(|finding| finding.severity != Severity::Error));
            return Ok((findings, graph));
        }
        Ok((diagnostics.report(&source), None))
    }
}

/// Gets the schemas of named tools as far as that takes moments, so that what they refuse is found. The errors are of those
/// that do not load.
async fn ready(catalogue: &Catalogue, names: &[Arc<str>]) -> Vec<ToolError> {
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
    environment: &Environment,
) -> Vec<Finding> {
    let unknown = names
        .iter()
        .filter(|name| catalogue.contains(name) && catalogue.is_fit(name) && catalogue.def(name).is_none());
    let finding = |name: &Arc<str>| {
        let span = *places.of(name).first()?;
        let message = format!("what `{name}` is given is not checked: its schema is not known yet");
        let show = showing(name, folders, environment);
        let help = format!("build its environment, which takes moments: `{show}`; a run checks it first");
        Some(Finding::warning("D-15", "schema-unknown", span, message).help(help))
    };
    unknown.filter_map(finding).collect()
}

/// The findings with those about tool files that are wrong: errors, and first, if the document may mean them.
fn with_broken(findings: Vec<Diagnostic>, names: &[Arc<str>], catalogue: &Catalogue) -> Vec<Diagnostic> {
    let (mut all, others) = selvedge_host::tools::broken(catalogue, names.iter().map(|name| &**name));
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

fn print(findings: &[Diagnostic], errors: usize, files: usize, ui: &Ui) {
    if ui.json {
        ui.result(&format!("{}\n", check_json(findings)));
        return;
    }
    for finding in findings {
        ui.error_text(&text(finding, ui.colour));
    }
    let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let warnings = findings.len() - errors;
    ui.note(&format!("{}: {}, {}", count(files, "file"), count(errors, "error"), count(warnings, "warning")));
}

/// Warnings about a document, in a line each, where something else was asked for: `check` shows their places, and what
/// to do about them.
pub(crate) fn brief(findings: &[Diagnostic], ui: &Ui) {
    /// Lines at most.
    const LISTED: usize = 10;
    let warnings: Vec<&Diagnostic> =
        findings.iter().filter(|finding| finding.severity == Severity::Warning).collect();
    for warning in warnings.iter().take(LISTED) {
        let text = text(warning, ui.colour);
        ui.note(text.lines().next().unwrap_or_default());
    }
    if !warnings.is_empty() {
        let more = warnings.len().saturating_sub(LISTED);
        let more = if more > 0 { format!("… {more} more warnings; ") } else { String::new() };
        ui.note(&ui.paint("2", &format!("  {more}`selvedge check` shows the places, and what to do")));
    }
}
