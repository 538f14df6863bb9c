//! What was found in a data set, kept so that what has been checked is not checked again (V-03): by the hash of all that was read.

use crate::dataset::Part;
use crate::key::Key;
use crate::projections::replace;
use selvedge_dialects::Diagnostic;
use selvedge_host::Error;
use selvedge_store::BlobHash;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

const CHECKED: &str = "checked";
/// What is hashed at a time.
const CHUNK: usize = 1 << 20;

/// What a check came to.
#[derive(Debug, Default)]
pub struct Checked {
    /// Of each line what its task is called by, or nothing.
    lines: Vec<Line>,
    /// Bytes of all whole lines, and how many these are.
    bytes: u64,
    whole: usize,
    /// How many of them were known before.
    before: usize,
    /// The part that is meant.
    part: Part,
    /// Tasks of that part.
    pub tasks: u64,
    /// What is wrong with the lines that are left out.
    pub left_out: Vec<Diagnostic>,
    /// How many lines these are.
    pub bad: u64,
}

/// A line; zeros for one that is no task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    key: u64,
    /// Of the task's id.
    id: u64,
}

/// What stands before the lines.
#[derive(Serialize, Deserialize)]
struct Head {
    bytes: u64,
    hash: String,
    lines: usize,
}

impl Checked {
    /// What is known of a data set by the folder of its projections: as much of it as is still what was checked.
    pub(crate) fn known(file: &Path, dir: Option<&Path>, part: Part) -> Self {
        let mut checked = dir.and_then(|dir| read(file, &dir.join(CHECKED))).unwrap_or_default();
        checked.part = part;
        let tasks =
            checked.lines.iter().zip(1..).filter(|(line, number)| line.key != 0 && part.has(*number)).count();
        checked.tasks = tasks as u64;
        checked
    }

    /// Where what is not known begins: bytes, and lines before it.
    pub(crate) fn end(&self) -> (u64, u64) {
        (self.bytes, self.lines.len() as u64)
    }

    /// The lines of the ids that are known.
    pub(crate) fn ids(&self) -> HashMap<u64, u32> {
        let lines = self.lines.iter().zip(1..).filter(|(line, _)| line.key != 0);
        lines.map(|(line, number)| (line.id, number)).collect()
    }

    /// Takes in the next line, of so many bytes.
    pub(crate) fn push(&mut self, task: Option<(Key, u64)>, bytes: u64, whole: bool) {
        let number = self.lines.len() as u64 + 1;
        self.lines.push(task.map(|(key, id)| Line { key: key.number(), id }).unwrap_or_default());
        self.tasks += u64::from(task.is_some() && self.part.has(number));
        if whole {
            self.bytes += bytes;
            self.whole = self.lines.len();
        }
    }

    /// The tasks of the part that is meant.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let lines =
            self.lines.iter().zip(1..).filter(|(line, number)| line.key != 0 && self.part.has(*number));
        lines.map(|(line, _)| Key::from_number(line.key))
    }

    /// The task of a line of that part.
    pub(crate) fn key(&self, number: u64) -> Option<Key> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        let line = self.lines.get(at).filter(|line| line.key != 0 && self.part.has(number))?;
        Some(Key::from_number(line.key))
    }

    /// Keeps what was found, unless something was wrong or nothing is new: then it is looked for again.
    ///
    /// # Errors
    /// It can't be written.
    pub fn keep(&self, file: &Path, dir: &Path) -> Result<(), Error> {
        if self.bad > 0 || self.whole == self.before {
            return Ok(());
        }
        let Some(hash) = hash(file, self.bytes) else { return Ok(()) };
        let head = Head { bytes: self.bytes, hash, lines: self.whole };
        let mut bytes = serde_json::to_vec(&head).map_err(|error| Error::internal(&error.to_string()))?;
        bytes.push(b'\n');
        for line in self.lines.iter().take(self.whole) {
            bytes.extend(line.key.to_le_bytes());
            bytes.extend(line.id.to_le_bytes());
        }
        replace(dir, CHECKED, &bytes)
    }
}

/// What was kept, if the data set still begins so.
fn read(file: &Path, kept: &Path) -> Option<Checked> {
    let mut reader = BufReader::new(File::open(kept).ok()?);
    let mut head = Vec::new();
    reader.read_until(b'\n', &mut head).ok()?;
    let head: Head = serde_json::from_slice(&head).ok()?;
    if hash(file, head.bytes)? != head.hash {
        return None;
    }
    let mut lines = Vec::with_capacity(head.lines.min(1 << 24));
    let mut bytes = [0; 16];
    for _ in 0..head.lines {
        reader.read_exact(&mut bytes).ok()?;
        let (key, id) = bytes.split_at(8);
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        lines.push(Line { key: number(key)?, id: number(id)? });
    }
    let whole = lines.len();
    Some(Checked { lines, bytes: head.bytes, whole, before: whole, ..Checked::default() })
}

/// The hash of the first bytes of a file; `None` if it has fewer.
fn hash(file: &Path, bytes: u64) -> Option<String> {
    let mut reader = File::open(file).ok()?.take(bytes);
    let (mut hash, mut left) = (BlobHash::of(&[]).to_string(), bytes);
    let mut chunk = Vec::with_capacity(CHUNK + 64);
    while left > 0 {
        chunk.clear();
        chunk.extend(hash.as_bytes());
        let read = (&mut reader).take(CHUNK as u64).read_to_end(&mut chunk).ok()? as u64;
        if read == 0 {
            return None;
        }
        left -= read;
        hash = BlobHash::of(&chunk).to_string();
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::DataSet;
    use std::fmt::Write;

    fn lines(from: usize, to: usize) -> String {
        (from..to).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "{{\"task_id\": \"t{n}\", \"question\": \"What is {n}?\"}}");
            text
        })
    }

    /// V-03: what was checked is not checked again, as long as it is what it was.
    #[test]
    fn v03_only_what_is_new_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let (file, dir) = (folder.path().join("tasks.jsonl"), folder.path());
        let check = |part: Part| DataSet::open(&file, &file).unwrap().check(part, Some(dir));
        let all = Part::default();
        std::fs::write(&file, lines(0, 1000)).unwrap();
        let first = check(all).unwrap();
        assert_eq!((first.tasks, first.before), (1000, 0));
        first.keep(&file, dir).unwrap();
        // More lines; the last of them is not whole yet.
        let more = lines(0, 1500);
        std::fs::write(&file, more.trim_end()).unwrap();
        let second = check(Part { start: Some(990), limit: Some(20), skip_bad: false }).unwrap();
        assert_eq!((second.before, second.tasks, second.keys().count()), (1000, 20, 20));
        assert!(second.keys().take(11).eq(first.keys().skip(989)));
        second.keep(&file, dir).unwrap();
        assert_eq!(check(all).unwrap().before, 1499);
        // An id that is there twice is found, wherever the first one was checked.
        std::fs::write(&file, format!("{more}{}", lines(3, 4))).unwrap();
        let error = check(all).unwrap_err();
        assert!(error.is("doubled-task") && error.diagnostics[0].line == Some(1501), "{error:?}");
        // Who edits an early line has all of it checked.
        std::fs::write(&file, more.replace("What is 7?", "What was 7?")).unwrap();
        let edited = check(all).unwrap();
        assert_eq!((edited.before, edited.tasks), (0, 1500));
        assert_eq!(edited.keys().zip(first.keys()).filter(|(a, b)| a != b).count(), 1);
    }
}
