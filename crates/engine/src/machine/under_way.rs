//! Says what is under way where a time is up: the fault names the nodes, their attempts and the last answers (E-13, E-37).

use super::calls::shorten;
use super::node::LeafPhase;
use super::state::{PendingEffect, State};
use crate::ids::NodeRef;

/// Nodes that are named.
const NAMED: usize = 5;
/// The edition from which on faults say it.
const EDITION: u32 = 7;

impl State {
    /// Returns `; under way: NODE: model call, attempt 4, last answer: …` of what `around` has opened, or of the whole run if that is
    /// `None`. The text is empty if nothing is under way.
    pub(super) fn under_way(&self, around: Option<NodeRef>) -> String {
        if self.start.edition < EDITION {
            return String::new();
        }
        let is_meant =
            |node: NodeRef| around.is_none_or(|around| self.within(node, around.frame) == Some(around));
        let mut pending: Vec<&PendingEffect> =
            self.pending.values().filter(|effect| is_meant(effect.node)).collect();
        pending.sort_by_key(|effect| effect.event);
        let asks = self.asks.values().filter(|ask| is_meant(ask.node));
        let asked = asks.map(|ask| format!("{}: waits for a person", self.name_for_people(ask.node)));
        let mut all: Vec<String> =
            pending.iter().map(|effect| self.call_under_way(effect)).chain(asked).collect();
        if all.is_empty() {
            return String::new();
        }
        let more = all.len().saturating_sub(NAMED);
        all.truncate(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("; under way: {}{more}", all.join("; "))
    }

    fn name_for_people(&self, node: NodeRef) -> String {
        self.told_name(&self.name(node)).into_owned()
    }

    fn call_under_way(&self, effect: &PendingEffect) -> String {
        let (what, attempt, last) = match self.visit(effect.node).map(|visit| &visit.phase) {
            Some(LeafPhase::Model(phase)) => ("model call".into(), phase.attempt(), phase.last_answer()),
            Some(LeafPhase::Calls(phase)) => match phase.slots.get(effect.slot as usize) {
                Some(slot) => {
                    (format!("call of `{}`", slot.call.name), slot.attempt, slot.last_answer.as_deref())
                }
                None => ("call".into(), 1, None),
            },
            _ => ("call".into(), 1, None),
        };
        let waits = if effect.wait().left_ms(self.now) > 0 { "waits for attempt" } else { "attempt" };
        let last = match last {
            Some(last) => format!("last answer: {}", shorten(last)),
            None => "no answer yet".to_owned(),
        };
        format!("{}: {what}, {waits} {attempt}, {last}", self.name_for_people(effect.node))
    }
}
