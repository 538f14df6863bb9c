//! The built-in tools: what they do, and what they are kept from.

use crate::world::{World, anyone, call, call_within, eventually, fault, mark};
use selvedge_engine::{
    Effects,
    FaultKind::{Denied, ExecutionFailure, InputError, LimitExceeded, Timeout},
};
use selvedge_tools::{Catalogue, CatalogueConfig, Network};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};

async fn with(world: &World, change: impl FnOnce(&mut CatalogueConfig)) -> Catalogue {
    let mut config = world.config();
    change(&mut config);
    Catalogue::load(config).await.unwrap()
}

async fn fault_of_read(tools: &Catalogue, args: Value) -> String {
    fault(call(tools, "read_file", args).await, InputError, "input_error").message
}

#[tokio::test]
async fn definitions_are_as_declared() {
    let tools = World::new().load().await;
    let run = ["stdout", "stderr", "exit_code"];
    for (name, effects, required, outputs) in [
        ("read_file", Effects::Read, "path", None),
        ("write_file", Effects::Idempotent, "path,content", Some(&["path", "bytes"][..])),
        ("list_files", Effects::Read, "path", Some(&[])),
        ("http_get", Effects::Read, "url", Some(&["status", "headers", "body"])),
        ("python", Effects::Write, "code", Some(&run)),
        ("shell", Effects::Write, "command", Some(&run)),
    ] {
        let def = tools.def(name).unwrap();
        assert_eq!(def.effects, Some(effects), "{name}");
        let fields: Option<Vec<_>> =
            def.output_params.as_ref().map(|all| all.names().iter().map(|o| &**o).collect());
        assert_eq!(fields.as_deref(), outputs, "{name}");
        let needed: Vec<_> =
            def.input_schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(needed.join(","), required);
        assert_eq!((def.approval, &*def.source), (name == "shell", "built-in"));
    }
    let world = World::new();
    let tools = with(&world, |config| config.shell_approval = false).await;
    assert!(!tools.def("shell").unwrap().approval);
}

#[tokio::test]
async fn reading_is_confined_to_the_documents_folder() {
    let world = World::new();
    world.write("document/a.txt", "Grüße\n");
    world.write("document/sub/b.txt", "b");
    world.write("secret.txt", "canary");
    world.write("granted/g.txt", "g");
    symlink(world.path("secret.txt"), world.path("document/link")).unwrap();
    symlink(world.root.path(), world.path("document/up")).unwrap();
    symlink("sub/b.txt", world.path("document/inner")).unwrap();
    symlink(world.path("nowhere"), world.path("document/dangling")).unwrap();
    let tools = with(&world, |config| config.permissions.allow_read.push(world.path("granted"))).await;
    let read = |path: String| {
        let tools = tools.clone();
        async move { call(&tools, "read_file", json!({ "path": path })).await }
    };
    assert_eq!(read("a.txt".into()).await.unwrap(), json!("Grüße\n"));
    assert_eq!(read("./sub/../a.txt".into()).await.unwrap(), json!("Grüße\n"));
    assert_eq!(read("inner".into()).await.unwrap(), json!("b"), "a link that stays inside");
    assert_eq!(read(world.path("document/a.txt").display().to_string()).await.unwrap(), json!("Grüße\n"));
    assert_eq!(read(world.path("granted/g.txt").display().to_string()).await.unwrap(), json!("g"));
    let absolute = world.path("secret.txt").display().to_string();
    let missing = world.path("not-there").display().to_string();
    for path in [
        "link",
        "up/secret.txt",
        "../secret.txt",
        "sub/../../secret.txt",
        &absolute,
        "/etc/hostname",
        &missing,
        "dangling",
        "up/nothing",
        "nodir/../../secret.txt",
    ] {
        let refused = fault(read(path.into()).await, Denied, "");
        assert!(refused.message.contains("--allow-read") && !refused.message.contains("canary"), "{path}");
    }
    let absent = fault(read("absent".into()).await, ExecutionFailure, "tool_execution_error");
    assert!(absent.message.contains("no such file"), "{}", absent.message);
    fault(read("sub".into()).await, ExecutionFailure, "tool_execution_error");
    std::fs::write(world.path("document/bin"), [0xff, 0xfe]).unwrap();
    let binary = fault(read("bin".into()).await, ExecutionFailure, "tool_execution_error");
    assert!(binary.message.contains("not UTF-8"));
    let of = |args| fault_of_read(&tools, args);
    assert!(of(json!({"path": 1})).await.ends_with("input: `path` is no text (it takes `path` (string))"));
    // All that is wrong at once.
    let wrong = of(json!({"file": "a", "mode": 1})).await;
    let all = "`path` is missing; it has no field `file`; it has no field `mode` (it takes `path` (string))";
    assert!(wrong.ends_with(all), "{wrong}");
    let listed = fault(call(&tools, "list_files", json!({"glob": 1})).await, InputError, "input_error");
    let all = "`path` is missing; `glob` is no text (it takes `path` (string), `glob` (string, optional))";
    assert!(listed.message.ends_with(all), "{}", listed.message);
    // A pipe without a writer must not block the call for ever.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("document/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    fault(read("pipe".into()).await, ExecutionFailure, "tool_execution_error");
}

