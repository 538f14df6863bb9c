//! A library that evolves: what its batches come to is what stands here.

use super::world::Example;
use serde_json::{Value, json};

/// Evolves over so many lines into a folder; what the command printed, and the lines of measures.
fn evolve(example: &Example, out: &str, limit: &str) -> (Value, Vec<Value>) {
    let options =
        ["--batch-size", "12", "--concurrency", "4", "--score", "numeric", "--tool-enhance-interval", "1"];
    let words =
        ["evolve", "tasks.jsonl", "--script", "script.yaml", "--json", "--out", out, "--limit", limit];
    let done = example.call(&[&words[..], &options].concat());
    assert_eq!(done.code, Some(0), "{done:#?}");
    let measures = std::fs::read_to_string(example.folder.join(out).join("measures.jsonl")).unwrap();
    let measures: Vec<Value> = measures.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    agrees(&done.stderr, &measures);
    (done.json(), measures)
}

/// V-14: what is told when a batch is done has used what its measures say, its optimisation too.
fn agrees(told: &str, measures: &[Value]) {
    let told: Vec<&str> = told.lines().filter(|line| line.contains(" done (")).collect();
    assert_eq!(told.len(), measures.len(), "{told:#?}");
    for (line, batch) in told.iter().zip(measures) {
        let roles = batch["total"]["roles"].as_object().unwrap().values();
        let used: u64 =
            roles.flat_map(|role| [&role["input"], &role["output"]]).map(|n| n.as_u64().unwrap()).sum();
        assert!(used > 0 && line.contains(&format!(", {used} tokens")), "{line}: {used}");
    }
}

/// Counts of a batch, under the names of the example's own figures.
fn figures(of: &Value) -> Value {
    let mut figures = of["tools"].clone();
    for name in ["calls", "right", "failed"] {
        figures[name] = of[name].clone();
    }
    figures["files_written"] = of["roles"]["coder"]["calls"].as_u64().unwrap_or(0).into();
    figures
}

/// V-01, V-05, V-09, V-11: each family has its fault mended and its two tools merged in the first batch, where every file that loses something is
/// refused; after that nothing is built any more.
#[test]
fn v11_what_the_batches_of_the_example_come_to() {
    let example = Example::copy("evolve");
    let expected = std::fs::read_to_string(example.folder.join("figures.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let (summary, batches) = evolve(&example, "results", "24");
    assert_eq!(
        (&summary["done"], &summary["accuracy"], &summary["tools"]),
        (&json!(24), &json!(1.0), &json!(6))
    );
    assert_eq!(figures(&batches[0]["own"]), expected["first_batch"]);
    for batch in &batches[1..] {
        assert_eq!(figures(&batch["own"]), expected["every_other"]);
    }
    for (batch, egl) in batches.iter().zip(expected["egl"].as_array().unwrap()) {
        assert!((batch["total"]["egl"].as_f64().unwrap() - egl.as_f64().unwrap()).abs() < 1e-4, "{batch}");
    }
    families(&example, &batches, &expected["families"]);
    let page = std::fs::read_to_string(example.folder.join("results/report.html")).unwrap();
    assert!(page.contains("polygon_area") && page.ends_with("</html>\n"), "{page}");
    // Each of the six tools is of two, whose boxes have their names.
    assert_eq!(page.matches("class=\"edge\"").count(), 12);
    assert_eq!(page.matches("<g class=\"tool").count(), 18);
    // A second pass has all that it needs.
    let (summary, batches) = evolve(&example, "again", "12");
    assert_eq!((&summary["accuracy"], batches.len()), (&json!(1.0), 1));
    assert_eq!(figures(&batches[0]["own"]), expected["every_other"]);
    let total = &batches[0]["total"];
    assert_eq!(
        (&total["tools"]["created"], &total["egl"]),
        (&expected["second_pass"]["created"], &expected["second_pass"]["egl"])
    );
}

/// What became of each family's tools: so many were made by its tasks, and these everybody has.
fn families(example: &Example, batches: &[Value], expected: &Value) {
    let manifest = std::fs::read_to_string(example.folder.join("results/library/library.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let mut public: Vec<&str> =
        manifest["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let families = expected.as_object().unwrap();
    let mut named: Vec<&str> = families
        .values()
        .flat_map(|family| family["public"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    public.sort_unstable();
    named.sort_unstable();
    assert_eq!(public, named);
    let mut predictions = std::fs::read_to_string(example.folder.join("results/predictions.jsonl")).unwrap();
    predictions.retain(|c| c != '\r');
    for (name, family) in families {
        let of = |line: &&str| line.contains(&format!("\"task_id\":\"{name}-"));
        let made = predictions.lines().filter(of).filter(|line| line.contains("\"how\":\"built\"")).count();
        assert_eq!(json!(made), family["made"], "{name}");
    }
    assert_eq!(batches[0]["changes"].as_array().unwrap().len(), families.len());
}
