//! A key or token, and how it is kept out of what a run shows and keeps (C-06).
//!
//! - [`forms`]: the ways in which keys are written: as they are, in hex and base64, with escapes, over lines.
//! - [`hex`]: in hex with something between the bytes.
//! - [`plain`]: a text without its escapes, breaks of lines and margins.
//! - [`flow`]: the same in a text that comes in pieces.

mod flow;
mod forms;
mod hex;
mod plain;

pub use flow::Flow;

use forms::Forms;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What stands where a secret stood (C-06).
pub const REDACTED: &str = "[redacted]";

/// A key or token. It prints as [`REDACTED`] and knows how to remove itself from text (C-06).
#[derive(Clone)]
pub struct Secret {
    inner: Arc<Inner>,
}

struct Inner {
    text: String,
    /// Made when it is first looked for.
    forms: OnceLock<Forms>,
}

impl Secret {
    /// Wraps a secret; surrounding white space, as files have it, is dropped.
    pub fn new(value: &str) -> Self {
        Self { inner: Arc::new(Inner { text: value.trim().to_owned(), forms: OnceLock::new() }) }
    }

    /// The secret itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.inner.text
    }

    /// `text` without the secret, as it is, in hex or base64, or as JSON (`\/`, `\u002f`) and URLs (`%2F`) write its
    /// characters. Secrets of fewer than 8 bytes are left alone.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.inner.forms.get_or_init(|| Forms::of([self.expose()])).redact(text)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Many secrets, which are looked for together. Clones share what was made for that.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Arc<Forms>,
}

impl Secrets {
    /// These secrets.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        Self { forms: Arc::new(Forms::of(secrets.into_iter().map(Secret::expose))) }
    }

    /// Whether there is none that is ever redacted.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Where the first of them stands in `text`.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.forms.spans(text).into_iter().next()
    }

    /// `text` without any of them ([`Secret::redact`]).
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.forms.redact(text)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests;
