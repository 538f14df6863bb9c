//! Reading an archive that anybody may have made: nothing in it is believed before it has proved itself, and what it says about its
//! own size reserves nothing.

use std::io::{BufRead, BufReader, Read};

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tar::{Entries, EntryType};

use super::write::hex;
use super::{
    ArchiveError, ArchivedRun, BLOCK, FORMAT, MANIFEST, MOST_BLOBS, MOST_BYTES, MOST_LISTED, MOST_NESTED,
    MOST_RUNS, Manifest, SUMS, journal_name, nesting,
};
use crate::{BlobHash, Entry, ForkPoint, NewRun, Proof, RunStatus, Store};

/// Events are handed to the store in pieces of so many bytes.
const PIECE_BYTES: usize = 1 << 20;
/// Zeros that may follow the last file: `tar` fills up a record, which is 10 KiB unless something else is said.
const MOST_PADDING: u64 = 1 << 20;

/// Reads an archive into a store that has nothing yet, and which is of no use where that fails. `options` gives what each run is
/// recorded to have been started with.
///
/// # Errors
/// It is no archive, of a newer format, damaged, or more than an archive may hold; or the store can't be written.
pub fn read<E: From<ArchiveError>>(
    from: impl Read,
    into: &Store,
    options: impl Fn(&ArchivedRun) -> Result<String, E>,
) -> Result<Manifest, E> {
    let mut archive = tar::Archive::new(CountedReader { from: foreign(from)?, bytes: 0 });
    let entries = archive.entries().map_err(|error| ArchiveError::from_tar(&error))?.raw(true);
    let mut files = Files { entries, read: 0, end: 0 };
    let (manifest, hash) = manifest(&mut files)?;
    let options = manifest.runs.iter().map(options).collect::<Result<Vec<String>, E>>()?;
    let mut sums = Sums::read(&mut files)?;
    sums.expect(MANIFEST, &hash)?;
    while let Some(blob) = sums.next_blob()? {
        let (content, hash) = files.whole(&format!("blobs/{blob}"), MOST_BYTES)?;
        if hash != blob.to_string() {
            return Err(damaged(format!("the content {blob} is not what was written")).into());
        }
        if std::str::from_utf8(&content).is_ok_and(|text| nesting(text) > MOST_NESTED) {
            return Err(too_deep(&format!("the content {blob}")).into());
        }
        into.put_blob(content).1.wait().map_err(ArchiveError::from)?;
    }
    for (at, (run, options)) in manifest.runs.iter().zip(options).enumerate() {
        let name = journal_name(at);
        let hash = journal(files.next(&name)?, &name, into, run, options)?;
        sums.expect(&name, &hash)?;
    }
    sums.end()?;
    let end = files.end()?;
    expect_ending(archive.into_inner(), end)?;
    Ok(manifest)
}

/// A reader that counts the bytes that were read.
struct CountedReader<R> {
    from: R,
    bytes: u64,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(out)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Checks that the last file, which ends at `end`, is followed by the two blocks of zeros that end a tar archive, and by nothing but
/// further zeros, as `tar` writes them.
fn expect_ending(mut archive: CountedReader<impl Read>, end: u64) -> Result<(), ArchiveError> {
    let mut rest = Vec::new();
    let read = archive.by_ref().take(MOST_PADDING + 1).read_to_end(&mut rest);
    read.map_err(|error| ArchiveError::Io(format!("it can't be read: {error}")))?;
    if rest.iter().any(|byte| *byte != 0) || rest.len() as u64 > MOST_PADDING {
        return Err(damaged("something follows its end".to_owned()));
    }
    if archive.bytes < end.saturating_add(2 * BLOCK as u64) {
        return Err(damaged("it is cut off: the blocks that end it are missing".to_owned()));
    }
    Ok(())
}

/// Looks at the first block: what is no tar archive at all is told for what it is.
fn foreign<R: Read>(mut from: R) -> Result<impl Read, ArchiveError> {
    let mut first = Vec::new();
    let read = from.by_ref().take(BLOCK as u64).read_to_end(&mut first);
    read.map_err(|error| ArchiveError::Io(format!("it can't be read: {error}")))?;
    let packed = [
        (&b"\x1f\x8b"[..], "gzip -d"),
        (b"\x28\xb5\x2f\xfd", "zstd -d"),
        (b"\xfd7zXZ", "xz -d"),
        (b"BZh", "bzip2 -d"),
        (b"PK\x03\x04", "unzip"),
    ];
    if let Some((_, with)) = packed.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(ArchiveError::Foreign(format!("it is compressed; unpack it with `{with}` first")));
    }
    let named = first.starts_with(MANIFEST.as_bytes()) && first.get(MANIFEST.len()) == Some(&0);
    if !named {
        let why = match first.len() {
            0 => "it is empty".to_owned(),
            _ => format!("it does not begin with `{MANIFEST}`"),
        };
        return Err(ArchiveError::Foreign(why));
    }
    Ok(std::io::Cursor::new(first).chain(from))
}

