use super::{FILES, Index};
use crate::python::Metadata;
use std::sync::Arc;

fn found(names: &[&str]) -> Vec<(String, Arc<Metadata>)> {
    let one = |name: &&str| {
        let metadata = Metadata { name: (*name).to_owned(), ..Metadata::default() };
        (format!("version of {name}"), Arc::new(metadata))
    };
    names.iter().map(one).collect()
}

fn name(index: &Index, of: &str) -> Option<String> {
    index.get(&format!("version of {of}")).map(|metadata| metadata.name.clone())
}

#[test]
fn what_is_added_is_known_to_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    Index::new(folder.path()).add(found(&["a", "b"]));
    let next = Index::new(folder.path());
    assert_eq!(name(&next, "a").unwrap(), "a");
    assert_eq!(name(&next, "b").unwrap(), "b");
    assert_eq!(name(&next, "c"), None);
}

#[test]
fn nothing_is_lost_when_processes_write_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|writer| {
            let folder = folder.path().to_owned();
            std::thread::spawn(move || {
                for number in 0..30 {
                    // A process each: it reads what there is, and adds to it.
                    Index::new(&folder).add(found(&[&format!("{writer}/{number}")]));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let index = Index::new(folder.path());
    for writer in 0..4 {
        for number in 0..30 {
            let of = format!("{writer}/{number}");
            assert_eq!(name(&index, &of).as_ref(), Some(&of));
        }
    }
}

#[test]
fn files_are_put_together_when_there_are_many() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 * FILES {
        Index::new(folder.path()).add(found(&[&number.to_string()]));
        let files = std::fs::read_dir(folder.path().join("index")).unwrap().count();
        assert!(files <= FILES, "{files} files after {number}");
    }
    let index = Index::new(folder.path());
    assert!((0..3 * FILES).all(|number| name(&index, &number.to_string()).is_some()));
    // The same once more changes nothing.
    let of: Vec<String> = (0..3 * FILES).map(|number| number.to_string()).collect();
    let of: Vec<&str> = of.iter().map(String::as_str).collect();
    for _ in 0..3 {
        Index::new(folder.path()).add(found(&of));
    }
    assert!(name(&Index::new(folder.path()), "0").is_some());
}

#[test]
fn broken_and_foreign_files_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    Index::new(folder.path()).add(found(&["a"]));
    let place = folder.path().join("index");
    for (file, text) in [
        ("cut.json", "{\"format\":1,\"versions\":{\"x"),
        ("newer.json", "{\"format\":99,\"versions\":{\"version of z\":{}}}"),
        ("other.json", "[]"),
    ] {
        std::fs::write(place.join(file), text).unwrap();
    }
    let index = Index::new(folder.path());
    assert_eq!(name(&index, "a").unwrap(), "a");
    assert_eq!(name(&index, "z"), None);
    for number in 0..2 * FILES {
        index.add(found(&[&number.to_string()]));
    }
    let left = |file: &str| place.join(file).exists();
    assert!(!left("cut.json") && left("newer.json"));
    assert_eq!(name(&Index::new(folder.path()), "a").unwrap(), "a");
}
