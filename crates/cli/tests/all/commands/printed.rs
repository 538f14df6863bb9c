//! What tools print is kept with their calls and shown to people, and reaches no model (A-30).

use crate::support::{Done, Place, calls, finish, says};
use serde_json::{Value, json};
use std::path::Path;

const KEY: &str = "sk-printed-0123456789";

fn tool(name: &str, body: &str) -> String {
    format!(
        "import sys\nfrom pydantic import BaseModel\n\
         __TOOL_META__ = {{'name': '{name}', 'description': 'd', 'dependencies': [], 'effects': 'read'}}\n\
         class InputModel(BaseModel):\n    n: int = 0\n{body}"
    )
}

fn run(place: &Place, args: &[&str]) -> Done {
    let mut command = place.command(args);
    command.env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
    command.env("OPENAI_API_KEY", KEY);
    finish(command.spawn().unwrap())
}

fn printed(place: &Place, run_id: &str, node: &str) -> Value {
    let shown = run(place, &["show", run_id, "--node", node, "--json"]).exits(0).json();
    shown["calls"][0]["printed"].clone()
}

/// What was printed is in the journal, `show --node` and `-v`; a model never sees it, and a run in which nothing was printed
/// says nothing of it.
#[test]
fn a30_what_a_python_tool_prints_is_kept_and_shown_and_no_model_sees_it() {
    let place = Place::new();
    let body = "def run(i):\n    print('to out', i.n)\n    print('to err \\x1b[2J', file=sys.stderr)\n    \
                print('key', 'sk-printed-' + '0123456789')\n    return i.n\n";
    place.write("tools/loud.py", &tool("loud", body));
    place.write("tools/quiet.py", &tool("quiet", "def run(i):\n    return i.n\n"));
    let nodes = json!([calls("a", "loud", json!({"n": 7})), calls("q", "quiet", json!({})), says("b", "B")]);
    place.plan("plan.json", nodes);
    place.write("s.yaml", "- reply: {text: fine}\n");
    let args = ["run", "plan.json", "--tools", "tools", "--script", "s.yaml", "--run-id", "r", "-v"];
    let done = run(&place, &args).exits(0);
    for part in ["to out 7", "to err \\u{1b}[2J", "key [redacted]"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let kept = printed(&place, "r", "a");
    assert_eq!(kept, json!({"stdout": "to out 7\nkey [redacted]\n", "stderr": "to err \u{1b}[2J\n"}));
    assert_eq!(printed(&place, "r", "q"), Value::Null);
    let page = run(&place, &["show", "r", "--node", "a"]).exits(0).stdout;
    assert!(
        page.contains("stdout    to out 7\n") && page.contains("stderr    to err \\u{1b}[2J\n"),
        "{page}"
    );
    let whole = run(&place, &["show", "r", "--json"]).exits(0).json();
    assert!(!whole["threads"].to_string().contains("to out"), "{whole}");
    let export = run(&place, &["export", "r"]).exits(0).stdout;
    assert_eq!(export.matches("\"printed\"").count(), 1, "{export}");
    assert!(!export.contains(KEY));
    run(&place, &["replay", "r"]).exits(0);
}

/// A failure is told with the traceback as lines, in the words of the tool's own file, and with what was printed before.
#[test]
fn a30_a_failure_shows_the_tools_own_lines_and_what_it_printed() {
    let place = Place::new();
    let body =
        "def deep(i):\n    return {}['rr']\nasync def run(i):\n    print('before')\n    return deep(i)\n";
    place.write("tools/bad.py", &tool("bad", body));
    place.plan("plan.json", json!([calls("a", "bad", json!({}))]));
    let done = run(&place, &["run", "plan.json", "--tools", "tools", "--run-id", "r"]).exits(1);
    let explained = run(&place, &["explain", "r"]).exits(0).stdout;
    let shown = run(&place, &["show", "r", "--node", "a"]).exits(0).stdout;
    let page = run(&place, &["show", "r"]).exits(0).stdout;
    for text in [&done.stderr, &explained, &shown, &page] {
        assert!(text.contains("tools/bad.py\", line 7, in deep"), "{text}");
        assert!(text.contains("\n") && text.lines().any(|line| line.trim() == "return {}['rr']"), "{text}");
        assert!(text.contains("before"), "{text}");
        for ours in ["cache/tools", "<string>", "asyncio", "\\n"] {
            assert!(!text.contains(ours), "{ours}: {text}");
        }
    }
    let object = run(&place, &["explain", "r", "--json"]).exits(0).json();
    assert_eq!(object["nodes"][0]["printed"]["stdout"], "before\n");
    assert_eq!(object["nodes"][0]["fault"]["kind"], "execution_failure");
}

/// Of each stream the last 16 KiB are kept, in whole characters, however much comes; no part of a key is.
#[test]
fn a30_the_end_of_much_is_kept_with_a_mark_of_what_was_cut() {
    let place = Place::new();
    // A key stands across the place where the end that is held in memory begins, and no line is a whole number of it.
    let body = format!(
        "def run(i):\n    sys.stdout.write('é€😀x' * 300000)\n    \
         sys.stderr.write(('{}' + '{}') * 9000)\n    return 1\n",
        &KEY[..11],
        &KEY[11..]
    );
    place.write("tools/much.py", &tool("much", &body));
    place.plan("plan.json", json!([calls("a", "much", json!({}))]));
    run(&place, &["run", "plan.json", "--tools", "tools", "--run-id", "r"]).exits(0);
    let kept = printed(&place, "r", "a");
    let (stdout, cut) = (kept["stdout"].as_str().unwrap(), kept["stdout_cut"].as_u64().unwrap());
    assert_eq!(stdout.len() as u64 + cut, 300_000 * 10);
    assert!(stdout.len() <= 16 << 10 && stdout.len() > (16 << 10) - 4, "{}", stdout.len());
    assert!(!stdout.contains('\u{fffd}') && stdout.ends_with("é€😀x"));
    let stderr = kept["stderr"].as_str().unwrap_or_default();
    assert!(!stderr.replace("[redacted]", "").contains("sk-") && !stderr.contains("0123"), "{stderr}");
    assert!(kept["stderr_cut"].as_u64().unwrap() > 100_000);
    let page = run(&place, &["show", "r", "--node", "a"]).exits(0).stdout;
    assert!(page.contains(&format!("the first {cut} bytes are not kept")), "{page}");
}

/// Commands, `python` and `shell`: what is the output is kept as that, and what is not, as what was printed.
#[test]
fn a30_commands_and_built_ins_too() {
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools]\nshell_approval = false\n[limits]\ntool_timeout_s = 2\n[tools.command.fine]\ndescription = 'd'\n\
         command = ['sh', '-c', 'echo note >&2; echo 5']\ninput_schema = {type = 'object'}\neffects = 'read'\n\
         [tools.command.broken]\ndescription = 'd'\ncommand = ['sh', '-c', 'echo half; echo why >&2; exit 3']\n\
         input_schema = {type = 'object'}\neffects = 'read'\n",
    );
    let plan = |name: &str, tool: &str, args: Value| {
        place.plan(name, json!([calls("a", tool, args)]));
    };
    plan("fine.json", "fine", json!({}));
    plan("broken.json", "broken", json!({}));
    plan("shell.json", "shell", json!({"command": "echo begun; echo low >&2; sleep 30"}));
    run(&place, &["run", "fine.json", "--run-id", "fine"]).exits(0);
    assert_eq!(printed(&place, "fine", "a"), json!({"stderr": "note\n"}));
    run(&place, &["run", "broken.json", "--run-id", "broken"]).exits(1);
    assert_eq!(printed(&place, "broken", "a"), json!({"stdout": "half\n", "stderr": "why\n"}));
    let late = run(&place, &["run", "shell.json", "--run-id", "shell"]).exits(1);
    assert!(late.stderr.contains("begun"), "{}", late.stderr);
    assert_eq!(printed(&place, "shell", "a"), json!({"stdout": "begun\n", "stderr": "low\n"}));
}

