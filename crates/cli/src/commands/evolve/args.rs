//! What `evolve` takes.

use crate::args::{AgentOptions, Exec, count};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EVOLVE_HELP: &str = "\
Examples:
  selvedge evolve tasks.jsonl --model gpt-5
  selvedge evolve tasks.jsonl --out results --batch-size 10 --concurrency 4
  selvedge evolve tasks.jsonl --workers 4
  selvedge evolve tasks.jsonl --start 101 --limit 50 --score numeric --json
  selvedge evolve tasks.jsonl --budget cost=5 --coder codex
  selvedge evolve eval tasks.jsonl --without column_total

A data set is a file of lines like
  {\"task_id\": \"t1\", \"question\": \"What is the total in a.csv?\", \"answer\": \"42\", \"files\": [\"a.csv\"]}
where `answer` and `files` may be left out. Each task is an agent's (`selvedge agent`) with a run of its own, each batch a run that begins those \
of its tasks: `selvedge runs --children` lists them.

OUT/predictions.jsonl has exactly one line for each task that has ended. Ctrl-C stops at any moment, and the same command goes on: what is done is \
not done again. Exits with 0 when every task has its line, whatever came of it.";

const EVAL_HELP: &str = "\
Examples:
  selvedge evolve eval tasks.jsonl --without column_total --without to_metres
  selvedge evolve eval tasks.jsonl --library new --library old --score numeric
  selvedge evolve eval tasks.jsonl --without column_total --limit 100 --budget cost=5 --json

Does the tasks with the library as it is, and once more without each of these tools; or with each of two folders of tools (`selvedge tools export`). \
Scores are compared task by task: the mean difference has a bootstrap interval of 95 %, always the same for the same scores, and follows a verdict: \
keeps, useless, harmful, or not enough tasks to tell.

Each way has a state folder of its own, OUT/NAME/state: nothing is learnt from these tasks, and the library itself stays as it is. Ctrl-C stops at any \
moment, and the same command goes on.";

/// `selvedge evolve` (C-17).
#[derive(Args, Debug)]
#[command(after_help = EVOLVE_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true, mut_arg("plan", hidden), mut_arg("dialect", hidden), mut_arg("input", hidden), mut_arg("run_id", hidden), mut_arg("timeout", hidden), mut_arg("sequential", hidden))]
pub(crate) struct EvolveArgs {
    /// What else is to be done with a data set.
    #[command(subcommand)]
    pub(crate) command: Option<EvolveCommand>,
    /// The data set: JSON lines with task_id and question
    #[arg(value_name = "DATASET", required = true)]
    pub(crate) file: Option<PathBuf>,
    /// How tools of a batch that do the same are found: by the role `cluster`, or by their names
    #[arg(long, value_name = "HOW", default_value = "smart", value_parser = ["smart", "naive"])]
    pub(crate) cluster: String,
    /// How one tool is made of those: by a coder, or the smallest of them; either way it has to repeat all recorded calls
    #[arg(long, value_name = "HOW", default_value = "smart", value_parser = ["smart", "naive"])]
    pub(crate) merge_policy: String,
    /// Begin with the tools of a folder: what the library does not have of it yet is imported first
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Option<PathBuf>,
    /// Which tasks, and how they are done.
    #[command(flatten)]
    pub(crate) tasks: TaskOptions,
}

/// What can be done with a data set besides an evolution.
#[derive(Debug, Subcommand)]
pub(crate) enum EvolveCommand {
    /// Compare how the tasks come out with and without a tool, or with two libraries
    Eval(Box<EvalArgs>),
}

/// `selvedge evolve eval` (V-13).
#[derive(Args, Debug)]
#[command(after_help = EVAL_HELP, mut_arg("plan", hidden), mut_arg("dialect", hidden), mut_arg("input", hidden), mut_arg("run_id", hidden), mut_arg("timeout", hidden), mut_arg("sequential", hidden))]
pub(crate) struct EvalArgs {
    /// The data set: JSON lines with task_id, question and answer
    #[arg(value_name = "DATASET")]
    pub(crate) file: PathBuf,
    /// A tool of the library that is judged; as often as wanted
    #[arg(long, value_name = "TOOL")]
    pub(crate) without: Vec<String>,
    /// A folder of tools; twice: the first one is judged by the second
    #[arg(long, value_name = "DIR", conflicts_with = "without")]
    pub(crate) library: Vec<PathBuf>,
    /// Which tasks, and how they are done.
    #[command(flatten)]
    pub(crate) tasks: TaskOptions,
}

/// Which tasks of a data set are done, and how.
#[derive(Args, Debug)]
pub(crate) struct TaskOptions {
    /// Where what comes of it goes; the same folder again goes on [default: below the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Tasks of a batch
    #[arg(long, value_name = "N", default_value = "5", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) batch_size: u32,
    /// Tasks at a time [default: all of a batch]
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) concurrency: Option<u32>,
    /// Processes that do the tasks, one task at a time each: one that dies ends no other's task [default: 0, all in this one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16), default_value_t = 0, hide_default_value = true)]
    pub(crate) workers: u16,
    /// Seconds that a task may take
    #[arg(long, value_name = "SECONDS", default_value = "5400", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) task_timeout: u32,
    /// The first line of the data set that is meant
    #[arg(long, value_name = "LINE", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) start: Option<u64>,
    /// How many lines are meant
    #[arg(long, value_name = "N", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) limit: Option<u64>,
    /// Leave out lines that are wrong
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// How predictions are held against answers
    #[arg(long, value_name = "HOW", default_value = "exact", value_parser = ["exact", "numeric", "judge"])]
    pub(crate) score: String,
    /// How the agents of tasks work.
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    /// How it is run.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

/// An option of single runs, which means nothing here.
fn hidden(option: clap::Arg) -> clap::Arg {
    option.hide(true)
}
