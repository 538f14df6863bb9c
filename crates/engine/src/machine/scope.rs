//! What a node's placeholders see (D-01 … D-07): the three layers at its place in list order.

use super::flow::Flow;
use super::frame::Frame;
use super::state::State;
use super::view::RuntimeValue;
use crate::fault::Warning;
use crate::graph::{Act, Leaf};
use crate::ids::{NodeIx, NodeRef};
use crate::schedule::{paths, reads};
use crate::template::{Layers, Path, Root, Seg, StepView, classify, member, normalized};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The three layers as the node at `at` observes them.
pub(crate) struct Scope<'a> {
    pub(crate) state: &'a State,
    pub(crate) at: NodeRef,
}

impl Layers for Scope<'_> {
    fn is_step(&self, id: &str) -> bool {
        self.find_step(id).is_some()
    }
    fn step(&self, id: &str) -> StepView<'_> {
        let Some((at, step)) = self.find_step(id) else { return StepView::NotRun };
        let frame = self.state.of(at);
        match frame.done(step) {
            _ if frame.flow.is_none() && step >= at.node => StepView::NotRun,
            done if self.is_own_variable(at, step) && done.is_none_or(|done| done.fault.is_none()) => {
                self.runtime(id).or_else(|| self.initial(id)).map_or(StepView::NotRun, StepView::Output)
            }
            Some(done) if done.skipped => StepView::NotRun,
            Some(done) if done.fault.is_none() => StepView::Output(&done.output),
            Some(done) => StepView::Failed(&done.output),
            None => StepView::NotRun,
        }
    }
    fn errors(&self, id: &str) -> Option<&Value> {
        let (at, step) = self.find_step(id)?;
        self.state.of(at).done(step)?.errors()
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        for at in self.around() {
            let frame = self.state.of(at);
            let value = frame.runtime_value(name, at.node);
            if value.is_some() || frame.is_given(name) {
                return value;
            }
        }
        None
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        let inputs = self.around().find_map(|at| self.state.of(at).input(name));
        inputs.or_else(|| self.state.start.initial.get(name))
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        self.around().find_map(|at| {
            let frame = self.state.of(at);
            let node = match &frame.flow {
                Some(flow) => flow.brought_by(name)?,
                None => *frame.dataflow.as_ref()?.fields.get(name)?.range(..at.node).next_back()?.0,
            };
            member(frame.done(node)?.output.as_object()?, name)
        })
    }
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.state.start.initial.keys().cloned().collect();
        for at in self.around() {
            let frame = self.state.of(at);
            names.extend(frame.inputs.iter().flat_map(|inputs| inputs.names()).map(|name| name.to_string()));
            names.extend(frame.runtime_names(at.node).map(|name| name.to_string()));
            let known = |ix: NodeIx| match frame.flow {
                Some(_) => frame.nodes.get(ix).is_some(),
                None => ix < at.node,
            };
            let nodes = frame.graph.nodes.iter().filter(|(ix, _)| known(*ix));
            names.extend(nodes.map(|(_, node)| node.id.to_string()));
        }
        names.sort();
        names.dedup();
        names
    }
}

impl<'a> Scope<'a> {
    /// The node, and those that opened the frames it is in, from the inside out: what each of them sees it sees.
    fn around(&self) -> impl Iterator<Item = NodeRef> + use<'a> {
        let state = self.state;
        std::iter::successors(Some(self.at), move |at| state.of(*at).opened_by.map(|(node, _)| node))
    }

    /// Whether a node of the frame around `at` sets the variable of its own id: that is what its name means (D-07).
    fn is_own_variable(&self, at: NodeRef, node: NodeIx) -> bool {
        let def = &self.state.of(at).graph.nodes[node];
        let sets =
            |leaf: &Leaf| matches!(&leaf.act, Act::Set(name, _) | Act::Compute(name, _) if *name == def.id);
        self.state.start.edition >= 7 && def.passes && def.body.leaves.values().any(sets)
    }

    /// The step of that id, and who of those around sees it. Names of inner frames hide steps of outer ones.
    fn find_step(&self, id: &str) -> Option<(NodeRef, NodeIx)> {
        for at in self.around() {
            let frame = self.state.of(at);
            if let Some(step) = frame.by_id(id) {
                return Some((at, step));
            }
            if frame.is_given(id) || frame.runtime_value(id, at.node).is_some() {
                return None;
            }
        }
        None
    }
}

impl Frame {
    /// The value of a name of `runtime_metadata`, as a node sees it.
    fn runtime_value(&self, name: &str, at: NodeIx) -> Option<&Value> {
        match &self.flow {
            Some(flow) => flow.variable(name),
            None => self.runtime_at(name, at).map(|(_, value)| value),
        }
    }

