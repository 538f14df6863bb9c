//! `doctor`, and `help environment` (C-06).

use super::world::{completed, place};
use crate::support::{Done, Place, finish};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

fn examined(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> (Done, Vec<Value>) {
    let mut command = place.command(&[&["doctor", "--json"], args].concat());
    command.envs(variables.iter().copied());
    let done = finish(command.spawn().unwrap());
    let report = done.json();
    assert_eq!(report["ok"], json!(done.code == 0), "{report}");
    assert!(matches!(done.code, 0 | 4), "{report}");
    let checks = report["checks"].as_array().unwrap().clone();
    for check in &checks {
        let keys: Vec<&str> = check.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["check", "status", "message", "help"]);
        let wrong = check["status"] == "broken" && check["help"] == "";
        assert!(!wrong, "what is broken says what to do: {check}");
    }
    (done, checks)
}

/// The statuses and texts of one check.
fn of(checks: &[Value], check: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    checks.iter().filter(|c| c["check"] == check).map(|c| (text(&c["status"]), text(&c["message"]))).collect()
}

fn says(checks: &[Value], check: &str, status: &str, part: &str) -> bool {
    of(checks, check).iter().any(|(found, text)| found == status && text.contains(part))
}

/// Lists one model, as long as the test goes on.
fn endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let body = r#"{"data": [{"id": "tiny"}]}"#;
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn nothing_configured_is_nothing_broken() {
    let place = Place::new();
    let (done, checks) = examined(&place, &[], &[]);
    assert_eq!(done.code, 0);
    assert!(says(&checks, "selvedge", "ok", env!("CARGO_PKG_VERSION")));
    assert!(says(&checks, "state", "ok", "made by the first run"), "{checks:#?}");
    assert!(says(&checks, "model", "missing", "none is configured"));
    // A-20: each layer works, or is named as missing.
    for layer in ["namespaces", "identity", "limits", "landlock", "seccomp"] {
        let missing = format!("the layer `{layer}` is missing: ");
        assert!(says(&checks, "isolation", "ok", layer) || says(&checks, "isolation", "warning", &missing));
    }
    // One of them is optional: where it is missing, that is no warning.
    let missing = "the optional layer `cgroups` is missing: ";
    assert!(says(&checks, "isolation", "ok", "cgroups") || says(&checks, "isolation", "missing", missing));
    assert!(!place.state().exists(), "looking creates nothing");
    assert_eq!(std::fs::read_dir(place.work()).unwrap().count(), 0);
}

#[test]
fn a_project_is_read_and_its_state_is_checked() {
    let place = place();
    completed(&place, "r");
    let (done, checks) = examined(&place, &[], &[("SELVEDGE_MODLE", "x")]);
    assert_eq!(done.code, 0, "{checks:#?}");
    assert!(says(&checks, "config", "ok", "selvedge.toml"));
    assert!(says(&checks, "state", "ok", "database sound") && says(&checks, "state", "ok", "1 run"));
    assert!(says(&checks, "tools", "ok", "2 tools: add, may"), "{checks:#?}");
    assert!(says(&checks, "variables", "warning", "SELVEDGE_MODLE"));
    let page = place.run(&["doctor"]).exits(0).stdout;
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

#[test]
fn a_wrong_file_is_told_with_its_place() {
    let place = place();
    place.write("selvedge.toml", "[models.m]\nprovider = \"openai\"\nmodel = 4\n");
    let (done, checks) = examined(&place, &[], &[]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "config", "broken", "selvedge.toml:3:"), "{checks:#?}");
    place.write("selvedge.toml", "[tools]\ndirs = [\"nowhere\"]\n");
    let (done, checks) = examined(&place, &[], &[("SELVEDGE_MAX_PARALLEL", "many")]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "tools", "broken", "nowhere"), "{checks:#?}");
    assert!(says(&checks, "variables", "broken", "SELVEDGE_MAX_PARALLEL"));
}

