//! Isolation through the binary: what tools get of this environment, what is said where a layer is missing, and what may be
//! done without permission (A-20, A-22, C-06, E-22).

use crate::support::{Done, Place, calls, finish, says, wait_for};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const CANARY: &str = "sk-canary-9f27c1d4";

/// The Python that tests have; `None` where there is none, and nothing to test.
pub(crate) fn python() -> Option<PathBuf> {
    // Itself, and no script that looks for it on PATH.
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(found.stdout).ok()?.trim()))
}

/// A command with the environments that all tests of a checkout share.
pub(crate) fn shared(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
    command
}

/// The same on a machine that has no bubblewrap.
fn bare(place: &Place, args: &[&str]) -> Command {
    let mut command = shared(place, args);
    let folder = place.work().join("no-programs");
    std::fs::create_dir_all(&folder).unwrap();
    // What fetches environments is found all the same.
    command.env("PATH", folder).env("SELVEDGE_PYTHON", python().unwrap());
    command
}

fn done(mut command: Command) -> Done {
    finish(command.spawn().unwrap())
}

fn missing(run: &Value) -> Vec<String> {
    let all = run["warnings"].as_array().unwrap().iter();
    let missing = all.filter(|warning| warning["code"] == "isolation-layer-missing");
    missing.map(|warning| warning["message"].as_str().unwrap().to_owned()).collect()
}

/// Every file below a folder that has the text in it.
pub(crate) fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(holding(&entry, text));
        } else if std::fs::read(&entry)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|w| w == text.as_bytes()))
        {
            found.push(entry);
        }
    }
    found
}

const LOOKS: &str = r#"
import glob, os
__TOOL_META__ = {"name": "looks", "description": "d", "dependencies": []}
from pydantic import BaseModel
class InputModel(BaseModel):
    word: str
def run(i):
    word = i.word[::-1]
    found = [name for name, value in os.environ.items() if word in value]
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found += [path] if word in open(path, errors="replace").read() else []
        except OSError:
            pass
    print("looked")
    return {"found": found, "names": sorted(os.environ)}
"#;

#[test]
fn a_secret_of_the_environment_is_nowhere() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    place.write("tools/looks.py", LOOKS);
    place.write(
        "selvedge.toml",
        "[tools]\nshell_approval = false\n[tools.command.own]\ndescription = \"d\"\ncommand = [\"env\"]\n\
         input_schema = {type = \"object\"}\neffects = \"read\"\n",
    );
    // The word goes in backwards: it stands in no argument, and so in no journal, for its own sake.
    let word: String = CANARY.chars().rev().collect();
    let look = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -ac canary; env";
    let code = "import os; print('looks', dict(os.environ))";
    let mut model = says("m", "Go");
    model["tools"] = json!(["looks"]);
    model["enable_tool_loop"] = json!(true);
    place.plan(
        "plan.json",
        json!([
            calls("t", "looks", json!({"word": word})),
            calls("p", "python", json!({"code": code})),
            calls("s", "shell", json!({"command": look})),
            calls("c", "own", json!({})),
            model,
        ]),
    );
    let call = format!(
        "- when: {{has_tool_result: false}}\n  reply: {{tool_calls: [{{name: looks, arguments: {{word: {word}}}}}]}}\n"
    );
    place.write("s.yaml", &format!("{call}- reply: {{text: done}}\n"));
    let secrets = |mut command: Command| {
        for name in ["SELVEDGE_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD"] {
            command.env(name, CANARY);
        }
        done(command)
    };
    let run = secrets(shared(
        &place,
        &["run", "plan.json", "--tools", "tools", "--script", "s.yaml", "--run-id", "r", "--json", "-vv"],
    ))
    .exits(0);
    let results = &run.json()["results"];
    assert_eq!(results["t"]["output"]["found"], json!([]), "{results}");
    // Exactly what a tool is given, and what Python and the shell add themselves.
    let given = [
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "PATH",
        "PWD",
        "SELVEDGE_EFFECT_ID",
        "TMPDIR",
        "USER",
    ];
    for name in results["t"]["output"]["names"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        // For root's tools, which are another user.
        assert!(given.contains(&name) || name.starts_with("GIT_CONFIG_"), "{name}");
    }
    assert!(results["s"]["output"]["stdout"].as_str().unwrap().starts_with("0\n"), "{results}");
    let mut printed = vec![run.stdout, run.stderr];
    for args in
        [&["show", "r", "--events"][..], &["export", "r"], &["explain", "r"], &["doctor"], &["replay", "r"]]
    {
        let got = secrets(shared(&place, args));
        printed.extend([got.stdout, got.stderr]);
    }
    for text in printed {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert_eq!(holding(&place.state(), CANARY), Vec::<PathBuf>::new());
    assert!(!holding(&place.state(), "looked").is_empty() || !holding(&place.state(), "looks").is_empty());
}

