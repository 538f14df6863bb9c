//! A tool fails, and a coder mends it: recorded calls are repeated, and only what is better gets its place (A-15, A-16).

use super::*;

/// A body that can't read `29.02.` and says so by an exception, as `DATES` does, and one that can.
const BETTER: &str = "    parts = [part for part in text.split('.') if part]\n    day, month = int(parts[0]), int(parts[1])\n    \
                      year = int(parts[2]) if len(parts) > 2 else 2024\n    \
                      return {'date': f'{year:04d}-{month:02d}-{day:02d}'}";

/// A process whose task has a tool for dates that has worked once and failed once, and what was settled then.
async fn failed(folder: &Folder) -> (Process, Value, Value) {
    let process = Process::start(folder, "r1").await;
    let drafted = process.draft("d", "read_date", &file("read_date", "", DATES), json!({})).await;
    let good = process.call("c1", &drafted["tool"], json!({"text": "1.3.2024"})).await;
    let bad = process.call("c2", &drafted["tool"], json!({"text": "29.02."})).await;
    let (looked, settled) = process.settle("1", &[good, bad], "Success").await;
    assert_eq!(looked["failed"], json!(["c2"]));
    (process, drafted["version"].clone(), settled)
}

/// Another version in the place of the one that failed: what came of it.
async fn attempt(process: &Process, n: u32, old: &Value, body: &str, equal: Value) -> (Value, Value, Value) {
    let more = json!({"replaces": old});
    let drafted = process.draft(&format!("a{n}"), "read_date", &file("read_date", "", body), more).await;
    assert_eq!(drafted["ok"], true, "{drafted}");
    let of = json!({"depth": 0, "name": "read_date", "version": drafted["version"], "replaces": old});
    let replayed = process.ask(known::replay(), &format!("r{n}"), of.clone()).await;
    let mut args = of;
    (args["replayed"], args["equal"]) = (replayed.clone(), equal);
    let accepted = process.ask(known::accept(), &format!("x{n}"), args).await;
    (drafted, replayed, accepted)
}

#[tokio::test]
async fn a15_what_failed_has_to_pass_and_what_worked_to_give_the_same() {
    let folder = Folder::new();
    let (process, old, settled) = failed(&folder).await;
    assert_eq!(settled["proven"], json!(["read_date"]), "the other call worked");
    let mend = &settled["mend"][0];
    assert_eq!(
        (&mend["name"], &mend["version"], &mend["calls"]),
        (&json!("read_date"), &old, &json!(["c2"]))
    );
    let brief = mend["brief"].as_str().unwrap();
    for part in ["def run(input_model)", "29.02.", "execution_failure", "invalid literal"] {
        assert!(brief.contains(part), "{part}: {brief}");
    }
    // It fails as before, it breaks what worked, it gives nothing.
    for (n, body, why) in [
        (1, "    raise ValueError('not today')", "it worked before, and now"),
        (
            2,
            "    return {'date': '-'.join(reversed([part.zfill(2) for part in text.split('.', 2)]))} if len(text) > 6 else {}",
            "it gives nothing",
        ),
    ] {
        let (drafted, replayed, accepted) = attempt(&process, n, &old, body, json!({})).await;
        assert!(replayed["failing"].to_string().contains(why), "{replayed}");
        assert_eq!((&accepted["accepted"], &accepted["tool"]), (&json!(false), &Value::Null));
        assert_eq!(accepted["errors"], replayed["failing"]);
        assert_eq!(process.stage(&drafted["version"]), Some("retired"));
    }
    let (drafted, replayed, accepted) = attempt(&process, 3, &old, BETTER, json!({})).await;
    assert_eq!(replayed, json!({"passed": 2, "skipped": 0, "failing": [], "unsure": []}));
    assert_eq!((&accepted["accepted"], &accepted["tool"]), (&json!(true), &drafted["tool"]));
    let bound = process.ask(known::bindings(), "b", json!({"depth": 0, "names": ["read_date"]})).await;
    assert_eq!(bound["tools"]["read_date"]["version"], drafted["version"]);
    assert_eq!(
        (process.stage(&old), process.stage(&drafted["version"])),
        (Some("enhanced"), Some("private"))
    );
    // It is not proven before a call of the task's has succeeded.
    let ended = process.ask(known::end(), "e", json!({"depth": 0, "publish": true})).await;
    assert!(process.library().public("read_date").is_none(), "{ended}");
    assert_eq!(ended["tools"].as_array().unwrap().len(), 4);
}

