//! What the commands that only look take.

use crate::args::count;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use selvedge_store::RunStatus;
use std::path::PathBuf;

const RUNS_HELP: &str = "\
Examples:
  selvedge runs
  selvedge runs --waiting
  selvedge runs --status failed --json
  selvedge runs --limit 20 --name forecast
  selvedge runs --children

Newest first. `running (not driven)` is a run whose process has gone: `selvedge resume RUN` goes on with it. \
Times are UTC.";

/// `selvedge runs`.
#[derive(Args, Debug)]
#[command(after_help = RUNS_HELP)]
pub(crate) struct RunsArgs {
    /// Only runs that wait for a person
    #[arg(long, conflicts_with = "status")]
    pub(crate) waiting: bool,
    /// Only runs of one status
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    pub(crate) status: Option<RunStatus>,
    /// Only runs with TEXT in their names, in capitals or not
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Runs that other runs began, too, such as the tasks of an evolution
    #[arg(long)]
    pub(crate) children: bool,
    /// The latest N of them: else 1000, or with --json and --waiting all
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
}

/// The words for where a run stands.
fn statuses() -> impl TypedValueParser<Value = RunStatus> {
    let names = RunStatus::ALL.map(RunStatus::as_str);
    PossibleValuesParser::new(names).try_map(|word| word.parse::<RunStatus>())
}

const SHOW_HELP: &str = "\
Examples:
  selvedge show 1kq3
  selvedge show 1kq3 --thread main
  selvedge show 1kq3 --node report
  selvedge show 1kq3 --events --at 40
  selvedge show 1kq3 --metadata --json
  selvedge show @ --follow

Exits with 0 whatever became of the run; with --follow as `run` would have.";

/// `selvedge show`.
#[derive(Args, Debug)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    #[arg(default_value = "@")]
    pub(crate) run: String,
    /// The journal, event by event
    #[arg(long, group = "view")]
    pub(crate) events: bool,
    /// Both layers of metadata merged, and where each value comes from
    #[arg(long, group = "view")]
    pub(crate) metadata: bool,
    /// One node: its calls, what came of them, and what its tools printed
    #[arg(long, value_name = "ID", group = "view")]
    pub(crate) node: Option<String>,
    /// One thread in full
    #[arg(long, value_name = "NAME", group = "view")]
    pub(crate) thread: Option<String>,
    /// The run as it was after its first N events
    #[arg(long, value_name = "N", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// What it does, while another process drives it, until that ends; then its result
    #[arg(long, conflicts_with_all = ["view", "at"])]
    pub(crate) follow: bool,
}

const REPLAY_HELP: &str = "\
Examples:
  selvedge replay 1kq3
  selvedge replay 1kq3 --json

Feeds the recorded inputs (answers of models and tools, times, what people did) to the engine, which derives every \
other event again. Nothing is called. Exits with 1 if an event comes out different from the recorded one.";

/// `selvedge replay`.
#[derive(Args, Debug)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
}

const EXPORT_HELP: &str = "\
Examples:
  selvedge export 1kq3 > run.jsonl
  selvedge export 1kq3 --archive run.tar
  selvedge export 1kq3 --html run.html

One event a line: {\"n\": 1, \"at\": TIME, \"kind\": \"started\", …}.

An archive has the whole run, with its compiled document, the texts of its tools, and for a fork what it took from its \
source: `selvedge import` takes it in on any machine, to show, explain, replay and fork it there. No key is in it, no \
folder or address that the run was started with, and nothing that was allowed here. The same run is always the same file.

A page has the run as \
`selvedge serve` shows it, with its scrubber, in one file that needs nothing else and changes nothing.";

/// `selvedge export`.
#[derive(Args, Debug)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
    /// Write it to FILE, whole, to be imported elsewhere
    #[arg(long, value_name = "FILE")]
    pub(crate) archive: Option<PathBuf>,
    /// Write it to FILE as a page that shows it, to be opened from disk
    #[arg(long, value_name = "FILE", conflicts_with = "archive")]
    pub(crate) html: Option<PathBuf>,
}

const IMPORT_HELP: &str = "\
Examples:
  selvedge import run.tar
  selvedge import run.tar --state-dir ./theirs

The file is one that `selvedge export RUN --archive FILE` wrote. Everything in it is checked, and nothing is run. The \
run can then be shown, explained, replayed and forked: a fork takes the tools of this machine, those that came along \
only with --trust. A run that is here already stays as it is.";

/// `selvedge import`.
#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportArgs {
    /// The archive
    #[arg(value_name = "FILE")]
    pub(crate) archive: PathBuf,
}

const DOCTOR_HELP: &str = "\
Examples:
  selvedge doctor
  selvedge doctor --online --json

ok: works; warning: works with a catch; missing: not here and not needed by what is configured; broken: what is \
configured can't work. Exits with 4 if something is broken.";

/// `selvedge doctor`.
#[derive(Args, Debug)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct DoctorArgs {
    /// Also ask configured endpoints that are not on this machine; they get their key
    #[arg(long)]
    pub(crate) online: bool,
}

const MODELS_HELP: &str = "\
Examples:
  selvedge models
  selvedge models --check
  selvedge models --available --base-url http://127.0.0.1:8000/v1

PRICE is that of a million tokens of prompt and of reply. Keys are never shown.
--check and --available ask the endpoints, which get their key. Exits with 4 if
--check finds a model that can't be used.";

/// `selvedge models`.
#[derive(Args, Debug)]
#[command(after_help = MODELS_HELP)]
pub(crate) struct ModelsArgs {
    /// Ask each endpoint whether it can be reached, takes the key and has the model
    #[arg(long)]
    pub(crate) check: bool,
    /// Also list what the endpoints have, with Ollama and the providers whose key is found
    #[arg(long)]
    pub(crate) available: bool,
    /// An OpenAI-compatible endpoint, instead of what is configured
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

const HELP_HELP: &str = "\
Examples:
  selvedge help run
  selvedge help environment
  selvedge help placeholders";

/// `selvedge help`.
#[derive(Args, Debug)]
#[command(after_help = HELP_HELP)]
pub(crate) struct HelpArgs {
    /// A command, or a topic: environment, placeholders, scripts, config
    pub(crate) topic: Vec<String>,
}
