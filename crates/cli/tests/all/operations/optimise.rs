//! What becomes of a batch's tools (V-05 … V-10), with real tools in the real sandbox: the graph of an optimisation, driven.

mod crashes;
mod interleaved;
mod lineage;
mod random;

use super::*;
use selvedge_dialects::agent::Settings;
use selvedge_dialects::evolve::{Clustering, Merging, Optimise, optimise};
use selvedge_engine::library::{Author, Change, Command, Facts, Library, Place, Stage};
use selvedge_engine::{EDITION, Graph, Input, ModelReply, ModelRequest, Record, Start, State, Table};
use selvedge_host::library::{Decided, change};
use selvedge_runtime::{Controls, Driver, Halt, Journal, Limits, Model, Pending};
use selvedge_store::{BlobHash, Entry, NewRun, RunStatus};
use std::sync::Mutex;

const NAIVE: Optimise = Optimise { cluster: Clustering::Naive, merge: Merging::Naive };
const SMART: Optimise = Optimise { cluster: Clustering::Smart, merge: Merging::Smart };
const WRITTEN: Optimise = Optimise { cluster: Clustering::Naive, merge: Merging::Smart };

/// What a model says at a node to what it was told.
type Says = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

/// Models that say something, or can't be asked.
pub(super) struct Said {
    says: Box<Says>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Said {
    pub(super) fn by(says: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { says: Box::new(says), asked: Mutex::default() })
    }

    /// What models were told at a node.
    fn told(&self, node: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(at, _)| at == node).map(|(_, text)| text.clone()).collect()
    }
}

impl Model for Said {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let told =
            request.messages.iter().last().map(|message| message.content.to_string()).unwrap_or_default();
        self.asked.lock().unwrap().push((request.node.to_string(), told.clone()));
        let text = (self.says)(&request.node, &told);
        Box::pin(std::future::ready(match text {
            Some(text) => Ok(ModelReply { text, ..ModelReply::default() }),
            None => {
                Err(Failure::permanent(selvedge_engine::FaultKind::ExecutionFailure, "no model is there"))
            }
        }))
    }
}

/// Nobody is to be asked.
pub(super) fn nobody() -> Arc<Said> {
    Said::by(|node, _| panic!("{node} asks a model"))
}

/// A version is somebody's, with calls that are recorded of it.
pub(super) fn has(
    store: &Store,
    place: Place,
    name: &str,
    text: &str,
    parents: &[&str],
    calls: &[(Value, Result<Value, &str>)],
) -> Arc<str> {
    let version: Arc<str> = BlobHash::of(text.as_bytes()).to_string().into();
    change(store, |library| {
        let mut change = Change::new(library);
        let mut contents = vec![text.as_bytes().to_vec()];
        let mut make = |command| change.accept(command).unwrap();
        let (at, of) = (place.clone(), Arc::clone(&version));
        let parents = parents.iter().map(|parent| Arc::from(*parent)).collect();
        let author = Author::Coder { coder: None, model: None };
        make(Command::Draft {
            place: at.clone(),
            version: of.clone(),
            name: name.into(),
            author,
            parents,
            members: Vec::new(),
            request: json!({}),
        });
        let facts = Facts {
            description: format!("What `{name}` does").into(),
            input_schema: json!({"properties": {"x": {"type": "integer"}}}),
            ..Facts::default()
        };
        make(Command::Validate { place: at.clone(), version: of.clone(), facts });
        match &at {
            Place::Library => make(Command::Publish { place: at, version: of, name: None }),
            Place::Task(task) => {
                make(Command::Keep { task: task.clone(), version: of.clone(), name: None });
                make(Command::Prove { task: task.clone(), version: of });
            }
        }
        for (arguments, came) in calls {
            let (command, json) = recorded(&version, arguments, came);
            contents.push(json.into_bytes());
            make(command);
        }
        Ok(Decided { events: change.into_events(), contents, what: () })
    })
    .unwrap();
    version
}

fn recorded(version: &Arc<str>, arguments: &Value, came: &Result<Value, &str>) -> (Command, String) {
    let sample = match came {
        Ok(output) => json!({"arguments": arguments, "output": output}),
        Err(kind) => json!({"arguments": arguments, "fault": {"kind": kind}}),
    };
    let line = selvedge_host::library::samples::parsed(&sample.to_string()).unwrap();
    (selvedge_host::library::record::recorded(version, &line.sample, &line.json, None), line.json)
}

