//! Reading a plan document from its JSON.

use std::collections::HashMap;
use std::sync::Arc;

use super::doc::PlanDoc;
use super::{PlanNode, inputs, read_node, shapes};
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, type_error};
use crate::json::{Node, Spanned, to_map};
use crate::recognise::Recognised;
use crate::{Diagnostics, DocumentLimits, Finding, Source};

/// `$schema` is for editors and says nothing to the reader (`C-11`).
pub(super) const PLAN: Shape = Shape {
    what: "a plan",
    fields: &["$schema", "budget", "description", "inputs", "metadata", "name", "nodes", "task"],
};

/// Reads a plan. Everything that could be read is returned, with every finding in `diagnostics`; `None` only
/// if the plan is no object at all. Go on to run it only if `diagnostics` has no errors.
///
/// `source` is what the document was parsed from.
pub fn read(
    plan: &Recognised<'_, '_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<PlanDoc> {
    let fields = Fields::open(plan.root, &PLAN, "P-01", diagnostics)?;
    let task = fields
        .required_text("task", "P-02", "write the task: \"task\": \"…\"", diagnostics)
        .unwrap_or_else(|| Spanned::new("".into(), fields.span().opening()));
    let key = plan.member.map(|member| Spanned::new(Arc::from(member.key.as_ref()), member.key_span));
    let name = fields.text("name", "C-15", diagnostics).or(key);
    let description = fields.text("description", "P-23", diagnostics);
    let inputs = fields.given("inputs").map(|node| inputs::read(node, diagnostics)).unwrap_or_default();
    let metadata = fields.given("metadata").and_then(|node| match node.as_object() {
        Some(members) => Some(to_map(members)),
        None => {
            let help = "write the values in braces: {\"name\": value}";
            let error = TypeError { field: "metadata", expected: "an object", rule: "D-01", help };
            diagnostics.push(type_error(node, error));
            None
        }
    });
    let budget = fields.given("budget").map(|node| shapes::budget(node, source, diagnostics));
    let (nodes, complete) = read_nodes(&fields, source, limits, diagnostics);
    Some(PlanDoc {
        span: fields.span(),
        task,
        name,
        description,
        inputs,
        metadata: metadata.unwrap_or_default(),
        budget: budget.unwrap_or_default(),
        nodes,
        complete,
    })
}

fn read_nodes(
    fields: &Fields<'_, '_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> (Vec<PlanNode>, bool) {
    let help = "write the list of nodes: \"nodes\": [ … ]";
    let Some(list) = fields.required("nodes", "P-01", help, diagnostics) else {
        return (Vec::new(), false);
    };
    let Some(elements) = list.as_array() else {
        let error = TypeError { field: "nodes", expected: "an array", rule: "P-01", help };
        diagnostics.push(type_error(list, error));
        return (Vec::new(), false);
    };
    if let Some(first_over) = elements.get(limits.nodes) {
        let message = format!("the plan has {} nodes, more than the limit {}", elements.len(), limits.nodes);
        diagnostics.push(
            Finding::error("E-28", "too-many-nodes", first_over.span.opening(), message)
                .help("split the plan, or raise the setting `nodes` of `[limits]`"),
        );
        return (Vec::new(), false);
    }
    let read = |(index, node): (usize, &Node<'_>)| read_node::read(index, node, source, diagnostics);
    let nodes: Vec<PlanNode> = elements.iter().enumerate().filter_map(read).collect();
    let complete = nodes.len() == elements.len();
    report_duplicate_ids(&nodes, source, diagnostics);
    (nodes, complete)
}

/// Ids are unique in a plan, defaults included.
fn report_duplicate_ids(nodes: &[PlanNode], source: &Source, diagnostics: &mut Diagnostics) {
    let mut seen: HashMap<&str, &PlanNode> = HashMap::with_capacity(nodes.len());
    for node in nodes {
        let Some(first) = seen.get(node.id.value.as_ref()) else {
            seen.insert(&node.id.value, node);
            continue;
        };
        let place = source.place(first.id.span.start as usize);
        let how = |node: &PlanNode| if node.id.is_written() { "" } else { ", by its position in the list" };
        let message = format!("two nodes have the id {}", shown(&node.id.value));
        let help = format!(
            "the first is at line {}, column {}{}; this one has it{}: give one of them another `node_id`",
            place.line,
            place.column,
            how(first),
            if node.id.is_written() { " written" } else { how(node) },
        );
        diagnostics.push(Finding::error("P-01", "duplicate-node-id", node.id.span, message).help(help));
    }
}
