//! A-17, A-18: whatever is asked for in whatever order, the library and its names stay sound.

use super::*;
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![Just(Place::Library), Just(task("t")), Just(task("u"))]
}

fn name() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("a_2")].prop_map(Arc::from)
}

fn id() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![Just("t"), Just("u")].prop_map(Arc::from)
}

/// A command that may or may not be allowed. Content has one name, so that most drafts are.
fn command() -> impl Strategy<Value = Command> {
    let version = || 0u8..8;
    let named = |n: u8| ["a", "b", "c"][usize::from(n) % 3];
    prop_oneof![
        3 => (place(), version(), proptest::collection::vec(version(), 0..2))
            .prop_map(move |(place, n, parents)| draft(place, n, named(n), &parents)),
        3 => (place(), version()).prop_map(|(place, n)| validate(place, n)),
        2 => (id(), version(), proptest::option::of(name()))
            .prop_map(|(task, n, name)| Command::Keep { task, version: hash(n), name }),
        2 => (id(), name(), version())
            .prop_map(|(task, name, n)| Command::Enhance { task, name, by: hash(n), reason: "r".into() }),
        2 => (id(), version()).prop_map(|(task, n)| Command::Prove { task, version: hash(n) }),
        3 => (place(), version(), proptest::option::of(name()))
            .prop_map(|(place, n, name)| Command::Publish { place, version: hash(n), name }),
        2 => (place(), version(), name(), proptest::collection::vec(name(), 0..3), proptest::collection::vec((id(), version()), 0..2))
            .prop_map(|(place, n, name, members, taken)| {
                let taken = taken.into_iter().map(|(id, n)| Taken { place: Place::Task(id), version: hash(n) });
                Command::Merge { place, version: hash(n), name, members, taken: taken.collect() }
            }),
        1 => (place(), version())
            .prop_map(|(place, n)| Command::Retire { place, version: hash(n), reason: "r".into() }),
        1 => (name(), version())
            .prop_map(|(name, n)| Command::Rollback { name, to: hash(n), reason: "r".into() }),
        1 => (version(), "[a-c]", any::<bool>()).prop_map(|(n, sample, ok)| record(n, &sample, ok, None)),
        1 => (name(), name()).prop_map(|(alias, name)| Command::Alias { alias, name }),
        1 => (id(), any::<bool>(), any::<bool>())
            .prop_map(|(task, publish, left)| Command::EndTask { task, publish, left }),
        1 => id().prop_map(|task| Command::ResumeTask { task }),
        1 => (id(), id(), 0i64..60).prop_map(|(task, from, until)| Command::TakeOver { task, from, until }),
        1 => (id(), id()).prop_map(|(run, key)| Command::Answer { run, key, answer: hash(0) }),
    ]
}

/// Commands in a row, some of which lead far.
fn commands(most: usize) -> impl Strategy<Value = Vec<Command>> {
    let named = |n: u8| ["a", "b", "c"][usize::from(n) % 3];
    let burst = prop_oneof![
        4 => command().prop_map(|command| vec![command]),
        2 => (id(), 0u8..8).prop_map(move |(id, n)| [private(&id, n, named(n)), vec![prove(&id, n)]].concat()),
        2 => (0u8..8).prop_map(move |n| public(n, named(n))),
    ];
    proptest::collection::vec(burst, 0..most).prop_map(|bursts| bursts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A-17: whatever is asked for, the library stays sound; a refusal says why; any prefix of the journal, written and
    /// read, folds to the same library.
    #[test]
    fn any_prefix_of_any_journal_is_a_sound_library(commands in commands(40)) {
        let mut library = Library::default();
        let mut journal = Vec::new();
        let mut prefixes = vec![library.clone()];
        for command in commands {
            match library.accept(command) {
                Ok(events) => for event in events {
                    journal.push(serde_json::to_string(&event).unwrap());
                    library.apply(journal.len() as i64, &event);
                    prefixes.push(library.clone());
                },
                Err(refusal) => prop_assert!(refusal.message.len() > 10 && !refusal.code.is_empty()),
            }
            sound(&library);
        }
        for (length, live) in prefixes.iter().enumerate() {
            let mut folded = Library::default();
            for (n, line) in journal[..length].iter().enumerate() {
                folded.apply(n as i64 + 1, &serde_json::from_str(line).unwrap());
            }
            prop_assert_eq!(&folded, live);
        }
    }

    /// A-18: the names that were kept at some time, and continued by what came since, mean what the whole library's do.
    #[test]
    fn kept_names_go_on_where_they_were(commands in commands(40), cut in 0usize..200) {
        let (mut library, mut journal) = (Library::default(), Vec::new());
        for command in commands {
            for event in library.accept(command).unwrap_or_default() {
                library.apply(0, &event);
                journal.push(event);
            }
        }
        let cut = cut.min(journal.len());
        let mut names = Names::default();
        journal[..cut].iter().for_each(|event| names.apply(event));
        let mut names: Names = serde_json::from_str(&serde_json::to_string(&names).unwrap()).unwrap();
        journal[cut..].iter().for_each(|event| names.apply(event));
        let whole = library.offered(None).into_iter().map(|(name, version)| (name, version.hash.clone()));
        prop_assert_eq!(names.offered(), whole.collect());
        prop_assert_eq!(names.events(), library.events());
    }

    /// An event that fits nothing changes nothing that matters, and never fails.
    #[test]
    fn apply_takes_any_events(commands in commands(20), skip in 0usize..7) {
        let mut library = Library::default();
        let mut events = Vec::new();
        for command in commands {
            for event in library.accept(command).unwrap_or_default() {
                library.apply(0, &event);
                events.push(event);
            }
        }
        let mut torn = Library::default();
        for (n, event) in events.iter().enumerate() {
            if n % 7 != skip {
                torn.apply(0, event);
            }
        }
        let _ = (torn.offered(Some("t")).len(), torn.free_name("a"), torn.lineage(&hash(1)).len());
    }

    /// Several commands at once are all or nothing, and lead where they lead one after the other.
    #[test]
    fn together_or_not_at_all(commands in commands(6)) {
        let mut one_by_one = Library::default();
        let mut refused = false;
        for command in &commands {
            match one_by_one.accept(command.clone()) {
                Ok(events) => events.iter().for_each(|event| one_by_one.apply(0, event)),
                Err(_) => { refused = true; break }
            }
        }
        match Library::default().accept_all(commands) {
            Err(_) => prop_assert!(refused),
            Ok(events) => {
                prop_assert!(!refused);
                let mut library = Library::default();
                events.iter().for_each(|event| library.apply(0, event));
                prop_assert_eq!(library, one_by_one);
            }
        }
    }
}
