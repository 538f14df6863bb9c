//! A-17 to A-19, V-05, V-09: what may become of a tool.

use super::*;
use crate::fault::FaultKind;

mod journals;

fn hash(n: u8) -> Arc<str> {
    format!("{n:064x}").into()
}

fn task(id: &str) -> Place {
    Place::Task(id.into())
}

fn draft(place: Place, n: u8, name: &str, parents: &[u8]) -> Command {
    Command::Draft {
        place,
        version: hash(n),
        name: name.into(),
        author: Author::Coder { coder: None, model: Some("m".into()) },
        parents: parents.iter().map(|parent| hash(*parent)).collect(),
        members: Vec::new(),
        request: "a tool that adds".into(),
    }
}

fn validate(place: Place, n: u8) -> Command {
    Command::Validate { place, version: hash(n), facts: Facts::default() }
}

fn publish(place: Place, n: u8) -> Command {
    Command::Publish { place, version: hash(n), name: None }
}

/// A merge of public names and proven versions of tasks.
fn merge(place: Place, n: u8, name: &str, members: &[&str], taken: &[(&str, u8)]) -> Command {
    let members = members.iter().map(|member| Arc::from(*member)).collect();
    let taken = taken.iter().map(|(id, n)| Taken { place: task(id), version: hash(*n) }).collect();
    Command::Merge { place, version: hash(n), name: name.into(), members, taken }
}

fn record(n: u8, sample: &str, ok: bool, origin: Option<(&str, &str)>) -> Command {
    let origin = origin.map(|(run, effect)| Origin { run: run.into(), effect: effect.into(), folder: None });
    let fault = (!ok).then_some(FaultKind::ExecutionFailure);
    Command::Record {
        version: hash(n),
        call: Call { sample: sample.into(), ok, fault, origin, ..Call::default() },
        bytes: 10,
    }
}

/// A library after these commands, all of which must be allowed.
fn library(commands: Vec<Command>) -> Library {
    let mut library = Library::default();
    for (at, command) in commands.into_iter().enumerate() {
        let events = library.accept(command.clone()).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        events.iter().for_each(|event| library.apply(at as i64, event));
    }
    library
}

/// A public tool of everybody's.
fn public(n: u8, name: &str) -> Vec<Command> {
    vec![draft(Place::Library, n, name, &[]), validate(Place::Library, n), publish(Place::Library, n)]
}

/// A task's own tool, in use.
fn private(id: &str, n: u8, name: &str) -> Vec<Command> {
    let keep = Command::Keep { task: id.into(), version: hash(n), name: None };
    vec![draft(task(id), n, name, &[]), validate(task(id), n), keep]
}

fn prove(id: &str, n: u8) -> Command {
    Command::Prove { task: id.into(), version: hash(n) }
}

fn end(id: &str, publish: bool) -> Command {
    Command::EndTask { task: id.into(), publish, left: false }
}

#[track_caller]
fn refusal(library: &Library, command: Command, code: &str) {
    let error = library.accept(command).expect_err("it is refused");
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.len() > 10, "{error}");
}

/// What holds of every library.
fn sound(library: &Library) {
    let mut meant = BTreeSet::new();
    for (place, shelf) in &library.shelves {
        for (name, head) in library.heads(place).into_iter().flatten() {
            let version = library.version(head).expect("a head is known");
            assert!(version.facts.is_some(), "`{name}` is a valid tool");
            let stage = version.stage(place);
            let wanted = if *place == Place::Library { Stage::Public } else { Stage::Private };
            assert_eq!(stage, Some(wanted), "`{name}` is in use in {place:?}");
            assert!(shelf.past[name].contains(head), "`{name}` knows what it has meant");
            assert!(meant.insert((place, head)), "a version is in use by one name of a place");
        }
    }
    // Nothing is in use that no name means.
    for version in library.versions() {
        for (place, life) in &version.lives {
            if life.stage == Stage::Public && *place == Place::Library || life.stage == Stage::Private {
                assert!(meant.contains(&(place, &version.hash)), "{} in {place:?} has a name", version.hash);
            }
        }
        assert!(version.calls.len() <= GOOD_CALLS + FAILING_CALLS);
    }
    for name in library.known_names() {
        assert!(
            library.public(library.resolve(name)).map(|known| &known.hash)
                == library.public(name).map(|v| &v.hash)
        );
    }
}

