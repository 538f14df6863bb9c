//! Who may call an endpoint when (E-51): one [`Limiter`] for each endpoint and key, shared by all runs of a process.
//!
//! It lets calls through in the order in which they came, as many at a time as the endpoint has taken so far. What the endpoint answers
//! to one call holds for all: a Retry-After is a pause of the whole endpoint, and a refusal for too many requests lowers how many calls
//! there are at a time.

mod learned;
mod window;

use learned::Learned;
use selvedge_http::Secret;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use window::Window;

/// How much a model is asked, by its configuration (`[models.NAME]`); without a number there is no such limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// `requests_per_minute`.
    pub requests_per_minute: Option<u64>,
    /// `tokens_per_minute`, those of prompts and replies together.
    pub tokens_per_minute: Option<u64>,
    /// `max_parallel`: calls at a time.
    pub max_parallel: Option<u64>,
}

/// What an endpoint did with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It took the call; tokens that were used.
    Taken(u64),
    /// It takes no more calls for now, or none for so long.
    Refused(Option<Duration>),
    /// Something else became of the call.
    Other,
}

/// An endpoint with a key, as a number: no key is kept.
type Place = (String, Option<u64>);

/// Limiters that are kept, so that what they know holds for the next run; above this number those are dropped that no model uses.
const MOST_KEPT: usize = 256;

/// The limiters of this process.
static LIMITERS: LazyLock<Mutex<HashMap<Place, Arc<Limiter>>>> = LazyLock::new(Mutex::default);

/// Lets calls of one endpoint and key through.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    under_way: usize,
    learned: Learned,
    paused: Option<Instant>,
    models: HashMap<Arc<str>, Window>,
    /// When a task looks again at who waits.
    alarm: Option<Instant>,
}

/// A call that waits for its turn.
#[derive(Debug)]
struct Waiting {
    model: Arc<str>,
    /// Tokens that it may use.
    tokens: u64,
    turn: oneshot::Sender<Permit>,
}

/// A call's turn. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<Limiter>,
    model: Arc<str>,
    /// Its entry in the model's window.
    entry: u64,
    answer: Answer,
}

/// Why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Calls before it.
    pub(crate) before: usize,
    /// How long the endpoint asked to wait.
    pub(crate) pause: Option<Duration>,
}

impl Limiter {
    /// That of an endpoint and key. The pace of a model holds from here on.
    pub(crate) fn of(base_url: &str, key: Option<&Secret>, model: &Arc<str>, pace: Pace) -> Arc<Self> {
        let number = key.map(|key| {
            let mut hasher = DefaultHasher::new();
            key.expose().hash(&mut hasher);
            hasher.finish()
        });
        let place = (base_url.to_owned(), number);
        let mut limiters = LIMITERS.lock().unwrap_or_else(PoisonError::into_inner);
        if limiters.len() >= MOST_KEPT {
            limiters.retain(|_, limiter| Arc::strong_count(limiter) > 1);
        }
        let limiter = Arc::clone(limiters.entry(place).or_default());
        drop(limiters);
        limiter.lock().models.entry(Arc::clone(model)).or_default().pace = pace;
        limiter
    }

    /// Waits for a call's turn. `told` hears of it if there is something to wait for.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        model: &Arc<str>,
        tokens: u64,
        told: impl FnOnce(Wait),
    ) -> Option<Permit> {
        let (turn, mut granted) = oneshot::channel();
        self.lock().waiting.push_back(Waiting { model: Arc::clone(model), tokens, turn });
        self.admit();
        if let Ok(permit) = granted.try_recv() {
            return Some(permit);
        }
        told(self.wait());
        granted.await.ok()
    }

    fn wait(&self) -> Wait {
        let state = self.lock();
        let pause = state.paused.map(|until| until.saturating_duration_since(Instant::now()));
        let before = state.waiting.len().saturating_sub(1);
        Wait { before, pause: pause.filter(|pause| !pause.is_zero()) }
    }

    /// Lets through all calls whose turn it is.
    fn admit(self: &Arc<Self>) {
        let admitted = self.lock().admit(self);
        for (turn, permit) in admitted {
            // One that nobody waits for any more ends at once.
            drop(turn.send(permit));
        }
    }

    /// Looks again at who waits at that time.
    fn wake_at(self: &Arc<Self>, at: Instant) {
        let limiter = Arc::downgrade(self);
        // Without a runtime no call waits.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                sleep_until(at).await;
                if let Some(limiter) = limiter.upgrade() {
                    limiter.lock().alarm = None;
                    limiter.admit();
                }
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the calls whose turn it is out of the queue. A model at its own limit holds up no other model.
    fn admit(&mut self, limiter: &Arc<Limiter>) -> Vec<(oneshot::Sender<Permit>, Permit)> {
        let now = Instant::now();
        let mut admitted = Vec::new();
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
        }
        let mut next = self.paused;
        let mut full: Vec<Arc<str>> = Vec::new();
        let mut at = 0;
        while self.paused.is_none()
            && self.learned.allows(self.under_way)
            && let Some(Waiting { model, tokens, .. }) = self.waiting.get(at)
        {
            if full.contains(model) {
                at += 1;
                continue;
            }
            let (model, tokens) = (Arc::clone(model), *tokens);
            let window = self.models.entry(Arc::clone(&model)).or_default();
            match window.enter(now, tokens) {
                Ok(entry) => {
                    self.under_way += 1;
                    if let Some(Waiting { turn, .. }) = self.waiting.remove(at) {
                        let limiter = Arc::clone(limiter);
                        admitted.push((turn, Permit { limiter, model, entry, answer: Answer::Other }));
                    }
                }
                Err(free) => {
                    next = next.into_iter().chain(free).min();
                    full.push(model);
                    at += 1;
                }
            }
        }
        if let Some(next) = next.filter(|next| {
            !self.waiting.is_empty() && self.alarm.is_none_or(|alarm| alarm <= now || *next < alarm)
        }) {
            self.alarm = Some(next);
            limiter.wake_at(next);
        }
        admitted
    }

    /// A call has ended.
    fn leave(&mut self, model: &str, entry: u64, answer: Answer) {
        self.under_way = self.under_way.saturating_sub(1);
        let tokens = match answer {
            Answer::Taken(tokens) => Some(tokens),
            Answer::Refused(_) | Answer::Other => None,
        };
        if let Some(window) = self.models.get_mut(model) {
            window.leave(entry, tokens);
        }
        match answer {
            Answer::Taken(_) => self.learned.taken(!self.waiting.is_empty()),
            Answer::Refused(pause) => {
                self.learned.refused(self.under_way);
                let until = pause.and_then(|pause| Instant::now().checked_add(pause));
                self.paused = self.paused.into_iter().chain(until).max();
            }
            Answer::Other => {}
        }
    }
}

impl Permit {
    /// The call has ended, and the next ones have their turn.
    pub(crate) fn end(mut self, answer: Answer) {
        self.answer = answer;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.lock().leave(&self.model, self.entry, self.answer);
        self.limiter.admit();
    }
}

#[cfg(test)]
mod tests;
