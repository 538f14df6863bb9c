//! Effects on their way to the ports.

use super::{Drive, now_ms, panic_text};
use crate::flight::Flight;
use crate::ports::{CallContext, Pending};
use futures_util::FutureExt;
use selvedge_engine::{EffectId, Failure, FaultKind, Outcome, Request};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl Drive<'_> {
    pub(super) fn dispatch_pending(&mut self) {
        let waiting: Vec<EffectId> = self.state.pending().keys().cloned().collect();
        for effect in waiting {
            self.dispatch(effect);
        }
    }

    pub(super) fn dispatch(&mut self, effect: EffectId) {
        if self.known.contains(&effect) {
            return;
        }
        let (Some(pending), Some(request)) = (self.state.pending().get(&effect), self.state.request(&effect))
        else {
            return;
        };
        let wait = u64::try_from(pending.not_before.saturating_sub(now_ms())).unwrap_or(0);
        let begun = Arc::new(AtomicBool::new(false));
        let call = self.call(request, &effect, Arc::clone(&begun));
        let call = Box::pin(async move {
            if wait > 0 {
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
                let message = format!("internal error in an adapter: {}", panic_text(panic.as_ref()));
                Outcome::from(Failure::permanent(FaultKind::ExecutionFailure, message))
            })
        });
        self.flying.push(Flight { effect: effect.clone(), begun, call });
        self.known.insert(effect);
    }

    /// The call behind its semaphore. Ports are entered here, in the order of requests.
    fn call(
        &self,
        request: Request,
        effect: &EffectId,
        begun: Arc<AtomicBool>,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        let watcher = self.driver.watcher.clone();
        let started = watcher.clone().map(|watcher| (watcher, effect.clone()));
        let effect = effect.clone();
        let watch = watcher.map(|watcher| {
            let watch: crate::ports::Watch = Arc::new(move |delta| watcher.delta(&effect, delta));
            watch
        });
        let context = CallContext { run: Arc::clone(&self.run), watch };
        let (gate, call): (_, Pending<Outcome>) = match request {
            Request::Model(request) => {
                let reply = self.driver.model.call(request, context);
                let outcome = async move { reply.await.map(|reply| Outcome::Reply(Arc::new(reply))) };
                (Arc::clone(&self.driver.models), Box::pin(outcome))
            }
            Request::Tool(request) => {
                let output = self.driver.tools.call(request, context);
                let outcome = async move { output.await.map(|output| Outcome::Output(Arc::new(output))) };
                (Arc::clone(&self.driver.calls), Box::pin(outcome))
            }
        };
        async move {
            let permit = gate.acquire_owned().await;
            begun.store(true, Ordering::Relaxed);
            if let Some((watcher, effect)) = started {
                watcher.began(&effect);
            }
            let outcome = call.await.unwrap_or_else(Outcome::from);
            drop(permit);
            outcome
        }
    }
}
