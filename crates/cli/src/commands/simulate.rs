//! `selvedge simulate`: a document under bad luck (C-18).

pub(crate) mod args;
mod shown;

use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::{Exit, text};
use crate::how_far::HowFar;
use crate::options::for_reading;
use crate::signals::Signals;
use crate::ui::Ui;
use args::SimulateArgs;
use selvedge_dialects::Severity;
use selvedge_host::options::{input_texts, seconds};
use selvedge_host::prepare::findings::kind_of;
use selvedge_host::{Error, RunOptions, Simulated};
use selvedge_world::{Search, World, one, search};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Simulates a document.
pub(crate) fn simulate(args: &SimulateArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let limit = args.time_limit.map(|given| seconds(Some(given), &given.to_string(), "--time-limit"));
    let limit = limit.transpose()?.map(Duration::from_secs);
    let options = RunOptions {
        plan: args.reading.plan.clone(),
        dialect: args.reading.dialect.clone(),
        script: args.script.as_deref().map(|path| ui.environment.absolute(path)),
        input_texts: input_texts(&args.input)?,
        ..for_reading(&ui.environment, &args.reading.from)?
    };
    let host = ui.host(common)?;
    let ui = &ui.guarded_by(&host.config(&options)?);
    let simulation = block_on(0, host.simulated(&args.file, options, args.from.as_deref()))??;
    let Some(simulated) = simulation.simulated else {
        return Err(Error::findings(kind_of(&simulation.findings), simulation.findings));
    };
    if !ui.json {
        let warnings = simulation.findings.iter().filter(|found| found.severity == Severity::Warning);
        warnings.for_each(|found| ui.note(&text(found, ui.colour)));
    }
    for what in &simulated.unmade {
        ui.note(&format!(
            "note: no random value fits the schema of {what}: what comes of its calls says little"
        ));
    }
    Ok(match args.seed {
        None => {
            let report = searched(simulated, args.seeds, limit, ui, search)?;
            shown::report(&report, args, ui)
        }
        Some(seed) => {
            let found = searched(simulated, args.seeds, limit, ui, move |world, how| one(world, seed, how))?;
            shown::seed(seed, &found.0, &found.1, args, ui)
        }
    })
}

/// Goes through the seeds; Ctrl-C and the limit on time end it.
fn searched<T: Send + 'static>(
    simulated: Simulated,
    seeds: u64,
    limit: Option<Duration>,
    ui: &Ui,
    work: impl FnOnce(&World, &Search<'_>) -> T + Send + 'static,
) -> Result<T, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = Arc::new(AtomicBool::new(false));
    let (told, ending) = (ui.clone(), Arc::clone(&stop));
    block_on(0, async move {
        let signals = Signals::listen(&told);
        let _quietly = signals.only_asking();
        let far = HowFar::new(told);
        let mut done = tokio::task::spawn_blocking(move || {
            let tell = |done: u64| {
                far.at(|now| {
                    let left = now.as_secs_f64() / done.max(1) as f64 * seeds.saturating_sub(done) as f64;
                    format!("simulate: {done} of {seeds} seeds, about {left:.0} s left")
                });
            };
            work(&simulated.world, &Search { seeds, threads, stop: &stop, progress: &tell })
        });
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            done = &mut done => done,
            () = async { tokio::select! { () = signals.came() => {}, () = late => {} } } => {
                ending.store(true, Ordering::Relaxed);
                done.await
            }
        };
        result.map_err(|error| Error::internal(&error.to_string()))
    })?
}
