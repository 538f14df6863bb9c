//! Ids of runs: chosen by the user, or new.

use crate::error::Error;
use selvedge_dialects::diagnostic::{is_hidden, shown};
use selvedge_runtime::{Clock, SystemClock};
use std::hash::{BuildHasher, Hasher, RandomState};

/// An id that the user chose.
pub fn checked_id(id: &str) -> Result<String, Error> {
    const LONGEST: usize = 200;
    // What can't be seen can't be typed again; joiners are for pictures and scripts, not for ids.
    let hidden = |c: char| is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}');
    let plain = id.chars().all(|c| !c.is_whitespace() && !hidden(c));
    if id.is_empty() || id.len() > LONGEST || !plain || id.starts_with(['-', '@']) {
        let message = format!("a run can't have the id {}", shown(id));
        return Err(Error::usage("C-12", "bad-run-id", &message).help(&format!(
            "an id has 1 to {LONGEST} bytes of any characters but spaces, control characters and \
             invisible ones, and does not begin with `-` or `@`"
        )));
    }
    Ok(id.to_owned())
}

/// A new id: five digits that are random, so that a few characters of it are enough to name the run, and nine of time.
pub fn fresh_id() -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let random = hasher.finish() & ((1 << 25) - 1);
    const TIME: u32 = 9 * 5;
    let time = u128::from(SystemClock.now_ms().unsigned_abs()) & ((1 << TIME) - 1);
    let number = (u128::from(random) << TIME) | time;
    let digit = |at: u32| {
        let index = usize::try_from(number >> (5 * at) & 31).unwrap_or_default();
        char::from(DIGITS.get(index).copied().unwrap_or(b'0'))
    };
    (0..14).rev().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_a_few_characters_tell_them_apart() {
        let ids: Vec<String> = (0..50).map(|_| fresh_id()).collect();
        assert!(ids.iter().all(|id| id.len() == 14 && checked_id(id).is_ok()));
        let beginnings: std::collections::BTreeSet<_> = ids.iter().map(|id| &id[..5]).collect();
        assert!(beginnings.len() > 45, "{ids:?}");
    }

    #[test]
    fn a_chosen_id_is_one_word() {
        assert!(checked_id("my-run.1").is_ok());
        for wrong in
            ["", "a b", "-x", "@", "@x", "a\n", "a\u{200b}b", "a\u{202e}b", "a\u{200d}b", "\u{feff}a"]
        {
            assert!(checked_id(wrong).is_err(), "{wrong:?}");
        }
    }
}