#[test]
fn what_a_name_meant_elsewhere_comes_back_as_it_was() {
    let restore = |n: u8, stage: Stage| Command::Restore {
        version: hash(n),
        name: "tool".into(),
        stage,
        reason: "better before".into(),
    };
    let drafted = |n: u8| vec![draft(Place::Library, n, "tool", &[]), validate(Place::Library, n)];
    let mut commands = public(1, "other");
    for (n, stage) in [(2, Stage::RolledBack), (3, Stage::Enhanced)] {
        commands.extend(drafted(n));
        commands.push(restore(n, stage));
    }
    commands.extend(public(4, "tool"));
    commands.extend(drafted(5));
    commands.push(restore(5, Stage::Retired));
    let library = library(commands);
    sound(&library);
    assert_eq!(library.public("tool").map(|known| &known.hash), Some(&hash(4)));
    assert_eq!(library.past(&Place::Library, "tool"), [2, 3, 4, 5].map(hash));
    let stages = [2, 3, 4, 5].map(|n| library.version(&hash(n)).unwrap().stage(&Place::Library).unwrap());
    assert_eq!(stages, [Stage::RolledBack, Stage::Enhanced, Stage::Public, Stage::Retired]);
    assert_eq!(library.version(&hash(2)).unwrap().shown().reason, "better before");
    // Nothing that is in use is restored, nor as something in use.
    assert_eq!(library.accept(restore(4, Stage::Enhanced)).unwrap_err().code, "illegal-transition");
    let again = library.accept_all(drafted(6).into_iter().chain([restore(6, Stage::Public)]));
    assert_eq!(again.unwrap_err().code, "illegal-transition");
    // What was restored can be taken up again.
    let back = Command::Rollback { name: "tool".into(), to: hash(2), reason: String::new() };
    assert!(library.accept(back).is_ok());
}

#[test]
fn a17_a_tool_goes_from_draft_to_public_and_every_step_is_in_its_history() {
    let mut commands = private("t", 1, "add");
    commands.extend([
        prove("t", 1),
        draft(task("t"), 2, "add", &[1]),
        validate(task("t"), 2),
        Command::Enhance { task: "t".into(), name: "add".into(), by: hash(2), reason: "it failed".into() },
        prove("t", 2),
        publish(task("t"), 2),
    ]);
    let library = library(commands);
    assert_eq!(library.public("add").unwrap().hash, hash(2));
    let old = library.version(&hash(1)).unwrap();
    assert_eq!((old.shown().stage, &*old.shown().reason), (Stage::Enhanced, "it failed"));
    let lineage: Vec<_> = library.lineage(&hash(2)).into_iter().map(|version| &version.hash).collect();
    assert_eq!(lineage, [&hash(2), &hash(1)]);
    assert_eq!(old.author, Author::Coder { coder: None, model: Some("m".into()) });
    assert_eq!(old.request, "a tool that adds");
}

#[test]
fn a17_steps_that_are_left_out_are_refused_with_a_reason() {
    let here = library(vec![draft(Place::Library, 1, "add", &[])]);
    refusal(&here, publish(Place::Library, 1), "illegal-transition");
    refusal(&here, draft(Place::Library, 1, "add", &[]), "version-known");
    refusal(&here, draft(Place::Library, 1, "other", &[]), "bad-name");
    refusal(&here, draft(Place::Library, 2, "add", &[7]), "unknown-version");
    refusal(&here, record(1, "s", true, None), "not-validated");
    refusal(&here, record(9, "s", true, None), "unknown-version");
    let mut own = private("t", 1, "add");
    own.extend([draft(task("t"), 2, "add", &[]), validate(task("t"), 2)]);
    let own = library(own);
    refusal(&own, publish(task("t"), 1), "not-proven");
    refusal(&own, Command::Keep { task: "t".into(), version: hash(2), name: None }, "name-taken");
    let other = Command::Enhance { task: "t".into(), name: "add".into(), by: hash(2), reason: String::new() };
    refusal(&own, other, "not-a-child");
    let retired = Command::Retire { place: task("t"), version: hash(1), reason: "three failures".into() };
    let after = library([private("t", 1, "add"), vec![retired.clone()]].concat());
    refusal(&after, retired, "illegal-transition");
    assert_eq!(after.for_task("t", "add"), None);
    assert_eq!(after.version(&hash(1)).unwrap().shown().reason, "three failures");
}

