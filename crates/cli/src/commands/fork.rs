//! `selvedge fork`: a recorded run goes on from any of its events as a new run, with or without edits (E-19, C-13).

mod edits;

use crate::args::{Common, ForkArgs};
use crate::block_on::block_on;
use crate::commands::resume::{TOOLS_GONE, changed_tools, leave_out_vanished, ready, roles, tell_script};
use crate::drive::Drive;
use crate::failure::Exit;
use crate::look::of_fork;
use crate::signals::Signals;
use crate::ui::Ui;
use edits::Edits;
use selvedge_engine::{Budget, Event, Fork, Graph, Input, Limits, Outcome, State, Warning};
use selvedge_host::Error;
use selvedge_host::Observer;
use selvedge_host::config::Config;
use selvedge_host::hints::command;
use selvedge_host::ids::{checked_id, fresh_id};
use selvedge_host::library::record;
use selvedge_host::models::{self, Models};
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::prepare;
use selvedge_host::secrets;
use selvedge_host::tools::Pins;
use selvedge_http::Secret;
use selvedge_runtime::{Clock, SystemClock};
use selvedge_runtime::{LoadError, load};
use selvedge_store::{DriverLock, Entry, ForkPoint, NewRun, RunInfo, RunStatus, Store, StoreError};
use selvedge_tools::Catalogue;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The run that is forked, as it is now. It may go on meanwhile: what it does from here on is not looked at.
struct Source {
    dir: PathBuf,
    store: Arc<Store>,
    info: RunInfo,
    /// Its number of events.
    events: u64,
    /// Whether it had more, which are damaged (E-44).
    damaged: bool,
    /// Its state after them.
    state: State,
}

/// Everything that a fork needs and that can fail.
struct Prepared {
    catalogue: Catalogue,
    models: Models,
    /// The graph that it begins anew, if it does not go on with the source's.
    anew: Option<Arc<Graph>>,
    initial: Option<Map<String, Value>>,
    budget: Budget,
    limits: Limits,
    warnings: Vec<Warning>,
    name: String,
    dialect: String,
    /// The keys that nothing recorded may hold (C-06).
    keys: Vec<secrets::Known>,
}

/// Forks a run and goes on with the fork.
pub(crate) fn fork(args: &ForkArgs, common: &Common, mut ui: Ui) -> Result<Exit, Error> {
    let source = Source::find(args, common, &ui)?;
    let at = source.event(args.at)?;
    let id = match &args.exec.run_id {
        Some(id) => checked_id(id)?,
        None => fresh_id(),
    };
    let mut chosen =
        crate::options::for_fork(&ui.environment, &source.info.options, &args.exec, args.document.is_some())?;
    if let Some(document) = &args.document {
        chosen.document = ui.environment.absolute(document);
        chosen = chosen.recordable()?;
    }
    let given = selvedge_host::options::inputs(&args.exec.input)?;
    chosen.inputs.extend(given.clone());
    let over = match &args.exec.budget {
        Some(text) => selvedge_host::options::budget(text, "--budget")?,
        None => Budget::default(),
    };
    let edits = Edits::of(&source, args)?;
    let gate = ui.gate(common)?;
    gate.pass_state(
        &ui.environment,
        &source.dir,
        source.run(),
        &RunOptions::stored(&source.info.options),
        &ui,
    )?;
    let mut config =
        Config::load(&ui.environment, &places::config_files(&ui.environment, &chosen.cwd), gate, &ui)?;
    config.add_options(&chosen, &ui)?;
    let folders = chosen.tools.clone();
    if args.exec.from.tools.is_empty() {
        leave_out_vanished(&mut chosen, &mut config, &ui);
    }
    let known = secrets::named(&config);
    let file = args.document.clone().unwrap_or_default();
    secrets::refuse_choices(
        &known,
        Some(&id),
        &RunOptions { document: file, ..crate::options::from_options(&ui.environment, &args.exec)? },
    )?;
    secrets::refuse_inputs(&known, &given)?;
    for text in &args.set_message {
        secrets::refuse_text(&known, "the text of a `--set-message`", text)?;
    }
    let read = match &args.document {
        Some(file) => Some(document(file, args, &given, &mut chosen, &config)?),
        None => None,
    };
    let stored_script = (chosen.script.clone(), chosen.script_hash.clone());
    block_on(0, async {
        let signals = Signals::listen(&ui);
        let preparing = async {
            match read {
                Some(read) => source.compiled(read, &mut chosen, &config, &ui).await,
                None => source.recorded(&edits, (given, over), &mut chosen, &config, &ui).await,
            }
        };
        let prepared = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            prepared = preparing => prepared.map_err(|failure| config.explained(failure))?,
        };
        ui.secrets = prepared.models.secrets.iter().map(Secret::clone).collect();
        let (script, hash) = stored_script;
        tell_script(&chosen, script.as_deref(), hash.as_deref(), prepared.models.scripted, &ui);
        chosen.warnings.clone_from(&prepared.warnings);
        // Who resumes the fork is told again, unless the folder is back.
        chosen.tools = folders;
        let (state, graph, scripted, lock) = source.begin(&id, at, &edits, &chosen, &prepared, &ui).await?;
        tell_if_done(&state, at, args, &ui);
        let Prepared { catalogue, models, warnings, .. } = prepared;
        let driver = selvedge_host::compose::driver(
            &models,
            &catalogue,
            config.limits.driver(chosen.max_parallel, chosen.timeout_s),
            &ui.environment,
        );
        let store = Arc::clone(&source.store);
        let (catalogue, inputs) = (Some(catalogue), Vec::new());
        let drive = Drive {
            ui: &ui,
            store,
            run: id,
            driver,
            catalogue,
            inputs,
            state,
            graph,
            scripted,
            warnings,
            lock,
        };
        Ok(drive.go(&signals).await)
    })?
}

