//! `selvedge fork`: a recorded run goes on from any of its events as a new run, with or without edits (E-19, C-13).

mod dry_run;

use crate::args::{Common, ForkArgs};
use crate::drive;
use crate::failure::Exit;
use crate::inspect::of_fork;
use crate::ui::Ui;
use selvedge_host::{Begun, Error, ForkOptions};

/// Forks a run and goes on with the fork.
pub(crate) fn fork(args: &ForkArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let fork = ForkOptions {
        at: args.at,
        document: args.document.clone(),
        messages: args.set_message.iter().map(|text| parsed(text)).collect::<Result<_, _>>()?,
        id: args.exec.run_id.clone(),
        over: crate::options::for_fork(&ui.environment, &args.exec, args.document.is_some())?,
    };
    let host = ui.host(common)?;
    let asked = host.source(&args.run, fork)?;
    if args.dry_run {
        return dry_run::dry_run(&host, asked, &ui);
    }
    drive::begin(&host, asked, ui, |run, ui| tell(run, args, ui))
}

/// Says what it is a fork of, and why nobody is asked anything, where every node has ended well in what the fork shares (C-13).
fn tell(run: &Begun, args: &ForkArgs, ui: &Ui) {
    let Some(from) = &run.fork else { return };
    ui.note(&format!("run {}: a fork of {}", run.id, of_fork(&from.run, from.shared, from.events)));
    let (done, nodes) = run.state.progress();
    if done < nodes {
        return;
    }
    let help = match args.exec.model.is_empty() {
        false => "use --at 1 to ask the new model everything, or the event after which it is to be asked",
        true => "use --at with an earlier event, or edit something",
    };
    let text = format!("note: nothing is left to run after event {}: {help}", from.at);
    // A model that is never asked is no progress that `--quiet` leaves out.
    if args.exec.model.is_empty() { ui.note(&text) } else { ui.notice(&text) }
}

/// `--set-message N=TEXT`.
fn parsed(text: &str) -> Result<(u64, String), Error> {
    let parts = text.split_once('=').and_then(|(n, text)| Some((n.trim().parse().ok()?, text.to_owned())));
    parts.ok_or_else(|| {
        let message = format!("`--set-message` takes N=TEXT, not {text:?}");
        Error::usage("C-13", "bad-message", &message)
            .help("N is the number of an `appended` event in selvedge show RUN --events")
    })
}
