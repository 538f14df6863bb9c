//! Folders of killed processes are removed, those of living ones and of others are not.

use super::{Own, Scratch, WARM, remove_left};
use std::path::Path;
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
    let scratch = Scratch::new(Some(root.path().to_owned())).await.unwrap();
    for _ in 0..500 {
        if !left.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!left.exists() && scratch.path().exists());
}
