//! A recorded run goes on from any of its events as a new run, with or without changes (E-19, C-13).

mod dry_run;
mod edits;
mod forkable;
pub(crate) mod source;

pub use dry_run::DryRun;
pub use forkable::Forkable;

use crate::begun::ForkedFrom;
use crate::config::Config;
use crate::error::Error;
use crate::host::Host;
use crate::ids::{checked_id, fresh_id};
use crate::library::record;
use crate::models::{self, Models};
use crate::observer::Observer;
use crate::options::{Origin, RunOptions};
use crate::prepare::{self, Read};
use crate::ready::{Asked, Changed, Started, What};
use crate::tools::Pins;
use crate::trust::imported::Replaced;
use crate::{document_files, secrets, tools};
use selvedge_dialects::{Diagnostic, Severity};
use selvedge_engine::{Budget, Fork, Graph, Input, Record, Start, State, ToolDef};
use selvedge_runtime::{Clock, Count, SystemClock};
use selvedge_store::{Entry, ForkPoint, NewRun, RunStatus};
use selvedge_tools::Catalogue;
use serde_json::{Map, Value};
use source::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a run is forked.
#[derive(Clone, Debug, Default)]
pub struct ForkOptions {
    /// The last event that the fork shares with the run; without it the run's last one.
    pub at: Option<u64>,
    /// Another document in place of the run's.
    pub document: Option<PathBuf>,
    /// Other texts for the messages that these events appended.
    pub messages: Vec<(u64, String)>,
    /// The fork's id, never used before; without it a new one.
    pub id: Option<String>,
    /// What is chosen over what the run was begun with, inputs among it. Which plan and dialect belongs to a document.
    pub over: RunOptions,
}

impl Host {
    /// Folds the run that is to be forked, as it is now, and reads the document that takes the place of its own. `run` is its id or enough of its
    /// beginning.
    ///
    /// # Errors
    /// There is no such run, event or message, what runs here are begun with is not trusted, or something is wrong with the choices, the
    /// configuration or the document.
    pub fn source(&self, run: &str, fork: ForkOptions) -> Result<Asked, Error> {
        let (dir, store, run) = self.find(run)?;
        let source = Source::fold((dir, store, &run), fork.at, &fork.messages, fork.document.is_some())?;
        self.asked(source, fork)
    }

    /// Folds a run, as it is now, for forks of it: each of them then begins where it stands, and what it was forked from is not folded again.
    /// `run` is its id or enough of its beginning.
    ///
    /// # Errors
    /// There is none, or its journal can't be read.
    pub fn forkable(&self, run: &str) -> Result<Arc<Forkable>, Error> {
        let (dir, store, run) = self.find(run)?;
        Ok(Arc::new(Forkable::whole(dir, store, &run)?))
    }

    /// The same of a run that was folded before ([`Self::forkable`]).
    ///
    /// # Errors
    /// Those of [`Self::source`].
    pub fn source_of(&self, run: &Arc<Forkable>, fork: ForkOptions) -> Result<Asked, Error> {
        let source = Source::of(Arc::clone(run), fork.at, &fork.messages, fork.document.is_some())?;
        self.asked(source, fork)
    }

