//! The composition: configuration, store, models, tools and driver of one command.

use crate::commands::tools::library;
use crate::ui::Ui;
use selvedge_dialects::Diagnostic;
use selvedge_dialects::compile::{Document, NameTrouble, ToolSource};
use selvedge_dialects::{Dialect, Means, steps};
use selvedge_engine::graph::Act;
use selvedge_engine::{
    Failure as CallFailure, FaultKind, Graph, ModelReply, ModelRequest, ToolDef, ToolRequest, Warning,
};
use selvedge_host::Environment;
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::error::tool_diagnostic;
use selvedge_host::hints::or_meant;
use selvedge_host::models::{self, Models};
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::secrets::{clean_model, clean_operations, clean_tools};
use selvedge_host::text::one_line;
use selvedge_runtime::{CallContext, Driver, Model, Pending, Tools};
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::process::finish_dropped_calls;
use selvedge_store::{DB_FILE, Mode, RunFilter, Store, StoreError};
use selvedge_tools::leftovers::of_a_dropped_call;
use selvedge_tools::mcp::Wanted;
use selvedge_tools::{
    Catalogue, CatalogueConfig, CatalogueErrors, CommandTool, Computations, ErrorClass, ISOLATION_MISSING,
    Offer, Permissions, ToolError,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Documents of at least so many bytes get more than one thread; smaller ones start faster without.
const LARGE_DOCUMENT: usize = 64 * 1024;

/// How long the end of a process waits until what interrupted tools have made is looked through.
const LOOK_THROUGH: Duration = Duration::from_secs(30);

/// Runs async code to its end. A run waits more than it computes, so one thread is enough for all but large
/// documents.
pub(crate) fn block_on<T>(document_bytes: usize, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut builder = match document_bytes >= LARGE_DOCUMENT {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build().map_err(|error| {
        Error::environment("C-03", "no-runtime", &format!("the system refuses what a run needs: {error}"))
            .help("raise the limits on threads and open files")
    })?;
    let result = runtime.block_on(work);
    // What still runs in the background (a signal handler, a slow look-up) must not delay the exit; what tools have left whose
    // calls were dropped must.
    runtime.shutdown_background();
    for made in finish_dropped_calls(LOOK_THROUGH) {
        crate::ui::stderr(&format!("warning: {}\n", one_line(&of_a_dropped_call(&made), usize::MAX)));
    }
    Ok(result)
}

/// The state folder of a run that must exist; a folder without a database has no runs (C-12).
pub(crate) fn open_existing(
    environment: &Environment,
    state_dir: Option<&Path>,
    run: &str,
) -> Result<(PathBuf, Store), Error> {
    let dir = places::state_dir(environment, state_dir)?;
    if !dir.join(DB_FILE).exists() {
        let message = format!("there is no run \"{run}\": {} holds no runs", dir.display());
        return Err(Error::usage("C-12", "unknown-run", &message).help("check --state-dir"));
    }
    let store = match Store::open(&dir, Mode::ReadWrite) {
        // An ended run can be shown all the same.
        Err(StoreError::ReadOnly { .. }) => Store::open(&dir, Mode::ReadOnly)?,
        opened => opened?,
    };
    Ok((dir, store))
}

/// The id of the run that is meant; an unknown one is told with what it is near to.
pub(crate) fn find_run(store: &Store, text: &str) -> Result<String, Error> {
    store.find_run(text).map_err(|error| {
        let unknown = matches!(error, StoreError::UnknownRun { .. });
        let failure = Error::from(error);
        let help = failure.diagnostics.first().map(|first| first.help.clone()).unwrap_or_default();
        match store.runs(&RunFilter::default()) {
            Ok(runs) if unknown => {
                let ids: Vec<&str> = runs.sound.iter().map(|run| run.id.as_str()).collect();
                failure.help(&or_meant(text, &ids, &help))
            }
            _ => failure,
        }
    })
}

/// Opens a state folder to write to it. What is made now is the user's own (C-20).
pub(crate) fn open_or_make(environment: &Environment, dir: &Path) -> Result<Store, StoreError> {
    let there = dir.join(DB_FILE).exists();
    let store = Store::open(dir, Mode::ReadWrite)?;
    if !there {
        selvedge_host::trust::state::made(environment, dir);
    }
    Ok(store)
}

/// The tools of a document in `workspace`, and what the user allowed them; none of MCP servers.
pub(crate) async fn catalogue(
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    ui: &Ui,
) -> Result<Catalogue, Error> {
    catalogue_of(Wanted::default(), chosen, config, state, workspace, ui).await
}

/// The tools that a document can call: all of a run but MCP tools, which are those that are wanted.
pub(crate) fn wanted(document: &Document, means: &Means) -> Wanted {
    let steps = document.dialect() == Dialect::Steps;
    // D-17: where a model plans or decides about recovery, it may choose any tool.
    let any = means.model || (steps && !document.models().is_empty());
    Wanted { names: document.tools(), any }
}

/// The same of a recorded graph, which has all tools that its run can call.
pub(crate) fn wanted_by(graph: &Graph) -> Wanted {
    let named = named(graph);
    let remote = graph.tools.iter().filter(|(_, tool)| tool.source.starts_with("mcp:"));
    let (names, others): (Vec<_>, Vec<_>) =
        remote.map(|(name, _)| name).partition(|name| named.contains(name));
    Wanted { names: names.into_iter().cloned().collect(), any: !others.is_empty() }
}

/// The tools that fixed calls of a graph name.
fn fixed(graph: &Graph) -> BTreeSet<&Arc<str>> {
    let leaves = graph.all_nodes().flat_map(|node| node.body.leaves.values());
    leaves.filter_map(|leaf| if let Act::Call(call) = &leaf.act { Some(&call.tool) } else { None }).collect()
}

/// The tools that a graph calls itself, or that stand in for these (D-18): what they are given stands in the document.
pub(crate) fn called(graph: &Graph) -> Vec<Arc<str>> {
    let recoveries = graph.all_nodes().filter_map(|node| node.recovery.as_ref());
    let alternatives = recoveries.flat_map(|recovery| &recovery.alternatives).map(|other| &other.tool);
    fixed(graph).into_iter().chain(alternatives).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The tools that a graph's nodes name: for fixed calls, for those that stand in for them (D-18), and for models of plans.
/// Of the others in it, a model may choose some when a step fails, or none.
pub(crate) fn named(graph: &Graph) -> BTreeSet<&Arc<str>> {
    let given = graph.all_nodes().flat_map(|node| &node.body.tools);
    let recoveries = graph.all_nodes().filter_map(|node| node.recovery.as_ref());
    let alternatives = recoveries.flat_map(|recovery| &recovery.alternatives).map(|other| &other.tool);
    fixed(graph).into_iter().chain(given).chain(alternatives).collect()
}

/// [`catalogue`], with the MCP tools that are wanted.
pub(crate) async fn catalogue_of(
    wanted: Wanted,
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    ui: &Ui,
) -> Result<Catalogue, Error> {
    let settings = CatalogueConfig { wanted, ..settings(chosen, config, state, workspace, ui)? };
    Ok(Catalogue::load(settings).await?)
}

/// Where tools come from and what they may do, for documents in `workspace`.
pub(crate) fn settings(
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    ui: &Ui,
) -> Result<CatalogueConfig, Error> {
    config.dirs_there()?;
    let mut settings = CatalogueConfig::new(
        workspace,
        state.join("cache/tools"),
        places::shared_cache(&ui.environment, state),
        ui.environment.process().clone(),
    );
    settings.tool_dirs = chosen.tools.clone();
    settings.config_dirs = config.tool_dirs.clone();
    settings.library = library::source(state)?;
    settings.commands = config.commands.values().cloned().collect::<Vec<CommandTool>>();
    settings.mcp = config.mcp.values().cloned().collect();
    settings.withheld = config.withheld();
    settings.permissions = Permissions {
        allow_read: [&chosen.allow_read[..], &config.allow_read].concat(),
        allow_write: [&chosen.allow_write[..], &config.allow_write].concat(),
        allow_network: chosen.allow_network.max(config.allow_network),
        allow_env: config
            .allow_env
            .iter()
            .map(|name| (name.clone(), ui.environment.variable(name)))
            .collect(),
    };
    selvedge_host::trust::keep_out(&ui.environment, &settings.permissions.allow_write);
    if !settings.permissions.allow_write.is_empty() {
        selvedge_host::killed::note_calls(&ui.environment, ui);
    }
    settings.limits = config.limits.tools();
    settings.python = ui.environment.path("SELVEDGE_PYTHON").or_else(|| config.python.clone());
    settings.shell_approval = config.shell_approval.unwrap_or(true);
    settings.isolation = isolation(&ui.environment)
        .kept_in(places::shared_cache(&ui.environment, state).join("isolation.json"));
    settings.require_isolation = chosen.require_isolation;
    // That of the user is no tool's, also while another one is in use.
    settings.hidden = std::iter::once(state.to_owned()).chain(places::user_state(&ui.environment)).collect();
    let files = places::config_files(&ui.environment, &chosen.cwd);
    // The user's own is trusted whatever it says: it is not to be made either.
    let users = files.user.clone().or_else(|| places::user_config(&ui.environment));
    let read = files.project.iter().chain(&chosen.mcp).cloned();
    settings.kept = users.into_iter().chain(read).chain(places::trust_dir(&ui.environment)).collect();
    settings.keys = selvedge_host::secrets::of_tools(config);
    let ui = ui.clone();
    settings.progress = Arc::new(move |line| ui.note(line));
    Ok(settings)
}

/// The operations of a run over these tools (E-40).
pub(crate) fn operations(catalogue: &Catalogue, environment: &Environment) -> Computations {
    let environment = environment.clone();
    // Steps that a model writes while a task runs are compiled like those of a document (D-20).
    let compile = move |catalogue: &Catalogue, args: &Value| {
        steps::compile_more(args, &Known { catalogue, pins: &Pins::new(), environment: &environment })
    };
    Computations::over(catalogue.clone()).with(&steps::compiler().name, Arc::new(compile))
}

/// The word that makes this program the launcher of confined programs.
pub(crate) const CONFINE: &str = "__confine";

/// What isolates tools here.
pub(crate) fn isolation(environment: &Environment) -> Isolation {
    let with = |launcher| Isolation::new(launcher, environment.process());
    environment.launcher().cloned().map_or_else(Isolation::none, with)
}

/// A driver over these models and tools; keys in use never come back from any of its ports (C-06).
pub(crate) fn driver(
    models: &Models,
    tools: &Catalogue,
    limits: selvedge_runtime::Limits,
    environment: &Environment,
) -> Driver {
    let model = clean_model(Arc::clone(&models.model), &models.secrets);
    let operations = clean_operations(Arc::new(operations(tools, environment)), &models.secrets);
    let tools = clean_tools(Arc::new(tools.clone()), &models.secrets);
    Driver::new(model, tools, limits).with_operations(operations)
}

/// The errors of tool files that are left out, in two: those of files that one of these names may mean, which it does
/// if the file has it, or if it is nowhere; and the others.
pub(crate) fn broken<'n>(
    catalogue: &Catalogue,
    names: impl Iterator<Item = &'n str> + Clone,
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let all = catalogue.broken();
    let nowhere = names.clone().any(|name| !catalogue.contains(name) && !all.contains_key(name));
    let files = all.iter().filter(|(_, error)| error.file.is_some());
    let (meant, others): (Vec<_>, Vec<_>) =
        files.partition(|(name, _)| nowhere || names.clone().any(|named| *named == ***name));
    let told = |errors: Vec<(&Arc<str>, &ToolError)>| {
        errors.into_iter().map(|(_, error)| tool_diagnostic(error.clone())).collect()
    };
    (told(meant), told(others))
}

/// Why a name means no tool, told where a document has the name; what is wrong with a file is told beside it.
pub(crate) fn trouble(catalogue: &Catalogue, environment: &Environment, name: &str) -> Option<NameTrouble> {
    let ToolError { rule, message, help, file, .. } = catalogue.broken().get(name)?.clone();
    let Some(file) = file else { return Some(NameTrouble { rule, message, help }) };
    let message = format!("`{name}` can't be called: its file {} is wrong", environment.shown(&file));
    Some(NameTrouble { rule, message, help: "correct the file: what is wrong with it is told above".into() })
}

/// Whether a name means a built-in tool, which declares nothing: its calls are allowed or denied one by one.
pub(crate) fn is_builtin(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.def(name).is_some_and(|def| &*def.source == "built-in")
}

/// The tools that fixed calls of a graph name and that can only deny them: known before anything runs.
pub(crate) fn denied_calls(graph: &Graph, catalogue: &Catalogue) -> Vec<(Arc<str>, ToolError)> {
    let offered: BTreeSet<&Arc<str>> = graph.all_nodes().flat_map(|node| &node.body.tools).collect();
    let fixed = fixed(graph);
    let refusal = |tool: &&Arc<str>| Some((Arc::clone(tool), catalogue.refusal(tool)?));
    fixed.difference(&offered).filter_map(refusal).collect()
}

/// Goes on with a run's tools only where isolation is as required, and says which of its layers are missing now:
/// `warnings` has what was missing when the run began.
pub(crate) async fn confinement(
    graph: &Graph,
    catalogue: &Catalogue,
    warnings: &mut Vec<Warning>,
    ui: &Ui,
) -> Result<(), Error> {
    let names: Vec<&str> = graph.tools.keys().map(|name| &**name).collect();
    catalogue.require_isolation(&names).await?;
    // What is not allowed any more is denied call by call; what is missing here is told before.
    let unset = named(graph).into_iter().filter_map(|name| catalogue.refusal(name));
    let unset: Vec<ToolError> = unset.filter(|error| error.class == ErrorClass::Environment).collect();
    if !unset.is_empty() {
        return Err(CatalogueErrors(unset).into());
    }
    let missing = catalogue.isolation_warnings(&names).await;
    for warning in &missing {
        ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), warning.message));
    }
    warnings.retain(|warning| &*warning.code != ISOLATION_MISSING);
    warnings.extend(missing);
    Ok(())
}