/// What the archive says that it holds. The format is looked at before anything else: a newer one may be otherwise in all of it.
fn manifest<R: Read>(files: &mut Files<'_, R>) -> Result<(Manifest, String), ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Format {
        selvedge_archive: u64,
    }
    let (text, hash) = files.whole(MANIFEST, MOST_LISTED)?;
    let wrong = |error: serde_json::Error| damaged(format!("`{MANIFEST}` can't be read: {error}"));
    let text = String::from_utf8(text).map_err(|_| damaged(format!("`{MANIFEST}` is no text")))?;
    if nesting(&text) > MOST_NESTED {
        return Err(too_deep(&format!("`{MANIFEST}`")));
    }
    let Format { selvedge_archive: found } = parsed(&text).map_err(wrong)?;
    if found > u64::from(FORMAT) {
        return Err(ArchiveError::Newer { found });
    }
    if found == 0 {
        return Err(damaged(format!("`{MANIFEST}` has format 0, and there never was one")));
    }
    let manifest: Manifest = parsed(&text).map_err(wrong)?;
    if manifest.runs.len() > MOST_RUNS {
        let (count, most) = (manifest.runs.len(), MOST_RUNS);
        return Err(ArchiveError::Limit(format!("the archive has {count} runs, and may have {most}")));
    }
    if manifest.runs.last().is_none_or(|run| run.id != manifest.run) {
        return Err(damaged(format!("`{MANIFEST}` does not end with the run that it names")));
    }
    // A fork continues the run before it: others have no place here.
    let source = |pair: &[ArchivedRun]| match pair {
        [source, run] => {
            run.fork.as_ref().is_some_and(|fork| fork.run == source.id && fork.events <= source.events)
        }
        _ => false,
    };
    let lone = manifest.runs.first().is_some_and(|first| first.fork.is_none());
    if !lone || !manifest.runs.windows(2).all(source) {
        return Err(damaged(format!("`{MANIFEST}` has a run that is no fork of the one before it")));
    }
    Ok((manifest, hash))
}

/// JSON that was found to be nested no deeper than can be read.
fn parsed<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The files of an archive, one after the other.
struct Files<'a, R: Read> {
    entries: Entries<'a, R>,
    read: usize,
    /// The offset at which the last file that was begun ends.
    end: u64,
}

