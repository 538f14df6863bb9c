//! `selvedge resume`: a run goes on where its journal ends (E-05, P-21).

use crate::args::{Common, Exec, ResumeArgs};
use crate::block_on::block_on;
use crate::drive::Drive;
use crate::failure::Exit;
use crate::output::Report;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::graph::Act;
use selvedge_engine::{Event, Graph, Input, RunStatus, State, ToolDef, Warning};
use selvedge_host::Environment;
use selvedge_host::Error;
use selvedge_host::Observer;
use selvedge_host::config::Config;
use selvedge_host::hints::command;
use selvedge_host::library::record;
use selvedge_host::models::{self, Models};
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::secrets;
use selvedge_host::tools::tool_changed;
use selvedge_http::Secret;
use selvedge_runtime::{Loaded, graph_of, load};
use selvedge_store::{DriverLock, RunInfo, RunUpdate, Store};
use selvedge_tools::library::LIBRARY;
use selvedge_tools::{Catalogue, Offer, ToolError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The warning of a run whose folder of tools has vanished.
pub(super) const TOOLS_GONE: &str = "tools-gone";

/// Goes on with a run.
pub(crate) fn resume(args: &ResumeArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    go_on(&args.run, &args.exec, common, ui, |_, state| match state.status() {
        // It would come to the same question: who said no may say something else (E-05).
        RunStatus::Failed if state.declined().is_some() => Ok(None),
        // The outermost failed part gets a new visit; what had succeeded is reused (E-05, E-29).
        RunStatus::Failed => Ok(Some(vec![Input::Resume(Vec::new())])),
        _ => Ok(Some(Vec::new())),
    })
}

/// A run that exists, with the right to drive it.
pub(crate) struct LockedRun {
    /// The state folder.
    pub(crate) dir: PathBuf,
    /// Its store.
    pub(crate) store: Arc<Store>,
    /// Its full id.
    pub(crate) run: String,
    /// Its row.
    pub(crate) info: RunInfo,
    /// The right to drive it, unless it has ended and can only be read.
    pub(crate) lock: Option<DriverLock>,
}

impl LockedRun {
    /// Finds a run and takes its lock.
    ///
    /// # Errors
    /// Exit 2 if there is none of that id, or another live process drives it (C-12).
    pub(crate) fn take(
        environment: &Environment,
        state_dir: Option<&Path>,
        run: &str,
    ) -> Result<Self, Error> {
        let (dir, store) = selvedge_host::stores::open_existing(environment, state_dir, run)?;
        let run = selvedge_host::stores::find_run(&store, run)?;
        let lock = store.drive(&run);
        let info = store.run(&run)?;
        let ended =
            !matches!(info.status, selvedge_store::RunStatus::Running | selvedge_store::RunStatus::Waiting);
        let lock = match lock {
            Ok(lock) => Some(lock),
            // A run that can't be written can still be shown, if there is nothing left to do.
            Err(selvedge_store::StoreError::ReadOnly { .. }) if ended => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { dir, store: Arc::new(store), run, info, lock })
    }

    /// Prints the run as its journal has it.
    pub(crate) fn print(&self, state: &State, driven: bool, ui: &Ui) -> Result<Exit, Error> {
        let graph = graph_of(&self.store, &self.info)?;
        let warnings = RunOptions::stored(&self.info.options).warnings;
        let (run, scripted) = (&self.run, self.info.scripted);
        let store = &self.store;
        let report =
            Report { store, run, state, scripted, warnings: &warnings, graph: &graph, driven, warned: false };
        report.print(ui);
        Ok(if self.poisoned()? { Exit::Internal } else { report.exit() })
    }

    /// Whether a bug ended the run: then its journal says so last (E-17).
    fn poisoned(&self) -> Result<bool, Error> {
        let last = self.store.last_event(&self.run)?;
        let Some(entry) = self.store.journal(&self.run, last.max(1))?.next().transpose()? else {
            return Ok(false);
        };
        let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
        Ok(matches!(event, Some(Event::Poisoned { .. })))
    }
}

impl LockedRun {
    /// The tools and models that the run goes on with, and its inputs with what has changed about them.
    async fn prepare(
        &self,
        state: &State,
        inputs: Vec<Input>,
        chosen: &mut RunOptions,
        config: &Config,
        ui: &Ui,
    ) -> Result<(Catalogue, Models, Vec<Input>), Error> {
        let workspace = selvedge_host::places::workspace(&ui.environment, &chosen.document);
        let wanted = selvedge_host::tools::wanted_by(state.graph());
        let catalogue =
            selvedge_host::tools::catalogue_of(wanted, chosen, config, &self.dir, &workspace, &ui.observer())
                .await?;
        let models = models::prepare(chosen, config, &roles(state.graph()), &ui.environment.http()).await?;
        config.told(&mut chosen.warnings);
        let mut inputs = with_tools(inputs, state, &catalogue, ui).await?;
        selvedge_host::tools::confinement(state.graph(), &catalogue, &mut chosen.warnings, ui).await?;
        for input in &inputs {
            if let Input::Resume(tools) = input {
                record::pin(&self.store, &catalogue, tools.iter(), &secrets::named(config)).await?;
            }
        }
        // Limits come first, or the old ones would end the run once more (E-12).
        inputs.insert(0, Input::Limits(state.start().limits.raised(config.limits.machine())));
        // After a resume, which compares with what the old models said (E-29).
        inputs.push(Input::Models(models.names.clone()));
        Ok((catalogue, models, inputs))
    }
}

/// Loads a run and drives it on, after the inputs that `first` makes of its id and its state; prints it if there are none to
/// be had.
pub(crate) fn go_on(
    run: &str,
    exec: &Exec,
    common: &Common,
    mut ui: Ui,
    first: impl FnOnce(&str, &State) -> Result<Option<Vec<Input>>, Error>,
) -> Result<Exit, Error> {
    let mut locked_run = LockedRun::take(&ui.environment, common.state_dir.as_deref(), run)?;
    let mut chosen = crate::options::for_resume(&ui.environment, &locked_run.info.options, exec)?;
    let state = load(&locked_run.store, &locked_run.run, None, None)?.state;
    let Some(inputs) = first(&locked_run.run, &state)? else { return locked_run.print(&state, true, &ui) };
    if matches!(state.status(), RunStatus::Completed | RunStatus::Cancelled) {
        tell_unused(exec, &locked_run.run, &ui);
        return locked_run.print(&state, true, &ui);
    }
    let Some(lock) = locked_run.lock.take() else {
        let message = format!("run {} can't go on: its state folder can only be read", locked_run.run);
        return Err(Error::environment("C-14", "state-read-only", &message).help("make the folder writable"));
    };
    let inputs = [changes(exec, &ui)?, inputs].concat();
    let gate = ui.gate(common)?;
    gate.pass_state(
        &ui.environment,
        &locked_run.dir,
        &locked_run.run,
        &RunOptions::stored(&locked_run.info.options),
        &ui,
    )?;
    let mut config =
        Config::load(&ui.environment, &places::config_files(&ui.environment, &chosen.cwd), gate, &ui)?;
    config.add_options(&chosen, &ui)?;
    // Which models answer from here on is recorded (C-06).
    secrets::refuse_choices(
        &secrets::named(&config),
        None,
        &crate::options::from_options(&ui.environment, exec)?,
    )?;
    if exec.from.tools.is_empty() {
        leave_out_vanished(&mut chosen, &mut config, &ui);
    }
    block_on(0, async {
        let signals = Signals::listen(&ui);
        let (stored_script, stored_hash) = (chosen.script.clone(), chosen.script_hash.clone());
        let (catalogue, models, inputs) = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            prepared = locked_run.prepare(&state, inputs, &mut chosen, &config, &ui) => {
                prepared.map_err(|failure| config.explained(failure))?
            }
        };
        ui.secrets = models.secrets.iter().map(Secret::clone).collect();
        tell_script(&chosen, stored_script.as_deref(), stored_hash.as_deref(), models.scripted, &ui);
        let text = exec.budget.as_deref();
        let over = text
            .map(|text| selvedge_host::options::budget(text, "--budget"))
            .transpose()?
            .unwrap_or_default();
        if over.cost.or(state.start().budget.cost).is_some() {
            // Once a run: what was said when it began is not said again.
            let mut unpriced = models::unpriced(&chosen, &config, &roles(state.graph()));
            unpriced.retain(|warning| !chosen.warnings.contains(warning));
            unpriced.iter().for_each(|warning| Observer::warning(&ui, &warning.message));
            chosen.warnings.extend(unpriced);
        }
        // A model that counts requests has to know those that were answered (C-07): it is there only now, so for it the journal
        // is folded once more.
        let Loaded { info, state } = match models.model.counts() {
            true => load(&locked_run.store, &locked_run.run, None, Some(models.model.as_ref()))?,
            false => Loaded { info: locked_run.store.run(&locked_run.run)?, state },
        };
        let graph = graph_of(&locked_run.store, &info)?;
        let limits = config.limits.driver(chosen.max_parallel, chosen.timeout_s);
        let driver = selvedge_host::compose::driver(&models, &catalogue, limits, &ui.environment);
        ui.note(&format!("run {}: goes on after {} events", locked_run.run, state.events()));
        if models.scripted && !info.scripted {
            // Before it answers: a run that dies with its first reply was scripted, too (C-07).
            let update = RunUpdate { scripted: true, ..RunUpdate::default() };
            locked_run.store.update_run(&locked_run.run, update).await?;
        }
        let drive = Drive {
            ui: &ui,
            store: Arc::clone(&locked_run.store),
            run: locked_run.run.clone(),
            driver,
            catalogue: Some(catalogue),
            inputs,
            state,
            graph,
            scripted: info.scripted || models.scripted,
            warnings: chosen.warnings.clone(),
            lock,
        };
        Ok(drive.go(&signals).await)
    })?
}