/// Tools of a recorded run by name, whose texts are kept.
pub(crate) type Pins = BTreeMap<Arc<str>, Arc<ToolDef>>;

/// A catalogue as the compiler sees it. Python tools need not be prepared: while a schema is not known, metadata says the
/// rest, and any arguments fit.
pub(crate) struct Known<'a> {
    /// The tools that there are.
    pub(crate) catalogue: &'a Catalogue,
    /// What stands in for those that are there no more.
    pub(crate) pins: &'a Pins,
    /// Where paths are told from.
    pub(crate) environment: &'a Environment,
}

impl ToolSource for Known<'_> {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        // A file that is wrong is told of, not stood in for.
        let lost = || self.pins.get(name).filter(|_| !self.catalogue.broken().contains_key(name)).cloned();
        self.catalogue.sketch(name).or_else(lost)
    }

    fn names(&self) -> Vec<String> {
        self.catalogue.names().map(ToString::to_string).collect()
    }

    fn available(&self) -> Vec<String> {
        self.catalogue.offered().iter().map(ToString::to_string).collect()
    }

    fn withheld(&self) -> Vec<(String, String)> {
        let said = |error: ToolError| match error.help.is_empty() {
            true => one_line(&error.message, 300),
            false => format!("{} ({})", one_line(&error.message, 300), one_line(&error.help, 300)),
        };
        let all = self.catalogue.withheld().into_iter();
        all.map(|(name, error)| (name.to_string(), said(error))).collect()
    }

    fn trouble(&self, name: &str) -> Option<NameTrouble> {
        trouble(self.catalogue, self.environment, name)
    }
}

