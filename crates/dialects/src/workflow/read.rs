//! Reading a workflow from its JSON.

use super::doc::{Does, Edge, Formula, Inner, InnerBody, Sub, Taken, Text, WorkNode, WorkflowDoc};
use super::read_node;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, misspelt, type_error};
use crate::files::{Includes, Named};
use crate::head::{Head, List, repeated};
use crate::json::{self, Kind, Node, Span, Spanned, place_in_string};
use crate::recognise::{Choice, Dialect, Recognised, recognise};
use crate::{Diagnostics, DocumentLimits, Finding, Source, agent, plan, steps};
use selvedge_engine::expression::Expression;
use selvedge_engine::template::normalized;
use std::sync::Arc;

/// `$schema` is for editors and says nothing to the reader (`C-11`).
pub(super) const WORKFLOW: Shape = Shape {
    what: "a workflow",
    fields: &["$schema", "budget", "description", "edges", "inputs", "metadata", "name", "nodes", "task"],
};
pub(super) const EDGE: Shape = Shape { what: "an edge", fields: &["from", "to", "when"] };

/// What all readers of one document share.
pub(super) struct Reader<'a, 'f> {
    pub(super) source: &'a Source,
    pub(super) limits: &'a DocumentLimits,
    pub(super) includes: &'a mut Includes<'f, InnerBody>,
    pub(super) diagnostics: &'a mut Diagnostics,
    /// How many documents it is in.
    pub(super) depth: usize,
}

