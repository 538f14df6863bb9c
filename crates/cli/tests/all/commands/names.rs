//! Names of models that nobody goes by, models without a price, and what a run cost (C-01, C-02, C-08, C-14, E-20).

use crate::support::{Place, says};
use serde_json::{Value, json};

const TWO: &str = "[models.anthropic]\nprovider = \"ollama\"\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                   [models.small]\nprovider = \"ollama\"\nmodel = \"y\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place
}

fn says_of(error: &Value, part: &str) -> bool {
    error["message"].as_str().unwrap().contains(part) || error["help"].as_str().unwrap().contains(part)
}

#[test]
fn a_name_that_means_nothing_is_a_wrong_call() {
    let place = place();
    place.write("selvedge.toml", TWO);
    for (name, said) in [
        ("anthropicc", "did you mean \"anthropic\"?"),
        ("mistral/foo", "openai, openai-responses, anthropic, gemini, ollama"),
        ("gemni/foo", "did you mean \"gemini/foo\"?"),
        ("anthropic/", "anthropic/NAME"),
        ("basic=openai", "openai/NAME"),
    ] {
        let error = place.run(&["run", "plan.json", "--model", name, "--json"]).exits(2).error();
        assert_eq!(
            (&error["rule"], &error["code"]),
            (&json!("C-01"), &json!("bad-model")),
            "{name}: {error}"
        );
        assert!(says_of(&error, said), "{name}: {error}");
    }
    // Another provider's word for it is no slip: what it was taken for is told.
    let error = place.run(&["run", "plan.json", "--model", "mixtral", "--json"]).exits(4).error();
    assert!(says_of(&error, "OPENAI_API_KEY") && says_of(&error, "configured: anthropic, small"), "{error}");
    // An endpoint's names are its own.
    let url = "http://127.0.0.1:9/v1";
    let done = place.run(&["run", "plan.json", "--model", "mistral/foo", "--base-url", url, "--json"]);
    assert!(done.stderr.contains("127.0.0.1:9") || done.code == 1, "{done:#?}");
}

/// C-08: at the place that names it.
#[test]
fn a_node_s_model_that_is_not_there_has_its_place() {
    let place = place();
    place.write("selvedge.toml", &format!("{TWO}[roles]\nbasic = \"small\"\n"));
    let mut node = says("a", "Go");
    node["model"] = json!("antropic");
    place.plan("plan.json", json!([node]));
    let error = place.run(&["run", "plan.json", "--json"]).exits(4).error();
    assert_eq!(
        (&error["code"], &error["file"]),
        (&json!("no-model-for-role"), &json!("plan.json")),
        "{error}"
    );
    assert_eq!((&error["line"], &error["pointer"]), (&json!(1), &json!("/nodes/0/model")), "{error}");
    assert!(says_of(&error, "did you mean \"anthropic\"?"), "{error}");
    assert!(says_of(&error, "configured: anthropic, small; roles: basic"), "{error}");
    let found = place.run(&["check", "plan.json", "--json"]).exits(0).json();
    assert_eq!(
        (&found["diagnostics"][0]["code"], &found["diagnostics"][0]["severity"]),
        (&json!("no-model-for-role"), &json!("warning"))
    );
    place.write("s.yaml", "- reply: {text: x}\n");
    place.run(&["run", "plan.json", "--script", "s.yaml"]).exits(0);
}

/// C-14: at its place in the file, whichever file has the models.
#[test]
fn a_role_is_given_to_a_model_that_is_there() {
    let place = place();
    place.write("selvedge.toml", "[models.anthropic]\nmodel = \"x\"\n[roles]\nbasic = \"antropic\"\n");
    for args in
        [&["run", "plan.json", "--json"][..], &["models", "--json"], &["check", "plan.json", "--json"]]
    {
        let error = place.run(args).exits(4).error();
        assert_eq!(
            (&error["code"], &error["file"]),
            (&json!("no-such-model"), &json!("selvedge.toml")),
            "{error}"
        );
        assert_eq!((&error["line"], &error["column"]), (&json!(4), &json!(9)), "{error}");
        assert!(says_of(&error, "no model is called `antropic`; configured: anthropic"), "{error}");
        assert!(says_of(&error, "did you mean \"anthropic\"?"), "{error}");
    }
    place.write("user.toml", "[models.antropic]\nmodel = \"x\"\n");
    let mut command = place.command(&["models", "--json"]);
    command.env("SELVEDGE_CONFIG", place.work().join("user.toml"));
    crate::support::finish(command.spawn().unwrap()).exits(0);
}

