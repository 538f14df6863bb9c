//! The library and runs: pins hold whatever becomes of files, caches and the library (A-18, A-23), and the library is never
//! between two changes (A-17, V-10).

use crate::support::{Done, Place, calls, finish, says};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// A tool that says which of its versions it is.
fn tool(says: &str) -> String {
    format!(
        "from pydantic import BaseModel\n\
         __TOOL_META__ = {{'name': 'which', 'description': 'd', 'dependencies': [], 'effects': 'pure'}}\n\
         class InputModel(BaseModel):\n    n: int = 0\n\
         def run(i):\n    return '{says}'\n"
    )
}

/// A run whose model node fails until the script is mended, and then calls the tool once more.
fn world(place: &Place) {
    place.plan(
        "plan.json",
        json!([calls("a", "which", json!({"n": 1})), says("b", "B"), calls("c", "which", json!({"n": 2}))]),
    );
    place.write("bad.yaml", "- when: {node: b}\n  reply: {error: {status: 400, message: no}}\n");
    place.write("good.yaml", "- reply: {text: fine}\n");
}

fn run(place: &Place, args: &[&str]) -> Done {
    let mut command = place.command(args);
    command.env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
    finish(command.spawn().unwrap())
}

fn outputs(done: &Done) -> (Value, Value) {
    let run = done.json();
    (run["results"]["a"]["output"].clone(), run["results"]["c"]["output"].clone())
}

#[test]
fn a18_what_another_run_publishes_does_not_change_a_run_that_goes_on() {
    let place = Place::new();
    world(&place);
    place.write("tools/which.py", &tool("first"));
    run(&place, &["tools", "import", "tools"]).exits(0);
    run(&place, &["run", "plan.json", "--script", "bad.yaml", "--run-id", "r", "--json"]).exits(1);
    place.write("tools/which.py", &tool("second"));
    run(&place, &["tools", "import", "tools", "--replace"]).exits(0);
    let doctor = run(&place, &["doctor"]).stdout;
    assert!(doctor.contains("library") && doctor.contains("1 tool;"), "{doctor}");
    // What is pinned is kept in the state folder: the cache is only a cache (A-23).
    std::fs::remove_dir_all(place.state().join("cache")).unwrap();
    let resumed = run(&place, &["resume", "r", "--script", "good.yaml", "--json"]).exits(0);
    assert_eq!(outputs(&resumed), (json!("first"), json!("first")));
    assert_eq!(resumed.json()["warnings"], json!([]), "nothing has changed for this run");
    // A run that begins takes what there is.
    let fresh = run(&place, &["run", "plan.json", "--script", "good.yaml", "--json"]).exits(0);
    assert_eq!(outputs(&fresh), (json!("second"), json!("second")));
    // The calls of both are recorded, each by its version, once however often a run goes on (A-17).
    let history = run(&place, &["tools", "history", "which", "--json"]).exits(0).json();
    let recorded: Vec<&Value> =
        history["versions"].as_array().unwrap().iter().map(|version| &version["calls"]["recorded"]).collect();
    assert_eq!(recorded, [2, 2]);
}

#[test]
fn a18_a_file_that_vanished_runs_on_as_it_was_and_one_that_changed_is_told() {
    for (vanishes, expected) in [(true, "first"), (false, "second")] {
        let place = Place::new();
        world(&place);
        place.write("tools/which.py", &tool("first"));
        let tools = ["--tools", "tools", "--json"];
        let first = ["run", "plan.json", "--script", "bad.yaml", "--run-id", "r"];
        run(&place, &[&first[..], &tools].concat()).exits(1);
        std::fs::remove_dir_all(place.state().join("cache")).unwrap();
        match vanishes {
            true => std::fs::remove_file(place.work().join("tools/which.py")).unwrap(),
            false => drop(place.write("tools/which.py", &tool("second"))),
        }
        // A tool of the library never stands in for the file that was pinned.
        place.write("shelf/which.py", &tool("shelved"));
        run(&place, &["tools", "import", "shelf"]).exits(0);
        let resumed = run(&place, &["resume", "r", "--script", "good.yaml", "--json"]).exits(0);
        assert_eq!(outputs(&resumed).1, expected);
        let told = resumed.json()["warnings"].to_string().contains("tool-changed");
        assert_eq!(told, !vanishes, "{resumed:?}");
    }
}

