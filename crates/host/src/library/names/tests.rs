use super::super::read;
use super::*;
use selvedge_engine::library::{Author, Call, Event, Facts, Origin, Place};
use selvedge_store::Mode;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

fn hash(n: u64) -> Arc<str> {
    format!("{n:064x}").into()
}

/// A public tool, with so many recorded calls.
fn tool(n: u64, name: &str, calls: u64) -> Vec<Event> {
    let (place, version) = (Place::Library, hash(n));
    let field = json!({"type": "string", "description": "Where the file is, below the document's folder."});
    let schema = json!({"type": "object", "properties": {"path": field, "column": field, "unit": field}, "required": ["path"]});
    let facts = Facts {
        description: "Reads a column of a file and says what is in it, with its gaps and outliers.".into(),
        input_schema: schema,
        metadata: json!({"name": name, "description": "Reads a column of a file.", "dependencies": ["pandas"]}),
        ..Facts::default()
    };
    let mut events = vec![
        Event::Drafted {
            place: place.clone(),
            version: version.clone(),
            name: name.into(),
            author: Author::Person,
            parents: Vec::new(),
            members: Vec::new(),
            request: json!({"imported": format!("{name}.py")}),
        },
        Event::Validated { place: place.clone(), version: version.clone(), facts: Box::new(facts) },
        Event::Published { place, version: version.clone(), name: name.into() },
    ];
    for call in 0..calls {
        let origin = Origin {
            run: format!("01jd{n:06}").into(),
            effect: format!("step_{call}/call/1").into(),
            folder: Some("/home/ada/selvedge/examples/load-forecast".into()),
        };
        let sample = hash(n << 20 | call);
        let call = Call { sample, ok: true, origin: Some(origin), ..Call::default() };
        events.push(Event::CallRecorded { version: version.clone(), call });
    }
    events
}

fn append(store: &Store, from: u64, events: &[Event]) {
    let entry =
        |(n, event): (u64, &Event)| Entry { n, at_ms: 7, json: serde_json::to_string(event).unwrap() };
    store.append_library((from..).zip(events).map(entry).collect(), Vec::new()).wait().unwrap();
}

/// A library of so many tools, each with the same number of calls.
fn world(tools: u64, calls: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let mut next = 1;
    for n in 0..tools {
        let events = tool(n, &format!("tool_{n}"), calls);
        append(&store, next, &events);
        next += events.len() as u64;
    }
    (dir, store)
}

#[track_caller]
fn as_the_whole(store: &Store, dir: &Path) {
    let library = read(store).unwrap();
    let offered = library.offered(None).into_iter().map(|(name, version)| (name, version.hash.clone()));
    assert_eq!(names(store, dir).unwrap().offered(), offered.collect());
}

/// what is kept is only a cache; whatever becomes of it, the journal is the truth.
#[test]
fn names_are_those_of_the_journal_whatever_is_kept() {
    let (dir, store) = world(60, 10);
    let file = dir.path().join("cache/library.json");
    as_the_whole(&store, dir.path());
    let kept = std::fs::read(&file).unwrap();
    // What came since is added.
    let next = store.last_library_event().unwrap() + 1;
    append(&store, next, &tool(1000, "tool_7", 0));
    as_the_whole(&store, dir.path());
    assert_eq!(names(&store, dir.path()).unwrap().head("tool_7"), Some(&hash(1000)));
    assert_eq!(std::fs::read(&file).unwrap(), kept, "a few events are not worth a file");
    // Cut off, of another format, of another journal, of one that has been longer.
    let (_other, foreign) = world(60, 10);
    append(&foreign, next, &tool(2000, "tool_7", 20 * MANY));
    for wrong in [
        &kept[..kept.len() / 2],
        b"{}",
        String::from_utf8(kept.clone()).unwrap().replace("\"format\":3", "\"format\":0").as_bytes(),
    ] {
        std::fs::write(&file, wrong).unwrap();
        as_the_whole(&store, dir.path());
    }
    // Edited, with what it was folded from as it should be: an older version, one that nobody has, nothing.
    let text = String::from_utf8(kept.clone()).unwrap();
    for (from, to) in [(hash(7), hash(8)), (hash(7), hash(77_777)), ("tool_9".into(), "tool_x".into())] {
        let edited = text.replace(&*from, &to);
        assert_ne!(edited, text);
        std::fs::write(&file, edited).unwrap();
        as_the_whole(&store, dir.path());
    }
    // One that would be waited for.
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    as_the_whole(&store, dir.path());
    names(&foreign, dir.path()).unwrap();
    assert!(String::from_utf8(std::fs::read(&file).unwrap()).unwrap().contains(&*hash(2000)));
    as_the_whole(&store, dir.path());
    assert_eq!(names(&store, dir.path()).unwrap().head("tool_7"), Some(&hash(1000)));
}

/// How long it takes to open a large library; see the decision on the library for figures.
#[test]
#[ignore = "takes long: a measurement"]
fn opening_a_large_library() {
    let (dir, store) = world(10_000, 10);
    for what in ["first", "kept", "kept"] {
        let began = Instant::now();
        assert_eq!(names(&store, dir.path()).unwrap().heads().len(), 10_000);
        eprintln!("names, {what}: {:?}", began.elapsed());
    }
    let began = Instant::now();
    store.library(1).unwrap();
    eprintln!("the journal without its fold: {:?}", began.elapsed());
    let began = Instant::now();
    read(&store).unwrap();
    eprintln!("the whole library: {:?}", began.elapsed());
    let began = Instant::now();
    let versions = [hash(77)].into();
    super::super::change_versions(&store, &versions, |library| {
        assert_eq!(library.version(&hash(77)).map(|version| version.calls.len()), Some(10));
        Ok(super::super::Decided { events: Vec::new(), contents: Vec::new(), what: () })
    })
    .unwrap();
    eprintln!("one version of it: {:?}", began.elapsed());
}
