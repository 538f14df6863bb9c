//! The whole command line, as it is read.

mod later;

use self::later::Later;
use crate::args::{
    AgentArgs, AnswerArgs, CancelArgs, CheckArgs, Common, ForkArgs, MessageArgs, MigrateArgs, ResumeArgs,
    RunArgs,
};
use crate::commands::evolve::args::EvolveArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::simulate::args::SimulateArgs;
use crate::commands::tools::args::ToolsArgs;
use crate::commands::trust::TrustArgs;
use crate::commands::worker::WORKER;
use crate::inspect::args::{
    DoctorArgs, ExportArgs, HelpArgs, ImportArgs, ModelsArgs, ReplayArgs, RunsArgs, ShowArgs,
};
use crate::inspect::completions::{CompleteArgs, CompletionsArgs};
use crate::inspect::diff::DiffArgs;
use crate::inspect::explain::ExplainArgs;
use crate::inspect::graph::GraphArgs;
use crate::inspect::init::InitArgs;
use crate::inspect::schema::SchemaArgs;
use clap::{Parser, Subcommand};

const MAIN_HELP: &str = "\
Examples:
  selvedge run plan.json --input topic=bees --base-url http://127.0.0.1:11434/v1
  selvedge check plan.json --tools ./tools
  selvedge simulate plan.json --seeds 1000
  selvedge resume RUN
  selvedge runs
  selvedge help environment           # also: placeholders, scripts, config

Exit codes: 0 completed, 1 the run failed or was cancelled, 2 the document or
the call is wrong, 3 waiting for a person, 4 configuration or environment,
5 internal error, 130 interrupted (the run can be resumed).";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, about = "A runtime for plans, step tasks and workflows of language models", after_help = MAIN_HELP, disable_help_subcommand = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile and run a document
    Run(Later<RunArgs>),
    /// Let an agent do a task, with tools that it writes itself
    Agent(Later<AgentArgs>),
    /// Do the tasks of a data set in batches, and let the tool library grow with them
    Evolve(Later<EvolveArgs>),
    /// Check documents without running them
    Check(Later<CheckArgs>),
    /// Go on with a run that failed or was interrupted
    Resume(Later<ResumeArgs>),
    /// Answer a run that waits for a person, and go on with it
    Answer(Later<AnswerArgs>),
    /// Tell an agent something that it has not asked for
    Message(Later<MessageArgs>),
    /// Go on from any event of a run as a new run, with or without edits
    Fork(Later<ForkArgs>),
    /// End a run, whether or not a process drives it
    Cancel(Later<CancelArgs>),
    /// Serve the HTTP API and the page
    Serve(Later<ServeArgs>),
    /// List the recorded runs
    Runs(Later<RunsArgs>),
    /// Look at a run: result, threads, events, metadata
    Show(Later<ShowArgs>),
    /// Show when each node of a run ran, and whom it waited for
    Explain(Later<ExplainArgs>),
    /// Compare two runs: threads, results, metadata and what each used
    Diff(Later<DiffArgs>),
    /// Run a document in a simulated world, over and over, and find what bad luck does to it
    Simulate(Later<SimulateArgs>),
    /// Verify that a recorded run follows from its inputs
    Replay(Later<ReplayArgs>),
    /// Print a run's journal as JSON lines, or write the whole run to a file
    Export(Later<ExportArgs>),
    /// Take in a run that `export --archive` wrote elsewhere
    Import(Later<ImportArgs>),
    /// The tool library: look at its tools, run, test, take back, import and export them
    Tools(Later<ToolsArgs>),
    /// Draw a document's compiled graph, as Mermaid or DOT
    Graph(Later<GraphArgs>),
    /// Print a document in today's form, or write it so
    Migrate(Later<MigrateArgs>),
    /// Print the JSON Schema of a document, a script or selvedge.toml, for editors
    Schema(Later<SchemaArgs>),
    /// Trust what the `selvedge.toml` of a folder starts, and where it sends keys
    Trust(Later<TrustArgs>),
    /// Start a project that runs at once
    Init(Later<InitArgs>),
    /// The configured models, and what endpoints have
    Models(Later<ModelsArgs>),
    /// What is configured and what works here
    Doctor(Later<DoctorArgs>),
    /// Print a script for completions in a shell
    Completions(Later<CompletionsArgs>),
    /// What the completion scripts ask for
    #[command(name = "__complete", hide = true)]
    Complete(Later<CompleteArgs>),
    /// What `evolve --workers` starts
    #[command(name = WORKER, hide = true)]
    Worker,
    /// Help on a command, or on environment, placeholders, scripts, config
    Help(Later<HelpArgs>),
}
