//! Tools of a library in a catalogue: their rank, their names, and texts that survive the cache.

use crate::world::{World, call, source};
use selvedge_engine::FaultKind;
use selvedge_tools::examine::examine;
use selvedge_tools::library::LibrarySource;
use selvedge_tools::{Catalogue, CatalogueConfig, Offer};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A library of these names and texts; and texts that no name means any more.
#[derive(Default)]
struct Books {
    offered: Vec<(Arc<str>, Arc<str>)>,
    texts: BTreeMap<String, Vec<u8>>,
}

impl LibrarySource for Books {
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.offered.clone()
    }

    fn text(&self, version: &str) -> Option<Vec<u8>> {
        self.texts.get(version).cloned()
    }
}

/// A library that has each of these files under these names.
async fn books(world: &World, files: &[(&str, &[&str], &str)]) -> Arc<Books> {
    let mut books = Books::default();
    for (n, (tool, names, body)) in files.iter().enumerate() {
        let file = world.write(&format!("shelf/{n}.py"), &source(tool, "", body));
        let examined = examine(&world.config(), vec![file]).await.unwrap();
        assert_eq!(examined[0].metadata.name, *tool);
        assert_eq!(examined[0].input_schema["properties"]["x"]["default"], 0);
        let version = &examined[0].version;
        books.offered.extend(names.iter().map(|name| (Arc::from(*name), version.clone())));
        books.texts.insert(version.to_string(), examined[0].text.clone());
    }
    Arc::new(books)
}

fn with(world: &World, books: Arc<Books>) -> CatalogueConfig {
    let mut config = world.config();
    config.library = Some(books);
    config
}

async fn ready(config: CatalogueConfig, names: &[&str]) -> Catalogue {
    let catalogue = Catalogue::load(config).await.unwrap();
    catalogue.prepare(names).await.unwrap();
    catalogue
}

#[tokio::test]
async fn a22_files_go_before_the_library_and_the_library_before_built_ins() {
    let world = World::new();
    let says = |what: &str| format!("def run(i): return '{what}'");
    let (add, read) = (says("shelved"), says("shelved"));
    let books = books(&world, &[("add", &["add"], add.as_str()), ("read_file", &["read_file"], &read)]).await;
    world.tool("add", "", &says("file"));
    let catalogue = ready(with(&world, books), &["add", "read_file"]).await;
    assert_eq!(call(&catalogue, "add", json!({})).await.unwrap(), "file");
    assert_eq!(call(&catalogue, "read_file", json!({})).await.unwrap(), "shelved");
    assert_eq!(&*catalogue.def("read_file").unwrap().source, "library");
    assert!(catalogue.is_of_library("read_file") && !catalogue.is_of_library("add"));
}

#[tokio::test]
async fn a18_the_library_may_give_a_tool_another_name_than_its_metadata() {
    let world = World::new();
    let files: [(&str, &[&str], &str); 1] = [("add", &["add", "sum", "add_2"], "def run(i): return i.x + 1")];
    let books = books(&world, &files).await;
    for _ in 0..2 {
        let catalogue = ready(with(&world, books.clone()), &["sum", "add_2"]).await;
        for name in ["add", "sum", "add_2"] {
            assert_eq!(
                &*catalogue.def(name).unwrap().name,
                name,
                "what is kept of a version has no name but its own"
            );
            assert_eq!(call(&catalogue, name, json!({"x": 1})).await.unwrap(), 2);
        }
        assert_eq!(catalogue.def("sum").unwrap().version, catalogue.def("add").unwrap().version);
    }
}

#[tokio::test]
async fn a23_a_pinned_version_runs_though_its_file_and_the_cache_are_gone() {
    let world = World::new();
    world.tool("add", "", "def run(i): return 'first'");
    let before = world.ready().await;
    let pinned = before.def("add").unwrap();
    let text = before.text(&pinned.version).await.unwrap();
    let texts = BTreeMap::from([(pinned.version.to_string(), text)]);
    world.tool("add", "", "def run(i): return 'second'");
    std::fs::remove_dir_all(world.path("state/cache")).unwrap();
    let catalogue = ready(with(&world, Arc::new(Books { texts, ..Books::default() })), &["add"]).await;
    assert_eq!(call(&catalogue, "add", json!({})).await.unwrap(), "second");
    let mut request = crate::world::request(&catalogue, "add", json!({}));
    request.tool = pinned.clone();
    let copy = world.path(&format!("state/cache/tools/{}.py", pinned.version));
    for spoilt in [None, Some("def run(i): return 'evil'"), None] {
        if let Some(text) = spoilt {
            std::fs::write(&copy, text).unwrap();
        }
        use selvedge_runtime::ports::Tools;
        let output = catalogue.call(request.clone(), crate::world::context()).await.unwrap();
        assert_eq!(output, "first");
    }
    // Kept nowhere, it does not run at all.
    std::fs::remove_dir_all(world.path("state/cache")).unwrap();
    let bare = ready(world.config(), &["add"]).await;
    use selvedge_runtime::ports::Tools;
    let failure = bare.call(request, crate::world::context()).await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::DefinitionChanged);
}