/// One more call of a version is recorded.
fn called(store: &Store, version: &Arc<str>, arguments: &Value, came: &Result<Value, &str>) {
    change(store, |library| {
        let mut change = Change::new(library);
        let (command, json) = recorded(version, arguments, came);
        change.accept(command).unwrap();
        Ok(Decided { events: change.into_events(), contents: vec![json.into_bytes()], what: () })
    })
    .unwrap();
}

pub(super) fn task(id: &str) -> Place {
    Place::Task(id.into())
}

/// Begins the run of an optimisation.
pub(super) async fn begin(store: &Arc<Store>, run: &str, how: Optimise, runs: &[&str]) -> State {
    let mut graphs = Table::new();
    let mut graph = optimise(&Settings::default(), how, &mut graphs).unwrap();
    graph.graphs = graphs;
    let graph: Arc<Graph> = Arc::new(graph);
    let stored = serde_json::to_vec(&*graph).unwrap();
    let hash = BlobHash::of(&stored);
    let mut state = State::new(Arc::clone(&graph));
    let initial = json!({"runs": runs}).as_object().unwrap().clone();
    let start = Start { graph: hash.to_string().into(), initial, edition: EDITION, ..Start::default() };
    let at = state.tick(1_000);
    let event = state.accept(Input::Start(Box::new(start))).unwrap();
    let json = serde_json::to_string(&event).unwrap();
    state.apply_record(&Record { at, event });
    let new = NewRun {
        id: run.into(),
        name: run.into(),
        dialect: "evolve".into(),
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(hash),
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    };
    store.create_run_with_graph(new, stored, vec![Entry { n: 1, at_ms: at, json }]).await.unwrap();
    state
}

/// Optimises the library with what these runs have proved.
pub(super) async fn optimised(process: &Process, how: Optimise, runs: &[&str], model: Arc<Said>) -> Value {
    let mut state = begin(&process.store, &process.run, how, runs).await;
    let driver = Driver::new(model, Arc::new(process.catalogue.clone()), Limits::default());
    let driver = driver.with_operations(Arc::clone(&process.operations));
    let mut journal = Journal::stored(Arc::clone(&process.store), process.run.as_str(), state.events());
    let halt =
        driver.drive(&process.run, &mut state, &mut journal, Vec::new(), &mut Controls::default()).await;
    assert_eq!(halt.unwrap(), Halt::Ended);
    assert!(state.view().fault().is_none(), "{:?}", state.view().fault());
    state.view().output().clone()
}

/// A tool that reads `x`, whose run has this body.
pub(super) fn tool(name: &str, fields: &str, body: &str) -> String {
    format!(
        "from pydantic import BaseModel\n__TOOL_META__ = {{'name': '{name}', 'description': 'What it does', 'dependencies': [], \
         'effects': 'pure'}}\nclass InputModel(BaseModel):\n{fields}\ndef run(i):\n{body}\n"
    )
}

const X: &str = "    x: int";

fn twice(x: i64) -> (Value, Result<Value, &'static str>) {
    (json!({"x": x}), Ok(json!({"y": 2 * x})))
}

/// Changes by name: how, and how many it was made of.
fn changes(done: &Value) -> Vec<(String, String, usize)> {
    let one = |change: &Value| {
        let text = |field: &str| change[field].as_str().unwrap().to_owned();
        (text("name"), text("how"), change["from"].as_array().map_or(0, Vec::len))
    };
    done["changes"].as_array().unwrap().iter().map(one).collect()
}

fn change_of(name: &str, how: &str, of: usize) -> (String, String, usize) {
    (name.to_owned(), how.to_owned(), of)
}

fn stage(library: &Library, version: &str) -> Option<Stage> {
    library.version(version)?.stage(&Place::Library)
}

