//! How many calls at a time an endpoint takes, as far as its answers tell (E-51).

/// Calls that are taken at a limit just below one that was refused before the limit is raised to that.
const PATIENCE: u32 = 32;
/// The most of them.
const MOST_PATIENCE: u32 = 512;

/// How many calls at a time an endpoint takes; at first there is no limit.
#[derive(Debug)]
pub(super) struct Learned {
    limit: Option<usize>,
    /// The fewest calls at a time of which one was refused.
    refused_at: Option<usize>,
    /// Calls that were taken since the limit changed.
    taken: u32,
    patience: u32,
}

impl Default for Learned {
    fn default() -> Self {
        Self { limit: None, refused_at: None, taken: 0, patience: PATIENCE }
    }
}

impl Learned {
    /// Whether another call may begin beside those under way.
    pub(super) fn allows(&self, under_way: usize) -> bool {
        self.limit.is_none_or(|limit| under_way < limit)
    }

    /// A call was refused while so many others were under way: as many are taken. If there was no other, it is not their number
    /// that matters.
    pub(super) fn refused(&mut self, others: usize) {
        if self.refused_at.is_some_and(|at| at == others + 1) {
            self.patience = self.patience.saturating_mul(2).min(MOST_PATIENCE);
        }
        self.limit = Some(self.limit.unwrap_or(usize::MAX).min(others.max(1)));
        self.refused_at = (others > 0).then_some(others + 1);
        self.taken = 0;
    }

    /// A call was taken; `more`: others wait for their turn, so that a higher limit is of use.
    pub(super) fn taken(&mut self, more: bool) {
        let Some(limit) = self.limit.filter(|_| more) else { return };
        self.taken += 1;
        let careful = self.refused_at.is_some_and(|at| limit + 1 >= at);
        if self.taken >= if careful { self.patience } else { 1 } {
            self.limit = Some(limit + 1);
            self.taken = 0;
        }
    }
}