/// A-18: a folder that is gone as a whole, at a `resume` and at an `answer`.
#[test]
fn a18_a_folder_that_vanished_leaves_the_run_its_tools() {
    for asks in [false, true] {
        let place = Place::new();
        world(&place);
        if asks {
            let mut approved = says("b", "B");
            approved["require_approval"] = json!(true);
            let calls = |id, n| calls(id, "which", json!({ "n": n }));
            place.plan("plan.json", json!([calls("a", 1), approved, calls("c", 2)]));
        }
        place.write("tools/which.py", &tool("first"));
        let script = if asks { "good.yaml" } else { "bad.yaml" };
        let begun = run(
            &place,
            &["run", "plan.json", "--tools", "tools", "--script", script, "--run-id", "r", "--json"],
        );
        std::fs::remove_dir_all(place.work().join("tools")).unwrap();
        std::fs::remove_dir_all(place.state().join("cache")).unwrap();
        let resumed = if asks {
            let ask = begun.exits(3).json()["asks"][0]["ask"].as_str().unwrap().to_owned();
            run(&place, &["answer", "r", &ask, "yes", "--json"]).exits(0)
        } else {
            begun.exits(1);
            // A folder that is named now must be there.
            run(&place, &["resume", "r", "--script", "good.yaml", "--tools", "tools"]).exits(2);
            run(&place, &["resume", "r", "--script", "good.yaml", "--json"]).exits(0)
        };
        assert_eq!(outputs(&resumed), (json!("first"), json!("first")));
        let warnings = resumed.json()["warnings"].clone();
        assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
        assert_eq!(warnings[0]["code"], "tools-gone");
        // A run that begins needs what it names.
        run(&place, &["run", "plan.json", "--tools", "tools", "--script", script]).exits(2);
    }
}

/// A-18: the same at a `fork`, of the document as it was recorded and of an edited one.
#[test]
fn a18_a_folder_that_vanished_leaves_a_fork_its_tools() {
    let place = Place::new();
    world(&place);
    place.write("tools/which.py", &tool("first"));
    let begin = ["run", "plan.json", "--tools", "tools", "--script", "bad.yaml", "--run-id", "r", "--json"];
    run(&place, &begin).exits(1);
    std::fs::remove_dir_all(place.work().join("tools")).unwrap();
    std::fs::remove_dir_all(place.state().join("cache")).unwrap();
    let edited =
        [calls("a", "which", json!({"n": 1})), says("b", "Other"), calls("c", "which", json!({"n": 3}))];
    place.plan("edited.json", json!(edited));
    for more in [&[][..], &["--at", "1"], &["--document", "edited.json"]] {
        let fork = [&["fork", "r", "--script", "good.yaml", "--json"], more].concat();
        let forked = run(&place, &fork).exits(0);
        assert_eq!(outputs(&forked), (json!("first"), json!("first")), "{more:?}");
        let warnings = forked.json()["warnings"].clone();
        assert_eq!(warnings.as_array().unwrap().len(), 1, "{more:?}: {warnings}");
        assert_eq!(warnings[0]["code"], "tools-gone");
        // What is named now must be there, and a name that the run never had means nothing.
        run(&place, &[&fork[..], &["--tools", "tools"]].concat()).exits(2);
    }
    // Whoever goes on with such a fork is told as well.
    run(&place, &["fork", "r", "--script", "bad.yaml", "--run-id", "again"]).exits(1);
    let resumed = run(&place, &["resume", "again", "--script", "good.yaml", "--json"]).exits(0);
    assert_eq!(resumed.json()["warnings"][0]["code"], "tools-gone", "{resumed:?}");
    place.plan("edited.json", json!([calls("a", "whom", json!({}))]));
    let error = run(&place, &["fork", "r", "--document", "edited.json", "--json"]).exits(2).error();
    assert_eq!(error["code"], "unknown-tool", "{error}");
}

