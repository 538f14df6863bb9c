//! W-14, W-15: documents in documents, with places in every file.

use super::*;

fn calls(config: Value) -> Value {
    flow(json!([node("inner", "SUBGRAPH", config)]), &[("start", "inner"), ("inner", "end")])
}

fn found(config: Value, files: &[(&'static str, Value)]) -> Vec<(String, &'static str, String)> {
    let (_, found) = compiled_in(&calls(config).to_string(), files.iter().cloned().collect());
    found.into_iter().map(|finding| (finding.file, finding.code, finding.pointer)).collect()
}

#[test]
fn w15_what_is_wrong_in_a_file_is_told_there() {
    let file = json!({"file": "sub/a.json"});
    let says = |text: &str| {
        flow(json!([node("say", "LLM", json!({"prompt": text}))]), &[("start", "say"), ("say", "end")])
    };
    assert_eq!(found(file.clone(), &[("sub/a.json", says("hello"))]), []);
    assert_eq!(
        found(file.clone(), &[("sub/a.json", says("{{end}}"))]),
        [("sub/a.json".to_owned(), "later-node", "/nodes/2/config/prompt".to_owned())]
    );
    assert_eq!(
        found(file.clone(), &[("sub/a.json", calls(json!({"file": "a.json"})))]),
        [("sub/a.json".to_owned(), "files-in-a-circle", "/nodes/2/config/file".to_owned())]
    );
    assert_eq!(
        found(file, &[]),
        [("flow.json".to_owned(), "file-not-read", "/nodes/2/config/file".to_owned())]
    );
    let outside = found(json!({"file": "../a.json"}), &[]);
    assert_eq!(outside, [("flow.json".to_owned(), "file-outside", "/nodes/2/config/file".to_owned())]);
}

#[test]
fn w15_a_document_is_given_what_it_needs() {
    let mut inner = flow(json!([idle("a")]), &[("start", "a"), ("a", "end")]);
    inner["inputs"] = json!({"word": {}});
    assert_eq!(
        found(json!({"file": "a.json"}), &[("a.json", inner.clone())]),
        [("flow.json".to_owned(), "missing-input", "/nodes/2/config/file".to_owned())]
    );
    assert_eq!(found(json!({"file": "a.json", "inputs": {"word": 1}}), &[("a.json", inner.clone())]), []);
    let both = found(json!({"file": "a.json", "workflow": inner.clone()}), &[]);
    assert_eq!(both[0].1, "missing-field");
    let plan = json!({"task": "t", "nodes": []});
    assert_eq!(found(json!({"workflow": plan}), &[])[0].1, "dialect-mismatch");
}

/// What is handed out is said where the node is, and is there when the document is over.
#[test]
fn w15_outputs_name_what_there_is_at_the_end() {
    let mut inner = flow(
        json!([node("try", "TOOL", json!({"tool": "read"})), idle("mend")]),
        &[("start", "try"), ("try", "end"), ("mend", "end")],
    );
    inner["edges"].as_array_mut().unwrap().push(json!({"from": "try", "to": "mend", "when": "error"}));
    let at = |file: &str, value: &str, field: &str| {
        let config = match file {
            "" => json!({"workflow": inner.clone(), "outputs": {"got": [value]}}),
            _ => json!({"file": file, "outputs": {"got": [value]}}),
        };
        let found = found(config, &[("a.json", inner.clone())]);
        let place = "/nodes/2/config/outputs/got/0";
        let all: Vec<&str> = found.iter().map(|(_, code, _)| *code).collect();
        assert!(found.iter().all(|(file, _, at)| file == "flow.json" && at == place), "{field}: {found:?}");
        all.join(" ")
    };
    for file in ["", "a.json"] {
        assert_eq!(at(file, "{{end}} {{mend}} {{x}}", "there"), "may-not-have-run");
        assert_eq!(at(file, "{{try.output.rows}} {{try.error.kind}}", "perhaps"), "may-not-have-run");
        assert_eq!(at(file, "{{start.output}}", "at once"), "");
        assert_eq!(at(file, "{{inner}}", "the node itself"), "later-node");
        assert_eq!(at(file, "{{inputs.none}}", "nothing"), "unknown-placeholder");
        assert_eq!(at(file, "{{mendd.output}}", "a slip"), "unknown-placeholder");
    }
}

/// What is around a document is seen in it.
#[test]
fn w03_inner_documents_see_what_is_around_them() {
    let inner = |text: &str| {
        flow(
            json!([node("say", "TOOL", json!({"tool": "read", "args": {"t": text}}))]),
            &[("start", "say"), ("say", "end")],
        )
    };
    let outer = |text: &str| {
        flow(
            json!([
                node("ask", "TOOL", json!({"tool": "read"})),
                node("inner", "SUBGRAPH", json!({"workflow": inner(text)}))
            ]),
            &[("start", "ask"), ("ask", "inner"), ("inner", "end")],
        )
    };
    assert_eq!(codes(&outer("{{ask.output.rows}}")), []);
    let inside: Vec<&str> = codes(&outer("{{inner}}")).into_iter().map(|(code, _)| code).collect();
    assert_eq!(inside, ["later-node"]);
}
