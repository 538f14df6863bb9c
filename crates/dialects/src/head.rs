//! What documents of every dialect say of themselves, besides their nodes or steps.

use crate::fields::{Fields, TypeError, almost, type_error};
use crate::inputs::{self, Input};
use crate::json::{Node, Span, Spanned};
use crate::settings::{self, Budget};
use crate::{Diagnostics, DocumentLimits, Finding, Source};
use selvedge_engine::template::normalized;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The head of a document: all of it but its nodes or steps.
#[derive(Clone, Debug)]
pub struct Head {
    /// Where the document's object is written.
    pub span: Span,
    /// What is to be done, a template of the first data layer (`P-02`, `P-22`).
    pub task: Spanned<Arc<str>>,
    /// The name: the field `name`, else the key in a file of several plans.
    pub name: Option<Spanned<Arc<str>>>,
    /// What it is for, for people.
    pub description: Option<Spanned<Arc<str>>>,
    /// Declared inputs, in the order of the document (`P-23`).
    pub inputs: Vec<Input>,
    /// Initial metadata (`D-01`); values, never templates (`D-11`).
    pub metadata: Map<String, Value>,
    /// Where its names are written, in its order.
    pub metadata_at: Vec<Span>,
    /// Limits on what a run may use (`P-24`, `E-20`).
    pub budget: Budget,
}

impl Head {
    /// Reads it; `task` is the field of the task, with the rule that asks for one, and what to write if there is none. Without such a
    /// rule the task may be left out, and is then empty.
    pub(crate) fn read(
        fields: &Fields<'_, '_>,
        (field, task): (&'static str, Option<(&'static str, &str)>),
        source: &Source,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let task = match task {
            Some((rule, help)) => fields.required_text(field, rule, help, diagnostics),
            None => fields.text(field, "P-02", diagnostics),
        };
        let task = task.unwrap_or_else(|| Spanned::new("".into(), fields.span().opening()));
        let name = fields.text("name", "C-15", diagnostics);
        let description = fields.text("description", "P-23", diagnostics);
        let inputs = fields.given("inputs").map(|node| inputs::read(node, diagnostics));
        let metadata = fields.given("metadata").and_then(|node| metadata(node, diagnostics));
        let (metadata, metadata_at) = metadata.unwrap_or_default();
        let budget = fields.given("budget").map(|node| settings::budget(node, source, diagnostics));
        Self {
            span: fields.span(),
            task,
            name,
            description,
            inputs: inputs.unwrap_or_default(),
            metadata,
            metadata_at,
            budget: budget.unwrap_or_default(),
        }
    }

    /// The initial metadata of a run (`D-01`): the values given with the call (`--input`) over the document's
    /// `metadata` over the inputs' defaults (`P-23`). A declared input without a value or of the wrong type is a
    /// finding at its declaration; undeclared values are allowed.
    pub fn initial(&self, given: &Map<String, Value>, diagnostics: &mut Diagnostics) -> Map<String, Value> {
        inputs::layer(&self.inputs, &self.metadata, given, diagnostics)
    }

    /// Finds names of given values that the document does not have (`P-23`). They stand nowhere in it: findings are at the entry
    /// that is meant, or at the first one.
    pub fn unknown_inputs<'n>(&self, given: impl Iterator<Item = &'n String>, diagnostics: &mut Diagnostics) {
        let (declared, metadata) = self.known_names();
        let places = self.inputs.iter().map(|input| input.name.span).chain(self.metadata_at.iter().copied());
        let names = [&*declared, &metadata].concat();
        for name in given {
            let near = almost(name, &names).and_then(|near| names.iter().position(|name| *name == near));
            let at = places.clone().nth(near.unwrap_or(0)).unwrap_or(self.span);
            if let Some((message, help)) = inputs::unknown_input(&declared, &metadata, name) {
                diagnostics.push(Finding::error("P-23", "unknown-input", at, message).help(help));
            }
        }
    }

    /// The names of declared inputs, and those of the metadata.
    fn known_names(&self) -> (Vec<&str>, Vec<&str>) {
        let declared = self.inputs.iter().map(|input| &*input.name.value).collect();
        (declared, self.metadata.keys().map(String::as_str).collect())
    }

    /// What another document gives under a name: a value that is of no type the input has, if it is written there and holds no
    /// placeholder, and a name that the document does not have (`P-23`). Findings are about the other document.
    pub(crate) fn check_given(
        &self,
        name: &Spanned<Arc<str>>,
        value: &Node<'_>,
        diagnostics: &mut Diagnostics,
    ) {
        if let Some(input) = self.inputs.iter().find(|input| input.name.value == name.value) {
            return inputs::check_written(input, value, diagnostics);
        }
        let (declared, metadata) = self.known_names();
        if let Some((message, help)) = inputs::unknown_input(&declared, &metadata, &name.value) {
            diagnostics.push(Finding::error("P-23", "unknown-input", name.span, message).help(help));
        }
    }

    /// The names of the first data layer of a run whose layer has at least `initial`.
    pub(crate) fn names<'h>(&'h self, initial: &'h Map<String, Value>) -> HashSet<&'h str> {
        let mut names: HashSet<&str> = initial.keys().map(String::as_str).collect();
        names.extend(self.inputs.iter().map(|input| input.name.value.as_ref()));
        names.extend(self.metadata.keys().map(String::as_str));
        names
    }
}

