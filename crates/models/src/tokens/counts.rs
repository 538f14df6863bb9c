//! Counts of texts that are counted again and again: a conversation is looked at after each of its rounds.

use super::Encoding;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use twox_hash::XxHash3_64;

/// Texts that are remembered; with more, all are forgotten.
const MOST: usize = 100_000;

/// A text by its encoding, its length and a hash.
type Key = (Encoding, usize, u64);

/// What texts have come to, by what they say.
#[derive(Debug, Default)]
pub struct Counts(Mutex<HashMap<Key, u64>>);

impl Counts {
    /// How many tokens a text has: counted once, and then remembered.
    pub fn count(&self, encoding: Encoding, text: &str) -> u64 {
        let key = (encoding, text.len(), XxHash3_64::oneshot(text.as_bytes()));
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return *known;
        }
        let count = encoding.count(text);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, count);
        count
    }
}
