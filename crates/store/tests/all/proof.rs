//! E-44: what is stored proves itself. Whatever bit flips, what is read is what was written, or an error.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use selvedge_store::{
    Entry, ForkPoint, Mode, NewRun, RunFilter, RunInfo, RunStatus, RunUpdate, Store, StoreError,
};

use crate::support::{event, events, new_run};

/// A state folder with a run of 40 events, one of them long, a fork of it at event 30 and a library; closed.
fn sample(dir: &Path) -> PathBuf {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    let (graph, commit) = store.put_blob(b"{\"nodes\": []}".to_vec());
    commit.wait().unwrap();
    let run = NewRun { graph: Some(graph), ..new_run("first") };
    store.create_run(run, events("first", 1, 20)).wait().unwrap();
    let long = format!("[\"{}\"]", "long ".repeat(2_000));
    store.append("first", vec![Entry { n: 21, at_ms: 1, json: long }]).wait().unwrap();
    store.append("first", events("first", 22, 39)).wait().unwrap();
    let ended = RunUpdate {
        status: Some((RunStatus::Completed, Some(9_000))),
        usage: Some("{\"model_calls\": 3}".to_owned()),
        ..RunUpdate::default()
    };
    store.append_and_update("first", events("first", 40, 40), ended).wait().unwrap();
    let fork = Some(ForkPoint { run: "first".to_owned(), events: 30 });
    store.create_run(NewRun { fork, ..new_run("second") }, events("second", 31, 45)).wait().unwrap();
    store.append_library(events("library", 1, 5), vec![b"def run(): pass".to_vec()]).wait().unwrap();
    dir.join("selvedge.db")
}

type Read<T> = Result<T, StoreError>;

/// All that can be read of a folder, part by part.
#[derive(Debug, PartialEq)]
struct All {
    runs: Read<Vec<RunInfo>>,
    latest: Read<Vec<RunInfo>>,
    rows: Vec<Read<RunInfo>>,
    journals: Vec<Read<Vec<Entry>>>,
    library: Read<Vec<Entry>>,
    graph: Option<Read<Vec<u8>>>,
}

fn all(dir: &Path) -> Read<All> {
    let store = Store::open(dir, Mode::ReadOnly)?;
    let listed = |limit| {
        let runs = store.runs(&RunFilter { limit, ..RunFilter::default() });
        runs.and_then(|mut runs| runs.damaged.pop().map_or(Ok(runs.sound), Err))
    };
    let (runs, latest) = (listed(None), listed(Some(1)));
    let ids = ["first", "second"];
    let names = ["first", "second", "fi", "s", "@", "@-1"];
    let rows: Vec<_> = names.iter().map(|name| store.find_run(name).and_then(|id| store.run(&id))).collect();
    let journals = ids.iter().map(|id| store.journal(id, 1)?.collect()).collect();
    let graph = rows[0].as_ref().ok().and_then(|run| run.graph).map(|hash| store.get_blob(hash));
    Ok(All { runs, latest, rows, journals, library: store.library(1), graph })
}

/// The next number of a small generator (splitmix64).
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Equal, or an error of the store about damage.
#[track_caller]
fn same_or_damaged<T: PartialEq + std::fmt::Debug>(what: &str, found: &Read<T>, written: &Read<T>) {
    match found {
        Ok(_) => assert_eq!(found, written, "{what}"),
        Err(error) => assert!(
            !matches!(error, StoreError::UnknownRun { .. } | StoreError::Missing { .. } | StoreError::Closed),
            "{what}: {error:?}"
        ),
    }
}

fn compare(what: &str, found: Read<All>, written: &All) -> bool {
    let Ok(found) = found else { return true };
    same_or_damaged(what, &found.runs, &written.runs);
    same_or_damaged(what, &found.latest, &written.latest);
    let rows = found.rows.iter().zip(&written.rows);
    rows.for_each(|(found, written)| same_or_damaged(what, found, written));
    let journals = found.journals.iter().zip(&written.journals);
    journals.for_each(|(found, written)| same_or_damaged(what, found, written));
    same_or_damaged(what, &found.library, &written.library);
    if let (Some(found), Some(written)) = (&found.graph, &written.graph) {
        same_or_damaged(what, found, written);
    }
    found != *written
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let written = all(dir.path()).unwrap();
    assert!(written.journals.iter().all(|journal| journal.as_ref().is_ok_and(|journal| journal.len() >= 40)));
    let sound = std::fs::read(&path).unwrap();
    let (mut seed, mut found) = (1, 0);
    for round in 0..1_500 {
        let at = random(&mut seed) % (sound.len() as u64 * 8);
        let mut bytes = sound.clone();
        // Every other time a whole byte is another one, as an editor leaves it.
        match round % 2 {
            0 => bytes[(at / 8) as usize] ^= 1 << (at % 8),
            _ => bytes[(at / 8) as usize] = random(&mut seed) as u8,
        }
        std::fs::write(&path, &bytes).unwrap();
        let what = format!("round {round}: byte {} of {}", at / 8, sound.len());
        found += usize::from(compare(&what, all(dir.path()), &written));
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }
    assert!(found > 300, "{found} of them were in what is read");
}

