//! Bindings: which version a tool's name means is scope of a frame (E-41).
//!
//! A frame begins with the bindings of the frame around it, as they were when it was opened. What is bound in a flow holds for
//! the rest of it; whoever takes over a frame's threads, a join or the frame around a loop, takes over its bindings as well.

use super::state::State;
use crate::effect::ToolDef;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::is_operation;
use crate::ids::NodeRef;
use crate::schedule::no_bindings;
use crate::template::JsonTemplate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an event binds: by name a definition, or `None` where a binding is taken back.
type Changes = BTreeMap<Arc<str>, Option<Arc<ToolDef>>>;

impl State {
    /// The event of a node that binds tools.
    pub(super) fn derive_bind(&self, node: NodeRef, tools: &JsonTemplate) -> Event {
        let changes = match self.of(node).flow {
            Some(_) => self.resolved(node, tools).and_then(|tools| self.read_bindings(node, tools)),
            None => Err(wrong(no_bindings(&self.def(node).id))),
        };
        match changes {
            Ok(tools) => Event::Bound { node: self.name(node), tools },
            Err(fault) => self.failed(node, fault),
        }
    }

    fn read_bindings(&self, node: NodeRef, tools: Value) -> Result<Changes, Fault> {
        let id = &self.def(node).id;
        let Value::Object(tools) = tools else {
            return Err(wrong(format!("what `{id}` binds is no object of tool definitions by name")));
        };
        let read = tools.into_iter().map(|(name, tool)| {
            if name.is_empty() || is_operation(&name) {
                return Err(wrong(format!("`{id}` can't bind `{name}`: no tool may be called that")));
            }
            if tool.is_null() {
                return Ok((name.into(), None));
            }
            // Not with the parser's words: they are another's, and a replay has to find the same ones (E-18).
            let tool: ToolDef = serde_json::from_value(tool)
                .map_err(|_| wrong(format!("what `{id}` binds as `{name}` is no tool definition")))?;
            match *tool.name == *name {
                true => Ok((tool.name.clone(), Some(Arc::new(tool)))),
                false => Err(wrong(format!("what `{id}` binds as `{name}` is called `{}`", tool.name))),
            }
        });
        read.collect()
    }

    pub(super) fn bind(&mut self, node: NodeRef, tools: &Changes) {
        let frame = &mut self.frames[node.frame];
        if frame.flow.is_none() {
            return self.misfit(&self.name(node));
        }
        let bindings = frame.bindings_mut();
        for (name, tool) in tools {
            match tool {
                Some(tool) => drop(bindings.insert(name.clone(), Arc::clone(tool))),
                None => drop(bindings.remove(name)),
            }
        }
        self.move_on(node);
    }

    /// What a name is bound to where a node is.
    pub(crate) fn bound(&self, node: NodeRef, name: &str) -> Option<&Arc<ToolDef>> {
        self.of(node).bindings()?.get(name)
    }

    /// The tools that a node's model is offered, in this order: those that the node names and there are, and what is bound, if
    /// the node says so (E-41).
    pub(crate) fn offered(&self, node: NodeRef) -> impl Iterator<Item = &Arc<ToolDef>> {
        let flow = &self.def(node).body;
        let named = flow.tools.iter().filter_map(move |name| self.tool(node, name));
        let bound = self.of(node).bindings().into_iter().filter(|_| flow.offers_bound);
        named.chain(bound.flat_map(|bound| bound.values()).filter(|tool| !flow.tools.contains(&tool.name)))
    }

    /// Whether one of these tools is called so.
    pub(crate) fn offers(&self, node: NodeRef, name: &Arc<str>) -> bool {
        let flow = &self.def(node).body;
        if flow.tools.contains(name) {
            return self.tool(node, name).is_some();
        }
        flow.offers_bound && self.bound(node, name).is_some()
    }

    /// Why a bound version is not called in a dataflow: its order was derived from what the graph says of the name, and this one
    /// does more to the world (E-22).
    pub(super) fn does_more(&self, node: NodeRef, tool: &ToolDef) -> Option<Fault> {
        let frame = self.of(node);
        if frame.flow.is_some() || frame.bindings().is_none() {
            return None;
        }
        let foreseen = frame.graph.effects(self.def(node), &tool.name);
        (self.effects(node, &tool.name) > foreseen).then(|| {
            let (id, name) = (&self.def(node).id, &tool.name);
            wrong(format!("`{name}` is bound to a version that does more to the world than the one `{id}` was ordered by"))
        })
    }
}

fn wrong(message: String) -> Fault {
    Fault::new(FaultKind::InputError, message)
}