impl<'a, R: Read> Files<'a, R> {
    /// The next file, which has to be this one, and a plain file.
    fn next(&mut self, name: &str) -> Result<Content<tar::Entry<'a, R>>, ArchiveError> {
        let place = self.read + 1;
        let Some(entry) = self.entries.next() else {
            return Err(damaged(format!("it is cut off: `{name}` is missing, and all behind it")));
        };
        let entry = entry.map_err(|error| ArchiveError::from_tar(&error))?;
        self.read = place;
        let found = entry.path_bytes();
        if *found != *name.as_bytes() || entry.header().entry_type() != EntryType::Regular {
            let found: String = String::from_utf8_lossy(&found).chars().take(100).collect();
            let what = match entry.header().entry_type() {
                EntryType::Regular => format!("`{found}`"),
                _ => format!("`{found}`, which is no plain file,"),
            };
            return Err(damaged(format!("{what} stands where `{name}` should be")));
        }
        let bytes = entry.size();
        let end = entry.raw_file_position().saturating_add(bytes);
        self.end = end.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX);
        Ok(Content { entry, name: name.to_owned(), bytes, read: 0, hash: Sha256::new() })
    }

    /// The same, read into memory, with its hash.
    fn whole(&mut self, name: &str, most: u64) -> Result<(Vec<u8>, String), ArchiveError> {
        let mut file = self.next(name)?;
        if file.bytes > most {
            let (bytes, most) = (file.bytes >> 20, most >> 20);
            return Err(ArchiveError::Limit(format!("`{name}` has {bytes} MiB, and may have {most}")));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(|error| ArchiveError::from_tar(&error))?;
        Ok((content, file.hash()?))
    }

    /// Checks that no other file is in it. Returns the offset at which the last one ends.
    fn end(&mut self) -> Result<u64, ArchiveError> {
        match self.entries.next() {
            None => Ok(self.end),
            Some(Err(error)) => Err(ArchiveError::from_tar(&error)),
            Some(Ok(entry)) => {
                let found: String = String::from_utf8_lossy(&entry.path_bytes()).chars().take(100).collect();
                Err(damaged(format!("it has the file `{found}` behind its last one")))
            }
        }
    }
}

/// A file as it is read.
struct Content<R> {
    entry: R,
    name: String,
    bytes: u64,
    read: u64,
    hash: Sha256,
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.entry.read(out)?;
        self.read += read as u64;
        self.hash.update(out.get(..read).unwrap_or_default());
        Ok(read)
    }
}

impl<R> Content<R> {
    /// The hash of all of it.
    fn hash(self) -> Result<String, ArchiveError> {
        match self.read == self.bytes {
            true => Ok(hex(self.hash)),
            false => Err(damaged(format!("it is cut off in `{}`", self.name))),
        }
    }
}

/// The list of hashes, as far as it was not compared yet.
struct Sums {
    /// From the last one on.
    left: Vec<(String, String)>,
    blobs: usize,
    /// The last content.
    last: Option<BlobHash>,
}

impl Sums {
    fn read<R: Read>(files: &mut Files<'_, R>) -> Result<Self, ArchiveError> {
        let (text, _) = files.whole(SUMS, MOST_LISTED)?;
        let wrong = || damaged(format!("`{SUMS}` has a line that is none"));
        let text = String::from_utf8(text).map_err(|_| wrong())?;
        let line = |line: &str| {
            let (hash, name) = line.split_once("  ").ok_or_else(wrong)?;
            Ok((hash.to_owned(), name.to_owned()))
        };
        let mut left = text.lines().map(line).collect::<Result<Vec<_>, ArchiveError>>()?;
        left.reverse();
        Ok(Self { left, blobs: 0, last: None })
    }

    /// The next hash, which has to be this one, of this file.
    fn expect(&mut self, name: &str, hash: &str) -> Result<(), ArchiveError> {
        match self.left.pop() {
            Some((listed, file)) if file == name && listed == hash => Ok(()),
            Some((_, file)) if file == name => Err(damaged(format!("`{name}` is not what was written"))),
            _ => Err(damaged(format!("`{SUMS}` does not list `{name}` in its place"))),
        }
    }

    /// The next content, if one comes.
    fn next_blob(&mut self) -> Result<Option<BlobHash>, ArchiveError> {
        let Some((hash, name)) = self.left.last() else { return Ok(None) };
        let Some(blob) = name.strip_prefix("blobs/") else { return Ok(None) };
        let known = blob.parse::<BlobHash>().ok().filter(|_| blob == hash);
        let blob = known.ok_or_else(|| damaged(format!("`{SUMS}` lists a content under another hash")))?;
        if self.last.replace(blob).is_some_and(|last| last >= blob) {
            return Err(damaged(format!("`{SUMS}` lists the content {blob} in a wrong place")));
        }
        self.blobs += 1;
        if self.blobs > MOST_BLOBS {
            return Err(ArchiveError::Limit(format!("the archive has more than {MOST_BLOBS} contents")));
        }
        self.left.pop();
        Ok(Some(blob))
    }