/// C-28: a run goes on without a tool that is gone and that it has no copy of, unless a call of it may still come.
#[test]
fn c28_a_run_that_needs_a_tool_which_is_gone_does_not_go_on() {
    let config = |names: &[&str]| {
        let one = |name: &&str| {
            format!(
                "[tools.command.{name}]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 1\"]\n\
                 description = \"d\"\neffects = \"read\"\ninput_schema = {{ type = \"object\" }}\n"
            )
        };
        names.iter().map(one).collect::<String>()
    };
    let place = Place::new();
    place.write("selvedge.toml", &config(&["before", "never", "after"]));
    let flow = json!({"nodes": [
        {"id": "start", "type": "START"},
        {"id": "first", "type": "TOOL", "config": {"tool": "before"}},
        {"id": "which", "type": "ROUTE", "config": {"branches": [{"when": "false", "to": "other"}], "default": "sure"}},
        {"id": "other", "type": "TOOL", "config": {"tool": "never"}},
        {"id": "sure", "type": "USER_INTERACTION", "config": {"kind": "answer", "prompt": "Sure?"}},
        {"id": "last", "type": "TOOL", "config": {"tool": "after"}},
        {"id": "end", "type": "END", "config": {"output": "{{last.output}}"}}],
        "edges": [
            {"from": "start", "to": "first"}, {"from": "first", "to": "which"},
            {"from": "other", "to": "last"}, {"from": "sure", "to": "last"}, {"from": "last", "to": "end"}]});
    place.write("flow.json", &flow.to_string());
    place.run(&["run", "flow.json", "--run-id", "r", "--json"]).exits(3);
    place.write("selvedge.toml", "");
    std::fs::remove_dir_all(place.state().join("cache")).unwrap();
    for args in [&["resume", "r", "--json"][..], &["answer", "r", "sure", "yes", "--json"]] {
        let error = place.run(args).exits(4).error();
        assert_eq!((&error["code"], &error["rule"]), (&json!("tool-gone"), &json!("C-28")), "{error}");
        assert!(error["message"].as_str().unwrap().contains("`last` calls the tool `after`"), "{error}");
        assert!(error["help"].as_str().unwrap().contains("selvedge fork r --document FILE"), "{error}");
    }
    let shown = place.run(&["show", "r", "--json"]).exits(0).json();
    assert_eq!(shown["status"], "waiting", "nothing was recorded");
    // Calls that were made, and those that no way leads to any more, need nothing.
    place.write("selvedge.toml", &config(&["after"]));
    let done = place.run(&["answer", "r", "sure", "yes", "--json"]).exits(0).json();
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!(1)), "{done}");
    let warning = &done["warnings"][0];
    assert_eq!(warning["code"], "tool-gone", "{done}");
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("`before`") && message.contains("`never`"), "{message}");
}

/// D-17: tools that only a model may choose cost nothing before it does; A-18: they are pinned all the same.
#[test]
fn d17_no_environment_is_built_for_what_nobody_calls() {
    let place = Place::new();
    place.write("tools/near.py", &tool("near").replace("'which'", "'near'"));
    let fails = "def run(i):\n    raise ValueError('away')";
    place.write(
        "tools/fails.py",
        &tool("").replace("'which'", "'fails'").replace("def run(i):\n    return ''", fails),
    );
    let far = tool("far").replace("'which'", "'far'").replace("[]", "['idna>=2,<9.87']");
    place.write("tools/far.py", &far);
    let step = json!({"step_id": "s", "step_name": "S", "tool_id": "fails", "parameters": {}});
    place.write("task.json", &json!({"task": "t", "steps": [step]}).to_string());
    let tries =
        json!({"action": "retry_with_tool", "tool_id": "near", "parameters": {}, "reason": "it is near"});
    let rule = |tool: &str| {
        format!("- when: {{role: reflection, matches: '\"name\":\"{tool}\"'}}\n  reply: {{json: {tries}}}\n")
    };
    for (id, offered) in [("r", "far"), ("q", "near")] {
        place.write("s.yaml", &rule(offered));
        let begin = ["run", "task.json", "--tools", "tools", "--script", "s.yaml", "--run-id", id];
        let done = run(&place, &begin).exits(0);
        assert_eq!(done.stdout, "near\n", "{done:?}");
        assert!(!done.stderr.contains("idna"), "{}", done.stderr);
    }
    let text = format!("{}\n# edited\n", far);
    place.write("tools/far.py", &text);
    let forked = run(&place, &["fork", "r", "--at", "1"]).exits(0);
    assert!(
        forked.stderr.contains("the tool `far` has changed") && !forked.stderr.contains("idna"),
        "{forked:?}"
    );
}

