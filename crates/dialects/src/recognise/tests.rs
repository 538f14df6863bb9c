use super::*;
use crate::{DocumentLimits, Source, json};

type Outcome = Result<(Dialect, String), String>;

fn recognised(text: &str, choice: Choice<'_>) -> (Outcome, usize) {
    let source = Source::new("f", text);
    let mut diagnostics = Diagnostics::new();
    let root = json::parse(&source, &DocumentLimits::default(), &mut diagnostics).expect("valid");
    let found = recognise(&root, choice, &mut diagnostics);
    assert_eq!(found.is_none(), diagnostics.has_errors());
    let warnings = diagnostics.warnings();
    let outcome = match found {
        Some(found) => Ok((found.dialect, source.slice(found.root.span).to_owned())),
        None => {
            let error =
                diagnostics.report(&source).into_iter().find(|d| d.severity == crate::Severity::Error);
            Err(error.map(|d| format!("{}: {} ({})", d.code, d.message, d.help)).expect("an error"))
        }
    };
    (outcome, warnings)
}

fn dialect(text: &str) -> Result<Dialect, String> {
    recognised(text, Choice::default()).0.map(|(dialect, _)| dialect)
}

#[test]
fn c11_documents_are_recognised_by_their_fields() {
    assert_eq!(dialect(r#"{"task": "t", "nodes": []}"#), Ok(Dialect::Plan));
    assert_eq!(dialect(r#"{"nodes": [], "edges": []}"#), Ok(Dialect::Workflow));
    assert_eq!(dialect(r#"{"task": "t", "nodes": [], "edges": []}"#), Ok(Dialect::Workflow));
    assert_eq!(dialect(r#"{"task": "t", "steps": []}"#), Ok(Dialect::Steps));
    assert_eq!(dialect(r#"{"task": "t"}"#), Ok(Dialect::Steps));
    assert_eq!(dialect(r#"{"task": "t", "metadata": {"nodes": 1}}"#), Ok(Dialect::Steps));
    assert_eq!(dialect(r#"{"query": "q"}"#), Ok(Dialect::Agent));
    assert_eq!(dialect(r#"{"a": {"task": "t", "nodes": []}}"#), Ok(Dialect::Plan));
}

#[test]
fn c11_other_documents_are_errors_with_a_way_out() {
    let cases = [
        ("[]", "not-a-document: a document must be an object, not an array"),
        ("{}", "unknown-dialect: the document is of no known dialect (a plan has"),
        (r#"{"a": {}}"#, "unknown-dialect: the document is of no known dialect (a plan has"),
        (r#"{"edges": []}"#, "unknown-dialect: `edges` without `nodes`"),
        (r#"{"task": "t", "edges": []}"#, "unknown-dialect: `edges` without `nodes`"),
        (
            r#"{"nods": []}"#,
            "unknown-dialect: the document is of no known dialect; it has a field \"nods\" (did you mean `nodes`?)",
        ),
    ];
    for (text, expected) in cases {
        let error = dialect(text).expect_err(text);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn e32_a_task_with_misspelt_nodes_is_not_planned_by_a_model() {
    for (field, meant) in [("nods", "nodes"), ("node", "nodes"), ("step", "steps"), ("stpes", "steps")] {
        let error = dialect(&format!(r#"{{"task": "t", "{field}": []}}"#)).expect_err(field);
        assert_eq!(
            error,
            format!("unknown-field: a task has no field \"{field}\" (did you mean `{meant}`?)")
        );
    }
}

#[test]
fn c11_a_forced_dialect_must_fit() {
    let forced = |text, dialect| {
        recognised(text, Choice { dialect: Some(dialect), plan: None }).0.map(|(dialect, _)| dialect)
    };
    let plan = r#"{"task": "t", "nodes": []}"#;
    assert_eq!(forced(plan, Dialect::Plan), Ok(Dialect::Plan));
    assert_eq!(forced(r#"{"query": "q", "nodes": []}"#, Dialect::Agent), Ok(Dialect::Agent));
    for dialect in [Dialect::Workflow, Dialect::Steps, Dialect::Agent] {
        let error = forced(plan, dialect).expect_err("no fit");
        assert!(error.starts_with("dialect-mismatch: "), "{error}");
        assert!(error.contains("give plan"), "{error}");
    }
    assert!(forced("{}", Dialect::Agent).is_err());
}

#[test]
fn one_of_several_plans_is_chosen_by_name() {
    let text = r#"{"a": {"nodes": [1]}, "b": {"nodes": [2]}, "note": "x"}"#;
    let choose = |plan| recognised(text, Choice { dialect: None, plan });
    assert_eq!(choose(Some("b")), (Ok((Dialect::Plan, r#"{"nodes": [2]}"#.into())), 1));
    assert_eq!(
        choose(None).0,
        Err("plan-not-chosen: the file holds 2 plans (choose one with `--plan NAME`; the plans are \"a\", \"b\")".into())
    );
    assert_eq!(
        choose(Some("c")).0,
        Err("unknown-plan: the file has no plan \"c\" (the plans are \"a\", \"b\")".into())
    );
    let alone = r#"{"only": {"nodes": []}}"#;
    assert!(recognised(alone, Choice::default()).0.is_ok(), "with one plan, --plan is not needed");
    assert!(recognised(alone, Choice { dialect: None, plan: Some("other") }).0.is_err());
}

#[test]
fn a_plan_name_for_a_single_document_must_be_its_own() {
    let choice = Choice { dialect: None, plan: Some("p") };
    assert!(recognised(r#"{"name": "p", "nodes": []}"#, choice).0.is_ok());
    assert!(recognised(r#"{"nodes": []}"#, choice).0.is_err());
}
