//! How often and after which waits what failed is tried again (E-14, P-24, D-17).

use super::phase::{ModelPhase, Slot};
use super::state::State;
use crate::effect::{Effects, Failure};
use crate::fault::FaultKind;
use crate::graph::{Act, Retry};
use crate::ids::{LeafIx, NodeRef};

/// The first step of the back-off, in milliseconds (E-14).
const FIRST_MS: u64 = 500;

/// What is allowed, and what was done of it.
struct Attempts {
    /// Attempts that there may be, the first counted in.
    tries: u32,
    /// Those that have failed before this one.
    faults: u32,
    /// Whether there may be more as long as their waits are no more than `retry_span_ms` in all.
    spans: bool,
    /// The waits between them so far.
    waited_ms: u64,
    /// A wait that the document says.
    backoff_ms: Option<u64>,
}

/// Milliseconds before another attempt after so many that have failed before the last one (E-14). The step doubles, up to `longest_ms`;
/// half of it is waited for in any case, so that attempts come to an end, and what of the rest chance says (`jitter`, below a million), so
/// that those of many do not fall together.
pub fn back_off(faults: u32, longest_ms: u64, jitter: u32) -> u64 {
    let step = step(faults, longest_ms);
    by_chance(step.div_ceil(2), step, jitter)
}

fn step(faults: u32, longest_ms: u64) -> u64 {
    FIRST_MS.saturating_mul(1 << faults.min(16)).min(longest_ms.max(1))
}

fn by_chance(floor: u64, step: u64, jitter: u32) -> u64 {
    floor + (step - floor).saturating_mul(u64::from(jitter.min(1_000_000))) / 1_000_000
}

impl State {
    /// Milliseconds until a question to a model is asked again, if it is (E-14). A time-out has had its time already.
    pub(crate) fn model_again(&self, failure: &Failure, phase: &ModelPhase, jitter: u32) -> Option<u64> {
        let attempts = Attempts {
            tries: self.start.limits.model_attempts,
            faults: phase.faults(),
            spans: failure.fault.kind != FaultKind::Timeout,
            waited_ms: phase.waited_ms(),
            backoff_ms: None,
        };
        self.again(failure, &attempts, jitter)
    }

    /// Milliseconds until a failed tool call is tried again, if it is (P-24, D-17). What was not sent is tried for as long
    /// as a model is, unless the document says otherwise.
    pub(crate) fn tool_again(
        &self,
        failure: &Failure,
        slot: &Slot,
        retry: Retry,
        jitter: u32,
    ) -> Option<u64> {
        let may_repeat = !retry.is_inherited || failure.unsent || slot.effects != Effects::Write;
        let max = retry.max.filter(|_| may_repeat).unwrap_or(0);
        let attempts = Attempts {
            tries: max.saturating_add(1),
            faults: slot.attempt - 1,
            spans: failure.unsent && max > 0 && retry.backoff_s.is_none(),
            waited_ms: slot.waited_ms,
            backoff_ms: retry.backoff_s.map(|s| (s.max(0.0) * 1000.0) as u64),
        };
        self.again(failure, &attempts, jitter)
    }

    /// The wait before the next attempt ([`back_off`], unless the document says another), or `None` if there is none. Never sooner than
    /// the provider asks.
    fn again(&self, failure: &Failure, attempts: &Attempts, jitter: u32) -> Option<u64> {
        let limits = &self.start.limits;
        let asked = failure.retry_after_ms.unwrap_or(0);
        let counted = attempts.faults.saturating_add(1) < attempts.tries;
        let spans = attempts.spans && attempts.waited_ms < limits.retry_span_ms;
        if !failure.transient || asked > limits.rate_limit_wait_ms || !(counted || spans) {
            return None;
        }
        let step = step(attempts.faults, limits.retry_wait_ms);
        // Journals without a span have waits from nothing on.
        let floor = if limits.retry_span_ms > 0 { step.div_ceil(2) } else { 0 };
        // Many that were asked to wait equally long don't come back at once (E-51).
        let spread = if self.counts_sent() { by_chance(0, step.min(asked), jitter) } else { 0 };
        let own = attempts.backoff_ms.unwrap_or(by_chance(floor, step, jitter));
        Some(own.max(asked.saturating_add(spread)))
    }

    /// How a leaf retries a call that failed; `unsent`: nothing was sent.
    pub(crate) fn retry(&self, node: NodeRef, leaf: LeafIx, unsent: bool) -> Retry {
        let def = self.def(node);
        let says = match &self.leaf(node, leaf).act {
            Act::Call(call) => call.retry,
            Act::Answer { retry, .. } => *retry,
            Act::Retry => self.own_call(node).map(|call| call.retry).unwrap_or_default(),
            _ => return Retry::default(),
        };
        let Some(recovery) = def.recovery.as_ref().filter(|_| says.max.is_none()) else { return says };
        // D-17: unwritten, a write that may have happened is not repeated; anything else as often as the limits say (D-19).
        let tool = self.visit(node).and_then(|visit| self.fixed_tool(node, visit, leaf));
        let unsent = unsent && self.start.limits.retry_span_ms > 0;
        let repeats = tool.is_some_and(|tool| unsent || self.effects(node, &tool) != Effects::Write);
        Retry { max: repeats.then_some(recovery.retries), ..says }
    }
}
