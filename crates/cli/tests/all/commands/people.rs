//! Runs that wait for a person: `answer`, `cancel`, and what they print (C-12, C-13, E-21).

use crate::support::{Done, Place, calls, says, wait_for};
use serde_json::json;
use std::process::Child;

/// A run that waits at its second node, and the ask's id.
fn waiting() -> (Place, String) {
    let place = Place::new();
    let mut second = says("b", "Send it");
    second["require_approval"] = json!(true);
    place.plan("plan.json", json!([says("a", "Write it"), second]));
    place.write("s.yaml", "- reply: {text: done}\n");
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(3);
    let run = done.json();
    assert_eq!(run["status"], "waiting");
    let ask = &run["asks"][0];
    assert_eq!((&ask["node"], &ask["kind"]), (&json!("b"), &json!("approve")), "{run}");
    let keys: Vec<&str> = ask.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["ask", "node", "kind", "prompt"]);
    let id = ask["ask"].as_str().unwrap().to_owned();
    (place, id)
}

fn answer(place: &Place, ask: &str, rest: &[&str]) -> Done {
    place.run(&[&["answer", "r", ask], rest, &["--json"]].concat())
}

#[test]
fn yes_goes_on_and_no_is_denied() {
    let (place, ask) = waiting();
    let run = answer(&place, &ask, &["yes"]).exits(0).json();
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("done")));
    assert_eq!((&run["usage"]["model_calls"], &run["asks"]), (&json!(2), &json!([])));
    let (place, ask) = waiting();
    let run = answer(&place, &ask, &["no"]).exits(1).json();
    assert_eq!((&run["fault"]["kind"], &run["fault"]["node"]), (&json!("denied"), &json!("b")));
}

/// A node that an earlier process started has run, for this one, since this one began.
#[test]
fn times_of_what_goes_on_count_from_when_the_process_began() {
    let (place, ask) = waiting();
    let told = place.run(&["answer", "r", &ask, "yes"]).exits(0).stderr;
    let done = told.lines().find(|line| line.contains(" done  b")).unwrap_or_else(|| panic!("{told}"));
    let units: Vec<&str> = done.split_whitespace().filter(|word| matches!(*word, "s" | "ms")).collect();
    assert_eq!(units.len(), 2, "seconds, not minutes: {done}");
}

#[test]
fn a_wrong_answer_changes_nothing_and_names_what_is_open() {
    let (place, ask) = waiting();
    let error = answer(&place, "nothing", &["yes"]).exits(2).error();
    assert!(error["help"].as_str().unwrap().contains(&ask), "{error}");
    answer(&place, &ask, &["perhaps"]).exits(2);
    // Nothing is in doubt about a call that nobody has made.
    let error = answer(&place, &ask, &["done"]).exits(2).error();
    assert!(error["message"].as_str().unwrap().contains("yes or no"), "{error}");
    answer(&place, &ask, &["yes", "--output", "{}"]).exits(2);
    assert_eq!(place.run(&["resume", "r", "--json"]).exits(3).json()["status"], "waiting");
    let human = place.run(&["resume", "r"]).exits(3);
    assert!(human.stderr.contains(&format!("selvedge answer r {ask} 'yes|no'")), "{}", human.stderr);
}

