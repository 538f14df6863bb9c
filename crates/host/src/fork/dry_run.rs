//! What a fork would ask for again, and what it would take from the recording: said before it is made (E-19, E-29).
//!
//! The engine itself goes on from the fork, in memory, with the recording as the only source of outcomes. What has none is asked for
//! and never answered: there it stops, and whatever depends on that with it.

use super::{Parts, changed_tools, leaving};
use crate::error::Error;
use crate::host::Host;
use crate::ready::{Asked, Begins, Ready};
use crate::reused::{Account, account};
use crate::timeline::{Followed, Timeline};
use selvedge_engine::{Asking, Input, Record, State};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::StoreError;
use std::sync::Arc;

/// What would become of a fork.
pub struct DryRun {
    /// The run that would be forked, and how many events it has.
    pub run: String,
    /// How many events that has.
    pub events: u64,
    /// How many of them the fork would share.
    pub shared: u64,
    /// Whether it would begin its document anew.
    pub anew: bool,
    /// The state in which nothing more follows from what is recorded.
    pub state: State,
    /// What would have happened until then.
    pub timeline: Timeline,
    /// Node by node, what would stand, be taken or run.
    pub account: Account,
}

impl DryRun {
    /// Questions that people would be asked.
    pub fn asks(&self) -> impl Iterator<Item = (&Arc<str>, &Asking)> {
        self.state.asks().iter()
    }
}

impl Host {
    /// Says what a fork would do. Nothing is recorded, no model is asked and no tool called. What it needs is looked for and made ready as for
    /// the fork itself.
    ///
    /// # Errors
    /// Whatever the fork could not begin with: those of [`Self::source`] and [`Self::prepare`], and an id that is used.
    pub async fn dry_run(&self, asked: Asked) -> Result<DryRun, Error> {
        let Ready { id, options, catalogue, models, begins, .. } = self.prepare(asked).await?;
        let Begins::Fork { source, changed } = begins else {
            return Err(Error::internal("only a fork can be tried out"));
        };
        if source.run.store.has_run(&id)? {
            return Err(StoreError::AlreadyExists { run: id }.into());
        }
        let leaving = leaving(&source, &changed);
        let shared = leaving.shared;
        let mut reading = source.run.reading.clone();
        let mut run = Followed::new(reading.graph());
        reading.records(1, shared, |record| run.take(record))?;
        let hash = leaving.anew.as_ref().map(|_| Arc::from("dry-run"));
        let graph = leaving.anew.as_ref().unwrap_or_else(|| run.state.graph());
        let tools = changed_tools(options.origin, graph, &catalogue, self.observer.as_ref());
        catalogue.close().await;
        let parts = Parts { hash, names: &models.names, tools, sequential: options.sequential };
        let fork = parts.fork(&source, run.state.start(), &leaving, &changed);
        let anew = leaving.anew.is_some();
        let at = run.state.tick(SystemClock.now_ms());
        let mut next = run.state.accept(Input::Fork(Box::new(fork)));
        while let Some(event) = next {
            run.take(&Record { at, event });
            next = run.state.step();
        }
        let Followed { state, timeline } = run;
        let account = account(&state, &timeline);
        Ok(DryRun {
            run: source.run.info.id.clone(),
            events: source.run.events,
            shared,
            anew,
            state,
            timeline,
            account,
        })
    }
}