/// What a tool tells while it runs is not shown once more, and the reason of a failure once, with the lines of stderr.
#[test]
fn nothing_that_is_told_is_told_twice() {
    let place = Place::new();
    let tool = |name: &str, script: &str| {
        format!(
            "[tools.command.{name}]\ndescription = \"d\"\ncommand = [\"sh\", \"-c\", '{script}']\n\
             input_schema = {{type = \"object\"}}\neffects = \"read\"\n"
        )
    };
    let told = "echo one >&2; echo two >&2; echo out; echo three >&2; sleep 0.3; echo {}";
    let many = "for n in $(seq 40); do echo line $n >&2; done; sleep 0.3; echo {}";
    let fails = "echo first >&2; echo Trace >&2; echo boom >&2; sleep 0.3; exit 3";
    place.write("selvedge.toml", &[tool("told", told), tool("many", many), tool("fails", fails)].concat());
    let plan = |node: &str| place.plan("plan.json", json!([calls(node, node, json!({}))]));
    let run = |node: &str, code: i32| {
        plan(node);
        place.run(&["run", "plan.json", "-v", "--run-id", node]).exits(code).stderr
    };
    let text = run("told", 0);
    for line in ["one", "two", "three"] {
        assert_eq!(text.matches(&format!("tells told: told: {line}\n")).count(), 1, "{text}");
        assert!(!text.contains("stderr:"), "{text}");
    }
    let text = run("many", 0);
    assert!(text.contains("… 20 lines before") && text.contains("line 21\n"), "{text}");
    let text = run("fails", 1);
    let (_, end) = text.split_once("run fails, node fails").unwrap();
    assert!(end.contains("stderr:\n    first\n    Trace\n    boom\n"), "{text}");
    assert_eq!((end.matches("boom").count(), text.matches("boom").count() <= 3), (1, true), "{text}");
    for page in [&["show", "fails"][..], &["explain", "fails"], &["show", "fails", "--node", "fails"]] {
        let page = place.run(page).exits(0).stdout;
        assert!(page.contains("ended with exit code 3\n"), "{page}");
    }
}
