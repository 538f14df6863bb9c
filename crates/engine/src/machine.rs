//! The machine: one input in, events out (E-02).
//!
//! [`State::accept`] records what the outside did; [`State::step`] derives the next event until there is
//! none; [`State::apply`] is the only mutation. After folding *any* prefix of a journal, stepping to
//! quiescence and dispatching [`State::pending`] is the whole of recovery: there is no second mechanism
//! (E-03, E-05).

mod appended;
mod apply;
mod asks;
mod attempts;
mod authors;
mod between;
mod bindings;
mod budgets;
mod calls;
mod children;
mod conditions;
mod dataflow;
mod dependents;
mod derive;
mod doubt;
mod edits;
mod ended_early;
mod finish;
mod flow;
mod fork;
mod frame;
mod inputs;
mod join;
mod loops;
mod model;
mod node;
mod nodes;
mod opened;
mod outcomes;
mod paths;
mod people;
mod person_messages;
mod phase;
mod recall;
mod recovery;
mod request;
mod reserves;
mod retry;
mod reuse;
mod scope;
mod since;
mod size;
mod sizes;
mod skip;
mod slots;
mod splice;
mod stands;
mod state;
mod threads;
mod timers;
mod tool_call;
mod under_way;
mod usage;
mod view;
mod waits;
mod ways;

pub use asks::{answered, shown_at};
pub use doubt::{done, reasoned};
pub use finish::tool_text;
pub use fork::Place;
pub use people::MessageRefusal;
pub use phase::Publication;
pub use retry::back_off;
pub use reuse::{Afresh, Origin, Recording, Saved};
pub use since::TOKENS_AROUND;
pub use state::{Asking, Declined, PendingEffect, State};
pub use usage::Usage;
pub use view::{
    JoinView, NodeSoFar, NodeView, PathEnd, PathView, Published, RunStatus, RuntimeValue, StepResult, View,
};

use crate::event::{End, Event, Input, Record};
use crate::fault::{Fault, FaultKind};
use state::Status;

impl State {
    /// The event that records `input`, or `None` if it changes nothing: a late outcome (E-13), an ask that
    /// is not open, an input to a run that has ended.
    pub fn accept(&self, input: Input) -> Option<Event> {
        let ended = matches!(self.status, Status::Ended(..));
        let event = match input {
            Input::Start(start) => {
                return (self.status == Status::New).then_some(Event::Started(start));
            }
            Input::Resume(tools) => {
                // A run that did not fail has nothing to start anew, unless tools have changed (P-21).
                let anew = match self.status {
                    Status::Ended(End::Failed, _) => true,
                    Status::Running => !tools.is_empty(),
                    _ => false,
                };
                return anew.then_some(Event::Resumed { tools });
            }
            Input::Fork(fork) => {
                return (self.status != Status::New).then_some(Event::Forked(fork));
            }
            Input::Budget(budget) => {
                let over = matches!(self.status, Status::Ended(End::Completed | End::Cancelled, _));
                return (!over).then_some(Event::BudgetSet { budget });
            }
            Input::Limits(limits) => {
                let over = matches!(self.status, Status::Ended(End::Completed | End::Cancelled, _));
                let other = !over && self.start.limits != limits;
                return other.then(|| Event::LimitsSet { limits: Box::new(limits) });
            }
            Input::Models(models) => {
                let known = |(role, name): (&_, &_)| self.start.models.get(role) == Some(name);
                let over = matches!(self.status, Status::Ended(End::Completed | End::Cancelled, _));
                return (!over && !models.iter().all(known)).then_some(Event::ModelsSet { models });
            }
            _ if ended => return None,
            Input::Complete(effect, outcome, jitter, printed, took) => {
                self.pending.get(&effect)?;
                let failed = matches!(outcome, crate::effect::Outcome::Failed(_));
                let jitter = if failed { jitter } else { 0 };
                Event::Completed { effect, outcome, jitter, printed, took }
            }
            Input::Lose(effect) => {
                self.pending.get(&effect)?;
                Event::Lost { effect }
            }
            Input::Answer(ask, value) => {
                self.takes_answer(&ask, &value).then_some(())?;
                Event::Answered { ask, value: Box::new(value) }
            }
            Input::Fire(timer) => {
                self.timers.get(&timer)?;
                Event::Fired { timer }
            }
            Input::PersonMessage(message) => {
                self.message_refusal(&message).is_none().then_some(())?;
                Event::PersonMessage(Box::new(message))
            }
            Input::Cancel => Event::CancelRequested,
            Input::Expire(seconds) => Event::Expired { seconds },
            Input::Unsent(mut effects) => {
                effects.retain(|effect| self.may_be_unsent(effect));
                (!effects.is_empty()).then_some(())?;
                Event::Unsent { effects }
            }
            Input::Poison(message) => Event::Poisoned { message },
        };
        Some(event)
    }

    /// The next derived event, or `None` when only the outside can go on.
    pub fn step(&self) -> Option<Event> {
        match &self.status {
            Status::New | Status::Ended(..) => return None,
            Status::Ending(status, fault) => {
                return Some(Event::Ended { status: *status, fault: fault.clone() });
            }
            Status::Running => {}
        }
        if self.events >= self.start.limits.events {
            return Some(ended(End::Failed, Some(self.too_many_events())));
        }
        if let Some(seed) = self.next_seed() {
            return Some(seed);
        }
        if self.frames.root().is_over() {
            let (status, fault) = self.frames.root().ending();
            return Some(ended(status, fault));
        }
        self.agenda.front().and_then(|node| self.derive(*node))
    }

    /// Steps that checks of arguments and replies have taken in this process (E-45): a driver that does other things on its
    /// thread may stop deriving after many of them, and go on later. What is derived does not depend on it;
    /// a splice begins to count anew.
    pub fn checking_steps(&self) -> u64 {
        self.checks.taken()
    }

    /// Applies a record of the journal.
    pub fn apply_record(&mut self, record: &Record) {
        self.now = self.now.max(record.at);
        self.apply(&record.event);
    }

    /// Sets the run's time, which every following event carries; time never goes back.
    pub fn tick(&mut self, now_ms: i64) -> i64 {
        self.now = self.now.max(now_ms);
        self.now
    }

    fn too_many_events(&self) -> Fault {
        let limit = self.start.limits.events;
        Fault::new(
            FaultKind::LimitExceeded,
            format!("the run's journal reached {limit} events; raise `events` in [limits] if that is meant"),
        )
    }
}

fn ended(status: End, fault: Option<Fault>) -> Event {
    Event::Ended { status, fault: fault.map(Box::new) }
}
