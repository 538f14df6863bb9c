//! Reading a plan document from its JSON.

use std::sync::Arc;

use super::doc::PlanDoc;
use super::{PlanNode, read_node};
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape};
use crate::head::{Head, List, repeated};
use crate::json::{Node, Spanned};
use crate::recognise::Recognised;
use crate::{Diagnostics, DocumentLimits, Finding, Source};

/// `$schema` is for editors and says nothing to the reader (`C-11`).
pub(super) const PLAN: Shape = Shape {
    what: "a plan",
    fields: &[
        "$schema",
        "budget",
        "description",
        "inputs",
        "metadata",
        "name",
        "nodes",
        "task",
        "tools_limit",
    ],
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
    let mut head = Head::read(&fields, ("task", None), source, diagnostics);
    let key = plan.member.map(|member| Spanned::new(Arc::from(member.key.as_ref()), member.key_span));
    head.name = head.name.or(key);
    let (mut nodes, complete) = read_nodes(&fields, source, limits, diagnostics);
    if let Some(node) = fields.given("tools_limit") {
        read_node::limit_all(node, &mut nodes, source, diagnostics);
    }
    Some(PlanDoc { head, nodes, complete })
}

fn read_nodes(
    fields: &Fields<'_, '_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> (Vec<PlanNode>, bool) {
    const NODES: List = List {
        field: "nodes",
        document: "plan",
        rule: "P-01",
        help: "write the list of nodes: \"nodes\": [ … ]",
    };
    let list = fields.required(NODES.field, NODES.rule, NODES.help, diagnostics);
    let Some(elements) = list.and_then(|list| NODES.elements(list, limits, diagnostics)) else {
        return (Vec::new(), false);
    };
    let read = |(index, node): (usize, &Node<'_>)| read_node::read(index, node, source, limits, diagnostics);
    let nodes: Vec<PlanNode> = elements.iter().enumerate().filter_map(read).collect();
    let complete = nodes.len() == elements.len();
    report_duplicate_ids(&nodes, source, diagnostics);
    (nodes, complete)
}

/// Ids are unique in a plan, defaults included.
fn report_duplicate_ids(nodes: &[PlanNode], source: &Source, diagnostics: &mut Diagnostics) {
    for (first, node) in repeated(nodes, |node| &node.id.value) {
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
