//! A repository that a tool has made. A clone is what its user may have asked for, and git runs on its own what a
//! repository's settings and hooks name: it stays if they name nothing.

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, statat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most that is read of a repository's settings: fresh ones are a few hundred bytes.
const LARGEST: u64 = 64 << 10;
/// What git writes into the settings of a new repository or clone. None of these names a program, a file of further
/// settings, or an address that is fetched from without being asked.
const SETTINGS: [(&str, &[&str]); 7] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("init", &["defaultbranch"]),
    ("user", &["name", "email"]),
    ("remote", &["url", "fetch", "tagopt"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("submodule", &["active"]),
];
/// Repositories in it, and what leads to others: not looked into.
const FURTHER: [&str; 3] = ["modules", "worktrees", "commondir"];

/// What git takes a folder for a repository by, whatever the folder is called: this one, and either the second or the others.
const HEAD: &str = "HEAD";
const SHARED: &str = "commondir";
const STORES: [&str; 2] = ["objects", "refs"];
/// Files of a repository that say what git runs, or where the rest of it lies.
const SAYING: [&str; 3] = ["config", "config.worktree", SHARED];
/// Programs that git runs.
const HOOKS: &str = "hooks";

/// The entry without which a folder is no repository, where it is one by what lies in it, git would run something in it, and it
/// was the call that has made it so: `made` tells what of it the call has made, or, if the second is true, changed.
pub(super) fn sprung(
    folder: impl AsFd,
    at: &Path,
    made: impl Fn(BorrowedFd<'_>, &Path, bool) -> bool,
) -> Option<&'static Path> {
    let folder = folder.as_fd();
    if !is_layout(folder) || runs_nothing(folder, Path::new(".")) {
        return None;
    }
    // In a `.git`, people change it with each branch that they go to; one that a tool has made is set aside by its name.
    let head = at.file_name().is_none_or(|name| name != ".git") && made(folder, Path::new(HEAD), true);
    let hook = || {
        let hooks = opened(folder, Path::new(HOOKS), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Dir::read_from(&hooks).ok()?;
        entries.find(|entry| {
            let name = entry.as_ref().map(|entry| entry.file_name().to_bytes());
            name.is_ok_and(|name| {
                name != b".." && made(hooks.as_fd(), Path::new(OsStr::from_bytes(name)), true)
            })
        })
    };
    let sprung = head
        || SAYING.iter().any(|name| made(folder, Path::new(name), true))
        || STORES.iter().chain(&FURTHER).chain(&[HOOKS]).any(|name| made(folder, Path::new(name), false))
        || hook().is_some();
    sprung.then_some(Path::new(HEAD))
}

/// Whether a place is a repository by what lies in it.
pub(super) fn is_repository(place: &Path) -> bool {
    opened(CWD, place, OFlags::PATH | OFlags::DIRECTORY).is_some_and(|folder| is_layout(folder.as_fd()))
}

fn is_layout(folder: BorrowedFd<'_>) -> bool {
    let there = |name: &str| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    there(HEAD) && (there(SHARED) || STORES.iter().all(|name| there(name)))
}

/// Whether git runs nothing of its own accord in the repository `name`.
pub(super) fn runs_nothing(folder: impl AsFd, name: &Path) -> bool {
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let Some(repository) = opened(folder, name, folder_flags) else { return false };
    let is_absent = |name: &str| {
        let there = statat(&repository, name, AtFlags::SYMLINK_NOFOLLOW);
        there.is_err_and(|error| error == rustix::io::Errno::NOENT)
    };
    FURTHER.iter().all(|name| is_absent(name))
        && (is_absent("hooks")
            || opened(&repository, Path::new("hooks"), folder_flags).is_some_and(only_samples))
        && opened(&repository, Path::new("config"), OFlags::RDONLY | OFlags::NONBLOCK).is_some_and(is_plain)
}

fn opened(folder: impl AsFd, name: &Path, flags: OFlags) -> Option<OwnedFd> {
    openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Whether these hooks are those that git only shows.
fn only_samples(hooks: OwnedFd) -> bool {
    let Ok(mut entries) = Dir::new(hooks) else { return false };
    entries.all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name().to_bytes();
            name == b"." || name == b".." || name.ends_with(b".sample")
        })
    })
}

fn is_plain(config: OwnedFd) -> bool {
    let mut text = String::new();
    let read = File::from(config).take(LARGEST + 1).read_to_string(&mut text);
    read.is_ok_and(|bytes| bytes as u64 <= LARGEST) && only_known(&text)
}

/// Whether settings are known ones only, written as git writes them.
fn only_known(text: &str) -> bool {
    let mut known: &[&str] = &[];
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (name, rest) = section.split_at(section.find(' ').unwrap_or(section.len()));
            let inner = rest.strip_prefix(" \"").and_then(|rest| rest.strip_suffix('"'));
            let found = SETTINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            known = found.map(|(_, keys)| *keys).unwrap_or_default();
            return found.is_some()
                && (rest.is_empty() || inner.is_some_and(|name| !name.contains(['"', '\\', ']'])));
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        !value.ends_with('\\') && known.iter().any(|known| key.trim().eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};
    use std::os::unix::fs::symlink;

    const FRESH: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
        [remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
        [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    /// what git has made of its own runs nothing; whatever names a program, or might, is told apart.
    #[test]
    fn a_fresh_repository_runs_nothing() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        let harmless = |change: &dyn Fn()| {
            let _ = remove_dir_all(&git);
            create_dir_all(git.join("hooks")).unwrap();
            write(git.join("hooks/pre-commit.sample"), "#!/bin/sh").unwrap();
            write(git.join("config"), FRESH).unwrap();
            change();
            runs_nothing(CWD, &git)
        };
        assert!(harmless(&|| ()));
        assert!(harmless(&|| remove_dir_all(git.join("hooks")).unwrap()));
        for more in [
            "[core]\n\tfsmonitor = evil\n",
            "[CORE]\n\tFsMonitor = evil\n",
            "\tsshcommand = evil\n",
            "[core] fsmonitor = evil\n",
            "[core] fsmonitor = [x]\n",
            "[remote \"a\"] uploadpack = \"x\"]\n",
            "[core]\n\tbare = false \\\n\tfsmonitor = evil\n",
            "[include]\n\tpath = evil\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[core]\n\thooksPath\n",
            "[filter \"x\"]\n\tsmudge = evil\n",
            "[remote \"origin\"]\n\tpromisor = true\n",
        ] {
            assert!(!harmless(&|| write(git.join("config"), format!("{FRESH}{more}")).unwrap()), "{more}");
        }
        assert!(!harmless(&|| write(git.join("hooks/pre-commit"), "evil").unwrap()));
        assert!(!harmless(&|| create_dir_all(git.join("modules/a")).unwrap()));
        assert!(!harmless(&|| std::fs::remove_file(git.join("config")).unwrap()));
        assert!(!harmless(&|| {
            std::fs::rename(git.join("hooks"), root.path().join("elsewhere")).unwrap();
            symlink("../elsewhere", git.join("hooks")).unwrap();
        }));
        remove_dir_all(&git).unwrap();
        write(&git, "gitdir: elsewhere").unwrap();
        assert!(!runs_nothing(CWD, &git), "a file leads to any other");
    }
}
