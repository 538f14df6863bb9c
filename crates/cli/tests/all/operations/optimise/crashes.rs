//! V-10: a process dies at each operation of an optimisation, and another one goes on: the public library is as before until it is as
//! after.

use super::*;
use selvedge_engine::Operated;
use selvedge_runtime::{Operations, load};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Operations of a process that dies at one of them: before it does anything, or before anybody hears of what it did.
struct Dying {
    own: Arc<dyn Operations>,
    asked: AtomicUsize,
    at: usize,
    done_first: bool,
    dead: Arc<Notify>,
}

impl Operations for Dying {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
            return self.own.call(request, context);
        }
        let (work, dead) = (self.own.call(request, context), Arc::clone(&self.dead));
        let done_first = self.done_first;
        Box::pin(async move {
            if done_first {
                work.await.unwrap();
            }
            dead.notify_one();
            std::future::pending().await
        })
    }
}

fn coder() -> Arc<Said> {
    let both = "    x: int | None = None\n    n: int | None = None";
    let good = tool("double", both, "    return {'y': 2 * (i.n if i.x is None else i.x)}");
    Said::by(move |_, _| Some(format!("```python\n{good}```")))
}

/// What everybody's names mean.
fn public(process: &Process) -> BTreeMap<String, String> {
    let library = process.library();
    let offered = library.offered(None).into_iter();
    offered.map(|(name, version)| (name.to_string(), version.hash.to_string())).collect()
}

/// Drives the run until it ends, or until the process dies at its n-th operation; says how many there were.
async fn drive(process: &Process, state: &mut State, dies: Option<(usize, bool)>) -> Option<usize> {
    let dead = Arc::new(Notify::new());
    let (at, done_first) = dies.unwrap_or((0, false));
    let (own, asked) = (Arc::clone(&process.operations), AtomicUsize::new(0));
    let operations = Arc::new(Dying { own, asked, at, done_first, dead: Arc::clone(&dead) });
    let driver = Driver::new(coder(), Arc::new(process.catalogue.clone()), Limits::default());
    let driver = driver.with_operations(Arc::clone(&operations) as Arc<dyn Operations>);
    let mut journal = Journal::stored(Arc::clone(&process.store), process.run.as_str(), state.events());
    let mut controls = Controls::default();
    tokio::select! {
        halt = driver.drive(&process.run, state, &mut journal, Vec::new(), &mut controls) => {
            assert_eq!(halt.unwrap(), Halt::Ended);
            Some(operations.asked.load(Ordering::SeqCst))
        }
        () = dead.notified() => None,
    }
}

#[tokio::test]
async fn v10_the_library_is_as_before_or_as_after_wherever_a_process_dies() {
    let mut whole: Option<(BTreeMap<String, String>, Value)> = None;
    let (mut next, mut all) = (0usize, 0usize);
    while next <= 2 * all {
        let dies = (next > 0).then(|| (next.div_ceil(2), next % 2 == 0));
        next += 1;
        let folder = Folder::new();
        let process = Process::start(&folder, "opt").await;
        let store = &process.store;
        let double = tool("double", X, "    return {'y': 2 * i.x}");
        has(store, Place::Library, "double", &double, &[], &[twice(1)]);
        let calls = [(json!({"n": 7}), Ok(json!({"y": 14})))];
        has(
            store,
            task("r1"),
            "double",
            &tool("double", "    n: int", "    return {'y': i.n + i.n}"),
            &[],
            &calls,
        );
        let calls = [(json!({"x": 4}), Ok(json!({"y": 2})))];
        has(store, task("r1"), "half", &tool("half", X, "    return {'y': i.x / 2}"), &[], &calls);
        let before = public(&process);
        let mut state = begin(store, "opt", WRITTEN, &["r1"]).await;
        let ended = drive(&process, &mut state, dies).await;
        let Some((after, output)) = &whole else {
            all = ended.unwrap();
            assert!(all > 5, "{all}");
            whole = Some((public(&process), state.view().output().clone()));
            continue;
        };
        assert_eq!(ended, None, "{dies:?}");
        let found = public(&process);
        assert!(found == before || found == *after, "{dies:?}: {found:?}");
        drop(process);
        let process = Process::start(&folder, "opt").await;
        state = load(&process.store, "opt", None, None).unwrap().state;
        drive(&process, &mut state, None).await.unwrap();
        assert_eq!((&public(&process), state.view().output()), (after, output), "{dies:?}");
    }
}
