//! Calls in flight, and what comes of them while something else is waited for.

use crate::ports::Turn;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use selvedge_engine::{EffectId, Outcome, Printed, Took};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// How many inputs one commit may take.
pub(crate) const BATCH: usize = 1024;

/// What a call came to, what a tool printed meanwhile, and what its time went into.
pub(crate) type Came = (Outcome, Option<Arc<Printed>>, Option<Took>);

/// An effect and what it came to.
pub(crate) type Answer = (EffectId, Came);

/// A call in flight.
pub(crate) struct Flight {
    pub(crate) effect: EffectId,
    /// Set when the call has had its turn: until then it waits, and nobody was asked for anything.
    pub(crate) begun: Arc<AtomicBool>,
    /// Whether it waits for its turn at an endpoint.
    pub(crate) turn: Turn,
    pub(crate) call: Pin<Box<dyn Future<Output = Came> + Send>>,
}

impl Flight {
    /// Whether the call is under way.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed) && !self.turn.is_waiting()
    }
}

impl Future for Flight {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        self.call.as_mut().poll(context).map(|came| (self.effect.clone(), came))
    }
}

/// Waits for a commit while calls in flight go on.
pub(crate) async fn keep_flying<T>(
    commit: impl Future<Output = T>,
    flying: &mut FuturesUnordered<Flight>,
    inbox: &mut Vec<Answer>,
) -> T {
    tokio::pin!(commit);
    loop {
        tokio::select! {
            biased;
            done = &mut commit => return done,
            Some(answer) = flying.next(), if inbox.len() < BATCH => inbox.push(answer),
        }
    }
}
