//! Output that is written as it is made: a long journal is never held as text.

use super::pager::Pager;
use crate::ui::Ui;
use selvedge_host::Error;
use selvedge_host::report::escaped;
use std::io::{BufWriter, ErrorKind, StdoutLock, Write};

/// Where it goes.
enum To {
    Stdout(StdoutLock<'static>),
    Pager(Pager),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Pager(pager) => pager.write(bytes),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Pager(pager) => pager.flush(),
        }
    }
}

/// Standard output, without secrets (C-06). Once its reader has gone, nothing more is written.
pub(super) struct Out<'a> {
    ui: &'a Ui,
    to: BufWriter<To>,
    open: bool,
}

impl<'a> Out<'a> {
    /// Takes standard output.
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self::to(ui, To::Stdout(std::io::stdout().lock()))
    }

    /// The same for people: on a terminal a pager shows it.
    pub(super) fn paged(ui: &'a Ui) -> Self {
        match Pager::start(ui) {
            Some(pager) => Self::to(ui, To::Pager(pager)),
            None => Self::new(ui),
        }
    }

    fn to(ui: &'a Ui, to: To) -> Self {
        Self { ui, to: BufWriter::with_capacity(1 << 16, to), open: true }
    }

    /// Writes a piece. Returns false when nobody reads any more: whoever closed the pipe has what it wanted.
    ///
    /// # Errors
    /// Exit 4 if what was written is not there, on a full disk for example.
    pub(super) fn write(&mut self, text: &str) -> Result<bool, Error> {
        let written = if self.open { self.to.write_all(self.ui.redacted(text).as_bytes()) } else { Ok(()) };
        self.settle(written)
    }

    /// Writes a value of JSON between other pieces: only texts in it are without secrets, and what steers a terminal is escaped.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub(super) fn json(&mut self, before: &str, json: &str, behind: &str) -> Result<bool, Error> {
        let json = self.ui.redacted_json(json);
        let json = escaped(&json);
        let parts = [before, &json, behind];
        let mut write = || parts.iter().try_for_each(|part| self.to.write_all(part.as_bytes()));
        let written = if self.open { write() } else { Ok(()) };
        self.settle(written)
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let flushed = if self.open { self.to.flush() } else { Ok(()) };
        let settled = self.settle(flushed).map(drop);
        // Nothing is left in it, or nobody reads it.
        if let (To::Pager(pager), _) = self.to.into_parts() {
            pager.end();
        }
        settled
    }

    fn settle(&mut self, result: std::io::Result<()>) -> Result<bool, Error> {
        match result {
            Ok(()) => Ok(self.open),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.open = false;
                Ok(false)
            }
            Err(error) => {
                self.open = false;
                Err(crate::failure::lost(&error))
            }
        }
    }
}
