//! Reading files that lie where anybody may have put something else: a named pipe would be waited for, for ever.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of a file of at most so many bytes; `None` if there is nothing. Nothing is waited for.
///
/// # Errors
/// Why it can't be read: it is no regular file, or too large, or the system refuses it.
pub fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let unread = |error: io::Error| format!("can't be read: {error}");
    // The opening of a pipe without a writer would wait for one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        // What a socket says.
        Err(rustix::io::Errno::NXIO) => return Err("this is no regular file".to_owned()),
        Err(error) => return Err(unread(error.into())),
    };
    let about = file.metadata().map_err(unread)?;
    if !about.is_file() {
        let what = if about.is_dir() { "this is a folder, no file" } else { "this is no regular file" };
        return Err(what.to_owned());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > most {
        return Err(format!("the file has more than {} MiB", most >> 20));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a pipe is refused at once, and named for what it is not.
    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(read(&at("none"), 9), Ok(None));
        std::fs::write(at("file"), "123456789").unwrap();
        assert_eq!(read(&at("file"), 9), Ok(Some(b"123456789".to_vec())));
        assert!(read(&at("file"), 8).unwrap_err().contains("more than"));
        assert!(read(dir.path(), 9).unwrap_err().contains("a folder"));
        for pipe in ["a.calls.jsonl", "library.json"] {
            let made = std::process::Command::new("mkfifo").arg(at(pipe)).status().unwrap();
            assert!(made.success());
            assert_eq!(read(&at(pipe), 9), Err("this is no regular file".to_owned()));
        }
        assert!(super::super::samples::read(&at("a.calls.jsonl"), |_| ()).is_err());
        assert!(super::super::manifest::Manifest::of(dir.path()).is_err());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(read(&at("socket"), 9), Err("this is no regular file".to_owned()));
    }
}
