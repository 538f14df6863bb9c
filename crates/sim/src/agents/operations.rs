//! What an agent's operations come to (E-40) in a world that has no library: each follows from what it is told, but for the ids of calls, which
//! other visits have otherwise.

use super::SimAgent;
use selvedge_engine::{Effects, ToolDef};
use serde_json::{Value, json};

impl SimAgent {
    pub(super) fn operation(&self, operation: &str, args: &Value) -> Value {
        let told = anonymous(args);
        let mut rng = self.dice(operation, &told.to_string());
        let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
        let texts = |member: &str| list(args, member).filter_map(Value::as_str).collect::<Vec<_>>();
        match operation {
            "tools" => {
                json!({"tools": [{"name": "look", "description": "looks", "from": "configured"}], "allowed": "nothing"})
            }
            "requests" => {
                let build = list(args, "requests").map(|request| {
                    json!({"name": request.get("name"), "description": request.get("description"), "input_schema": {}, "output_schema": {}})
                });
                json!({"build": build.collect::<Vec<_>>(), "required": texts("required"), "refused": []})
            }
            "draft" => {
                let (ok, version) = (rng.chance(65), format!("v{}", rng.below(1_000)));
                let errors: Vec<String> = (!ok).then(|| format!("wrong {version}")).into_iter().collect();
                json!({"ok": ok, "errors": errors, "version": version, "tool": null, "long": false})
            }
            "bindings" => {
                let (known, missing): (Vec<&str>, Vec<&str>) =
                    texts("names").into_iter().partition(|name| self.dice("there", name).chance(85));
                let tools = known.into_iter().map(|name| (name.to_owned(), tool(name, "1")));
                json!({"tools": tools.collect::<serde_json::Map<_, _>>(), "missing": missing, "refused": {}})
            }
            "calls" => {
                let of = |call: &Value, member: &str| call.get(member).cloned().unwrap_or_default();
                let written = list(args, "calls").filter(|call| call.get("tool") != Some(&json!("look")));
                let (failed, rest): (Vec<&Value>, Vec<&Value>) =
                    written.partition(|call| call.get("error").is_some_and(|error| !error.is_null()));
                let ask =
                    rest.into_iter().filter(|call| self.dice("ask", &anonymous(call).to_string()).chance(60));
                let ask = ask.map(|call| {
                    let question = format!("{} of {}", of(call, "tool"), of(call, "arguments"));
                    json!({"id": of(call, "id"), "tool": of(call, "tool"), "question": question})
                });
                let failed = failed.into_iter().map(|call| of(call, "id"));
                json!({"ask": ask.collect::<Vec<_>>(), "failed": failed.collect::<Vec<_>>(), "misused": [], "keep": []})
            }
            "settle" => {
                let mut broken: Vec<&str> = list(args, "calls")
                    .filter(|call| call.get("error").is_some_and(|error| !error.is_null()))
                    .filter_map(|call| call.get("tool")?.as_str())
                    .filter(|tool| *tool != "look")
                    .collect();
                broken.sort_unstable();
                broken.dedup();
                let mend = broken.into_iter().filter(|_| rng.chance(70)).map(|name| {
                    json!({"name": name, "version": "1", "calls": [], "brief": format!("mend {name}")})
                });
                let mend: Vec<Value> = mend.collect();
                let say = if rng.chance(30) { format!("said {}", rng.below(100)) } else { String::new() };
                json!({"say": say, "proven": [], "mend": mend})
            }
            "replay" => {
                let unsure =
                    rng.chance(50).then(|| json!({"question": format!("as good as {}", rng.below(9))}));
                json!({"passed": 1, "skipped": 0, "failing": [], "unsure": unsure.into_iter().collect::<Vec<_>>()})
            }
            "accept" => {
                let accepted = rng.chance(60);
                let mended = accepted.then(|| tool(name, "2"));
                json!({"accepted": accepted, "tool": mended, "errors": if accepted { vec![] } else { vec!["no better"] }})
            }
            "retire" => json!({"retired": true}),
            "measure" => json!({"tokens": if rng.chance(20) { 200_000 } else { 10 }, "long": []}),
            _ => json!({"tools": []}),
        }
    }
}

fn list<'a>(args: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    args.get(member).and_then(Value::as_array).into_iter().flatten()
}

/// The definition of a tool that was written.
fn tool(name: &str, version: &str) -> Value {
    json!(ToolDef {
        name: name.into(),
        description: "written".into(),
        input_schema: json!({"type": "object"}),
        output_params: None,
        effects: Some(Effects::Read),
        version: version.into(),
        source: "simulated".into(),
        timeout_s: None,
        approval: false,
    })
}

/// Without the ids of calls.
fn anonymous(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "id" | "looked"));
            kept.map(|(name, value)| (name.clone(), anonymous(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(values) => values.iter().map(anonymous).collect(),
        other => other.clone(),
    }
}
