//! Values of options, variables and settings that are wrong, or change later: exit codes of one rule (C-03), words that say
//! what to do (C-04), no key in what is recorded (C-06), limits that are raised (E-12).

use crate::support::{Done, Place, calls, finish, says};
use serde_json::{Value, json};

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go"), says("b", "Go on to the end")]));
    place.write("s.yaml", "- reply: {text: done}\n");
    place
}

/// The plan on its script, with more arguments and variables.
fn run(place: &Place, more: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = place.command(&[&["run", "plan.json", "--script", "s.yaml", "--json"], more].concat());
    finish(command.envs(variables.iter().copied()).spawn().unwrap())
}

#[track_caller]
fn told(done: Done, code: i32, parts: &[&str]) -> Value {
    assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{done:#?}");
    let error = done.error();
    let text = format!("{} {}", error["message"], error["help"]);
    for part in parts {
        assert!(text.contains(part), "{part}: {error}");
    }
    assert!(!error["help"].as_str().unwrap().is_empty(), "{error}");
    error
}

/// E-12: a raised limit cures the run that reached it, also in a fork.
#[test]
fn a_raised_limit_lets_the_run_go_on() {
    for (low, high) in [
        ("events = 8", "events = 1000"),
        ("message_bytes = 12", "message_bytes = 1000"),
        ("model_request_bytes = 12", "model_request_bytes = 1000"),
        ("model_request_bytes = 12", "model_request_bytes = 0"),
    ] {
        let place = place();
        place.write("selvedge.toml", &format!("[limits]\n{low}\n"));
        let failed = run(&place, &["--run-id", "r"], &[]).exits(1).json();
        assert_eq!(failed["fault"]["kind"], "limit_exceeded", "{failed}");
        // As it is, it fails again.
        place.run(&["resume", "r"]).exits(1);
        place.write("selvedge.toml", &format!("[limits]\n{high}\n"));
        for (id, args) in [
            ("f", &["fork", "r", "--at", "3", "--run-id", "f", "--json"][..]),
            ("g", &["fork", "r", "--document", "plan.json", "--run-id", "g", "--json"]),
            ("r", &["resume", "r", "--json"]),
        ] {
            let done = place.run(args).exits(0).json();
            assert_eq!(done["output"], "done", "{low} {id}: {done}");
            place.run(&["replay", id]).exits(0);
        }
        let events = place.run(&["show", "r", "--events", "--json"]).json();
        let kinds: Vec<&Value> = events["events"].as_array().unwrap().iter().map(|e| &e["kind"]).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == "limits_set").count(), 1, "{kinds:?}");
    }
}

/// C-06: a run keeps its id, its address, its models and its paths.
#[test]
fn a_key_in_what_is_recorded_of_the_call_is_refused() {
    let place = place();
    let key = "supersecret1";
    place.write("supersecret1.json", &std::fs::read_to_string(place.work().join("plan.json")).unwrap());
    place.write("supersecret1.yaml", "- reply: {text: hi}\n");
    let url = format!("http://127.0.0.1:9/{key}/v1");
    run(&place, &["--run-id", "r"], &[]).exits(0);
    let file = "supersecret1.json";
    for args in [
        &["run", "plan.json", "--script", "s.yaml", "--run-id", key][..],
        &["run", "plan.json", "--base-url", &url, "--model", "m"],
        &["run", "plan.json", "--base-url", "http://127.0.0.1:9/v1", "--model", key],
        &["run", "plan.json", "--script", "supersecret1.yaml"],
        &["run", file, "--script", "s.yaml"],
        &["run", "plan.json", "--script", "s.yaml", "--allow-write", file],
        &["fork", "r", "--run-id", key],
        &["fork", "r", "--document", file],
    ] {
        let mut command = place.command(&[args, &["--json"]].concat());
        let done = finish(command.env("SELVEDGE_API_KEY", key).spawn().unwrap());
        assert!(!done.stderr.contains(key), "{done:#?}");
        let error = told(done, 2, &["$SELVEDGE_API_KEY"]);
        assert_eq!((&error["rule"], &error["code"]), (&json!("C-06"), &json!("secret-in-input")), "{args:?}");
    }
    for entry in std::fs::read_dir(place.state()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()));
    }
}