/// V-05, V-07, V-08: the smallest does the work of those of its name; others become public by themselves; who was called by a name is
/// called by it still.
#[tokio::test]
async fn v08_the_smallest_of_those_that_do_the_same_is_kept() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    let long = has(
        store,
        Place::Library,
        "double",
        &tool("double", X, "    # as it was\n    return {'y': i.x + i.x}"),
        &[],
        &[twice(1), twice(2)],
    );
    let small = has(
        store,
        task("r1"),
        "double_2",
        &tool("double_2", X, "    return {'y': 2 * i.x}"),
        &[],
        &[twice(2), twice(3)],
    );
    let same = has(
        store,
        task("r2/agent~1"),
        "double",
        &tool("double", X, "    # another one, and longer\n    return {'y': 2 * i.x}"),
        &[],
        &[twice(4)],
    );
    let half = has(
        store,
        task("r2"),
        "half_3",
        &tool("half_3", X, "    return {'y': i.x / 2}"),
        &[],
        &[(json!({"x": 4}), Ok(json!({"y": 2})))],
    );
    has(
        store,
        task("r3"),
        "other",
        &tool("other", X, "    return {'y': 0}"),
        &[],
        &[(json!({"x": 1}), Ok(json!({"y": 0})))],
    );
    let done = optimised(&process, NAIVE, &["r1", "r2"], nobody()).await;
    assert_eq!(changes(&done), [change_of("double", "merged", 2), change_of("half", "created", 0)], "{done}");
    let library = process.library();
    assert_eq!(library.public("double").unwrap().hash, small);
    assert_eq!(library.public("half").unwrap().hash, half, "under its base name");
    assert_eq!(
        (stage(&library, &long), stage(&library, &same)),
        (Some(Stage::Enhanced), Some(Stage::Merged))
    );
    assert!(library.public("other").is_none(), "that run was no part of it");
    assert_eq!(library.version(&small).unwrap().reports[0].1.passed, 4, "each call once");
    // The next time there is nothing to do.
    let process = Process::start(&folder, "again").await;
    let before = process.store.library(1).unwrap().len();
    let done = optimised(&process, NAIVE, &["r1", "r2"], nobody()).await;
    assert_eq!((changes(&done).len(), process.store.library(1).unwrap().len()), (0, before), "{done}");
}

/// V-09: where none does the work of all, all stay, under names of their own; the next smallest is taken where that does it.
#[tokio::test]
async fn v09_what_loses_something_is_not_taken() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    let (low, high) = ((json!({"x": -1}), Ok(json!({"y": -2}))), twice(3));
    // Shorter, and wrong below zero.
    has(
        store,
        task("r1"),
        "double",
        &tool("double", X, "    return {'y': 2 * abs(i.x)}"),
        &[],
        std::slice::from_ref(&high),
    );
    let whole = has(
        store,
        task("r2"),
        "double",
        &tool("double", X, "    value = i.x\n    return {'y': value + value}"),
        &[],
        &[low, high],
    );
    // The same name, another type, another work.
    for (n, text) in ["    return {'s': str(i.x)}", "    return {'s': i.x}"].into_iter().enumerate() {
        let came = if n == 0 { json!({"s": "5"}) } else { json!({"s": 5}) };
        has(
            store,
            task(&format!("r{n}")),
            "show",
            &tool("show", X, text),
            &[],
            &[(json!({"x": 5}), Ok(came))],
        );
    }
    // Nothing is known of one of them, and nobody says that nothing is lost.
    has(store, Place::Library, "idle", &tool("idle", X, "    return {'y': 1}"), &[], &[]);
    has(
        store,
        task("r1"),
        "idle",
        &tool("idle", X, "    return {'y': 10 - 9}"),
        &[],
        &[(json!({"x": 5}), Ok(json!({"y": 1})))],
    );
    let judge = Said::by(|node, _| {
        assert_eq!(node, "equivalence");
        Some(json!({"equal": false, "reason": "the sign is lost"}).to_string())
    });
    let done = optimised(&process, NAIVE, &["r0", "r1", "r2"], judge).await;
    let library = process.library();
    assert_eq!(library.public("double").unwrap().hash, whole, "{done}");
    let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
    assert_eq!(names, ["double", "idle", "idle_2", "show", "show_2"]);
    let why = |name: &str| {
        let all = done["separate"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["why"].as_str().unwrap().to_owned()
    };
    assert!(why("show").contains("with the arguments {\"x\":5}"), "{done}");
    assert!(why("idle").contains("no call of `idle` that worked is recorded"), "{done}");
}

