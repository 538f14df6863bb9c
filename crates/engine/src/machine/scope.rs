//! What a node's placeholders see (D-01 … D-07): the three layers at its place in list order.

use super::frame::Frame;
use super::state::State;
use crate::fault::Warning;
use crate::ids::{NodeIx, NodeRef};
use crate::schedule::{paths, reads};
use crate::template::{Layers, Path, Root, Seg, StepView, classify};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The three layers as the node at `at` observes them.
pub(crate) struct Scope<'a> {
    pub(crate) state: &'a State,
    pub(crate) at: NodeRef,
}

impl Layers for Scope<'_> {
    fn is_step(&self, id: &str) -> bool {
        self.frame().by_id(id).is_some()
    }
    fn step(&self, id: &str) -> StepView<'_> {
        match self.frame().by_id(id) {
            Some(node) if node < self.at.node => match self.frame().done(node) {
                Some(done) if done.skipped => StepView::NotRun,
                Some(done) if done.fault.is_none() => StepView::Output(&done.output),
                Some(_) => StepView::Failed,
                None => StepView::NotRun,
            },
            _ => StepView::NotRun,
        }
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.frame().runtime_at(name, self.at.node).map(|(_, value)| value)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.state.start.initial.get(name)
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        let (node, ()) = self.frame().fields.get(name)?.range(..self.at.node).next_back()?;
        self.frame().done(*node)?.output.get(name)
    }
    fn names(&self) -> Vec<String> {
        let (frame, at) = (self.frame(), self.at.node);
        let runtime = frame.runtime.iter().filter(|(_, by)| by.range(..at).next().is_some());
        let mut names: Vec<String> = runtime.map(|(name, _)| name.to_string()).collect();
        names.extend(self.state.start.initial.keys().cloned());
        let earlier = frame.graph.nodes.iter().take_while(|(ix, _)| *ix < at);
        names.extend(earlier.map(|(_, node)| node.id.to_string()));
        names.sort();
        names.dedup();
        names
    }
}

impl Scope<'_> {
    fn frame(&self) -> &Frame {
        self.state.of(self.at)
    }
}

impl Frame {
    /// The value of a name of `runtime_metadata` before `at`, with the node it came from.
    pub(crate) fn runtime_at(&self, name: &str, at: NodeIx) -> Option<(NodeIx, &Value)> {
        let (node, field) = self.runtime.get(name)?.range(..at).next_back()?;
        Some((*node, self.done(*node)?.output.get(field.as_ref())?))
    }

    /// All of `runtime_metadata` before `at`.
    pub(crate) fn runtime_values(&self, at: NodeIx) -> BTreeMap<Arc<str>, (Value, Arc<str>)> {
        let names = self.runtime.keys().filter_map(|name| {
            let (node, value) = self.runtime_at(name, at)?;
            Some((name.clone(), (value.clone(), self.graph.nodes[node].id.clone())))
        });
        names.collect()
    }

    /// The last earlier node that declares a bare name that `node` reads.
    pub(crate) fn last_supplier(&self, node: NodeIx, name: &str) -> Option<NodeIx> {
        let mut suppliers = self.schedule.last_supplier[node].iter();
        suppliers.find(|(known, _)| known.as_ref() == name).map(|(_, node)| *node)
    }

    /// Sets the names of `runtime_metadata` that a node's result brings, and notes its other fields.
    pub(crate) fn sync(&mut self, node: NodeIx, object: &Map<String, Value>, names: &[Arc<str>]) {
        let id = self.graph.nodes[node].id.clone();
        for name in names {
            let prefixed: Arc<str> = format!("{id}_{name}").into();
            self.runtime.entry(prefixed).or_default().insert(node, name.clone());
            self.runtime.entry(name.clone()).or_default().insert(node, name.clone());
        }
        for key in object.keys() {
            match self.fields.get_mut(key.as_str()) {
                Some(nodes) => drop(nodes.insert(node, ())),
                None => drop(self.fields.entry(key.as_str().into()).or_default().insert(node, ())),
            }
        }
    }
}

impl State {
    /// D-07: bare names of a node that is to start which the first layer has, too, and an earlier node's output brought
    /// without declaring it. What is declared the checker has told.
    pub(crate) fn shadowed(&self, node: NodeRef) -> Vec<Warning> {
        let frame = self.of(node);
        if self.start.edition < 1 || self.start.initial.is_empty() || !frame.schedule.reads[node.node] {
            return Vec::new();
        }
        let (mut warnings, mut seen) = (Vec::new(), HashSet::new());
        let own = self.def(node);
        for path in paths(&frame.graph, own) {
            let Root::Name { name, .. } = classify(path, |id| frame.by_id(id).is_some()) else {
                continue;
            };
            let runtime = frame.runtime.get(name).filter(|_| self.start.initial.contains_key(name));
            let Some((by, field)) = runtime.and_then(|by| by.range(..node.node).next_back()) else {
                continue;
            };
            let declared = frame.last_supplier(node.node, name);
            if declared.is_some_and(|last| *by <= last) || !seen.insert(path) {
                continue;
            }
            let by = &frame.graph.nodes[*by].id;
            let first = Path { root: "inputs".into(), rest: vec![Seg::Key(name.into())] };
            let output =
                Path { root: by.clone(), rest: vec![Seg::Key("output".into()), Seg::Key(field.clone())] };
            let message = format!(
                "{{{{{path}}}}} is what `{by}` brought, which does not declare it, and not the input or metadata of \
                 that name; write {{{{{first}}}}} for the input, or {{{{{output}}}}} for what `{by}` brings"
            );
            warnings.push(Warning::at("input-shadowed", &own.id, message));
        }
        warnings
    }

    /// Whether a bare name of `node` can only be told once all earlier nodes have retired: the last node
    /// that declares it did not bring it, or only D-07's look-up among all results is left (P-20).
    pub(crate) fn needs_retirement(&self, node: NodeRef) -> bool {
        let frame = self.of(node);
        if node.node.0 == 0 || frame.retired >= node.node.0 || !frame.schedule.reads[node.node] {
            return false;
        }
        reads(&frame.graph, self.def(node)).into_iter().any(|path| {
            let (name, whole) = match classify(path, |id| frame.by_id(id).is_some()) {
                Root::Name { name, .. } => (name, true),
                Root::Metadata { name, .. } => (name, false),
                Root::StepOutput { .. } | Root::Inputs { .. } => return false,
            };
            match (frame.runtime_at(name, node.node), frame.last_supplier(node.node, name)) {
                (Some((found, _)), Some(last)) => found < last,
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (None, None) => whole && !self.start.initial.contains_key(name),
            }
        })
    }
}
