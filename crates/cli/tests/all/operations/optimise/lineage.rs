//! V-09: a tool stands for all that it was merged with, also where it was there before and not made of them.

use super::*;

/// A merge that takes one of its members leaves that with the work of the others, which a later merge may not lose.
#[tokio::test]
async fn v09_what_a_member_has_taken_in_is_not_lost_later() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    let fields = "    x: int | None = None\n    n: int | None = None";
    let both = tool("double", fields, "    return {'y': 2 * (i.n if i.x is None else i.x)}");
    let both = has(store, Place::Library, "double", &both, &[], &[twice(7)]);
    let by_n = (json!({"n": 5}), Ok(json!({"y": 10})));
    let only = format!("    # {}\n    return {{'y': 2 * i.n}}", "longer than the other one, ".repeat(5));
    let only = tool("double", "    n: int", &only);
    let only = has(store, task("r1"), "double", &only, &[], std::slice::from_ref(&by_n));
    let done = optimised(&process, NAIVE, &["r1"], nobody()).await;
    assert_eq!(changes(&done), [change_of("double", "merged", 1)], "{done}");
    let library = process.library();
    assert_eq!(library.public("double").unwrap().hash, both);
    assert_eq!(library.version(&both).unwrap().members, std::slice::from_ref(&only));

    // Another way to say it, and a coder whose first tool forgets the one before.
    let by_m = tool("double", "    m: int", "    return {'y': 2 * i.m}");
    has(store, task("r2"), "double", &by_m, &[], &[(json!({"m": 3}), Ok(json!({"y": 6})))]);
    let written = |fields: &str, names: &str| {
        let body = format!("    return {{'y': 2 * [v for v in ({names}) if v is not None][0]}}");
        tool("double", fields, &body)
    };
    let forgets = written("    x: int | None = None\n    m: int | None = None", "i.x, i.m");
    let all = "    x: int | None = None\n    n: int | None = None\n    m: int | None = None";
    let (forgets, all) = (forgets, written(all, "i.x, i.n, i.m"));
    let turns = Mutex::new(0);
    let coder = Said::by(move |_, _| {
        let mut turns = turns.lock().unwrap();
        *turns += 1;
        Some(format!("```python\n{}```", if *turns == 1 { &forgets } else { &all }))
    });
    let process = Process::start(&folder, "again").await;
    let done = optimised(&process, WRITTEN, &["r2"], Arc::clone(&coder)).await;
    assert_eq!(changes(&done), [change_of("double", "merged", 2)], "{done}");
    let told = coder.told("write");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("{\"n\":5}"), "{}", told[1]);
    let library = process.library();
    let head = library.head(&Place::Library, "double").unwrap();
    assert!(library.lineage(head).iter().any(|version| version.hash == only));
    assert_eq!(library.public("double").unwrap().reports[0].1.passed, 3);
}
