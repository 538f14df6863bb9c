//! E-44 from outside: damaged state folders, state that vanishes, and a run that another process has taken.

use super::world::{completed, failed, killed, place};
use crate::support::{Done, Place, calls, finish, says};
use selvedge_store::{Entry, Mode, Store};
use serde_json::{Value, json};
use std::time::Duration;

/// The next number of a small generator (splitmix64).
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn change(place: &Place, sql: &str) {
    let db = rusqlite::Connection::open(place.state().join("selvedge.db")).unwrap();
    db.execute_batch(sql).unwrap();
}

/// Whatever bit of the database flips, a command prints what it printed before, or says that something is damaged. Half of the flips
/// are within the texts and numbers of the tables, where SQLite sees nothing.
#[test]
fn a_flipped_bit_changes_no_word_of_what_is_printed() {
    let place = place();
    completed(&place, "whole");
    failed(&place, "broken");
    killed(&place, "killed");
    // Closed by a process of its own, so that all of it is in one file.
    place.run(&["fork", "whole", "--at", "9", "--run-id", "fork", "--script", "sums.yaml"]).exits(0);
    let file = place.state().join("selvedge.db");
    let sound = std::fs::read(&file).unwrap();
    let texts = places_of(&sound, &[b"kind", b"outcome", b"completed", b"sums", b"model_calls", b"pure"]);
    assert!(texts.len() > 50 && !place.state().join("selvedge.db-wal").exists());
    let looks: [&[&str]; 7] = [
        &["runs", "--json"],
        &["show", "whole", "--json"],
        &["show", "fork"],
        &["show", "broken", "--events", "--json"],
        &["export", "whole"],
        &["replay", "fork", "--json"],
        &["show", "killed", "--json"],
    ];
    let before: Vec<Done> = looks.iter().map(|look| place.run(look).exits(0)).collect();
    let (mut seed, mut found) = (7, 0);
    for round in 0..70 {
        let at = match round % 2 {
            0 => random(&mut seed) as usize % sound.len(),
            _ => texts[random(&mut seed) as usize % texts.len()] + random(&mut seed) as usize % 12,
        };
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (random(&mut seed) % 8);
        std::fs::write(&file, &bytes).unwrap();
        // Three of the commands in turn.
        for which in (round..round + 3).map(|n| n % looks.len()) {
            let now = place.run(looks[which]);
            let what = format!("round {round}: byte {at}: {:?}", looks[which]);
            match now.code {
                0 => assert_eq!(now.stdout, before[which].stdout, "{what}"),
                4 => found += 1,
                _ => panic!("{what}: {now:#?}"),
            }
        }
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
    }
    assert!(found > 20, "{found}");
}

