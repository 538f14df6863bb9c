//! V-10: two evolutions optimise one library at the same time, in whichever order their operations come: neither undoes what the other did.

use super::*;
use selvedge_engine::Operated;
use selvedge_runtime::Operations;
use selvedge_world::rng::Rng;
use tokio::sync::oneshot;

/// Who comes next, where both have something to do.
struct Order {
    rng: Rng,
    /// Runs that have not ended.
    live: Vec<usize>,
    waiting: Vec<(usize, oneshot::Sender<()>)>,
    /// Who came, one after the other.
    came: String,
}

impl Order {
    fn next(&mut self) {
        let ready = |run: &usize| self.waiting.iter().any(|(of, _)| of == run);
        if self.live.is_empty() || !self.live.iter().all(ready) {
            return;
        }
        let at = self.rng.below(self.waiting.len());
        let (run, turn) = self.waiting.remove(at);
        self.came.push(if run == 0 { 'a' } else { 'b' });
        // Whoever is not there any more has been dropped.
        let _ = turn.send(());
    }
}

/// Operations that wait for their turn.
struct InTurn {
    own: Arc<dyn Operations>,
    run: usize,
    order: Arc<Mutex<Order>>,
}

impl Operations for InTurn {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        let (work, order, run) = (self.own.call(request, context), Arc::clone(&self.order), self.run);
        Box::pin(async move {
            let (turn, came) = oneshot::channel();
            {
                let mut order = order.lock().unwrap();
                order.waiting.push((run, turn));
                order.next();
            }
            came.await.unwrap();
            let done = work.await;
            // What follows from it asks for its own turn; what waits beside it may come before that.
            tokio::task::yield_now().await;
            order.lock().unwrap().next();
            done
        })
    }
}

async fn evolve(process: &Process, run: usize, order: &Arc<Mutex<Order>>, model: Arc<Said>) -> Value {
    let operations = InTurn { own: Arc::clone(&process.operations), run, order: Arc::clone(order) };
    let done = driven(process, ["r1", "r2"][run], operations, model).await;
    let mut order = order.lock().unwrap();
    order.live.retain(|live| *live != run);
    order.next();
    done
}

/// Optimises the library with what a run has proved, by these operations.
async fn driven(
    process: &Process,
    of: &str,
    operations: impl Operations + 'static,
    model: Arc<Said>,
) -> Value {
    let mut state = begin(&process.store, &process.run, WRITTEN, &[of]).await;
    let driver = Driver::new(model, Arc::new(process.catalogue.clone()), Limits::default());
    let driver = driver.with_operations(Arc::new(operations));
    let mut journal = Journal::stored(Arc::clone(&process.store), process.run.as_str(), state.events());
    let halt =
        driver.drive(&process.run, &mut state, &mut journal, Vec::new(), &mut Controls::default()).await;
    assert_eq!(halt.unwrap(), Halt::Ended);
    assert!(state.view().fault().is_none(), "{:?}", state.view().fault());
    state.view().output().clone()
}

/// A coder who writes what takes all inputs, each time another file.
fn coder() -> Arc<Said> {
    let written = Mutex::new(0);
    Said::by(move |node, _| {
        assert_eq!(node, "write");
        let mut written = written.lock().unwrap();
        *written += 1;
        let fields = "    x: int | None = None\n    n: int | None = None\n    m: int | None = None";
        let body = format!(
            "    return {{'y': 2 * [v for v in (i.x, i.n, i.m) if v is not None][0]}}\n    # {written}"
        );
        Some(format!("```python\n{}```", tool("double", fields, &body)))
    })
}

/// One order of operations; which it was.
async fn interleaved(seed: u64) -> String {
    let folder = Folder::new();
    let (a, b) = (Process::start(&folder, "a").await, Process::start(&folder, "b").await);
    let file = |field: &str| {
        tool("double", &format!("    {field}: int"), &format!("    return {{'y': 2 * i.{field}}}"))
    };
    let call = |field: &str| vec![(json!({ field: 7 }), Ok(json!({"y": 14})))];
    let old = has(&a.store, Place::Library, "double", &file("x"), &[], &call("x"));
    let first = has(&a.store, task("r1"), "double", &file("n"), &[], &call("n"));
    let second = has(&a.store, task("r2"), "double", &file("m"), &[], &call("m"));
    let order = Order { rng: Rng::new(seed), live: vec![0, 1], waiting: Vec::new(), came: String::new() };
    let (order, coder) = (Arc::new(Mutex::new(order)), coder());
    let done =
        tokio::join!(evolve(&a, 0, &order, Arc::clone(&coder)), evolve(&b, 1, &order, Arc::clone(&coder)));
    let (library, came) = (a.library(), order.lock().unwrap().came.clone());
    let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
    assert_eq!(names, ["double"], "seed {seed}, {came}: {done:?}");
    let head = library.head(&Place::Library, "double").unwrap();
    // What has its place does the work of all that there was.
    let serves: Vec<&str> = library.lineage(head).into_iter().map(|version| &*version.hash).collect();
    for version in [&old, &first, &second] {
        assert!(serves.contains(&&**version), "seed {seed}, {came}: {version} is lost: {done:?}");
    }
    let public = library.public("double").unwrap();
    assert!(public.reports.iter().any(|(_, report)| report.passed >= 3), "seed {seed}, {came}: {public:?}");
    came
}

