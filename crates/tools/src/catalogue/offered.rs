//! Tools that no document names and that a model may choose (D-17, D-21): what is made ready of them, and when.

use super::{Catalogue, Kind, PREPARING};
use crate::diag::ToolError;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long schemas are asked for that nobody may come to need.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is made ready of the tools that a model may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// All of it: a model plans with them, and is told their schemas (D-21).
    Whole,
    /// What takes moments, 5 s for all of them: a model is asked only if a step fails (D-17). Schemas that are kept, and
    /// those of tools whose environment is there. Any other tool is told as its metadata says; its first call builds its
    /// environment.
    Light,
}

impl Catalogue {
    /// The tools that a model may choose where it may choose among all, by name: those that are not refused anyway, and
    /// were not found to be unfit ([`Self::offer`]).
    pub fn offered(&self) -> Vec<Arc<str>> {
        self.names().filter(|name| self.is_fit(name)).cloned().collect()
    }

    /// Whether nothing is known that speaks against calls of a tool.
    pub fn is_fit(&self, name: &str) -> bool {
        !self.unfit().contains_key(name) && self.refusal(name).is_none()
    }

    /// The tools that no model is offered ([`Self::offered`]), by name, with why: what is not allowed, and what would
    /// allow it, or that the tool was found not to load.
    pub fn withheld(&self) -> Vec<(Arc<str>, ToolError)> {
        let unfit = self.unfit().clone();
        let why = |name: &Arc<str>| unfit.get(name).cloned().or_else(|| self.refusal(name));
        self.names().filter_map(|name| Some((Arc::clone(name), why(name)?))).collect()
    }

    /// Makes tools ready to be chosen by a model. Those that can't be are unfit from here on: they are returned with why.
    /// A file that was found not to load within the last day is not tried again ([`Self::prepare`] does).
    pub async fn offer(&self, names: &[Arc<str>], offer: Offer) -> Vec<(Arc<str>, ToolError)> {
        let began = Instant::now();
        let all: Vec<&str> = names.iter().map(|name| &**name).collect();
        let unconfined = self.unconfined(&all).await;
        let tools: Vec<(Arc<str>, Kind)> =
            names.iter().filter_map(|name| Some((Arc::clone(name), self.0.named(name)?.clone()))).collect();
        let work = tools.into_iter().map(|(name, kind)| {
            let inner = Arc::clone(&self.0);
            let refused = unconfined.clone().filter(|_| kind.is_confined());
            Box::pin(async move {
                let done = match (&kind, offer) {
                    _ if refused.is_some() => refused.map_or(Ok(()), Err),
                    (Kind::Python(tool), Offer::Light) => {
                        match PATIENCE.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
                            Some(left) => tool.prepare_lightly(&inner.shared, left).await,
                            None => Ok(()),
                        }
                    }
                    (Kind::Python(tool), Offer::Whole) => tool.prepare_to_offer(&inner.shared).await,
                    _ => inner.ready(&kind).await,
                };
                (name, done)
            })
        });
        let done: Vec<_> = futures_util::stream::iter(work).buffer_unordered(PREPARING).collect().await;
        let mut failed: Vec<(Arc<str>, ToolError)> =
            done.into_iter().filter_map(|(name, done)| Some((name, done.err()?))).collect();
        failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.unfit().extend(failed.iter().cloned());
        failed
    }

    fn unfit(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, ToolError>> {
        self.0.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
