//! Archives of runs (C-14): what is written is read again, and what anybody made of it is refused and leaves nothing.

use crate::support::{events, journal, new_run};
use selvedge_store::archive::{ArchiveError, ArchivedFork, ArchivedRun, Manifest, Writer, read};
use selvedge_store::{BlobHash, ForkPoint, NewRun, RunFilter, Store, StoreError};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read;

/// A run with a graph and a long text, and a fork of it.
fn source() -> (Store, Vec<ArchivedRun>, BTreeSet<BlobHash>) {
    let store = Store::memory().unwrap();
    let (graph, stored) = store.put_blob(b"{\"graph\":1}".to_vec());
    stored.wait().unwrap();
    let mut own = events("source", 1, 6);
    own[3].json = format!("{{\"kind\":\"long\",\"text\":\"{}\"}}", "x".repeat(10_000));
    store.create_run(NewRun { graph: Some(graph), ..new_run("source") }, own).wait().unwrap();
    let fork = ForkPoint { run: "source".into(), events: 4 };
    store
        .create_run(NewRun { graph: Some(graph), fork: Some(fork), ..new_run("fork") }, events("fork", 5, 8))
        .wait()
        .unwrap();
    let row = |id: &str, events, fork| ArchivedRun {
        id: id.to_owned(),
        name: "n".into(),
        dialect: "plan".into(),
        started_ms: 7,
        graph: Some(graph.to_string()),
        scripted: false,
        options: json!({"plan": null}),
        fork,
        events,
    };
    let fork = ArchivedFork { run: "source".into(), events: 4 };
    (store, vec![row("source", 5, None), row("fork", 8, Some(fork))], BTreeSet::from([graph]))
}

fn written(store: &Store, runs: &[ArchivedRun], blobs: &BTreeSet<BlobHash>) -> Vec<u8> {
    let mut writer = Writer::new(store);
    for run in runs {
        writer.add(run.clone(), |_| Ok::<(), ArchiveError>(())).unwrap();
    }
    let mut out = Vec::new();
    writer.write(blobs, &mut out).unwrap();
    out
}

fn archive() -> Vec<u8> {
    let (store, runs, blobs) = source();
    written(&store, &runs, &blobs)
}

fn taken(bytes: &[u8]) -> Result<(Store, Manifest), ArchiveError> {
    let store = Store::memory().unwrap();
    let manifest =
        read(bytes, &store, |run: &ArchivedRun| Ok::<String, ArchiveError>(run.options.to_string()))?;
    Ok((store, manifest))
}

/// Why it is refused, which is an answer and no panic.
fn refused(bytes: &[u8]) -> ArchiveError {
    taken(bytes).map(|_| ()).unwrap_err()
}

/// The files of an archive, to make others of.
fn files(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let file = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (String::from_utf8(entry.path_bytes().to_vec()).unwrap(), content)
    };
    archive.entries().unwrap().map(file).collect()
}

/// A file of an archive whose name the writer of tar archives would not take.
fn put(out: &mut Vec<u8>, name: &str, kind: tar::EntryType, says: u64, content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(says);
    header.set_entry_type(kind);
    header.set_cksum();
    out.extend(header.as_bytes());
    out.extend(content);
    out.resize(out.len().next_multiple_of(512), 0);
}

fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        put(&mut out, name, tar::EntryType::Regular, content.len() as u64, content);
    }
    out.extend([0; 1024]);
    out
}

/// The same with hashes that are right for what is in it: by somebody who knows the format.
fn sealed(mut files: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    let listed = files.iter().filter(|(name, _)| name != "SHA256SUMS");
    let sums: String = listed.map(|(name, content)| format!("{}  {name}\n", BlobHash::of(content))).collect();
    files.iter_mut().find(|(name, _)| name == "SHA256SUMS").unwrap().1 = sums.into_bytes();
    packed(&files)
}

/// An archive whose manifest is another one, with the right hashes.
fn with_manifest(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut files = files(&archive());
    let mut manifest = serde_json::from_slice(&files[0].1).unwrap();
    change(&mut manifest);
    files[0].1 = manifest.to_string().into_bytes();
    sealed(files)
}

