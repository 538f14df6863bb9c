//! A run that goes on where its journal ends (E-05, P-21).

use crate::asks;
use crate::config::Config;
use crate::error::Error;
use crate::host::Host;
use crate::library::record;
use crate::models::{self, Models};
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::ready::{Asked, Begins, Started, What};
use crate::recorded::{LockedRun, RecordedRun};
use crate::trust::imported::Replaced;
use crate::{document_files, secrets, tools};
use selvedge_engine::{Budget, Input, RunStatus, State, Warning};
use selvedge_runtime::load;
use selvedge_store::{DriverLock, RunUpdate};
use selvedge_tools::Catalogue;

impl Host {
    /// Takes up a run, as it was begun but for what `over` chooses. What of it changes nothing where a run goes on, as its inputs and
    /// the order of its nodes, is left out.
    ///
    /// # Errors
    /// It can't go on ([`RecordedRun::can_go_on`]) and was told nothing, its folder can only be read or is not trusted, or something is wrong
    /// with the choices or the configuration.
    pub fn take_up(&self, mut run: LockedRun, over: &RunOptions) -> Result<Asked, Error> {
        if run.inputs.is_empty() && !run.run.can_go_on() {
            return Err(over_already(&run.run));
        }
        let stored = RunOptions::read(&run.run.info.options)?.in_folder(self.environment.cwd());
        let mut options = stored.clone().under(over.clone()).recordable()?;
        let lock = run.take_lock()?;
        let LockedRun { run, mut inputs, .. } = run;
        if inputs.is_empty() && run.state.status() == RunStatus::Failed {
            // The outermost failed part gets a new visit; what had succeeded is reused (E-05, E-29).
            inputs.push(Input::Resume(Vec::new()));
        }
        // Caps that are given replace the run's (E-20).
        if over.budget != Budget::default() {
            inputs.insert(0, Input::Budget(over.budget));
        }
        self.gate.pass_state(&self.environment, &run.dir, run.id(), &stored, self.observer.as_ref())?;
        let mut config = self.config(&options)?;
        // Which models answer from here on is recorded (C-06).
        secrets::refuse_choices(&secrets::named(&config), None, over)?;
        let limits = config.limits.document();
        document_files::tell_changes(
            &self.environment,
            run.id(),
            &mut options,
            &limits,
            self.observer.as_ref(),
        );
        if over.tools.is_empty() {
            tools::leave_out_vanished(&mut options, &mut config, self.observer.as_ref());
        }
        let (id, run) = (run.id().to_owned(), Box::new(run));
        Ok(Asked { id, name: None, parent: None, config, options, what: What::Run { run, lock, inputs } })
    }
}

/// There is nothing left to do.
fn over_already(run: &RecordedRun) -> Error {
    match run.state.declined() {
        Some((ask, _)) => {
            let message =
                format!("somebody has said no to the ask {ask}, and run {} has failed of it", run.id());
            Error::usage("E-05", "write-in-doubt", &message).help(&asks::ways_in_line(run.id(), ask))
        }
        None => {
            let message = format!("run {} has ended", run.id());
            Error::usage("C-12", "run-ended", &message).help("a fork of it may go on from any of its events")
        }
    }
}

