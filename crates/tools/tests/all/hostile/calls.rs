//! What calls have of each other and of Selvedge, and files that end their interpreter.

use super::{Arena, attack, machine_has, under, without, world};
use crate::world::{World, call, context, fault, request};
use rustix::fs::{Mode, OFlags, open};
use selvedge_engine::FaultKind::ExecutionFailure;
use selvedge_runtime::ports::Tools;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::isolation::Layer::{Identity, Landlock, Namespaces};
use selvedge_tools::Catalogue;
use serde_json::{Value, json};
use std::time::Duration;

/// What a call finds of another that holds a secret everywhere, and how that one ended.
async fn snooped(tools: &Catalogue, deed: &str) -> (Value, Value) {
    let mut first = request(tools, "attack", json!({"what": "scratch"}));
    first.effect = selvedge_engine::EffectId("canary".into());
    let busy = tokio::spawn(tools.call(first, context()));
    tokio::time::sleep(Duration::from_millis(2000)).await;
    let found = attack(tools, "snoop", deed).await;
    (found, busy.await.unwrap().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_see_nothing_of_each_other() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = world();
    let (found, other) = snooped(&without(&world, &[]).await, "kill").await;
    assert_eq!((found, other), (Value::Null, json!("canary")), "nothing is seen, and nobody was killed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_isolation_calls_see_each_other() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = world();
    // Signals are not tried here: they would reach anybody.
    let (found, _) = snooped(&without(&world, &[Namespaces, Landlock, Identity]).await, "").await;
    assert_eq!(found, json!(["environment", "file", "memory", "name"]));
}

/// Looks for a text in all memory of its process, without having it there itself.
const SEARCH: &str = "def run(i):
    word = ('secret of', 'another tool')
    word = ' '.join(word).encode()
    found = []
    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:
        mine = id(word)
        for line in maps:
            place, rights = line.split()[:2]
            begin, end = (int(part, 16) for part in place.split('-'))
            if 'r' not in rights or '[v' in line:
                continue
            try:
                memory.seek(begin)
                text = memory.read(end - begin)
            except (OSError, ValueError, OverflowError):
                continue
            at = text.find(word)
            while at >= 0:
                if not mine <= begin + at < mine + 200:
                    found.append(text[at - 20:at + 60].hex())
                at = text.find(word, at + 1)
            del text
    return len(found) if i.x == 0 else found";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_nothing_of_other_tools_in_its_memory() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = World::new();
    let again = "def run(i):\n    word = 'secret of another tool'\n    return sys.modules['__main__'].Given.compiled is not None";
    world.tool("other", "", again);
    world.tool("search", "", SEARCH);
    let tools = world.ready().await;
    // It was compiled when it was asked for its schema.
    for _ in 0..2 {
        assert_eq!(call(&tools, "other", json!({})).await.unwrap(), json!(true), "it is compiled once");
    }
    // Also in processes that were made after that.
    for _ in 0..4 {
        assert_eq!(call(&tools, "search", json!({})).await.unwrap(), json!(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_files_of_selvedge_are_not_handed_on() {
    let world = world();
    // As an ancestor may have left it: without the mark that closes it when a program starts.
    let path = world.path("other/secret.txt");
    let inherited = open(&path, OFlags::RDONLY, Mode::empty()).unwrap();
    for off in [&[][..], &[Namespaces], &[Namespaces, Landlock]] {
        let got = attack(&without(&world, off).await, "descriptors", "").await;
        assert_eq!(got, Value::Null, "without {off:?}");
    }
    let open = attack(&under(&world, Isolation::none()).await, "descriptors", "").await;
    // It may have others, of whoever runs the tests.
    let open = open.as_array().unwrap();
    assert!(open.contains(&json!(path.canonicalize().unwrap())), "a program as it is has them: {open:?}");
    drop(inherited);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_memory_runs_out_tools_end_first() {
    let mut arena = Arena::new();
    if !machine_has(&[selvedge_sandbox::isolation::Layer::Limits]).await {
        return;
    }
    assert_eq!(arena.try_without(&[], "group", "").await[1], "1000");
    assert_eq!(arena.try_without(&[Landlock], "group", "").await[1], "1000");
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let off = [selvedge_sandbox::isolation::Layer::Limits];
    assert_eq!(arena.try_without(&off, "group", "").await[1], own.trim());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_kill_their_interpreter_harm_nobody_else() {
    let world = World::new();
    world.tool("fine", "", "def run(i):\n    return 1");
    for (name, deed) in [
        ("leaves", "os._exit(0)"),
        ("dies", "os.kill(os.getpid(), 9)"),
        ("crashes", "import ctypes; ctypes.string_at(0)"),
        ("throws", "raise SystemExit(3)"),
        ("closes", "os.closerange(0, 64)"),
    ] {
        world.tool(name, "", &format!("{deed}\ndef run(i):\n    return 1"));
    }
    let tools = world.load().await;
    tools.prepare(&["fine"]).await.unwrap();
    for name in ["leaves", "dies", "crashes", "throws", "closes"] {
        let refused = tools.prepare(&[name]).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("the tool `{name}` does not load")), "{refused}");
        assert_eq!(call(&tools, "fine", json!({})).await.unwrap(), json!(1));
    }
    world.tool("late", "", "def run(i):\n    import ctypes\n    ctypes.string_at(0)");
    let tools = world.load().await;
    tools.prepare(&["fine", "late"]).await.unwrap();
    let crashed = call(&tools, "late", json!({})).await;
    assert!(crashed.as_ref().unwrap_err().transient);
    fault(crashed, ExecutionFailure, "subprocess_execution_error");
    assert_eq!(call(&tools, "fine", json!({})).await.unwrap(), json!(1));
}

/// who is kept from something is told what is declared, and what would have to be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_of_the_sandbox_are_told_with_what_would_be_needed() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = world();
    let writes = "def run(i): open(i.text, 'w').write('x')";
    world.tool("bare", "", writes);
    world.tool("granted", ", 'write_paths': ['out']", writes);
    world.tool("connects", "", "import socket\ndef run(i): socket.create_connection(('127.0.0.1', 9))");
    world.tool(
        "looks_up",
        "",
        "import urllib.request\ndef run(i): urllib.request.urlopen('http://a.example/')",
    );
    world.tool("fails", "", "def run(i): raise ValueError('no')");
    let mut config = world.config();
    config.permissions.allow_write = vec!["out".into()];
    let tools = Catalogue::load(config).await.unwrap();
    crate::world::prepare_all(&tools).await.unwrap();
    for (tool, hints) in [
        ("bare", &["no `write_paths`", "`--allow-write PATH`"][..]),
        ("granted", &["`write_paths: [\"out\"]`", "`--allow-write PATH`"]),
        ("connects", &["declares no network", "`--allow-network`"]),
        ("looks_up", &["declares no network", "`--allow-network`"]),
    ] {
        let outcome = call(&tools, tool, json!({"text": "elsewhere.txt"})).await;
        let fault = fault(outcome, ExecutionFailure, "tool_execution_error");
        let (message, cause) = (&fault.message, fault.cause.clone().unwrap());
        assert!(hints.iter().all(|hint| message.contains(hint)), "{tool}: {message}");
        assert!(cause["error"]["hint"].is_string(), "{tool}: {cause}");
    }
    let plain = fault(call(&tools, "fails", json!({})).await, ExecutionFailure, "tool_execution_error");
    assert_eq!(
        (plain.message.as_str(), &plain.cause.unwrap()["error"]["hint"]),
        ("ValueError: no", &Value::Null)
    );
}

/// A document's folder may be named by a way through others (`../plans`), which no sandbox has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documents_folder_may_be_named_through_others() {
    let world = world();
    world.tool("reads", "", "def run(i): return open('data.txt').read()");
    let mut config = world.config();
    config.workspace = world.path("tools/../document");
    // By a warm interpreter, and by one of its own.
    for off in [&[][..], &[Landlock]] {
        config.isolation = crate::world::isolation().without(off);
        let tools = Catalogue::load(config.clone()).await.unwrap();
        crate::world::prepare_all(&tools).await.unwrap();
        assert_eq!(call(&tools, "reads", json!({})).await.unwrap(), "data", "{off:?}");
        let code = json!({"code": "print(open('data.txt').read(), end='')"});
        assert_eq!(call(&tools, "python", code).await.unwrap()["stdout"], "data", "{off:?}");
    }
}

/// what kept a sandbox from starting is told as that, and is no output of a tool; a tool that says the same is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_that_does_not_start_is_no_answer_of_the_tool() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    world.tool("fine", "", "def run(i): return 1");
    let mut config = world.config();
    // Each call has a sandbox of its own.
    config.isolation = crate::world::isolation().without(&[Landlock]);
    let tools = Catalogue::load(config).await.unwrap();
    crate::world::prepare_all(&tools).await.unwrap();
    let code = "import sys; sys.stderr.write('bwrap: no\\n'); sys.exit(1)";
    let said = call(&tools, "python", json!({"code": code})).await.unwrap();
    assert_eq!(said, json!({"stdout": "", "stderr": "bwrap: no\n", "exit_code": 1}));
    // The folder in which calls run is gone.
    std::fs::rename(world.path("document"), world.path("elsewhere")).unwrap();
    for (tool, args) in
        [("python", json!({"code": ""})), ("shell", json!({"command": "true"})), ("fine", json!({}))]
    {
        let failed = call(&tools, tool, args).await.unwrap_err();
        assert!(failed.unsent, "{tool}: nothing has run");
        let fault = fault(Err(failed), ExecutionFailure, "subprocess_execution_error");
        let all = ["the sandbox could not be started: bwrap: ", "chdir"];
        assert!(all.iter().all(|words| fault.message.contains(words)), "{tool}: {}", fault.message);
    }
}