#[test]
fn what_is_written_is_read_again() {
    let (store, runs, blobs) = source();
    let bytes = written(&store, &runs, &blobs);
    let (copy, manifest) = taken(&bytes).unwrap();
    assert_eq!((manifest.run.as_str(), &manifest.runs), ("fork", &runs));
    assert_eq!(journal(&copy, "fork"), journal(&store, "fork"));
    // Of the source there is what was said, and no more.
    assert_eq!(journal(&copy, "source"), journal(&store, "source")[..5]);
    copy.check().unwrap();
    // The same is the same file, wherever it is written.
    assert_eq!(written(&copy, &runs, &blobs), bytes);
    assert_eq!(written(&store, &runs, &blobs), bytes);
    let names: Vec<String> = files(&bytes).into_iter().map(|(name, _)| name).collect();
    let blob = format!("blobs/{}", BlobHash::of(b"{\"graph\":1}"));
    assert_eq!(names, ["manifest.json", "SHA256SUMS", &blob, "journals/1.jsonl", "journals/2.jsonl"]);
    // Others can make one, too.
    assert_eq!(files(&sealed(files(&bytes))), files(&bytes));
    taken(&sealed(files(&bytes))).unwrap();
}

#[test]
fn an_archive_that_was_cut_or_changed_is_refused() {
    let bytes = archive();
    let end = bytes.len() - 1024;
    for cut in (0..bytes.len()).step_by(509).chain([end - 512, end - 1, end, end + 512]) {
        refused(&bytes[..cut]);
    }
    // The rest of a file's last block says nothing.
    let content: Vec<u8> = files(&bytes).into_iter().flat_map(|(_, content)| content).collect();
    let mut found = 0;
    for at in (0..end).step_by(131) {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        match taken(&changed) {
            Err(_) => found += 1,
            Ok((_, manifest)) => assert_eq!(manifest.run, "fork", "{at}"),
        }
    }
    assert!(found * 131 >= content.len(), "{found} of {} were found", content.len());
    let message = refused(&{
        let mut changed = bytes.clone();
        let at = changed.windows(8).rposition(|window| window == b"{\"n\":7,\"").unwrap();
        changed[at + 60] ^= 1;
        changed
    });
    assert!(message.to_string().contains("event 7 of run fork is not what was written"), "{message}");
}

#[test]
fn what_is_no_archive_is_told_for_what_it_is() {
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b"{\"task\": \"t\"}", "does not begin with"),
        (b"\x1f\x8b\x08rest", "gzip -d"),
        (b"\x28\xb5\x2f\xfdrest", "zstd -d"),
        (b"PK\x03\x04rest", "unzip"),
    ] {
        let error = refused(bytes);
        assert!(matches!(&error, ArchiveError::Foreign(why) if why.contains(words)), "{error}");
    }
}

#[test]
fn a_newer_archive_is_told_before_anything_of_it_is_read() {
    let newer = with_manifest(|manifest| *manifest = json!({"selvedge_archive": 2, "other": []}));
    assert_eq!(refused(&newer), ArchiveError::Newer { found: 2 });
}

#[test]
fn there_never_was_a_format_before_the_first() {
    let none = with_manifest(|manifest| manifest["selvedge_archive"] = json!(0));
    let error = refused(&none);
    assert!(matches!(&error, ArchiveError::Damaged(why) if why.contains("has format 0")), "{error}");
}

#[test]
fn names_lead_nowhere() {
    let good = files(&archive());
    for name in ["../../etc/passwd", "/etc/passwd", "journals/../../x", "blobs/..", "journals/2.jsonl/", ""] {
        let mut files = good.clone();
        files[4].0 = name.to_owned();
        let error = refused(&sealed(files));
        assert!(matches!(error, ArchiveError::Damaged(_)), "{name}: {error}");
    }
    let kinds = ["Symlink", "Link", "Directory", "Fifo", "Char", "GNULongName", "XHeader", "GNUSparse"];
    use tar::EntryType as Kind;
    let entries = [
        Kind::Symlink,
        Kind::Link,
        Kind::Directory,
        Kind::Fifo,
        Kind::Char,
        Kind::GNULongName,
        Kind::XHeader,
        Kind::GNUSparse,
    ];
    for (kind, name) in entries.into_iter().zip(kinds) {
        let mut out = Vec::new();
        put(&mut out, "manifest.json", kind, good[0].1.len() as u64, &good[0].1);
        out.extend(packed(&good[1..]));
        let error = refused(&out);
        assert!(error.to_string().contains("no plain file"), "{name}: {error}");
    }
}

