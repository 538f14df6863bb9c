//! Where a document names models, tools and nodes, for findings that are not the compiler's and for those who look at a run.

use selvedge_dialects::{Diagnostics, DocumentLimits, Node, Source, Span};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The places of names under some keys, or in a list there. The document is looked through once, when somebody asks.
pub struct Naming<'s> {
    source: &'s Source,
    limits: DocumentLimits,
    keys: &'static [&'static str],
    found: OnceCell<BTreeMap<String, Vec<Span>>>,
}

impl<'s> Naming<'s> {
    /// Those of models, or of roles of one (P-26).
    pub fn of_models(source: &'s Source, limits: DocumentLimits) -> Self {
        Self { source, limits, keys: &["model"], found: OnceCell::new() }
    }

    /// Those of tools.
    pub fn of_tools(source: &'s Source, limits: DocumentLimits) -> Self {
        let keys = &["alternatives", "initial_tool_name", "tool", "tool_id", "tool_name", "tools"];
        Self { source, limits, keys, found: OnceCell::new() }
    }

    /// Those of nodes and steps, by their ids and their names.
    pub fn of_nodes(source: &'s Source, limits: DocumentLimits) -> Self {
        let keys = &["id", "node_id", "node_name", "step_id", "step_name", "title"];
        Self { source, limits, keys, found: OnceCell::new() }
    }

    /// The places of a name, in the order of the document.
    pub fn of(&self, name: &str) -> &[Span] {
        self.found.get_or_init(|| self.look()).get(name).map_or(&[], Vec::as_slice)
    }

    /// All names, each with its places in the order of the document.
    pub fn all(self) -> BTreeMap<String, Vec<Span>> {
        self.found.get_or_init(|| self.look());
        self.found.into_inner().unwrap_or_default()
    }

    fn look(&self) -> BTreeMap<String, Vec<Span>> {
        let mut found = BTreeMap::new();
        if let Some(root) = selvedge_dialects::json::parse(self.source, &self.limits, &mut Diagnostics::new())
        {
            note(&root, self.keys, &mut found);
        }
        found
    }
}

fn note(node: &Node<'_>, keys: &[&str], found: &mut BTreeMap<String, Vec<Span>>) {
    node.as_array().unwrap_or_default().iter().for_each(|element| note(element, keys, found));
    for member in node.as_object().unwrap_or_default() {
        if keys.contains(&&*member.key) {
            let listed = member.value.as_array().unwrap_or(std::slice::from_ref(&member.value));
            for (name, span) in listed.iter().filter_map(|value| Some((value.as_str()?, value.span))) {
                found.entry(name.to_owned()).or_default().push(span);
            }
        }
        note(&member.value, keys, found);
    }
}
