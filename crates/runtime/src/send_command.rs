//! Commands to a run that another process drives (E-43).

use crate::blocking::blocking;
use crate::clock::{Clock, SystemClock};
use crate::command::{Command, Refusal};
use selvedge_store::{InboxEntry, Store, StoreError};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the sender looks for the reply.
const POLL: Duration = Duration::from_millis(5);
/// How often it looks whether anybody drives the run.
const ALIVE: Duration = Duration::from_millis(100);

/// Gives a command to a run that another process drives; returns once its event is durable there, or it was refused.
///
/// [`Refusal::NotDriven`] means that nobody took it and nobody will: whoever wants to may drive the run. Dropping this does
/// not take the command back.
///
/// # Errors
/// If the store refuses.
pub async fn send_command(
    store: &Arc<Store>,
    run: &str,
    command: &Command,
) -> Result<Result<(), Refusal>, StoreError> {
    let id = entry_id();
    let body = match command.to_json() {
        Ok(body) => body,
        Err(error) => return Ok(Err(Refusal::Unreadable { cause: error.to_string() })),
    };
    let entry = InboxEntry { id: id.clone(), run: run.to_owned(), at_ms: SystemClock.now_ms(), body };
    store.put_inbox_entry(entry).await?;
    let mut looked = Instant::now();
    loop {
        if let Some(reply) = reply(store, &id).await? {
            store.remove_inbox_entry(&id).await?;
            return Ok(replied(&reply));
        }
        if looked.elapsed() >= ALIVE {
            looked = Instant::now();
            if taken_back(store, run, &id).await? {
                return Ok(Err(Refusal::NotDriven));
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn reply(store: &Arc<Store>, id: &str) -> Result<Option<String>, StoreError> {
    let id = id.to_owned();
    blocking(store, move |store| store.inbox_reply(&id)).await
}

/// Takes an entry back if nobody drives the run: with the lock held, nobody settles it meanwhile.
async fn taken_back(store: &Arc<Store>, run: &str, id: &str) -> Result<bool, StoreError> {
    let run = run.to_owned();
    let lock = blocking(store, move |store| {
        if store.is_driven(&run)? {
            return Ok(None);
        }
        match store.drive(&run) {
            Ok(lock) => Ok(Some(lock)),
            Err(StoreError::Driven { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    let Some(_lock) = lock.await? else { return Ok(false) };
    // The driver may have settled it last of all.
    if reply(store, id).await?.is_some() {
        return Ok(false);
    }
    store.remove_inbox_entry(id).await?;
    Ok(true)
}

fn replied(reply: &str) -> Result<(), Refusal> {
    serde_json::from_str::<Result<(), Refusal>>(reply).unwrap_or_else(|error| {
        // Of another version, which knows why.
        Err(Refusal::Unreadable {
            cause: format!("its driver has said {reply:?}, which is no reply: {error}"),
        })
    })
}

/// An id that no other entry has.
fn entry_id() -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}
