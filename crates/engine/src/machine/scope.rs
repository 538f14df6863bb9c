//! What a node's placeholders see (D-01 … D-07): the three layers at its place in list order.

use super::state::State;
use crate::fault::Warning;
use crate::ids::NodeIx;
use crate::schedule::{paths, reads};
use crate::template::{Layers, Path, Root, Seg, StepView, classify};
use serde_json::Value;
use std::collections::HashSet;

/// The three layers as the node at `at` observes them.
pub(crate) struct Scope<'a> {
    pub(crate) state: &'a State,
    pub(crate) at: NodeIx,
}

impl Layers for Scope<'_> {
    fn is_step(&self, id: &str) -> bool {
        self.state.schedule.by_id.contains_key(id)
    }
    fn step(&self, id: &str) -> StepView<'_> {
        match self.state.schedule.by_id.get(id) {
            Some(&node) if node < self.at => match self.state.done(node) {
                Some(done) if done.skipped => StepView::NotRun,
                Some(done) if done.fault.is_none() => StepView::Output(&done.output),
                Some(_) => StepView::Failed,
                None => StepView::NotRun,
            },
            _ => StepView::NotRun,
        }
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.state.runtime_at(name, self.at).map(|(_, value)| value)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.state.start.initial.get(name)
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        let (node, ()) = self.state.fields.get(name)?.range(..self.at).next_back()?;
        self.state.done(*node)?.output.get(name)
    }
    fn names(&self) -> Vec<String> {
        let runtime = self.state.runtime.iter().filter(|(_, by)| by.range(..self.at).next().is_some());
        let mut names: Vec<String> = runtime.map(|(name, _)| name.to_string()).collect();
        names.extend(self.state.start.initial.keys().cloned());
        let earlier = self.state.graph.nodes.iter().take_while(|(ix, _)| *ix < self.at);
        names.extend(earlier.map(|(_, node)| node.id.to_string()));
        names.sort();
        names.dedup();
        names
    }
}

impl State {
    /// The value of a name of `runtime_metadata` before `at`, with the node it came from.
    pub(crate) fn runtime_at(&self, name: &str, at: NodeIx) -> Option<(NodeIx, &Value)> {
        let (node, field) = self.runtime.get(name)?.range(..at).next_back()?;
        Some((*node, self.done(*node)?.output.get(field.as_ref())?))
    }

    /// D-07: bare names of a node that is to start which the first layer has, too, and an earlier node's output brought
    /// without declaring it. What is declared the checker has told.
    pub(crate) fn shadowed(&self, node: NodeIx) -> Vec<Warning> {
        if self.start.edition < 1 || self.start.initial.is_empty() || !self.schedule.reads[node] {
            return Vec::new();
        }
        let (mut warnings, mut seen) = (Vec::new(), HashSet::new());
        let own = &self.graph.nodes[node];
        for path in paths(&self.graph, own) {
            let Root::Name { name, .. } = classify(path, |id| self.schedule.by_id.contains_key(id)) else {
                continue;
            };
            let runtime = self.runtime.get(name).filter(|_| self.start.initial.contains_key(name));
            let Some((by, field)) = runtime.and_then(|by| by.range(..node).next_back()) else { continue };
            let declared = self.schedule.last_supplier[node].iter().find(|(known, _)| known.as_ref() == name);
            if declared.is_some_and(|(_, last)| by <= last) || !seen.insert(path) {
                continue;
            }
            let by = &self.graph.nodes[*by].id;
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
    pub(crate) fn needs_retirement(&self, node: NodeIx) -> bool {
        if node.0 == 0 || self.retired >= node.0 || !self.schedule.reads[node] {
            return false;
        }
        reads(&self.graph, &self.graph.nodes[node]).into_iter().any(|path| {
            let (name, whole) = match classify(path, |id| self.schedule.by_id.contains_key(id)) {
                Root::Name { name, .. } => (name, true),
                Root::Metadata { name, .. } => (name, false),
                Root::StepOutput { .. } | Root::Inputs { .. } => return false,
            };
            let suppliers = &self.schedule.last_supplier[node];
            let last = suppliers.iter().find(|(known, _)| known.as_ref() == name).map(|(_, node)| *node);
            match (self.runtime_at(name, node), last) {
                (Some((found, _)), Some(last)) => found < last,
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (None, None) => whole && !self.start.initial.contains_key(name),
            }
        })
    }
}
