//! Effects in flight: what is requested, has its turn, says something meanwhile, and ends.

use super::View;
use selvedge_engine::{EffectId, NodeIx, Outcome, Request, State};
use selvedge_runtime::Delta;
use std::sync::Arc;

/// Bytes of streamed text that are kept of a node; half of them go when there are more.
const TEXT: usize = 32 << 10;
/// How long a node keeps the focus at least while others stream too, in milliseconds.
const STICKY_MS: i64 = 1_000;

/// An effect in flight.
#[derive(Debug)]
pub(in crate::live) struct Flying {
    pub(super) effect: EffectId,
    /// The tool; nothing for a model.
    pub(in crate::live) tool: Option<Arc<str>>,
    /// Whether it has its turn.
    pub(in crate::live) began: bool,
    /// When it is tried again, and why.
    pub(in crate::live) again: Option<(i64, String)>,
}

impl View {
    /// An effect is under way.
    pub(super) fn fly(
        &mut self,
        state: &State,
        effect: &EffectId,
        again: Option<(i64, String)>,
    ) -> Option<NodeIx> {
        let pending = state.pending().get(effect)?;
        let tool = match pending.model {
            true => None,
            false => match state.request(effect)? {
                Request::Tool(request) | Request::Operation(request) => Some(request.tool.name.clone()),
                Request::Model(_) => None,
            },
        };
        let node = state.outermost(pending.node);
        let active = self.active.get_mut(&node)?;
        if tool.is_none() {
            active.text.clear();
        }
        active.note.clear();
        active.flying.push(Flying { effect: effect.clone(), tool, began: false, again });
        self.effects.insert(effect.clone(), node);
        Some(node)
    }

    /// An effect came to an end.
    pub(super) fn land(&mut self, effect: &EffectId, outcome: Option<&Outcome>) -> Option<NodeIx> {
        if let Some(outcome) = outcome {
            self.limited.ended(effect, outcome);
        }
        let node = self.effects.remove(effect)?;
        let active = self.active.get_mut(&node)?;
        active.flying.retain(|flying| flying.effect != *effect);
        // Also of an attempt that came to nothing, as in the run's usage (E-20).
        if let Some(tokens) = outcome.and_then(Outcome::tokens) {
            active.tokens.add(tokens);
        }
        Some(node)
    }

    /// An effect has its turn.
    pub(in crate::live) fn began(&mut self, effect: &EffectId) {
        let active = self.effects.get(effect).and_then(|node| self.active.get_mut(node));
        let flying = active.and_then(|active| active.flying.iter_mut().find(|f| f.effect == *effect));
        if let Some(flying) = flying {
            (flying.began, flying.again) = (true, None);
        }
    }

    /// A piece of what an effect says while it goes on.
    pub(in crate::live) fn delta(&mut self, effect: &EffectId, delta: Delta, now: i64) {
        let Some(&node) = self.effects.get(effect) else { return };
        let Some(active) = self.active.get_mut(&node) else { return };
        match delta {
            Delta::Progress(line) => active.note = line,
            Delta::Text(piece) => {
                self.streamed = true;
                active.text.push_str(&piece);
                if active.text.len() > TEXT {
                    let from = active.text.ceil_char_boundary(active.text.len() - TEXT / 2);
                    active.text.drain(..from);
                }
                let kept = self.focus.is_some_and(|(focus, since)| {
                    focus == node || (now < since + STICKY_MS && self.active.contains_key(&focus))
                });
                if !kept {
                    self.focus = Some((node, now));
                }
            }
        }
    }
}
