//! Effects on their way to the ports, and those that are dropped on it.

use super::Drive;
use crate::clock::wait;
use crate::flight::{Came, Flight};
use crate::ports::{CallContext, Pending, Printing, Turn};
use selvedge_engine::{EffectId, Failure, FaultKind, Outcome, Request, Took};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::Instrument;

/// When an effect was asked for.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// In this very turn: all of its wait is to come.
    Now,
    /// In an earlier process: what is left of its wait, the journal's times tell.
    Before,
}

impl Drive<'_> {
    /// Sends again what an earlier process had in flight and this one still wants, in the order of the journal (E-05).
    pub(super) fn dispatch_earlier(&mut self) {
        for effect in std::mem::take(&mut self.earlier) {
            self.dispatch(effect, Seen::Before);
        }
    }

    pub(super) fn dispatch(&mut self, effect: EffectId, seen: Seen) {
        if self.known.contains(&effect) {
            return;
        }
        let (Some(pending), Some(request)) = (self.state.pending().get(&effect), self.state.request(&effect))
        else {
            return;
        };
        let long = match seen {
            Seen::Now => pending.wait().ms,
            Seen::Before => pending.wait().left_ms(self.driver.clock.now_ms()),
        };
        let span = self.spans.effect(&effect, pending.node);
        let begun = Arc::new(AtomicBool::new(false));
        let turn = Turn::default();
        let call = self.call(request, &effect, Arc::clone(&begun), turn.clone());
        let clock = Arc::clone(&self.driver.clock);
        let call = async move {
            if long > 0 {
                wait(&*clock, Duration::from_millis(long)).await;
            }
            call.await
        };
        let call = Box::pin(call.instrument(span));
        self.flying.push(Flight { effect: effect.clone(), begun, turn, call });
        self.known.insert(effect);
    }

    /// Calls that the run does not wait for any more are dropped: other steps have taken their place (D-20, E-13), or their frame
    /// was cut off (E-38).
    pub(super) fn drop_unwanted(&mut self) {
        let pending = self.state.pending();
        let late = self.inbox.iter().filter(|(effect, ..)| !pending.contains_key(effect)).count();
        if self.known.len() > pending.len() + late {
            self.drop_cut_off();
        }
    }

    pub(super) fn drop_cut_off(&mut self) {
        let pending = self.state.pending();
        let flying = std::mem::take(&mut self.flying).into_iter();
        self.flying = flying.filter(|flight| pending.contains_key(&flight.effect)).collect();
        self.forget_dropped();
    }

    /// Calls that wait for their turn are dropped: an interrupted run asks for nothing more (C-05). A resume sends them.
    pub(super) fn drop_waiting(&mut self) {
        self.flying = std::mem::take(&mut self.flying).into_iter().filter(Flight::has_begun).collect();
        self.forget_dropped();
    }

    fn forget_dropped(&mut self) {
        let flying = self.flying.iter().map(|flight| &flight.effect);
        let answered = self.inbox.iter().map(|(effect, ..)| effect);
        self.known = flying.chain(answered).cloned().collect();
    }

    /// The call behind its semaphore. Ports are entered here, in the order of requests.
    fn call(
        &self,
        request: Request,
        effect: &EffectId,
        begun: Arc<AtomicBool>,
        turn: Turn,
    ) -> impl Future<Output = Came> + Send + use<> {
        let watcher = self.driver.watcher.clone();
        let started = watcher.clone().map(|watcher| (watcher, effect.clone()));
        let effect = effect.clone();
        let watch = watcher.map(|watcher| {
            let watch: crate::ports::Watch = Arc::new(move |delta| watcher.delta(&effect, delta));
            watch
        });
        let printing = Printing::default();
        let (run, unanswered) = (Arc::clone(&self.run), self.unanswered.clone());
        let context = CallContext { run, watch, printing: printing.clone(), unanswered, turn: turn.clone() };
        let (gate, call): (Option<_>, Pending<Outcome>) = match request {
            Request::Model(request) => {
                let reply = self.driver.model.call(request, context);
                let outcome = async move { reply.await.map(|reply| Outcome::Reply(Arc::new(reply))) };
                (Some(Arc::clone(&self.driver.models)), Box::pin(outcome))
            }
            Request::Tool(request) => {
                let output = self.driver.tools.call(request, context);
                let outcome = async move { output.await.map(|output| Outcome::Output(Arc::new(output))) };
                (Some(Arc::clone(&self.driver.calls)), Box::pin(outcome))
            }
            Request::Operation(request) => {
                let operated = match &self.driver.operations {
                    Some(operations) => operations.call(request, context),
                    None => Box::pin(std::future::ready(Err(no_operation(&request.tool.name)))),
                };
                (None, Box::pin(async move { operated.await.map(Outcome::from) }))
            }
        };
        let clock = Arc::clone(&self.driver.clock);
        async move {
            let asked = clock.running();
            let permit = match gate {
                Some(gate) => Some(gate.acquire_owned().await),
                None => None,
            };
            let began = clock.running();
            begun.store(true, Ordering::Relaxed);
            if let Some((watcher, effect)) = started {
                watcher.began(&effect);
            }
            let outcome = call.await.unwrap_or_else(Outcome::from);
            drop(permit);
            let ended = clock.running();
            // Its turn at the endpoint is waited for as well.
            let began = began.saturating_add(turn.waited()).min(ended);
            let (queued_ms, worked_ms) = (ms(asked, began), ms(began, ended));
            (outcome, printing.kept(), Some(Took { queued_ms, worked_ms }))
        }
    }
}

fn no_operation(name: &str) -> Failure {
    Failure::permanent(FaultKind::UnknownTool, format!("there is no operation `{name}` here")).unsent()
}

/// Milliseconds between two readings of a clock.
fn ms(from: Duration, to: Duration) -> u32 {
    u32::try_from(to.saturating_sub(from).as_millis()).unwrap_or(u32::MAX)
}
