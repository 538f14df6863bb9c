//! The outbox: who is to be told what becomes of runs (S-09), and what he is still owed.
//!
//! A delivery is owed from the very transaction on that holds what it tells, whichever process wrote that, until somebody notes that it
//! has arrived: so it is sent at least once, whoever dies when.

use std::path::Path;

use rusqlite::Connection;

use crate::writer::Request;
use crate::{Commit, DriverLock, RunStatus, Store, StoreError};

/// Begins the name of the lock of who delivers, among those of runs. No run has such an id.
const LOCK: &str = ".outbox-";

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Which one it is; nothing else of it is kept here.
    pub id: String,
    /// Of runs that come to stand so.
    pub statuses: Vec<RunStatus>,
}

/// Something that somebody is still to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whom.
    pub hook: String,
    /// Of which run.
    pub run: String,
    /// The event after which it stood so.
    pub n: u64,
    /// How it stood.
    pub status: RunStatus,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// How often it was tried.
    pub attempts: u32,
    /// Before when it is not tried again.
    pub next_ms: i64,
}

impl Store {
    /// The right to deliver what the hooks of an owner are owed, until dropped. Fails with [`StoreError::Driven`] if somebody else
    /// has it.
    pub fn deliver(&self, owner: &str) -> Result<DriverLock, StoreError> {
        self.drive(&format!("{LOCK}{owner}"))
    }

    /// Says who is told from now on, of one owner: whoever else of him was is told nothing any more, not even what he was owed.
    pub fn set_hooks(&self, owner: &str, hooks: Vec<Hook>) -> Commit {
        self.send(Request::hooks(owner.to_owned(), hooks))
    }

    /// Whether anybody is told, of one owner.
    pub fn has_hooks(&self, owner: &str) -> Result<bool, StoreError> {
        self.inner().read(|conn| {
            conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM hooks WHERE owner = ?1)")
                .and_then(|mut query| query.query_row([owner], |row| row.get(0)))
                .map_err(|error| self.inner().sql(&error))
        })
    }

    /// What somebody is owed, what is due first at first; at most so many.
    pub fn owed(&self, hook: &str, most: u32) -> Result<Vec<Delivery>, StoreError> {
        self.inner().read(|conn| {
            let sql = |error| self.inner().sql(&error);
            let mut query = conn
                .prepare_cached(
                    "SELECT r.id, d.n, d.status, d.at_ms, d.attempts, d.next_ms FROM deliveries d JOIN runs r ON r.key = d.run
                     WHERE d.hook = ?1 ORDER BY d.next_ms, d.at_ms, d.run, d.n LIMIT ?2",
                )
                .map_err(sql)?;
            let delivery = |row: &rusqlite::Row<'_>| {
                let status: String = row.get(2)?;
                Ok(Delivery {
                    hook: hook.to_owned(),
                    run: row.get(0)?,
                    n: row.get::<_, i64>(1)?.unsigned_abs(),
                    // Nobody writes another one.
                    status: status.parse().unwrap_or(RunStatus::Running),
                    at_ms: row.get(3)?,
                    attempts: row.get(4)?,
                    next_ms: row.get(5)?,
                })
            };
            query.query_map((hook, most), delivery).and_then(Iterator::collect).map_err(sql)
        })
    }

    /// How many deliveries are owed to all together.
    pub fn count_owed(&self) -> Result<u64, StoreError> {
        self.inner().read(|conn| {
            conn.prepare_cached("SELECT count(*) FROM deliveries")
                .and_then(|mut query| query.query_row([], |row| row.get::<_, i64>(0)))
                .map(i64::unsigned_abs)
                .map_err(|error| self.inner().sql(&error))
        })
    }

    /// A delivery is owed no more: it has arrived, or is given up.
    pub fn settle_delivery(&self, delivery: Delivery) -> Commit {
        self.send(Request::delivery(delivery, false))
    }

    /// A delivery is to be tried again, with its new `attempts` and `next_ms`.
    pub fn put_off_delivery(&self, delivery: Delivery) -> Commit {
        self.send(Request::delivery(delivery, true))
    }
}

/// Notes that a run has come to stand so with an event.
pub(crate) fn owe(
    conn: &Connection,
    (run, n, at_ms): (i64, u64, i64),
    status: RunStatus,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO deliveries (hook, run, n, status, at_ms, attempts, next_ms)
         SELECT id, ?1, ?2, ?3, ?4, 0, 0 FROM hooks WHERE instr(statuses, ?3)",
    )?
    .execute((run, i64::try_from(n).unwrap_or(i64::MAX), status.as_str(), at_ms))
    .map(drop)
}