/// The tools and models that the run goes on with, and its inputs with what has changed about them.
pub(crate) async fn prepare(
    host: &Host,
    config: &Config,
    options: &mut RunOptions,
    (run, lock, inputs): (Box<RecordedRun>, DriverLock, Vec<Input>),
) -> Result<(Catalogue, Models, Begins), Error> {
    let (graph, observer) = (run.state.graph(), host.observer.as_ref());
    let catalogue = host.recorded_tools(graph, config, options, &run.dir).await?;
    let replaced = if is_told(&inputs) { Replaced::None } else { Replaced::ButByLibrary };
    host.vet(options.origin, (run.id(), run.state.events()), graph, &catalogue, replaced)?;
    let lost = tools::tell_gone(graph, &catalogue, &mut options.warnings, observer).await;
    tools::refuse_lost(run.id(), &run.state, &lost)?;
    let roles = models::roles(graph);
    let models = models::prepare(options, config, &roles, host.environment.http()).await?;
    config.told(&mut options.warnings);
    let caps =
        inputs.iter().find_map(|input| if let Input::Budget(caps) = input { Some(*caps) } else { None });
    let mut inputs = with_tools(inputs, &run.state, &catalogue, observer).await?;
    tools::confinement(graph, &catalogue, &mut options.warnings, observer).await?;
    for input in &inputs {
        if let Input::Resume(tools) = input {
            record::pin(&run.store, &catalogue, tools.iter(), &secrets::named(config)).await?;
        }
    }
    // Limits come first, or the old ones would end the run once more (E-12).
    inputs.insert(0, Input::Limits(run.state.start().limits.raised(config.limits.machine())));
    // After a resume, which compares with what the old models said (E-29).
    inputs.push(Input::Models(models.names.clone()));
    if caps.and_then(|caps| caps.cost).or(run.state.start().budget.cost).is_some() {
        // Once a run: what was said when it began is not said again.
        let mut unpriced = models::unpriced(options, config, &roles);
        unpriced.retain(|warning| !options.warnings.contains(warning));
        unpriced.iter().for_each(|warning| observer.warning(&warning.message));
        options.warnings.extend(unpriced);
    }
    Ok((catalogue, models, Begins::Run { run, lock, inputs }))
}

/// Whether it goes on with something that somebody said of it, and not by itself.
fn is_told(inputs: &[Input]) -> bool {
    inputs.iter().any(|input| !matches!(input, Input::Resume(_) | Input::Budget(_)))
}

/// A resumed run takes tools as they are now; those that changed go into the journal (P-21).
async fn with_tools(
    inputs: Vec<Input>,
    state: &State,
    catalogue: &Catalogue,
    observer: &dyn Observer,
) -> Result<Vec<Input>, Error> {
    // An answer is for the run as it stands.
    if is_told(&inputs) {
        return Ok(inputs);
    }
    tools::make_ready(state.graph(), catalogue, observer).await?;
    let changed = tools::changed(state.graph(), catalogue, false, observer);
    let failed = inputs.iter().any(|input| matches!(input, Input::Resume(_)));
    let mut inputs: Vec<Input> =
        inputs.into_iter().filter(|input| !matches!(input, Input::Resume(_))).collect();
    if failed || !changed.is_empty() {
        inputs.push(Input::Resume(changed));
    }
    Ok(inputs)
}

/// Records whose replies the run has from here on, and its warnings.
pub(crate) async fn begin(
    (run, lock, inputs): (Box<RecordedRun>, DriverLock, Vec<Input>),
    models: &Models,
    warnings: &[Warning],
) -> Result<Started, Error> {
    let graph = run.graph()?;
    let RecordedRun { store, mut info, mut state, .. } = *run;
    // A model that counts requests has to know those that were answered (C-07): it is there only now, so for it the journal
    // is folded once more.
    if models.model.counts() {
        state = load(&store, &info.id, None, Some(models.model.as_ref()))?.state;
    }
    if models.scripted && !info.scripted {
        // Before it answers: a run that dies with its first reply was scripted, too (C-07).
        let update = RunUpdate { scripted: true, ..RunUpdate::default() };
        store.update_run(&info.id, update).await?;
    }
    info.scripted |= models.scripted;
    let stored = RunOptions::read(&info.options)?;
    if stored.warnings != warnings {
        let kept = RunOptions { warnings: warnings.to_vec(), ..stored }.to_stored();
        info.options =
            kept.map_err(|error| Error::internal(&format!("the run can't be written: {error}")))?;
        let update = RunUpdate { options: Some(info.options.clone()), ..RunUpdate::default() };
        store.update_run(&info.id, update).await?;
    }
    let source = info.fork.as_ref().map(|fork| fork.run.clone());
    Ok(Started { store, state, graph, info, lock, inputs, source, fork: None })
}
