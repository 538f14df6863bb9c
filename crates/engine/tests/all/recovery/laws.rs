//! What holds of every run, whatever it is about.

use crate::recovery::support::{Run, seen};
use selvedge_engine::{Effects, Event, Input, Outcome, RunStatus, State};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Run {
    /// What holds of every run: the fold, the replay, a crash after each event, and any order of answers.
    pub(crate) fn check(&self) -> &Self {
        self.folds();
        self.replays();
        self.survives();
        let other = Run::ordered(&self.first, self.world, !self.last_first);
        if !self
            .events
            .iter()
            .any(|event| matches!(event, Event::Resumed { .. } | Event::Forked(_) | Event::Lost { .. }))
        {
            assert_eq!(other.seen(), self.seen(), "E-07: in another order");
            assert_eq!(other.ladder(), self.ladder(), "E-07: in another order");
        }
        self
    }

    /// E-03: every prefix folds to the state that was live, and on to the same end.
    fn folds(&self) {
        let mut live = State::new(Arc::clone(&self.first));
        for (at, event) in self.events.iter().enumerate() {
            live.apply(event);
            if at % 7 == 0 {
                let state = self.folded(at + 1);
                assert_eq!(state.pending(), live.pending(), "after {at}");
                assert_eq!(
                    format!("{:?}", state.live_view()),
                    format!("{:?}", live.live_view()),
                    "after {at}"
                );
                assert_eq!(state.step(), live.step(), "after {at}");
            }
        }
        assert_eq!(seen(&live), self.seen());
        let written = serde_json::to_string(&self.events).unwrap();
        let read: Vec<Event> = serde_json::from_str(&written).unwrap();
        assert_eq!(read.len(), self.events.len());
    }

    fn folded(&self, events: usize) -> State {
        let mut state = State::new(Arc::clone(&self.first));
        // As from a journal, in JSON.
        for event in self.events.iter().take(events) {
            let mut read: Event = serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap();
            if let (Event::Forked(read), Event::Forked(fork)) = (&mut read, event) {
                (read.past, read.compiled) = (fork.past.clone(), fork.compiled.clone());
            }
            state.apply(&read);
        }
        state
    }

    /// E-18: the inputs give all other events again.
    fn replays(&self) {
        let mut state = State::new(Arc::clone(&self.first));
        for (at, recorded) in self.events.iter().enumerate() {
            let event = match Input::from_event(recorded.clone()) {
                Some(input) => state.accept(input),
                None => state.step(),
            };
            let event = event.unwrap_or_else(|| panic!("event {at} is not derived: {recorded:?}"));
            assert_eq!(serde_json::to_string(&event).unwrap(), serde_json::to_string(recorded).unwrap());
            state.apply(&event);
        }
    }

    /// E-05: killed after any event, the run goes on; nothing that succeeded runs twice, and without a write in
    /// flight the end is the same.
    fn survives(&self) {
        let outside = |event: &Event| {
            matches!(
                event,
                Event::Resumed { .. } | Event::Forked(_) | Event::Lost { .. } | Event::Answered { .. }
            )
        };
        let first = self.events.iter().rposition(outside).map_or(1, |at| at + 1);
        for at in first..=self.events.len() {
            let state = self.folded(at);
            let events = self.events.iter().take(at).cloned().collect();
            let mut run = Run {
                first: Arc::clone(&self.first),
                state,
                events,
                world: self.world,
                last_first: self.last_first,
            };
            while let Some(event) = run.state.step() {
                run.state.apply(&event);
                run.events.push(event);
            }
            // What was requested after the last durable event was never sent.
            let sent: BTreeSet<String> = self.sent(0).into_iter().collect();
            let before: BTreeSet<String> = run
                .events
                .iter()
                .take(at)
                .filter_map(|event| match event {
                    Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                        Some(effect.to_string())
                    }
                    _ => None,
                })
                .collect();
            let writes = run.state.pending().iter().filter(|(_, row)| row.effects == Effects::Write);
            let lost: Vec<_> =
                writes.map(|(effect, _)| effect.clone()).filter(|e| before.contains(&*e.0)).collect();
            let quiet = lost.is_empty();
            lost.into_iter().for_each(|effect| run.give(Input::Lose(effect)));
            run.go_on();
            while let Some(ask) = run.state.asks().keys().next().cloned() {
                run.give(Input::Answer(ask, json!("yes")));
                run.go_on();
            }
            assert!(matches!(run.status(), RunStatus::Completed | RunStatus::Failed), "killed after {at}");
            if quiet && self.status() != RunStatus::Waiting {
                assert_eq!(run.seen(), self.seen(), "killed after event {at}: {:?}", self.events[at - 1]);
                assert_eq!(run.sent(0).into_iter().collect::<BTreeSet<_>>(), sent, "killed after {at}");
            }
            run.never_twice();
        }
    }

    /// No effect that succeeded is sent again, and none is sent under an id that was used.
    pub(crate) fn never_twice(&self) {
        let mut sent: BTreeMap<&str, bool> = BTreeMap::new();
        for event in &self.events {
            match event {
                Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                    assert!(sent.insert(&effect.0, false).is_none(), "{effect} twice");
                }
                Event::Completed { effect, outcome, .. } if !matches!(outcome, Outcome::Failed(_)) => {
                    assert_eq!(sent.insert(&effect.0, true), Some(false), "{effect} succeeds twice");
                }
                _ => {}
            }
        }
    }
}