#[test]
fn what_is_missing_is_said_by_each_command_that_goes_on() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    let plan = |code: &str| {
        json!([
            calls("p", "python", json!({"code": code})),
            calls("f", "read_file", json!({"path": "later.txt"}))
        ])
    };
    place.plan("plan.json", plan("print(1)"));
    let run = done(bare(&place, &["run", "plan.json", "--run-id", "r", "--json"])).exits(1);
    let said = missing(&run.json());
    assert!(said.iter().any(|text| text.contains("`namespaces`") && text.contains("bwrap")), "{said:?}");
    assert!(run.stderr.contains("`namespaces`"), "{}", run.stderr);
    // Nothing runs where isolation is required, whichever command goes on.
    for command in [
        &["run", "plan.json"][..],
        &["resume", "r"],
        &["fork", "r"],
        &["fork", "r", "--document", "plan.json"],
    ] {
        let refused = done(bare(&place, &[command, &["--require-isolation", "--json"]].concat())).exits(4);
        assert_eq!(refused.stdout, "", "{command:?}");
        let error = refused.error();
        assert_eq!(error["rule"], "A-20", "{command:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains("namespaces"), "{error}");
    }
    place.write("later.txt", "here");
    let resumed = done(bare(&place, &["resume", "r", "--json"])).exits(0);
    assert_eq!(missing(&resumed.json()), said, "once each");
    assert!(resumed.stderr.contains("`namespaces`"), "{}", resumed.stderr);
    let forked = done(bare(&place, &["fork", "r", "--json"])).exits(0);
    assert_eq!(missing(&forked.json()), said);
    // With all layers, there is nothing to say any more, and nothing to refuse.
    place.plan("asks.json", json!([calls("s", "shell", json!({"command": "echo hi"}))]));
    done(bare(&place, &["run", "asks.json", "--run-id", "a", "--json"])).exits(3);
    let ask = done(bare(&place, &["show", "a", "--json"])).exits(0).json()["asks"][0]["ask"].clone();
    let answer = ["answer", "a", ask.as_str().unwrap(), "yes", "--json"];
    done(bare(&place, &[&answer[..], &["--require-isolation"]].concat())).exits(4);
    let report = done(shared(&place, &["doctor", "--json"])).json();
    let all = report["checks"].as_array().unwrap();
    if all.iter().any(|check| check["check"] == "isolation" && check["status"] == "warning") {
        return;
    }
    let done = done(shared(&place, &[&answer[..], &["--require-isolation"]].concat())).exits(0).json();
    assert_eq!((&done["output"]["stdout"], missing(&done)), (&json!("hi\n"), Vec::new()));
}

