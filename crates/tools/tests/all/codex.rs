//! The codex CLI, from npm, has tools written: its model is a server on this machine that says what it is told to.

use crate::mcp::loopback::{Loopback, status};
use crate::world::{World, anyone, context, env, eventually, from_npm, mark, source};
use selvedge_engine::{EffectId, FaultKind, Operated, ToolRequest};
use selvedge_http::Secret;
use selvedge_runtime::ports::Tools;
use selvedge_tools::coder::Codex;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const CANARY: &str = "sk-canary-0123456789abcdef";

fn program() -> Option<PathBuf> {
    let folder = from_npm("codex", "there is no codex CLI from npm here")?;
    let packages = std::fs::read_dir(folder.join("node_modules/@openai")).ok()?;
    // Its own program, so that no Node is needed on the path.
    let vendor = packages.filter_map(|package| Some(package.ok()?.path().join("vendor")));
    let machines = vendor.filter_map(|vendor| Some(vendor.read_dir().ok()?.next()?.ok()?.path()));
    machines.map(|machine| machine.join("bin/codex")).find(|program| program.is_file())
}

/// What the model says, request by request: the last one again and again.
async fn model(items: Vec<Value>) -> Loopback {
    Loopback::start(move |asked| {
        if asked.verb != "POST" {
            return Some(status(404, "", ""));
        }
        let item = items.get(asked.before).or(items.last()).unwrap();
        if let Some(code) = item["status"].as_u64() {
            let body = json!({"error": {"message": item["message"], "type": "invalid_request_error"}});
            return Some(status(
                u16::try_from(code).unwrap(),
                "content-type: application/json\r\n",
                &body.to_string(),
            ));
        }
        let usage = json!({
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 200}, "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 10}, "total_tokens": 1050,
        });
        let id = format!("r{}", asked.before);
        let events = [
            json!({"type": "response.created", "response": {"id": id}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
        ];
        let lines =
            events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
        Some(status(200, "content-type: text/event-stream\r\n", &lines.concat()))
    })
    .await
}

fn command(command: &str) -> Value {
    let arguments = json!({"cmd": command, "yield_time_ms": 20_000}).to_string();
    json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "exec_command", "arguments": arguments})
}

fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    json!({"type": "message", "role": "assistant", "id": "m1", "content": content})
}

fn codex(world: &World, program: PathBuf, model: &Loopback) -> Codex {
    Codex {
        program,
        key: ("SOME_KEY".to_owned(), Secret::new(CANARY)),
        base_url: format!("http://127.0.0.1:{}/v1", model.port),
        model: Some("gpt-5".to_owned()),
        timeout: Duration::from_secs(60),
        env: env(),
        scratch_root: world.path("scratch"),
    }
}

/// What codex leaves that runs this command, for the tool `add`; and what its model was told.
async fn after(script: &str, last: &str) -> Option<(Operated, String)> {
    let world = World::new();
    let program = program()?;
    let model = model(vec![command(script), message(last)]).await;
    let done = codex(&world, program, &model).write("add", "Write a tool.", None).await.unwrap();
    let told: Vec<Value> = model.asked("POST").into_iter().map(|asked| asked.message).collect();
    Some((done, serde_json::to_string(&told).unwrap()))
}

fn words(done: &Operated) -> &str {
    assert_eq!(done.output["file"], Value::Null, "{done:?}");
    done.output["words"].as_str().unwrap()
}

/// the file is there, and is a tool; its key went to its model alone; what it used is told.
#[tokio::test]
async fn a07_codex_writes_a_tool_that_runs() {
    let Some(program) = program() else { return };
    let world = World::new();
    std::fs::write(world.path("private"), "something private").unwrap();
    let text = source("add", "", "def run(i): return i.x + 1");
    let script = format!(
        "cat > add.py <<'END'\n{text}END\necho rest > notes.txt; env; cat /proc/*/environ; cat {private}; ls {root}; touch {root}/made; \
         python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'",
        private = world.path("private").display(),
        root = world.path("").display(),
    );
    let model = model(vec![command(&script), message("I wrote add.py.")]).await;
    let done = codex(&world, program, &model).write("add", "Write `add`.", None).await.unwrap();
    assert_eq!(done.output["file"], text, "{done:?}");
    assert_eq!(done.output["words"], "I wrote add.py.");
    let tokens = &done.tokens;
    assert_eq!((tokens.input, tokens.output, tokens.cached, tokens.reasoning), (2000, 100, 400, 20));
    let asked = model.asked("POST");
    assert_eq!(asked.len(), 2);
    for asked in &asked {
        assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {CANARY}")));
        let told = asked.message.to_string();
        assert!(told.contains("Write `add`.") && told.contains("`add.py`"), "{told}");
        // Neither the key nor anything of the user's: no variable, no process, no file.
        assert!(!told.contains(CANARY) && !told.contains("something private"), "{told}");
    }
    // The command ran, and saw nothing but its folder.
    let told = asked[1].message.to_string();
    assert!(told.contains("CODEX_SANDBOX_NETWORK_DISABLED=1") && told.contains("No such file"), "{told}");
    assert!(!world.path("made").exists());
    eventually("its folders are removed", || world.scratch_is_empty()).await;
    // It is examined like any other file.
    let catalogue = world.load().await;
    let file = done.output["file"].as_str().unwrap();
    let drafted = catalogue.draft("add", file).await.unwrap();
    let request = ToolRequest {
        effect: EffectId("main/n/1/1".into()),
        node: "n".into(),
        tool: drafted.definition,
        args: json!({"x": 4}),
        timeout_s: None,
    };
    assert_eq!(catalogue.call(request, context()).await.unwrap(), 5);
}

