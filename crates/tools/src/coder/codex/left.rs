//! What a coder has left in its folder: one file counts, and it is what it is called.

use crate::coder::of_size;
use crate::python::MAX_FILE;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The text of the tool's file.
///
/// # Errors
/// There is none, or it is no file that a tool may be, in words for the coder.
pub(super) async fn file(folder: &Path, name: &str) -> Result<String, String> {
    let (path, name) = (folder.join(format!("{name}.py")), name.to_owned());
    let reading = tokio::task::spawn_blocking(move || read(&path, &name));
    reading.await.unwrap_or_else(|_| Err("the process ends".to_owned()))
}

fn read(path: &Path, name: &str) -> Result<String, String> {
    // Neither a link is followed nor a pipe waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let unread = |why: &dyn std::fmt::Display| format!("the file `{name}.py` can't be read: {why}");
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => {
            return Err(format!("there is no file `{name}.py` in the folder: write the tool into it"));
        }
        Err(rustix::io::Errno::LOOP) => return Err(format!("`{name}.py` is a link: write a file")),
        Err(error) => return Err(unread(&error)),
    };
    let about = file.metadata().map_err(|error| unread(&error))?;
    if !about.is_file() || about.nlink() != 1 {
        return Err(format!("`{name}.py` is no file of its own: write a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // It may have been cut in the middle of a character.
        Err(_) if about.len() > MAX_FILE => return Err(too_large(name, about.len())),
        Err(_) => return Err(format!("the file `{name}.py` is no UTF-8 text: write it as UTF-8")),
    };
    if text.len() as u64 > MAX_FILE {
        return Err(too_large(name, about.len()));
    }
    of_size(&text)?;
    Ok(text)
}

fn too_large(name: &str, bytes: u64) -> String {
    format!(
        "the file `{name}.py` has {bytes} bytes, and a tool may have {MAX_FILE}: write code, and let the input bring the data"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a28_what_is_left_has_to_be_one_plain_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("good.py"), "x = 'é'\n").unwrap();
        std::fs::write(at("large.py"), "é".repeat(5 << 20)).unwrap();
        std::fs::write(at("odd.py"), "x".to_owned() + &"é".repeat(5 << 20)).unwrap();
        std::fs::write(at("empty.py"), " \n").unwrap();
        std::fs::write(at("bytes.py"), b"\xff").unwrap();
        std::fs::create_dir(at("folder.py")).unwrap();
        std::os::unix::fs::symlink(at("good.py"), at("link.py")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero.py")).unwrap();
        std::fs::write(at("one.py"), "x = 1").unwrap();
        std::fs::hard_link(at("one.py"), at("two.py")).unwrap();
        rustix::fs::mkfifoat(CWD, at("pipe.py"), Mode::RUSR).unwrap();
        let of = |name: &str| read(&at(&format!("{name}.py")), name);
        assert_eq!(of("good").as_deref(), Ok("x = 'é'\n"));
        for (name, why) in [
            ("none", "there is no file `none.py`"),
            ("large", "has 10485760 bytes"),
            ("odd", "has 10485761 bytes"),
            ("empty", "is empty"),
            ("bytes", "no UTF-8"),
            ("folder", "no file of its own"),
            ("link", "is a link"),
            ("zero", "is a link"),
            ("two", "no file of its own"),
            ("pipe", "no file of its own"),
        ] {
            let error = of(name).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