/// Flips in the very cells of the tables, which the structure of the file does not show.
#[test]
fn a_changed_value_is_found() {
    let changes = [
        "UPDATE runs SET status = 'failed' WHERE id = 'first'",
        "UPDATE runs SET id = 'fjrst' WHERE id = 'first'",
        "UPDATE runs SET name = 'another' WHERE id = 'first'",
        "UPDATE runs SET dialect = 'qlan'",
        "UPDATE runs SET started_ms = started_ms + 1",
        "UPDATE runs SET ended_ms = NULL WHERE id = 'first'",
        "UPDATE runs SET usage = '{\"model_calls\": 4}' WHERE id = 'first'",
        "UPDATE runs SET graph = NULL WHERE id = 'first'",
        "UPDATE runs SET options = '{ }'",
        "UPDATE runs SET scripted = 1",
        "UPDATE runs SET parent_events = 29 WHERE id = 'second'",
        "UPDATE runs SET parent = NULL WHERE id = 'second'",
        "UPDATE runs SET seal = NULL",
        "DELETE FROM runs WHERE id = 'second'",
        "UPDATE journal SET at_ms = at_ms + 1 WHERE key % 4294967296 = 7",
        "UPDATE journal SET body = replace(body, 'test', 'tesu') WHERE key % 4294967296 = 40",
        "UPDATE journal SET body = CAST(body AS BLOB) WHERE key % 4294967296 = 7",
        "UPDATE journal SET hash = NULL WHERE key % 4294967296 = 7",
        "UPDATE journal SET hash = NULL",
        "DELETE FROM journal WHERE key % 4294967296 >= 40",
        "DELETE FROM journal WHERE key % 4294967296 = 1",
        "DELETE FROM journal",
        "UPDATE heads SET n = n - 1",
        "UPDATE heads SET hash = 12345",
        "UPDATE heads SET since = NULL",
        "UPDATE heads SET since = 9",
        "DELETE FROM heads",
        "UPDATE library SET at_ms = 0 WHERE n = 2",
        "DELETE FROM library WHERE n = 5",
        "UPDATE blobs SET data = CAST('other' AS BLOB)",
    ];
    for change in changes {
        let dir = tempfile::tempdir().unwrap();
        let path = sample(dir.path());
        let written = all(dir.path()).unwrap();
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        assert!(compare(change, all(dir.path()), &written), "{change} was not found");
    }
}

#[test]
fn what_is_before_the_damage_is_read_and_the_first_bad_event_named() {
    let cases = [
        ("UPDATE journal SET body = replace(body, 'test', 'tesu') WHERE key % 4294967296 = 17", 17),
        ("UPDATE journal SET at_ms = 0 WHERE key % 4294967296 = 1", 1),
        ("UPDATE journal SET hash = hash + 1 WHERE key % 4294967296 = 40", 40),
        ("DELETE FROM journal WHERE key % 4294967296 = 23", 23),
        ("DELETE FROM journal WHERE key % 4294967296 > 38", 39),
        ("DELETE FROM blobs WHERE length(data) > 5000", 21),
        ("UPDATE blobs SET data = CAST(replace(data, 'long', 'lung') AS BLOB)", 21),
    ];
    for (change, bad) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = sample(dir.path());
        let whole: Vec<Entry> = all(dir.path()).unwrap().journals.swap_remove(0).unwrap();
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
        let mut read: Vec<_> = store.journal("first", 1).unwrap().collect();
        let error = read.pop().unwrap().unwrap_err();
        let StoreError::DamagedRun { ref run, event, .. } = error else { panic!("{change}: {error}") };
        assert_eq!((run.as_str(), event), ("first", Some(bad)), "{change}: {error}");
        let before: Vec<Entry> = read.into_iter().map(Result::unwrap).collect();
        assert_eq!(before, whole[..bad as usize - 1], "{change}");
        // Who wants no more is not told of it; who begins behind it is not either.
        let until: Result<Vec<Entry>, _> = store.journal("first", 1).unwrap().until(bad - 1).collect();
        assert_eq!(until.unwrap(), whole[..bad as usize - 1], "{change}");
        // A fork that shares it, and nothing else, is damaged there, too.
        let fork: Result<Vec<Entry>, _> = store.journal("second", 1).unwrap().collect();
        match (fork, bad <= 30) {
            (Err(StoreError::DamagedRun { run, event, .. }), true) => {
                assert_eq!((run.as_str(), event), ("second", Some(bad)));
            }
            // The same change to its own event of that number.
            (Err(StoreError::DamagedRun { event, .. }), false) => assert!(event >= Some(bad), "{event:?}"),
            (found, _) => panic!("{change}: {found:?}"),
        }
    }
}

