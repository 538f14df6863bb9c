//! What `evolve` takes.

use crate::args::{AgentOptions, Exec, count};
use clap::Args;
use std::path::PathBuf;

const EVOLVE_HELP: &str = "\
Examples:
  selvedge evolve tasks.jsonl --model gpt-5
  selvedge evolve tasks.jsonl --out results --batch-size 10 --concurrency 4
  selvedge evolve tasks.jsonl --start 101 --limit 50 --score numeric --json
  selvedge evolve tasks.jsonl --budget cost=5 --coder codex

A data set is a file of lines like
  {\"task_id\": \"t1\", \"question\": \"What is the total in a.csv?\", \"answer\": \"42\", \"files\": [\"a.csv\"]}
where `answer` and `files` may be left out. Each task is an agent's (`selvedge agent`) with a run of its own, each batch a run that begins those \
of its tasks: `selvedge runs --children` lists them.

OUT/predictions.jsonl has exactly one line for each task that has ended. Ctrl-C stops at any moment, and the same command goes on: what is done is \
not done again. Exits with 0 when every task has its line, whatever came of it.";

/// `selvedge evolve` (C-17).
#[derive(Args, Debug)]
#[command(after_help = EVOLVE_HELP, mut_arg("plan", hidden), mut_arg("dialect", hidden), mut_arg("input", hidden), mut_arg("run_id", hidden), mut_arg("timeout", hidden), mut_arg("sequential", hidden))]
pub(crate) struct EvolveArgs {
    /// The data set: JSON lines with task_id and question
    #[arg(value_name = "DATASET")]
    pub(crate) file: PathBuf,
    /// Where predictions and measures go; the same folder again goes on [default: below the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Tasks of a batch
    #[arg(long, value_name = "N", default_value = "5", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) batch_size: u32,
    /// Tasks at a time [default: all of a batch]
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) concurrency: Option<u32>,
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
    /// How tools of a batch that do the same are found: by the role `cluster`, or by their names
    #[arg(long, value_name = "HOW", default_value = "smart", value_parser = ["smart", "naive"])]
    pub(crate) cluster: String,
    /// How one tool is made of those: by a coder, or the smallest of them; either way it has to repeat all recorded calls
    #[arg(long, value_name = "HOW", default_value = "smart", value_parser = ["smart", "naive"])]
    pub(crate) merge_policy: String,
    /// Begin with the tools of a folder: what the library does not have of it yet is imported first
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Option<PathBuf>,
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
