//! The ladder of recovery (D-22) for people: its words, and as JSON.

mod words;

pub(crate) use words::{Words, again, because, chosen, digest, done};