/// Reads another document, with the source's inputs and those that this command has `written`. The plan that the source named is looked for in it, unless it is a document by itself.
fn document(
    file: &Path,
    args: &ForkArgs,
    written: &Map<String, Value>,
    chosen: &mut RunOptions,
    config: &Config,
) -> Result<prepare::Read, Error> {
    let read = prepare::read(file, chosen, config, written);
    if read.is_ok() || args.exec.plan.is_some() || chosen.plan.is_none() {
        return read;
    }
    let alone = RunOptions { plan: None, ..chosen.clone() };
    match prepare::read(file, &alone, config, written) {
        Ok(found) => {
            *chosen = alone;
            Ok(found)
        }
        Err(_) => read,
    }
}

impl Source {
    /// Finds the run. Whoever drives it goes on undisturbed. Of a damaged one, all that is before the damage is the run, if
    /// that is what is to be forked (E-44).
    fn find(args: &ForkArgs, common: &Common, ui: &Ui) -> Result<Self, Error> {
        let (dir, store) =
            selvedge_host::stores::open_existing(&ui.environment, common.state_dir.as_deref(), &args.run)?;
        let run = selvedge_host::stores::find_run(&store, &args.run)?;
        let mut events = store.last_event(&run)?;
        let mut damaged = false;
        let loaded = match load(&store, &run, Some(events), None) {
            Err(LoadError::Store(damage @ StoreError::DamagedRun { event: Some(bad), .. }))
                if args.at.is_some_and(|at| at < bad) =>
            {
                (events, damaged) = (bad.saturating_sub(1), true);
                let warning = ui.paint("1;33", "warning");
                ui.notice(&format!("{warning}: {}; the fork is of what is before it, and as the run may have made any write behind it, each asks first", damage.what()));
                load(&store, &run, Some(events), None)?
            }
            loaded => loaded?,
        };
        Ok(Self { dir, store: Arc::new(store), info: loaded.info, events, damaged, state: loaded.state })
    }

    fn run(&self) -> &str {
        &self.info.id
    }

    /// The event that `--at` names; without it the last one.
    fn event(&self, at: Option<u64>) -> Result<u64, Error> {
        let at = at.unwrap_or(self.events);
        if (1..=self.events).contains(&at) {
            return Ok(at);
        }
        let (run, last) = (self.run(), self.events);
        let message = format!("run {run} has {last} events: there is no event {at}");
        Err(Error::usage("C-13", "unknown-event", &message)
            .help(&format!("--at takes 1 to {last}; {} lists them", command(&["show", run, "--events"]))))
    }

    /// What a fork with another document needs.
    async fn compiled(
        &self,
        read: prepare::Read,
        chosen: &mut RunOptions,
        config: &Config,
        ui: &Ui,
    ) -> Result<Prepared, Error> {
        let gone = chosen.warnings.iter().filter(|warning| &*warning.code == TOOLS_GONE).cloned();
        let gone: Vec<Warning> = gone.collect();
        let pins = self.pins()?;
        let prepare::Prepared { graph, catalogue, models, mut warnings, initial, name, dialect, budget } =
            prepare::prepare(read, &pins, chosen, config, &self.dir, &ui.observer()).await?;
        warnings.extend(gone);
        let budget = prepare::budget(budget, chosen, config);
        let (anew, initial, limits) = (Some(graph), Some(initial), config.limits.machine());
        let dialect = dialect.to_owned();
        let keys = secrets::named(config);
        Ok(Prepared { catalogue, models, anew, initial, budget, limits, warnings, name, dialect, keys })
    }

