//! `selvedge show`: one run, whole or in parts, now or after any of its events (C-02, C-15, D-04, E-03).

mod advice;
mod follow;
mod joins;
mod metadata;
mod node;
mod summary;
mod threads;

use super::args::ShowArgs;
use super::{Found, events, guarded, timeline};
use crate::args::Common;
use crate::failure::Exit;
use crate::output::Report;
use crate::ui::Ui;
use crate::words::command;
use selvedge_engine::State;
use selvedge_host::Error;
use selvedge_host::options::RunOptions;
use selvedge_host::report::said;
use selvedge_host::text::counted;
use selvedge_host::timeline::Timeline;
use selvedge_runtime::{Clock, SystemClock, graph_of, load};

/// The moment that is shown.
#[derive(Clone, Copy)]
struct Moment {
    /// The last event that counts.
    at: u64,
    /// The journal's last event.
    of: u64,
}

/// Shows a run.
pub(crate) fn show(args: &ShowArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let found = Found::new(common, &args.run, ui)?;
    let ui = &guarded(ui);
    if let Some(at) = args.at {
        let of = found.store.last_event(found.run())?;
        if at > of {
            let message = format!("run {} has {}: there is no event {at}", found.run(), counted(of, "event"));
            return Err(Error::usage("C-15", "unknown-event", &message).help(&format!(
                "--at takes 1 to {of}; {} lists them",
                command(&["show", found.run(), "--events"])
            )));
        }
    }
    if args.follow {
        return follow::follow(&found, ui);
    }
    if args.events {
        events::print(&found, args.at, ui)?;
        return Ok(Exit::Completed);
    }
    if let Some(node) = &args.node {
        node::print(&found, node, args.at, ui)?;
        return Ok(Exit::Completed);
    }
    let is_page = !args.metadata && args.thread.is_none() && !ui.json;
    if is_page {
        let (state, timeline) = timeline::read(&found, args.at, |_, _| {})?;
        whole(&found, &state, Some(&timeline), args, ui)?;
        return Ok(Exit::Completed);
    }
    let state = load(&found.store, found.run(), args.at, None)?.state;
    if args.metadata {
        metadata::print(&state, ui);
    } else if let Some(thread) = &args.thread {
        threads::print_one(&found, &state, thread, ui)?;
    } else {
        whole(&found, &state, None, args, ui)?;
    }
    Ok(Exit::Completed)
}

/// The whole run: a page for people, which takes its timeline, or C-02's object.
fn whole(
    found: &Found,
    state: &State,
    timeline: Option<&Timeline>,
    args: &ShowArgs,
    ui: &Ui,
) -> Result<(), Error> {
    let of = found.store.last_event(found.run())?.max(state.events());
    let moment = Moment { at: state.events(), of };
    let graph = graph_of(&found.store, &found.info)?;
    let warnings = RunOptions::stored(&found.info.options).warnings;
    let report = Report {
        store: &found.store,
        run: found.run(),
        state,
        scripted: found.info.scripted,
        warnings: &warnings,
        graph: &graph,
        // Whoever drives it drives its present, not its past.
        driven: found.driven || args.at.is_some_and(|at| at < of),
        warned: false,
        now: args.at.is_none_or(|at| at == of).then(|| SystemClock.now_ms()),
    };
    match timeline {
        None => report.print(ui),
        Some(timeline) => summary::print(
            found,
            (&report, timeline),
            &said(&found.store, found.run(), moment.at)?,
            moment,
            ui,
        ),
    }
    Ok(())
}