#[test]
fn a18_a_tasks_own_tool_stands_before_the_public_one_for_that_task_alone() {
    let library = library([public(1, "add"), private("t", 2, "add")].concat());
    assert_eq!(library.for_task("t", "add").unwrap().hash, hash(2));
    assert_eq!(library.for_task("u", "add").unwrap().hash, hash(1));
    assert_eq!(library.public("add").unwrap().hash, hash(1));
    assert_eq!(library.offered(Some("t"))["add"].hash, hash(2));
    assert_eq!(library.offered(None)["add"].hash, hash(1));
}

#[test]
fn a19_at_the_end_of_a_task_the_proven_become_public_and_the_others_retire() {
    let tools = || [private("t", 1, "good"), vec![prove("t", 1)], private("t", 2, "bad")].concat();
    let published = library([tools(), vec![end("t", true)]].concat());
    assert_eq!(published.public("good").unwrap().hash, hash(1));
    assert_eq!(published.public("bad"), None);
    assert_eq!(published.version(&hash(2)).unwrap().shown().stage, Stage::Retired);
    let kept = library([tools(), vec![end("t", false)]].concat());
    assert_eq!(kept.public("good"), None);
    assert_eq!(kept.for_task("t", "good").unwrap().hash, hash(1));
    assert_eq!(kept.version(&hash(2)).unwrap().shown().stage, Stage::Retired);
    assert_eq!(published.accept(end("t", true)), Ok(Vec::new()), "once is enough");
}

#[test]
fn v05_a_name_that_a_tool_of_other_origin_has_gets_a_number() {
    let commands = [public(1, "add"), private("t", 2, "add"), vec![prove("t", 2), end("t", true)]].concat();
    let library = library(commands);
    assert_eq!(library.public("add").unwrap().hash, hash(1));
    assert_eq!(library.public("add_2").unwrap().hash, hash(2));
    assert_eq!(&*library.free_name("add"), "add_3");
}

#[test]
fn a16_a_better_version_of_a_public_tool_is_the_tasks_own_until_it_is_published() {
    let mut commands = public(1, "add");
    commands.extend([
        draft(task("t"), 2, "add", &[1]),
        validate(task("t"), 2),
        Command::Enhance { task: "t".into(), name: "add".into(), by: hash(2), reason: "fails at 0".into() },
    ]);
    let during = library(commands.clone());
    assert_eq!(during.for_task("t", "add").unwrap().hash, hash(2));
    assert_eq!(during.public("add").unwrap().hash, hash(1));
    assert_eq!(during.version(&hash(1)).unwrap().shown().stage, Stage::Public);
    commands.extend([prove("t", 2), end("t", true)]);
    let after = library(commands);
    assert_eq!(after.public("add").unwrap().hash, hash(2), "it descends from it, so the name stays");
    assert_eq!(after.past(&Place::Library, "add"), [hash(1), hash(2)]);
}

#[test]
fn v09_names_of_merged_tools_lead_to_the_one_that_does_their_work() {
    let mut commands = [public(1, "add"), public(2, "sum"), public(3, "plus")].concat();
    commands.extend([
        Command::Alias { alias: "total".into(), name: "sum".into() },
        draft(Place::Library, 4, "add", &[1, 2]),
        validate(Place::Library, 4),
        merge(Place::Library, 4, "add", &["add", "sum"], &[]),
    ]);
    let merged = library(commands.clone());
    for name in ["add", "sum", "total"] {
        assert_eq!(merged.public(name).unwrap().hash, hash(4), "{name}");
    }
    assert_eq!(merged.resolve("total"), "add");
    assert_eq!(merged.version(&hash(2)).unwrap().shown().stage, Stage::Merged);
    assert_eq!(merged.public("plus").unwrap().hash, hash(3));
    // What was merged can be taken apart again.
    let back = Command::Rollback { name: "sum".into(), to: hash(2), reason: "too slow".into() };
    let back = library([commands, vec![back]].concat());
    assert_eq!(back.public("sum").unwrap().hash, hash(2));
    assert_eq!(back.public("total").unwrap().hash, hash(2));
    assert_eq!(back.public("add").unwrap().hash, hash(4));
}

