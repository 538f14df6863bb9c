//! What an evolution leaves when it ends or stops: its page, its library, and what it came to (V-15).

use super::{Going, LIBRARY, Prepared};
use crate::standing::{Standing, Stopped, Summary};
use selvedge_engine::library::Place;
use selvedge_host::Error;
use selvedge_host::library::{self, export};

impl Going<'_> {
    /// Writes what the batches came to as a page, and the library that they have left as a folder.
    pub(super) fn report(&self) -> Result<(), Error> {
        let Prepared { evolution, store, out, .. } = self.prepared;
        let name = evolution.data_set.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.shared.projections().report(&name.unwrap_or_default())?;
        let library = library::read(store)?;
        export::replace(&out.join(LIBRARY), (Some(store), &library), |_| true).map(drop)
    }

    pub(super) fn summary(&self, stopped: Option<Stopped>) -> Result<Summary, Error> {
        let Prepared { store, out, .. } = self.prepared;
        let Standing { tasks, done, failed, .. } = self.shared.standing();
        let (right, scored) = self.right(done)?;
        let tools = library::read(store)?.names(&Place::Library).count() as u64;
        let batches = self.batches.len() as u64;
        Ok(Summary {
            tasks,
            done,
            failed,
            scored,
            right,
            measures: self.last.clone(),
            batches,
            tools,
            out: out.clone(),
            stopped,
        })
    }

    /// How many of the tasks that are meant are right, and how many are scored, of batches that are done. The batches count what they have done;
    /// where that is more than is meant now, their runs say it of each task.
    fn right(&self, done: u64) -> Result<(u64, u64), Error> {
        if self.shared.projections().len() as u64 == done {
            return Ok(self.last.as_ref().map_or((0, 0), |last| (last.total.right, last.total.scored)));
        }
        let (mut right, mut scored) = (0, 0);
        self.prepared.each_score(|key, score| {
            if self.shared.meant.contains(&key) {
                right += u64::from(score.right);
                scored += 1;
            }
        })?;
        Ok((right, scored))
    }
}