/// A run goes on with the texts that it has pinned: a folder of tools that is no longer there stops it no more than a
/// file that is not.
pub(super) fn leave_out_vanished(chosen: &mut RunOptions, config: &mut Config, ui: &Ui) {
    let mut gone = Vec::new();
    for folders in [&mut chosen.tools, &mut config.tool_dirs] {
        let (kept, vanished) = std::mem::take(folders).into_iter().partition(|folder| folder.exists());
        *folders = kept;
        gone.extend::<Vec<PathBuf>>(vanished);
    }
    // A run may be resumed many times.
    chosen.warnings.retain(|warning| &*warning.code != TOOLS_GONE);
    for folder in gone {
        let message = format!(
            "the folder of tools {} is no longer there: the run goes on with the tools as it began with them",
            folder.display()
        );
        ui.note(&format!("{}: {message}", ui.paint("1;33", "warning")));
        chosen.warnings.push(Warning { code: TOOLS_GONE.into(), message, node: None });
    }
}

/// What changes first: caps that are given replace the run's (E-20). The order of nodes was fixed when it began.
fn changes(exec: &Exec, ui: &Ui) -> Result<Vec<Input>, Error> {
    if exec.sequential {
        ui.notice("note: `--sequential` has no effect: it was fixed when the run began");
    }
    match &exec.budget {
        Some(text) => Ok(vec![Input::Budget(selvedge_host::options::budget(text, "--budget")?)]),
        None => Ok(Vec::new()),
    }
}

