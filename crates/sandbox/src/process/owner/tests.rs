use super::*;
use crate::grant::Grant;
use crate::policy::Policy;
use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs::{Permissions, create_dir, create_dir_all, read_dir, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, symlink};

const NOBODY: u32 = 65534;

/// Does something as a user whom modes bind: root is another one in a thread of its own.
fn as_user(deed: impl FnOnce() + Send + 'static) {
    let work = move || {
        if geteuid().is_root() {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(group, group, group).unwrap();
            set_thread_res_uid(user, user, user).unwrap();
            // Its own descriptors are its own in /proc.
            set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
        }
        deed();
    };
    std::thread::spawn(work).join().unwrap();
}

/// What is found of what a call has made in a folder that it may write.
fn after(granted: &Path, call: impl FnOnce(&Path)) -> Made {
    let policy = Policy { write: Grant::of(granted).into_iter().collect(), ..Policy::default() };
    let before = Before::now(&policy);
    call(granted);
    let debt = Debt {
        before,
        user: None,
        tools: 0..0,
        until: Until::Told(UnixStream::pair().unwrap().0),
        _note: Note::none(),
    };
    debt.give_back()
}

fn mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Every way to keep the owner of a folder from it, and what is read first or deeper.
fn locked() {
    for (folder, bits) in
        [("", 0o555), ("", 0o000), ("a/b", 0o555), ("a/b", 0o000), ("a/b", 0o300), ("a/b", 0o444)]
    {
        for outer in [0o755, 0o555, 0o000] {
            for name in ["selvedge.toml", ".selvedge"] {
                let root = tempfile::tempdir().unwrap();
                let granted = root.path().canonicalize().unwrap();
                let made = after(&granted, |granted| {
                    create_dir_all(granted.join("a/b")).unwrap();
                    let place = granted.join(folder).join(name);
                    if name == ".selvedge" {
                        create_dir(&place).unwrap()
                    } else {
                        write(&place, "evil").unwrap()
                    }
                    mode(&granted.join(folder), bits);
                    if !folder.is_empty() {
                        mode(&granted.join("a"), outer);
                        mode(granted, outer);
                    }
                });
                let shown = format!("{name} in {folder:?} of {bits:o} in {outer:o}: {made:?}");
                assert_eq!((made.aside.len(), made.left.len()), (1, 0), "{shown}");
                assert_eq!(made.aside[0], granted.join(folder).join(name), "{shown}");
                // The modes are what the call has made of them.
                let now = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
                let outermost = if folder.is_empty() { bits } else { outer };
                assert_eq!(now(&granted), outermost, "{shown}");
                mode(&granted, 0o755);
                if !folder.is_empty() {
                    mode(&granted.join("a"), 0o755);
                    assert_eq!(now(&granted.join("a/b")), bits, "{shown}");
                }
                mode(&granted.join(folder), 0o755);
                let names = read_dir(granted.join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
                let names: Vec<_> = names.filter(|name| name != "a").collect();
                assert_eq!(names, [format!("{name}.set-aside").as_str()], "{shown}");
                mode(&granted.join("a/b"), 0o755);
            }
        }
    }
}

#[test]
fn a_locked_folder_hides_nothing_from_its_owner() {
    as_user(locked);
}

#[test]
fn a_locked_folder_hides_nothing_from_root() {
    // Or from whoever runs the tests.
    locked();
}

/// Folders that the user has closed stay closed, and are none of the call's doing.
#[test]
fn what_was_locked_before_is_left_alone() {
    as_user(|| {
        let root = tempfile::tempdir().unwrap();
        let granted = root.path().canonicalize().unwrap();
        create_dir_all(granted.join("mine/deep")).unwrap();
        write(granted.join("mine/selvedge.toml"), "mine").unwrap();
        mode(&granted.join("mine"), 0o000);
        std::thread::sleep(std::time::Duration::from_millis(60));
        let made = after(&granted, |granted| write(granted.join("x"), "x").unwrap());
        mode(&granted.join("mine"), 0o755);
        assert_eq!((made.is_empty(), granted.join("mine/selvedge.toml").exists()), (true, true), "{made:?}");
    });
}

#[test]
fn what_can_not_be_set_aside_is_told() {
    as_user(|| {
        let root = tempfile::tempdir().unwrap();
        let granted = root.path().canonicalize().unwrap();
        create_dir(granted.join("deep")).unwrap();
        let made = after(&granted, |granted| {
            let folder = granted.join("deep/.selvedge");
            create_dir(&folder).unwrap();
            // All names are taken.
            for n in 0..100 {
                let n = if n == 0 { String::new() } else { format!("-{n}") };
                create_dir(granted.join(format!("deep/.selvedge.set-aside{n}"))).unwrap();
            }
            // Deeper than anybody looks.
            let mut deepest = granted.to_owned();
            for _ in 0..210 {
                deepest.push("d");
            }
            create_dir_all(&deepest).unwrap();
            write(deepest.join("selvedge.toml"), "evil").unwrap();
            symlink("nowhere", granted.join("deep/selvedge.toml")).unwrap();
        });
        assert_eq!(made.aside, [granted.join("deep/selvedge.toml")]);
        let mut left: Vec<_> = made.left.iter().map(|(path, why)| (path.clone(), why.as_str())).collect();
        left.sort();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].0.ends_with("d/d") && left[0].1.contains("deeper"), "{left:?}");
        assert_eq!(left[1].0, granted.join("deep/.selvedge"), "{left:?}");
    });
}