/// V-06, V-08, V-09: a coder writes one tool for all and is told what it loses; what is longer than all together is refused.
#[tokio::test]
async fn v09_a_coder_is_told_what_its_tool_loses() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    let by_n = "    n: int\n    note: str = ''";
    let old = has(
        store,
        Place::Library,
        "double",
        &tool("double", X, "    return {'y': 2 * i.x}"),
        &[],
        &[twice(1)],
    );
    let call = (json!({"n": 7, "note": "a"}), Ok(json!({"y": 14})));
    has(
        store,
        task("r1"),
        "times_two",
        &tool("times_two", by_n, "    return {'y': i.n + i.n}"),
        &[],
        &[call],
    );
    let both = "    x: int | None = None\n    n: int | None = None";
    let lossy = tool("twice", X, "    return {'y': 2 * i.x}");
    let large = tool(
        "twice",
        both,
        &format!("{}\n    return {{'y': 2 * (i.n if i.x is None else i.x)}}", "    # ".repeat(200)),
    );
    let good = tool("twice", both, "    return {'y': 2 * (i.n if i.x is None else i.x)}");
    let model = Said::by(move |node, told| {
        match node {
        "group" => Some(
            json!({"consolidated_tool_clusters": [{"suggested_master_tool_name": "twice", "tool_names": ["double", "times_two", "double"]}]})
                .to_string(),
        ),
        "write" if told.contains("bytes, and all of them") => Some(format!("```python\n{good}```")),
        "write" if told.contains("with the arguments") => Some(format!("```python\n{large}```")),
        "write" => Some(format!("```python\n{lossy}```")),
        _ => panic!("{node}"),
    }
    });
    let done = optimised(&process, SMART, &["r1"], Arc::clone(&model)).await;
    assert_eq!(changes(&done), [change_of("twice", "merged", 2)], "{done}");
    let told = model.told("write");
    assert_eq!(told.len(), 3);
    assert!(told[0].contains("times_two") && told[0].contains("i.n + i.n"), "{}", told[0]);
    let library = process.library();
    assert_eq!(
        (library.public("double").unwrap().hash.clone(), library.resolve("double")),
        (library.public("twice").unwrap().hash.clone(), "twice")
    );
    assert_eq!(stage(&library, &old), Some(Stage::Merged));
    let made = library.public("twice").unwrap();
    assert_eq!((made.parents.len(), made.reports[0].1.passed), (2, 2));
    // What was written and not taken is retired with the optimisation.
    let drafts = library.versions().filter(|known| known.stage(&task("opt")) == Some(Stage::Retired)).count();
    assert_eq!(drafts, 1);
    assert!(library.open_tasks().iter().all(|task| &**task != "opt"));
    let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
    assert_eq!(names, ["twice"]);
    // Who makes again what was merged adds nothing, whatever a model says.
    let process = Process::start(&folder, "again").await;
    let text = tool("double", X, "    return {'y': 2 * i.x}");
    has(&process.store, task("r2"), "double", &text, &[], &[twice(30)]);
    let alone = Said::by(|node, _| {
        assert_eq!(node, "group");
        Some(json!({"consolidated_tool_clusters": []}).to_string())
    });
    let done = optimised(&process, SMART, &["r2"], alone).await;
    assert_eq!(changes(&done), [change_of("twice", "merged", 1)], "{done}");
    let library = process.library();
    let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
    assert_eq!(names, ["twice"]);
}