/// A recorded call of more than 64 KiB is kept and repeated like any other.
#[tokio::test]
async fn a15_a_mended_tool_is_held_to_large_calls() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let drafted = process.draft("d", "read_date", &file("read_date", "", DATES), json!({})).await;
    let text = format!("{}1.3.2024", " ".repeat(100_000));
    let large = process.call("c1", &drafted["tool"], json!({"text": text})).await;
    assert_eq!(large["output"], json!({"date": "2024-03-01"}), "{large}");
    let bad = process.call("c2", &drafted["tool"], json!({"text": "29.02."})).await;
    process.settle("1", &[large, bad], "Success").await;
    let old = &drafted["version"];
    let short = format!("    if len(text) > 1000:\n        return {{}}\n{BETTER}");
    let (_, replayed, accepted) = attempt(&process, 1, old, &short, json!({})).await;
    assert_eq!(accepted["accepted"], false, "{replayed}");
    let (_, replayed, accepted) = attempt(&process, 2, old, BETTER, json!({})).await;
    assert_eq!((&replayed["passed"], &accepted["accepted"]), (&json!(2), &json!(true)), "{replayed}");
}

/// Of an output that is another one, a judge says whether it is equal.
#[tokio::test]
async fn a15_another_output_is_judged() {
    let folder = Folder::new();
    let (process, old, _) = failed(&folder).await;
    let body = BETTER.replace("return {", "return {'calendar': 'gregorian', ");
    for (n, equal, accepts) in [
        (1, json!({}), false),
        (2, json!({"0": {"equal": false, "reason": "a field more"}}), false),
        (3, json!([{"equal": true, "reason": "the same date"}]), true),
    ] {
        let body = format!("    # attempt {n}\n{body}");
        let (_, replayed, accepted) = attempt(&process, n, &old, &body, equal).await;
        assert_eq!((&replayed["passed"], &replayed["failing"]), (&json!(1), &json!([])), "{replayed}");
        let question = replayed["unsure"][0]["question"].as_str().unwrap();
        assert!(question.contains("gregorian") && question.contains("1.3.2024"), "{question}");
        assert_eq!(accepted["accepted"], accepts, "{accepted}");
    }
}

/// A version that repeats a recorded output does nothing: it is refused before anything is called.
#[tokio::test]
async fn a15_outputs_in_the_file_are_refused() {
    let folder = Folder::new();
    let (process, old, _) = failed(&folder).await;
    let body = "    return {'date': {'1.3.2024': '2024-03-01'}.get(text, '1970-01-01')}";
    let (_, replayed, accepted) = attempt(&process, 1, &old, body, json!({})).await;
    assert!(replayed["failing"].to_string().contains("word for word"), "{replayed}");
    assert_eq!(accepted["accepted"], false);
    // The same file again is not looked at again.
    let more = json!({"replaces": old});
    let again = process.draft("again", "read_date", &file("read_date", "", body), more.clone()).await;
    assert!(again["errors"].to_string().contains("tried before"), "{again}");
    let same = process.draft("same", "read_date", &file("read_date", "", DATES), more).await;
    assert!(same["errors"].to_string().contains("unchanged"), "{same}");
}

/// A time-out is recorded and counts as a failure: a better version is quick enough.
#[tokio::test]
async fn a15_time_outs_are_recorded_and_have_to_pass() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let slow = file("read_date", ", 'timeout': 1.0", "    time.sleep(9)\n    return {'date': text}");
    let drafted = process.draft("d", "read_date", &slow, json!({})).await;
    let call = process.call("c1", &drafted["tool"], json!({"text": "1.3.2024"})).await;
    assert_eq!(call["error"]["type"], "timeout");
    let (_, settled) = process.settle("1", &[call], "Success").await;
    assert_eq!(settled["mend"][0]["calls"], json!(["c1"]), "{settled}");
    let old = &drafted["version"];
    assert_eq!(process.library().version(old.as_str().unwrap()).unwrap().calls.len(), 1);
    let (_, replayed, accepted) = attempt(&process, 1, old, BETTER, json!({})).await;
    assert_eq!((&replayed["passed"], &accepted["accepted"]), (&json!(1), &json!(true)), "{replayed}");
}

/// What a model says of an output that the tool gave counts: the wrong output is no example for a better version.
#[tokio::test]
async fn a14_a_wrong_output_is_a_failure_and_wrong_arguments_are_told() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let wrong = file("read_date", "", "    return {'date': 'unknown'}");
    let drafted = process.draft("d", "read_date", &wrong, json!({})).await;
    let call = process.call("c1", &drafted["tool"], json!({"text": "1.3.2024"})).await;
    let refused = process.call("c2", &drafted["tool"], json!({"text": 3})).await;
    let (looked, settled) = process.settle("1", &[call.clone(), refused], "Execution Failure").await;
    assert_eq!(
        (looked["ask"].as_array().unwrap().len(), &looked["misused"]),
        (1, &json!(["c2"])),
        "{looked}"
    );
    assert!(settled["mend"][0]["brief"].as_str().unwrap().contains("as it seems"), "{settled}");
    let say = settled["say"].as_str().unwrap();
    assert!(say.contains("`read_date`") && say.contains("\"properties\""), "{say}");
    assert_eq!(settled["proven"], json!([]));
    let (_, replayed, accepted) = attempt(&process, 1, &drafted["version"], BETTER, json!({})).await;
    assert_eq!(replayed["passed"], 1, "{replayed}");
    assert_eq!(accepted["accepted"], true);
    let (_, settled) = process.settle("2", &[call], "Input Error").await;
    assert!(
        settled["say"].as_str().unwrap().contains("as it seems") && settled["mend"] == json!([]),
        "{settled}"
    );
}

