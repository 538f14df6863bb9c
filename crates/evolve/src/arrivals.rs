//! What the driver of a batch tells of, and what becomes of that: lines, and how far it is (V-02, V-14).

use crate::key::Key;
use crate::projections::Projections;
use crate::standing::{Heard, Standing};
use selvedge_dialects::evolve::TASK;
use selvedge_engine::{Event, Outcome, Record, State, Tokens};
use selvedge_host::Error;
use selvedge_host::evolve::measures::RoleUsage;
use selvedge_runtime::{Stop, Watcher};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the driver of a batch tells of, and what becomes of that.
pub(crate) struct Shared {
    /// The tasks that are meant: a batch that is gone on with may have others, whose lines were edited since (V-01).
    pub(crate) meant: HashSet<Key>,
    pub(crate) projections: Mutex<Projections>,
    pub(crate) standing: Mutex<Standing>,
    pub(crate) heard: Arc<dyn Heard>,
    /// What could not be written.
    pub(crate) failed: Mutex<Option<Error>>,
    pub(crate) stop: Stop,
    pub(crate) concurrency: u64,
    /// Tasks of the batch that have no line yet.
    pub(crate) left: AtomicU64,
}

impl Shared {
    /// So many tasks of a batch have no line yet.
    pub(crate) fn begins(&self, tasks: u64) {
        self.left.store(tasks, Ordering::Relaxed);
        self.standing_mut().running = tasks.min(self.concurrency);
    }

    pub(crate) fn projections(&self) -> MutexGuard<'_, Projections> {
        self.projections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn standing_mut(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn standing(&self) -> Standing {
        self.standing_mut().clone()
    }

    fn task(&self, said: &Value) {
        match self.projections().predicted(said) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return self.stop.interrupt();
            }
        }
        let key = said.get("run").and_then(Value::as_str).and_then(Key::of_run);
        let meant = key.is_some_and(|key| self.meant.contains(&key));
        let mut standing = self.standing_mut();
        if meant {
            standing.done += 1;
            standing.failed += u64::from(said.get("status").and_then(Value::as_str) != Some("completed"));
            let correct = said.get("correct").and_then(Value::as_bool);
            standing.scored += u64::from(correct.is_some());
            standing.right += u64::from(correct == Some(true));
        }
        let left = self.left.load(Ordering::Relaxed).saturating_sub(1);
        self.left.store(left, Ordering::Relaxed);
        standing.running = left.min(self.concurrency);
        let now = standing.clone();
        drop(standing);
        self.heard.task(said, meant, &now);
    }
}

impl Watcher for Shared {
    fn events(&self, _: &State, records: &[Record]) {
        for record in records {
            let said = said(record);
            let used = used(record, said.as_ref());
            if used != Tokens::default() {
                self.standing_mut().used(&used);
                self.heard.used(&self.standing());
            }
            said.iter().for_each(|said| self.task(said));
        }
    }
}

/// What a task came to, if this event of a batch says it.
pub(crate) fn said(record: &Record) -> Option<Value> {
    let Event::Completed { effect, outcome, .. } = &record.event else { return None };
    let output = outcome.output()?;
    let of_task = effect.place().is_some_and(|place| *place.place.node == *TASK);
    (of_task && output.get("task_id").is_some()).then(|| Value::clone(output))
}

/// What was used by what this event of a batch says: by a task, or by a model that the batch itself has asked. It is what measures count (V-11).
pub(crate) fn used(record: &Record, said: Option<&Value>) -> Tokens {
    if let Some(said) = said {
        let roles = said.get("work").and_then(|work| work.get("roles")).and_then(Value::as_object);
        let usages =
            roles.into_iter().flat_map(Map::values).filter_map(|used| RoleUsage::deserialize(used).ok());
        let mut all = Tokens::default();
        usages.for_each(|usage| all.add(&usage.tokens));
        return all;
    }
    match &record.event {
        Event::Completed { outcome: outcome @ (Outcome::Reply(_) | Outcome::Failed(_)), .. } => {
            outcome.tokens().copied().unwrap_or_default()
        }
        _ => Tokens::default(),
    }
}