/// An address of the configuration may have a key in its path; what names the model in the journal has not (C-06, E-29).
#[test]
fn a_key_in_a_configured_address_is_not_recorded() {
    let place = place();
    let key = "supersecret1";
    place.write(
        "selvedge.toml",
        &format!("[models.m]\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/{key}/v1\"\n"),
    );
    let mut command = place.command(&["run", "plan.json", "--timeout", "1", "--json"]);
    finish(command.env("SELVEDGE_API_KEY", key).spawn().unwrap()).exits(1);
    for entry in std::fs::read_dir(place.state()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()));
    }
}

#[test]
fn a_malformed_address_is_a_wrong_call_and_is_shown() {
    let place = place();
    for url in ["foo", "ftp://x/v1", "http://", "http://127.0.0.1:99999/v1"] {
        for args in [&["run", "plan.json", "--base-url", url][..], &["models", "--base-url", url]] {
            let error = told(place.run(&[args, &["--json"]].concat()), 2, &["--base-url", url]);
            assert_eq!(error["code"], "bad-base-url");
        }
        let mut command = place.command(&["run", "plan.json", "--json"]);
        let done = finish(command.env("SELVEDGE_BASE_URL", url).spawn().unwrap());
        told(done, 4, &["SELVEDGE_BASE_URL", url]);
    }
}

/// C-03: what is wrong in a variable is told with its name and is exit 4; an option of the same value is exit 2.
#[test]
fn variables_are_the_environment() {
    let place = place();
    for (name, value) in [
        ("SELVEDGE_TIMEOUT", "x"),
        ("SELVEDGE_TIMEOUT", "-3"),
        ("SELVEDGE_BUDGET", "x"),
        ("SELVEDGE_BUDGET", ","),
        ("SELVEDGE_MODEL", ",,,"),
        ("SELVEDGE_TOOLS", "nope"),
        ("SELVEDGE_MAX_PARALLEL", "0"),
        ("SELVEDGE_ALLOW_NETWORK", "maybe"),
    ] {
        told(run(&place, &[], &[(name, value)]), 4, &[name]);
    }
    let bare = |name: &str, value: &str| {
        let mut command = place.command(&["run", "plan.json", "--json"]);
        finish(command.env(name, value).spawn().unwrap())
    };
    told(bare("SELVEDGE_SCRIPT", "nope.yaml"), 4, &["SELVEDGE_SCRIPT", "nope.yaml"]);
    told(bare("SELVEDGE_MODEL", "foo/bar"), 4, &["SELVEDGE_MODEL", "foo/bar"]);
    // An option takes the place of the folder and the file that are not there.
    std::fs::create_dir(place.work().join("tools")).unwrap();
    let both = [("SELVEDGE_TOOLS", "nope"), ("SELVEDGE_SCRIPT", "nope.yaml")];
    run(&place, &["--tools", "tools"], &both).exits(0);
    let mut check = place.command(&["check", "plan.json", "--json"]);
    told(finish(check.env("SELVEDGE_TOOLS", "nope").spawn().unwrap()), 4, &["SELVEDGE_TOOLS"]);
    for (option, value) in [
        ("--timeout", "-3"),
        ("--budget", "x"),
        ("--budget", ","),
        ("--budget", "calls=1,calls=2"),
        ("--model", "basic="),
        ("--model", "=y"),
    ] {
        let args = ["run", "plan.json", option, value, "--json"];
        told(place.run(&args), 2, &[option]);
    }
    run(&place, &["--tools", "nope"], &[]).exits(2);
}

