//! Stopping a driver from outside, without ending its run (C-05).

use std::sync::Arc;
use tokio::sync::watch;

/// A handle that interrupts a driver: once to let effects end, twice to stop at once.
#[derive(Clone, Debug)]
pub struct Stop {
    level: Arc<watch::Sender<u8>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { level: Arc::new(watch::Sender::new(0)) }
    }
}

impl Stop {
    /// Asks the driver to stop; the second call does not wait for effects.
    pub fn interrupt(&self) {
        self.level.send_modify(|level| *level = level.saturating_add(1));
    }
    /// How often it was asked.
    pub fn level(&self) -> u8 {
        *self.level.borrow()
    }
    /// Waits until it was asked at least `level` times.
    pub async fn reached(&self, level: u8) {
        let mut watch = self.level.subscribe();
        // The sender lives in `self`, so the wait can only end by the level.
        let _ = watch.wait_for(|now| *now >= level).await;
    }
}
