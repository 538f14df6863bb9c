//! Two clocks: one says when something was, the other how long it takes.
//!
//! Waits go by the second (E-14): nobody can set it. It counts the time in which the machine was suspended: who was asked to
//! come back in a minute need not wait another one after a night. Tokio's timers don't count that time, and so a wait is
//! a number of short sleeps, with a look at the clock after each.

use std::time::{Duration, SystemTime};

/// The longest sleep without a look at the clock.
const NAP: Duration = Duration::from_secs(1);
/// The same of a run that may wait for days.
const LONG_NAP: Duration = Duration::from_mins(1);

/// The clocks that a driver goes by.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970 (UTC): for times in the journal. Anybody may set this clock.
    fn now_ms(&self) -> i64;
    /// The time since some moment before this process began, suspension included. Nobody can set this clock.
    fn running(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    }

    #[cfg(target_os = "linux")]
    fn running(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
    }

    #[cfg(not(target_os = "linux"))]
    fn running(&self) -> Duration {
        use std::{sync::OnceLock, time::Instant};
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        BEGAN.get_or_init(Instant::now).elapsed()
    }
}

/// Waits so long by a clock that can't be set.
pub(crate) async fn wait(clock: &dyn Clock, long: Duration) {
    wait_in_naps(clock, long, |_| NAP).await;
}

/// The same with fewer looks at the clock while much time is left: thousands of runs may wait so.
pub(crate) async fn wait_for_long(clock: &dyn Clock, long: Duration) {
    wait_in_naps(clock, long, |left| (left / 60).clamp(NAP, LONG_NAP)).await;
}

async fn wait_in_naps(clock: &dyn Clock, long: Duration, nap: impl Fn(Duration) -> Duration) {
    let began = clock.running();
    let mut slept = Duration::ZERO;
    loop {
        let gone = slept.max(clock.running().saturating_sub(began));
        let left = long.saturating_sub(gone);
        if left.is_zero() {
            return;
        }
        let before = tokio::time::Instant::now();
        tokio::time::sleep(left.min(nap(left))).await;
        slept += before.elapsed();
    }
}
