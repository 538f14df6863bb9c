//! What a manager asks for: its words, and so anything.

use super::texts::{cut, value};
use selvedge_tools::coder::safe_name;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Tools that are asked for at once, at most: more are no plan.
const MOST: usize = 16;
/// Names that are required at once, at most.
const NAMES: usize = 256;
/// The longest description and schema, in bytes.
const TEXT: usize = 16 << 10;

/// Safe names, each once: `{requests, required}` gives `{build, required, refused}`.
pub(crate) fn requests(args: &Value) -> Value {
    let list = |name: &str| args.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (mut build, mut refused) = (Vec::new(), Vec::new());
    let mut safe: BTreeMap<String, String> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for request in list("requests") {
        let asked = match request.get("name") {
            Some(Value::String(name)) => name.clone(),
            other => other.map(|name| cut(&name.to_string(), 200)).unwrap_or_default(),
        };
        let why = match safe_name(&asked) {
            Ok(name) => {
                safe.insert(asked.clone(), name.clone());
                if !names.insert(name.clone()) {
                    continue;
                }
                if build.len() < MOST {
                    build.push(entry(&name, request));
                    continue;
                }
                format!("at most {MOST} tools are built at once: ask for it in another round")
            }
            Err(why) => why,
        };
        refused.push(json!({"name": cut(&asked, 200), "why": why}));
    }
    // A tool that is asked for by another name is meant by it.
    let mut seen = BTreeSet::new();
    let named =
        list("required").iter().filter_map(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    let named = named.map(|name| safe.get(name).map_or(name, String::as_str).to_owned());
    let required: Vec<String> = named.filter(|name| seen.insert(name.clone())).take(NAMES).collect();
    refused.truncate(NAMES);
    json!({"build": build, "required": required, "refused": refused})
}

fn entry(name: &str, request: &Value) -> Value {
    let text = |field: &str| request.get(field).map(|text| value(text, TEXT)).unwrap_or_default();
    let schema = |field: &str| match request.get(field) {
        None | Some(Value::Null) => json!({}),
        // What is too long to be read is told as far as it goes.
        Some(Value::Object(schema)) if request.to_string().len() <= 4 * TEXT => json!(schema),
        Some(other) => {
            let read = other.as_str().and_then(|text| selvedge_engine::json::read(text).ok());
            let read = read.filter(|read| read.is_object() && read.to_string().len() <= TEXT);
            read.unwrap_or_else(|| value(other, TEXT).into())
        }
    };
    json!({"name": name, "description": text("description"), "input_schema": schema("input_schema"),
           "output_schema": schema("output_schema")})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// two requests with one safe name are one, and what can't be a name is told why.
    #[test]
    fn a06_requests_have_safe_names_each_once() {
        let read = requests(&json!({
            "requests": [
                {"name": "Parse CSV", "description": "reads", "input_schema": {"type": "object"}},
                {"name": "Parse-CSV", "description": "again"},
                {"name": "../../x", "output_schema": "{\"type\": \"object\"}"},
                {"name": "selvedge__end"}, {"name": "read_file"}, {"name": 7}, "nonsense", {"name": ""},
            ],
            "required": ["Parse CSV", "read_file", "read_file", 3, " "],
        }));
        let names: Vec<_> = read["build"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["Parse_CSV", "x"]);
        assert_eq!(read["build"][0]["description"], "reads");
        assert_eq!(read["build"][1]["output_schema"], json!({"type": "object"}));
        assert_eq!(read["required"], json!(["Parse_CSV", "read_file"]));
        let refused: Vec<_> = read["refused"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(
            refused,
            [&json!("selvedge__end"), &json!("read_file"), &json!("7"), &json!(""), &json!("")]
        );
        assert!(
            read["refused"].as_array().unwrap().iter().all(|one| one["why"].as_str().unwrap().len() > 10)
        );
    }

    #[test]
    fn a06_a_thousand_requests_and_no_requests_are_answered() {
        let many: Vec<_> = (0..1000).map(|n| json!({"name": format!("tool_{n}")})).collect();
        let read = requests(&json!({"requests": many, "required": "all"}));
        assert_eq!(read["build"].as_array().unwrap().len(), MOST);
        assert_eq!(read["refused"].as_array().unwrap().len(), NAMES);
        for nothing in [json!({}), json!(null), json!({"requests": 3, "required": {}})] {
            assert_eq!(requests(&nothing), json!({"build": [], "required": [], "refused": []}));
        }
    }
}
