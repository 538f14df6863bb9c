//! `selvedge run`: read, check, prepare, record, drive.
//!
//! Everything that can be wrong with the call, the document or the machine is found before the run is recorded,
//! cheapest first, so that nothing half-runs.

use crate::args::{Common, RunArgs};
use crate::commands::check;
use crate::commands::ids::{checked_id, fresh_id};
use crate::commands::naming::Naming;
use crate::commands::tools;
use crate::drive::Drive;
use crate::failure::Exit;
use crate::setup::{self, Known, Pins, block_on};
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_dialects::compile::{self, Document, ToolSource};
use selvedge_dialects::{Diagnostic, Diagnostics, Dialect, Finding, Means, Source};
use selvedge_engine::{Budget, Graph, Input, Record, Start, State, Warning};
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::error::tool_diagnostic;
use selvedge_host::models::{self, Models};
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::secrets;
use selvedge_host::text::one_line;
use selvedge_store::{BlobHash, DriverLock, Entry, NewRun, RunStatus, Store};
use selvedge_tools::{Catalogue, ErrorClass, Offer, ToolError};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A document that was read and found to be right by itself.
pub(super) struct Read {
    source: Source,
    document: Document,
    initial: Map<String, Value>,
    diagnostics: Diagnostics,
}

/// Everything that a run needs and that can fail.
pub(super) struct Prepared {
    pub(super) graph: Arc<Graph>,
    pub(super) catalogue: Catalogue,
    pub(super) models: Models,
    pub(super) warnings: Vec<Warning>,
    pub(super) initial: Map<String, Value>,
    pub(super) name: String,
    pub(super) dialect: &'static str,
    /// The document's own caps.
    pub(super) budget: Budget,
}

/// A run's caps: options over the document's over the configuration's (E-20).
pub(super) fn budget(document: Budget, chosen: &RunOptions, config: &Config) -> Budget {
    let by_rank = [chosen.budget, document, config.budget];
    Budget {
        calls: by_rank.iter().find_map(|budget| budget.calls),
        tokens: by_rank.iter().find_map(|budget| budget.tokens),
        cost: by_rank.iter().find_map(|budget| budget.cost),
    }
}

/// Runs a document.
pub(crate) fn run(args: &RunArgs, common: &Common, mut ui: Ui) -> Result<Exit, Error> {
    let mut chosen = crate::options::for_run(&ui.environment, &args.exec)?;
    chosen.document = ui.environment.absolute(&args.file);
    chosen = chosen.recordable()?;
    chosen.inputs = selvedge_host::options::inputs(&args.exec.input)?;
    let id = match &args.exec.run_id {
        Some(id) => checked_id(id)?,
        None => fresh_id(),
    };
    let mut config = Config::load(
        &ui.environment,
        &places::config_files(&ui.environment, &chosen.cwd),
        ui.gate(common)?,
        &ui,
    )?;
    config.add_options(&chosen, &ui)?;
    let known = secrets::named_with(&config, chosen.base_url.as_deref());
    secrets::refuse_choices(&known, Some(&id), &chosen)?;
    secrets::refuse_inputs(&known, &chosen.inputs)?;
    let read = read(&args.file, &chosen, &config, &chosen.inputs)?;
    let state_dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    block_on(read.source.text().len(), async {
        let (signals, none) = (Signals::listen(&ui), Pins::new());
        let prepared = tokio::select! {
            biased;
            () = signals.came() => return Err(setup::interrupted()),
            prepared = prepare(read, &none, &mut chosen, &config, &state_dir, &ui) => {
                prepared.map_err(|failure| config.explained(failure))?
            }
        };
        ui.secrets = prepared.models.secrets.clone();
        if let Some(script) = chosen.script.as_ref().filter(|_| prepared.models.scripted) {
            ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
        }
        chosen.warnings = prepared.warnings.clone();
        let store = Arc::new(setup::open_or_make(&ui.environment, &state_dir).map_err(Error::before_run)?);
        let limits = config.limits.driver(chosen.max_parallel, chosen.timeout_s);
        let (state, lock) = record(&store, &id, &chosen, &config, &prepared).await?;
        ui.note(&format!("run {id}"));
        let Prepared { graph, catalogue, models, warnings, .. } = prepared;
        let driver = setup::driver(&models, &catalogue, limits, &ui.environment);
        let drive =
            Drive { ui: &ui, store, run: id, state, graph, scripted: models.scripted, warnings, lock };
        let exit = drive.go(driver, Vec::new(), &signals).await;
        catalogue.close().await;
        Ok(exit)
    })?
}

