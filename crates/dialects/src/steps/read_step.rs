//! Reading one step.

use super::doc::{Alternative, Inner, Parameters, Step};
use crate::checks;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, type_error};
use crate::json::{self, Kind, Node, Span, Spanned};
use crate::settings::{self, ToolEffects};
use crate::{Diagnostics, DocumentLimits, Finding, Source};
use selvedge_engine::template::{OnMissing, normalized};
use std::sync::Arc;

/// The fields of a step.
pub(super) const STEP: Shape = Shape {
    what: "a step",
    fields: &[
        "alternatives",
        "depends_on",
        "effects",
        "on_missing",
        "parameters",
        "retry",
        "step_id",
        "step_name",
        "timeout",
        "tool_id",
    ],
};

/// The fields of an alternative that is an object (`D-23`).
pub(super) const ALTERNATIVE: Shape = Shape { what: "an alternative", fields: &["parameters", "tool_id"] };

/// The way out where `parameters` is a text that is no JSON object.
const BY_NAME: &str = "write the arguments by name: {\"name\": value}";

/// What all readers of one step share.
struct Reader<'a> {
    source: &'a Source,
    limits: &'a DocumentLimits,
    diagnostics: &'a mut Diagnostics,
}

/// Reads the step at position `index`. `None`, with an error among the findings, if its id, its tool or its parameters
/// can't be read; wrong optional fields leave their defaults.
pub(super) fn read(
    index: usize,
    node: &Node<'_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<Step> {
    const ON_MISSING: [(&str, OnMissing); 2] = [("null", OnMissing::Null), ("keep", OnMissing::Keep)];
    let fields = Fields::open(node, &STEP, "D-15", diagnostics)?;
    let mut reader = Reader { source, limits, diagnostics };
    let id = reader.id(&fields);
    let parameters = reader.given_parameters(&fields);
    let depends_on = reader.depends_on(&fields);
    let alternatives = reader.alternatives(&fields);
    let d = &mut *reader.diagnostics;
    let tool = fields.required_name("tool_id", "D-15", "name the tool: \"tool_id\": \"…\"", d);
    let name = fields.text("step_name", "D-03", d);
    let retry = fields.given("retry").and_then(|node| settings::retry(node, source, d));
    let timeout = fields.seconds("timeout", "D-23", false, d);
    let on_missing = fields.choice("on_missing", "D-10", &ON_MISSING, d);
    let effects = fields.choice("effects", "E-22", &ToolEffects::NAMES, d);
    let (id, tool, parameters) = (id?, tool?, parameters?);
    Some(Step {
        index,
        span: fields.span(),
        name: name.map_or_else(|| id.value.clone(), |name| name.value),
        id,
        tool,
        parameters,
        depends_on,
        alternatives,
        retry,
        timeout,
        on_missing: on_missing.map(|choice| choice.value).unwrap_or_default(),
        effects,
    })
}