/// exit code 0 is no success. What is left is one file under its name, or nothing.
#[tokio::test]
async fn a28_codex_that_leaves_no_file_says_why() {
    for (script, why) in [
        ("true", "there is no file `add.py`"),
        ("echo 'x = 1' > other.py", "there is no file `add.py`"),
        ("ln -s /etc/passwd add.py", "is a link"),
        ("mkdir add.py", "no file of its own"),
        ("head -c 9437184 /dev/zero | tr '\\0' '#' > add.py", "has 9437184 bytes"),
    ] {
        let Some((done, _)) = after(script, "All done.").await else { return };
        let words = words(&done);
        assert!(words.contains(why) && words.contains("its last words: All done."), "{why}: {words}");
        assert_eq!(done.tokens.input, 2000, "what it used counts: {done:?}");
    }
}

/// C-06: its key is in nothing that comes back, whoever says it.
#[tokio::test]
async fn a28_codex_gives_no_key_away() {
    let script = format!("echo \"KEY = '{CANARY}'\" > add.py");
    let Some((done, _)) = after(&script, &format!("It is {CANARY}.")).await else { return };
    assert!(words(&done).contains("has the key of codex in it"), "{done:?}");
    assert!(!format!("{done:?}").contains(CANARY), "{done:?}");
}

/// Whatever it runs ends with it: when its time is up, and when nobody waits any more (E-38).
#[tokio::test]
async fn a07_codex_is_ended_with_all_that_it_started() {
    let Some(program) = program() else { return };
    let world = World::new();
    for cancelled in [true, false] {
        let sleep = mark();
        let model = model(vec![command(&format!("sleep {sleep}"))]).await;
        // Time enough to begin with, on whatever machine; the other one ends before that.
        let codex = Codex { timeout: Duration::from_secs(30), ..codex(&world, program.clone(), &model) };
        let working = tokio::spawn(async move { codex.write("add", "Write it.", None).await });
        eventually("it works", || anyone(&sleep)).await;
        if cancelled {
            working.abort();
        } else {
            let done = working.await.unwrap().unwrap();
            assert!(words(&done).contains("codex was ended after 30 s"), "{done:?}");
        }
        eventually("it is ended", || !anyone(&sleep)).await;
    }
    eventually("its folders are removed", || world.scratch_is_empty()).await;
}

#[tokio::test]
async fn a07_what_codex_can_not_do_is_told() {
    let Some(program) = program() else { return };
    let world = World::new();
    let model = model(vec![json!({"status": 401, "message": "no such key"})]).await;
    let done = codex(&world, program.clone(), &model).write("add", "Write it.", None).await.unwrap();
    let said = words(&done);
    assert!(said.contains("there is no file `add.py`") && said.contains("no such key"), "{said}");
    let absent = Codex { program: world.path("codex"), ..codex(&world, program, &model) };
    let failure = absent.write("add", "Write it.", None).await.unwrap_err();
    assert_eq!((failure.fault.kind, failure.unsent), (FaultKind::ToolBuildFailure, true), "{failure:?}");
}

/// A program that only calls itself codex is held by its time and by what it may say.
#[tokio::test]
async fn a28_a_codex_that_never_stops_talking_is_ended() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let program = world.write("talker", "#!/bin/sh\nexec yes '{\"type\":\"item.completed\"}'\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let model = model(Vec::new()).await;
    let done = codex(&world, program, &model).write("add", "Write it.", None).await.unwrap();
    assert!(words(&done).contains("said too much"), "{done:?}");
}
