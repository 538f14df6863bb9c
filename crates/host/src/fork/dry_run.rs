//! What a fork would ask for again, and what it would take from the recording: said before it is made (E-19, E-29).
//!
//! The engine itself goes on from the fork, in memory, with the recording as the only source of outcomes. What has none is asked for
//! and never answered: there it stops, and whatever depends on that with it.

use super::source::Source;
use super::{Parts, changed_tools, leaving};
use crate::config::Config;
use crate::error::Error;
use crate::host::Host;
use crate::options::RunOptions;
use crate::ready::{Asked, What};
use crate::reused::{Account, account};
use crate::timeline::{Followed, Timeline};
use crate::{models, places, tools};
use selvedge_engine::{Asking, Input, Record, State, ToolDef};
use selvedge_runtime::{Clock, SystemClock};
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
    /// Says what a fork would do. Nothing is recorded, no model is asked and no tool called; without another document nothing but the
    /// journal and the files of tools is read.
    ///
    /// # Errors
    /// Those of [`Self::source`], and whatever is wrong with another document.
    pub async fn dry_run(&self, asked: Asked) -> Result<DryRun, Error> {
        let Asked { config, mut options, what, .. } = asked;
        let What::Fork { source, given, read, .. } = what else {
            return Err(Error::internal("only a fork can be tried out"));
        };
        let (changed, names, tools) = match read {
            Some(read) => {
                let compiled = super::compile(self, &config, &mut options, &source, read).await;
                let (catalogue, models, changed) = compiled.map_err(|error| config.explained(error))?;
                catalogue.close().await;
                (changed, models.names, Vec::new())
            }
            None => {
                let changed = super::changes(&config, &source, given)?;
                let graph = changed.anew.as_ref().unwrap_or(&source.run.graph);
                let names = models::named(&models::roles(graph), &options, &config, &source.then.models);
                let tools = self.changed_files(&source, &options, &config).await;
                (changed, names, tools)
            }
        };
        let leaving = leaving(&source, &changed);
        let shared = leaving.shared;
        let mut reading = source.run.reading.clone();
        let mut run = Followed::new(reading.graph());
        reading.records(1, shared, |record| run.take(record))?;
        let hash = leaving.anew.as_ref().map(|_| Arc::from("dry-run"));
        let parts = Parts { hash, names: &names, tools, sequential: options.sequential };
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

    /// Tools whose files are another version by now. Servers are not asked, and a tool that is gone is as it was.
    async fn changed_files(&self, source: &Source, options: &RunOptions, config: &Config) -> Vec<ToolDef> {
        let workspace = places::workspace(&self.environment, &options.document);
        let catalogue = tools::catalogue(options, config, &source.run.dir, &workspace, &self.observer).await;
        let Ok(catalogue) = catalogue else { return Vec::new() };
        let newer = changed_tools(options.origin, &source.run.graph, &catalogue, self.observer.as_ref());
        catalogue.close().await;
        newer
    }
}