    fn end(&self) -> Result<(), ArchiveError> {
        match self.left.last() {
            None => Ok(()),
            Some((_, name)) => {
                Err(damaged(format!("`{SUMS}` lists `{name}`, which is no file of an archive")))
            }
        }
    }
}

/// Reads a journal into the store, and returns its file's hash.
fn journal(
    file: Content<impl Read>,
    name: &str,
    into: &Store,
    run: &ArchivedRun,
    options: String,
) -> Result<String, ArchiveError> {
    let graph = run.graph.as_deref().map(str::parse::<BlobHash>).transpose();
    let row = NewRun {
        id: run.id.clone(),
        name: run.name.clone(),
        dialect: run.dialect.clone(),
        status: RunStatus::Running,
        started_ms: run.started_ms,
        graph: graph.map_err(|_| damaged(format!("run {} names no graph by its hash", run.id)))?,
        scripted: run.scripted,
        options,
        fork: run.fork.as_ref().map(|fork| ForkPoint { run: fork.run.clone(), events: fork.events }),
        // Who began it is not in the archive: here it is a run like others.
        parent: None,
    };
    into.create_run(row, Vec::new()).wait()?;
    let mut lines = BufReader::new(file);
    let (mut line, mut proof) = (Vec::new(), Proof::of(&run.id));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for n in run.first().. {
        line.clear();
        let most = MOST_BYTES + 1024;
        lines
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut line)
            .map_err(|error| ArchiveError::from_tar(&error))?;
        let last = line.is_empty();
        if last && n.checked_sub(1) != Some(run.events) || !last && n > run.events {
            return Err(damaged(format!(
                "`{name}` has not the {} events that the manifest says",
                run.events
            )));
        }
        if last || bytes + line.len() > PIECE_BYTES {
            into.append(&run.id, std::mem::take(&mut entries)).wait()?;
            bytes = 0;
        }
        if last {
            return lines.into_inner().hash();
        }
        bytes += line.len();
        entries.push(entry(&line, n, run, &mut proof)?);
    }
    Err(damaged(format!("`{name}` has no end")))
}

/// The event of a line, if it is the one that was written.
fn entry(line: &[u8], n: u64, run: &ArchivedRun, proof: &mut Proof) -> Result<Entry, ArchiveError> {
    let other = || damaged(format!("event {n} of run {} is not what was written", run.id));
    let parts = |line| {
        let line = std::str::from_utf8(line).ok()?.strip_suffix("}\n")?;
        let (number, rest) = line.strip_prefix("{\"n\":")?.split_once(",\"at\":")?;
        let (at, rest) = rest.split_once(",\"hash\":\"")?;
        let (hash, json) = rest.split_once("\",\"event\":")?;
        Some((number.parse::<u64>().ok()?, at.parse::<i64>().ok()?, hash, json))
    };
    let (number, at_ms, hash, json) = parts(line).ok_or_else(other)?;
    let entry = Entry { n, at_ms, json: json.to_owned() };
    if number != n || proof.push(&entry) != hash {
        return Err(other());
    }
    if nesting(json) > MOST_NESTED {
        return Err(too_deep(&format!("event {n} of run {}", run.id)));
    }
    Ok(entry)
}

fn damaged(why: String) -> ArchiveError {
    ArchiveError::Damaged(why)
}

fn too_deep(what: &str) -> ArchiveError {
    ArchiveError::Limit(format!("{what} has more than {MOST_NESTED} objects and arrays inside each other"))
}

impl ArchiveError {
    /// What the reader of tar archives says; also of a file that the system can't read.
    fn from_tar(error: &std::io::Error) -> Self {
        // What it says of a header that is not whole, and of a file's end that is missing.
        const CUT: [&str; 2] = ["failed to read entire block", "unexpected EOF during skip"];
        let cut =
            error.kind() == std::io::ErrorKind::UnexpectedEof || CUT.contains(&error.to_string().as_str());
        if cut { damaged("it is cut off".to_owned()) } else { damaged(error.to_string()) }
    }
}
