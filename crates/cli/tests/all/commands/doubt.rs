//! Writes of which nobody knows whether they happened: what a person can say, and what is said to a no (E-05, E-29, C-13).

use super::terminal::{asked, says_line, times};
use crate::support::{Done, Place, calls, finish, wait_for};
use serde_json::{Value, json};

/// The run `r`, killed while its write was under way, which then waits for a person; and the ask's id.
fn in_doubt() -> (Place, String) {
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools.command.send]\ndescription = \"d\"\ncommand = [\"sh\", \"-c\", \"echo . >> began; test -e quick || sleep 20; echo '{}'\"]\n\
         input_schema = {type = \"object\"}\neffects = \"write\"\noutput_params = {id = \"integer\"}\n\
         [tools.command.tell]\ndescription = \"d\"\ncommand = [\"cat\"]\ninput_schema = {type = \"object\"}\neffects = \"pure\"\n",
    );
    let send = calls("a", "send", json!({"to": "all"}));
    place.plan("plan.json", json!([send, calls("b", "tell", json!({"sent": "{{a.output.id}}"}))]));
    let mut run = place.start(&["run", "plan.json", "--run-id", "r"]);
    wait_for(&place.work().join("began"));
    run.kill().unwrap();
    finish(run);
    place.write("quick", "");
    let waits = place.run(&["resume", "r", "--json"]).exits(3).json();
    let ask = &waits["asks"][0];
    assert_eq!((&ask["node"], &ask["in_doubt"]), (&json!("a"), &json!(true)), "{waits}");
    let prompt = ask["prompt"].as_str().unwrap();
    assert!(prompt.contains("`send` may or may not have run") && prompt.contains("Done says"), "{prompt}");
    let id = ask["ask"].as_str().unwrap().to_owned();
    (place, id)
}

/// How often the tool was called.
fn began(place: &Place) -> usize {
    std::fs::read_to_string(place.work().join("began")).unwrap().lines().count()
}

fn events(place: &Place) -> usize {
    place.run(&["export", "r"]).exits(0).stdout.lines().count()
}

#[track_caller]
fn refused(done: Done, code: &str, parts: &[&str]) {
    let error = done.exits(2).error();
    assert_eq!(error["code"], code, "{error}");
    let told = format!("{} {}", error["message"].as_str().unwrap(), error["help"].as_str().unwrap());
    parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
}

#[test]
fn done_is_what_came_back_and_nothing_runs_again() {
    let (place, ask) = in_doubt();
    let told = place.run(&["resume", "r"]).exits(3).stderr;
    assert!(told.contains(&format!("selvedge answer r {ask} 'yes|no|done'")), "{told}");
    let output = r#"{"id": 7, "at": "noon", "n": [18446744073709551615, -9223372036854775808]}"#;
    let run = place.run(&["answer", "r", &ask, "done", "--output", output, "--json"]).exits(0).json();
    assert_eq!(run["results"]["a"]["output"], serde_json::from_str::<Value>(output).unwrap(), "{run}");
    assert_eq!(run["results"]["b"]["output"], json!({"sent": 7}), "{run}");
    assert_eq!((began(&place), &run["usage"]["tool_calls"]), (1, &json!(2)));
    let node = place.run(&["show", "r", "--node", "a"]).exits(0).stdout;
    assert!(node.contains("noon") && !node.contains("nothing has come back"), "{node}");
    place.run(&["replay", "r"]).exits(0);
}

