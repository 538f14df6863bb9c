//! Journals, content-addressed blobs and the run index: everything Selvedge remembers, in one SQLite file.
//!
//! A run's state is a fold of its journal and nothing else (E-03); this crate keeps journals and hands them back
//! unchanged. It knows nothing of what an event means: an [`Entry`] is a number, a time and one JSON text.
//!
//! # Promises
//! - **Durable means durable** (E-04). A [`Commit`] is done after the transaction that holds it is synced to the
//!   disk (`synchronous=FULL`). All requests of one store go through one writer thread that puts whatever is
//!   queued into one transaction: *group commit*. Requests sent one after the other are written in that order.
//! - **All or nothing.** A request's entries, its run-index update and its blobs become visible together. If a
//!   commit fails (disk full, a lock held too long), every request of that batch fails with the same error and
//!   nothing of it is kept; the store goes on working once the cause is gone.
//! - **Exact text.** What [`Store::journal`] yields is, byte for byte, what [`Store::append`] was given, or an error that
//!   names the first event that is not (E-44).
//! - **Said once, stored once** (E-08). Long strings inside large entries are stored by content, so the journal's
//!   size is linear in what was said; a forked run shares its prefix with its source (E-19).
//! - **One driver a run** (C-12). [`Store::drive`] takes a lock of the system that dies with its process.
//! - **Once to a driven run** (E-43). An [`InboxEntry`] for a run that another process drives is taken in the transaction that holds
//!   what it led to, or why it was refused.
//! - **Told at least once** (S-09). What somebody is to be told of a run is owed from the transaction on that holds it, until it is settled.
//! - **Several processes** may use one state folder at the same time.
//!
//! # Where things are
//! - `schema.rs`: tables and migrations; `open.rs`: opening connections
//! - `writer.rs`: the writer thread and its transactions; `reader.rs`: reading journals
//! - `library.rs`: the tool library's journal
//! - `chain.rs`: the hashes by which what is stored proves itself
//! - `index.rs`: the run index; `blobs.rs`: contents by hash; `encode.rs`: entries with long strings
//! - `inbox.rs`: commands to runs that other processes drive; `outbox.rs`: who is told what becomes of runs
//! - [`archive`]: runs in one file
//! - `lock.rs`: the driver's lock; `place.rs`: whether the database is still there; `error.rs`: what can go wrong, and what to do then
//!
//! # Example
//! ```
//! use selvedge_store::{Entry, NewRun, RunFilter, RunStatus, Store};
//!
//! let store = Store::memory()?;
//! let run = NewRun {
//!     id: "r1".into(), name: "demo".into(), dialect: "plan".into(), status: RunStatus::Running, started_ms: 0,
//!     graph: None, scripted: false, options: "{}".into(), fork: None, parent: None,
//! };
//! let first = Entry { n: 1, at_ms: 0, json: r#"{"kind":"started"}"#.into() };
//! store.create_run(run, vec![first.clone()]).wait()?;
//! let journal: Result<Vec<Entry>, _> = store.journal("r1", 1)?.collect();
//! assert_eq!(journal?, [first]);
//! assert_eq!(store.runs(&RunFilter::default())?.sound.len(), 1);
//! # Ok::<(), selvedge_store::StoreError>(())
//! ```

pub mod archive;
mod blobs;
mod chain;
mod commit;
mod encode;
mod error;
mod inbox;
mod index;
mod library;
mod lock;
mod open;
mod outbox;
mod place;
mod reader;
mod schema;
mod store;
mod writer;

pub use blobs::BlobHash;
pub use chain::Proof;
pub use commit::Commit;
pub use error::StoreError;
pub use inbox::{InboxEntry, InboxWatch, Settled};
pub use index::{ForkPoint, NewRun, PageOfRuns, RunFilter, RunInfo, RunStatus, RunUpdate, Runs, RunsPage};
pub use lock::DriverLock;
pub use open::DB_FILE;
pub use outbox::{Delivery, Hook};
pub use reader::Journal;
pub use store::{Mode, Store};

/// One event of a run's journal, as opaque text.
///
/// The first entry of a run has `n` = 1 and every further one its predecessor's `n` + 1; the store refuses
/// anything else ([`StoreError::OutOfOrder`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Number within the run, from 1.
    pub n: u64,
    /// When the event was made, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// The event, one JSON object.
    pub json: String,
}