/// Writes a folder of three tools that no library has yet.
fn fresh(place: &Place, round: usize) {
    for name in NAMES {
        let text = tool(&format!("{round} {}", "pad ".repeat(3000))).replace("'which'", &format!("'{name}'"));
        place.write(&format!("tools/{name}.py"), &text);
        place.write(&format!("tools/{name}.calls.jsonl"), "{\"arguments\":{},\"output\":0}\n");
    }
}

const NAMES: [&str; 3] = ["x", "y", "z"];

#[test]
fn a17_an_import_that_is_killed_leaves_the_library_before_or_after() {
    let place = Place::new();
    let import = ["tools", "import", "tools", "--replace"];
    fresh(&place, 0);
    run(&place, &import).exits(0);
    fresh(&place, 1);
    let began = Instant::now();
    run(&place, &import).exits(0);
    let whole = began.elapsed();
    let mut before = versions(&place);
    let mut changes = 0;
    for round in 0..10 {
        fresh(&place, 2 + round);
        let mut command = place.command(&import);
        command.env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
        let mut child = command.spawn().unwrap();
        // What is written is written at the end.
        std::thread::sleep(whole * (5 + 2 * round as u32) / 25);
        // It may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        let now = versions(&place);
        let changed = now.iter().zip(&before).filter(|(now, before)| now != before).count();
        assert!(changed == 0 || changed == NAMES.len(), "round {round}: {changed} of {now:?} changed");
        changes += usize::from(changed > 0);
        before = now;
        // Texts, metadata and calls are there with the events that name them.
        let test = run(&place, &["tools", "test", "--json"]).exits(1).json();
        assert_eq!(test["failed"], 3, "{test}");
    }
    eprintln!("{changes} of 10 imports came to their end");
}

#[test]
fn a17_a_rollback_that_is_killed_is_there_or_not() {
    let place = Place::new();
    for says in ["first", "second"] {
        place.write("tools/which.py", &tool(says));
        run(&place, &["tools", "import", "tools", "--replace"]).exits(0);
    }
    let history = run(&place, &["tools", "history", "which", "--json"]).exits(0).json();
    let of = |n: usize| history["versions"][n]["version"].as_str().unwrap().to_owned();
    let both = [of(0), of(1)];
    for round in 0..24 {
        let mut child = place.command(&["tools", "rollback", "which", &both[round % 2]]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 * round as u64));
        let _ = child.kill();
        child.wait().unwrap();
        let now = versions(&place);
        assert!(now.len() == 1 && both.contains(&now[0]), "{now:?}");
    }
}

/// The versions that the three names mean.
fn versions(place: &Place) -> Vec<String> {
    let tools = run(place, &["tools", "list", "--json"]).exits(0).json();
    let tools = tools["tools"].as_array().unwrap().iter();
    let ours = tools.filter(|tool| tool["source"] == "library");
    ours.map(|tool| tool["version"].as_str().unwrap().to_owned()).collect()
}

