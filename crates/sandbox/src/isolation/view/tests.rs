use super::{Seen, View, make_writable};
use crate::grant::Grant;
use crate::policy::Policy;
use std::fs::{create_dir, create_dir_all, write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn grant(path: impl Into<PathBuf>) -> Grant {
    Grant::of(path).unwrap()
}

fn seen(policy: &Policy) -> Vec<(PathBuf, Seen)> {
    View::new(policy, &[])
        .unwrap()
        .0
        .into_iter()
        .filter(|p| !p.place.starts_with("/etc") && !p.place.starts_with("/usr"))
        .map(|p| (p.place, p.seen))
        .collect()
}

#[test]
fn the_state_folder_is_hidden_wherever_it_lies() {
    let root = tempfile::tempdir().unwrap();
    let document = root.path().canonicalize().unwrap();
    let state = document.join("state");
    create_dir_all(state.join("cache")).unwrap();
    write(state.join("selvedge.db"), "").unwrap();
    let policy =
        |read: &Path| Policy { read: vec![grant(read)], hidden: vec![state.clone()], ..Policy::default() };
    assert_eq!(seen(&policy(&document)), [(document.clone(), Seen::Read), (state.clone(), Seen::Hidden)]);
    // A document in the state folder itself: what is ours in there is hidden.
    let own = [
        (state.clone(), Seen::Read),
        (state.join("cache"), Seen::Hidden),
        (state.join("selvedge.db"), Seen::Hidden),
    ];
    assert_eq!(seen(&policy(&state)), own);
    // Out of reach, there is nothing to hide.
    create_dir(document.join("other")).unwrap();
    assert_eq!(seen(&policy(&document.join("other"))), [(document.join("other"), Seen::Read)]);
}

#[test]
fn paths_are_seen_under_their_own_names_too() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    create_dir_all(root.join("real/data")).unwrap();
    symlink(root.join("real"), root.join("link")).unwrap();
    let policy = Policy { read: vec![grant(root.join("link/data"))], ..Policy::default() };
    let both = [root.join("real/data"), root.join("link/data")];
    assert!(
        both.iter().all(|path| seen(&policy).contains(&(path.clone(), Seen::Read))),
        "{:?}",
        seen(&policy)
    );
    // Granted for writing wins over granted for reading; the whole system is never granted.
    let policy =
        Policy { read: vec![grant("/"), grant(&root)], write: vec![grant(&root)], ..Policy::default() };
    assert_eq!(seen(&policy), [(root.clone(), Seen::Write)]);
}

#[test]
fn a_grant_for_writing_holds_for_all_that_is_in_it() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (document, state, env) = (root.join("document"), root.join("document/.selvedge"), root.join("env"));
    create_dir_all(state.join("cache")).unwrap();
    create_dir_all(env.join("out")).unwrap();
    let mut policy = Policy {
        read: vec![grant(&document)],
        write: vec![grant(&root)],
        runtime: vec![env.clone()],
        hidden: vec![state.clone()],
        ..Policy::default()
    };
    // The document's folder is written as a part of it; the state folder stays hidden, the interpreter as it is.
    // The folder between has a place of its own, so that it can't be moved away from what is hidden in it.
    let all = [
        (root.clone(), Seen::Write),
        (env.clone(), Seen::Read),
        (document.clone(), Seen::Write),
        (state.clone(), Seen::Hidden),
    ];
    assert_eq!(seen(&policy), all);
    // What is granted inside of something narrower has a place of its own; what is ours in a state folder has none.
    create_dir(state.join("out")).unwrap();
    policy
        .write
        .extend([env.join("out"), state.join("out"), state.join("cache"), document.clone()].map(grant));
    policy.read.push(grant(state.join("cache")));
    let inner = [(env.join("out"), Seen::Write), (state.join("out"), Seen::Write)];
    let mut all = all.to_vec();
    all.extend(inner);
    all.sort();
    let mut found = seen(&policy);
    found.sort();
    assert_eq!(found, all);
    // A name that goes through links is written there as well.
    symlink(&document, root.join("link")).unwrap();
    let policy =
        Policy { read: vec![grant(root.join("link"))], write: vec![grant(&document)], ..Policy::default() };
    assert_eq!(seen(&policy), [(document, Seen::Write), (root.join("link"), Seen::Write)]);
}

#[test]
fn what_may_be_written_is_made_with_the_folders_around_it() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    symlink(root.join("nowhere"), root.join("dangling")).unwrap();
    let paths = ["a/b/new.txt", "c/d", "e.d/", "dangling/f", "g/../../h"].map(|path| root.join(path));
    assert!(Grant::of(&paths[3]).is_none() && Grant::of(&paths[4]).is_none(), "such a place has no name");
    make_writable(&paths.iter().filter_map(Grant::of).collect::<Vec<_>>());
    assert!(root.join("a/b/new.txt").is_file() && root.join("c/d").is_dir() && root.join("e.d").is_dir());
    assert!(!root.join("nowhere").exists(), "a link may lead out of what was allowed");
    assert!(!root.join("g").exists(), "nothing is known of what lies behind a missing folder");
}

/// a path that was checked leads nowhere else later, in none of its parts.
#[test]
fn what_has_become_a_link_since_it_was_checked_is_not_granted() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    create_dir_all(root.join("out/sub")).unwrap();
    create_dir_all(root.join("elsewhere/sub")).unwrap();
    let grants = [grant(root.join("out")), grant(root.join("out/sub")), grant(root.join("out/new"))];
    std::fs::rename(root.join("out"), root.join("old")).unwrap();
    symlink(root.join("elsewhere"), root.join("out")).unwrap();
    for place in grants {
        make_writable(std::slice::from_ref(&place));
        let read = Policy { read: vec![place.clone()], ..Policy::default() };
        let write = Policy { write: vec![place], ..Policy::default() };
        for policy in [read, write] {
            let refused = View::new(&policy, &[]).unwrap_err().to_string();
            assert!(refused.contains("has become a link since it was checked"), "{refused}");
        }
    }
    assert!(!root.join("elsewhere/new").exists());
}
