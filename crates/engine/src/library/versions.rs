//! Versions by hash, in shares: whoever decides on a change works on a copy of the library, which then costs what is changed and not
//! what is there.

use super::Version;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a hash by which versions are shared out: two hex digits, so 256 shares.
const DIGITS: usize = 2;

/// Versions of hashes that begin alike.
type Share = BTreeMap<Arc<str>, Arc<Version>>;

/// All versions, in the order of their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Versions(BTreeMap<[u8; DIGITS], Arc<Share>>);

/// The beginning of a hash; of a shorter text, all of it.
fn key(hash: &str) -> [u8; DIGITS] {
    let mut key = [0; DIGITS];
    key.iter_mut().zip(hash.bytes()).for_each(|(place, byte)| *place = byte);
    key
}

impl Versions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, hash: &str) -> Option<&Arc<Version>> {
        self.0.get(&key(hash))?.get(hash)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Version> {
        self.0.values().flat_map(|share| share.values()).map(|version| &**version)
    }

    /// A version to be changed, if it is there.
    pub(super) fn get_mut(&mut self, hash: &str) -> Option<&mut Version> {
        let share = self.0.get_mut(&key(hash)).filter(|share| share.contains_key(hash))?;
        Arc::make_mut(share).get_mut(hash).map(Arc::make_mut)
    }

    /// The same; a fresh one if it is not there.
    pub(super) fn entry(&mut self, hash: &Arc<str>, fresh: impl FnOnce() -> Version) -> &mut Version {
        let share = Arc::make_mut(self.0.entry(key(hash)).or_default());
        Arc::make_mut(share.entry(Arc::clone(hash)).or_insert_with(|| Arc::new(fresh())))
    }
}
