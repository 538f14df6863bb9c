//! What can be written on the command line.

pub(crate) use crate::look::args::{DoctorArgs, ExportArgs, HelpArgs, ReplayArgs, RunsArgs, ShowArgs};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const MAIN_HELP: &str = "\
Examples:
  selvedge run plan.json --input topic=bees --base-url http://127.0.0.1:11434/v1
  selvedge check plan.json --tools ./tools
  selvedge resume RUN
  selvedge runs
  selvedge help environment

Exit codes: 0 completed, 1 the run failed or was cancelled, 2 the document or
the call is wrong, 3 waiting for a person, 4 configuration or environment,
5 internal error, 130 interrupted (the run can be resumed).";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, about = "A runtime for plans, workflows and agents of language models", after_help = MAIN_HELP, disable_help_subcommand = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What every command takes (C-10).
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// The folder that keeps runs: else `.selvedge/` found upwards, else the user's data folder
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state_dir: Option<PathBuf>,
    /// Machine output: one JSON object on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress, no notes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Show each tool call, retry and value as well
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile and run a document
    Run(RunArgs),
    /// Check documents without running them
    Check(CheckArgs),
    /// Go on with a run that failed or was interrupted
    Resume(ResumeArgs),
    /// Answer a run that waits for a person, and go on with it
    Answer(AnswerArgs),
    /// End a run that nobody drives
    Cancel(CancelArgs),
    /// List the recorded runs
    Runs(RunsArgs),
    /// Look at a run: result, threads, events, metadata
    Show(ShowArgs),
    /// Verify that a recorded run follows from its inputs
    Replay(ReplayArgs),
    /// Print a run's journal as JSON lines
    Export(ExportArgs),
    /// What is configured and what works here
    Doctor(DoctorArgs),
    /// Help on a command, or on the variables of the environment
    Help(HelpArgs),
}

const RUN_HELP: &str = "\
Examples:
  selvedge run plan.json --input topic=bees --model basic=qwen3 --base-url http://127.0.0.1:8000/v1
  selvedge run plan.json --script replies.yaml --json
  selvedge run plans.json --plan report --tools ./tools --allow-write ./out --budget calls=100,cost=2.5

Without --model and --base-url, models come from `selvedge.toml` or the environment.";

/// `selvedge run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// The document: a plan, step task, workflow or agent file
    pub(crate) file: PathBuf,
    /// How it is run.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

/// The options of `run`, which every command that executes takes (C-01, C-10).
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Exec {
    /// Which plan, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out: plan, steps, workflow or agent
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// A value of the document's metadata; JSON if it parses, else text
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) input: Vec<String>,
    /// The model, of one role or of all
    #[arg(long, value_name = "[ROLE=]NAME")]
    pub(crate) model: Vec<String>,
    /// An OpenAI-compatible endpoint for every role, version part included
    #[arg(long, value_name = "URL", conflicts_with = "script")]
    pub(crate) base_url: Option<String>,
    /// Scripted replies instead of a model: a YAML file of rules
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// A folder of Python tools
    #[arg(long, value_name = "DIR")]
    pub(crate) tools: Vec<PathBuf>,
    /// MCP servers
    #[arg(long, value_name = "CONFIG", hide = true)]
    pub(crate) mcp: Option<PathBuf>,
    /// A folder or file that tools may read, besides the document's folder
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// A folder or file that tools may write
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Let tools that declare it use the network
    #[arg(long)]
    pub(crate) allow_network: bool,
    /// Refuse to run where tools can't be isolated
    #[arg(long)]
    pub(crate) require_isolation: bool,
    /// One node after the other
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Model calls at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_parallel: Option<u32>,
    /// Caps of the run: calls=100,tokens=1e6,cost=2.5
    #[arg(long, value_name = "CAPS")]
    pub(crate) budget: Option<String>,
    /// Seconds the run may take
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// The run's id, never used before
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
}

const CHECK_HELP: &str = "\
Examples:
  selvedge check plan.json
  selvedge check plans/*.json --tools ./tools --json

Exits with 0 if there are only warnings, with 2 if there are errors.";

/// `selvedge check`.
#[derive(Args, Debug)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// The documents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A folder of Python tools
    #[arg(long, value_name = "DIR")]
    pub(crate) tools: Vec<PathBuf>,
    /// MCP servers
    #[arg(long, value_name = "CONFIG", hide = true)]
    pub(crate) mcp: Option<PathBuf>,
    /// Which plan, if a file holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out: plan, steps, workflow or agent
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
}

const RESUME_HELP: &str = "\
Examples:
  selvedge resume 1kq3
  selvedge resume 1kq3 --allow-network --json

What the run was started with holds, unless an option says otherwise.
Finished work is not done again; a failed run takes tools as they are now.";

/// `selvedge resume`.
#[derive(Args, Debug)]
#[command(after_help = RESUME_HELP)]
pub(crate) struct ResumeArgs {
    /// The run: its id, or enough of its beginning
    pub(crate) run: String,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const ANSWER_HELP: &str = "\
Examples:
  selvedge answer 1kq3 n2/approve yes
  selvedge answer 1kq3 n2/approve no --no-continue

The asks of a waiting run are in `selvedge show RUN`. For an approval VALUE is yes or no.";

/// `selvedge answer`.
#[derive(Args, Debug)]
#[command(after_help = ANSWER_HELP)]
pub(crate) struct AnswerArgs {
    /// The run: its id, or enough of its beginning
    pub(crate) run: String,
    /// The ask's id
    pub(crate) ask: String,
    /// The answer
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: String,
    /// Only record the answer
    #[arg(long)]
    pub(crate) no_continue: bool,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const CANCEL_HELP: &str = "\
Example:
  selvedge cancel 1kq3

A run that another process drives is ended there, with Ctrl-C.";

/// `selvedge cancel`.
#[derive(Args, Debug)]
#[command(after_help = CANCEL_HELP)]
pub(crate) struct CancelArgs {
    /// The run: its id, or enough of its beginning
    pub(crate) run: String,
}