    fn runtime_names(&self, at: NodeIx) -> impl Iterator<Item = &Arc<str>> {
        let variables = self.flow.iter().flat_map(Flow::variable_names);
        let runtime = self.dataflow.iter().flat_map(|dataflow| &dataflow.runtime);
        let runtime = runtime.filter(move |(_, by)| by.range(..at).next().is_some());
        variables.chain(runtime.map(|(name, _)| name))
    }

    /// The value of a name of `runtime_metadata` before `at`, with the node it came from.
    pub(crate) fn runtime_at(&self, name: &str, at: NodeIx) -> Option<(NodeIx, &Value)> {
        let (node, field) = self.dataflow.as_ref()?.runtime.get(name)?.range(..at).next_back()?;
        Some((*node, member(self.done(*node)?.output.as_object()?, field)?))
    }

    /// All of `runtime_metadata` before `at`.
    pub(crate) fn runtime_values(&self, at: NodeIx) -> BTreeMap<&Arc<str>, RuntimeValue<'_>> {
        let set = self.flow.iter().flat_map(|flow| {
            flow.variable_names().filter_map(|name| {
                Some((name, RuntimeValue { value: flow.variable(name)?, node: None, live: None }))
            })
        });
        let names = self.dataflow.iter().flat_map(|dataflow| dataflow.runtime.keys());
        let brought = names.filter_map(|name| {
            let (node, value) = self.runtime_at(name, at)?;
            let node = Some(Cow::Borrowed(&*self.graph.nodes[node].id));
            Some((name, RuntimeValue { value, node, live: None }))
        });
        set.chain(brought).collect()
    }

    /// The last earlier node that declares a bare name that `node` reads.
    pub(crate) fn last_supplier(&self, node: NodeIx, name: &str) -> Option<NodeIx> {
        let mut suppliers = self.schedule.last_supplier[node].iter();
        suppliers.find(|(known, _)| known.as_ref() == name).map(|(_, node)| *node)
    }

    /// Sets the names of `runtime_metadata` that a node's result brings, and notes its other fields.
    pub(crate) fn sync(&mut self, node: NodeIx, object: &Map<String, Value>, names: &[Arc<str>]) {
        let id = self.graph.nodes[node].id.clone();
        let Some(dataflow) = &mut self.dataflow else { return };
        for name in names {
            let own: Arc<str> = normalized(name).into();
            let prefixed: Arc<str> = format!("{id}_{own}").into();
            dataflow.runtime.entry(prefixed).or_default().insert(node, name.clone());
            dataflow.runtime.entry(own).or_default().insert(node, name.clone());
        }
        for key in object.keys() {
            let key = normalized(key);
            match dataflow.fields.get_mut(&*key) {
                Some(nodes) => drop(nodes.insert(node, ())),
                None => drop(dataflow.fields.entry(key.into()).or_default().insert(node, ())),
            }
        }
    }
}

impl State {
    /// D-07: bare names of a node that is to start which the first layer has, too, and an earlier node's output brought
    /// without declaring it. What is declared the checker has told.
    pub(crate) fn shadowed(&self, node: NodeRef) -> Vec<Warning> {
        let frame = self.of(node);
        if frame.flow.is_some() {
            return Vec::new();
        }
        if self.start.edition < 1 || self.start.initial.is_empty() || !frame.schedule.reads[node.node] {
            return Vec::new();
        }
        let (mut warnings, mut seen) = (Vec::new(), HashSet::new());
        let own = self.def(node);
        for path in paths(&frame.graph, own) {
            let Root::Name { name, .. } = classify(path, |id| frame.by_id(id).is_some()) else {
                continue;
            };
            let runtime = frame.dataflow.as_ref().and_then(|dataflow| dataflow.runtime.get(name));
            let runtime = runtime.filter(|_| self.start.initial.contains_key(name));
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

    /// P-05: the warning of a node that is to start and takes messages over from a thread that is empty.
    pub(crate) fn takes_nothing(&self, node: NodeRef) -> Option<Warning> {
        if self.start.edition < 7 {
            return None;
        }
        let from = self.leaves(node).find_map(|leaf| match leaf.act {
            Act::Open { from, .. } => Some(from),
            _ => None,
        })?;
        let frame = self.of(node);
        let is_empty = frame.thread_after(from, frame.schedule.open_at[node.node]).is_empty();
        is_empty.then(|| {
            let message =
                format!("it takes no message over: thread `{}` is empty", self.thread_name(node, from));
            Warning::at("empty-slice", &self.def(node).id, message)
        })
    }

    /// Whether a bare name of `node` can only be told once all earlier nodes have retired: the last node
    /// that declares it did not bring it, or only D-07's look-up among all results is left (P-20).
    pub(crate) fn needs_retirement(&self, node: NodeRef) -> bool {
        let frame = self.of(node);
        if frame.flow.is_some()
            || node.node.0 == 0
            || frame.retired() >= node.node.0
            || !frame.schedule.reads[node.node]
        {
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
