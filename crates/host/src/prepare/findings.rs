//! What is found about a document besides what its compiler says: tools that are not allowed, and what of it a run warns of.

use super::naming::Naming;
use crate::error::{Error, ErrorKind, NOT_TRUSTED};
use crate::text::or_meant;
use crate::tools;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostic, Dialect, Finding, Severity};
use selvedge_engine::{Graph, Warning};
use selvedge_tools::{Catalogue, ErrorClass, ToolError};
use std::sync::Arc;

/// The code of variables that a tool needs and that are not there.
const VARIABLE_NOT_SET: &str = "variable-not-set";

/// The kind of findings with errors: where nothing but trust, or a variable, is missing, no document is wrong (C-20, A-20).
pub fn kind_of(findings: &[Diagnostic]) -> ErrorKind {
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    if errors.all(|error| [NOT_TRUSTED, VARIABLE_NOT_SET].contains(&error.code)) {
        ErrorKind::Environment
    } else {
        ErrorKind::Usage
    }
}

/// Named tools that declare more than is allowed here: a run refuses them, a check warns. Where the
/// document names them first, and those that it names in no place that is known.
pub fn overdeclared(
    names: &[Arc<str>],
    catalogue: &Catalogue,
    places: &Naming<'_>,
) -> (Vec<Finding>, Vec<ToolError>) {
    let (mut placed, mut unplaced) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| !tools::is_builtin(catalogue, name)) {
        let Some(error) = catalogue.refusal(name) else { continue };
        let Some(span) = places.of(name).first().copied() else {
            unplaced.push(error);
            continue;
        };
        let file = error.file.as_ref().map(|file| format!("; the tool is {}", file.display()));
        let help = format!("{}{}", error.help, file.unwrap_or_default());
        let code = match error.class {
            ErrorClass::Document => "tool-not-allowed",
            ErrorClass::Environment | ErrorClass::State => VARIABLE_NOT_SET,
        };
        placed.push(Finding::error(error.rule, code, span, error.message).help(help));
    }
    (placed, unplaced)
}

/// Fixed calls of built-ins that can only be denied: where the document names them, and those that it names in no
/// place that is known.
pub fn not_allowed(
    graph: &Graph,
    catalogue: &Catalogue,
    places: &Naming<'_>,
) -> (Vec<Finding>, Vec<ToolError>) {
    let (mut placed, mut unplaced) = (Vec::new(), Vec::new());
    for (tool, error) in tools::denied_calls(graph, catalogue) {
        // What a Python tool declares is told of before.
        if error.file.is_some() {
            continue;
        }
        let spans = places.of(&tool);
        for span in spans {
            let finding = Finding::error(error.rule, "tool-not-allowed", *span, error.message.as_str());
            placed.push(finding.help(error.help.as_str()));
        }
        if spans.is_empty() {
            unplaced.push(error);
        }
    }
    (placed, unplaced)
}

/// `--plan` and `--dialect`.
pub fn choice<'c>(plan: Option<&'c str>, dialect: Option<&str>) -> Result<Choice<'c>, Error> {
    let dialect = match dialect {
        None => None,
        Some(name) => Some(Dialect::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
            let message = format!("`--dialect`: {name:?} is no dialect");
            let help =
                format!("the dialects are {}; without `--dialect` the document tells", names.join(", "));
            Error::usage("C-11", "unknown-dialect", &message).help(&or_meant(name, &names, &help))
        })?),
    };
    Ok(Choice { dialect, plan })
}

/// The warnings among findings, as C-02 has them; a finding inside a node names it.
pub fn warnings(findings: &[Diagnostic], graph: &Graph) -> Vec<Warning> {
    let warning = |finding: &Diagnostic| Warning {
        code: finding.code.into(),
        message: finding.message.clone(),
        node: node_at(&finding.pointer, graph),
    };
    findings.iter().filter(|finding| finding.severity == Severity::Warning).map(warning).collect()
}

/// The node that a JSON pointer leads into: `/nodes/3/…`, `/steps/3/…`, or `/NAME/nodes/3/…` in a file of several
/// plans.
fn node_at(pointer: &str, graph: &Graph) -> Option<Arc<str>> {
    let list = |part: &&str| matches!(*part, "nodes" | "steps");
    let mut parts = pointer.split('/').skip(1).take(3).skip_while(|part| !list(part)).skip(1);
    let index: usize = parts.next()?.parse().ok()?;
    graph.nodes.values().nth(index).map(|node| node.id.clone())
}