    /// The run's tools whose texts are kept: they stand in for files that are there no more.
    fn pins(&self) -> Result<Pins, Error> {
        let mut pins = Pins::new();
        for (name, tool) in &self.state.graph().tools {
            // Only Python files have their text's hash for a version, and their text kept.
            let Ok(hash) = tool.version.parse() else { continue };
            if self.store.has_blob(hash)? {
                pins.insert(Arc::clone(name), Arc::clone(tool));
            }
        }
        Ok(pins)
    }

    /// What a fork of the recorded document needs, with edits of its texts and inputs.
    async fn recorded(
        &self,
        edits: &Edits,
        (given, over): (Map<String, Value>, Budget),
        chosen: &mut RunOptions,
        config: &Config,
        ui: &Ui,
    ) -> Result<Prepared, Error> {
        let mut anew = None;
        for (n, place, text) in &edits.texts {
            let graph: &Graph = anew.as_deref().unwrap_or(self.state.graph());
            let edited = graph.with_text(place, text).ok_or_else(|| self.no_place(*n))?;
            anew = Some(Arc::new(edited));
        }
        let mut initial = None;
        if !given.is_empty() {
            let mut values = self.state.initial().clone();
            values.extend(given);
            anew = anew.or_else(|| Some(Arc::clone(self.state.graph())));
            initial = Some(values);
        }
        let workspace = selvedge_host::places::workspace(&ui.environment, &chosen.document);
        let wanted = selvedge_host::tools::wanted_by(self.state.graph());
        let catalogue =
            selvedge_host::tools::catalogue_of(wanted, chosen, config, &self.dir, &workspace, &ui.observer())
                .await?;
        let models =
            models::prepare(chosen, config, &roles(self.state.graph()), &ui.environment.http()).await?;
        ready(self.state.graph(), &catalogue, ui).await?;
        // Caps as the source had them in the end, which a resume may have raised.
        let caps = self.state.start().budget;
        let budget = Budget {
            calls: over.calls.or(caps.calls),
            tokens: over.tokens.or(caps.tokens),
            cost: over.cost.or(caps.cost),
        };
        let (name, dialect) = (self.info.name.clone(), self.info.dialect.clone());
        let mut warnings = chosen.warnings.clone();
        config.told(&mut warnings);
        selvedge_host::tools::confinement(self.state.graph(), &catalogue, &mut warnings, ui).await?;
        if budget.cost.is_some() {
            let unpriced = models::unpriced(chosen, config, &roles(self.state.graph()));
            unpriced.iter().for_each(|warning| Observer::warning(ui, &warning.message));
            warnings.extend(unpriced);
        }
        let limits = config.limits.machine();
        let keys = secrets::named(config);
        Ok(Prepared { catalogue, models, anew, initial, budget, limits, warnings, name, dialect, keys })
    }

    fn no_place(&self, n: u64) -> Error {
        let message = format!("the text of event {n} is of a document that run {} has left", self.run());
        Error::usage("C-13", "no-such-text", &message)
            .help("fork the run that it was recorded in, or edit a later message")
    }

