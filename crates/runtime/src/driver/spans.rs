//! Spans for who embeds the driver and has a subscriber (`tracing`): a run, its nodes, and the attempts of their effects, by
//! ids and nothing else. Without a subscriber there are none.

use selvedge_engine::{EffectId, Event, NodeRef, Record, State};
use std::collections::HashMap;
use tracing::{Span, info_span};

/// The spans of one drive.
pub(super) struct Spans {
    run: Span,
    /// Nodes that have started and not finished.
    nodes: HashMap<NodeRef, Span>,
}

impl Spans {
    pub(super) fn of(run: &str) -> Self {
        Self { run: info_span!("run", run), nodes: HashMap::new() }
    }

    /// All of the drive is in it.
    pub(super) fn run(&self) -> Span {
        self.run.clone()
    }

    /// Nodes that have started, and those that have finished.
    pub(super) fn note(&mut self, state: &State, records: &[Record]) {
        if self.run.is_disabled() {
            return;
        }
        for record in records {
            match &record.event {
                Event::NodeStarted { node, .. } => {
                    if let Some(known) = state.node_named(node) {
                        self.nodes.insert(known, info_span!(parent: &self.run, "node", node = &**node));
                    }
                }
                Event::NodeFinished { node, .. } | Event::NodeSkipped { node, .. } => {
                    if let Some(known) = state.node_named(node) {
                        self.nodes.remove(&known);
                    }
                }
                // Other nodes may have their numbers.
                Event::Resumed { .. } | Event::Spliced { .. } | Event::Forked(_) => self.nodes.clear(),
                _ => {}
            }
        }
    }

    /// An attempt of an effect: from its dispatch, its wait (E-14) and its turn included, to what comes of it.
    pub(super) fn effect(&self, effect: &EffectId, node: NodeRef) -> Span {
        if self.run.is_disabled() {
            return Span::none();
        }
        let within = self.nodes.get(&node).unwrap_or(&self.run);
        let attempt = effect.place().map_or(1, |place| place.attempt);
        info_span!(parent: within, "effect", effect = &*effect.0, attempt)
    }
}
