//! Effects that nobody waits for any more count if they were sent (E-20).

use super::budgets::Counted;
use super::state::{EarlyEnd, PendingEffect, State};
use super::usage::Usage;
use crate::effect::{EffectId, Tokens};
use crate::ids::FrameIx;

impl State {
    /// Nobody waits any more for an effect that was under way: it counts if it was sent.
    pub(super) fn end_early(&mut self, effect: &EffectId, row: PendingEffect) {
        let waited = row.wait().until > self.now || self.never_sent.remove(effect);
        let sent = row.event > self.counts_from && row.event < self.last_input && !waited;
        let (node, model) = (row.node, row.model);
        if model {
            self.release(node, effect);
        }
        if !sent || !self.counts_sent() || (!model && self.is_operation(node, row.slot as usize)) {
            return;
        }
        match model {
            true => {
                self.charge(node, &Tokens::default());
                self.warn_unknown(node, 1);
            }
            false => self.charge_tool(node),
        }
        let depth = self.of(node).depth;
        self.ended_early.push(EarlyEnd { effect: effect.clone(), around: node, depth, model });
    }

    /// The effects that the last event ended early and that count. A driver that has not sent some of them says so by
    /// [`crate::Input::Unsent`], before anything else is derived; of what is under way when a run ends, before that.
    pub fn ended_early(&self) -> impl Iterator<Item = &EffectId> {
        self.ended_early.iter().map(|end| &end.effect)
    }

    /// Whether an effect counts, or is about to, that may not have been sent.
    pub(super) fn may_be_unsent(&self, effect: &EffectId) -> bool {
        self.counts_sent()
            && (self.pending.contains_key(effect) || self.ended_early().any(|ended| ended == effect))
    }

    /// A frame closes, in which effects were ended early: those behind `before`.
    pub(super) fn leave_frame(&mut self, ix: FrameIx, before: usize) {
        let Some((around, _)) = self.frames[ix].opened_by else { return };
        let depth = self.of(around).depth;
        for end in self.ended_early.iter_mut().skip(before) {
            (end.around, end.depth) = (around, depth);
        }
    }

    /// Effects had not been sent: they don't count.
    pub(super) fn uncount(&mut self, effects: &[EffectId], ended_early: &[EarlyEnd]) {
        for effect in effects {
            let Some(end) = ended_early.iter().find(|end| end.effect == *effect) else {
                self.never_sent.insert(effect.clone());
                continue;
            };
            let less = |used: &mut Usage| match end.model {
                true => used.model_calls = used.model_calls.saturating_sub(1),
                false => used.tool_calls = used.tool_calls.saturating_sub(1),
            };
            less(&mut self.usage);
            self.meter(end.around, Counted::Used, |meter| less(&mut meter.used));
            if end.model {
                self.warn_unknown(end.around, -1);
            }
            self.unsent.push(end.clone());
        }
    }
}