pub(crate) fn set(conn: &Connection, owner: &str, hooks: &[Hook]) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM hooks WHERE owner = ?1", [owner])?;
    for hook in hooks {
        let statuses: Vec<&str> = hook.statuses.iter().map(|status| status.as_str()).collect();
        conn.execute(
            "INSERT OR REPLACE INTO hooks (id, owner, statuses) VALUES (?1, ?2, ?3)",
            (&hook.id, owner, statuses.join(" ")),
        )?;
    }
    conn.execute("DELETE FROM deliveries WHERE hook NOT IN (SELECT id FROM hooks)", []).map(drop)
}

pub(crate) fn change(
    conn: &Connection,
    db: &Path,
    delivery: &Delivery,
    again: bool,
) -> Result<(), StoreError> {
    let Delivery { hook, run, n, attempts, next_ms, .. } = delivery;
    let (key, _) = crate::index::known_key(conn, db, run)?;
    let n = i64::try_from(*n).unwrap_or(i64::MAX);
    let done = match again {
        true => conn
            .prepare_cached(
                "UPDATE deliveries SET attempts = ?4, next_ms = ?5 WHERE hook = ?1 AND run = ?2 AND n = ?3",
            )
            .and_then(|mut update| update.execute((hook, key, n, attempts, next_ms))),
        false => conn
            .prepare_cached("DELETE FROM deliveries WHERE hook = ?1 AND run = ?2 AND n = ?3")
            .and_then(|mut delete| delete.execute((hook, key, n))),
    };
    done.map(drop).map_err(|error| StoreError::from_sqlite(db, &error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::{Entry, Mode, NewRun, RunUpdate};

    fn stands(store: &Store, n: u64, status: RunStatus) {
        let entry = Entry { n, at_ms: n as i64, json: "{}".into() };
        let update = RunUpdate { status: Some((status, None)), ..RunUpdate::default() };
        store.append_and_update("r", vec![entry], update).wait().unwrap();
    }

    fn told(store: &Store, hook: &str) -> Vec<(u64, RunStatus)> {
        store.owed(hook, 10).unwrap().iter().map(|owed| (owed.n, owed.status)).collect()
    }

    /// S-09: what is owed is what was written while somebody was to be told, until it is settled.
    #[test]
    fn s09_what_is_owed_is_owed_until_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        let run = NewRun {
            id: "r".into(),
            name: "r".into(),
            dialect: "plan".into(),
            status: RunStatus::Running,
            started_ms: 0,
            graph: None,
            scripted: false,
            options: "{}".into(),
            fork: None,
            parent: None,
        };
        store.create_run(run, vec![Entry { n: 1, at_ms: 1, json: "{}".into() }]).wait().unwrap();
        assert!(!store.has_hooks("me").unwrap());
        stands(&store, 2, RunStatus::Waiting);
        let hook = |id: &str, statuses: &[RunStatus]| Hook { id: id.to_owned(), statuses: statuses.to_vec() };
        let all = [RunStatus::Waiting, RunStatus::Completed];
        store.set_hooks("me", vec![hook("all", &all), hook("ends", &all[1..])]).wait().unwrap();
        // What was before is not told, and what goes on is nothing to tell.
        stands(&store, 3, RunStatus::Running);
        assert_eq!(store.count_owed().unwrap(), 0);
        stands(&store, 4, RunStatus::Waiting);
        stands(&store, 5, RunStatus::Completed);
        drop(store);

        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        assert!(store.has_hooks("me").unwrap());
        assert_eq!(told(&store, "all"), [(4, RunStatus::Waiting), (5, RunStatus::Completed)]);
        assert_eq!(told(&store, "ends"), [(5, RunStatus::Completed)]);
        let first = store.owed("all", 1).unwrap().remove(0);
        store.put_off_delivery(Delivery { attempts: 3, next_ms: 99, ..first.clone() }).wait().unwrap();
        assert_eq!(told(&store, "all"), [(5, RunStatus::Completed), (4, RunStatus::Waiting)]);
        let last = store.owed("all", 2).unwrap().remove(1);
        assert_eq!((last.attempts, last.next_ms, last.at_ms), (3, 99, 4));
        store.settle_delivery(last).wait().unwrap();
        assert_eq!(told(&store, "all"), [(5, RunStatus::Completed)]);
        // Who is not told any more is owed nothing.
        store.set_hooks("me", vec![hook("ends", &all)]).wait().unwrap();
        assert_eq!((told(&store, "all"), store.count_owed().unwrap()), (vec![], 1));
        store.set_hooks("other", vec![hook("theirs", &all)]).wait().unwrap();
        store.set_hooks("me", Vec::new()).wait().unwrap();
        assert!(store.has_hooks("other").unwrap() && !store.has_hooks("me").unwrap());
        assert_eq!(store.count_owed().unwrap(), 0);
        // One delivers.
        let lock = store.deliver("me").unwrap();
        assert!(matches!(
            Store::open(dir.path(), Mode::ReadWrite).unwrap().deliver("me"),
            Err(StoreError::Driven { .. })
        ));
        drop(lock);
        assert!(store.deliver("me").is_ok());
    }
}