impl Reader<'_> {
    fn push(&mut self, finding: Finding) {
        self.diagnostics.push(finding);
    }

    /// `step_id`, a string or an integer (`P-26`).
    fn id(&mut self, fields: &Fields<'_, '_>) -> Option<Spanned<Arc<str>>> {
        let help = "name the step: \"step_id\": \"step_1\"";
        let node = fields.required("step_id", "D-15", help, self.diagnostics)?;
        let value = self.id_at(node, "step_id")?;
        if !checks::Kind::STEP.may_be_id(&value, node.span, self.diagnostics) {
            return None;
        }
        Some(Spanned::new(value, node.span))
    }

    /// An id where one is written: a text that is not empty, or an integer.
    fn id_at(&mut self, node: &Node<'_>, field: &str) -> Option<Arc<str>> {
        let value: Arc<str> = match &node.kind {
            Kind::String(text) => normalized(text).into(),
            Kind::Number(_) if node.as_integer(self.source).is_some() => self.source.slice(node.span).into(),
            _ => {
                let help = "write a name such as \"step_1\", or an integer";
                let expected = "a string or an integer";
                self.push(type_error(node, TypeError { field, expected, rule: "D-15", help }));
                return None;
            }
        };
        if value.is_empty() {
            let message = format!("`{field}` must not be empty");
            self.push(
                Finding::error("D-15", "empty-name", node.span, message).help("write the name of a step"),
            );
            return None;
        }
        Some(value)
    }

    /// `depends_on`: a list of ids; one that stands twice counts once.
    fn depends_on(&mut self, fields: &Fields<'_, '_>) -> Vec<Spanned<Arc<str>>> {
        let Some(node) = fields.given("depends_on") else { return Vec::new() };
        let Some(elements) = node.as_array() else {
            let help = "write a list of ids: [\"step_1\"]";
            let error = TypeError { field: "depends_on", expected: "an array", rule: "D-14", help };
            self.push(type_error(node, error));
            return Vec::new();
        };
        let mut ids: Vec<Spanned<Arc<str>>> = Vec::with_capacity(elements.len());
        let mut seen = std::collections::HashSet::new();
        for element in elements {
            let Some(id) = self.id_at(element, "depends_on") else { continue };
            if seen.insert(id.clone()) {
                ids.push(Spanned::new(id, element.span));
                continue;
            }
            let message = format!("{} stands twice in `depends_on`", shown(&id));
            self.push(Finding::warning("D-14", "repeated-name", element.span, message).help("remove one"));
        }
        ids
    }

    /// `alternatives`: `[tool_id | {"tool_id", "parameters"}]` (`D-23`).
    fn alternatives(&mut self, fields: &Fields<'_, '_>) -> Vec<Alternative> {
        let help = "write a list of tools: [\"other_tool\", {\"tool_id\": \"third\", \"parameters\": {}}]";
        let Some(node) = fields.given("alternatives") else { return Vec::new() };
        let Some(elements) = node.as_array() else {
            let error = TypeError { field: "alternatives", expected: "an array", rule: "D-23", help };
            self.push(type_error(node, error));
            return Vec::new();
        };
        elements.iter().filter_map(|element| self.alternative(element, help)).collect()
    }

    fn alternative(&mut self, node: &Node<'_>, help: &str) -> Option<Alternative> {
        match &node.kind {
            Kind::String(name) if !name.is_empty() => {
                let tool = Spanned::new(Arc::from(name.as_ref()), node.span);
                Some(Alternative { tool, parameters: None })
            }
            Kind::String(_) => {
                let message = "a tool in `alternatives` has no name";
                self.push(Finding::error("D-23", "empty-name", node.span, message).help("remove it"));
                None
            }
            Kind::Object(_) => {
                let fields = Fields::open(node, &ALTERNATIVE, "D-23", self.diagnostics)?;
                let help = "name the tool: \"tool_id\": \"…\"";
                let tool = fields.required_name("tool_id", "D-23", help, self.diagnostics);
                let parameters = self.given_parameters(&fields);
                Some(Alternative { tool: tool?, parameters: parameters? })
            }
            _ => {
                let expected = "the name of a tool, or an object";
                let error = TypeError { field: "alternatives", expected, rule: "D-23", help };
                self.push(type_error(node, error));
                None
            }
        }
    }

    /// `parameters`, if they are given; `None`: they can't be read.
    fn given_parameters(&mut self, fields: &Fields<'_, '_>) -> Option<Option<Parameters>> {
        match fields.given("parameters") {
            None => Some(None),
            Some(node) => self.parameters(node).map(Some),
        }
    }

    /// `parameters`: an object, or a string that holds one as JSON (`D-12`).
    fn parameters(&mut self, node: &Node<'_>) -> Option<Parameters> {
        match &node.kind {
            Kind::Object(_) => Some(Parameters::new(node.clone().into_owned(), None)),
            Kind::String(text) => self.parameters_in(text, node.span),
            _ => {
                let help = "write the arguments by name: {\"name\": value}";
                let expected = "an object, or a string that holds one as JSON";
                let error = TypeError { field: "parameters", expected, rule: "D-12", help };
                self.push(type_error(node, error));
                None
            }
        }
    }

    /// `D-12`: the text is JSON. What is wrong with it is told at its place in the document.
    fn parameters_in(&mut self, text: &str, literal: Span) -> Option<Parameters> {
        let inner = Inner::new(self.source, text, literal);
        // A byte-order mark would move all places.
        let (source, mut found) = (Source::new("parameters", text), Diagnostics::new());
        let root = match text.starts_with('\u{feff}') {
            true => None,
            false => json::parse(&source, self.limits, &mut found).map(Node::into_owned),
        };
        for finding in found.findings() {
            let rule = if finding.rule == "C-11" { "D-12" } else { finding.rule };
            let code = if finding.rule == "C-11" { "bad-parameters" } else { finding.code };
            let message = format!("in the JSON text of `parameters`: {}", finding.message);
            let help = match finding.code {
                "empty-document" => "write {} for no arguments",
                "duplicate-key" => "keep one of the two",
                _ if text.contains("{{") || text.contains("${") => {
                    "placeholders stand in strings, as in {\"n\": \"{{step_1.output.n}}\"}: one that is alone in its \
                     string keeps the type of its value"
                }
                "json-syntax" if finding.span.start == 0 => BY_NAME,
                _ => &finding.help,
            };
            self.push(Finding::error(rule, code, inner.place(finding.span), message).help(help));
        }
        let root = root.filter(|_| !found.has_errors());
        match root {
            Some(root) if root.as_object().is_some() => Some(Parameters::new(root, Some(Arc::new(inner)))),
            Some(root) => {
                let message =
                    format!("the JSON text of `parameters` must be an object, not {}", root.type_in_words());
                let finding = Finding::error("D-12", "bad-parameters", inner.place(root.span), message);
                self.push(finding.help(BY_NAME));
                None
            }
            None if found.has_errors() => None,
            None => {
                let message = "the JSON text of `parameters` starts with a byte-order mark";
                self.push(Finding::error("D-12", "bad-parameters", literal, message).help("remove it"));
                None
            }
        }
    }
}