    fn asked(&self, source: Source, fork: ForkOptions) -> Result<Asked, Error> {
        let ForkOptions { document, messages, id, over, .. } = fork;
        if let Some(damage) = &source.run.damage {
            self.tell_damage(damage);
        }
        let id = id.map_or_else(|| Ok(fresh_id()), |id| checked_id(&id))?;
        let stored = RunOptions::read(&source.run.info.options)?.in_folder(self.environment.cwd());
        let mut options = stored.clone().under(over.clone());
        options.origin = stored.origin.of_fork();
        (options.served, options.request) = (over.served, over.request.clone());
        if let Some(document) = &document {
            options.document = self.environment.absolute(document);
        }
        let mut options = options.recordable()?;
        options.inputs.extend(over.inputs.clone());
        options.input_texts.clone_from(&over.input_texts);
        self.gate.pass_state(
            &self.environment,
            &source.run.dir,
            source.run.id(),
            &stored,
            self.observer.as_ref(),
        )?;
        let mut config = self.config(&options)?;
        let folders = options.tools.clone();
        if over.tools.is_empty() {
            tools::leave_out_vanished(&mut options, &mut config, self.observer.as_ref());
        }
        let known = secrets::named(&config);
        let file = document.clone().unwrap_or_default();
        secrets::refuse_choices(&known, Some(&id), &RunOptions { document: file, ..over.clone() })?;
        for (_, text) in &messages {
            secrets::refuse_text(&known, "the text of a `--set-message`", text)?;
        }
        let written = over.input_names();
        let read = match document {
            Some(file) => {
                let read = read(&file, &over, &mut options, &config)?;
                let given = options.given.is_some();
                options.document_files = document_files::hashes(&self.environment, given, read.sources());
                Some(read)
            }
            None => {
                let (run, limits) = (source.run.id(), config.limits.document());
                document_files::tell_changes(
                    &self.environment,
                    run,
                    &mut options,
                    &limits,
                    self.observer.as_ref(),
                );
                options.read_inputs(None)?;
                None
            }
        };
        let named = |(name, _): &(&String, &Value)| written.contains(name);
        let given = options.inputs.iter().filter(named);
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        secrets::refuse_inputs(&known, &given)?;
        if read.is_none() {
            options.check_inputs(&source.then.initial, &given)?;
        }
        let what = What::Fork { source: Box::new(source), folders, given: (given, over.budget), read };
        Ok(Asked { id, name: None, parent: None, config, options, what })
    }

    fn tell_damage(&self, damage: &str) {
        let message = format!(
            "{damage}; the fork is of what is before it, and as the run may have made any write behind it, each asks first"
        );
        let warning = Diagnostic::about_file("", "E-44", "run-damaged", &message);
        self.observer.alert(&Diagnostic { severity: Severity::Warning, ..warning });
    }
}

/// Reads another document, with the source's inputs and those that are written now. The plan that the source named is looked for in it, unless it is a
/// document by itself.
fn read(file: &Path, over: &RunOptions, options: &mut RunOptions, config: &Config) -> Result<Read, Error> {
    options.given.clone_from(&over.given);
    let written = over.input_names();
    let read = prepare::read(file, options, config, &written);
    if read.is_ok() || over.plan.is_some() || options.plan.is_none() {
        return read;
    }
    let mut alone = RunOptions { plan: None, ..options.clone() };
    match prepare::read(file, &mut alone, config, &written) {
        Ok(found) => {
            *options = alone;
            Ok(found)
        }
        Err(_) => read,
    }
}

/// Compiles the other document.
pub(crate) async fn compile(
    host: &Host,
    config: &Config,
    options: &mut RunOptions,
    source: &Source,
    read: Read,
) -> Result<(Catalogue, Models, Changed), Error> {
    let gone = tools::vanished(&options.warnings);
    // Another document calls what came with an imported run only where that is trusted.
    let pins = if host.takes_pins(options.origin) { source.pins()? } else { Pins::new() };
    let prepared = prepare::prepare(read, &pins, options, config, &source.run.dir, &host.observer).await?;
    let prepare::Prepared { graph, catalogue, models, warnings, initial, name, dialect, budget } = prepared;
    options.warnings = [warnings, gone].concat();
    if !host.takes_pins(options.origin) {
        catalogue.only_own();
    }
    let changed = Changed {
        anew: Some(graph),
        initial: Some(initial),
        budget: prepare::budget(budget, options, config),
        limits: config.limits.machine(),
        name,
        dialect: dialect.to_owned(),
    };
    Ok((catalogue, models, changed))
}

