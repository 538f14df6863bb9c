use super::{Groups, own_folder};
use crate::policy::Policy;
use std::fs::{create_dir, read_to_string, write};
use std::path::{Path, PathBuf};

const MOUNTS: &str =
    "22 1 8:1 / / rw - ext4 /dev/a rw\n30 22 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

#[test]
fn the_group_of_a_process_is_found() {
    let found = |mounts: &str, groups: &str| own_folder(mounts, groups).ok();
    let at = |path: &str| Some(PathBuf::from(path));
    assert_eq!(found(MOUNTS, "0::/user.slice/a.scope\n"), at("/sys/fs/cgroup/user.slice/a.scope"));
    assert_eq!(found(MOUNTS, "4:memory:/x\n0::/\n"), at("/sys/fs/cgroup/"));
    // A container may see a part of the groups only.
    let part = MOUNTS.replace("0:27 / /sys", "0:27 /box /sys");
    assert_eq!(found(&part, "0::/box/in"), at("/sys/fs/cgroup/in"));
    assert_eq!(found(&part, "0::/other"), None);
    assert_eq!(found(MOUNTS, "0::/../.."), None);
    assert_eq!(found("22 1 8:1 / / rw - ext4 /dev/a rw\n", "0::/"), None);
    assert_eq!(found(MOUNTS, "4:memory:/x\n"), None, "only cgroups v1");
}

#[test]
fn where_no_group_can_be_made_it_says_so() {
    let nowhere = tempfile::tempdir().unwrap();
    let why = Groups::below(nowhere.path()).unwrap_err();
    assert!(why.contains(&nowhere.path().display().to_string()), "{why}");
    // A folder that is no control group can't end anything.
    write(nowhere.path().join("cgroup.procs"), "1\n2\n").unwrap();
    write(nowhere.path().join("cgroup.type"), "domain\n").unwrap();
    let why = Groups::below(nowhere.path()).unwrap_err();
    assert!(why.contains("cgroup.kill"), "{why}");
    assert_eq!(std::fs::read_dir(nowhere.path()).unwrap().count(), 2, "what was tried is removed");
}

#[test]
fn what_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let groups = |limits| Groups { base: folder.path().to_owned(), limits, refused: None };
    let control = |text: &str| write(folder.path().join("cgroup.controllers"), text).unwrap();
    control("cpu io memory pids\n");
    assert_eq!(groups(true).lack(), None);
    assert!(groups(false).lack().unwrap().contains("not alone"));
    control("cpu pids\n");
    let why = groups(false).lack().unwrap();
    assert!(why.contains("no control of memory ") && !why.contains("pids"), "{why}");
}

#[test]
fn a_group_has_the_limits_of_its_call() {
    // A folder stands for the groups: what is written is what the kernel would be told.
    let folder = tempfile::tempdir().unwrap();
    let groups = Groups { base: folder.path().to_owned(), limits: true, refused: None };
    let policy = Policy { total_bytes: Some(1 << 20), processes: Some(10), ..Policy::default() };
    let group = groups.limited(&policy).unwrap();
    let said = |name: &str| read_to_string(group.dir().join(name)).unwrap();
    assert_eq!((said("memory.max"), said("pids.max")), ("1048576".to_owned(), "18".to_owned()));
    group.kill();
    assert_eq!(said("cgroup.kill"), "1");
    for file in ["memory.max", "memory.swap.max", "pids.max", "cgroup.kill"] {
        std::fs::remove_file(group.dir().join(file)).unwrap();
    }
    drop(group);
    // What a killed process has left is removed, what a living one uses is not.
    let family = super::family();
    let left = |name: &str| folder.path().join(name);
    let (mine, dead) = (format!("{family}{}-77", std::process::id()), format!("{family}99999999-0"));
    for name in [&mine, &dead, "selvedge-main", "selvedge-1-99999999-0"] {
        create_dir(left(name)).unwrap();
    }
    groups.sweep();
    let there = |name: &str| Path::exists(&left(name));
    assert!(there(&mine) && there("selvedge-main") && there("selvedge-1-99999999-0") && !there(&dead));
}
