//! How far a frame has come whose nodes follow ways: one node is live at a time (E-34).

use crate::ids::NodeIx;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a flow has come.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The node that is live, or that was when the flow ended.
    pub(crate) at: NodeIx,
    /// It has ended, and it is not decided which one comes next.
    pub(super) between: bool,
    /// The flow has ended; why it has failed, if it has, is the frame's fault.
    pub(super) ended: bool,
    /// The node whose result is the frame's, as things stand.
    pub(crate) last: Option<NodeIx>,
    /// What its nodes have set and brought, once they have.
    pub(super) scope: Option<Box<FlowScope>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FlowScope {
    /// `runtime_metadata`: what nodes have set and brought.
    pub(super) variables: BTreeMap<Arc<str>, Value>,
    /// Fields of results that were not declared, by name (D-07).
    pub(super) fields: BTreeMap<Arc<str>, NodeIx>,
}

impl Flow {
    /// One that has not begun.
    pub(crate) fn new() -> Self {
        Self { at: NodeIx(0), between: false, ended: false, last: None, scope: None }
    }
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.scope.as_ref()?.variables.get(name)
    }
    pub(crate) fn variable_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.scope.iter().flat_map(|scope| scope.variables.keys())
    }
    pub(crate) fn set_variable(&mut self, name: Arc<str>, value: Value) {
        self.scope.get_or_insert_default().variables.insert(name, value);
    }
    pub(crate) fn take_variables(&mut self) -> BTreeMap<Arc<str>, Value> {
        self.scope.as_mut().map(|scope| std::mem::take(&mut scope.variables)).unwrap_or_default()
    }
    /// The last node whose result has a field of that name which was not declared.
    pub(crate) fn brought_by(&self, field: &str) -> Option<NodeIx> {
        self.scope.as_ref()?.fields.get(field).copied()
    }
    pub(super) fn brings(&mut self, field: Arc<str>, node: NodeIx) {
        self.scope.get_or_insert_default().fields.insert(field, node);
    }
}