#[test]
fn v09_versions_of_tasks_are_merged_without_a_name_of_their_own() {
    let proven = |id: &str, n: u8, name: &str| [private(id, n, name), vec![prove(id, n)]].concat();
    let mut commands = [public(1, "add"), proven("t", 2, "sum"), proven("u", 3, "plus")].concat();
    let before = library(commands.clone());
    refusal(&before, merge(task("t"), 2, "add", &[], &[]), "name-taken");
    refusal(&before, merge(task("t"), 2, "sum", &[], &[]), "bad-merge");
    refusal(&before, merge(task("t"), 2, "sum", &[], &[("t", 2)]), "bad-merge");
    refusal(&before, merge(task("t"), 1, "add", &["add"], &[]), "illegal-transition");
    refusal(&library(private("t", 1, "a")), merge(task("t"), 1, "a", &[], &[]), "not-proven");
    // The task's version takes the place of the public one, and of another task's.
    commands.push(merge(task("t"), 2, "add", &["add"], &[("u", 3)]));
    let merged = library(commands.clone());
    assert_eq!(merged.public("add").unwrap().hash, hash(2));
    assert_eq!(merged.version(&hash(1)).unwrap().stage(&Place::Library), Some(Stage::Enhanced));
    for place in [task("u"), Place::Library] {
        assert_eq!(merged.version(&hash(3)).unwrap().stage(&place), Some(Stage::Merged));
    }
    assert!(merged.aliases().is_empty(), "nobody has called the others by a name of everybody's");
    assert_eq!((merged.for_task("u", "plus"), merged.for_task("t", "sum")), (None, None));
    assert_eq!(merged.past(&Place::Library, "add"), [hash(1), hash(3), hash(2)]);
    sound(&merged);
    // What it was made of can be had again.
    commands.push(Command::Rollback { name: "add".into(), to: hash(3), reason: "better".into() });
    let back = library(commands);
    assert_eq!(back.public("add").unwrap().hash, hash(3));
    sound(&back);
}

/// V-09: a merge takes no name from those that it leads elsewhere.
#[test]
fn v09_a_name_that_leads_to_another_tool_is_taken() {
    let mut commands = [public(1, "add"), public(2, "sum"), public(3, "mean")].concat();
    commands.push(merge(Place::Library, 1, "add", &["add", "sum"], &[]));
    let merged = library([commands.clone(), public(4, "plus")].concat());
    refusal(&merged, merge(Place::Library, 4, "sum", &["plus", "mean"], &[]), "name-taken");
    assert_eq!(
        merged.accept(merge(Place::Library, 4, "sum", &["plus", "add"], &[])).map(|it| it.len()),
        Ok(1)
    );
}

/// Journals of versions before tasks' tools were merged mean what they meant.
#[test]
fn merges_of_earlier_journals_are_read() {
    let line = r#"{"kind":"merged","version":"v","name":"add","members":["sum"]}"#;
    let read: Event = serde_json::from_str(line).unwrap();
    let Event::Merged { place, taken, .. } = &read else { panic!("{read:?}") };
    assert_eq!((place, taken.len()), (&Place::Library, 0));
    assert_eq!(serde_json::to_string(&read).unwrap(), line);
}