/// E-44: what is said to be sound can be read, also where a page that can't be read begins right behind it.
#[test]
fn events_before_a_page_that_cannot_be_read_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("selvedge.db");
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), events("r", 1, 400)).wait().unwrap();
    let whole: Vec<Entry> = store.journal("r", 1).unwrap().map(Result::unwrap).collect();
    drop(store);
    let sound = std::fs::read(&path).unwrap();
    let mut edges = 0;
    for page in (4096..sound.len()).step_by(4096) {
        let mut bytes = sound.clone();
        bytes[page..page + 8].fill(0xff);
        std::fs::write(&path, &bytes).unwrap();
        let Ok(store) = Store::open(dir.path(), Mode::ReadOnly) else { continue };
        let Ok(journal) = store.journal("r", 1) else { continue };
        let Some(Err(error)) = journal.last() else { continue };
        let StoreError::DamagedRun { event: Some(bad), .. } = error else { panic!("{error}") };
        let until: Result<Vec<Entry>, _> = store.journal("r", 1).unwrap().until(bad - 1).collect();
        assert_eq!(until.as_deref(), Ok(&whole[..bad as usize - 1]), "page {}: {error}", page / 4096);
        edges += usize::from(bad > 1);
    }
    assert!(edges > 3, "{edges}");
}

/// E-44: where a journal has come to is noted while it grows, so that the loss of more than its last events is missed.
#[test]
fn a_running_journal_that_lost_its_end_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("running"), events("running", 1, 1)).wait().unwrap();
    for n in 2..=200 {
        store.append("running", events("running", n, n)).wait().unwrap();
    }
    assert_eq!(store.last_event("running"), Ok(200));
    drop(store);
    let cut = "DELETE FROM journal WHERE key > (SELECT key << 32 | 100 FROM runs WHERE id = 'running')
               AND key < (SELECT (key + 1) << 32 FROM runs WHERE id = 'running')";
    Connection::open(&path).unwrap().execute_batch(cut).unwrap();
    let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    let last = store.journal("running", 1).unwrap().last().unwrap();
    assert!(matches!(last, Err(StoreError::DamagedRun { event: Some(101), .. })), "{last:?}");
}

#[test]
fn a_damaged_run_is_left_alone_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    Connection::open(&path).unwrap().execute_batch("UPDATE runs SET name = 'x' WHERE id = 'first'").unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let update = RunUpdate { scripted: true, ..RunUpdate::default() };
    let bad = store.update_run("first", update.clone());
    let good = store.append_and_update("second", vec![event("second", 46)], update);
    assert!(matches!(bad.wait(), Err(StoreError::DamagedRun { event: None, .. })));
    assert_eq!(good.wait(), Ok(()));
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.sound.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["second"]);
    assert_eq!(runs.damaged.len(), 1);
    assert_eq!(store.journal("first", 1).unwrap().filter(Result::is_ok).count(), 40, "its events are sound");
}

/// E-44: a content that was damaged is mended by whoever stores it again, so that no later run refers to the damage.
#[test]
fn a_damaged_content_is_mended_when_it_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let content = b"{\"nodes\": [1, 2, 3]}".to_vec();
    let store = Store::open(folder.path(), Mode::ReadWrite).unwrap();
    let (hash, commit) = store.put_blob(content.clone());
    commit.wait().unwrap();
    drop(store);
    let db = Connection::open(folder.path().join("selvedge.db")).unwrap();
    assert_eq!(db.execute("update blobs set data = x'00'", []).unwrap(), 1);
    drop(db);
    let store = Store::open(folder.path(), Mode::ReadWrite).unwrap();
    assert!(store.get_blob(hash).is_err());
    let (again, commit) = store.put_blob(content.clone());
    commit.wait().unwrap();
    assert_eq!((again, store.get_blob(hash).unwrap()), (hash, content));
}