    /// Creates the fork: from here on it exists, and its first event is durable (E-04).
    async fn begin(
        &self,
        id: &str,
        at: u64,
        edits: &Edits,
        chosen: &RunOptions,
        prepared: &Prepared,
        ui: &Ui,
    ) -> Result<(State, Arc<Graph>, bool, DriverLock), Error> {
        let lock = self.store.drive(id)?;
        let here = load(&self.store, self.run(), Some(at), None)?.state;
        // A fork that has left its source's document or inputs behind is one of the document that it came to.
        let (now, then) = (self.state.start(), here.start());
        let moved = (&now.graph, &now.initial) != (&then.graph, &then.initial);
        let anew = prepared.anew.clone().or_else(|| moved.then(|| Arc::clone(self.state.graph())));
        let initial = prepared.initial.clone().or_else(|| moved.then(|| now.initial.clone()));
        let shared = if anew.is_some() { at } else { edits.last_shared(at) };
        let mut state = match shared == at {
            true => here,
            false => load(&self.store, self.run(), Some(shared), None)?.state,
        };
        let graph = anew.clone().unwrap_or_else(|| Arc::clone(state.graph()));
        let hash = self.stored(anew.as_deref()).await?;
        let then = state.start();
        let other = |(role, name): &(&Arc<str>, &Arc<str>)| then.models.get(*role) != Some(*name);
        let models = prepared.models.names.iter().filter(other);
        let changed = changed_tools(&graph, &prepared.catalogue, true, ui);
        let pinned = graph.tools.values().map(|tool| &**tool).chain(&changed);
        record::pin(&self.store, &prepared.catalogue, pinned, &prepared.keys).await?;
        let fork = Fork {
            source: self.run().into(),
            events: self.events,
            graph: hash.clone(),
            initial,
            budget: (prepared.budget != then.budget).then_some(prepared.budget),
            limits: Some(then.limits.raised(prepared.limits)).filter(|limits| *limits != then.limits),
            sequential: (chosen.sequential || now.sequential) && !then.sequential,
            models: models.map(|(role, name)| (role.clone(), name.clone())).collect(),
            tools: changed,
            texts: edits.outcomes.clone(),
            damaged: self.damaged,
            past: None,
            compiled: None,
        };
        let time = state.tick(SystemClock.now_ms());
        let event = state
            .accept(Input::Fork(Box::new(fork)))
            .ok_or_else(|| Error::internal("a run that has begun can't be forked"))?;
        let json = serde_json::to_string(&event).map_err(unwritable)?;
        let named = hash.unwrap_or_else(|| then_graph(&state));
        let scripted = prepared.models.scripted || self.script_answered(anew.as_deref(), shared)?;
        let run = NewRun {
            id: id.to_owned(),
            name: prepared.name.clone(),
            dialect: prepared.dialect.clone(),
            status: RunStatus::Running,
            started_ms: time,
            graph: Some(named.parse()?),
            scripted,
            options: chosen.to_stored().map_err(unwritable)?,
            fork: Some(ForkPoint { run: self.run().to_owned(), events: shared }),
        };
        self.store.create_run(run, vec![Entry { n: shared + 1, at_ms: time, json }]).await?;
        let words = of_fork(self.run(), shared, self.events);
        ui.note(&format!("run {id}: a fork of {words}"));
        // Folded from its own journal, as every later command will.
        let state = load(&self.store, id, None, Some(prepared.models.model.as_ref()))?.state;
        Ok((state, graph, scripted, lock))
    }

    /// Whether a script may have answered in what a fork goes on with (C-07): its source was scripted, and the events that
    /// they share have an answer that is not a tool's. Behind them nothing of a script is taken over but by a fork that a
    /// script drives, as the models must be the same (E-29); nor is anything at all where the fork begins anew.
    fn script_answered(&self, anew: Option<&Graph>, shared: u64) -> Result<bool, Error> {
        if !self.info.scripted || anew.is_some() {
            return Ok(false);
        }
        for entry in self.store.journal(self.run(), 1)?.until(shared) {
            let entry = entry?;
            let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
            let tool = matches!(&event, Some(Event::Completed { outcome: Outcome::Output(_), .. }));
            if !tool && matches!(&event, None | Some(Event::Completed { .. } | Event::Reused { .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores the graph of a fork that begins anew.
    async fn stored(&self, graph: Option<&Graph>) -> Result<Option<Arc<str>>, Error> {
        let Some(graph) = graph else { return Ok(None) };
        let (hash, stored) = self.store.put_blob(serde_json::to_vec(graph).map_err(unwritable)?);
        stored.await?;
        Ok(Some(hash.to_string().into()))
    }
}

/// Says why nobody is asked anything, where every node has ended well in what the fork shares (C-13).
fn tell_if_done(state: &State, at: u64, args: &ForkArgs, ui: &Ui) {
    let (done, nodes) = state.progress();
    if done < nodes {
        return;
    }
    let help = match args.exec.model.is_empty() {
        false => "use --at 1 to ask the new model everything, or the event after which it is to be asked",
        true => "use --at with an earlier event, or edit something",
    };
    let text = format!("note: nothing is left to run after event {at}: {help}");
    // A model that is never asked is no progress that `--quiet` leaves out.
    if args.exec.model.is_empty() { ui.note(&text) } else { ui.notice(&text) }
}

fn then_graph(state: &State) -> Arc<str> {
    Arc::clone(&state.start().graph)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::internal(&format!("the run can't be written: {error}"))
}