/// Who said no, who took it back later, and why, stand wherever the run is looked at.
#[test]
fn who_answered_and_why_is_shown() {
    for word in ["done", "yes"] {
        let (place, ask) = in_doubt();
        place
            .run(&["answer", "r", &ask, "no", "--by", "Ann", "--why", "it may have been sent", "-q"])
            .exits(1);
        let shown = |args: &[&str]| place.run(args).exits(0).stdout;
        let first = "no, by Ann: it may have been sent";
        assert!(shown(&["show", "r"]).contains(first) && shown(&["explain", "r"]).contains(first));
        let (output, said) = match word {
            "done" => (&["--output", r#"{"id": 7}"#][..], r#"done, with {"id":7}, by Bob: the log has it"#),
            _ => (&[][..], "yes, by Bob: the log has it"),
        };
        let answer = ["answer", "r", &ask, word, "--by", "Bob", "--why", "the log has it", "-q"];
        // Run once more, the tool gives no `id`.
        place.run(&[&answer[..], output].concat()).exits(if word == "done" { 0 } else { 1 });
        for looked in [
            &["show", "r"][..],
            &["show", "r", "--node", "a"],
            &["explain", "r"],
            &["explain", "r", "--node", "a"],
        ] {
            let page = shown(looked);
            let (no, then) = (page.find(first), page.find(said));
            assert!(no.is_some() && no < then, "{looked:?}: {page}");
        }
        let explained = place.run(&["explain", "r", "--node", "a", "--json"]).exits(0).json();
        let answers = &explained["nodes"][0]["answers"];
        assert_eq!((&answers[0]["by"], &answers[1]["by"]), (&json!("Ann"), &json!("Bob")), "{explained}");
        // As of then, only what had been said.
        let no =
            1 + place.run(&["export", "r"]).stdout.lines().position(|line| line.contains("Ann")).unwrap();
        let past = shown(&["show", "r", "--at", &no.to_string()]);
        assert!(past.contains(first) && !past.contains("Bob"), "{past}");
    }
}

/// What can't be is refused, and the ask stays open.
#[test]
fn an_output_that_does_not_fit_leaves_the_ask_open() {
    let (place, ask) = in_doubt();
    let before = events(&place);
    let said = |rest: &[&str]| place.run(&[&["answer", "r", &ask], rest, &["--json"]].concat());
    refused(said(&["done"]), "bad-output", &["`send` declares what it gives", r#"--output '{"id": …}'"#]);
    refused(said(&["done", "--output", r#"{"id": "x"}"#]), "bad-output", &["integer"]);
    refused(said(&["done", "--output", "{}"]), "bad-output", &["id"]);
    let wrong =
        |output: &str, parts: &[&str]| refused(said(&["done", "--output", output]), "bad-output", parts);
    wrong(r#"{"id": 1, "id": 2}"#, &["character 11", "the key \"id\" occurs twice", "keep one"]);
    wrong(r#"{"id": 18446744073709551616}"#, &["character 8", "64 bits", "quotes"]);
    wrong(r#"{"id": 1e400}"#, &["out of range", "1.8e308"]);
    wrong("sent", &["\"sent\" is not a JSON value", r#"done --output '"sent"'"#]);
    refused(
        said(&["done", "--output", "@came back.json"]),
        "bad-output",
        &["takes the JSON itself, '{\"id\": 7}' for example", "done --output \"$(cat 'came back.json')\""],
    );
    refused(said(&["yes", "--output", "{}"]), "bad-output", &["done"]);
    refused(said(&["perhaps"]), "bad-answer", &["yes, no or done"]);
    assert_eq!((events(&place), began(&place)), (before, 1));
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["asks"][0]["ask"], json!(ask));
    place.run(&["answer", "r", &ask, "yes"]).exits(1);
    assert_eq!(began(&place), 2);
}

/// E-05: after a no, a resume records nothing and asks nothing; it says what can be done, and all of it can be.
#[test]
fn after_a_no_a_resume_says_what_can_be_done() {
    let (place, ask) = in_doubt();
    let told = place.run(&["answer", "r", &ask, "no"]).exits(1).stderr;
    let ways = [
        format!("selvedge answer r {ask} done --output JSON"),
        format!("selvedge answer r {ask} yes"),
        "selvedge fork r --document FILE".to_owned(),
    ];
    let before = events(&place);
    let again = place.run(&["resume", "r"]).exits(1).stderr;
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    for way in &ways {
        assert!(
            [&told, &again, &shown].iter().all(|text| text.contains(way)),
            "{way}: {told}\n{again}\n{shown}"
        );
    }
    assert!(!again.contains("selvedge resume"), "{again}");
    let run = place.run(&["resume", "r", "--json"]).exits(1).json();
    let code = |warning: &Value| warning["code"] == "write-in-doubt";
    assert!(run["warnings"].as_array().unwrap().iter().any(code) && run["asks"] == json!([]), "{run}");
    refused(place.run(&["answer", "r", &ask, "no", "--json"]), "ask-answered", &[&ways[0], &ways[1]]);
    assert_eq!((events(&place), began(&place)), (before, 1));
    let done = ["answer", "r", &ask, "done", "--output", r#"{"id": 9}"#, "--json"];
    let run = place.run(&done).exits(0).json();
    assert_eq!((&run["results"]["b"]["output"], began(&place)), (&json!({"sent": 9}), 1), "{run}");
    place.run(&["replay", "r"]).exits(0);
}

/// The word may only be recorded; a no that becomes a yes runs the call once.
#[test]
fn a_no_becomes_a_yes() {
    let (place, ask) = in_doubt();
    place.run(&["answer", "r", &ask, "no"]).exits(1);
    place.run(&["answer", "r", &ask, "yes", "--no-continue"]).exits(0);
    assert_eq!(began(&place), 1);
    place.run(&["resume", "r", "--json"]).exits(1);
    assert_eq!(began(&place), 2, "it ran, and its output had no `id`");
    place.run(&["replay", "r"]).exits(0);
}

/// What is wrong with what was typed is said with what to type there, and the question stays.
#[test]
fn done_on_a_terminal_says_what_it_takes() {
    const QUESTION: &str = "a reason may follow y or n: ";
    let (place, _) = in_doubt();
    let (child, seen, terminal) = asked(&place, &["resume", "r"]);
    for (asked, (line, told)) in [
        ("done", r#"`send` declares what it gives: say what came back; done {"id": …}"#),
        ("done sent", r#""sent" is not a JSON value; a text stands in quotes: done "sent""#),
        (r#"done {"id": 18446744073709551616}"#, "64 bits can't hold this integer"),
        (r#"done {"id": "x"}"#, "that can't be what `send` gives"),
    ]
    .into_iter()
    .enumerate()
    {
        times(&seen, QUESTION, asked + 1);
        says_line(&terminal, &format!("{line}\n"));
        times(&seen, told, 1);
    }
    says_line(&terminal, "done {\"id\": 3}\n");
    finish(child).exits(0);
    assert_eq!(began(&place), 1);
}
