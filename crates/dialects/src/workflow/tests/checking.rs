//! What is said in a workflow: placeholders, expressions, joins.

use super::*;

/// A node of a line that says this, after a model `ask` and before the end.
fn says(text: &str) -> Value {
    flow(
        json!([
            node("ask", "LLM", json!({"prompt": "go"})),
            node("say", "TOOL", json!({"tool": "read", "args": {"text": text}})),
            node("later", "LLM", json!({"prompt": "go"}))
        ]),
        &[("start", "ask"), ("ask", "say"), ("say", "later"), ("later", "end")],
    )
}

fn said(text: &str) -> Vec<&'static str> {
    codes(&says(text)).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn w14_placeholders_name_what_has_run() {
    assert_eq!(said("{{ask}} {{ask.output.x}}"), [""; 0]);
    assert_eq!(said("{{later}}"), ["later-node"]);
    assert_eq!(said("{{say.output}}"), ["later-node"]);
    assert_eq!(said("{{asks.output}}"), ["unknown-placeholder"]);
    assert_eq!(said("{{inputs.x}}"), ["unknown-placeholder"]);
    assert_eq!(said("{{ask"), ["unfinished-placeholder"]);
    let (_, found) = compiled(&says("{{later}}"));
    assert_eq!((found[0].line, found[0].pointer.as_str()), (Some(1), "/nodes/3/config/args/text"));
}

#[test]
fn w03_nobody_looks_into_paths_and_loops_from_outside() {
    let mut document = forked(json!({}));
    document["nodes"].as_array_mut().unwrap().push(node(
        "say",
        "TOOL",
        json!({"tool": "read", "args": {"t": "{{a}} {{fork}} {{join.p}} {{join.r}}"}}),
    ));
    document["edges"][3]["to"] = json!("say");
    document["edges"].as_array_mut().unwrap().push(json!({"from": "say", "to": "end"}));
    let found: Vec<&str> = codes(&document).into_iter().map(|(code, _)| code).collect();
    assert_eq!(found, ["looks-inside", "no-result", "undeclared-field"]);
}

#[test]
fn w14_what_need_not_have_run_and_what_has_failed() {
    let mut document = flow(
        json!([
            node("try", "TOOL", json!({"tool": "read"})),
            idle("mend"),
            node("say", "TOOL", json!({"tool": "read", "args": {"t": "{{try.output}}"}}))
        ]),
        &[("start", "try"), ("try", "say"), ("mend", "say"), ("say", "end")],
    );
    document["edges"].as_array_mut().unwrap().push(json!({"from": "try", "to": "mend", "when": "error"}));
    assert_eq!(codes(&document), [("may-not-have-run", "/nodes/4/config/args/t".to_owned())]);
    document["nodes"][4]["config"]["args"]["t"] = json!("{{try.error.kind}}");
    assert_eq!(codes(&document), []);
    document["nodes"][3]["config"]["value"] = json!("{{try.error.message}}");
    assert_eq!(codes(&document), []);
    document["nodes"][3]["config"]["value"] = json!("{{try.output.rows}}");
    assert_eq!(codes(&document), [("later-node", "/nodes/3/config/value".to_owned())]);
}

#[test]
fn e46_expressions_are_told_where_they_are_wrong() {
    let text = "{\"nodes\": [\n  {\"id\": \"s\", \"type\": \"START\"},\n  {\"id\": \"e\", \"type\": \"END\"}],\n \"edges\": [\n  {\"from\": \"s\", \"to\": \"e\", \"when\": \"1 < \\u0032 &&\"}]}";
    let (_, found) = compiled_in(text, BTreeMap::new());
    assert_eq!((found[0].code, found[0].line), ("bad-expression", Some(5)), "{found:?}");
    assert!(found[0].column > Some(40), "{found:?}");
    let mut document = says("x");
    document["edges"][1]["when"] = json!("ask.output.x > 1 && leter.output");
    assert_eq!(codes(&document), [("unknown-placeholder", "/edges/1/when".to_owned())]);
    document["edges"][1]["when"] = json!("later.output.x > 1");
    assert_eq!(codes(&document), [("later-node", "/edges/1/when".to_owned())]);
    document["edges"][1]["when"] = json!("errors");
    assert_eq!(codes(&document), [("unknown-value", "/edges/1/when".to_owned())]);
}

#[test]
fn w14_a_while_sees_variables_only() {
    let repeat = |condition: &str| {
        flow(
            json!([
                node("ask", "TOOL", json!({"tool": "read"})),
                node("each", "LOOP_START", json!({"while": condition, "limit": 2})),
                idle("a"),
                node("done", "LOOP_END", json!({"loop": "each"}))
            ]),
            &[("start", "ask"), ("ask", "each"), ("each", "a"), ("a", "done"), ("done", "end")],
        )
    };
    assert_eq!(codes(&repeat("x < 3")), []);
    assert_eq!(
        codes(&repeat("ask.output.rows < 3")),
        [("while-reads-node", "/nodes/3/config/while".to_owned())]
    );
    assert_eq!(codes(&repeat("z < 3")), [("unknown-placeholder", "/nodes/3/config/while".to_owned())]);
}

#[test]
fn w07_a_path_that_may_be_cut_off_while_it_writes() {
    let mut document = forked(json!({}));
    document["nodes"][3] = node("a", "TOOL", json!({"tool": "save"}));
    assert_eq!(codes(&document), [("write-may-be-cancelled", "/nodes/3/id".to_owned())]);
    document["nodes"][2]["config"]["forkStrategy"] = json!("serial");
    assert_eq!(codes(&document), []);
}

#[test]
fn w14_joins_that_nothing_meets_or_that_always_are() {
    assert_eq!(
        codes(&forked(json!({"joinStrategy": "ANY_FAILED"}))),
        [("join-never-met", "/nodes/5/config/joinStrategy".to_owned())]
    );
    let mut document = forked(json!({}));
    document["edges"].as_array_mut().unwrap().push(json!({"from": "join", "to": "end", "when": "error"}));
    assert_eq!(codes(&document), [("join-always-met", "/nodes/5/config/joinStrategy".to_owned())]);
}
