//! What a call has made that is Selvedge's to make.

use std::io;
use std::path::{Path, PathBuf};

/// What a call has made that Selvedge would have read as its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// What has another name now.
    pub aside: Vec<PathBuf>,
    /// What could not be given another name, or not even be looked for, and why.
    pub left: Vec<(PathBuf, String)>,
}

impl Made {
    /// Whether there is nothing to tell of.
    pub fn is_empty(&self) -> bool {
        self.aside.is_empty() && self.left.is_empty()
    }

    /// Notes what was to be set aside.
    pub(crate) fn add(&mut self, place: &Path, done: Result<(), impl Into<io::Error>>) {
        match done {
            Ok(()) => self.aside.push(place.to_owned()),
            Err(why) => self.fail(place, why),
        }
    }

    /// Notes what stays as it is because the system refuses.
    pub(crate) fn fail(&mut self, place: &Path, why: impl Into<io::Error>) {
        self.leave(place, crate::grant::reason(&why.into()));
    }

    /// Notes what stays as it is.
    pub(crate) fn leave(&mut self, place: &Path, why: impl Into<String>) {
        self.left.push((place.to_owned(), why.into()));
    }
}
