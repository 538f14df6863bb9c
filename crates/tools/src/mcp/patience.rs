//! How long a call is waited for (E-12).

use super::error::seconds;
use crate::failures::TIMEOUT_SETTING;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A time limit that begins anew with each progress that a server tells of.
pub(super) struct Patience {
    /// From the begin, and from each progress on.
    pub(super) limit: Duration,
    /// In all.
    pub(super) most: Duration,
    /// Progress.
    pub(super) beat: Arc<Notify>,
}

impl Patience {
    /// Waits until nobody waits any longer.
    pub(super) async fn over(&self) {
        let now = Instant::now();
        let (mut until, end) = (now + self.limit, now + self.most);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until.min(end)) => return,
                () = self.beat.notified() => until = Instant::now() + self.limit,
            }
        }
    }

    /// What has happened, as the rest of a sentence.
    pub(super) fn words(&self) -> String {
        let limit = seconds(self.limit);
        match self.most > self.limit {
            true => format!(
                "took longer than its {limit} without telling of progress, or than {} in all ({TIMEOUT_SETTING}; \
                 `max_timeout_s` of the server)",
                seconds(self.most)
            ),
            false => format!("took longer than its {limit} ({TIMEOUT_SETTING})"),
        }
    }
}
