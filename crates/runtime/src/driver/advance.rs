//! What the inputs of a turn come to: they are accepted, and what follows from them is derived.

use crate::command::Refusal;
use crate::handle::{GivenCommand, Sender};
use selvedge_engine::{EffectId, Event, Input, ModelRequest, Record, State};

/// How often in a row the same event may be derived: a document may say a text a few times.
const MOST_REPEATED: u32 = 1_000;

/// Steps of checks after which other things on this thread have their turn: a fraction of a second.
const CHECKED_AT_ONCE: u64 = 1_000_000;

/// What a turn has come to.
#[derive(Default)]
pub(super) struct Advanced<'a> {
    /// The effects under way that wait for their turn, and have not been sent.
    waiting: Option<&'a dyn Fn(&EffectId) -> bool>,
    pub(super) records: Vec<Record>,
    /// What becomes of the commands, once the records are durable.
    pub(super) replies: Vec<(Sender, Result<(), Refusal>)>,
    /// Whether something is left to derive.
    pub(super) unfinished: bool,
}

impl Advanced<'_> {
    fn accepted(&mut self, state: &mut State, now: i64, event: Event) {
        let at = state.tick(now);
        self.apply(state, at, event);
    }

    /// Applies an event, and says which of the effects that it ends early had not been sent (E-20).
    fn apply(&mut self, state: &mut State, at: i64, event: Event) {
        if matches!(event, Event::Ended { .. }) {
            let pending = state.pending().keys().filter(|effect| self.waits(effect)).cloned().collect();
            self.unsent(state, at, pending);
        }
        state.apply(&event);
        self.records.push(Record { at, event });
        let unsent = state.ended_early().filter(|effect| self.waits(effect)).cloned().collect();
        if state.ended().is_none() {
            self.unsent(state, at, unsent);
        }
    }

    fn waits(&self, effect: &EffectId) -> bool {
        self.waiting.is_some_and(|waits| waits(effect))
    }

    fn unsent(&mut self, state: &mut State, at: i64, effects: Vec<EffectId>) {
        if !effects.is_empty()
            && let Some(event) = state.accept(Input::Unsent(effects))
        {
            state.apply(&event);
            self.records.push(Record { at, event });
        }
    }

    /// Derives what follows, up to so many steps of checks (E-45): a stop is heard between many costly ones (C-05).
    fn derive(&mut self, state: &mut State, checks: u64, recall: Option<&impl Fn(ModelRequest)>) {
        let at = state.tick(0);
        let mut repeated = 0;
        loop {
            self.unfinished = state.checking_steps() > checks;
            if self.unfinished {
                return;
            }
            let Some(event) = state.step() else { return };
            // A fork's model has not been asked what its source was; it counts all the same (C-07).
            if let Some(recall) = recall
                && let Some(request) = state.recalled(&event)
            {
                recall(request);
            }
            // What changes nothing would be derived for ever (E-17).
            let same = self.records.last().is_some_and(|last| last.event == event);
            repeated = if same { repeated + 1 } else { 0 };
            assert!(repeated < MOST_REPEATED, "an event is derived again and again: {event:?}");
            self.apply(state, at, event);
        }
    }
}

/// Applies inputs, commands, and what follows from them. Derived events carry the time of the latest input,
/// so that a replay of the inputs gives them again byte for byte (E-18).
pub(super) fn advance<'a>(
    state: &mut State,
    (inputs, commands): (Vec<Input>, Vec<GivenCommand>),
    now: i64,
    go_on: bool,
    recall: Option<impl Fn(ModelRequest)>,
    waiting: &'a dyn Fn(&EffectId) -> bool,
) -> Advanced<'a> {
    let mut advanced = Advanced { waiting: Some(waiting), ..Advanced::default() };
    let checks = state.checking_steps().saturating_add(CHECKED_AT_ONCE);
    for input in inputs {
        // Of several timers that came due while nobody drove, what follows from the earlier one is there before the later one (E-37).
        let timer = matches!(input, Input::Fire(_));
        if let Some(event) = state.accept(input) {
            advanced.accepted(state, now, event);
            if timer && go_on {
                advanced.derive(state, checks, recall.as_ref());
            }
        }
    }
    // Of two answers to one ask, the second finds it closed.
    for GivenCommand { command, sender } in commands {
        let event = command.and_then(|command| command.accepted(state));
        let reply = event.map(|event| advanced.accepted(state, now, event));
        advanced.replies.push((sender, reply));
    }
    if go_on {
        advanced.derive(state, checks, recall.as_ref());
    }
    advanced
}
