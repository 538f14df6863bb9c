//! What tasks that run at once may use of the budget that they share (V-01).

use selvedge_engine::Budget;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The tasks of a batch that are under way, each with its share.
#[derive(Debug, Default)]
pub(super) struct Shares {
    running: Mutex<BTreeMap<String, Budget>>,
    ended: Notify,
}

/// The share of a task that is under way. Dropping it gives back what the task has not used.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    run: String,
    pub(super) budget: Budget,
}

/// How many tasks may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    /// Tasks at a time.
    pub(super) concurrency: usize,
    /// Tasks that have not begun, this one included.
    pub(super) waiting: usize,
}

impl Shares {
    /// The share of one more task: what is left is divided among the tasks that can begin now. `used` tells what tasks have used that are
    /// not under way, this one included. If all that is left belongs to tasks that are under way, it waits for one of them to end; `None`
    /// if nothing is left.
    ///
    /// # Errors
    /// Those of `used`.
    pub(super) async fn share<E>(
        self: &Arc<Self>,
        run: &str,
        caps: Budget,
        used: impl Fn(&dyn Fn(&str) -> bool) -> Result<(Budget, Crowd), E>,
    ) -> Result<Option<Share>, E> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            {
                let mut running = self.lock();
                let (used, crowd) = used(&|run| running.contains_key(run))?;
                let left = running.values().fold(less(caps, used), |left, share| less(left, *share));
                let many = crowd.concurrency.saturating_sub(running.len()).min(crowd.waiting).max(1);
                let budget = divided(left, many);
                if !is_used_up(budget) {
                    running.insert(run.to_owned(), budget);
                    return Ok(Some(Share { shares: Arc::clone(self), run: run.to_owned(), budget }));
                }
                if running.is_empty() {
                    return Ok(None);
                }
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Budget>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.lock().remove(&self.run);
        self.shares.ended.notify_waiters();
    }
}

/// Caps without what was used; a cap that is absent stays so.
fn less(caps: Budget, used: Budget) -> Budget {
    let count = |cap: Option<u64>, used: Option<u64>| cap.map(|cap| cap.saturating_sub(used.unwrap_or(0)));
    Budget {
        calls: count(caps.calls, used.calls),
        tokens: count(caps.tokens, used.tokens),
        cost: caps.cost.map(|cap| (cap - used.cost.unwrap_or(0.0)).max(0.0)),
    }
}

/// The part of one of so many; at least 1 of what is counted, as long as there is something.
fn divided(left: Budget, many: usize) -> Budget {
    let part = |left: u64| (left / many as u64).max(left.min(1));
    Budget {
        calls: left.calls.map(part),
        tokens: left.tokens.map(part),
        cost: left.cost.map(|cost| cost / many as f64),
    }
}

fn is_used_up(budget: Budget) -> bool {
    budget.calls == Some(0) || budget.tokens == Some(0) || budget.cost.is_some_and(|cost| cost <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Crowd, Shares};
    use std::sync::Arc;
    use std::time::Duration;

    fn calls(calls: u64) -> Budget {
        Budget { calls: Some(calls), ..Budget::default() }
    }

    /// V-01: tasks that run at once divide what is left, and a later one gets what they have given back.
    #[tokio::test]
    async fn tasks_at_once_stay_within_their_budget() {
        let shares = Arc::new(Shares::default());
        let share = |run: &'static str, used: u64, waiting: usize| {
            let shares = Arc::clone(&shares);
            async move {
                let crowd = Crowd { concurrency: 2, waiting };
                shares.share(run, calls(10), |_| Ok::<_, ()>((calls(used), crowd))).await
            }
        };
        let first = share("a", 0, 3).await.expect("a share").expect("some");
        let second = share("b", 0, 2).await.expect("a share").expect("some");
        assert_eq!((first.budget, second.budget), (calls(5), calls(5)));
        // All is given away: the third waits until one has ended, which used 2 of its 5.
        let third = tokio::spawn(share("c", 2, 1));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!third.is_finished());
        drop(first);
        let third = third.await.expect("no panic").expect("a share").expect("some");
        assert_eq!(third.budget, calls(3));
        drop((second, third));
        assert!(share("d", 10, 1).await.expect("an answer").is_none());
    }
}