/// `SELVEDGE_INTERLEAVINGS=1000` takes as many orders.
#[tokio::test]
async fn v10_two_evolutions_at_once_undo_nothing_of_each_other() {
    let all = std::env::var("SELVEDGE_INTERLEAVINGS").ok().and_then(|all| all.parse().ok()).unwrap_or(3u64);
    let mut orders = std::collections::BTreeSet::new();
    for seed in 1..=all {
        orders.insert(interleaved(seed).await);
        println!("{seed} of {all}: {} orders", orders.len());
    }
    assert!(orders.len() > 1, "{orders:?}");
}

/// Operations that say that they are about to publish, and then wait.
struct Publishing {
    own: Arc<dyn Operations>,
    says: Mutex<Option<oneshot::Sender<()>>>,
    waits: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Publishing {
    fn new(process: &Process, says: oneshot::Sender<()>, waits: oneshot::Receiver<()>) -> Self {
        let own = Arc::clone(&process.operations);
        Self { own, says: Mutex::new(Some(says)), waits: Mutex::new(Some(waits)) }
    }
}

impl Operations for Publishing {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        let waits = if &*request.node == "publish" { self.waits.lock().unwrap().take() } else { None };
        let Some(waits) = waits else { return self.own.call(request, context) };
        // Whoever does not listen or say anything any more has ended.
        self.says.lock().unwrap().take().map(|says| says.send(()));
        let work = self.own.call(request, context);
        Box::pin(async move {
            let _ = waits.await;
            work.await
        })
    }
}

/// V-05, V-10: what the one has written is, when it comes to publish it, public already, since the other has written the same: it is
/// that tool, and nothing else that it has proved is lost.
#[tokio::test]
async fn v10_what_others_have_made_meanwhile_is_one_tool() {
    let folder = Folder::new();
    let (a, b) = (Process::start(&folder, "a").await, Process::start(&folder, "b").await);
    let proves = |run: &str, name: &str, field: &str| {
        let body = format!("    # as {run} has it\n    return {{'y': 2 * i.{field}}}");
        let text = tool(name, &format!("    {field}: int"), &body);
        has(&a.store, task(run), name, &text, &[], &[(json!({ field: 7 }), Ok(json!({"y": 14})))])
    };
    for run in ["r1", "r2"] {
        let text = tool("double", X, "    # as both have it\n    return {'y': 2 * i.x}");
        has(&a.store, task(run), "double", &text, &[], &[twice(7)]);
    }
    let (first, second) = (proves("r1", "double_2", "n"), proves("r2", "double_2", "m"));
    let half = tool("half", X, "    return {'y': i.x / 2}");
    let half = has(&a.store, task("r2"), "half", &half, &[], &[(json!({"x": 4}), Ok(json!({"y": 2})))]);
    let fields = "    x: int | None = None\n    n: int | None = None\n    m: int | None = None";
    let body = "    return {'y': 2 * [v for v in (i.x, i.n, i.m) if v is not None][0]}";
    let text = tool("double", fields, body);
    let written = BlobHash::of(text.as_bytes()).to_string();
    let coder = Said::by(move |_, _| Some(format!("```python\n{text}```")));
    // Both have come to what they want to publish; then the one does it, and the other one when that is done.
    let ((a_says, unheard), (b_says, b_is_there), (ended, a_ended)) =
        (oneshot::channel(), oneshot::channel(), oneshot::channel());
    let first_of_both = async {
        let done = driven(&a, "r1", Publishing::new(&a, a_says, b_is_there), Arc::clone(&coder)).await;
        let _ = ended.send(());
        done
    };
    let then = driven(&b, "r2", Publishing::new(&b, b_says, a_ended), Arc::clone(&coder));
    let (one, other) = tokio::join!(first_of_both, then);
    drop(unheard);
    let library = b.library();
    let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
    assert_eq!(names, ["double", "half"], "{one} {other}");
    let public = |name: &str| library.public(name).unwrap().hash.to_string();
    assert_eq!((public("double"), public("half")), (written, half.to_string()));
    assert_eq!(changes(&one), [change_of("double", "merged", 2)], "{one}");
    assert_eq!(
        changes(&other),
        [change_of("double", "merged", 2), change_of("half", "created", 0)],
        "{other}"
    );
    assert_eq!(other["separate"], json!([]), "{other}");
    assert_eq!([stage(&library, &first), stage(&library, &second)], [Some(Stage::Merged); 2]);
    // Whoever merges it with others has to repeat what is known of both (V-09).
    let serves = library.lineage(&library.public("double").unwrap().hash);
    for version in [&first, &second] {
        assert!(serves.iter().any(|known| known.hash == *version), "{version}");
    }
}