#[tokio::test]
async fn a15_in_a_replay_no_tool_has_the_network_and_none_needs_permission() {
    let world = World::new();
    let body = "import socket\ndef run(i):\n    return socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex(('127.0.0.1', i.x))";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    world.tool("net", ", 'network': True", body);
    let mut config = world.config();
    config.replay = true;
    let catalogue = ready(config, &["net"]).await;
    let found = catalogue.isolation().found().await.enforced();
    let port = listener.local_addr().unwrap().port();
    let outcome = call(&catalogue, "net", json!({"x": port})).await;
    assert!(!found || outcome != Ok(json!(0)), "{outcome:?}");
}

/// everything that is wrong with any of the files.
#[tokio::test]
async fn a08_files_are_examined_before_they_enter() {
    let world = World::new();
    let good = world.write("in/good.py", &source("good", "", "def run(i): return 1"));
    let no_tool = world.write("in/no_tool.py", "x = 1\n");
    let dynamic = world.write("in/dynamic.py", "__TOOL_META__ = dict(name='x')\n");
    let errors = examine(&world.config(), vec![good.clone(), no_tool, dynamic]).await.unwrap_err();
    assert_eq!(errors.0.len(), 2, "{errors}");
    let breaks =
        world.write("in/breaks.py", &source("breaks", "", "raise ValueError('at import')\ndef run(i): pass"));
    let errors = examine(&world.config(), vec![good, breaks]).await.unwrap_err();
    assert!(errors.to_string().contains("at import"), "{errors}");
}

/// D-17, A-20: of what only a model may choose, nothing is built before it is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d17_what_only_a_model_may_choose_is_built_by_its_first_call() {
    let world = World::new();
    let of = |dependencies: &str| format!("'dependencies': [{dependencies}]");
    let tool = |name: &str, dependencies: &str, body: &str| {
        let text = source(name, "", body).replace(&of(""), &of(dependencies));
        world.write(&format!("tools/{name}.py"), &text);
    };
    tool("named", "", "def run(i): return 1");
    tool("near", "", "def run(i): return 2");
    tool("far", "'idna==3.10'", "import idna\ndef run(i): return idna.__version__");
    tool("never", "", "raise RuntimeError('not here')\ndef run(i): return 3");
    tool("net", "", "def run(i): return 4");
    let net = std::fs::read_to_string(world.path("tools/net.py")).unwrap();
    world.write("tools/net.py", &net.replace(&of(""), &format!("{}, 'network': True", of(""))));
    let mut config = world.config();
    config.shared_cache = world.path("shared");
    let catalogue = ready(config, &["named"]).await;
    world.said.lock().unwrap().clear();
    let offered =
        |catalogue: &Catalogue| catalogue.offered().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(!offered(&catalogue).contains(&"net".to_owned()), "what is not allowed is offered to nobody");
    let why = |catalogue: &Catalogue, name: &str| {
        let withheld = catalogue.withheld();
        withheld.iter().find(|(other, _)| &**other == name).map(|(_, error)| error.to_string())
    };
    assert!(why(&catalogue, "net").unwrap().contains("--allow-network"));
    assert!(why(&catalogue, "write_file").unwrap().contains("--allow-write"));
    let others: Vec<Arc<str>> = ["near", "far", "never", "list_files"].map(Arc::from).into();
    let failed = catalogue.offer(&others, Offer::Light).await;
    assert_eq!(failed.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["never"]);
    let known = offered(&catalogue);
    assert!(why(&catalogue, "never").unwrap().contains("not here") && why(&catalogue, "far").is_none());
    assert!(known.contains(&"far".to_owned()) && !known.contains(&"never".to_owned()), "{known:?}");
    assert!(catalogue.def("near").is_some(), "its environment is there");
    assert!(catalogue.def("far").is_none(), "its environment is not");
    assert_eq!(*world.said.lock().unwrap(), Vec::<String>::new(), "nothing was built");
    let mut request = crate::world::request(&catalogue, "near", json!({}));
    request.tool = catalogue.sketch("far").unwrap();
    assert_eq!(request.tool.input_schema, json!({"type": "object"}));
    use selvedge_runtime::ports::Tools;
    assert_eq!(catalogue.call(request, crate::world::context()).await.unwrap(), "3.10");
    let said = world.said.lock().unwrap().join("\n");
    assert!(said.contains("idna==3.10"), "who waits is told what for: {said}");
    // D-21: who plans is told all schemas.
    assert!(catalogue.offer(&[Arc::from("far")], Offer::Whole).await.is_empty());
    assert!(catalogue.def("far").unwrap().input_schema["properties"]["x"].is_object());
}

