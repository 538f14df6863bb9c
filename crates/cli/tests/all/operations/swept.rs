//! the tasks of runs that were left as they were are ended by the next command that looks at the library.

use super::once::begin_with;
use super::*;
use selvedge_store::{RunStatus, RunUpdate};

/// A task with a tool that was proven, and one that was not, in a run that would publish at its end.
async fn left(folder: &Folder, run: &str, publish: bool, status: RunStatus) -> (Process, Value, Value) {
    let process = Process::start(folder, run).await;
    let args = json!({"depth": 0, "publish": publish});
    let node = json!({"id": "e", "name": "e", "body": {"leaves": [
        {"name": "call", "act": {"call": {"tool": known::end().name, "args": args}}}]}});
    let graph =
        json!({"threads": [], "tools": {(known::end().name.to_string()): *known::end()}, "nodes": [node]});
    begin_with(&process.store, run, &Arc::new(serde_json::from_value(graph).unwrap()), None).await;
    let mut made = Vec::new();
    for name in ["proven", "unproven"] {
        let text = file(&format!("{name}_{run}"), "", "    return {'text': text}");
        made.push(process.draft(name, &format!("{name}_{run}"), &text, json!({})).await);
    }
    let call = process.call("c1", &made[0]["tool"], json!({"text": "a"})).await;
    let (_, settled) = process.settle("1", &[call], "Success").await;
    assert_eq!(settled["proven"], json!([format!("proven_{run}")]));
    let update = RunUpdate { status: Some((status, None)), ..RunUpdate::default() };
    process.store.update_run(run, update).await.unwrap();
    (process, made[0].clone(), made[1].clone())
}

/// What a command shows of the library's versions by name: their states.
fn states(folder: &Folder) -> serde_json::Map<String, Value> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .env("SELVEDGE_STATE_DIR", folder.at("state"))
        .env("SELVEDGE_TRUST", "1")
        .current_dir(folder.at("work"));
    let done = command.args(["tools", "list", "--all", "--json"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let listed: Value = serde_json::from_slice(&done.stdout).unwrap();
    let tools = listed["tools"].as_array().unwrap().iter();
    let own = tools.filter(|tool| tool["source"] == "library");
    own.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["state"].clone())).collect()
}

#[tokio::test]
async fn a19_what_a_run_left_is_ended_by_the_next_command() {
    let folder = Folder::new();
    let (failed, ..) = left(&folder, "failed", true, RunStatus::Failed).await;
    left(&folder, "cancelled", false, RunStatus::Cancelled).await;
    left(&folder, "killed", true, RunStatus::Running).await;
    left(&folder, "waiting", true, RunStatus::Waiting).await;
    let (driven, ..) = left(&folder, "driven", true, RunStatus::Running).await;
    let lock = driven.store.drive("driven").unwrap();
    let states = states(&folder);
    for (name, state) in [
        ("proven_failed", "public"),
        ("unproven_failed", "retired"),
        // Its graph would have kept it private.
        ("proven_cancelled", "private"),
        ("unproven_cancelled", "retired"),
        ("proven_killed", "public"),
        ("unproven_killed", "retired"),
        ("proven_waiting", "private"),
        ("unproven_waiting", "private"),
        ("proven_driven", "private"),
        ("unproven_driven", "private"),
    ] {
        assert_eq!(states.get(name), Some(&json!(state)), "{name}: {states:?}");
    }
    drop(lock);
    let events = failed.store.last_library_event().unwrap();
    assert_eq!(self::states(&folder)["unproven_driven"], "retired");
    let after = failed.store.last_library_event().unwrap();
    assert!(after > events);
    self::states(&folder);
    assert_eq!(failed.store.last_library_event().unwrap(), after, "once is enough");
    // Texts of what was retired stay, and their copies don't.
    let copies =
        std::fs::read_dir(folder.at("state/cache/tools")).unwrap().map(|entry| entry.unwrap().path());
    let copies = copies.filter(|path| path.extension().is_some_and(|kind| kind == "py")).count();
    assert_eq!(copies, 6, "of ten tools, four are retired");
}

/// A run that was left and goes on has its tools again, proven or not.
#[tokio::test]
async fn a19_a_run_that_goes_on_has_its_tools_again() {
    let folder = Folder::new();
    let (process, _, unproven) = left(&folder, "r1", false, RunStatus::Failed).await;
    assert_eq!(states(&folder)["unproven_r1"], "retired");
    let names = json!({"depth": 0, "names": ["proven_r1", "unproven_r1"]});
    let bound = process.ask(known::bindings(), "b", names).await;
    assert_eq!(bound["missing"], json!([]), "{bound}");
    assert_eq!(bound["tools"]["unproven_r1"], unproven["tool"]);
    let call = process.call("c2", &unproven["tool"], json!({"text": "b"})).await;
    assert_eq!(call["output"], json!({"text": "b"}));
    let (_, settled) = process.settle("2", &[call], "Success").await;
    assert_eq!(settled["proven"], json!(["unproven_r1"]));
    assert_eq!(process.stage(&unproven["version"]), Some("private"));
    let ended = process.ask(known::end(), "e", json!({"depth": 0, "publish": true})).await;
    assert!(ended["tools"].as_array().unwrap().iter().all(|tool| tool["state"] == "public"), "{ended}");
    assert_eq!(states(&folder)["unproven_r1"], "public");
}
