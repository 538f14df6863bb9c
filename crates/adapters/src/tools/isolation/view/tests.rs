use super::{Seen, View};
use crate::tools::process::Policy;
use std::fs::{create_dir, create_dir_all, write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn seen(policy: &Policy) -> Vec<(PathBuf, Seen)> {
    View::new(policy, &[])
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
        |read: &Path| Policy { read: vec![read.into()], hidden: vec![state.clone()], ..Policy::default() };
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
    let policy = Policy { read: vec![root.join("link/data")], ..Policy::default() };
    let both = [root.join("real/data"), root.join("link/data")];
    assert!(
        both.iter().all(|path| seen(&policy).contains(&(path.clone(), Seen::Read))),
        "{:?}",
        seen(&policy)
    );
    // Granted for writing wins over granted for reading; the whole system is never granted.
    let policy =
        Policy { read: vec!["/".into(), root.clone()], write: vec![root.clone()], ..Policy::default() };
    assert_eq!(seen(&policy), [(root.clone(), Seen::Write)]);
}
