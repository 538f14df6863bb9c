//! The commands: each file does one.

mod agent;
mod answer;
mod cancel;
pub(crate) mod check;
pub(crate) mod evolve;
mod fork;
mod import;
mod message;
mod migrate;
mod refused;
mod resume;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod worker;

use crate::args::Common;
use crate::cli::{Cli, Command};
use crate::failure::Exit;
use crate::inspect;
use crate::ui::Ui;
use clap::Parser;
use selvedge_host::Environment;
use selvedge_sandbox::launcher::Launcher;

/// Reads the command line, does what it says, and returns the exit code.
pub(crate) fn main() -> Exit {
    let (exit, ui) = match Cli::try_parse() {
        Ok(cli) => {
            let Common { json, quiet, verbose, .. } = cli.common;
            crate::words::tell(cli.common.state_dir.as_deref());
            let environment = environment().in_state_dir(cli.common.state_dir.as_deref());
            let ui = Ui::new(environment, json, quiet, verbose);
            inspect::pager::choose(cli.common.no_pager);
            let exit = done(cli, &ui);
            selvedge_host::killed::end();
            (exit, ui)
        }
        Err(error) => {
            let json = std::env::args_os().any(|arg| arg == "--json");
            // An argument that is repeated may hold a key (C-06).
            let ui = Ui::new(environment(), json, false, 0).guarded();
            (refused::refused(&error, &ui), ui)
        }
    };
    let Some(error) = crate::ui::result_lost() else { return exit };
    crate::failure::print(&crate::failure::lost(&error), &ui);
    // A result that nobody can read is no success.
    if exit == Exit::Completed { Exit::Environment } else { exit }
}

/// The word that makes this program the launcher of confined programs.
pub(crate) const CONFINE: &str = "__confine";

/// What this process was started with: read here, and handed to whoever needs to know.
fn environment() -> Environment {
    let environment = Environment::new(std::env::vars_os(), std::env::current_dir().unwrap_or_default());
    match std::env::current_exe() {
        Ok(program) => environment.with_launcher(Launcher { program, args: vec![CONFINE.to_owned()] }),
        Err(_) => environment,
    }
}

fn told(left: &str, ui: &Ui) {
    crate::ui::stderr(&format!("{}: {left}\n", ui.paint("1;33", "warning")));
}

fn done(cli: Cli, ui: &Ui) -> Exit {
    // Not for those that read nothing of what may be there.
    let reads = !matches!(
        cli.command,
        Command::Help(_) | Command::Schema(_) | Command::Completions(_) | Command::Complete(_)
    );
    if reads && let Err(failure) = selvedge_host::killed::settle(&ui.environment, &|left| told(left, ui)) {
        crate::failure::print(&failure, ui);
        return Exit::from(&failure);
    }
    let done = match cli.command {
        Command::Run(args) => run::run(&args, &cli.common, ui.clone()),
        Command::Agent(args) => agent::run(&args, &cli.common, ui.clone()),
        Command::Evolve(args) => evolve::evolve(&args, &cli.common, ui.clone()),
        Command::Check(args) => check::check(&args, &cli.common, ui),
        Command::Resume(args) => resume::resume(&args, &cli.common, ui.clone()),
        Command::Answer(args) => answer::answer(&args, &cli.common, ui.clone()),
        Command::Message(args) => message::message(&args, &cli.common, ui.clone()),
        Command::Fork(args) => fork::fork(&args, &cli.common, ui.clone()),
        Command::Cancel(args) => cancel::cancel(&args, &cli.common, ui),
        Command::Serve(args) => serve::serve(&args, &cli.common, ui),
        Command::Migrate(args) => migrate::migrate(&args, &cli.common, ui),
        Command::Runs(args) => inspect::runs(&args, &cli.common, ui),
        Command::Show(args) => inspect::show(&args, &cli.common, ui),
        Command::Explain(args) => inspect::explain::explain(&args, &cli.common, ui),
        Command::Simulate(args) => simulate::simulate(&args, &cli.common, ui),
        Command::Diff(args) => inspect::diff::diff(&args, &cli.common, ui),
        Command::Replay(args) => inspect::replay(&args, &cli.common, ui),
        Command::Export(args) => inspect::export(&args, &cli.common, ui),
        Command::Import(args) => import::import(&args, &cli.common, ui),
        Command::Tools(args) => tools::tools(&args, &cli.common, ui),
        Command::Graph(args) => inspect::graph::graph(&args, &cli.common, ui),
        Command::Schema(args) => inspect::schema::schema(&args, ui),
        Command::Trust(args) => trust::trust(&args, &cli.common, ui),
        Command::Init(args) => inspect::init::init(&args, ui),
        Command::Completions(args) => inspect::completions::completions(&args, ui),
        Command::Complete(args) => Ok(inspect::completions::complete(&args, &cli.common, ui)),
        Command::Models(args) => inspect::models(&args, &cli.common, ui),
        Command::Doctor(args) => inspect::doctor(&args, &cli.common, ui),
        Command::Worker => worker::worker(&cli.common, ui),
        Command::Help(args) => inspect::help(&args, ui),
    };
    done.unwrap_or_else(|failure| {
        crate::failure::print(&failure, ui);
        Exit::from(&failure)
    })
}