/// Who answered and why stand in the journal, and change nothing else.
#[test]
fn who_answers_and_why_is_recorded() {
    for (word, code) in [("yes", 0), ("no", 1)] {
        let (place, ask) = waiting();
        answer(&place, &ask, &[word, "--by", "ada", "--why", "seen by two"]).exits(code);
        let journal = place.run(&["export", "r"]).exits(0).stdout;
        let said = journal.lines().find(|line| line.contains(r#""kind":"answered""#)).unwrap().to_owned();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["value"], json!({"answer": word, "by": "ada", "why": "seen by two"}));
        place.run(&["replay", "r"]).exits(0);
    }
}

/// C-13: the ask's id may be left out where only one is open; what is echoed is the run's id and no alias.
#[test]
fn the_only_open_ask_needs_no_name() {
    let (place, ask) = waiting();
    let told = place.run(&["answer", "@", "perhaps"]).exits(2).stderr;
    assert!(told.contains(&format!("selvedge answer r {ask} 'yes|no'")) && !told.contains('@'), "{told}");
    let told = place.run(&["answer", "r", &ask]).exits(2).stderr;
    assert!(told.contains("the answer is missing"), "{told}");
    assert_eq!(place.run(&["answer", "@", "yes", "--json"]).exits(0).json()["status"], "completed");
    let told = place.run(&["answer", "@", "yes"]).exits(2).stderr;
    assert!(told.contains("was answered") && told.contains("selvedge show r"), "{told}");
}

/// A plan whose two nodes ask at the same time.
fn two_approvals() -> Place {
    let place = Place::new();
    let node = |id: &str| {
        let mut node = says(id, "p");
        (node["require_approval"], node["thread_id"]) = (json!(true), json!(id));
        node
    };
    place.plan("plan.json", json!([node("a"), node("b")]));
    place.write("s.yaml", "- reply: {text: done}\n");
    place
}

#[test]
fn of_several_open_asks_one_is_named() {
    let place = two_approvals();
    let told = place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(3).stderr;
    assert!(told.contains("ask   a asks a person: ") && told.contains("ask   b asks a person: "), "{told}");
    let error = place.run(&["answer", "@", "yes", "--json"]).exits(2).error();
    assert_eq!(error["code"], "which-ask");
    let help = error["help"].as_str().unwrap();
    assert!(help.contains("selvedge answer r a/") && help.contains("selvedge answer r b/"), "{help}");
}

/// What is missing is the value; what is still open is said when one of several is recorded.
#[test]
fn what_is_still_to_be_answered_is_said() {
    let place = two_approvals();
    let asks =
        place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(3).json();
    let ask = |at: usize| asks["asks"][at]["ask"].as_str().unwrap();
    let error = place.run(&["answer", "r", "--json"]).exits(2).error();
    let told = format!("{} {}", error["message"].as_str().unwrap(), error["help"].as_str().unwrap());
    for part in ["VALUE", &format!("selvedge answer r {} 'yes|no'", ask(0)), &format!("{} 'yes|no'", ask(1))]
    {
        assert!(told.contains(part), "{told}");
    }
    let told = place.run(&["answer", "r", ask(0), "yes", "--no-continue"]).exits(0).stderr;
    let said = ["the answer is recorded", "selvedge resume r", "it also waits for a person:\n  Run node `b`"];
    assert!(said.iter().all(|part| told.contains(part)), "{told}");
    assert!(told.contains(&format!("selvedge answer r {} 'yes|no'", ask(1))), "{told}");
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    assert!(shown.contains("also waits for a person"), "{shown}");
    place.run(&["resume", "r"]).exits(3);
    place.run(&["answer", "r", "yes"]).exits(0);
    let told = place.run(&["answer", "r", "--json"]).exits(2).error();
    assert_eq!(
        (&told["code"], &told["help"]),
        (&json!("unknown-ask"), &json!("the run has ended: selvedge show r"))
    );
}

#[test]
fn an_answer_may_only_be_recorded() {
    let (place, ask) = waiting();
    let run = answer(&place, &ask, &["yes", "--no-continue"]).exits(0).json();
    assert_eq!(run["status"], "running");
    assert_eq!(run["warnings"][0]["code"], "not_driven", "{run}");
    answer(&place, &ask, &["yes"]).exits(2);
    assert_eq!(place.run(&["resume", "r", "--json"]).exits(0).json()["output"], "done");
}

#[test]
fn a_cancelled_run_is_ended_and_cancel_itself_succeeds() {
    let (place, ask) = waiting();
    let run = place.run(&["cancel", "r", "--json"]).exits(0).json();
    assert_eq!((&run["status"], &run["asks"]), (&json!("cancelled"), &json!([])));
    assert_eq!(place.run(&["resume", "r", "--json"]).exits(1).json()["status"], "cancelled");
    assert_eq!(place.run(&["cancel", "r", "--json"]).exits(1).json()["status"], "cancelled");
    answer(&place, &ask, &["yes"]).exits(2);
}

/// The run `r`, whose only call is under way.
pub(crate) fn driven(place: &Place) -> Child {
    place.write(
        "selvedge.toml",
        "[tools.command.slow]\ndescription = \"d\"\ncommand = [\"sh\", \"-c\", \"echo . >> began; sleep 20\"]\n\
         input_schema = {type = \"object\"}\neffects = \"read\"\n",
    );
    place.plan("plan.json", json!([calls("a", "slow", json!({}))]));
    let run = place.start(&["run", "plan.json", "--run-id", "r"]);
    wait_for(&place.work().join("began"));
    run
}

/// C-12: nothing of a run that was killed runs again, and nothing says so.
#[test]
fn a_killed_run_that_is_cancelled_runs_nothing_again() {
    let place = Place::new();
    let mut run = driven(&place);
    run.kill().unwrap();
    run.wait().unwrap();
    let done = place.run(&["cancel", "r"]).exits(0);
    assert!(!done.stderr.contains("again"), "{done:?}");
    assert_eq!(std::fs::read_to_string(place.work().join("began")).unwrap(), ".\n");
}

/// E-21: who approves a call sees which tool it is and with what, as the call will have it.
#[test]
fn an_approval_says_which_tool_with_which_arguments() {
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools.command.save]\ndescription = \"d\"\ncommand = [\"cat\"]\ninput_schema = {type = \"object\"}\n",
    );
    let args = json!({"path": "{{a.output}}", "text": format!("BEGIN{}END", "x".repeat(3_000)), "esc": "\u{1b}[2J\u{202e}"});
    let mut save = calls("b", "save", args);
    save["require_approval"] = json!(true);
    place.plan("plan.json", json!([says("a", "Where to?"), save]));
    place.write("s.yaml", "- reply: {text: out/final.txt}\n");
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(3);
    let told = done
        .stderr
        .lines()
        .find(|line| line.starts_with("  Run node"))
        .unwrap_or_else(|| panic!("{done:#?}"));
    for part in [
        "Run node `b` (b)? It calls `save` with {",
        r#""path":"out/final.txt""#,
        "BEGINx",
        " characters …",
        "xEND",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.len() < 1_500 && !told.contains(['\u{1b}', '\u{202e}']), "{told}");
    let prompt = &place.run(&["show", "r", "--json"]).exits(0).json()["asks"][0]["prompt"];
    assert!(prompt.as_str().unwrap().contains(r#"It calls `save` with {"#), "{prompt}");
    assert!(place.run(&["show", "r"]).exits(0).stdout.contains("out/final.txt"));
    // The words are no part of the journal.
    place.run(&["replay", "r"]).exits(0);
    let ask =
        place.run(&["show", "r", "--json"]).exits(0).json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    answer(&place, &ask, &["yes"]).exits(0);
}

#[test]
fn an_ended_run_is_printed_with_its_own_code() {
    let (place, ask) = waiting();
    answer(&place, &ask, &["yes"]).exits(0);
    for command in ["resume", "cancel"] {
        let run = place.run(&[command, "r", "--json"]).exits(0).json();
        assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("done")));
    }
}

/// Who answered and why is shown with the node, and not only among the events.
#[test]
fn a_reason_is_shown_with_the_node() {
    let (place, ask) = waiting();
    answer(&place, &ask, &["yes", "--by", "Ann", "--why", "it is right"]).exits(0);
    let said = json!([{"ask": ask, "answer": "yes", "by": "Ann", "why": "it is right"}]);
    for args in [&["show", "r", "--node", "b"][..], &["explain", "r", "--node", "b"], &["explain", "r"]] {
        let page = place.run(args).exits(0).stdout;
        assert!(page.contains("yes, by Ann: it is right"), "{page}");
        let json = place.run(&[args, &["--json"]].concat()).exits(0).json();
        let node = json["nodes"].as_array().and_then(|nodes| nodes.last().cloned()).unwrap_or(json);
        assert_eq!(node["answers"], said, "{node}");
    }
    assert!(place.run(&["show", "r", "--node", "a", "--json"]).exits(0).json().get("answers").is_none());
}