/// Where these texts stand in a file.
fn places_of(bytes: &[u8], texts: &[&[u8]]) -> Vec<usize> {
    let at = |text: &[u8]| {
        let found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    texts.iter().flat_map(|text| at(text)).collect()
}

#[test]
fn a_damaged_row_is_told_and_hides_nothing_else() {
    let place = place();
    completed(&place, "whole");
    failed(&place, "broken");
    change(&place, "UPDATE runs SET status = 'completed' WHERE id = 'broken'");
    let listed = place.run(&["runs", "--json"]).exits(4);
    let runs: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{listed:#?}");
    assert_eq!(listed.error()["code"], json!("run-damaged"));
    assert!(listed.error()["message"].as_str().unwrap().contains("\"broken\""), "{listed:#?}");
    // A wrong status hides it from no list.
    place.run(&["runs", "--status", "failed", "--json"]).exits(4);
    // Whether it is the latest, nobody knows; its events prove themselves.
    place.run(&["show", "@"]).exits(4);
    place.run(&["show", "broken"]).exits(4);
    place.run(&["resume", "broken"]).exits(4);
    place.run(&["export", "broken"]).exits(0);
    place.run(&["show", "whole"]).exits(0);
    let doctor = place.run(&["doctor"]).exits(4);
    assert!(doctor.stdout.contains("\"broken\" is damaged"), "{doctor:#?}");
}

#[test]
fn a_damaged_graph_and_a_damaged_tail_are_told() {
    let place = place();
    completed(&place, "whole");
    failed(&place, "broken");
    let last = place.run(&["export", "broken"]).exits(0).stdout.lines().count() as u64;
    change(&place, "DELETE FROM journal WHERE key = (SELECT max(key) FROM journal)");
    for look in [&["show", "broken"][..], &["export", "broken"], &["resume", "broken"]] {
        let told = place.run(look).exits(4);
        assert!(told.stderr.contains(&format!("\"broken\" is damaged at event {last}")), "{told:#?}");
    }
    let listed = place.run(&["runs"]).exits(4);
    assert!(listed.stderr.contains("\"broken\" is damaged: its journal has lost its end"), "{listed:#?}");
    let before = last - 1;
    place.run(&["show", "broken", "--at", &before.to_string()]).exits(0);
    // The events before it are shown, in an object that is whole, and then it fails.
    let shown = place.run(&["show", "broken", "--events", "--json"]).exits(4);
    assert_eq!(shown.json()["events"].as_array().map(Vec::len), Some(before as usize), "{shown:#?}");
    change(&place, "UPDATE blobs SET data = CAST(replace(data, 'sum', 'mum') AS BLOB)");
    let told = place.run(&["show", "whole"]).exits(4);
    assert!(told.stderr.contains("run \"whole\" is damaged: its compiled graph"), "{told:#?}");
    place.run(&["export", "whole"]).exits(0);
}

/// A run of two model calls, of which the second takes a while; what `meanwhile` does to its state folder, it does between them.
fn disturbed(meanwhile: impl FnOnce(&Place), args: &[&str]) -> (Place, Done) {
    let place = Place::new();
    place.plan("slow.json", json!([says("a", "Quick"), says("b", "Slow")]));
    let script = "- when: {node: a}\n  reply: {text: quick}\n- when: {node: b}\n  reply: {text: slow, delay_ms: 2000}\n";
    place.write("slow.yaml", script);
    let mut all = vec!["run", "slow.json", "--script", "slow.yaml", "--run-id", "r"];
    all.extend(args);
    let child = place.start(&all);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while place.run(&["show", "r", "--json"]).stdout.find("quick").is_none() {
        assert!(std::time::Instant::now() < deadline);
    }
    meanwhile(&place);
    let done = finish(child);
    (place, done)
}

#[test]
fn a_run_whose_state_vanishes_has_failed() {
    let remove = |place: &Place, name: &str| std::fs::remove_file(place.state().join(name)).unwrap();
    let gone: [&dyn Fn(&Place); 3] = [
        &|place| std::fs::remove_dir_all(place.state()).unwrap(),
        &|place| remove(place, "selvedge.db"),
        &|place| remove(place, "selvedge.db-wal"),
    ];
    for gone in gone {
        let (_place, done) = disturbed(gone, &["--json"]);
        assert_eq!((done.code, &done.json()["status"]), (4, &json!("failed")), "{done:#?}");
        assert!(done.stderr.contains("was deleted") && done.json()["output"].is_null(), "{done:#?}");
    }
    let empty = |place: &Place, name: &str| std::fs::write(place.state().join(name), "").unwrap();
    let emptied: [&dyn Fn(&Place); 2] =
        [&|place| empty(place, "selvedge.db"), &|place| empty(place, "selvedge.db-wal")];
    for emptied in emptied {
        let (_place, done) = disturbed(emptied, &["--json"]);
        assert_eq!(done.code, 4, "{done:#?}");
        assert!(!done.stderr.contains("goes on"), "{done:#?}");
    }
    let moved = |place: &Place| std::fs::rename(place.state(), place.work().join("kept")).unwrap();
    let (place, done) = disturbed(moved, &[]);
    assert!(
        done.code == 4 && done.stdout.is_empty() && done.stderr.contains("kept/selvedge.db"),
        "{done:#?}"
    );
    let resumed = place.run(&["resume", "r", "--state-dir", "kept"]).exits(0);
    assert_eq!(resumed.stdout, "slow\n");

    // The file alone: beside its log it is whole again.
    let (old, new) = ("selvedge.db", "elsewhere.db");
    let moved = |place: &Place| std::fs::rename(place.state().join(old), place.work().join(new)).unwrap();
    let (place, done) = disturbed(moved, &[]);
    assert!(done.code == 4 && done.stderr.contains("move it back to"), "{done:#?}");
    std::fs::rename(place.work().join(new), place.state().join(old)).unwrap();
    assert_eq!(place.run(&["resume", "r"]).exits(0).stdout, "slow\n");
}

#[test]
fn who_lost_a_run_to_another_process_says_so() {
    let take = |place: &Place| {
        std::fs::remove_dir_all(place.state().join("locks")).unwrap();
        place.run(&["cancel", "r"]).exits(0);
    };
    let (place, done) = disturbed(take, &["--json"]);
    assert_eq!((done.code, &done.json()["status"]), (2, &json!("cancelled")), "{done:#?}");
    assert!(done.stderr.contains("another process has gone on with run \"r\""), "{done:#?}");
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["status"], json!("cancelled"));
    place.run(&["replay", "r"]).exits(0);
}

/// E-44, E-29: a fork of a damaged run makes no write that the run may have made, unless a person says so.
#[test]
fn a_fork_of_a_damaged_run_asks_before_it_writes() {
    let place = Place::new();
    let notes = place.work().join("notes");
    let toml = format!(
        "[tools.command.note]\ncommand = [\"sh\", \"-c\", \"echo x >> {}\"]\ndescription = \"notes\"\n\
         effects = \"write\"\ninput_schema = {{ type = \"object\" }}\n",
        notes.display()
    );
    place.write("selvedge.toml", &toml);
    place.plan(
        "notes.json",
        json!([calls("a", "note", json!({"n": 1})), calls("b", "note", json!({"n": 2}))]),
    );
    place.run(&["run", "notes.json", "--run-id", "r"]).exits(0);
    let events = place.run(&["show", "r", "--events", "--json"]).exits(0).json();
    let events = events["events"].as_array().unwrap();
    let began = events.iter().find(|event| event["kind"] == "node_started" && event["node"] == "b").unwrap();
    let bad = began["n"].as_u64().unwrap();
    change(&place, &format!("UPDATE journal SET at_ms = at_ms + 1 WHERE (key & 4294967295) = {bad}"));
    let written = || std::fs::read_to_string(&notes).unwrap().lines().count();
    assert_eq!(written(), 2);
    let at = (bad - 1).to_string();
    let forked = place.run(&["fork", "r", "--at", &at, "--run-id", "f", "--json"]).exits(3);
    assert!(forked.stderr.contains("each asks first"), "{forked:#?}");
    let asks = forked.json()["asks"].clone();
    assert!(asks[0]["prompt"].as_str().unwrap().contains("may have run behind the damage"), "{asks}");
    assert_eq!(written(), 2);
    let ask = asks[0]["ask"].as_str().unwrap();
    let refused = place.run(&["answer", "f", ask, "no", "--json"]).exits(1).json();
    assert_eq!((&refused["fault"]["kind"], written()), (&json!("unknown_outcome"), 2), "{refused}");
    place.run(&["fork", "r", "--at", &at, "--run-id", "g", "--json"]).exits(3);
    place.run(&["answer", "g", ask, "yes"]).exits(0);
    assert_eq!(written(), 3);
    place.run(&["replay", "g"]).exits(0);
}

/// E-44: what of the library is damaged is stored anew by who has it.
#[test]
fn an_import_mends_the_library() {
    let place = Place::new();
    let tool = "from pydantic import BaseModel\n__TOOL_META__ = {\"name\": \"count\", \"description\": \"counts\", \
                \"dependencies\": [], \"effects\": \"pure\"}\nclass InputModel(BaseModel): pass\ndef run(i): return 1\n";
    place.write("count.py", tool);
    let import = || {
        let done = place.run(&["tools", "import", "count.py", "--json"]).exits(0).json();
        done["tools"][0]["result"].as_str().unwrap().to_owned()
    };
    assert_eq!((import(), import()), ("new".to_owned(), "unchanged".to_owned()));
    change(&place, "UPDATE blobs SET data = CAST(replace(data, 'return 1', 'return 2') AS BLOB)");
    place.run(&["tools", "export", "damaged"]).exits(4);
    assert_eq!(import(), "mended");
    place.run(&["tools", "export", "sound"]).exits(0);
    change(&place, "DELETE FROM blobs WHERE instr(data, 'return 1') > 0");
    assert_eq!((import(), import()), ("mended".to_owned(), "unchanged".to_owned()));
}

#[test]
fn a_damaged_library_is_told() {
    let place = place();
    let store = Store::open(&place.state(), Mode::ReadWrite).unwrap();
    let event = |n| Entry { n, at_ms: 0, json: format!("{{\"kind\":\"of another version\",\"n\":{n}}}") };
    store.append_library((1..=3).map(event).collect(), Vec::new()).wait().unwrap();
    drop(store);
    place.run(&["tools", "list"]).exits(4);
    change(&place, "UPDATE library SET body = replace(body, 'version', 'Version') WHERE n = 1");
    let told = place.run(&["tools", "list", "--json"]).exits(4).error();
    assert_eq!(told["code"], json!("state-damaged"));
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("event 1 of the tool library: it is not what was written"), "{message}");
}