/// C-03, C-04: a setting is told at its place.
#[test]
fn settings_have_their_places() {
    let place = place();
    place.plan("calls.json", json!([calls("a", "x", json!({}))]));
    for (toml, line, column, said) in [
        ("[tools]\ndirs = [\"nope\"]\n", 2, 9, "nope"),
        ("[tools.command.x]\ncommand = []\ninput_schema = {}\n", 2, 11, "program"),
        ("[tools.command.x]\ninput_schema = {}\ncommand = [\" \"]\n", 3, 11, "program"),
        ("[tools.command.x]\ncommand = [\"a\"]\ninput_schema = 1\n", 3, 16, "JSON Schema"),
        ("[tools.command.x]\ncommand = [\"a\"]\ninput_schema = {type = \"no\"}\n", 3, 16, "no JSON Schema"),
        ("[tools.command.\"\"]\ncommand = [\"a\"]\ninput_schema = {}\n", 1, 16, "needs a name"),
        ("[models.m]\nmodel = \"m\"\nprice = {input_per_mtok = -1}\n", 3, 27, "negative"),
    ] {
        place.write("selvedge.toml", toml);
        for args in [&["run", "plan.json", "--script", "s.yaml"][..], &["check", "calls.json"]] {
            let error = told(place.run(&[args, &["--json"]].concat()), 4, &[said]);
            assert_eq!(error["file"], "selvedge.toml", "{error}");
            assert_eq!((&error["line"], &error["column"]), (&json!(line), &json!(column)), "{error}");
        }
    }
}

/// C-01: a name that means nothing is a wrong call, whoever answers.
#[test]
fn a_script_answers_in_the_place_of_models_that_there_can_be() {
    let place = place();
    for name in ["foo/bar", "openai/", "judge=foo/bar"] {
        assert_eq!(told(run(&place, &["--model", name], &[]), 2, &["--model"])["code"], "bad-model");
    }
    run(&place, &["--model", "openai/gpt-5", "--model", "judge=any"], &[]).exits(0);
}

#[test]
fn options_that_change_nothing_are_told() {
    let place = place();
    run(&place, &["--run-id", "r"], &[]).exits(0);
    let done = place.run(&["resume", "r", "--model", "foo", "--budget", "calls=3", "--quiet"]).exits(0);
    let said = "the run has ended: --model, --budget have no effect; selvedge fork r takes them";
    assert!(done.stderr.contains(said), "{done:#?}");
    assert_eq!(place.run(&["resume", "r", "--quiet"]).exits(0).stderr, "");
}

/// C-04: each says what to do.
#[test]
fn scripts_that_are_none_say_what_to_do() {
    let place = place();
    std::fs::write(place.work().join("latin.yaml"), b"- reply: {text: caf\xe9}\n").unwrap();
    let done = place.run(&["run", "plan.json", "--script", "latin.yaml", "--json"]);
    told(done, 2, &["not UTF-8", "byte 20", "save the file as UTF-8"]);
    let large = std::fs::File::create(place.work().join("large.yaml")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    told(place.run(&["run", "plan.json", "--script", "large.yaml", "--json"]), 2, &["64 MiB"]);
    told(place.run(&["run", "plan.json", "--script", "/proc/self/mem", "--json"]), 2, &["can't be read"]);
}

/// C-13: who answers a run that asks nobody is told how it goes on.
#[test]
fn an_answer_to_a_run_that_asks_nobody_names_the_way_on() {
    let place = place();
    run(&place, &["--run-id", "done"], &[]).exits(0);
    told(place.run(&["answer", "done", "x", "yes", "--json"]), 2, &["selvedge show done"]);
    run(&place, &["--run-id", "failed", "--budget", "calls=1"], &[]).exits(1);
    told(place.run(&["answer", "failed", "x", "yes", "--json"]), 2, &["selvedge resume failed"]);
    place.write("late.yaml", "- reply: {text: hi, delay_ms: 60000}\n");
    let mut child = place.start(&["run", "plan.json", "--script", "late.yaml", "--run-id", "killed"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while place.run(&["show", "killed"]).code != 0 {
        assert!(std::time::Instant::now() < deadline, "the run begins");
    }
    child.kill().unwrap();
    finish(child).exits(-1);
    told(place.run(&["answer", "killed", "x", "yes", "--json"]), 2, &["selvedge resume killed"]);
}

/// C-15: `@-` is stdin.
#[test]
fn arguments_of_a_tool_come_from_stdin() {
    let place = Place::new();
    place.write("a.txt", "hello");
    let call = |text: &str| {
        let mut command = place.command(&["tools", "run", "read_file", "--args", "@-", "--json"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        finish(child)
    };
    assert_eq!(call(r#"{"path": "a.txt"}"#).exits(0).json()["output"], "hello");
    let done = call("[1").exits(2);
    assert_eq!(done.error()["file"], "stdin", "{done:#?}");
}