/// Reads the document and its inputs (P-23). `written` are those of them that this command names.
pub(super) fn read(
    file: &Path,
    chosen: &RunOptions,
    config: &Config,
    written: &Map<String, Value>,
) -> Result<Read, Error> {
    let limits = config.limits.document();
    let source = selvedge_dialects::document::read_file(file, &limits)
        .map_err(|diagnostic| Error::findings(selvedge_host::ErrorKind::Usage, vec![*diagnostic]))?;
    secrets::refuse_document(&secrets::named(config), &source, &limits)?;
    let mut diagnostics = Diagnostics::new();
    let choice = check::choice(chosen.plan.as_deref(), chosen.dialect.as_deref())?;
    let document = compile::read(&source, choice, &limits, &mut diagnostics);
    for other in document.iter().flat_map(|document| document.others()) {
        secrets::refuse_document(&secrets::named(config), other, &limits)?;
    }
    let Some(document) = document.filter(|_| !diagnostics.has_errors()) else {
        return Err(Error::findings(selvedge_host::ErrorKind::Usage, diagnostics.report(&source)));
    };
    document.head().misspelt_inputs(written.keys(), &mut diagnostics);
    let initial = document.inputs(&chosen.inputs, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(Error::findings(selvedge_host::ErrorKind::Usage, diagnostics.report(&source)));
    }
    Ok(Read { source, document, initial, diagnostics })
}

/// Finds tools and models and compiles the document. Tools of `pins` stand in for those that are nowhere else.
pub(super) async fn prepare(
    read: Read,
    pins: &Pins,
    chosen: &mut RunOptions,
    config: &Config,
    state_dir: &Path,
    ui: &Ui,
) -> Result<Prepared, Error> {
    let workspace = setup::workspace(&ui.environment, &chosen.document);
    let mut means = setup::means(&read.document, chosen, config);
    let wanted = setup::wanted(&read.document, &means);
    let catalogue = setup::catalogue_of(wanted, chosen, config, state_dir, &workspace, ui).await?;
    let names = read.document.tools();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    whole(&catalogue, &names)?;
    let places = Naming::of_tools(&read.source, config.limits.document());
    let mut refused = read.refused(check::overdeclared(&read.document.tools(), &catalogue, &places));
    // A wrong document is wrong whatever models there are: it is told before they are looked for. Schemas of
    // Python tools may not be known yet; then a sketch of them stands in, and the real ones are checked below.
    let known = names.iter().all(|name| !catalogue.contains(name) || catalogue.def(name).is_some());
    let sketched = !known || means.model;
    let tools = Known { catalogue: &catalogue, pins, environment: &config.environment };
    let compiled = compiled(&read, &tools, &means);
    if let (Ok((graph, _)), false) = (&compiled, refused.is_empty()) {
        // All that is not allowed at once.
        refused.extend(read.denied(graph, &catalogue, config));
        refused.sort_by_key(|found| (found.line, found.column));
    }
    let compiled = compiled.map(|done| Some(done).filter(|_| !sketched));
    // A tool that is not there may be the one whose file is wrong: that is said first.
    let compiled =
        compiled.map_err(|failure| failure.behind(setup::broken(&catalogue, names.iter().copied()).0));
    let compiled = match compiled {
        Ok(_) if !refused.is_empty() => return Err(Error::findings(check::kind_of(&refused), refused)),
        Err(failure) => return Err(failure.and(refused)),
        Ok(compiled) => compiled,
    };
    let (models, roles) = find_models(&read, &mut means, chosen, config, ui).await?;
    catalogue.prepare(&names).await?;
    let plans = !read.document.models().is_empty();
    if means.model || plans && read.document.dialect() == Dialect::Steps {
        // Who plans is told all schemas (D-21); who is only asked if a step fails may never be asked (D-17).
        let offer = if plans { Offer::Whole } else { Offer::Light };
        let others = catalogue.offered().into_iter().filter(|name| !names.contains(&&**name));
        setup::offer(&catalogue, others.collect(), offer, ui).await;
    }
    let (graph, diagnostics) = match compiled {
        Some(done) => done,
        None => self::compiled(&read, &tools, &means)?,
    };
    read.allowed(&graph, &catalogue, config)?;
    let mut warnings = check::warnings(&diagnostics.report(&read.source), &graph);
    let mut others = catalogue.warnings().to_vec();
    let callable: Vec<&str> = graph.tools.keys().map(|name| &**name).collect();
    others.extend(catalogue.isolation_warnings(&callable).await);
    others.extend(models.unsent(&graph));
    if budget(read.document.budget(), chosen, config).cost.is_some() {
        others.extend(models::unpriced(chosen, config, &roles));
    }
    once(&mut others);
    tell(&diagnostics, &read.source, &others, ui);
    warnings.extend(others);
    // It was said when the configuration was read.
    warnings.extend(config.untrusted_warning());
    let document = &read.document;
    let stem = || chosen.document.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = document.name().map(str::to_owned).or_else(stem).unwrap_or_default();
    let (dialect, budget) = (document.dialect().name(), document.budget());
    let initial = read.initial;
    Ok(Prepared { graph: Arc::new(graph), catalogue, models, warnings, initial, name, dialect, budget })
}

