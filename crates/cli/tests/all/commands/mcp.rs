//! MCP servers from outside (A-22).

use crate::support::{Place, calls, finish, wait_for};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file of servers, by name and mode; each notes what happens in a file of its name.
fn servers(place: &Place, servers: &[(&str, &str)]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/mcp_servers/server.py");
    let server = |(name, mode): &(&str, &str)| {
        let args = json!([script, mode, notes(place, name)]);
        ((*name).to_owned(), json!({"command": "python3", "args": args}))
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(server).collect();
    place.write("servers.json", &json!({"mcpServers": servers}).to_string());
}

fn notes(place: &Place, server: &str) -> PathBuf {
    place.work().join(server).with_extension("notes")
}

fn noted(place: &Place, server: &str) -> Vec<String> {
    let notes = std::fs::read_to_string(notes(place, server)).unwrap_or_default();
    notes.split_whitespace().map(str::to_owned).collect()
}

/// C-04: what is wrong with a name is said where the document has it, and nothing that is not so.
#[test]
fn ambiguous_names_are_told_at_their_places() {
    let place = Place::new();
    servers(&place, &[("a", "plain"), ("b", "plain")]);
    place.plan("plan.json", json!([calls("n", "echo", json!({"text": "x"}))]));
    for command in ["check", "run"] {
        let done = place.run(&[command, "plan.json", "--mcp", "servers.json"]).exits(2);
        assert!(done.stderr.contains("plan.json:1:"), "{done:#?}");
        assert!(done.stderr.contains("error[A-22]: several MCP servers have a tool `echo`"), "{done:#?}");
        assert_eq!(done.stderr.matches("error[").count(), 1, "{done:#?}");
        assert!(!done.stderr.contains("there is no tool"), "{done:#?}");
    }
    let found = place.run(&["check", "plan.json", "--mcp", "servers.json", "--json"]).exits(2).json();
    assert!(found.to_string().contains("/nodes/0/initial_tool_name"), "{found}");
}

/// E-13: a run whose time is up cancels its calls at the servers before it closes them.
#[test]
fn a_run_that_ends_cancels_its_calls() {
    let place = Place::new();
    servers(&place, &[("s", "never")]);
    place.plan("plan.json", json!([calls("n", "s__echo", json!({}))]));
    place.run(&["run", "plan.json", "--mcp", "servers.json", "--timeout", "2"]).exits(1);
    assert_eq!(noted(&place, "s"), ["called", "cancelled"]);
}

/// C-04: commands that are suggested work when they are pasted.
#[test]
fn suggested_commands_name_the_state_folder() {
    let place = Place::new();
    servers(&place, &[("s", "errors")]);
    place.plan("plan.json", json!([calls("n", "s__echo", json!({}))]));
    let args = ["run", "plan.json", "--mcp", "servers.json", "--run-id", "r", "--state-dir", "my runs"];
    let done = place.run(&args).exits(1);
    let hint = "selvedge resume r --state-dir 'my runs'";
    assert!(done.stderr.contains(hint), "{done:#?}");
    let shown = place.run(&["show", "r", "--state-dir", "my runs"]).exits(0);
    assert!(shown.stdout.contains(hint), "{shown:#?}");
}

/// E-13: a server and what it started end with a Selvedge that is killed, also if they do not heed the end of stdin.
#[cfg(target_os = "linux")]
#[test]
fn servers_end_with_a_process_that_is_killed() {
    let place = Place::new();
    servers(&place, &[("s", "stays")]);
    place.plan("plan.json", json!([calls("n", "s__echo", json!({}))]));
    let mut run = place.start(&["run", "plan.json", "--mcp", "servers.json"]);
    wait_for(&notes(&place, "s"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while noted(&place, "s").len() < 3 {
        assert!(Instant::now() < deadline, "the tool is called");
        std::thread::sleep(Duration::from_millis(10));
    }
    run.kill().unwrap();
    finish(run).exits(-1);
    for pid in noted(&place, "s").iter().filter(|word| word.parse::<u32>().is_ok()) {
        // A process that nobody waits for stays as a zombie where nobody adopts it.
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "process {pid} is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// C-06: what a server is handed out of the environment is in no output and no journal, whatever its variable is called; what says
/// nothing stays, and a person may write what is no key by its name.
#[test]
fn c06_what_servers_are_given_out_of_the_environment_is_redacted() {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/mcp_servers/server.py");
    let env = json!({"TENANT": "${MY_TENANT}", "BOTH": "for ${MY_TENANT}", "STAGE": "${STAGE}", "LEVEL": "${LEVEL}", "HERE": "${HOME}", "MINE": "literal-4711-words"});
    let server = json!({"command": "python3", "args": [script, "environment"], "env": env});
    place.write("servers.json", &json!({"mcpServers": {"s": server}}).to_string());
    place.plan("plan.json", json!([calls("n", "s__echo", json!({"text": "tenant-4711-alpha"}))]));
    let mut command =
        place.command(&["run", "plan.json", "--mcp", "servers.json", "--run-id", "r", "--json", "-v"]);
    command.envs([("MY_TENANT", "tenant-4711-alpha"), ("STAGE", "production"), ("LEVEL", "1")]);
    let done = finish(command.spawn().unwrap()).exits(0);
    let output = done.json()["results"]["n"]["output"].to_string();
    assert!(!done.stdout.contains("tenant-4711") && !done.stderr.contains("tenant-4711"), "{done:#?}");
    for kept in ["production", "literal-4711-words", "home"] {
        assert!(output.contains(kept), "{kept}: {output}");
    }
    assert!(output.contains("for [redacted]"), "{output}");
    // Without the variable, nothing redacts what is shown: the journal does not have it from the server.
    let shown = place.run(&["show", "r", "--node", "n"]).exits(0);
    assert!(!shown.stdout.contains("for tenant"), "{shown:#?}");
}
