//! What a run warns of, each once, when it happens.

use selvedge_engine::{Event, State, Warning};
use std::collections::HashSet;
use std::sync::Arc;

/// Warnings that are told as they come; all are in `show`.
const MOST: usize = 20;

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Warned {
    /// How many the run had.
    len: usize,
    told: HashSet<(Arc<str>, String, Option<Arc<str>>)>,
}

impl Warned {
    /// What the run had warned of before was told then.
    pub(super) fn skip(&mut self, state: &State) {
        self.len = state.warnings().len();
    }

    /// What an event says itself, before what comes after it.
    pub(super) fn of(&mut self, event: &Event) -> Vec<Warning> {
        match event {
            Event::NodeStarted { warnings, .. }
            | Event::Requested { warnings, .. }
            | Event::NodeFinished { warnings, .. }
            | Event::Spliced { warnings, .. } => self.fresh(warnings.iter()),
            _ => Vec::new(),
        }
    }

    /// What else is new. A run that begins a part anew may come by the same place again.
    pub(super) fn news(&mut self, state: &State) -> Vec<Warning> {
        let all = state.warnings();
        // Fewer than before: what begins anew has taken its own with it.
        let from = if all.len() < self.len { 0 } else { self.len };
        self.len = all.len();
        self.fresh(all.iter().skip(from))
    }

    /// Those that were not told; a node that failed is told as such.
    fn fresh<'w>(&mut self, warnings: impl Iterator<Item = &'w Warning>) -> Vec<Warning> {
        let mut news = Vec::new();
        for warning in warnings.filter(|warning| &*warning.code != "node-failed") {
            let key = (warning.code.clone(), warning.message.clone(), warning.node.clone());
            if self.told.len() <= MOST && self.told.insert(key) {
                news.push(match self.told.len() > MOST {
                    true => Warning {
                        code: "more".into(),
                        message: "there are more: `selvedge show` has them".into(),
                        node: None,
                    },
                    false => warning.clone(),
                });
            }
        }
        news
    }
}