#[tokio::test]
async fn large_files_are_refused_by_the_limit() {
    let world = World::new();
    world.write("document/exact", &"x".repeat(1000));
    world.write("document/over", &"x".repeat(1001));
    let tools = with(&world, |config| config.limits.tool_output_bytes = 1000).await;
    assert!(call(&tools, "read_file", json!({"path": "exact"})).await.is_ok());
    let over = fault(call(&tools, "read_file", json!({"path": "over"})).await, LimitExceeded, "");
    assert!(over.message.contains("tool_output_bytes"));
}

#[tokio::test]
async fn writing_needs_permission_and_stays_inside_it() {
    let world = World::new();
    let args = |path: &str| json!({"path": path, "content": "né"});
    let without = world.load().await;
    let denied = fault(call(&without, "write_file", args("out/a.txt")).await, Denied, "");
    assert!(denied.message.contains("--allow-write"), "{}", denied.message);
    assert!(without.refusal("write_file").unwrap().to_string().contains("`write_file`"));
    without.prepare(&["write_file"]).await.unwrap();
    std::fs::create_dir(world.path("document/out")).unwrap();
    let tools = with(&world, |config| config.permissions.allow_write.push("out".into())).await;
    assert!(tools.refusal("write_file").is_none());
    let done = call(&tools, "write_file", args("out/deep/er/a.txt")).await.unwrap();
    assert_eq!(done, json!({"path": "out/deep/er/a.txt", "bytes": 3}));
    let place = world.path("document/out/deep/er/a.txt");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "né");
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o640)).unwrap();
    call(&tools, "write_file", json!({"path": "out/deep/er/a.txt", "content": ""})).await.unwrap();
    assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o640, "the mode is kept");
    assert_eq!(std::fs::read(&place).unwrap(), b"");
    assert_eq!(std::fs::read_dir(place.parent().unwrap()).unwrap().count(), 1, "nothing temporary is left");
    // Ways out.
    world.write("victim.txt", "untouched");
    symlink(world.path("victim.txt"), world.path("document/out/file-link")).unwrap();
    symlink(world.root.path(), world.path("document/out/folder-link")).unwrap();
    symlink(world.path("made-by-link"), world.path("document/out/dangling")).unwrap();
    for path in [
        "a.txt",
        "out/../a.txt",
        "out/file-link",
        "out/folder-link/victim.txt",
        "out/dangling",
        "out/x/../../../victim.txt",
        "outside",
        "/etc/selvedge-test",
    ] {
        fault(call(&tools, "write_file", args(path)).await, Denied, "");
    }
    assert_eq!(std::fs::read_to_string(world.path("victim.txt")).unwrap(), "untouched");
    assert!(!world.path("made-by-link").exists() && !world.path("document/a.txt").exists());
    fault(call(&tools, "write_file", args("out")).await, ExecutionFailure, "tool_execution_error");
}

