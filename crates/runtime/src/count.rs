//! Which requests a run has made, for a model that counts them.

use crate::ports::Model;
use selvedge_engine::{EffectId, Event, ModelRequest, Request, State};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A fold that tells a model which requests the run has made (C-07's `nth`). Those in flight at the end are left to
/// whoever sends them again.
pub struct Count<'m> {
    run: String,
    model: Option<&'m dyn Model>,
    /// The event with which the run left its source: what came before counts only of nodes that stand,
    /// as the rest is asked, or recalled, again.
    forked: Option<u64>,
    held: Vec<ModelRequest>,
    /// Requested since the last input: not sent yet.
    unsent: BTreeSet<EffectId>,
}

impl<'m> Count<'m> {
    /// Counts for `model`, if there is one; `forked` is the number of the event with which a fork begins.
    pub fn new(run: &str, model: Option<&'m dyn Model>, forked: Option<u64>) -> Self {
        let model = model.filter(|model| model.counts());
        Self { run: run.to_owned(), model, forked, held: Vec::new(), unsent: BTreeSet::new() }
    }

    /// Whether its model wants to know.
    pub fn counts(&self) -> bool {
        self.model.is_some()
    }

    /// Sees an event before it is applied to `state`.
    pub fn see(&mut self, state: &State, event: &Event) {
        if self.model.is_none() {
            return;
        }
        if self.forked == Some(state.events() + 1) {
            self.forked = None;
            let Event::Forked(fork) = event else { return };
            let mut stand = state.standing_ahead(fork);
            stand.extend(state.node_views().filter(|view| view.retired).map(|view| Arc::clone(view.node)));
            let (anew, held) = (fork.graph.is_some(), std::mem::take(&mut self.held));
            for request in held.into_iter().filter(|request| !anew && stand.contains(&request.node)) {
                self.count(request);
            }
            return;
        }
        match event {
            Event::Completed { effect, .. } => self.ended(state, std::iter::once(effect.clone())),
            Event::Reused { .. } => {
                if let Some(request) = state.recalled(event) {
                    self.count(request);
                }
            }
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                self.unsent.insert(effect.clone());
            }
            // What is in flight comes to nothing. It was sent, unless it was requested in the turn that ends it.
            Event::Resumed { .. } | Event::Poisoned { .. } | Event::Spliced { .. } => {
                let flying: Vec<EffectId> = state.pending().keys().cloned().collect();
                self.ended(state, flying.into_iter());
            }
            Event::Ended { .. } => {
                let sent = |effect: &&EffectId| !self.unsent.contains(*effect);
                let flying: Vec<EffectId> = state.pending().keys().filter(sent).cloned().collect();
                self.ended(state, flying.into_iter());
            }
            _ => {}
        }
        if event.begins_turn() {
            self.unsent.clear();
        }
    }

    fn ended(&mut self, state: &State, effects: impl Iterator<Item = EffectId>) {
        for effect in effects {
            // What could not be put together, which is what poisoned the run (E-17), was not asked.
            let request = catch_unwind(AssertUnwindSafe(|| state.request(&effect)));
            if let Ok(Some(Request::Model(request))) = request {
                self.count(request);
            }
        }
    }

    fn count(&mut self, request: ModelRequest) {
        match self.model {
            Some(_) if self.forked.is_some() => self.held.push(request),
            Some(model) => model.recorded(&request, &self.run),
            None => {}
        }
    }
}