/// V-08: a coder may answer with a member's file, unchanged, under the member's own name: it is tried like any other, and told what it
/// loses where it loses something.
#[tokio::test]
async fn v08_a_member_that_a_coder_chooses_is_tried() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    let both = "    x: int | None = None\n    n: int | None = None";
    let wide = tool("double", both, "    return {'y': 2 * (i.n if i.x is None else i.x)}");
    let narrow = tool("times_two", X, "    return {'y': i.x + i.x}");
    let kept = has(store, Place::Library, "double", &wide, &[], &[(json!({"n": 7}), Ok(json!({"y": 14})))]);
    has(store, task("r1"), "times_two", &narrow, &[], &[twice(1)]);
    let model = Said::by(move |node, told| {
        Some(match node {
            "group" => json!({"consolidated_tool_clusters": [{"suggested_master_tool_name": "twice", "tool_names": ["double", "times_two"]}]})
                .to_string(),
            "write" if told.contains("with the arguments") => format!("```python\n{wide}```"),
            "write" => format!("```python\n{narrow}```"),
            _ => panic!("{node}"),
        })
    });
    let done = optimised(&process, SMART, &["r1"], Arc::clone(&model)).await;
    assert_eq!(changes(&done), [change_of("twice", "merged", 1)], "{done}");
    let told = model.told("write");
    assert!(told.len() == 2 && told[1].contains(r#"{"n":7}"#), "{told:?}");
    let library = process.library();
    assert_eq!(library.public("twice").map(|known| known.hash.clone()), Some(kept));
}

/// V-06, V-07: where no model can be asked, names say what is the same; three attempts, then members stay apart, and unchanged they are
/// not tried again.
#[tokio::test]
async fn v07_names_say_it_where_no_model_does_and_nothing_is_tried_for_ever() {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let store = &process.store;
    has(store, task("r1"), "double", &tool("double", X, "    return {'y': 2 * i.x}"), &[], &[twice(1)]);
    has(
        store,
        task("r1/a~1"),
        "double_2",
        &tool("double_2", X, "    return {'y': i.x + i.x}"),
        &[],
        &[twice(2)],
    );
    let model = Said::by(|node, _| (node == "write").then(|| "I can't.".to_owned()));
    let done = optimised(&process, SMART, &["r1"], Arc::clone(&model)).await;
    assert_eq!(
        changes(&done),
        [change_of("double", "created", 0), change_of("double_2", "created", 0)],
        "{done}"
    );
    assert_eq!((model.told("group").len(), model.told("write").len()), (1, 3));
    assert!(done["separate"][0]["why"].as_str().unwrap().contains("```python"), "{done}");
}

/// V-10: what others record of a member meanwhile is repeated, too, and what was written is not written again; where others have
/// changed a member for good, its like stay apart.
#[tokio::test]
async fn v10_each_publication_is_decided_by_the_library_as_it_is() {
    for (others, expected) in
        [("call", vec!["double"]), ("retire", vec!["double"]), ("break", vec!["double", "double_2"])]
    {
        let folder = Folder::new();
        let process = Process::start(&folder, "opt").await;
        let store = Arc::clone(&process.store);
        let old = has(
            &store,
            Place::Library,
            "double",
            &tool("double", X, "    return {'y': 2 * i.x}"),
            &[],
            &[twice(1)],
        );
        let calls = [(json!({"n": 7}), Ok(json!({"y": 14})))];
        has(
            &store,
            task("r1"),
            "double",
            &tool("double", "    n: int", "    return {'y': i.n + i.n}"),
            &[],
            &calls,
        );
        let both = "    x: int | None = None\n    n: int | None = None";
        let good = tool("double", both, "    return {'y': 2 * (i.n if i.x is None else i.x)}");
        let model = Said::by(move |node, _| {
            assert_eq!(node, "write");
            match others {
                "call" => called(&store, &old, &json!({"x": 21}), &Ok(json!({"y": 42}))),
                "break" => called(&store, &old, &json!({"x": 22}), &Ok(json!({"y": "other"}))),
                _ => {
                    let retire = Command::Retire {
                        place: Place::Library,
                        version: Arc::clone(&old),
                        reason: "others".into(),
                    };
                    change(&store, |library| {
                        let events = library.accept(retire.clone()).unwrap_or_default();
                        Ok(Decided { events, contents: Vec::new(), what: () })
                    })
                    .unwrap();
                }
            }
            Some(format!("```python\n{good}```"))
        });
        let judged = Arc::clone(&model);
        let done = match others {
            // Each further attempt is told of the call that can't be had.
            "break" => {
                let model = Said::by(move |node, told| match node {
                    "equivalence" => Some(json!({"equal": false, "reason": "another value"}).to_string()),
                    _ => (judged.says)(node, told),
                });
                optimised(&process, WRITTEN, &["r1"], model).await
            }
            _ => optimised(&process, WRITTEN, &["r1"], Arc::clone(&model)).await,
        };
        let library = process.library();
        let names: Vec<&str> = library.names(&Place::Library).map(|name| &**name).collect();
        assert_eq!(names, expected, "{others}: {done}");
        if others == "call" {
            assert_eq!(model.told("write").len(), 1, "what was written is tried again as it is");
            assert_eq!(library.public("double").unwrap().reports[0].1.passed, 3);
        }
    }
}