/// the user's search path is part of the environment, of which tools inherit nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_get_a_search_path_of_their_own() {
    let world = World::new();
    let tools = with(&world, |_| {}).await;
    for (tool, args) in [
        ("python", json!({"code": "import os\nprint(os.environ['PATH'])"})),
        ("shell", json!({"command": "echo $PATH"})),
    ] {
        let output = call(&tools, tool, args).await.unwrap();
        assert_eq!(output["stdout"], "/usr/local/bin:/usr/bin:/bin\n", "{tool}");
    }
}

#[tokio::test]
async fn the_state_folder_is_for_no_built_in() {
    let world = World::new();
    // Where it lies by default, and as a whole below what is granted.
    let state = world.path("document/.selvedge");
    world.write("document/.selvedge/selvedge.db", "the journal");
    world.write("document/a.txt", "a");
    std::fs::create_dir(world.path("document/sub")).unwrap();
    symlink(&state, world.path("document/link")).unwrap();
    symlink(state.join("selvedge.db"), world.path("document/db")).unwrap();
    symlink(world.path("document"), world.path("up")).unwrap();
    for given in [state.clone(), world.path("document/link"), world.path("up/sub/../.selvedge")] {
        let tools = with(&world, |config| {
            config.hidden = vec![given.clone()];
            config.permissions.allow_read.push(world.root.path().to_owned());
            config.permissions.allow_write.push(world.root.path().to_owned());
        })
        .await;
        let absolute = state.join("selvedge.db").display().to_string();
        let around = world.path("up/.selvedge/selvedge.db").display().to_string();
        for path in [
            ".selvedge/selvedge.db",
            "sub/../.selvedge/selvedge.db",
            "./.selvedge/./new.txt",
            ".selvedge/not/there/yet",
            "link/selvedge.db",
            "link/new.txt",
            "db",
            ".selvedge",
            absolute.as_str(),
            around.as_str(),
        ] {
            for (tool, args) in [
                ("read_file", json!({ "path": path })),
                ("list_files", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "x" })),
            ] {
                let fault = fault(call(&tools, tool, args).await, Denied, "");
                assert!(fault.message.contains("state folder"), "{tool} {path}: {fault:?}");
            }
        }
        for (path, glob) in
            [(".", None), (".", Some("**/*")), (".", Some(".selvedge/*")), ("..", Some("**/*"))]
        {
            let args = glob.map_or_else(|| json!({"path": path}), |glob| json!({"path": path, "glob": glob}));
            let listed = call(&tools, "list_files", args).await.unwrap().to_string();
            assert!(
                !listed.contains("selvedge.db") && !listed.contains("\"db\""),
                "{path} {glob:?}: {listed}"
            );
        }
        assert_eq!(call(&tools, "read_file", json!({"path": "a.txt"})).await.unwrap(), "a");
        call(&tools, "write_file", json!({"path": "out.txt", "content": "x"})).await.unwrap();
    }
    assert_eq!(std::fs::read_to_string(state.join("selvedge.db")).unwrap(), "the journal");
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
    // A state folder that comes into being later, and one whose folder is granted itself: what is ours stays out of reach.
    let state = world.path("document/later");
    let tools = with(&world, |config| {
        config.hidden = vec![state.clone()];
        config.permissions.allow_write = vec![world.path("document"), state.clone()];
    })
    .await;
    std::fs::create_dir(&state).unwrap();
    for name in ["selvedge.db", "selvedge.db-wal", "selvedge.db-journal", "locks/l", "cache/tools/x.py"] {
        let args = json!({"path": format!("later/{name}"), "content": "x"});
        fault(call(&tools, "write_file", args).await, Denied, "");
    }
    call(&tools, "write_file", json!({"path": "later/other.txt", "content": "x"})).await.unwrap();
}

