//! The journal of a simulated run, as text, and what the state was like between its lines.

use crate::rng::hash;
use selvedge_engine::{Event, Graph, Record, Recording, State};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the run was like after one event, to compare a fold with.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// How often the world had been changed.
    pub(crate) changes: usize,
    /// Of the state, if it is kept.
    pub(crate) digest: Option<u64>,
}

/// A journal as it lies on disk, with what the simulation knows about the moments between its lines.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub(crate) lines: Vec<String>,
    pub(crate) marks: Vec<Mark>,
    /// What the events of forks name and do not hold, in their order (E-19).
    pub(crate) sources: Vec<Named>,
}

/// What a source had recorded, and the graph that the fork began.
pub(crate) type Named = (Option<Arc<Recording>>, Option<Arc<Graph>>);

impl Journal {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.lines.len()
    }
    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
    /// The first `len` events.
    #[must_use]
    pub fn cut(&self, len: usize) -> Journal {
        let lines: Vec<String> = self.lines.iter().take(len).cloned().collect();
        let forks = lines.iter().filter(|line| line.contains("\"kind\":\"forked\"")).count();
        let sources = self.sources.iter().take(forks).cloned().collect();
        Journal { lines, marks: self.marks.iter().take(len).cloned().collect(), sources }
    }
    /// Without the event at `at`: a damaged journal, for the canary.
    #[must_use]
    pub fn without(&self, at: usize) -> Journal {
        let mut journal = self.clone();
        if at < journal.lines.len() {
            journal.lines.remove(at);
            journal.marks.remove(at);
        }
        journal
    }
    /// The events, parsed, with what they name.
    ///
    /// # Errors
    /// A line that is no event.
    pub fn records(&self) -> Result<Vec<Record>, String> {
        let mut sources = self.sources.iter();
        let parse = |line: &String| {
            let mut record: Record =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            if let Event::Forked(fork) = &mut record.event {
                (fork.past, fork.compiled) = sources.next().cloned().unwrap_or_default();
            }
            Ok(record)
        };
        self.lines.iter().map(parse).collect()
    }
}

/// A hash of everything of a state that can be seen from outside; `deep`: of all that is in it.
pub(crate) fn digest(state: &State, deep: bool) -> u64 {
    let view = state.live_view();
    let threads: Vec<Value> = view
        .threads()
        .map(|(name, list)| {
            let last =
                list.last(1).iter().next().map(|message| (message.content.clone(), message.tool_calls.len()));
            json!([name, list.len(), last])
        })
        .collect();
    let pending: Vec<String> = state.pending().iter().map(|(id, p)| format!("{id} {p:?}")).collect();
    let seen = json!([
        threads,
        view.data_out().len(),
        view.results().collect::<Vec<_>>(),
        crate::conformance::compare::metadata(view),
        pending,
        state.asks().keys().collect::<Vec<_>>(),
        state.events(),
        state.warnings(),
        format!("{:?} {:?} {:?}", view.status(), view.fault(), state.usage()),
        state.node_views().collect::<Vec<_>>(),
        state.step().map(|event| format!("{event:?}")),
    ]);
    let shallow = hash(1, &seen.to_string());
    if !deep {
        return shallow;
    }
    // Maps come in no order, so only the lines count.
    let text = format!("{state:#?}");
    text.lines().fold(shallow, |sum, line| sum.wrapping_add(hash(2, line.trim())))
}
