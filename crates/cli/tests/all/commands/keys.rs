//! Keys in what a person hands in: nothing of it is recorded, nothing of it is shown (C-06).

use crate::net::holds;
use crate::support::{Done, Place, finish, says};
use serde_json::json;

const KEY: &str = "sk-handed-4711-key";

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go"), says("b", "Go on")]));
    place.write("s.yaml", "- reply: {text: done}\n");
    place
}

fn with_key(place: &Place, args: &[&str]) -> Done {
    let mut command = place.command(args);
    finish(command.env("ANTHROPIC_API_KEY", KEY).spawn().unwrap())
}

/// The refusal has its code, and the key is in no output and in no file of the state folder.
#[track_caller]
fn refused(place: &Place, args: &[&str], code: &str) -> serde_json::Value {
    let done = with_key(place, args).exits(2);
    let error = done.error();
    assert_eq!((&error["rule"], &error["code"]), (&json!("C-06"), &json!(code)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("$ANTHROPIC_API_KEY"), "{error}");
    assert!(!done.stdout.contains("4711") && !done.stderr.contains("4711"), "{done:#?}");
    assert!(!holds(&place.state(), KEY));
    error
}

#[test]
fn inputs_with_a_key_are_refused_before_a_run_is_there() {
    let place = place();
    for input in
        [&format!("token={KEY}"), &format!("t={{\"a\": [\"x {KEY}\"]}}"), r#"t="sk\u002dhanded-4711-key""#]
    {
        refused(
            &place,
            &["run", "plan.json", "--script", "s.yaml", "--json", "--input", input],
            "secret-in-input",
        );
    }
    assert!(!place.state().exists());
    // Without a `=` it is no input, and not repeated.
    let done = with_key(&place, &["run", "plan.json", "--input", KEY]).exits(2);
    assert!(!done.stderr.contains("4711"), "{}", done.stderr);
    let done = with_key(&place, &["run", "plan.json", KEY]).exits(2);
    assert!(!done.stderr.contains("4711"), "{}", done.stderr);
}

/// C-03: a key that no request can carry is a matter of configuration: no run begins.
#[test]
fn a_key_that_cant_be_sent_is_exit_4() {
    let place = place();
    place.write(
        "selvedge.toml",
        "[models.m]\nprovider = \"anthropic\"\nmodel = \"x\"\n[roles]\nbasic = \"m\"\n",
    );
    for model in [
        &["--model", "m"][..],
        &["--model", "x", "--base-url", "http://127.0.0.1:9/v1"],
        &["--base-url", "http://127.0.0.1:9/v1"],
    ] {
        let mut command = place.command(&[&["run", "plan.json", "--json"], model].concat());
        command.env("ANTHROPIC_API_KEY", "sk-ant-4711\nx").env("SELVEDGE_API_KEY", "sk-\u{e4}-4711");
        let done = finish(command.spawn().unwrap()).exits(4);
        assert_eq!(done.error()["code"], "bad-key", "{done:#?}");
        assert!(
            done.error()["message"].as_str().unwrap().contains("_API_KEY") && !done.stderr.contains("4711")
        );
    }
    assert!(!place.state().exists());
    // Nobody is asked anything, so nothing is wrong.
    let mut command = place.command(&["run", "plan.json", "--script", "s.yaml"]);
    finish(command.env("ANTHROPIC_API_KEY", "sk-ant-4711\nx").spawn().unwrap()).exits(0);
}

#[test]
fn documents_with_a_key_are_refused_with_their_place() {
    let place = place();
    let node = format!(
        "{{\"node_type\": \"llm-first\", \"node_name\": \"A\", \"thread_id\": \"main\", \"task_prompt\": \"Use {KEY}\"}}"
    );
    place.write("bad.json", &format!("{{\"task\": \"t\",\n \"nodes\": [{node}]}}"));
    for args in [
        &["run", "bad.json", "--script", "s.yaml", "--json"][..],
        &["graph", "bad.json", "--json"],
        &["run", "bad.json", "--json"],
    ] {
        let error = refused(&place, args, "secret-in-document");
        assert_eq!((&error["file"], &error["line"]), (&json!("bad.json"), &json!(2)), "{error}");
        assert!(error["help"].as_str().unwrap().contains("--allow-env"), "{error}");
    }
    let done = with_key(&place, &["check", "bad.json"]).exits(2);
    assert!(done.stderr.contains("[redacted]") && !done.stderr.contains("4711"), "{}", done.stderr);
    let run = with_key(&place, &["run", "plan.json", "--script", "s.yaml", "--json"]).exits(0).json();
    let id = run["run_id"].as_str().unwrap();
    refused(&place, &["fork", id, "--document", "bad.json", "--json"], "secret-in-document");
    refused(&place, &["fork", id, "--input", &format!("a={KEY}"), "--json"], "secret-in-input");
    let edit = format!("2=say {KEY}");
    refused(&place, &["fork", id, "--set-message", &edit, "--json"], "secret-in-input");
    // Without the variable it is a text like any other.
    place.run(&["run", "bad.json", "--script", "s.yaml"]).exits(0);
}

#[test]
fn an_answer_is_no_key() {
    let place = place();
    let mut node = says("b", "Send it");
    node["require_approval"] = json!(true);
    place.plan("asks.json", json!([node]));
    let run = with_key(&place, &["run", "asks.json", "--script", "s.yaml", "--json"]).exits(3).json();
    let (id, ask) = (run["run_id"].as_str().unwrap(), run["asks"][0]["ask"].as_str().unwrap());
    for more in [&[][..], &["--no-continue"]] {
        refused(&place, &[&["answer", id, ask, KEY, "--json"], more].concat(), "secret-in-input");
    }
    with_key(&place, &["answer", id, ask, "yes", "--json"]).exits(0);
}

#[test]
fn a_key_in_the_configuration_is_an_error_and_not_shown() {
    let place = place();
    for text in [
        "[models.m]\nmodel = \"x\"\napi_key = \"sk-inline-0815\"\n",
        "[models.m]\napi_key = \"sk-inline-0815\"\nmodel = \"x\"\nprovidr = 1\n",
        "[models]\nm = { modle = \"x\", token = \"sk-inline-0815\" }\n",
        "[models.m]\napi_key = sk-inline-0815\n",
        "[models.m]\nclient-secret = \"\"\"\nsk-inline-0815\n\"\"\"\n",
    ] {
        place.write("selvedge.toml", text);
        for args in [
            &["run", "plan.json", "--script", "s.yaml"][..],
            &["run", "plan.json", "--script", "s.yaml", "--json"],
            &["models"],
            &["doctor"],
        ] {
            let done = place.run(args).exits(4);
            assert!(!done.stdout.contains("0815") && !done.stderr.contains("0815"), "{done:#?}");
        }
    }
    place.write("selvedge.toml", "[models.m]\nmodel = \"x\"\napi_key = \"sk-inline-0815\"\n");
    let error = place.run(&["models", "--json"]).exits(4).error();
    let place = (&error["rule"], &error["code"], &error["line"], &error["column"]);
    assert_eq!(place, (&json!("C-06"), &json!("key-in-config"), &json!(3), &json!(1)));
    assert!(error["help"].as_str().unwrap().contains("api_key_env"), "{error}");
}

/// A project whose tool `hard` has a key in it, in its description and in its code.
fn with_tool(place: &Place, ends: &str) {
    place.write(
        "tools/hard.py",
        &format!(
            "__TOOL_META__ = {{'name': 'hard', 'description': 'with {KEY}', 'dependencies': []}}\nfrom pydantic import \
             BaseModel\n\n\nclass InputModel(BaseModel):\n    pass\n\n\ndef run(i):\n    {ends} '{KEY}'\n"
        ),
    );
    let node =
        r#"{"node_type": "tool-first", "node_name": "A", "thread_id": "main", "initial_tool_name": "hard"}"#;
    place.write("hard.json", &format!("{{\"task\": \"t\", \"nodes\": [{node}]}}"));
}

/// The tool is refused at the place of the key, which is shown nowhere and kept nowhere.
#[track_caller]
fn tool_refused(place: &Place, done: &Done) {
    assert!(!done.stdout.contains("4711") && !done.stderr.contains("4711"), "{done:#?}");
    let error = done.error();
    assert_eq!((&error["rule"], &error["code"]), (&json!("C-06"), &json!("secret-in-tool")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("$ANTHROPIC_API_KEY"), "{error}");
    assert!(error["file"].as_str().unwrap().ends_with("hard.py"), "{error}");
    assert_eq!((&error["line"], &error["column"]), (&json!(1), &json!(55)), "{error}");
    assert!(!holds(&place.state(), KEY));
}

#[test]
fn tools_with_a_key_in_their_text_are_refused() {
    let place = place();
    with_tool(&place, "return");
    let tools = ["hard.json", "--tools", "tools", "--json"];
    tool_refused(&place, &with_key(&place, &[&["run"], &tools[..]].concat()).exits(2));
    assert!(place.run(&["runs", "--json"]).exits(0).json()["runs"].as_array().unwrap().is_empty());
    tool_refused(&place, &with_key(&place, &["tools", "run", "hard", "--tools", "tools", "--json"]).exits(2));
    tool_refused(
        &place,
        &with_key(&place, &["tools", "show", "hard", "--tools", "tools", "--json"]).exits(2),
    );
    // What looks at it says so at its place, and shows the line without the key.
    let done = with_key(&place, &[&["check"], &tools[..]].concat()).exits(2);
    let found = &done.json()["diagnostics"][0];
    assert_eq!((&found["code"], &found["line"]), (&json!("secret-in-tool"), &json!(1)), "{found}");
    let done = with_key(&place, &["check", "hard.json", "--tools", "tools"]).exits(2);
    assert!(done.stderr.contains("'with [redacted]'") && !done.stderr.contains("4711"), "{}", done.stderr);
    let done = with_key(&place, &["tools", "list", "--tools", "tools", "--json"]).exits(0);
    assert!(!done.stdout.contains("hard") && !done.stdout.contains("4711"), "{done:#?}");
    assert!(done.stderr.contains("left out") && !done.stderr.contains("4711"), "{done:#?}");
    assert!(!holds(&place.state(), KEY));
}

#[test]
fn modules_with_a_key_are_refused() {
    let place = place();
    with_tool(&place, "return");
    place.write("tools/hard.py", "from _own import K\n__TOOL_META__ = {'name': 'hard', 'description': '', 'dependencies': []}\nfrom pydantic import BaseModel\nclass InputModel(BaseModel):\n    pass\ndef run(i):\n    return K\n");
    place.write("tools/_own.py", &format!("\nK = '{KEY}'\n"));
    let done = with_key(&place, &["run", "hard.json", "--tools", "tools", "--json"]).exits(2);
    let error = done.error();
    assert_eq!(error["code"], "secret-in-tool", "{error}");
    assert!(error["message"].as_str().unwrap().contains("_own.py:2, which holds the value of"), "{error}");
    assert!(!done.stderr.contains("4711") && !holds(&place.state(), KEY), "{done:#?}");
}

/// C-06, A-18: what was pinned before it was a key is told and kept no more, also where only the run has it.
#[test]
fn forks_and_resumes_refuse_tools_with_a_key() {
    for gone in [false, true] {
        let place = place();
        with_tool(&place, "raise ValueError(i) #");
        // Nobody knows yet that it is a key.
        let args = ["run", "hard.json", "--tools", "tools", "--json", "--run-id", "r"];
        place.run(&args).exits(1);
        if gone {
            std::fs::remove_file(place.work().join("tools/hard.py")).unwrap();
        }
        let resume = &["resume", "r", "--json"][..];
        if gone {
            // Nothing of it is kept anew.
            assert!(!with_key(&place, resume).exits(1).stdout.contains("4711"));
        }
        for args in [resume, &["fork", "r", "--at", "1", "--json"]].into_iter().skip(usize::from(gone)) {
            let done = with_key(&place, args).exits(2);
            let error = done.error();
            assert_eq!(
                (&error["rule"], &error["code"]),
                (&json!("C-06"), &json!("secret-in-tool")),
                "{error}"
            );
            assert!(!done.stdout.contains("4711") && !done.stderr.contains("4711"), "{done:#?}");
        }
        let runs = place.run(&["runs", "--json"]).exits(0).json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    }
}

/// C-06: what a command tool says of itself is recorded with the run.
#[test]
fn definitions_with_a_key_are_refused() {
    for field in [
        format!("description = \"x {KEY}\"\ninput_schema = {{type = \"object\"}}"),
        format!("description = \"d\"\ninput_schema = {{type = \"object\", title = \"{KEY}\"}}"),
    ] {
        let place = place();
        place.write("selvedge.toml", &format!("[tools.command.hard]\ncommand = [\"true\"]\n{field}\n"));
        let node = r#"{"node_type": "tool-first", "node_name": "A", "thread_id": "main", "initial_tool_name": "hard"}"#;
        place.write("hard.json", &format!("{{\"task\": \"t\", \"nodes\": [{node}]}}"));
        let done = with_key(&place, &["run", "hard.json", "--json"]).exits(2);
        let error = done.error();
        assert_eq!(error["code"], "secret-in-tool", "{error}");
        assert!(error["message"].as_str().unwrap().contains("the definition of the tool `hard`"), "{error}");
        assert!(!done.stderr.contains("4711") && !holds(&place.state(), KEY), "{done:#?}");
        // Whoever checks is told before, also where another document is meant.
        for (file, exit) in [("hard.json", 2), ("plan.json", 0)] {
            let done = with_key(&place, &["check", file]).exits(exit);
            assert!(
                done.stderr.contains("[tools.command.hard]") && done.stderr.contains("$ANTHROPIC_API_KEY"),
                "{done:#?}"
            );
            assert!(!done.stderr.contains("4711"), "{done:#?}");
        }
    }
}
