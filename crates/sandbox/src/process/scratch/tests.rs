//! Folders of killed processes are removed, those of living ones and of others are not.

use super::{Own, Scratch, WARM, remove, remove_left};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_a_killed_process_left_is_removed_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for left in ["selvedge-warm-abc123/call-1/deep", "selvedge-call-ABCdef"] {
        std::fs::create_dir_all(at(left)).unwrap();
        std::fs::write(at(left).join("file"), "x").unwrap();
    }
    let others = ["selvedge-call-notes-of-mine", "selvedge-notes", "selvedge-warm-", "selvedge-warm-abc_23"];
    for other in others {
        std::fs::create_dir(at(other)).unwrap();
    }
    std::fs::write(at("selvedge-call-afile1"), "").unwrap();
    std::os::unix::fs::symlink(at("selvedge-notes"), at("selvedge-warm-alink1")).unwrap();
    let living = Own::warm(root.path()).unwrap();
    remove_left(root.path());
    let kept = names(root.path());
    let own = living.path().file_name().unwrap().to_str().unwrap().to_owned();
    let mut expected: Vec<String> = others.map(str::to_owned).into();
    expected.extend([own, "selvedge-call-afile1".to_owned(), "selvedge-warm-alink1".to_owned()]);
    expected.sort();
    assert_eq!(kept, expected);
    let path = living.path().to_owned();
    drop(living);
    assert!(!path.exists());
    // Another process that holds a lock lives; once it is killed, its folder is anybody's.
    let held = at("selvedge-warm-held01");
    std::fs::create_dir(&held).unwrap();
    let mut child = Command::new("flock")
        .arg(&held)
        .args(["sh", "-c", "echo held; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    remove_left(root.path());
    assert!(held.exists());
    drop(child.stdin.take());
    child.wait().unwrap();
    remove_left(root.path());
    assert!(!held.exists());
}

#[tokio::test]
async fn the_first_folder_of_a_process_sweeps() {
    let root = tempfile::tempdir().unwrap();
    let left = root.path().join(format!("{WARM}left01"));
    std::fs::create_dir(&left).unwrap();
    let scratch = Scratch::new(root.path().to_owned()).await.unwrap();
    for _ in 0..500 {
        if !left.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!left.exists() && scratch.path().exists());
}

fn nest(folder: &Path, depth: usize) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, folder, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
}

/// Folders in each other by the hundred, which would take as many open files, and, where Selvedge is not root, folders
/// whose modes keep their owner out.
#[test]
fn whatever_a_tool_has_left_is_removed() {
    const PLACE: &str = "SELVEDGE_TEST_REMOVE";
    if let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) {
        let deep = place.join("call/a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "").unwrap();
        for (folder, mode) in [("call/a/b/c", 0o500), ("call/a/b", 0), ("call/a", 0o100), ("call", 0o400)] {
            std::fs::set_permissions(place.join(folder), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(place.join("call"), PermissionsExt::from_mode(0o700)).unwrap();
        // Where folders are moved to, something is already.
        std::fs::write(place.join("call/.1"), "").unwrap();
        std::os::unix::fs::symlink(&place, place.join("call/link")).unwrap();
        nest(&place.join("call"), 300);
        std::fs::set_permissions(place.join("call"), PermissionsExt::from_mode(0o400)).unwrap();
        let few = Rlimit { current: Some(48), maximum: Some(48) };
        setrlimit(Resource::Nofile, few).unwrap();
        return remove(&place.join("call")).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "tools::process::scratch::tests::whatever_a_tool_has_left_is_removed"]);
    if rustix::process::geteuid().is_root() {
        again.uid(65_534).gid(65_534);
    }
    let Ok(done) = again.env(PLACE, place.path()).output() else {
        eprintln!("not tested here: nobody else may run this program");
        return;
    };
    assert!(done.status.success(), "{done:?}");
    assert_eq!(names(place.path()), Vec::<String>::new());
}