/// The models of the roles that the document can't do without, and, unless `means` says otherwise, of those that it can
/// do without (D-17): where those can't be had, it runs as without a model. With the roles that are played.
async fn find_models(
    read: &Read,
    means: &mut Means,
    chosen: &mut RunOptions,
    config: &Config,
    ui: &Ui,
) -> Result<(Models, Vec<Arc<str>>), Error> {
    let needed = read.document.models();
    let mut roles = needed.clone();
    if means.model {
        roles.extend(read.document.optional_models(means).into_iter().filter(|role| !needed.contains(role)));
    }
    let failure = match models::prepare(chosen, config, &roles, &ui.environment.http()).await {
        Ok(models) => return Ok((models, roles)),
        Err(failure) => failure,
    };
    if !needed.is_empty() || !means.model {
        return Err(read.placed(failure, chosen, config, &roles));
    }
    means.model = false;
    let models = models::prepare(chosen, config, &needed, &ui.environment.http()).await?;
    let why = failure.diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
    ui.note(&format!("note: no model can be asked when a step fails: {}", one_line(why, 1000)));
    Ok((models, needed))
}

/// Leaves out what has been said about a node before; a model node may hold the same request several times.
fn once(warnings: &mut Vec<Warning>) {
    let mut seen = BTreeSet::new();
    warnings.retain(|warning| {
        let about = warning.node.as_deref().unwrap_or(&warning.message);
        seen.insert((warning.code.to_string(), warning.node.is_some(), about.to_owned()))
    });
}

impl Read {
    /// Refuses fixed calls of built-ins that can only be denied, with the places of their names.
    fn allowed(&self, graph: &Graph, catalogue: &Catalogue, config: &Config) -> Result<(), Error> {
        let refused = self.denied(graph, catalogue, config);
        if refused.is_empty() {
            Ok(())
        } else {
            Err(Error::findings(selvedge_host::ErrorKind::Usage, refused))
        }
    }

    /// What is said of fixed calls of built-ins that can only be denied.
    fn denied(&self, graph: &Graph, catalogue: &Catalogue, config: &Config) -> Vec<Diagnostic> {
        self.refused(check::not_allowed(
            graph,
            catalogue,
            &Naming::of_tools(&self.source, config.limits.document()),
        ))
    }

    /// Findings about tools that are not allowed, with their places in the document as far as they are known.
    fn refused(&self, (placed, unplaced): (Vec<Finding>, Vec<ToolError>)) -> Vec<Diagnostic> {
        let mut found = Diagnostics::new();
        placed.into_iter().for_each(|finding| found.push(finding));
        let mut refused = found.report(&self.source);
        refused.extend(unplaced.into_iter().map(tool_diagnostic));
        refused
    }