/// Makes tools ready that only a model may choose (D-17, D-21). One that can't be made ready is none to choose.
pub(crate) async fn offer(catalogue: &Catalogue, names: Vec<Arc<str>>, offer: Offer, ui: &Ui) {
    /// What takes longer is told.
    const SILENCE: Duration = Duration::from_secs(1);
    /// Names that a note lists.
    const LISTED: usize = 8;
    let mut work = Box::pin(catalogue.offer(&names, offer));
    let failed = tokio::select! {
        failed = &mut work => failed,
        () = tokio::time::sleep(SILENCE) => {
            ui.note(&format!("getting {} tools ready for the model to choose from", names.len()));
            work.await
        }
    };
    let mut by_reason: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
    for (name, error) in failed {
        by_reason.entry(error.to_string()).or_default().push(name);
    }
    for (why, names) in by_reason {
        let listed: Vec<&str> = names.iter().take(LISTED).map(|name| &**name).collect();
        let more =
            if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
        let listed = listed.join(", ");
        ui.note(&format!("note: not offered to the model: {listed}{more}: {}", one_line(&why, 1000)));
    }
}

/// What a step task is compiled with: the configured settings, and whether a model is there that can reflect and plan
/// (C-08, D-17).
pub(crate) fn means(document: &Document, chosen: &RunOptions, config: &Config) -> Means {
    let mut means = Means { model: false, recovery: config.recovery, limits: config.limits.document() };
    let roles = document.optional_models(&means);
    means.model = !roles.is_empty() && models::there(chosen, config, &roles);
    means
}

