//! Saying something to a run that another process drives (E-43).

use crate::clock::{Clock, SystemClock};
use crate::command::{Command, Refusal};
use selvedge_store::{Letter, Store, StoreError};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How often the sender looks what became of a letter.
const LOOK: Duration = Duration::from_millis(5);
/// How often it looks whether anybody drives the run.
const ALIVE: Duration = Duration::from_millis(100);

/// Says something to a run that another process drives; returns once its event is durable there, or it was refused.
///
/// [`Refusal::NotDriven`] means that nobody took it and nobody will: whoever wants to may drive the run. Dropping this does
/// not take back what was said.
///
/// # Errors
/// If the store refuses.
pub async fn tell(store: &Store, run: &str, command: &Command) -> Result<Result<(), Refusal>, StoreError> {
    let id = letter_id();
    let body = match command.to_json() {
        Ok(body) => body,
        Err(error) => return Ok(Err(Refusal::Unreadable { cause: error.to_string() })),
    };
    store.post(Letter { id: id.clone(), run: run.to_owned(), at_ms: SystemClock.now_ms(), body }).await?;
    let mut looked = Instant::now();
    loop {
        if let Some(reply) = store.settled(&id)? {
            store.discard(&id).await?;
            return Ok(replied(&reply));
        }
        if looked.elapsed() >= ALIVE {
            looked = Instant::now();
            if taken_back(store, run, &id).await? {
                return Ok(Err(Refusal::NotDriven));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Takes a letter back if nobody drives the run: with the lock held, nobody takes it meanwhile.
async fn taken_back(store: &Store, run: &str, id: &str) -> Result<bool, StoreError> {
    if store.is_driven(run)? {
        return Ok(false);
    }
    let _lock = match store.drive(run) {
        Ok(lock) => lock,
        Err(StoreError::Driven { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The driver may have taken it last of all.
    if store.settled(id)?.is_some() {
        return Ok(false);
    }
    store.discard(id).await?;
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

/// An id that no other letter has.
fn letter_id() -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}