    /// A failure about a model that nobody plays, at the place in the document that names it (C-08).
    fn placed(&self, failure: Error, chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> Error {
        let of_role = failure.diagnostics.first().is_some_and(|first| first.code == "no-model-for-role");
        let Some(role) = models::unplayed(chosen, config, roles).filter(|_| of_role) else { return failure };
        match Naming::of_models(&self.source, config.limits.document()).of(&role).first() {
            Some(span) => {
                let (message, help) = models::unplayed_words(&role, chosen, config);
                let mut found = Diagnostics::new();
                found.push(Finding::error("C-08", "no-model-for-role", *span, message).help(help));
                Error::findings(failure.kind, found.report(&self.source))
            }
            None => failure,
        }
    }
}

/// Refuses tools whose files are wrong.
fn whole(catalogue: &Catalogue, names: &[&str]) -> Result<(), Error> {
    let mut broken: Vec<_> = names.iter().filter_map(|name| catalogue.broken().get(*name).cloned()).collect();
    // Those that are wrong in the document are told at their places by the compiler (C-04).
    let placed = |error: &ToolError| error.file.is_none() && error.class == ErrorClass::Document;
    if broken.iter().any(placed) {
        broken.retain(|error| error.file.is_some());
    }
    // A server that does not start is told once, not for each of its tools.
    broken.dedup_by(|a, b| a.message == b.message);
    // An MCP server that does not start is no error of the document (C-03).
    if broken.is_empty() { Ok(()) } else { Err(selvedge_tools::CatalogueErrors(broken).into()) }
}

/// Compiles the document with these tools; the findings are those of reading and of compiling.
fn compiled(read: &Read, tools: &dyn ToolSource, means: &Means) -> Result<(Graph, Diagnostics), Error> {
    let mut diagnostics = read.diagnostics.clone();
    match read.document.compile(tools, &read.initial, means, &mut diagnostics) {
        Some(graph) if !diagnostics.has_errors() => Ok((graph, diagnostics)),
        _ => Err(Error::findings(selvedge_host::ErrorKind::Usage, diagnostics.report(&read.source))),
    }
}

fn tell(diagnostics: &Diagnostics, source: &Source, others: &[Warning], ui: &Ui) {
    check::brief(&diagnostics.report(source), ui);
    for warning in others {
        ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), one_line(&warning.message, 4000)));
    }
}

/// Creates the run: from here on it exists, and its first event is durable (E-04).
async fn record(
    store: &Store,
    id: &str,
    chosen: &RunOptions,
    config: &Config,
    prepared: &Prepared,
) -> Result<(State, DriverLock), Error> {
    let lock = store.drive(id)?;
    let pinned = prepared.graph.tools.values().map(|tool| &**tool);
    tools::record::pin(store, &prepared.catalogue, pinned, &secrets::named(config)).await?;
    let unwritable =
        |error: serde_json::Error| Error::internal(&format!("the run can't be written: {error}"));
    let compiled = serde_json::to_vec(&*prepared.graph).map_err(unwritable)?;
    let graph = BlobHash::of(&compiled);
    let start = Start {
        graph: graph.to_string().into(),
        initial: prepared.initial.clone(),
        sequential: chosen.sequential,
        budget: budget(prepared.budget, chosen, config),
        limits: config.limits.machine(),
        models: prepared.models.names.clone(),
        edition: selvedge_engine::EDITION,
    };
    let mut state = State::new(Arc::clone(&prepared.graph));
    let at = state.tick(now_ms());
    let event = state
        .accept(Input::Start(Box::new(start)))
        .ok_or_else(|| Error::internal("a new run can't start"))?;
    let json = serde_json::to_string(&event).map_err(unwritable)?;
    state.apply_record(&Record { at, event });
    let run = NewRun {
        id: id.to_owned(),
        name: prepared.name.clone(),
        dialect: prepared.dialect.to_owned(),
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(graph),
        scripted: prepared.models.scripted,
        options: chosen.to_stored().map_err(unwritable)?,
        fork: None,
    };
    let created = store.create_run_with_graph(run, compiled, vec![Entry { n: 1, at_ms: at, json }]).await;
    created.map_err(Error::before_run)?;
    Ok((state, lock))
}

/// Milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_said_once() {
        let of = |code: &str, message: &str| Warning {
            code: code.into(),
            message: message.to_owned(),
            node: None,
        };
        let said = [of("tool-left-out", "x"), of("tool-left-out", "y")];
        let at = |node: &str| Warning::at("setting-not-sent", &node.into(), "m".to_owned());
        let mut all = [&said[..], &[at("n"), at("m"), at("n")]].concat();
        once(&mut all);
        assert_eq!(all, [&said[..], &[at("n"), at("m")]].concat());
    }
}
