//! Copies of a folder, in which tools may write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most that is copied for a tool that writes.
const COPY_BYTES: u64 = 32 << 20;
/// Files and folders that are copied at most.
const COPY_FILES: usize = 5_000;

/// What is not copied: repositories are large, and no tool sees a state folder.
const LEFT_OUT: [&str; 2] = [".git", ".selvedge"];

/// Makes a folder the same as another one; false if that is too large. Links are left out: what they lead to may be
/// anywhere. What is in both stays in its place, as sandboxes that are warm already see it there.
pub(super) fn copied(from: &Path, to: &Path, hidden: &[PathBuf]) -> std::io::Result<bool> {
    std::fs::create_dir_all(to)?;
    let (mut bytes, mut files) = (0, 0);
    let mut todo = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = todo.pop() {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(&from)? {
            let entry = entry?;
            let (path, about) = (entry.path(), entry.metadata()?);
            let plain = about.is_dir() || about.is_file();
            if hidden.contains(&path) || LEFT_OUT.iter().any(|name| entry.file_name() == *name) || !plain {
                continue;
            }
            files += 1;
            bytes += if about.is_file() { about.len() } else { 0 };
            if files > COPY_FILES || bytes > COPY_BYTES {
                return Ok(false);
            }
            let target = to.join(entry.file_name());
            if std::fs::symlink_metadata(&target).is_ok_and(|there| there.file_type() != about.file_type()) {
                remove(&target)?;
            }
            if about.is_file() && std::fs::copy(&path, &target).is_err() {
                // A call may have left it so that it can't be written.
                remove(&target)?;
                std::fs::copy(&path, &target)?;
            }
            if about.is_dir() {
                std::fs::create_dir_all(&target)?;
                todo.push((path, target));
            }
            names.insert(entry.file_name());
        }
        for entry in std::fs::read_dir(&to)? {
            let entry = entry?;
            if !names.contains(&entry.file_name()) {
                remove(&entry.path())?;
            }
        }
    }
    Ok(true)
}

fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => std::fs::remove_dir_all(path),
        _ => std::fs::remove_file(path),
    };
    removed.or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_but_links_and_what_is_hidden() {
        let from = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(from.path().join("a/b")).unwrap();
        std::fs::write(from.path().join("a/b/c.txt"), "text").unwrap();
        std::fs::create_dir(from.path().join("state")).unwrap();
        std::os::unix::fs::symlink("/etc", from.path().join("etc")).unwrap();
        let to = tempfile::tempdir().unwrap();
        let copy = to.path().join("copy");
        assert!(copied(from.path(), &copy, &[from.path().join("state")]).unwrap());
        assert_eq!(std::fs::read_to_string(copy.join("a/b/c.txt")).unwrap(), "text");
        assert!(!copy.join("etc").exists() && !copy.join("state").exists());
        for (file, text) in [("more", "x"), ("a/b/c.txt", "other"), ("a/b/d.txt", "x")] {
            std::fs::write(copy.join(file), text).unwrap();
        }
        assert!(copied(from.path(), &copy, &[]).unwrap());
        assert!(
            !copy.join("more").exists() && !copy.join("a/b/d.txt").exists() && copy.join("state").exists()
        );
        assert_eq!(std::fs::read_to_string(copy.join("a/b/c.txt")).unwrap(), "text", "it is as it was");
    }
}