/// A large library is listed by what is known of its versions; a text that is lost is looked for when it is needed.
#[tokio::test]
async fn a23_a_text_of_the_library_is_looked_at_when_it_is_used() {
    let world = World::new();
    let files: [(&str, &[&str], &str); 2] =
        [("add", &["add"], "def run(i): return i.x + 1"), ("sub", &["sub"], "def run(i): return i.x - 1")];
    let books = books(&world, &files).await;
    for (_, version) in &books.offered {
        std::fs::remove_file(world.path(&format!("state/cache/tools/{version}.py"))).unwrap();
        // Its schema has to be asked for again, too.
        std::fs::remove_file(world.path(&format!("state/cache/tools/{version}.json"))).unwrap();
    }
    let catalogue = ready(with(&world, books.clone()), &["add"]).await;
    assert_eq!(call(&catalogue, "add", json!({"x": 1})).await.unwrap(), 2);
    let restored = |n: usize| world.path(&format!("state/cache/tools/{}.py", books.offered[n].1)).exists();
    assert!(restored(0) && !restored(1), "only what was used was restored");
    // What is kept nowhere is an error for who uses it.
    let lost = Arc::new(Books { offered: books.offered.clone(), ..Books::default() });
    let error = Catalogue::load(with(&world, lost)).await.unwrap().prepare(&["sub"]).await.unwrap_err();
    assert!(error.to_string().contains("is not in the cache any more"), "{error}");
}

/// D-17, A-08: a file that hangs or breaks as it is loaded, and that only a model might choose, holds nobody up twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d17_a_file_that_does_not_load_is_waited_for_once() {
    let world = World::new();
    world.tool("hang", "", "time.sleep(1000)\ndef run(i): return 1");
    let ready_file = world.path("document/ready").display().to_string();
    let body = format!("open('{ready_file}').close()\ndef run(i): return 2");
    world.tool("breaks", "", &body);
    world.tool("good", "", "def run(i): return 3");
    let all: Vec<Arc<str>> = ["breaks", "good", "hang"].map(Arc::from).into();
    // The environment is there.
    ready(world.config(), &["good"]).await;
    let began = std::time::Instant::now();
    let first = world.load().await;
    let failed = first.offer(&all, Offer::Light).await;
    assert_eq!(failed.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["breaks"]);
    assert!(failed[0].1.to_string().contains("No such file"), "{}", failed[0].1);
    assert!(first.is_fit("hang") && first.def("hang").is_none(), "it is offered without its schema");
    let took = began.elapsed().as_secs_f64();
    assert!((4.0..15.0).contains(&took), "{took}");
    assert!(
        world.said.lock().unwrap().iter().any(|line| line.contains("hang.py")),
        "who waits is told for what"
    );
    // The next run knows.
    world.write("document/ready", "");
    let began = std::time::Instant::now();
    for offer in [Offer::Light, Offer::Whole] {
        let next = world.load().await;
        let names = if offer == Offer::Light { &all[..] } else { &all[..2] };
        let failed = next.offer(names, offer).await;
        assert_eq!(failed.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["breaks"], "{offer:?}");
        let said = failed[0].1.to_string();
        assert!(said.contains("breaks.py") && said.contains("No such file"), "{said}");
        assert!(said.contains("`selvedge tools show breaks --tools "), "{said}");
    }
    assert!(began.elapsed().as_secs_f64() < 4.0, "{:?}", began.elapsed());
    // Who needs it has it tried again, and then it is known to load.
    ready(world.config(), &["breaks"]).await;
    assert!(world.load().await.offer(&all, Offer::Light).await.is_empty());
}
