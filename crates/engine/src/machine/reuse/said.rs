//! What a model is sent, as a digest: each message adds to the one of those before it. Most requests say what an earlier one of the
//! same thread said, and a little more, so digests of threads are kept.

use crate::ids::MessageIx;
use crate::message::{Message, Role, Thread};
use crate::messages::{Log, Messages};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Digest of what was asked.
pub(crate) type Key = [u8; 32];

/// Threads whose digests are kept. Beyond that those are forgotten that nobody has asked for since so many others came.
const KEPT: usize = 1 << 14;
/// How many messages of a thread that nothing is known of lie between two moments of it that are kept.
const APART: usize = 64;

/// A thread: its last message with all before it, where it begins among these, and what stands before it.
type On = (usize, u32, Key);

/// Digests of threads. A cache only: nothing of a run's state is in it. Clones share it, as a thread that both know says the same in
/// either: they began with the same messages, and each has those that it added on threads of its own.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Kept>>);

/// What is known, in two generations. A thread is kept with its digest, so that what it is known by stays its own.
#[derive(Default)]
struct Kept {
    young: HashMap<On, (Thread, Key)>,
    old: HashMap<On, (Thread, Key)>,
}

impl Kept {
    fn get(&mut self, on: &On) -> Option<Key> {
        if let Some((_, known)) = self.young.get(on) {
            return Some(*known);
        }
        let (thread, known) = self.old.remove(on)?;
        self.insert(*on, thread, known);
        Some(known)
    }

    fn insert(&mut self, on: On, thread: Thread, said: Key) {
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(on, (thread, said));
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Said")
    }
}

impl Said {
    /// The digest of the messages of a request over `thread`, which are in `log`; of those of earlier editions `ids` of calls are a part (E-42).
    pub(super) fn in_request(&self, messages: &Messages, thread: &Thread, log: &Log, ids: bool) -> Key {
        if thread.is_cut() {
            // Orphans are mended in it: no other request begins with the same for sure.
            let all = messages.as_slice();
            let before = |at: usize| all.iter().take(at).rev().map(AsRef::as_ref);
            let each = all.iter().enumerate();
            return each.fold(Key::default(), |said, (at, message)| with(said, message, before(at), ids));
        }
        let before = messages.before().map(|system| with(Key::default(), system, std::iter::empty(), ids));
        self.on(thread, before.unwrap_or_default(), log, ids)
    }

    /// The digest of all that a thread says.
    pub(in crate::machine) fn in_thread(&self, thread: &Thread, log: &Log) -> Key {
        self.on(thread, Key::default(), log, false)
    }

    /// The digest of a thread behind what `before` is the digest of.
    fn on(&self, thread: &Thread, before: Key, log: &Log, ids: bool) -> Key {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = before;
        let mut new = Vec::new();
        let mut back = thread.backwards();
        while let Some((link, message)) = back.next() {
            let on = (link, thread.skipped(), before);
            if let Some(known) = kept.get(&on) {
                said = known;
                break;
            }
            new.push((on, message, back.clone()));
        }
        let message = |ix: MessageIx| &*log[ix];
        for (at, (on, ix, back)) in new.into_iter().enumerate().rev() {
            said = with(said, message(ix), back.map(|(_, ix)| message(ix)), ids);
            // Of a long thread nobody else may know the end.
            if at % APART == 0 {
                kept.insert(on, thread.clone(), said);
            }
        }
        said
    }
}

/// With one message more. `before`: those before it, the last one first.
fn with<'m>(said: Key, message: &Message, before: impl Iterator<Item = &'m Message>, ids: bool) -> Key {
    let hash = Sha256::new().chain_update(said);
    match ids {
        true => digested(hash, message),
        false => digested(hash, &Unnamed::of(message, before)),
    }
}

/// A message without the ids of its calls: they are names that providers give, or that are made of places; frames of later visits
/// have others, and say the same (E-29).
#[derive(Serialize)]
struct Unnamed<'m> {
    role: Role,
    content: &'m str,
    calls: Vec<(&'m str, &'m Value)>,
    /// Of a result, which call it is of: how many messages back, and which one there. None is there of an orphan.
    of: Option<Option<(usize, usize)>>,
    name: Option<&'m str>,
}

impl<'m> Unnamed<'m> {
    fn of<'b>(message: &'m Message, before: impl Iterator<Item = &'b Message>) -> Self {
        let of = message.tool_call_id.as_ref().map(|id| {
            let call = |message: &Message| message.tool_calls.iter().position(|call| call.id == *id);
            before.enumerate().find_map(|(back, message)| Some((back, call(message)?)))
        });
        let calls = message.tool_calls.iter().map(|call| (&*call.name, &call.arguments)).collect();
        Self { role: message.role, content: &message.content, calls, of, name: message.name.as_deref() }
    }
}

/// The digest of a value as JSON, which is not kept as text.
pub(in crate::machine) fn digest<T: Serialize + ?Sized>(content: &T) -> Key {
    digested(Sha256::new(), content)
}

/// A call whatever the tool's version: what was written was written.
pub(in crate::machine) fn any_version(name: &str, args: &Value) -> Key {
    tool_key(name, "", args)
}

pub(in crate::machine) fn tool_key(name: &str, version: &str, args: &Value) -> Key {
    digest(&(name, version, args))
}

fn digested<T: Serialize + ?Sized>(hash: Sha256, content: &T) -> Key {
    struct Digest(Sha256);
    impl std::io::Write for Digest {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut digest = Digest(hash);
    // Nothing that is digested can't be JSON.
    let _ = serde_json::to_writer(&mut digest, content);
    digest.0.finalize().into()
}
