//! A library that evolves: what its batches come to is what stands here.

use super::world::Example;
use serde_json::{Value, json};

/// Evolves over so many lines into a folder; what the command printed, and the lines of measures.
fn evolve(example: &Example, out: &str, limit: &str) -> (Value, Vec<Value>) {
    let options =
        ["--batch-size", "10", "--concurrency", "4", "--score", "numeric", "--tool-enhance-interval", "1"];
    let words =
        ["evolve", "tasks.jsonl", "--script", "script.yaml", "--json", "--out", out, "--limit", limit];
    let done = example.call(&[&words[..], &options].concat());
    assert_eq!(done.code, Some(0), "{done:#?}");
    let measures = std::fs::read_to_string(example.folder.join(out).join("measures.jsonl")).unwrap();
    (done.json(), measures.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn figures(of: &Value) -> [&Value; 8] {
    let tools = &of["tools"];
    let parts = ["created", "reused", "enhanced", "merged", "retired"].map(|part| &tools[part]);
    let [created, reused, enhanced, merged, retired] = parts;
    [created, reused, enhanced, merged, retired, &of["calls"], &of["right"], &of["failed"]]
}

/// V-01, V-05, V-11: each family has its fault mended and its two tools merged in the first batch; after that nothing is built any more.
#[test]
fn v11_what_the_batches_of_the_example_come_to() {
    let example = Example::copy("evolve");
    let (summary, batches) = evolve(&example, "results", "30");
    assert_eq!(
        (&summary["done"], &summary["accuracy"], &summary["tools"]),
        (&json!(30), &json!(1.0), &json!(5))
    );
    assert_eq!(figures(&batches[0]["own"]).map(Value::as_u64), [10, 0, 6, 10, 0, 16, 10, 0].map(Some));
    for batch in &batches[1..] {
        assert_eq!(figures(&batch["own"]).map(Value::as_u64), [0, 10, 0, 0, 0, 10, 10, 0].map(Some));
    }
    let egl: Vec<f64> = batches.iter().map(|batch| batch["total"]["egl"].as_f64().unwrap()).collect();
    assert_eq!(egl, [10.0 / 16.0, 10.0 / 26.0, 10.0 / 36.0]);
    let mut merged: Vec<&str> = batches[0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["name"].as_str().unwrap())
        .collect();
    merged.sort_unstable();
    assert_eq!(merged, ["column_total", "count_word", "days_between", "polygon_area", "to_metres"]);
    let page = std::fs::read_to_string(example.folder.join("results/report.html")).unwrap();
    assert!(page.contains("polygon_area") && page.ends_with("</html>\n"), "{page}");
    // A second pass has all that it needs.
    let (summary, batches) = evolve(&example, "again", "10");
    assert_eq!((&summary["accuracy"], batches.len()), (&json!(1.0), 1));
    assert_eq!(figures(&batches[0]["own"]).map(Value::as_u64), [0, 10, 0, 0, 0, 10, 10, 0].map(Some));
}
