//! What `simulate` takes.

use crate::args::{Reading, count, number};
use clap::Args;
use std::path::PathBuf;

const SIMULATE_HELP: &str = "\
Examples:
  selvedge simulate review.json
  selvedge simulate review.json --seeds 10000 --tools ./tools
  selvedge simulate review.json --seed 17            # one of them, as `explain` shows a run
  selvedge simulate review.json --script replies.yaml --input topic=bees
  selvedge simulate review.json --from 1kq3 --json

The document runs by the engine that runs it in earnest, and everything around it is chance: calls fail and take long, processes die, \
nobody answers. No model, tool or person is asked, and nothing is recorded. Models say what a script says, or what they said in a \
recorded run (--from), or anything that fits; tools give what they gave there, or values that fit what they declare. The same \
seed always brings the same.

Finds joins that are never met, questions without a time, loops without an end, results that depend on which path ends first, \
and calls that a crash or a retry would make twice. Exits with 1 if it finds anything.";

/// `selvedge simulate`.
#[derive(Args, Debug)]
#[command(after_help = SIMULATE_HELP)]
pub(crate) struct SimulateArgs {
    /// The document: a plan, a step task or a workflow
    pub(crate) file: PathBuf,
    /// How many seeds are looked at
    #[arg(long, value_name = "N", default_value = "1000", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) seeds: u64,
    /// Show the run of one seed, and what it finds
    #[arg(long, value_name = "K", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Models and tools say what they said in this recorded run
    #[arg(long = "from", id = "run", value_name = "RUN")]
    pub(crate) from: Option<String>,
    /// Scripted replies instead of random ones: a YAML file of rules
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// A value of the document's metadata; JSON if it parses, else text
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) input: Vec<String>,
    /// Stop after so many seconds, and tell what was found by then
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub(crate) time_limit: Option<f64>,
    /// How it is read.
    #[command(flatten)]
    pub(crate) reading: Reading,
}