#[test]
fn models_are_shown_with_their_keys_variables_and_never_their_values() {
    let place = place();
    let near = endpoint();
    place.write(
        "selvedge.toml",
        &format!(
            "[models.far]\nprovider = \"openai\"\nmodel = \"big\"\napi_key_env = \"FAR_KEY\"\n\
             [models.near]\nprovider = \"openai\"\nmodel = \"tiny\"\nbase_url = \"{near}\"\n\
             [roles]\nbasic = \"near\"\njudge = \"far\"\n"
        ),
    );
    let (done, checks) = examined(&place, &[], &[("FAR_KEY", "sk-secret-4711")]);
    assert_eq!(done.code, 0, "{checks:#?}");
    assert!(
        says(&checks, "model", "ok", "near (tiny) plays basic") && says(&checks, "model", "ok", "answers")
    );
    assert!(
        says(&checks, "model", "ok", "far (big) plays judge; openai, https://api.openai.com/v1"),
        "{checks:#?}"
    );
    assert!(says(&checks, "model", "ok", "key from FAR_KEY; not asked"), "only --online asks other machines");
    assert!(!done.stdout.contains("4711"));
    let (done, checks) = examined(&place, &[], &[]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "model", "broken", "FAR_KEY is not set"), "{checks:#?}");
}

/// What a server said last, which is the exception, is shown: what is left out of a long message is its middle.
#[test]
fn the_end_of_what_a_server_said_is_shown() {
    let place = Place::new();
    place.write(
        "dies.py",
        "import sys\nfor part in range(60):\n    print('INFO starting part', part, 'of many', file=sys.stderr)\nimport no_such_module\n",
    );
    place.write("selvedge.toml", "[mcp.servers.dies]\ncommand = [\"python3\", \"dies.py\"]\n");
    let done = place.run(&["doctor"]).exits(4);
    let words: Vec<&str> = done.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("the MCP server `dies` ended with exit code 1"), "{done:?}");
    assert!(text.contains("…") && text.contains("No module named 'no_such_module'"), "{done:?}");
    let lines = done.stdout.lines().filter(|line| line.contains("INFO")).count();
    assert!(lines <= 12, "{done:?}");
}

#[test]
fn an_endpoint_of_this_machine_that_does_not_answer_is_broken() {
    let place = Place::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/v1");
    let (done, checks) = examined(&place, &[], &[("SELVEDGE_BASE_URL", &url)]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "model", "broken", "can't be reached"), "{checks:#?}");
    let variables = [("SELVEDGE_BASE_URL", endpoint()), ("SELVEDGE_MODEL", "other".to_owned())];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (done, checks) = examined(&place, &[], &variables);
    assert_eq!(done.code, 0);
    assert!(says(&checks, "model", "warning", "does not list"), "{checks:#?}");
}

#[test]
fn a_damaged_or_foreign_state_is_broken() {
    let place = Place::new();
    std::fs::create_dir_all(place.state()).unwrap();
    std::fs::write(place.state().join("selvedge.db"), "no database at all ".repeat(500)).unwrap();
    let (done, checks) = examined(&place, &[], &[]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "state", "broken", "damaged"), "{checks:#?}");
    std::fs::remove_dir_all(place.state()).unwrap();
    std::fs::write(place.state(), "a file").unwrap();
    assert_eq!(examined(&place, &[], &[]).0.code, 4);
}

/// What requests can't go through is not said to be all right; they don't go past it, either.
#[test]
fn an_address_that_is_no_proxy_is_broken() {
    for value in ["foo://proxy:1", "::not a url::", "http://me:pass-4711/x@proxy:1"] {
        let (done, checks) = examined(&Place::new(), &[], &[("HTTP_PROXY", value)]);
        assert_eq!(done.code, 4);
        assert!(
            says(&checks, "proxy", "broken", "HTTP_PROXY names no proxy that can be used"),
            "{checks:#?}"
        );
        assert!(!done.stdout.contains("4711"), "{}", done.stdout);
    }
    let (_, checks) = examined(&Place::new(), &[], &[("HTTPS_PROXY", " 127.0.0.1:3128/ ")]);
    assert!(
        says(&checks, "proxy", "ok", "HTTPS_PROXY: http://127.0.0.1:3128, for https addresses"),
        "{checks:#?}"
    );
    let variables = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://evil:1"), ("ALL_PROXY", "good:1")];
    let (_, checks) = examined(&Place::new(), &[], &variables);
    assert!(says(&checks, "proxy", "ok", "ALL_PROXY: http://good:1"), "{checks:#?}");
    assert!(says(&checks, "proxy", "warning", "HTTP_PROXY is not used"), "{checks:#?}");
}

