//! Calls that wait for a rate limit: what their last attempt came to says so, and not the words for it.

use crate::failure::is_rate_limit;
use selvedge_engine::{EffectId, Outcome};
use std::collections::HashSet;

/// The calls whose last attempt a rate limit has turned away.
#[derive(Debug, Default)]
pub(crate) struct Limited(HashSet<EffectId>);

impl Limited {
    /// An attempt came to its end.
    pub(crate) fn ended(&mut self, effect: &EffectId, outcome: &Outcome) {
        let limited = matches!(outcome, Outcome::Failed(failure) if is_rate_limit(&failure.fault));
        match limited {
            true => self.0.insert(call(effect)),
            false => self.0.remove(&call(effect)),
        };
    }

    /// Why a call is tried again, with what matters most in front: lines are cut.
    pub(crate) fn because(&mut self, effect: &EffectId, reason: &str) -> String {
        let limited = self.0.remove(&call(effect));
        format!("{}{reason}", if limited { "rate limit: " } else { "" })
    }
}

/// What all attempts of a call have in common: its first one (E-06).
fn call(effect: &EffectId) -> EffectId {
    effect.place().map_or_else(|| effect.clone(), |place| place.first().id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_engine::{Failure, Fault, FaultKind};
    use serde_json::json;

    /// Other calls may end between an attempt and the next one.
    #[test]
    fn a_rate_limit_is_known_by_its_status() {
        let mut limited = Limited::default();
        let effect = |id: &str| EffectId(id.into());
        let failed = |status: u64| {
            let fault = Fault::new(FaultKind::ProviderError, "no answered 429 here");
            Outcome::from(Failure::of(fault.because(json!({"status": status}))))
        };
        limited.ended(&effect("a/model/1/1"), &failed(429));
        limited.ended(&effect("b/model/1/1"), &failed(503));
        assert_eq!(limited.because(&effect("b/model/1/2"), "later"), "later");
        assert_eq!(limited.because(&effect("a/model/1/2"), "later"), "rate limit: later");
        assert_eq!(limited.because(&effect("a/model/1/3"), "later"), "later");
    }
}
