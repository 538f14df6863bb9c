//! `selvedge evolve`: the tasks of a data set in batches (C-17, V-15).

pub(crate) mod args;
mod eval;
mod told;

use crate::args::{Common, Exec};
use crate::block_on::block_on;
use crate::commands::tools::import::warm;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use args::{EvolveArgs, EvolveCommand, TaskOptions};
use selvedge_dialects::evolve::{Clustering, Merging, Optimise, Score};
use selvedge_evolve::{DataSet, Evolution, Heard, Part};
use selvedge_host::Error;
use std::path::Path;
use std::sync::Arc;
use told::Told;

/// Evolves a library over a data set.
pub(crate) fn evolve(args: &EvolveArgs, common: &Common, mut ui: Ui) -> Result<Exit, Error> {
    if let Some(EvolveCommand::Eval(args)) = &args.command {
        return eval::eval(args, common, ui);
    }
    refuse(&args.tasks.exec)?;
    if let Some(folder) = &args.library {
        warm(folder, &args.tasks.exec.from.grants, common, &ui)?;
    }
    let cluster =
        Clustering::NAMES.iter().find(|(name, _)| *name == args.cluster).map(|(_, cluster)| *cluster);
    let merge = Merging::NAMES.iter().find(|(name, _)| *name == args.merge_policy).map(|(_, merge)| *merge);
    let optimise = Optimise { cluster: cluster.unwrap_or_default(), merge: merge.unwrap_or_default() };
    // It is there where there is no other command.
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let evolution = evolution(file, &args.tasks, Some(optimise), common, &ui)?;
    let host = ui.host(common)?;
    // Tasks compute at the same time: they get more than one thread.
    block_on(usize::MAX, async {
        let signals = Signals::listen(&ui);
        let prepared = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            prepared = evolution.prepare(&host) => prepared?,
        };
        ui.secrets = prepared.ready.secrets().to_vec();
        if let Some(script) = prepared.ready.script() {
            ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
        }
        let told = Arc::new(Told::new(&ui, &signals.stop));
        let summary = prepared.go(&(Arc::clone(&told) as Arc<dyn Heard>), &signals.stop).await;
        told.close();
        Ok(told::conclude(&summary?, &ui))
    })?
}

/// Options of single runs are none of an evolution.
fn refuse(exec: &Exec) -> Result<(), Error> {
    let given = [
        ("--plan", exec.plan.is_some(), "tasks are agents"),
        ("--dialect", exec.dialect.is_some(), "tasks are agents"),
        ("--input", !exec.input.is_empty(), "write what differs into the questions"),
        ("--run-id", exec.run_id.is_some(), "ids follow from the data set"),
        ("--timeout", exec.timeout.is_some(), "a task's time is --task-timeout"),
        ("--sequential", exec.sequential, "one task after the other is --concurrency 1"),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => {
            let message = format!("`{option}` is an option of single runs");
            Err(Error::usage("V-15", "option-of-run", &message).help(&format!("leave it out: {why}")))
        }
        None => Ok(()),
    }
}

fn evolution(
    file: &Path,
    args: &TaskOptions,
    optimise: Option<Optimise>,
    common: &Common,
    ui: &Ui,
) -> Result<Evolution, Error> {
    let options = crate::options::for_run(&ui.environment, &args.exec)?;
    let score = Score::NAMES.iter().find(|(name, _)| *name == args.score).map(|(_, score)| *score);
    let concurrency = args.concurrency.unwrap_or(args.batch_size);
    let workers = crate::commands::worker::workers(args.workers, common, ui)?;
    Ok(Evolution {
        data_set: DataSet::open(&ui.environment.absolute(file), file)?,
        part: Part { start: args.start, limit: args.limit, skip_bad: args.skip_bad },
        out: args.out.clone(),
        batch_size: args.batch_size as usize,
        concurrency: workers.as_ref().map_or(concurrency, |(_, most)| concurrency.min(*most as u32)) as usize,
        task_timeout_s: args.task_timeout.into(),
        score: score.unwrap_or_default(),
        optimise,
        workers,
        agent: args.agent.fields(),
        options,
    })
}
