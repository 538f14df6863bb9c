//! How far an evolution is, what it came to, and who hears of it (V-14, V-15).

use selvedge_dialects::Diagnostic;
use selvedge_engine::{RunStatus, Tokens, Warning};
use selvedge_host::evolve::measures::{Accuracy, Measures};
use serde_json::Value;
use std::path::PathBuf;

/// Who hears what goes on.
pub trait Heard: Send + Sync {
    /// The data set was checked, and it goes on from here.
    fn begins(&self, standing: &Standing, left_out: &[Diagnostic]) {
        let _ = (standing, left_out);
    }
    /// The tasks are done once more, in this arm of an evaluation (V-13).
    fn arm(&self, name: &str) {
        let _ = name;
    }
    /// A batch begins, or is gone on with.
    fn batch(&self, run: &str, number: u64) {
        let _ = (run, number);
    }
    /// A task has come to its end: its line, whether it is meant now, and how it stands.
    fn task(&self, said: &Value, meant: bool, standing: &Standing) {
        let _ = (said, meant, standing);
    }
    /// More was used.
    fn used(&self, standing: &Standing) {
        let _ = standing;
    }
    /// A batch is done, with all that comes after its tasks (V-05), and its run warns of this.
    fn measured(&self, number: u64, standing: &Standing, warnings: &[Warning]) {
        let _ = (number, standing, warnings);
    }
}

impl Heard for () {}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Tasks of the part that is meant.
    pub tasks: u64,
    /// Those that have a prediction line.
    pub done: u64,
    /// Those of them that came to no answer.
    pub failed: u64,
    /// Those that run now.
    pub running: u64,
    /// Tasks that were scored without a model, of those that ended in this process.
    pub scored: u64,
    /// Those of them that are right.
    pub right: u64,
    /// Tokens of all that was done so far, also by earlier processes, and after tasks.
    pub tokens: u64,
    /// What they cost.
    pub cost: f64,
}

impl Standing {
    /// More was used.
    pub(crate) fn used(&mut self, tokens: &Tokens) {
        self.tokens = self.tokens.saturating_add(tokens.input).saturating_add(tokens.output);
        self.cost += tokens.cost;
    }
}

/// What it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Tasks of the part that is meant.
    pub tasks: u64,
    /// Those that have a prediction line.
    pub done: u64,
    /// Those of them that came to no answer.
    pub failed: u64,
    /// Those of them that are scored, and whose batch is done.
    pub scored: u64,
    /// Those of these that are right.
    pub right: u64,
    /// What the batches came to, once there is one, with the tasks that are no longer meant.
    pub measures: Option<Measures>,
    /// Batches so far.
    pub batches: u64,
    /// Public tools of the library.
    pub tools: u64,
    /// Where it all is.
    pub out: PathBuf,
    /// Why it has stopped before the end, if it has.
    pub stopped: Option<Stopped>,
}

impl Summary {
    /// The share of right answers, of the tasks that are meant.
    pub fn accuracy(&self) -> Option<Accuracy> {
        Accuracy::of(self.right, self.scored)
    }
}

/// Why an evolution has stopped before the end of its data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Somebody wanted it.
    Interrupted,
    /// Its budget is used up.
    Budget,
    /// The run of a batch was cancelled, or has failed.
    Batch {
        /// The run.
        run: String,
        /// How it ended.
        status: RunStatus,
        /// Why, if that is known.
        why: Option<String>,
    },
}