/// Reads a workflow. Everything that could be read is returned, with every finding in the reader's diagnostics; `None` only if it
/// is no object at all.
pub(super) fn read(root: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<WorkflowDoc> {
    let fields = Fields::open(root, &WORKFLOW, "W-01", reader.diagnostics)?;
    let head = Head::read(&fields, ("task", None), reader.source, reader.diagnostics);
    let (mut nodes, all_nodes) = reader.nodes(&fields);
    let (edges, all_edges) = reader.edges(&fields);
    let mut complete = all_nodes && all_edges;
    if !reader.is_small(&nodes) {
        // Without what makes it too large: who follows the documents in it comes to an end.
        nodes.retain(|node| !matches!(node.does, Does::Sub(_)));
        complete = false;
    }
    for (first, node) in repeated(&nodes, |node| &node.id.value) {
        complete = false;
        let place = reader.source.place(first.id.span.start as usize);
        let message = format!("two nodes have the id {}", shown(&node.id.value));
        let finding = Finding::error("W-14", "duplicate-node-id", node.id.span, message);
        reader.diagnostics.push(
            finding.help(format!("the other is at line {}: give one of them another `id`", place.line)),
        );
    }
    let size = nodes.iter().map(WorkNode::size).fold(0, usize::saturating_add);
    Some(WorkflowDoc { head, nodes, edges, complete, size })
}

impl Reader<'_, '_> {
    pub(super) fn push(&mut self, finding: Finding) {
        self.diagnostics.push(finding);
    }

    fn nodes(&mut self, fields: &Fields<'_, '_>) -> (Vec<WorkNode>, bool) {
        const NODES: List = List {
            field: "nodes",
            document: "workflow",
            rule: "W-01",
            help: "write the list of nodes: \"nodes\": [ … ]",
        };
        let list = fields.required(NODES.field, NODES.rule, NODES.help, self.diagnostics);
        let Some(elements) = list.and_then(|list| NODES.elements(list, self.limits, self.diagnostics)) else {
            return (Vec::new(), false);
        };
        let nodes: Vec<WorkNode> = elements.iter().filter_map(|node| read_node::read(node, self)).collect();
        let complete = nodes.len() == elements.len();
        (nodes, complete)
    }

    /// Whether its nodes are no more than a document may have (E-28), with those of the documents in it: of some that each run the
    /// next one twice there would soon be more than anybody could check.
    fn is_small(&mut self, nodes: &[WorkNode]) -> bool {
        let mut size = 0_usize;
        let over = nodes.iter().find(|node| {
            size = size.saturating_add(node.size());
            size > self.limits.nodes
        });
        let Some(over) = over else { return true };
        let message = format!(
            "with the documents in it, which count as often as they are run, the workflow has more than {} nodes (`nodes` in [limits])",
            self.limits.nodes
        );
        let help = "run an inner document less often: in a loop, or in a fork over a list";
        self.push(Finding::error("E-28", "too-many-nodes", over.span.opening(), message).help(help));
        false
    }

    fn edges(&mut self, fields: &Fields<'_, '_>) -> (Vec<Edge>, bool) {
        const EDGES: List = List {
            field: "edges",
            document: "workflow",
            rule: "W-01",
            help: "write the list of edges: \"edges\": [{\"from\": …, \"to\": …}]",
        };
        let list = fields.required(EDGES.field, EDGES.rule, EDGES.help, self.diagnostics);
        // Each fork may have as many paths as there are nodes, and each node some ways on.
        let limits = DocumentLimits { nodes: self.limits.nodes.saturating_mul(4), ..*self.limits };
        let Some(elements) = list.and_then(|list| EDGES.elements(list, &limits, self.diagnostics)) else {
            return (Vec::new(), false);
        };
        let edges: Vec<Edge> = elements.iter().filter_map(|edge| self.edge(edge)).collect();
        let complete = edges.len() == elements.len();
        (edges, complete)
    }

    fn edge(&mut self, node: &Node<'_>) -> Option<Edge> {
        let fields = Fields::open(node, &EDGE, "W-01", self.diagnostics)?;
        let from = fields.required_name(
            "from",
            "W-01",
            "name the node where it begins: \"from\": \"…\"",
            self.diagnostics,
        );
        let to = fields.required_name(
            "to",
            "W-01",
            "name the node that it leads to: \"to\": \"…\"",
            self.diagnostics,
        );
        let when = match fields.given("when") {
            None => None,
            Some(node) => Some(self.when(node)?),
        };
        Some(Edge { from: from?.normalized(), to: to?.normalized(), when, span: fields.span() })
    }

    fn when(&mut self, node: &Node<'_>) -> Option<Taken> {
        const NAMES: [&str; 1] = ["error"];
        match node.as_str() {
            Some("error") => return Some(Taken::Error(node.span)),
            Some(word) if misspelt(word, &NAMES).is_some() => {
                let message = format!("`when` is {}, which is no condition", shown(word));
                let finding = Finding::error("W-14", "unknown-value", node.span, message);
                self.push(finding.help("did you mean \"error\"?"));
                return None;
            }
            _ => {}
        }
        self.formula(node, "when").map(Taken::If)
    }

    /// An expression; what is wrong with it is told where in the text it is (E-46).
    pub(super) fn formula(&mut self, node: &Node<'_>, field: &'static str) -> Option<Formula> {
        let Some(text) = node.as_str() else {
            let help = "write an expression as a text, such as \"n1.output.score > 3\"";
            self.push(type_error(node, TypeError { field, expected: "a string", rule: "E-46", help }));
            return None;
        };
        match Expression::parse(text) {
            Ok(expression) => Some(Formula { expression, span: node.span }),
            Err(error) => {
                let end = text.ceil_char_boundary((error.at + 1).min(text.len()));
                let place = place_in_string(self.source.text(), node.span, error.at.min(text.len())..end);
                let message = format!("`{field}` is no expression: {}", error.message);
                let help =
                    "expressions are a part of CEL, and name values without braces: docs/expressions.md";
                self.push(Finding::error("E-46", "bad-expression", place, message).help(help));
                None
            }
        }
    }

    /// The document that a node runs: written there, or in a file.
    pub(super) fn inner(&mut self, fields: &Fields<'_, '_>, here: &'static str) -> Option<Inner> {
        let (inline, file) = (fields.given(here), fields.name("file", "W-14", self.diagnostics));
        match (inline, file) {
            (Some(inline), None) => {
                let depth = self.limits.depth_in_force();
                if self.depth >= depth {
                    let message = format!(
                        "documents lie more than {depth} deep in each other (`subgraph_depth` in [limits])"
                    );
                    let finding = Finding::error("E-12", "too-deep", inline.span.opening(), message);
                    self.push(finding.help("put some of them into one document"));
                    return None;
                }
                let body = self.body(inline, here)?;
                Some(Inner { body: Arc::new(body), source: None, span: inline.span })
            }
            (None, Some(file)) => {
                let (source, body) = self.file(&file, here)?;
                Some(Inner { body, source: Some(source), span: file.span })
            }
            (both, _) => {
                let (said, and) = if both.is_some() { ("has both", "and") } else { ("has neither", "nor") };
                let message = format!("the node {said} `{here}` {and} `file`");
                let finding = Finding::error("W-14", "missing-field", fields.span().opening(), message);
                self.push(
                    finding.help(format!("write the document as `{here}`, or name its file as `file`")),
                );
                None
            }
        }
    }

    fn file(&mut self, name: &Text, here: &'static str) -> Option<(Source, Arc<InnerBody>)> {
        let (path, source) = match self.includes.open(name, self.diagnostics)? {
            Named::Known(known) => return known.filter(|(_, body)| self.fits(body, name.span, here)),
            Named::New(path, source) => (path, source),
        };
        let mut found = Diagnostics::new();
        let body = json::parse(&source, self.limits, &mut found).and_then(|root| {
            let mut reader = Reader {
                source: &source,
                limits: self.limits,
                includes: &mut *self.includes,
                diagnostics: &mut found,
                depth: self.depth + 1,
            };
            reader.body_of(&root)
        });
        self.diagnostics.elsewhere(found, &source);
        let read = body.map(|body| (source, Arc::new(body)));
        self.includes.close(path, read.clone());
        read.filter(|(_, body)| self.fits(body, name.span, here))
    }

    fn body(&mut self, root: &Node<'_>, here: &'static str) -> Option<InnerBody> {
        self.depth += 1;
        let body = self.body_of(root);
        self.depth -= 1;
        body.filter(|body| self.fits(body, root.span.opening(), here))
    }

    /// A document inside of this one, by what it is.
    fn body_of(&mut self, root: &Node<'_>) -> Option<InnerBody> {
        let Recognised { dialect, root, .. } = recognise(root, Choice::default(), self.diagnostics)?;
        match dialect {
            Dialect::Workflow => read(root, self).map(InnerBody::Workflow),
            Dialect::Plan => {
                let recognised = Recognised { dialect, root, member: None };
                plan::read(&recognised, self.source, self.limits, self.diagnostics).map(InnerBody::Plan)
            }
            Dialect::Steps => {
                steps::read(root, self.source, self.limits, self.diagnostics).map(InnerBody::Steps)
            }
            Dialect::Agent => agent::read(root, self.source, self.diagnostics).map(InnerBody::Agent),
        }
    }

    /// A `SUBGRAPH` is a workflow or an agent, and a `PLAN` a plan or a step task.
    fn fits(&mut self, body: &InnerBody, at: Span, here: &'static str) -> bool {
        let flows = matches!(body, InnerBody::Workflow(_) | InnerBody::Agent(_));
        if flows == (here == "workflow") {
            return true;
        }
        let (is, other) = match body {
            InnerBody::Workflow(_) => ("a workflow", "SUBGRAPH"),
            InnerBody::Agent(_) => ("an agent", "SUBGRAPH"),
            InnerBody::Plan(_) | InnerBody::Steps(_) => ("a plan or a step task", "PLAN"),
        };
        let message = format!("this is {is}");
        self.push(
            Finding::error("W-14", "dialect-mismatch", at, message)
                .help(format!("a node of type \"{other}\" runs it")),
        );
        false
    }
}

/// The object of named values, if the field is there.
pub(super) fn named(
    fields: &Fields<'_, '_>,
    field: &'static str,
    rule: &'static str,
    diagnostics: &mut Diagnostics,
) -> Vec<(Text, Node<'static>)> {
    let Some(node) = fields.given(field) else { return Vec::new() };
    let Kind::Object(members) = &node.kind else {
        let help = "write them by name: {\"name\": value}";
        diagnostics.push(type_error(node, TypeError { field, expected: "an object", rule, help }));
        return Vec::new();
    };
    let named = members.iter();
    named
        .map(|member| {
            (
                Spanned::new(Arc::from(normalized(&member.key)), member.key_span),
                member.value.clone().into_owned(),
            )
        })
        .collect()
}

/// A `SUBGRAPH` or a `PLAN`.
pub(super) fn sub(fields: &Fields<'_, '_>, here: &'static str, reader: &mut Reader<'_, '_>) -> Option<Sub> {
    let inputs = named(fields, "inputs", "W-03", reader.diagnostics);
    let outputs =
        if here == "workflow" { named(fields, "outputs", "W-03", reader.diagnostics) } else { Vec::new() };
    Some(Sub { inner: reader.inner(fields, here)?, inputs, outputs })
}