#[test]
fn every_file_comes_once_and_in_its_place() {
    let good = files(&archive());
    for at in 0..good.len() {
        let mut twice = good.clone();
        twice.insert(at, good[at].clone());
        refused(&packed(&twice));
        refused(&sealed(twice));
        let mut without = good.clone();
        without.remove(at);
        refused(&packed(&without));
        let mut swapped = good.clone();
        swapped.swap(at, (at + 1) % good.len());
        refused(&packed(&swapped));
    }
    let mut more = good.clone();
    more.push(("journals/3.jsonl".into(), Vec::new()));
    refused(&packed(&more));
    refused(&sealed(more));
}

/// Sizes that are claimed reserve nothing, and a million files are looked at no further than the first that has no place.
#[test]
fn bombs_are_small() {
    let good = files(&archive());
    for at in 0..good.len() {
        for says in [u64::MAX >> 1, 1 << 40, 1 << 33] {
            let mut out = packed(&good[..at]);
            out.truncate(out.len() - 1024);
            put(&mut out, &good[at].0, tar::EntryType::Regular, says, &good[at].1);
            refused(&out);
        }
    }
    let mut many = packed(&good);
    many.truncate(many.len() - 1024);
    for at in 0..50_000 {
        put(&mut many, &format!("blobs/{at}"), tar::EntryType::Regular, 0, b"");
    }
    refused(&many);
    let mut listed = good.clone();
    listed[1].1.extend("0".repeat(64).bytes().chain(*b"  blobs/0\n").collect::<Vec<u8>>().repeat(200_000));
    refused(&packed(&listed));
    let deep = format!("{{\"kind\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut nested = good;
    nested[2] = (format!("blobs/{}", BlobHash::of(deep.as_bytes())), deep.into_bytes());
    let error = refused(&sealed(nested));
    assert!(error.to_string().contains("inside each other"), "{error}");
}

#[test]
fn manifests_that_say_something_else_are_refused() {
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 9] = [
        |manifest| manifest["run"] = json!("source"),
        |manifest| manifest["runs"] = json!([]),
        |manifest| manifest["runs"][1]["events"] = json!(9),
        |manifest| manifest["runs"][1]["events"] = json!(7),
        |manifest| manifest["runs"][1]["events"] = json!(u64::MAX),
        |manifest| manifest["runs"][1]["fork"] = json!({"run": "fork", "events": 4}),
        |manifest| manifest["runs"][1]["fork"]["events"] = json!(u64::MAX),
        |manifest| manifest["runs"][0]["fork"] = json!({"run": "fork", "events": 4}),
        |manifest| manifest["runs"][0]["graph"] = json!("../../x"),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let error = refused(&with_manifest(change));
        assert!(matches!(error, ArchiveError::Damaged(_)), "{at}: {error}");
    }
    let unknown = with_manifest(|manifest| manifest["runs"][0]["graph"] = json!("0".repeat(64)));
    assert!(matches!(refused(&unknown), ArchiveError::Store(StoreError::UnknownBlob { .. })));
}

/// All of them come over, or none.
#[test]
fn runs_are_taken_over_whole_or_not_at_all() {
    let (staged, _) = taken(&archive()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for store in
        [Store::memory().unwrap(), Store::open(folder.path(), selvedge_store::Mode::ReadWrite).unwrap()]
    {
        store.create_run(new_run("own"), events("own", 1, 2)).wait().unwrap();
        let both = || vec!["source".to_owned(), "fork".to_owned()];
        // A fork without its source, one of which there is none, and one whose id is used.
        assert!(store.adopt(&staged, Vec::new(), vec!["fork".into()]).wait().is_err());
        assert!(store.adopt(&staged, Vec::new(), [both(), vec!["none".into()]].concat()).wait().is_err());
        assert!(store.adopt(&staged, Vec::new(), [both(), vec!["fork".into()]].concat()).wait().is_err());
        let ids = || -> Vec<String> {
            store.runs(&RunFilter::default()).unwrap().sound.into_iter().map(|run| run.id).collect()
        };
        assert_eq!(ids(), ["own"]);
        store.adopt(&staged, Vec::new(), both()).wait().unwrap();
        assert_eq!(ids().len(), 3);
        assert_eq!(journal(&store, "fork"), journal(&staged, "fork"));
        // They go on like others.
        store.append("fork", events("fork", 9, 9)).wait().unwrap();
        store.append("own", events("own", 3, 3)).wait().unwrap();
        store.check().unwrap();
    }
}
