//! What is left of a process that has ended.

use super::collect::in_word;
use super::{End, Made, Tail};
#[cfg(target_os = "linux")]
use std::io;

/// A process that has ended, with its whole process group.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout, or answered.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to stdout, where it answered elsewhere.
    pub printed: Tail,
    /// What it wrote to stderr, or the end of that.
    pub stderr: Vec<u8>,
    /// Bytes that it wrote to stderr before.
    pub stderr_lost: u64,
    /// What it made that Selvedge would have read as its own.
    pub made: Made,
}

impl Finished {
    /// The end of stderr as text, for messages. Where it is cut, it begins with a whole word: the second half of a key would not
    /// be seen as one (C-06).
    pub fn stderr_end(&self, bytes: usize) -> String {
        let start = self.stderr.len().saturating_sub(bytes);
        let within = start.checked_sub(1).and_then(|last| self.stderr.get(last)).is_some_and(in_word);
        let end = self.stderr.get(start..).unwrap_or_default();
        let half = if within { end.iter().take_while(|byte| in_word(byte)).count() } else { 0 };
        let end = end.get(half..).unwrap_or_default();
        // Not in the middle of a character, which has three more bytes at most.
        let cut = end.iter().take(3).take_while(|byte| start > 0 && **byte & 0xc0 == 0x80).count();
        let text = String::from_utf8_lossy(end.get(cut..).unwrap_or_default()).trim().to_owned();
        if half > 0 { format!("… {text}").trim().to_owned() } else { text }
    }

    /// What kept a sandbox from starting, in its own words: they are not the tool's.
    #[cfg(target_os = "linux")]
    pub(super) fn refusal(&self) -> io::Error {
        let said = match self.stderr_end(500) {
            said if said.is_empty() => format!("it has said nothing ({:?})", self.end),
            said => said,
        };
        io::Error::other(format!("the sandbox could not be started: {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-04: what is cut is cut between characters.
    #[test]
    fn the_end_of_stderr_begins_with_a_character() {
        let said = |stderr: &[u8], bytes| {
            let finished = Finished {
                end: End::Exited(1),
                stdout: Vec::new(),
                printed: Tail::default(),
                stderr: stderr.to_vec(),
                stderr_lost: 0,
                made: Made::default(),
            };
            finished.stderr_end(bytes)
        };
        for bytes in 0..=9 {
            assert!(!said("größe ⇒".as_bytes(), bytes).contains('\u{fffd}'), "{bytes}");
        }
        assert_eq!(said("größe ⇒".as_bytes(), 4), "⇒");
        assert_eq!(said(b"sk-0123456789 done", 9), "… done", "no half of a word");
        assert_eq!(said(b"sk-0123456789", 9), "…");
        assert_eq!(said(b"sk-0123456789 done", 4), "done");
        assert_eq!(said(b"\x80a", 9), "\u{fffd}a", "what is no text stays visible");
    }
}