fn metadata(node: &Node<'_>, diagnostics: &mut Diagnostics) -> Option<(Map<String, Value>, Vec<Span>)> {
    if let Some(members) = node.as_object() {
        let values =
            members.iter().map(|member| (normalized(&member.key).into_owned(), member.value.to_value()));
        return Some((values.collect(), members.iter().map(|member| member.key_span).collect()));
    }
    let help = "write the values in braces: {\"name\": value}";
    let error = TypeError { field: "metadata", expected: "an object", rule: "D-01", help };
    diagnostics.push(type_error(node, error));
    None
}

/// The list of a document's nodes or steps.
pub(crate) struct List {
    /// The field, which is also what its elements are called.
    pub(crate) field: &'static str,
    /// What the document is called.
    pub(crate) document: &'static str,
    /// The rule that says that it is a list.
    pub(crate) rule: &'static str,
    /// What to write.
    pub(crate) help: &'static str,
}

impl List {
    /// The elements, unless it is no list or they are too many (`E-28`).
    pub(crate) fn elements<'n, 's>(
        &self,
        list: &'n Node<'s>,
        limits: &DocumentLimits,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'n [Node<'s>]> {
        let Self { field, document, rule, help } = *self;
        let Some(elements) = list.as_array() else {
            diagnostics.push(type_error(list, TypeError { field, expected: "an array", rule, help }));
            return None;
        };
        let Some(first_over) = elements.get(limits.nodes) else { return Some(elements) };
        let message =
            format!("the {document} has {} {field}, more than the limit {}", elements.len(), limits.nodes);
        let help = format!("split the {document}, or raise the setting `nodes` of `[limits]`");
        let finding = Finding::error("E-28", "too-many-nodes", first_over.span.opening(), message);
        diagnostics.push(finding.help(help));
        None
    }
}

/// Elements whose id an earlier one has, each with the first that has it.
pub(crate) fn repeated<'e, T>(elements: &'e [T], id: impl Fn(&'e T) -> &'e str) -> Vec<(&'e T, &'e T)> {
    let mut first: HashMap<&str, &T> = HashMap::with_capacity(elements.len());
    let mut again = Vec::new();
    for element in elements {
        match first.get(id(element)) {
            Some(earlier) => again.push((*earlier, element)),
            None => drop(first.insert(id(element), element)),
        }
    }
    again
}

/// Every name once, in their order.
pub(crate) fn each_once<'n>(names: impl Iterator<Item = &'n Arc<str>>) -> Vec<Arc<str>> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}
