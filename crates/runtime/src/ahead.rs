//! Reading a journal while what was read before is folded.

use crate::recorded::LoadError;
use selvedge_store::{Entry, StoreError};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

/// What is handed over at a time; a journal of fewer entries needs no thread.
const BATCH: usize = 1024;
/// Batches that may wait to be folded.
const QUEUE: usize = 8;

/// Gives `fold` what `parse` makes of `entries`, in order. Those of a long journal are read and decoded on a thread of
/// their own, a little ahead of the fold. An error is the last thing that is read.
pub(crate) fn ahead<T, R: Send>(
    entries: impl Iterator<Item = Result<Entry, StoreError>> + Send,
    parse: impl Fn(Entry) -> Result<R, LoadError> + Sync,
    fold: impl FnOnce(&mut dyn Iterator<Item = Result<R, LoadError>>) -> T,
) -> T {
    let entries = Mutex::new(entries);
    let batch = || {
        let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
        let next = entries.by_ref().take(BATCH);
        next.map(|entry| parse(entry?)).collect::<Vec<_>>()
    };
    let first = batch();
    if first.len() < BATCH {
        return fold(&mut first.into_iter());
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(QUEUE);
        let batch = &batch;
        let reader = move || {
            loop {
                let records = batch();
                // A receiver that is gone has seen enough.
                if records.is_empty() || sender.send(records).is_err() {
                    return;
                }
            }
        };
        let reader = std::thread::Builder::new().name("selvedge-read".into()).spawn_scoped(scope, reader);
        if reader.is_ok() {
            fold(&mut first.into_iter().chain(receiver.into_iter().flatten()))
        } else {
            // No thread to be had: one after the other.
            let rest = std::iter::from_fn(|| Some(batch()).filter(|records| !records.is_empty()));
            fold(&mut first.into_iter().chain(rest.flatten()))
        }
    })
}

#[cfg(test)]
mod tests;
