use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A folder with what paths can lead through.
fn world() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/file"), "").unwrap();
    symlink("a/b", root.join("into")).unwrap();
    symlink("nowhere", root.join("lost")).unwrap();
    symlink("round", root.join("round")).unwrap();
    symlink("file", root.join("a/beside")).unwrap();
    (folder, root)
}

/// links count by where they lead, what is missing is appended, and what leads nowhere names nothing.
#[test]
fn paths_are_where_they_lead() {
    let (_folder, root) = world();
    let mut resolver = Resolver::default();
    for (path, real) in [
        ("a", Some("a")),
        ("into", Some("a/b")),
        ("into/new/x", Some("a/b/new/x")),
        ("into/../file", Some("a/file")),
        // Beside where the link leads, not beside the link.
        ("into/../into", Some("a/into")),
        ("into/..", Some("a")),
        ("a/beside", Some("a/file")),
        ("new/x/y", Some("new/x/y")),
        ("new/../a", None),
        ("new/", Some("new")),
        ("a/", Some("a")),
        ("a/file/", None),
        ("a/file/..", None),
        ("a/file/x", None),
        ("a/beside/x", None),
        ("lost", None),
        ("lost/x", None),
        ("round", None),
        ("round/x", None),
        ("./a/./b", Some("a/b")),
        ("a/b/../..", Some("")),
    ] {
        let path = root.join(path);
        let real = real.map(|real| if real.is_empty() { root.clone() } else { root.join(real) });
        assert_eq!(settle(&path), real, "{}", path.display());
        assert_eq!(resolver.settle(&path), real, "{} among others", path.display());
        if let Ok(found) = path.canonicalize() {
            assert_eq!(real, Some(found), "{} as the system has it", path.display());
        }
    }
    assert_eq!(settle(Path::new("/../..")), Some("/".into()));
}

/// However long a name somebody makes up.
#[test]
fn long_paths_are_none_of_ours() {
    let deep: PathBuf = std::iter::repeat_n("missing-name", 50_000).collect();
    assert_eq!(settle(&Path::new("/").join(&deep)), Some(Path::new("/").join(&deep)));
    assert_eq!(settle(Path::new(&format!("/tmp/{}", "n".repeat(5_000)))), None);
}

/// What was there is believed for one resolver only.
#[test]
fn a_resolver_is_of_one_moment() {
    let (_folder, root) = world();
    let (link, mut before) = (root.join("into"), Resolver::default());
    assert_eq!(before.settle(&link), Some(root.join("a/b")));
    fs::remove_file(&link).unwrap();
    symlink("a", &link).unwrap();
    assert_eq!(before.settle(&link.join("x")), Some(root.join("a/b/x")));
    assert_eq!(settle(&link.join("x")), Some(root.join("a/x")));
}