/// Says that options change nothing where nothing is left to run (C-10, C-12).
fn tell_unused(exec: &Exec, run: &str, ui: &Ui) {
    let given = exec.given();
    if given.is_empty() {
        return;
    }
    let fork = command(&["fork", run]);
    let (has, them) = if given.len() == 1 { ("has", "it") } else { ("have", "them") };
    let given = given.join(", ");
    ui.notice(&format!("note: the run has ended: {given} {has} no effect; {fork} takes {them}"));
}

pub(super) fn tell_script(
    chosen: &RunOptions,
    path: Option<&Path>,
    hash: Option<&str>,
    scripted: bool,
    ui: &Ui,
) {
    let Some(script) = chosen.script.as_deref().filter(|_| scripted) else { return };
    ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
    if path == Some(script) && hash.is_some() && hash != chosen.script_hash.as_deref() {
        ui.notice("note: the script has changed since the run began");
    }
}

/// The model roles that a graph's calls use (C-08).
pub(super) fn roles(graph: &Graph) -> Vec<Arc<str>> {
    let leaves = graph.nodes.values().flat_map(|node| graph.leaves(node));
    let roles: BTreeSet<Arc<str>> = leaves
        .filter_map(|leaf| match &leaf.act {
            Act::Infer(infer) => Some(infer.model.clone().unwrap_or_else(|| "basic".into())),
            _ => None,
        })
        .collect();
    roles.into_iter().collect()
}