/// Keys that are found, the proxies and certificates that requests go through, the terminal (C-06).
#[test]
fn what_requests_go_through_is_shown_without_secrets() {
    let place = Place::new();
    let proxy = "http://user:proxy-secret-4711@127.0.0.1:3128";
    let variables = [("HTTPS_PROXY", proxy), ("NO_PROXY", "inside"), ("GEMINI_API_KEY", "sk-secret-4711")];
    let (done, checks) = examined(&place, &[], &variables);
    assert!(says(&checks, "proxy", "ok", "HTTPS_PROXY: http://127.0.0.1:3128, with a user"), "{checks:#?}");
    assert!(says(&checks, "proxy", "ok", "not for inside"));
    assert!(says(&checks, "keys", "ok", "found: GEMINI_API_KEY"), "{checks:#?}");
    assert_eq!(of(&checks, "tls").len(), 1);
    assert!(
        says(&checks, "terminal", "ok", "none: results and progress go to files or pipes"),
        "{checks:#?}"
    );
    assert!(!done.stdout.contains("4711"), "{}", done.stdout);
    let (done, checks) = examined(&place, &[], &[("SSL_CERT_FILE", "/nowhere.pem")]);
    assert_eq!(done.code, 4);
    assert!(says(&checks, "tls", "broken", "/nowhere.pem"), "{checks:#?}");
}

#[test]
fn help_lists_variables_and_commands() {
    let place = Place::new();
    let text = place.run(&["help", "environment"]).exits(0).stdout;
    for name in ["SELVEDGE_API_KEY", "SELVEDGE_STATE_DIR", "SELVEDGE_TIMEOUT"] {
        assert!(text.contains(name), "{text}");
    }
    let mut command = place.command(&["help", "environment", "--json"]);
    let listed = finish(command.env("SELVEDGE_API_KEY", "sk-secret-4711").spawn().unwrap());
    assert!(!listed.stdout.contains("4711"));
    let rows = listed.json()["variables"].as_array().unwrap().clone();
    let set: Vec<&Value> = rows.iter().filter(|row| row["set"] == true).map(|row| &row["name"]).collect();
    assert_eq!(set, ["SELVEDGE_API_KEY", "SELVEDGE_STATE_DIR", "SELVEDGE_TRUST", "COLUMNS"]);
    let run = place.run(&["help", "run"]).exits(0).stdout;
    assert!(run.contains("--base-url") && run.contains("selvedge run"), "{run}");
    assert!(place.run(&["help"]).exits(0).stdout.contains("runs"));
    assert_eq!(place.run(&["help", "nonsense", "--json"]).exits(2).error()["code"], "usage");
}

/// C-14, D-19: what `[recovery]` sets is told; what is wrong in it is broken.
#[test]
fn recovery_is_told_where_it_is_configured() {
    let place = Place::new();
    let check = |toml: &str, code: i32| -> Vec<Value> {
        place.write("selvedge.toml", toml);
        let report = place.run(&["doctor", "--json"]).exits(code).json();
        report["checks"].as_array().unwrap().clone()
    };
    let told = check("[recovery]\nsiblings = \"hold\"\nretries = 0\n", 0);
    let line = told.iter().find(|check| check["check"] == "recovery").unwrap();
    assert!(line["message"].as_str().unwrap().ends_with("siblings hold, retries 0"), "{line}");
    assert!(check("[limits]\nnodes = 5\n", 0).iter().all(|check| check["check"] != "recovery"));
    let broken = check("[recovery]\nretries = 0.5\n", 4);
    assert!(
        broken.iter().any(|check| check["status"] == "broken" && check["check"] == "config"),
        "{broken:?}"
    );
}
