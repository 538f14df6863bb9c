//! What a seed brings upon a run: which calls fail, who does not answer, and how long everything takes. All of it follows from the
//! seed and from places (E-35), never from what came before: who spares a run one fault changes nothing else.

use crate::rng::{Rng, hash};
use selvedge_engine::{EffectId, Failure, FaultKind, Outcome};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kinds of luck, each with its share of all seeds in percent: calls that fail in a thousand, and questions that nobody answers in
/// a hundred. In half of all seeds every call succeeds.
const WEATHER: [(usize, u64, u64); 6] =
    [(35, 0, 0), (15, 0, 100), (20, 50, 10), (15, 250, 30), (10, 900, 10), (5, 600, 100)];

/// The luck of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Luck {
    seed: u64,
    /// Chooses how long everything takes, and so the order.
    order: u64,
    faults: u64,
    silence: u64,
    spared: BTreeSet<Arc<str>>,
}

/// Something bad that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hit {
    /// A call failed.
    Fault(EffectId, FaultKind),
    /// Nobody answers a question.
    Silence(Arc<str>),
    /// The process died when the run had so many events.
    Crash(usize),
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken {
    kind: FaultKind,
    transient: bool,
}

/// How long a call takes that ends in a time-out, unless it says so itself.
const TIME_OUT_MS: u64 = 30_000;

impl Luck {
    /// That of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(hash(seed, "weather"));
        let mut at = rng.below(100);
        let kind = WEATHER.iter().find(|(share, ..)| {
            let found = at < *share;
            at = at.saturating_sub(*share);
            found
        });
        let (faults, silence) = kind.map_or((0, 0), |(_, faults, silence)| (*faults, *silence));
        Self { seed, order: seed, faults, silence, spared: BTreeSet::new() }
    }

    /// The same in another order.
    #[must_use]
    pub fn in_order(&self, order: u64) -> Self {
        Self { order, ..self.clone() }
    }

    /// The same without these hits.
    #[must_use]
    pub fn sparing<'h>(&self, hits: impl IntoIterator<Item = &'h Hit>) -> Self {
        let mut luck = self.clone();
        luck.spared.extend(hits.into_iter().filter_map(Hit::id).cloned());
        luck
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What it says to something at a place.
    pub fn dice(&self, what: &str, place: &str) -> Rng {
        Rng::new(hash(hash(self.seed, what), place))
    }

    /// Whether nobody answers a question.
    pub fn is_silent(&self, ask: &str) -> bool {
        self.silence > 0
            && !self.spared.contains(ask)
            && self.dice("silence", ask).bits() % 100 < self.silence
    }

    /// How an effect fails, if it does, and how long that takes beyond what it would.
    pub(crate) fn fault(&self, effect: &EffectId, model: bool) -> Option<(FaultKind, Outcome, u64)> {
        if self.faults == 0 || self.spared.contains(&effect.0) {
            return None;
        }
        let mut dice = self.dice("fault", &effect.0);
        if dice.bits() % 1_000 >= self.faults {
            return None;
        }
        let Broken { kind, transient } = broken(&mut dice, model);
        let message = format!("simulated: {}", words(kind));
        let failure = match transient {
            true => Failure::transient(kind, message),
            false => Failure::permanent(kind, message),
        };
        let longer = if kind == FaultKind::Timeout { TIME_OUT_MS } else { 0 };
        Some((kind, failure.into(), longer))
    }

    /// How long something takes, in milliseconds: often nothing, mostly a little, sometimes long.
    pub(crate) fn takes(&self, place: &str) -> u64 {
        let mut dice = Rng::new(hash(hash(self.order, "time"), place));
        match dice.below(10) {
            0 | 1 => 0,
            2 => dice.within(0, 5_000).unsigned_abs(),
            _ => dice.within(1, 40).unsigned_abs(),
        }
    }

    /// Which of what ends at the same time comes first.
    pub(crate) fn tie(&self, place: &str) -> u64 {
        hash(hash(self.order, "tie"), place)
    }
}

fn broken(dice: &mut Rng, model: bool) -> Broken {
    let kinds: &[(FaultKind, bool)] = match model {
        true => &[
            (FaultKind::ProviderError, true),
            (FaultKind::ProviderError, false),
            (FaultKind::Timeout, true),
            (FaultKind::MalformedResponse, false),
        ],
        false => &[
            (FaultKind::ExecutionFailure, false),
            (FaultKind::ExecutionFailure, true),
            (FaultKind::Timeout, true),
        ],
    };
    let (kind, transient) = dice.pick(kinds).copied().unwrap_or((FaultKind::ExecutionFailure, false));
    Broken { kind, transient }
}

fn words(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Timeout => "it took too long",
        FaultKind::ProviderError => "the provider can't be reached",
        FaultKind::MalformedResponse => "the reply can't be read",
        _ => "it failed",
    }
}

impl Hit {
    /// The effect or the ask that it is about.
    fn id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Fault(effect, _) => Some(&effect.0),
            Self::Silence(ask) => Some(ask),
            Self::Crash(_) => None,
        }
    }
}