/// A driver whose ports refuse everything: for inputs after which nothing is called any more.
pub(crate) fn idle_driver() -> Driver {
    Driver::new(Arc::new(Idle), Arc::new(Idle), selvedge_runtime::Limits::default())
}

struct Idle;

impl Idle {
    fn refuse<T: Send + 'static>() -> Pending<T> {
        let failure =
            CallFailure::permanent(FaultKind::Cancelled, "nothing is called while a run is cancelled");
        Box::pin(std::future::ready(Err(failure)))
    }
}

impl Model for Idle {
    fn call(&self, _request: ModelRequest, _context: CallContext) -> Pending<ModelReply> {
        Self::refuse()
    }
}

impl Tools for Idle {
    fn call(&self, _request: ToolRequest, _context: CallContext) -> Pending<Value> {
        Self::refuse()
    }
}

/// The document's folder, where relative paths of tools start.
pub(crate) fn workspace(environment: &Environment, document: &Path) -> PathBuf {
    let folder = document.parent().filter(|folder| !folder.as_os_str().is_empty());
    environment.absolute(folder.unwrap_or(Path::new(".")))
}

/// The exit of an interrupt before anything was recorded.
pub(crate) fn interrupted() -> Error {
    Error::new(
        selvedge_host::ErrorKind::Interrupted,
        "C-05",
        "interrupted",
        "interrupted before the run began; nothing was recorded",
    )
    .help("give the command again")
}