/// E-22: whether a call that was cut off may be made again depends on what its tool can do.
#[test]
fn what_an_undeclared_tool_may_do_depends_on_isolation() {
    if python().is_none() {
        return;
    }
    let tool = |meta: &str| {
        format!(
            "import os, time\n__TOOL_META__ = {{'name': 'waits', 'description': 'd', 'dependencies': []{meta}}}\n\
             from pydantic import BaseModel\nclass InputModel(BaseModel):\n    pass\n\
             def run(i):\n    for _ in range(300):\n        if os.path.exists('go.txt'):\n            return 'went'\n        \
             time.sleep(0.1)\n"
        )
    };
    let report = done(shared(&Place::new(), &["doctor", "--json"])).json();
    let all = report["checks"].as_array().unwrap();
    let whole = !all.iter().any(|check| check["check"] == "isolation" && check["status"] == "warning");
    for (meta, isolated, read) in [
        ("", true, true),
        ("", false, false),
        (", 'write_paths': ['out']", true, false),
        (", 'network': True", true, false),
        (", 'effects': 'read'", false, true),
    ] {
        if isolated && !whole {
            continue;
        }
        let place = Place::new();
        std::fs::create_dir(place.work().join("out")).unwrap();
        place.write("tools/waits.py", &tool(meta));
        place.plan("plan.json", json!([calls("w", "waits", json!({}))]));
        let with = |args: &[&str]| if isolated { shared(&place, args) } else { bare(&place, args) };
        let checked = done(with(&["check", "plan.json", "--tools", "tools", "--json"])).exits(0).json();
        let found = checked["diagnostics"].as_array().unwrap();
        let taken_for_write = found.iter().any(|finding| finding["code"] == "undeclared-effects");
        assert_eq!(taken_for_write, !read, "{meta} {isolated}: {checked}");
        let options = ["--allow-network", "--allow-write", "out", "--tools", "tools", "--json"];
        // Makes what the tool needs, so that the run that is cut off has begun soon.
        let args = [&["run", "plan.json", "--run-id", "r", "-v"][..], &options].concat();
        let mut child = with(&args).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !begun(&place) {
            assert!(Instant::now() < deadline, "the tool never started: {meta}");
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        place.write("go.txt", "");
        let resumed = done(with(&["resume", "r", "--json"]));
        let run = resumed.json();
        if read {
            assert_eq!((resumed.code, &run["output"]), (0, &json!("went")), "{meta} {isolated}: {run}");
        } else {
            assert_eq!((resumed.code, &run["status"]), (3, &json!("waiting")), "{meta} {isolated}: {run}");
        }
    }
}

/// Whether the journal of the run has a request for the tool.
fn begun(place: &Place) -> bool {
    if !place.state().join("selvedge.db").exists() {
        return false;
    }
    let events = done(place.command(&["export", "r"])).stdout;
    events.contains("\"effect\":\"w/call/")
}

#[test]
fn check_says_what_a_run_refuses() {
    let place = Place::new();
    place.plan(
        "plan.json",
        json!([
            calls("r", "read_file", json!({"path": "a.txt"})),
            calls("w", "write_file", json!({"path": "out/a.txt", "content": "x"})),
            calls("h", "http_get", json!({"url": "http://127.0.0.1:9/"})),
        ]),
    );
    let text = std::fs::read_to_string(place.work().join("plan.json")).unwrap();
    let column = |word: &str| text.find(word).unwrap() as u64;
    let checked = place.run(&["check", "plan.json", "--json"]).exits(0).json();
    let found = checked["diagnostics"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{checked}");
    for (finding, (tool, option)) in
        found.iter().zip([("write_file", "--allow-write"), ("http_get", "--allow-network")])
    {
        assert_eq!(
            (&finding["severity"], &finding["rule"]),
            (&json!("warning"), &json!("A-22")),
            "{finding}"
        );
        assert_eq!((&finding["file"], &finding["line"]), (&json!("plan.json"), &json!(1)));
        assert_eq!(finding["column"], json!(column(&format!("\"{tool}\"")) + 1), "{finding}");
        assert!(finding["help"].as_str().unwrap().contains(option), "{finding}");
    }
    // The same places, as errors.
    let refused = place.run(&["run", "plan.json"]).exits(2);
    let place_of = |tool: &str| format!("plan.json:1:{}: error[A-22]", column(&format!("\"{tool}\"")) + 1);
    assert!(refused.stderr.contains(&place_of("write_file")), "{}", refused.stderr);
    assert!(refused.stderr.contains(&place_of("http_get")), "{}", refused.stderr);
    let error = place.run(&["run", "plan.json", "--json"]).exits(2).error();
    assert_eq!((&error["code"], &error["line"]), (&json!("tool-not-allowed"), &json!(1)), "{error}");
    // What is configured holds for a check too.
    place.write("selvedge.toml", "[tools]\nallow_write = [\"out\"]\nallow_network = true\n");
    let checked = place.run(&["check", "plan.json", "--json"]).exits(0).json();
    assert_eq!(checked["diagnostics"], json!([]));
}

#[test]
fn check_says_what_a_tool_declares_and_may_not() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    place
        .write("tools/looks.py", &LOOKS.replace("[]}", "[], \"network\": True, \"write_paths\": [\"out\"]}"));
    place.plan("plan.json", json!([calls("t", "looks", json!({"word": "x"}))]));
    let checked = done(shared(&place, &["check", "plan.json", "--tools", "tools", "--json"])).exits(0).json();
    let found = checked["diagnostics"].as_array().unwrap();
    let found = found.iter().find(|finding| finding["rule"] == "A-20").unwrap();
    assert_eq!(found["severity"], "warning", "{checked}");
    let help = found["help"].as_str().unwrap();
    assert!(help.contains("--allow-network") && help.contains("--allow-write"), "{found}");
    assert_eq!(
        (&found["file"], &found["pointer"]),
        (&json!("plan.json"), &json!("/nodes/0/initial_tool_name"))
    );
    assert!(help.contains("tools/looks.py"), "{found}");
    let refused = done(shared(&place, &["run", "plan.json", "--tools", "tools", "--json"])).exits(2).error();
    assert_eq!((&refused["rule"], &refused["message"]), (&json!("A-20"), &found["message"]));
    assert_eq!((&refused["line"], &refused["column"]), (&found["line"], &found["column"]), "{refused}");
}

/// E-13, A-39: a command tool is not isolated, and ends all the same with its call and with Selvedge, with what it started, also in
/// sessions of their own and behind parents that have ended.
#[cfg(target_os = "linux")]
#[test]
fn a39_commands_end_with_all_that_they_started() {
    const STAYS: &str = "sleep 600 & a=$!; setsid sh -c 'echo $$ > far; exec sleep 600' & (setsid sh -c 'echo $$ > further; exec sleep 600' &); \
                         until test -s far && test -s further; do sleep 0.05; done; echo $$ $a $(cat far further) > pids.new; mv pids.new pids; wait";
    for signal in [Some("KILL"), Some("TERM"), Some("INT"), None] {
        let place = Place::new();
        let seconds = if signal.is_none() { 3 } else { 300 };
        place.write(
            "selvedge.toml",
            &format!(
                "[tools.command.stays]\ndescription = \"d\"\neffects = \"read\"\ninput_schema = {{type = \"object\"}}\n\
                 timeout_s = {seconds}\ncommand = [\"sh\", \"-c\", \"{STAYS}\"]\n"
            ),
        );
        place.plan("plan.json", json!([calls("n", "stays", json!({}))]));
        let run = place.start(&["run", "plan.json"]);
        let noted = place.work().join("pids");
        wait_for(&noted);
        let pids = std::fs::read_to_string(noted).unwrap();
        if let Some(signal) = signal {
            let id = run.id().to_string();
            let sent = std::process::Command::new("kill").args(["-s", signal, &id]).status().unwrap();
            assert!(sent.success());
        }
        finish(run);
        all_end(&pids);
    }
}

/// Four processes end soon.
#[cfg(target_os = "linux")]
fn all_end(pids: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    assert_eq!(pids.split_whitespace().count(), 4);
    for pid in pids.split_whitespace() {
        // A process that nobody waits for stays as a zombie where nobody adopts it.
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "process {pid} is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A-20: a person's own state, with all their runs, is hidden from tools also while a run keeps its own elsewhere.
#[test]
fn the_users_own_state_is_hidden_while_another_is_in_use() {
    let place = Place::new();
    let data = place.work().join("data");
    let file = place.write("data/selvedge/selvedge.db", CANARY);
    place.write("data/other/notes.txt", "to be read");
    for (path, seen) in [(file.as_path(), false), (&data.join("other/notes.txt"), true)] {
        place.plan("plan.json", json!([calls("a", "read_file", json!({ "path": path }))]));
        let mut command = place.command(&["run", "plan.json", "--json"]);
        command.env("XDG_DATA_HOME", &data);
        let done = done(command);
        assert_eq!(done.code == 0, seen, "{done:#?}");
        assert!(seen || done.json()["fault"]["kind"] == "denied", "{done:#?}");
        assert!(!done.stdout.contains(CANARY), "{done:#?}");
    }
}
