//! Names (D-09): Unicode identifiers, equal if they are equal in NFC.

use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::{Map, Value};
use std::borrow::Cow;
use unicode_ident::{is_xid_continue, is_xid_start};

/// What may be a name, for messages.
pub const NAMES: &str =
    "letters (of any script), digits, `_` and `-`, beginning with a letter or `_`; or the digits 0 to 9 only";

/// Whether `text` is a name of the grammar (D-09), so that it can be written as a root or after a dot.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    is_digits(text) || (chars.next().is_some_and(is_name_start) && chars.all(is_name_char))
}

/// The form in which names are compared: NFC.
pub fn normalized(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    ComposingNormalizerBorrowed::new_nfc().normalize(name)
}

/// The member of an object by its name: exactly, else the first that is the same name.
pub(crate) fn member<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    if name.is_ascii() {
        return None;
    }
    let wanted = normalized(name);
    object.iter().find(|(key, _)| normalized(key) == wanted).map(|(_, value)| value)
}

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

pub(crate) fn is_name_start(c: char) -> bool {
    c == '_' || is_xid_start(c)
}

pub(crate) fn is_name_char(c: char) -> bool {
    c == '-' || is_xid_continue(c)
}
