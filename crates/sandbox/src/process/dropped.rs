//! What is still to be done for calls that were dropped when the process is about to end: an interrupt, a time limit.

use super::Made;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

static WORK: Work = Work { left: Mutex::new((0, Vec::new())), done: Condvar::new() };

struct Work {
    /// How much is under way, and what came of what nobody waited for.
    left: Mutex<(usize, Vec<Made>)>,
    done: Condvar,
}

/// Does what belongs to the end of a call on a thread of its own, which [`finish_dropped_calls`] waits for: no runtime that shuts down
/// ends it. `hand` gives what came of it to whoever waits, or back.
#[cfg(target_os = "linux")]
pub(super) fn begin(
    work: impl FnOnce() -> Made + Send + 'static,
    hand: impl FnOnce(Made) -> Option<Made> + Send + 'static,
) {
    WORK.left.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
    let all = move || {
        let unheard = hand(work()).filter(|made| !made.is_empty());
        let mut left = WORK.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.0 -= 1;
        left.1.extend(unheard);
        WORK.done.notify_all();
    };
    if std::thread::Builder::new().name("call's end".into()).spawn(all).is_err() {
        WORK.left.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
    }
}

/// Waits, for so long at most, until all that calls have left is looked through which were dropped, and says what was set aside and
/// what could not be. To be called before the process ends: what is not looked through stays as the tool made it.
pub fn finish_dropped_calls(most: Duration) -> Vec<Made> {
    let until = Instant::now() + most;
    let mut left = WORK.left.lock().unwrap_or_else(PoisonError::into_inner);
    while left.0 > 0 {
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            break;
        }
        left = WORK.done.wait_timeout(left, rest).unwrap_or_else(PoisonError::into_inner).0;
    }
    std::mem::take(&mut left.1)
}