/// E-20: a cap on the cost says for whom it does not hold.
#[test]
fn a_cost_cap_without_a_price_is_told() {
    let place = place();
    let warned = |config: &str, more: &[&str]| {
        place.write("selvedge.toml", config);
        let run = place.run(&[&["run", "plan.json", "--json"], more].concat()).json();
        let all = run["warnings"].as_array().unwrap().clone();
        all.iter().any(|w| w["code"] == "no-price" && w["message"].as_str().unwrap().contains("[models.m]"))
    };
    let model = "[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let fails = |config: &str, more: &[&str]| warned(config, &[more, &["--timeout", "1"]].concat());
    assert!(fails(model, &["--budget", "cost=1"]));
    assert!(fails(&format!("{model}[budget]\ncost = 1\n"), &[]));
    assert!(!fails(model, &["--budget", "calls=9"]));
    assert!(!fails(&format!("{model}price = {{ input_per_mtok = 1 }}\n"), &["--budget", "cost=1"]));
    place.write("s.yaml", "- reply: {text: x}\n");
    assert!(!warned(model, &["--budget", "cost=1", "--script", "s.yaml"]));
}

/// E-20: that a cap on the cost caps nothing is said once, before the first call, of runs and forks alike.
#[test]
fn a_model_without_a_price_is_told_before_it_is_asked() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "p")]));
    let model = "[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[limits]\nretry_span_s = 0\nmodel_attempts = 1\n";
    place.write("selvedge.toml", model);
    let told = |args: &[&str]| {
        let stderr = place.run(args).stderr;
        assert_eq!(stderr.matches("which has no price").count(), 1, "{stderr}");
        assert!(stderr.find("which has no price") < stderr.find("start a"), "{stderr}");
        assert!(stderr.contains("start a"), "{stderr}");
    };
    told(&["run", "plan.json", "--budget", "cost=1", "--run-id", "r"]);
    // With the source's cap, or one of its own.
    told(&["fork", "r", "--at", "1"]);
    told(&["fork", "r", "--at", "1", "--budget", "cost=2"]);
    let again = place.run(&["resume", "r"]).stderr;
    assert!(!again.contains("which has no price"), "it was said when the run began: {again}");
}

/// C-02: neither binary fractions nor the order in which replies came show in what a run cost.
#[test]
fn costs_are_sums_as_people_write_them() {
    let place = Place::new();
    let nodes: Vec<Value> = ["a", "b", "c"]
        .map(|id| {
            let mut node = says(id, "Go");
            node["thread_id"] = json!(id);
            node
        })
        .to_vec();
    place.plan("plan.json", json!(nodes));
    let rule = |id: &str, cost: f64, ms: u32| {
        format!("- {{when: {{node: {id}}}, reply: {{text: x, delay_ms: {ms}, usage: {{cost: {cost}}}}}}}\n")
    };
    place.write("s.yaml", &[rule("a", 0.1, 90), rule("b", 0.2, 40), rule("c", 0.3, 0)].concat());
    let run =
        |more: &[&str]| place.run(&[&["run", "plan.json", "--script", "s.yaml", "--json"], more].concat());
    let (parallel, sequential) = (run(&[]).exits(0), run(&["--sequential"]).exits(0));
    assert_eq!(parallel.json()["usage"], sequential.json()["usage"]);
    assert!(parallel.stdout.contains("\"cost\":0.6}"), "{}", parallel.stdout);
    let done = run(&["--budget", "calls=1"]).exits(1);
    assert!(done.json()["fault"]["message"].as_str().unwrap().contains("budget of 1 call is used up"));
    let id = parallel.json()["run_id"].as_str().unwrap().to_owned();
    assert!(place.run(&["show", &id]).stdout.contains("cost 0.6"));
    assert!(place.run(&["runs", "--json"]).stdout.contains("\"cost\":0.6}"));
}

/// A tool's name that providers refuse matters only to documents that use the tool.
#[test]
fn an_unusual_tool_name_is_nothing_to_who_does_not_use_it() {
    let place = Place::new();
    let tool = "__TOOL_META__ = {'name': 'add.two', 'description': 'd', 'dependencies': [], 'effects': 'pure'}\n\
                from pydantic import BaseModel\nclass InputModel(BaseModel):\n    pass\n\
                def run(input_model):\n    return 1\n";
    place.write("tools/t.py", tool);
    place.plan("plan.json", json!([]));
    let done = place.run(&["run", "plan.json", "--tools", "tools", "--json"]).exits(0);
    assert_eq!(done.json()["warnings"], json!([]), "{done:#?}");
}