/// The tools that are not what a graph has pinned, at a `resume` or a `fork` (P-21). The library's take the place of
/// pinned ones only where a run begins, as a fork does: else other runs, which publish there, would change this one.
pub(super) fn changed_tools(graph: &Graph, catalogue: &Catalogue, begins: bool, ui: &Ui) -> Vec<ToolDef> {
    let mut changed: Vec<ToolDef> = Vec::new();
    for (name, old) in &graph.tools {
        let Some(new) = catalogue.sketch(name).filter(|new| new.version != old.version) else { continue };
        if !begins && &*new.source == LIBRARY || !catalogue.is_fit(name) {
            continue;
        }
        let warning = tool_changed(name, &old.version, &new.version);
        ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), warning.message));
        changed.push((*new).clone());
    }
    changed
}

/// Makes the tools ready that a graph's nodes name. Those that only a model may choose need no more than what is pinned,
/// unless they have changed.
pub(super) async fn ready(graph: &Graph, catalogue: &Catalogue, ui: &Ui) -> Result<(), Error> {
    // Other files that are wrong are stood in for by what is pinned; one with a key in it is told (C-06).
    let of = |file: &Path| graph.tools.values().any(|tool| *tool.source == *file.to_string_lossy());
    let held = |error: &&ToolError| error.rule == "C-06" && error.file.as_deref().is_some_and(of);
    if let Some(error) = catalogue.broken().values().find(held) {
        return Err(error.clone().into());
    }
    let named = selvedge_host::tools::named(graph);
    let (names, others): (Vec<&Arc<str>>, Vec<_>) = graph.tools.keys().partition(|name| named.contains(name));
    let names: Vec<&str> = names.into_iter().map(|name| &**name).collect();
    catalogue.prepare(&names).await?;
    let version = |name: &Arc<str>| graph.tools.get(name).map(|tool| Arc::clone(&tool.version));
    let changed = |name: &&Arc<str>| {
        catalogue.sketch(name).is_some_and(|new| version(name).is_some_and(|old| old != new.version))
    };
    let others = others.into_iter().filter(changed).cloned().collect();
    selvedge_host::tools::offer(catalogue, others, Offer::Light, ui).await;
    Ok(())
}

/// A resumed run takes tools as they are now; those that changed go into the journal (P-21).
async fn with_tools(
    inputs: Vec<Input>,
    state: &State,
    catalogue: &Catalogue,
    ui: &Ui,
) -> Result<Vec<Input>, Error> {
    // An answer or a cancel is for the run as it stands.
    if inputs.iter().any(|input| !matches!(input, Input::Resume(_) | Input::Budget(_))) {
        return Ok(inputs);
    }
    ready(state.graph(), catalogue, ui).await?;
    let changed = changed_tools(state.graph(), catalogue, false, ui);
    let failed = inputs.iter().any(|input| matches!(input, Input::Resume(_)));
    let mut inputs: Vec<Input> =
        inputs.into_iter().filter(|input| !matches!(input, Input::Resume(_))).collect();
    if failed || !changed.is_empty() {
        inputs.push(Input::Resume(changed));
    }
    Ok(inputs)
}