/// The tools and models of the recorded document, with edits of its texts, and with inputs and caps that are given now.
pub(crate) async fn prepare(
    host: &Host,
    config: &Config,
    options: &mut RunOptions,
    source: &Source,
    given: (Map<String, Value>, Budget),
) -> Result<(Catalogue, Models, Changed), Error> {
    let (graph, observer) = (&source.run.graph, host.observer.as_ref());
    let changed = changes(config, source, given)?;
    let catalogue = host.recorded_tools(graph, config, options, &source.run.dir).await?;
    let origin = RunOptions::stored(&source.run.info.options).origin;
    host.vet(origin, (&source.run.info.id, source.run.events), graph, &catalogue, Replaced::All)?;
    tools::tell_gone(graph, &catalogue, &mut options.warnings, observer).await;
    let roles = models::roles(graph);
    let models = models::prepare(options, config, &roles, host.environment.http()).await?;
    tools::make_ready(graph, &catalogue, observer).await?;
    config.told(&mut options.warnings);
    tools::confinement(graph, &catalogue, &mut options.warnings, observer).await?;
    if changed.budget.cost.is_some() {
        let unpriced = models::unpriced(options, config, &roles);
        unpriced.iter().for_each(|warning| observer.warning(&warning.message));
        options.warnings.extend(unpriced);
    }
    Ok((catalogue, models, changed))
}

/// What edits of texts, inputs and caps change of the recorded document.
fn changes(
    config: &Config,
    source: &Source,
    (given, over): (Map<String, Value>, Budget),
) -> Result<Changed, Error> {
    let mut anew: Option<Arc<Graph>> = None;
    for (n, place, text) in &source.edits.texts {
        let edited = anew.as_ref().unwrap_or(&source.run.graph).with_text(place, text);
        anew = Some(Arc::new(edited.ok_or_else(|| no_place(*n, source.run.id()))?));
    }
    let mut initial = None;
    if !given.is_empty() {
        let mut values = source.run.now.initial.clone();
        values.extend(given);
        anew = anew.or_else(|| Some(Arc::clone(&source.run.graph)));
        initial = Some(values);
    }
    // Caps as the source had them in the end, which a resume may have raised.
    let caps = source.run.now.budget;
    let budget = Budget {
        calls: over.calls.or(caps.calls),
        tokens: over.tokens.or(caps.tokens),
        cost: over.cost.or(caps.cost),
    };
    let (name, dialect) = (source.run.info.name.clone(), source.run.info.dialect.clone());
    Ok(Changed { anew, initial, budget, limits: config.limits.machine(), name, dialect })
}

fn no_place(n: u64, run: &str) -> Error {
    let message = format!("the text of event {n} is of a document that run {run} has left");
    Error::usage("C-13", "no-such-text", &message)
        .help("fork the run that it was recorded in, or edit a later message")
}

/// The tools that are not what a graph has pinned, by where its run comes from.
fn changed_tools(
    origin: Origin,
    graph: &Graph,
    catalogue: &Catalogue,
    observer: &dyn Observer,
) -> Vec<ToolDef> {
    match origin {
        Origin::Here => tools::changed(graph, catalogue, true, observer),
        Origin::Imported | Origin::ForkOfImported => tools::claimed(graph, catalogue, observer),
    }
}

/// Where a fork leaves its source.
struct Leaving {
    /// The graph that it begins anew, and with which inputs, if it does not go on with the source's.
    anew: Option<Arc<Graph>>,
    initial: Option<Map<String, Value>>,
    /// The last event that it shares.
    shared: u64,
}

fn leaving(source: &Source, changed: &Changed) -> Leaving {
    // A fork that has left its source's document or inputs behind is one of the document that it came to.
    let (run, then) = (&source.run, &source.then);
    let moved = (&run.now.graph, &run.now.initial) != (&then.graph, &then.initial);
    let anew = changed.anew.clone().or_else(|| moved.then(|| Arc::clone(&run.graph)));
    let initial = changed.initial.clone().or_else(|| moved.then(|| run.now.initial.clone()));
    let shared = if anew.is_some() { source.at } else { source.edits.last_shared(source.at) };
    Leaving { anew, initial, shared }
}

/// What a fork goes on with.
struct Parts<'p> {
    /// The name of the graph that it begins anew.
    hash: Option<Arc<str>>,
    /// Which models answer.
    names: &'p BTreeMap<Arc<str>, Arc<str>>,
    /// Tools that are not what the graph has pinned.
    tools: Vec<ToolDef>,
    sequential: bool,
}