#[tokio::test]
async fn listings_are_sorted_and_confined() {
    let world = World::new();
    for (name, text) in [("b.csv", "12"), ("a.txt", "1"), ("sub/c.csv", "123"), ("sub/deep/d.csv", "")] {
        world.write(&format!("document/{name}"), text);
    }
    world.write("other/secret.csv", "canary");
    symlink(world.path("other"), world.path("document/out")).unwrap();
    symlink(world.path("other/secret.csv"), world.path("document/s.csv")).unwrap();
    symlink("..", world.path("document/sub/loop")).unwrap();
    let tools = world.load().await;
    let list = |args: Value| {
        let tools = tools.clone();
        async move { call(&tools, "list_files", args).await }
    };
    let file = |path: &str, bytes: u64| json!({"path": path, "bytes": bytes});
    assert_eq!(list(json!({"path": "."})).await.unwrap(), json!([file("a.txt", 1), file("b.csv", 2)]));
    let all = json!([file("b.csv", 2), file("sub/c.csv", 3), file("sub/deep/d.csv", 0)]);
    assert_eq!(list(json!({"path": ".", "glob": "**/*.csv"})).await.unwrap(), all);
    assert_eq!(list(json!({"path": ".", "glob": "*.csv"})).await.unwrap(), json!([file("b.csv", 2)]));
    assert_eq!(
        list(json!({"path": "sub", "glob": "*/*"})).await.unwrap(),
        json!([file("sub/deep/d.csv", 0)])
    );
    assert_eq!(list(json!({"path": "sub/deep", "glob": "*.txt"})).await.unwrap(), json!([]));
    for (path, glob) in [("..", "*"), ("out", "*"), (".", "../*"), (".", "/etc/*"), ("sub/loop/../..", "*")] {
        fault(list(json!({"path": path, "glob": glob})).await, Denied, "");
    }
    fault(list(json!({"path": ".", "glob": "a[b"})).await, InputError, "input_error");
    fault(list(json!({"path": "a.txt"})).await, ExecutionFailure, "tool_execution_error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_in_the_documents_folder() {
    let world = World::new();
    world.write("document/data.txt", "from the document");
    let tools = world.load().await;
    let done = call(&tools, "shell", json!({"command": "cat data.txt; echo no >&2; exit 3"})).await.unwrap();
    assert_eq!(done, json!({"stdout": "from the document", "stderr": "no\n", "exit_code": 3}));
    let code =
        "import os, sys\nprint(open('data.txt').read(), os.environ.get('SELVEDGE_EFFECT_ID'))\nsys.exit(2)";
    let done = call(&tools, "python", json!({ "code": code })).await.unwrap();
    assert_eq!(done, json!({"stdout": "from the document main/n/1/1\n", "stderr": "", "exit_code": 2}));
    let raised = call(&tools, "python", json!({"code": "1/0"})).await.unwrap();
    assert!(raised["exit_code"] == 1 && raised["stderr"].as_str().unwrap().contains("ZeroDivisionError"));
    let env = call(&tools, "shell", json!({"command": "env"})).await.unwrap();
    assert!(!env["stdout"].as_str().unwrap().contains("CARGO_"), "{env}");
    // As a shell says it of what it started.
    let killed = call(&tools, "shell", json!({"command": "kill -9 $$"})).await.unwrap();
    assert_eq!(killed["exit_code"], 137);
    let mark = mark();
    let command = format!("trap '' TERM; sleep {mark} & setsid sleep {mark} & wait");
    fault(
        call_within(&tools, "shell", json!({ "command": command }), 3.0).await,
        Timeout,
        "tool_execution_timeout",
    );
    assert!(!anyone(&mark), "what the shell started is gone");
    // Both streams count towards the one limit.
    let small = with(&world, |config| config.limits.tool_output_bytes = 1000).await;
    let both = "head -c 600 /dev/zero | tr '\\0' x; head -c 600 /dev/zero | tr '\\0' y >&2";
    fault(call(&small, "shell", json!({ "command": both })).await, LimitExceeded, "");
    eventually("scratch folders are removed", || world.scratch_is_empty()).await;
}

/// Answers one request after another with what `answer` makes of the path; stops with the test's process.
fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().take(20) {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            let _ = reader.read_line(&mut line);
            let mut rest = String::new();
            while reader.read_line(&mut rest).is_ok_and(|count| count > 2) {
                rest.clear();
            }
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            if path == "/hang" {
                let _ = stream.read(&mut [0; 1]);
                continue;
            }
            let _ = stream.write_all(&answer(&path));
        }
    });
    address
}