/// V-12: the history comes along, too.
#[test]
fn v12_an_import_of_an_export_is_the_same_library() {
    let place = Place::new();
    for version in ["first", "second", "third"] {
        place.write("tools/which.py", &tool(version));
        place.write(
            "tools/which.calls.jsonl",
            &format!("{{\"arguments\":{{\"n\":1}},\"output\":\"{version}\"}}\n"),
        );
        run(&place, &["tools", "import", "tools", "--replace"]).exits(0);
    }
    let history = |state: &str| {
        let mut history =
            run(&place, &["tools", "history", "which", "--json", "--state-dir", state]).exits(0).json();
        for version in history["versions"].as_array_mut().unwrap() {
            // When, and why a version was given up, is where the library was.
            for own in ["written", "lives", "reason"] {
                version.as_object_mut().unwrap().remove(own);
            }
        }
        history
    };
    let state = place.state();
    let state = state.to_str().unwrap();
    let second = history(state)["versions"][1]["version"].as_str().unwrap()[..10].to_owned();
    run(&place, &["tools", "rollback", "which", &second]).exits(0);
    run(&place, &["tools", "export", "out"]).exits(0);
    run(&place, &["tools", "import", "out", "--state-dir", "copy"]).exits(0);
    run(&place, &["tools", "export", "again", "--state-dir", "copy"]).exits(0);
    let copied = history("copy");
    assert_eq!(copied["current"], history(state)["current"]);
    let of = |history: &Value, field: &str| {
        let versions = history["versions"].as_array().unwrap().iter();
        let mut fields: Vec<String> =
            versions.map(|version| format!("{} {}", version["version"], version[field])).collect();
        fields.sort();
        fields
    };
    for field in ["author", "parents", "request", "calls", "current"] {
        assert_eq!(of(&copied, field), of(&history(state), field), "{field}");
    }
    for file in ["library.json", "which.py", "which.calls.jsonl"] {
        let read = |folder: &str| std::fs::read_to_string(place.work().join(folder).join(file)).unwrap();
        assert_eq!(read("out"), read("again"), "{file}");
    }
    // A file that was edited since is a new version, made of the one that it was.
    place.write("out/which.py", &tool("edited"));
    run(&place, &["tools", "import", "out", "--state-dir", "copy"]).exits(2);
    run(&place, &["tools", "import", "out", "--state-dir", "copy", "--replace"]).exits(0);
    let edited = history("copy");
    assert_eq!(edited["versions"][0]["parents"].as_array().unwrap().len(), 1);
    assert_eq!(edited["versions"][0]["parents"][0], copied["current"]);
}

/// A-15: a test changes nothing but its copy, and each call finds the folder as it is.
#[test]
fn a15_a_tool_that_writes_is_tested_in_a_copy() {
    let place = Place::new();
    let text = "import os\nfrom pydantic import BaseModel\n\
                __TOOL_META__ = {'name': 'note', 'description': 'd', 'dependencies': [], 'effects': 'write', \
                'write_paths': ['out']}\n\
                class InputModel(BaseModel):\n    text: str\n\
                def run(i):\n    old = open('out/note.txt').read()\n    \
                open('out/note.txt', 'w').write(old + i.text)\n    return old + i.text\n";
    place.write("tools/note.py", text);
    place.write("tools/out/note.txt", "old ");
    let call = "{\"arguments\":{\"text\":\"new\"},\"output\":\"old new\"}\n";
    place.write("tools/note.calls.jsonl", &call.repeat(2));
    let outside = text.replace("['out']", "['/tmp/elsewhere']").replace("'note'", "'far'");
    place.write("tools/far.py", &outside);
    place.write("tools/far.calls.jsonl", call);
    let done = run(&place, &["tools", "test", "--dir", "tools", "--json"]);
    let test = done.exits(0).json();
    let kept = std::fs::read_to_string(place.work().join("tools/out/note.txt")).unwrap();
    assert_eq!(kept, "old ", "the folder itself is left alone");
    // Where the sandbox is not complete, nothing that may write is called.
    let complete = !test.to_string().contains("the sandbox is not complete");
    assert_eq!(test["passed"], if complete { 2 } else { 0 }, "{test}");
    assert_eq!(test["skipped"], if complete { 1 } else { 3 }, "{test}");
    assert_eq!(test["failed"], 0, "{test}");
}
