//! `run`: what is printed, and the exit codes of C-03.

use crate::support::{Place, calls, says};
use serde_json::{Value, json};

const SCRIPT: &str = "
- when: {contains: Draft}
  reply: {text: 'A draft', usage: {input: 10, output: 5}}
- when: {contains: Review}
  reply: {text: 'Fine.'}
";

fn two_nodes() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Draft"), says("b", "Review")]));
    place.write("s.yaml", SCRIPT);
    place
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_completed_run_prints_its_result_and_nothing_else_on_stdout() {
    let place = two_nodes();
    let done = place.run(&["run", "plan.json", "--script", "s.yaml"]).exits(0);
    assert_eq!(done.stdout, "Fine.\n");
    assert!(done.stderr.contains("scripted model"), "{}", done.stderr);
    assert!(done.stderr.contains("10+5 tokens"), "{}", done.stderr);
    assert!(!done.stderr.contains('\u{1b}'), "colours without a terminal: {}", done.stderr);
    let quiet = place.run(&["run", "plan.json", "--script", "s.yaml", "--quiet"]).exits(0);
    assert_eq!(quiet.stdout, "Fine.\n");
    assert_eq!(quiet.stderr.lines().count(), 1, "only C-07's notice: {}", quiet.stderr);
}

#[test]
fn the_json_of_a_run_has_the_keys_of_c_02_in_its_order() {
    let place = two_nodes();
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "--json", "--input", "n=3"]).exits(0);
    assert_eq!(done.stdout.lines().count(), 1);
    let run = done.json();
    let expected = [
        "run_id", "status", "output", "fault", "threads", "data_out", "results", "metadata", "joins", "asks",
        "scripted", "warnings", "usage",
    ];
    assert_eq!(keys(&run), expected);
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("Fine.")));
    assert_eq!((&run["scripted"], &run["fault"]), (&json!(true), &Value::Null));
    let result = ["step_id", "step_name", "tool_id", "output", "is_success", "error", "attempts"];
    assert_eq!(keys(&run["results"]["a"]), result);
    assert_eq!(run["threads"]["main"][0], json!({"role": "user", "content": "the task"}));
    assert_eq!(run["metadata"], json!({"initial": {"n": 3}, "runtime": {}}));
    assert_eq!(keys(&run["usage"]), ["model_calls", "tool_calls", "input_tokens", "output_tokens", "cost"]);
    assert_eq!(run["usage"]["model_calls"], 2);
}

#[test]
fn a_failed_run_exits_with_1_and_prints_its_object() {
    let place = two_nodes();
    place.write(
        "bad.yaml",
        "- when: {contains: Draft}\n  reply: {text: x}\n- reply: {error: {status: 400, message: no}}\n",
    );
    let done = place.run(&["run", "plan.json", "--script", "bad.yaml", "--json"]).exits(1);
    let run = done.json();
    assert_eq!((&run["status"], &run["fault"]["node"]), (&json!("failed"), &json!("b")));
    assert_eq!(keys(&run["fault"]), ["kind", "message", "node", "cause"]);
    let human = place.run(&["run", "plan.json", "--script", "bad.yaml"]).exits(1);
    assert_eq!(human.stdout, "");
    assert!(human.stderr.contains("node b") && human.stderr.contains("selvedge resume"), "{}", human.stderr);
}

#[test]
fn a_provider_that_refuses_the_key_is_exit_4() {
    let place = two_nodes();
    for status in [401, 403] {
        place.write("bad.yaml", &format!("- reply: {{error: {{status: {status}, message: key}}}}\n"));
        let done = place.run(&["run", "plan.json", "--script", "bad.yaml", "--json"]).exits(4);
        assert_eq!(done.json()["status"], "failed");
    }
}