impl Parts<'_> {
    /// The input with which it leaves its source, which had begun with `then`.
    fn fork(self, source: &Source, then: &Start, leaving: &Leaving, changed: &Changed) -> Fork {
        let other = |(role, name): &(&Arc<str>, &Arc<str>)| then.models.get(*role) != Some(*name);
        let models = self.names.iter().filter(other).map(|(role, name)| (role.clone(), name.clone()));
        Fork {
            source: source.run.id().into(),
            events: source.run.events,
            graph: self.hash,
            initial: leaving.initial.clone(),
            budget: (changed.budget != then.budget).then_some(changed.budget),
            limits: Some(then.limits.raised(changed.limits)).filter(|limits| *limits != then.limits),
            sequential: (self.sequential || source.run.now.sequential) && !then.sequential,
            models: models.collect(),
            tools: self.tools,
            texts: source.edits.outcomes.clone(),
            damaged: source.run.damage.is_some(),
            past: Some(Arc::clone(&source.run.past)),
            compiled: leaving.anew.clone(),
        }
    }
}

/// Creates the fork: from here on it exists, and its first event is durable (E-04).
pub(crate) async fn begin(
    (id, options, config): (&str, &RunOptions, &Config),
    (models, catalogue): (&Models, &Catalogue),
    mut source: Box<Source>,
    changed: Changed,
    observer: &dyn Observer,
) -> Result<Started, Error> {
    let lock = source.run.store.drive(id)?;
    let leaving = leaving(&source, &changed);
    let (anew, shared) = (leaving.anew.clone(), leaving.shared);
    let mut count = Count::new(id, Some(models.model.as_ref()), Some(shared + 1));
    let mut state = match count.counts() {
        false => source.left_at(shared)?,
        true => {
            // It has to know the requests in what is shared (C-07).
            let reading = &source.run.reading;
            let mut state = State::new(Arc::clone(reading.graph()));
            reading.clone().fold(&mut state, shared, |state, record| count.see(state, &record.event))?;
            state
        }
    };
    let of = &source.run;
    let graph = anew.clone().unwrap_or_else(|| Arc::clone(state.graph()));
    let hash = match anew.as_deref() {
        None => None,
        Some(graph) => {
            let (hash, stored) = of.store.put_blob(serde_json::to_vec(graph).map_err(unwritable)?);
            stored.await?;
            Some(Arc::from(hash.to_string()))
        }
    };
    let named = hash.clone().unwrap_or_else(|| Arc::clone(&state.start().graph));
    let tools = changed_tools(options.origin, &graph, catalogue, observer);
    let pinned = graph.tools.values().map(|tool| &**tool).chain(&tools);
    record::pin(&of.store, catalogue, pinned, &secrets::named(config)).await?;
    let parts = Parts { hash, names: &models.names, tools, sequential: options.sequential };
    let fork = parts.fork(&source, state.start(), &leaving, &changed);
    let at = state.tick(SystemClock.now_ms());
    let event = state
        .accept(Input::Fork(Box::new(fork)))
        .ok_or_else(|| Error::internal("a run that has begun can't be forked"))?;
    let json = serde_json::to_string(&event).map_err(unwritable)?;
    let scripted = models.scripted || source.script_answered(anew.is_some(), shared)?;
    let run = NewRun {
        id: id.to_owned(),
        name: changed.name,
        dialect: changed.dialect,
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(named.parse()?),
        scripted,
        options: options.to_stored().map_err(unwritable)?,
        fork: Some(ForkPoint { run: of.info.id.clone(), events: shared }),
        parent: None,
    };
    let info = run.info();
    of.store.create_run(run, vec![Entry { n: shared + 1, at_ms: at, json }]).await?;
    count.see(&state, &event);
    state.apply_record(&Record { at, event });
    let fork = ForkedFrom { run: of.info.id.clone(), events: of.events, at: source.at, shared };
    let (store, source, fork) = (Arc::clone(&of.store), Some(of.info.id.clone()), Some(fork));
    Ok(Started { store, state, graph, info, lock, inputs: Vec::new(), source, fork })
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::internal(&format!("the run can't be written: {error}"))
}

#[cfg(test)]
mod tests;