#[test]
fn a17_a_rollback_can_be_taken_back_and_loses_nothing() {
    let second =
        [draft(Place::Library, 2, "add", &[1]), validate(Place::Library, 2), publish(Place::Library, 2)];
    let commands = [public(1, "add"), second.into()].concat();
    let to = |n: u8| Command::Rollback { name: "add".into(), to: hash(n), reason: "worse".into() };
    let back = library([commands.clone(), vec![to(1)]].concat());
    assert_eq!(back.public("add").unwrap().hash, hash(1));
    assert_eq!(back.version(&hash(2)).unwrap().shown().stage, Stage::RolledBack);
    let again = library([commands, vec![to(1), to(2)]].concat());
    assert_eq!(again.public("add").unwrap().hash, hash(2));
    refusal(&again, to(2), "same-version");
    refusal(&again, to(3), "unknown-version");
    let never = Command::Rollback { name: "never".into(), to: hash(1), reason: String::new() };
    refusal(&again, never, "unknown-tool");
}

#[test]
fn a15_calls_are_kept_once_and_within_their_limits() {
    let mut here = library(public(1, "add"));
    let mut make = |command| {
        let events = here.accept(command).unwrap();
        events.iter().for_each(|event| here.apply(0, event));
        events.len()
    };
    assert_eq!(make(record(1, "a", true, Some(("r", "e1")))), 1);
    assert_eq!(make(record(1, "a", true, Some(("r", "e1")))), 0, "the same call");
    assert_eq!(make(record(1, "b", true, Some(("r", "e1")))), 0, "the same effect");
    assert_eq!(make(record(1, "a", true, Some(("r", "e2")))), 0, "the same content");
    let good: usize = (0..200).map(|n| make(record(1, &format!("good {n}"), true, None))).sum();
    let failing: usize = (0..200).map(|n| make(record(1, &format!("bad {n}"), false, None))).sum();
    assert_eq!((good + 1, failing), (GOOD_CALLS, FAILING_CALLS));
    assert_eq!(GOOD_CALLS + FAILING_CALLS, 100);
}

#[test]
fn a15_large_calls_are_kept_as_long_as_there_is_room_and_then_counted() {
    let mut here = library(public(1, "add"));
    let mut make = |sample: &str, origin, bytes| {
        let Command::Record { version, call, .. } = record(1, sample, true, origin) else { unreachable!() };
        let events = here.accept(Command::Record { version, call, bytes }).unwrap();
        events.iter().for_each(|event| here.apply(0, event));
        let known = here.version(&hash(1)).unwrap();
        (events.len(), known.calls.len(), known.left_out)
    };
    assert_eq!(make("small", None, CALL_BYTES), (1, 1, 0));
    assert_eq!(make("large", Some(("r", "e1")), 40 << 20), (1, 2, 0));
    assert_eq!(make("larger", Some(("r", "e2")), 30 << 20), (1, 2, 1), "it is counted");
    assert_eq!(make("larger", Some(("r", "e2")), 30 << 20), (0, 2, 1), "once");
    assert_eq!(make("from a file", None, 30 << 20), (0, 2, 1));
    assert_eq!(make("fits", None, 24 << 20), (1, 3, 1));
}

#[test]
fn samples_tell_null_from_nothing() {
    let sample: Sample = serde_json::from_str(r#"{"arguments":{},"output":null}"#).unwrap();
    assert_eq!((sample.wrong(), &sample.output), (None, &Some(Value::Null)));
    assert_eq!(serde_json::to_string(&sample).unwrap(), r#"{"arguments":{},"output":null}"#);
    for wrong in [
        r#"{"arguments":{}}"#,
        r#"{"arguments":1,"output":1}"#,
        r#"{"arguments":{},"output":1,"fault":{"kind":"input_error"}}"#,
    ] {
        assert!(serde_json::from_str::<Sample>(wrong).unwrap().wrong().is_some(), "{wrong}");
    }
    assert!(serde_json::from_str::<Sample>(r#"{"arguments":{},"outputs":1}"#).is_err());
}

/// V-10: what is taken back of a change leaves it as if that had never been accepted.
#[test]
fn v10_what_is_taken_back_has_left_nothing() {
    let before = library(public(1, "adds"));
    let mut change = Change::new(&before);
    public(2, "doubles").into_iter().for_each(|command| change.accept(command).unwrap());
    let (kept, after) = (change.len(), change.after().clone());
    public(3, "halves").into_iter().for_each(|command| change.accept(command).unwrap());
    assert_ne!(*change.after(), after);
    change.take_back(&before, kept);
    assert_eq!((change.len(), change.after()), (kept, &after));
}
