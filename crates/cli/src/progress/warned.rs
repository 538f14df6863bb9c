//! What a run warns of, each once, when it happens.

use selvedge_engine::{State, Warning};
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
    /// What is new. A node that failed is told as such, and a run that begins a part anew may come by the same place again.
    pub(super) fn news(&mut self, state: &State) -> Vec<Warning> {
        let all = state.warnings();
        // Fewer than before: what begins anew has taken its own with it.
        let from = if all.len() < self.len { 0 } else { self.len };
        self.len = all.len();
        let mut news = Vec::new();
        for warning in all.iter().skip(from).filter(|warning| &*warning.code != "node-failed") {
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