fn reply(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_get_fetches_within_limits() {
    let world = World::new();
    let denied =
        fault(call(&world.load().await, "http_get", json!({"url": "http://127.0.0.1:1/"})).await, Denied, "");
    assert!(denied.message.contains("--allow-network"), "{}", denied.message);
    let tools = with(&world, |config| {
        config.permissions.allow_network = Network::Local;
        config.limits.tool_output_bytes = 10_000;
    })
    .await;
    let base = serve(|path| match path {
        "/page" => {
            reply("200 OK", "Content-Type: text/plain; charset=utf-8\r\nX-Two: a\r\nX-Two: b\r\n", "grüß")
        }
        "/moved" => reply("302 Found", "Location: /page\r\n", ""),
        "/ring" => reply("302 Found", "Location: /ring\r\n", ""),
        "/file" => reply("302 Found", "Location: file:///etc/hostname\r\n", ""),
        "/big" => reply("200 OK", "", &"x".repeat(10_001)),
        "/cut" => b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nonly this".to_vec(),
        _ => reply("404 Not Found", "", "no such page"),
    });
    let get = |url: String| {
        let tools = tools.clone();
        async move { call(&tools, "http_get", json!({ "url": url })).await }
    };
    let page = get(format!("{base}/page")).await.unwrap();
    assert_eq!(
        (&page["status"], &page["body"], &page["headers"]["x-two"]),
        (&json!(200), &json!("grüß"), &json!("a, b"))
    );
    assert_eq!(get(format!("{base}/moved")).await.unwrap()["body"], "grüß");
    let absent = get(format!("{base}/absent")).await.unwrap();
    assert_eq!(
        (&absent["status"], &absent["body"]),
        (&json!(404), &json!("no such page")),
        "an output (A-14)"
    );
    fault(get(format!("{base}/ring")).await, ExecutionFailure, "tool_execution_error");
    fault(get(format!("{base}/big")).await, LimitExceeded, "");
    fault(get(format!("{base}/file")).await, InputError, "input_error");
    fault(get("ftp://127.0.0.1/x".into()).await, InputError, "input_error");
    fault(get("no address".into()).await, InputError, "input_error");
    let cut = get(format!("{base}/cut")).await;
    assert!(cut.as_ref().unwrap_err().transient);
    fault(cut, ExecutionFailure, "tool_execution_error");
    let hang = call_within(&tools, "http_get", json!({"url": format!("{base}/hang")}), 0.4).await;
    fault(hang, Timeout, "tool_execution_timeout");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = get(format!("http://{nobody}/")).await.unwrap_err();
    assert!(refused.transient);
    // The words of model endpoints (C-04).
    let words = "can't be reached: nothing listens there (connection refused); start the server, or check the address";
    assert!(refused.fault.message.contains(words), "{}", refused.fault.message);
}

/// what listens on this machine, in its networks, or is a cloud's metadata is not for `http_get`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_get_reaches_public_addresses_only() {
    let world = World::new();
    let tools = with(&world, |config| config.permissions.allow_network = Network::Public).await;
    let base = serve(|_| reply("200 OK", "", "secret"));
    let port = base.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "127.1", "localhost", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let url = format!("http://{host}:{port}/");
        let fault = fault(call(&tools, "http_get", json!({ "url": url })).await, Denied, "");
        assert!(fault.message.contains("--allow-network=local"), "{}", fault.message);
    }
    for url in ["http://169.254.169.254/latest/meta-data/", "https://10.0.0.1/", "http://[fd00:ec2::254]/"] {
        let fault = fault(call(&tools, "http_get", json!({ "url": url })).await, Denied, "");
        assert!(fault.message.contains("is not fetched"), "{}", fault.message);
    }
}