#[test]
fn without_a_model_a_document_that_needs_one_is_exit_4_and_any_other_runs() {
    let place = two_nodes();
    let done = place.run(&["run", "plan.json", "--json"]).exits(4);
    assert_eq!(done.stdout, "");
    let help = done.error()["help"].as_str().unwrap().to_owned();
    for way in ["OPENAI_API_KEY is not set", "11434", "--script"] {
        assert!(help.contains(way), "{way}: {help}");
    }
    let found = place.command(&["run", "plan.json"]).env("OPENAI_API_KEY", "k").output().unwrap();
    assert!(String::from_utf8_lossy(&found.stderr).contains("OPENAI_API_KEY is set"), "{found:?}");
    place.plan("tools.json", json!([calls("a", "list_files", json!({"path": "."}))]));
    let run = place.run(&["run", "tools.json", "--json"]).exits(0).json();
    assert_eq!((&run["usage"]["tool_calls"], &run["scripted"]), (&json!(1), &json!(false)));
    assert_eq!(run["results"]["a"]["tool_id"], "list_files");
}

#[test]
fn a_wrong_document_is_exit_2_even_without_a_model() {
    let place = Place::new();
    place.write(
        "plan.json",
        "{\n  \"task\": \"t\",\n  \"nodes\": [\n    {\"node_type\": \"llm-first\"}\n  ]\n}\n",
    );
    let done = place.run(&["run", "plan.json", "--json"]).exits(2);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("plan.json:4:5: error[P-01]"), "{}", done.stderr);
    let error = done.error();
    assert_eq!(keys(&error), ["code", "rule", "message", "file", "line", "column", "pointer", "help"]);
    assert_eq!(
        (&error["rule"], &error["line"], &error["pointer"]),
        (&json!("P-01"), &json!(4), &json!("/nodes/0"))
    );
    place.plan("tool.json", json!([calls("a", "no_such_tool", json!({}))]));
    place.run(&["run", "tool.json"]).exits(2);
    assert!(!place.state().exists(), "nothing may be recorded");
}

#[test]
fn inputs_are_checked_before_anything_runs() {
    let place = Place::new();
    let plan = json!({"task": "About {{topic}}", "inputs": {"topic": {"type": "string"}, "n": {"type": "integer", "default": 1}}, "nodes": []});
    place.write("plan.json", &plan.to_string());
    assert_eq!(place.run(&["run", "plan.json", "--json"]).exits(2).error()["rule"], "P-23");
    let wrong = ["run", "plan.json", "--input", "topic=bees", "--input", "n=many", "--json"];
    assert_eq!(place.run(&wrong).exits(2).error()["rule"], "P-23");
    let run = place.run(&["run", "plan.json", "--input", "topic=bees", "--json"]).exits(0).json();
    assert_eq!(run["threads"]["main"][0]["content"], "About bees");
    assert_eq!(run["output"], Value::Null);
}

