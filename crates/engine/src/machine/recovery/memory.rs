//! What a flow remembers of its recovery.

use crate::effect::EffectId;
use crate::fault::Fault;
use crate::graph::Action;
use crate::ids::MessageIx;
use crate::template::JsonTemplate;
use serde_json::Value;
use std::sync::Arc;

/// What a recovering flow remembers. Flows that never fail have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecoveryState {
    /// What the recovery itself ran into since the node's last turn: the model, the compiler.
    pub(super) recovery_fault: Option<Fault>,
    /// Whether trying again may mend the last fault of a call (D-17).
    pub(super) transient: bool,
    /// The call that failed last: its tool, and its arguments as far as they were resolved.
    pub(super) failed: Option<(Arc<str>, Value)>,
    /// The call to try, as it was decided last.
    pub(super) attempt: Option<Attempt>,
    /// The last decision, and whether steps came along.
    pub(super) decision: Option<(Action, bool)>,
    /// What a replan is meant to do.
    pub(super) strategy: Option<Arc<str>>,
    /// The model's last reply on the scratch thread.
    pub(super) reply: Option<MessageIx>,
    /// Decisions of a model to call again.
    pub(super) retries: u32,
    /// Decisions of a model to change the definition.
    pub(super) repairs: u32,
    /// Rounds of reflection that began.
    pub(super) reflections: u32,
    /// Alternatives that the ladder has used.
    pub(super) rungs: usize,
    /// What the compiler said against the last steps.
    pub(super) diagnostics: Option<Value>,
    /// Lists of steps that were refused since it was decided to ask for some (D-20, D-21).
    pub(super) refused: u32,
    /// The compiled nodes, by the effect that compiled them.
    pub(super) compiled: Option<(EffectId, Arc<Value>)>,
}

/// A call that was decided on.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) tool: Arc<str>,
    /// `None`: those of the node's own call.
    pub(super) args: Option<Result<JsonTemplate, Fault>>,
    pub(super) timeout_s: Option<f64>,
}
