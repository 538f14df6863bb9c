//! Agents: the models are scripted, and the tools that they write are installed, called, mended and replayed.

use super::world::{Done, Example, findings};
use serde_json::{Value, json};

/// Runs an example's agent, which completes, and whose replay agrees.
fn run(example: &Example) -> Value {
    let done = example.run("agent.json", &["--script", "script.yaml", "--run-id", "r"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert!(done.stderr.contains("scripted"), "a stand-in says so: {}", done.stderr);
    let result = done.json();
    assert_eq!((&result["status"], &result["asks"]), (&json!("completed"), &json!([])));
    assert_eq!(result["output"], result["results"]["integrator"]["output"]["final_answer"]);
    let replayed = example.call(&["replay", "r"]);
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
    result
}

/// What a run made and used, as `name state how` (A-25).
fn tools(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().unwrap();
    let text = |tool: &Value| ["name", "state", "how"].map(|field| tool[field].as_str().unwrap()).join(" ");
    tools.iter().map(text).collect()
}

/// What `tools list` shows of the library.
fn listed(example: &Example) -> Vec<(String, String)> {
    let done = example.call(&["tools", "list", "--json"]).json();
    let text = |tool: &Value, field: &str| tool[field].as_str().unwrap_or_default().to_owned();
    let tools = done["tools"].as_array().unwrap().iter().filter(|tool| tool["source"] == "library");
    tools.map(|tool| (text(tool, "name"), text(tool, "state"))).collect()
}

fn history(example: &Example, tool: &str) -> Vec<Value> {
    let done = example.call(&["tools", "history", tool, "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    done.json()["versions"].as_array().unwrap().clone()
}

/// What tools answered in a thread of a run; what is no JSON is a text.
fn outputs(result: &Value, thread: &str) -> Vec<Value> {
    let messages = result["threads"][thread].as_array().unwrap().iter();
    let tools = messages.filter(|message| message["role"] == "tool");
    let texts = tools.map(|message| message["content"].as_str().unwrap());
    texts.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text))).collect()
}

#[test]
fn no_agent_has_findings() {
    for name in ["quarters", "dates", "scan"] {
        let done = Example::new(name).with_tools("check", "agent.json", &[]);
        assert_eq!(done.code, Some(0), "{done:#?}");
        assert_eq!(findings(&done), [Value::Null; 0], "{name}");
    }
}

/// A-01, A-06, A-14, A-19.
#[test]
fn the_tool_that_quarters_lacks_is_built_and_kept() {
    let example = Example::new("quarters");
    let result = run(&example);
    let totals = json!({"2024-Q1": 323.5, "2024-Q2": 827.0, "2024-Q3": 524.0, "2024-Q4": 2224.5,
                        "2025-Q1": 1183.0, "2025-Q2": 555.5, "2025-Q3": 2010.5, "2025-Q4": 712.0});
    assert_eq!(outputs(&result, "executor"), [json!({"totals": totals, "rows": 44})]);
    assert!(result["output"].as_str().unwrap().ends_with("The dearest was 2024-Q4."), "{result:#}");
    assert_eq!(result["warnings"], json!([]));
    assert_eq!(tools(&result), ["quarter_totals public built"]);
    assert_eq!(listed(&example), [("quarter_totals".to_owned(), "public".to_owned())]);
    let versions = history(&example, "quarter_totals");
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0]["author"], json!({"kind": "coder", "coder": "model"}));
    assert_eq!(versions[0]["calls"], json!({"recorded": 1, "failing": 0}));
    let tested = example.call(&["tools", "test", "quarter_totals", "--json"]);
    assert_eq!(tested.code, Some(0), "{tested:#?}");
}

/// A-19: what is not published is no tool for others, but stays in the history.
#[test]
fn a_tool_that_is_not_published_stays_with_its_task() {
    let example = Example::new("quarters");
    let query = std::fs::read_to_string(example.folder.join("agent.json")).unwrap();
    let query: Value = serde_json::from_str(&query).unwrap();
    let query = query["query"].as_str().unwrap();
    let done = example.call(&["agent", query, "--script", "script.yaml", "--no-publish", "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(tools(&done.json()), ["quarter_totals private built"]);
    assert_eq!(listed(&example), []);
    assert_eq!(history(&example, "quarter_totals")[0]["state"], "private");
}

/// A-14 … A-16.
#[test]
fn the_tool_that_dates_breaks_is_mended_and_proven() {
    let example = Example::new("dates");
    let result = run(&example);
    let outputs = outputs(&result, "executor");
    let dates: Vec<_> = outputs.iter().filter_map(|output| output["iso"].as_str()).collect();
    // The failed call is not there any more; it was made again.
    assert_eq!(dates, ["2024-01-08", "2024-02-12", "2024-03-04", "2024-05-17", "2024-02-29"]);
    assert!(outputs.iter().all(|output| output.get("error").is_none()), "{outputs:#?}");
    assert_eq!(result["usage"]["tool_calls"], 7, "the failed call, and the reading of the file");
    let mut made = tools(&result);
    made.sort();
    assert_eq!(
        made,
        ["parse_date enhanced built", "parse_date public enhanced", "parse_date retired enhanced"]
    );
    let versions = history(&example, "parse_date");
    let states: Vec<_> = versions.iter().map(|version| version["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["public", "retired", "enhanced"], "the newest is first");
    let [good, refused, broken] = versions.as_slice() else { panic!("{versions:#?}") };
    assert_eq!(good["parents"], json!([broken["version"]]));
    assert_eq!(good["tested"]["passed"], 5, "{good:#}");
    assert_eq!(broken["calls"], json!({"recorded": 5, "failing": 1}));
    assert!(refused["reason"].as_str().unwrap().contains("3 April is another day"), "{refused:#}");
    let page = example.call(&["tools", "history", "parse_date"]).stdout;
    let mends = format!("mends {}", &broken["version"].as_str().unwrap()[..12]);
    assert!(page.contains(&mends), "{page}");
    let call = ["tools", "run", "parse_date", "--args", r#"{"text": "29.02.", "year": 2028}"#, "--json"];
    let done = example.call(&call);
    assert!(done.stdout.contains("2028-02-29"), "{done:#?}");
}

/// A-06, A-24, A-28.
#[test]
fn what_can_not_be_built_is_said() {
    let example = Example::new("scan");
    let result = run(&example);
    assert!(result["output"].as_str().unwrap().contains("is not known"), "{result:#}");
    assert_eq!(result["warnings"][0]["code"], "tool-not-built");
    assert_eq!(tools(&result), [""; 0]);
    assert_eq!(listed(&example), []);
    // Each attempt was told what was wrong with the one before.
    let coder = result["threads"]["build[0]/coder"].as_array().unwrap();
    let asked: Vec<_> = coder.iter().filter(|said| said["role"] == "user").collect();
    let errors = |n: usize| asked[n]["content"].as_str().unwrap().rsplit_once("<errors>").unwrap().1;
    assert_eq!(asked.len(), 3);
    assert_eq!(errors(0).trim(), "</errors>");
    assert!(errors(1).contains("pytesseract"), "{}", errors(1));
    assert!(errors(2).contains("network"), "{}", errors(2));
    let page: Done = example.call(&["show", "r"]);
    assert!(page.stdout.contains("tools could not be built"), "{page:#?}");
}