#[test]
fn one_of_several_plans_is_chosen_by_name() {
    let place = Place::new();
    place.write("plans.json", r#"{"one": {"task": "1", "nodes": []}, "two": {"task": "2", "nodes": []}}"#);
    place.run(&["run", "plans.json"]).exits(2);
    let run = place.run(&["run", "plans.json", "--plan", "two", "--json"]).exits(0).json();
    assert_eq!(run["threads"]["main"][0]["content"], "2");
    place.run(&["run", "plans.json", "--plan", "two", "--dialect", "agent"]).exits(2);
}

#[test]
fn warnings_of_the_checker_are_on_stderr_and_in_the_object() {
    let place = two_nodes();
    let mut node = says("a", "Draft");
    node["tools_limit"] = json!({"list_files": 1});
    place.plan("warn.json", json!([node]));
    let run = place.run(&["run", "warn.json", "--script", "s.yaml", "--json"]).exits(0);
    let warnings = run.json()["warnings"].clone();
    assert_eq!(warnings[0]["node"], "a", "{warnings}");
    assert!(warnings[0]["code"].is_string() && warnings[0]["message"].is_string());
    assert!(run.stderr.contains("warning["), "{}", run.stderr);
}

#[test]
fn a_budget_and_a_timeout_end_a_run_with_1() {
    let place = two_nodes();
    let args = ["run", "plan.json", "--script", "s.yaml", "--budget", "calls=1", "--json"];
    let run = place.run(&args).exits(1).json();
    assert_eq!(run["fault"]["kind"], "budget_exceeded");
    place.write("slow.yaml", "- reply: {text: x, delay_ms: 30000}\n");
    let run =
        place.run(&["run", "plan.json", "--script", "slow.yaml", "--timeout", "1", "--json"]).exits(1).json();
    assert_eq!(run["fault"]["kind"], "timeout");
}

#[test]
fn writing_needs_permission_before_anything_runs() {
    let place = Place::new();
    place.plan("plan.json", json!([calls("a", "write_file", json!({"path": "out.txt", "content": "x"}))]));
    place.run(&["run", "plan.json"]).exits(2);
    assert!(!place.state().exists());
    place.run(&["run", "plan.json", "--allow-write", "."]).exits(0);
    assert_eq!(std::fs::read_to_string(place.work().join("out.txt")).unwrap(), "x");
}

#[test]
fn more_is_told_with_v() {
    let place = two_nodes();
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "-v"]).exits(0);
    assert!(done.stderr.contains("call") && done.stderr.contains("A draft"), "{}", done.stderr);
}

#[test]
fn a_provider_s_nonsense_figures_break_nothing() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Draft"), says("b", "Review")]));
    let most = u64::MAX;
    let script = format!("- reply: {{text: Fine, usage: {{input: {most}, output: {most}}}}}\n");
    place.write("s.yaml", &script);
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "--json"]).exits(0);
    assert_eq!(done.json()["usage"]["input_tokens"], most);
}

#[test]
fn parts_of_the_figures_are_shown_where_a_provider_tells_them() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Draft"), says("b", "Review")]));
    place.write("s.yaml", "- reply: {text: Fine, usage: {input: 9, output: 8, cached: 4, reasoning: 3}}\n");
    let usage =
        place.run(&["run", "plan.json", "--script", "s.yaml", "--json"]).exits(0).json()["usage"].take();
    let expected = json!({"model_calls": 2, "tool_calls": 0, "input_tokens": 18, "output_tokens": 16, "cost": 0.0,
        "cached_tokens": 8, "reasoning_tokens": 6});
    assert_eq!(usage, expected);
}

/// A limit on file sizes is told like a full disk (C-03), and what the shell's signal would do does not happen.
#[cfg(unix)]
#[test]
fn a_file_size_limit_is_exit_4() {
    use std::process::{Command, Stdio};
    let place = two_nodes();
    let wanted = place.command(&["run", "plan.json", "--script", "s.yaml", "--quiet"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 0; \"$0\" \"$@\" 2>&1 | cat; exit 0"]).arg(wanted.get_program());
    limited.args(wanted.get_args()).current_dir(place.work()).stdout(Stdio::piped());
    limited.envs(wanted.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = String::from_utf8(limited.output().unwrap().stdout).unwrap();
    assert!(said.contains("error[C-14]") && said.contains("file-size limit"), "{said}");
}

#[test]
fn limits_beyond_all_measure_are_no_limits() {
    let place = two_nodes();
    let most = i64::MAX;
    let keys = ["model_timeout_s", "first_token_timeout_s", "tool_timeout_s", "max_parallel", "concurrency"];
    let limits: Vec<String> = keys.iter().map(|key| format!("{key} = {most}")).collect();
    place.write("selvedge.toml", &format!("[limits]\n{}\n", limits.join("\n")));
    let call = ["run", "plan.json", "--script", "s.yaml", "--timeout", "1e9", "--max-parallel", "4294967295"];
    assert_eq!(place.run(&call).exits(0).stdout, "Fine.\n");
}