/// Nothing is written or sent while calls are repeated, and what can't be repeated so is no evidence.
#[tokio::test]
async fn a15_repeating_reaches_nothing() {
    let folder = Folder::new();
    let process = Process::with(&folder, "r1", |config| {
        config.permissions.allow_write = vec![folder.at("work/out")];
        config.permissions.allow_network = selvedge_tools::Network::Local;
    })
    .await;
    let meta = ", 'write_paths': ['out'], 'network': True".replace("'effects': 'pure', ", "");
    let write = |body: &str| {
        let text = file("read_date", &meta, body);
        text.replace("'effects': 'pure'", "'effects': 'idempotent'")
    };
    let body = "    n = len(open('out/log').read()) if __import__('os').path.exists('out/log') else 0\n    \
                open('out/log', 'a').write('x')\n    return {'n': n} if text else 1 / 0";
    let drafted = process.draft("d", "read_date", &write(body), json!({})).await;
    assert_eq!(drafted["ok"], true, "{drafted}");
    let good = process.call("c1", &drafted["tool"], json!({"text": "a"})).await;
    let bad = process.call("c2", &drafted["tool"], json!({"text": ""})).await;
    let (_, settled) = process.settle("1", &[good, bad], "Success").await;
    assert_eq!(settled["mend"][0]["calls"], json!(["c2"]));
    let log = std::fs::read_to_string(folder.at("work/out/log")).unwrap();
    let better = write(&body.replace("1 / 0", "{'n': -1}"));
    let more = json!({"replaces": drafted["version"]});
    let better = process.draft("a", "read_date", &better, more).await;
    let of = json!({"depth": 0, "name": "read_date", "version": better["version"], "replaces": drafted["version"]});
    let replayed = process.ask(known::replay(), "r", of).await;
    // What worked gives something else now, as the log is longer: with the network off that is no evidence.
    let why = "not repeated: it uses the network, which is off in a test";
    let expected = json!({"passed": 1, "skipped": 1, "failing": [], "unsure": [], "not_repeated": [why]});
    assert_eq!(replayed, expected);
    assert_eq!(std::fs::read_to_string(folder.at("work/out/log")).unwrap(), log);
}

/// A-15, A-18: what can't be mended is not used any more by the task; what is everybody's stays so for others, and a better version of
/// it becomes everybody's with the end of the task that made it.
#[tokio::test]
async fn a15_a_public_tool_is_mended_or_given_up_for_the_task() {
    let folder = Folder::new();
    let (first, old, _) = failed(&folder).await;
    first.ask(known::end(), "e", json!({"depth": 0, "publish": true})).await;
    let public =
        |process: &Process| process.library().public("read_date").map(|known| known.hash.to_string());
    assert_eq!(public(&first).as_deref(), old.as_str());
    let names = json!({"depth": 0, "names": ["read_date"]});

    let gives_up = Process::start(&folder, "r2").await;
    let bound = gives_up.ask(known::bindings(), "b1", names.clone()).await;
    let bad = gives_up.call("c1", &bound["tools"]["read_date"], json!({"text": "30.02."})).await;
    let (_, settled) = gives_up.settle("1", &[bad], "Success").await;
    assert_eq!(settled["mend"][0]["version"], old, "{settled}");
    let args = json!({"depth": 0, "name": "read_date", "version": old, "reason": "three attempts failed"});
    assert_eq!(gives_up.ask(known::retire(), "x", args).await, json!({"retired": true}));
    assert_eq!(gives_up.ask(known::bindings(), "b2", names.clone()).await["missing"], json!(["read_date"]));
    let listed = gives_up.ask(known::tools(), "t", json!({"depth": 0})).await;
    assert!(!listed.to_string().contains("read_date"), "{listed}");
    assert_eq!(public(&gives_up).as_deref(), old.as_str(), "it is everybody's all the same");

    let mends = Process::start(&folder, "r3").await;
    let bound = mends.ask(known::bindings(), "b", names.clone()).await;
    assert_eq!(bound["tools"]["read_date"]["version"], old);
    let (drafted, replayed, accepted) = attempt(&mends, 1, &old, BETTER, json!({})).await;
    assert_eq!((&replayed["passed"], &accepted["accepted"]), (&json!(3), &json!(true)), "{replayed}");
    let call = mends.call("c1", &accepted["tool"], json!({"text": "29.02."})).await;
    let (_, settled) = mends.settle("1", &[call], "Success").await;
    assert_eq!(settled["proven"], json!(["read_date"]));
    let ended = mends.ask(known::end(), "e", json!({"depth": 0, "publish": true})).await;
    assert_eq!(ended["tools"][0]["how"], "enhanced", "{ended}");
    assert_eq!(public(&mends).as_deref(), drafted["version"].as_str());
}
