//! What a live leaf is about: the model that it asks, the calls that it makes, the person that it waits for.

use crate::effect::{EffectId, Effects, Failure, ModelReply};
use crate::fault::Fault;
use crate::ids::ThreadIx;
use crate::message::{Entry, ToolCall};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a node published (P-18).
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// Where the message went, when it was not the node's own thread.
    pub(crate) to: Option<(ThreadIx, Entry)>,
    /// The node's own thread, which is the key.
    pub key: ThreadIx,
    /// The label of the publishing node.
    pub label: Arc<str>,
    /// What stands before the result in the message.
    pub description: Arc<str>,
    /// The result.
    pub content: Arc<str>,
}

#[derive(Clone, Debug)]
pub(crate) enum AskPhase {
    Open,
    /// The answer that is to be taken; of an approval a no.
    Said(Box<Value>),
    /// Nobody answered in time (E-37).
    Expired,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelPhase {
    pub(crate) effect: EffectId,
    pub(crate) got: Option<Got>,
    /// What came of its earlier attempts, if there were some.
    pub(crate) earlier: Option<Box<EarlierAttempts>>,
}

/// What came of the attempts before the one that is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlierAttempts {
    /// How many they were.
    pub(crate) count: u32,
    /// Transport faults of the current question.
    pub(crate) faults: u32,
    /// Waits between them so far, in milliseconds (E-14).
    pub(crate) waited_ms: u64,
    /// Why the attempt before this one failed, if it did.
    pub(crate) last_fault: Option<Box<str>>,
    /// Empty replies so far (E-27).
    pub(crate) empties: u32,
    /// The reply that did not fit the schema, and why (E-33).
    pub(crate) refused: Option<(Arc<ModelReply>, String)>,
}

impl ModelPhase {
    /// A question that is asked for the first time.
    pub(crate) fn first(effect: EffectId) -> Self {
        Self { effect, got: None, earlier: None }
    }
    /// The attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.count) + 1
    }
    pub(crate) fn faults(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.faults)
    }
    pub(crate) fn waited_ms(&self) -> u64 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.waited_ms)
    }
    pub(crate) fn empties(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.empties)
    }
    pub(crate) fn refused(&self) -> Option<&(Arc<ModelReply>, String)> {
        self.earlier.as_ref()?.refused.as_ref()
    }
    /// What the attempt before this one came to, for people.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        let earlier = self.earlier.as_ref()?;
        match (&earlier.last_fault, &earlier.refused) {
            (Some(fault), _) => Some(fault),
            (None, Some(_)) => Some("a reply that does not fit the output_schema"),
            (None, None) => (earlier.empties > 0).then_some("an empty reply"),
        }
    }
    pub(crate) fn earlier_mut(&mut self) -> &mut EarlierAttempts {
        self.earlier.get_or_insert_default()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Got {
    Reply(Arc<ModelReply>),
    Failed(Box<Failure>, u32),
}

/// The calls of one leaf. They begin in order; their results are appended in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsPhase {
    pub(crate) slots: Vec<Slot>,
    /// The first slot that has not begun.
    pub(crate) next: usize,
    /// Slots not done; of them, those that look at the world, and those that change it.
    pub(crate) open: usize,
    pub(crate) open_impure: usize,
    pub(crate) open_writes: usize,
    /// Slots with something to settle.
    pub(crate) unsettled: VecDeque<usize>,
    pub(crate) appended: usize,
    /// For a fixed call: whether its assistant message is on the thread.
    pub(crate) call_appended: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) call: ToolCall,
    pub(crate) effect: EffectId,
    pub(crate) attempt: u32,
    /// Waits between its attempts so far, in milliseconds (P-24).
    pub(crate) waited_ms: u64,
    /// Why the attempt before this one failed.
    pub(crate) last_answer: Option<Box<str>>,
    pub(crate) effects: Effects,
    pub(crate) approved: bool,
    /// A person does not want it to run again: what it came to before stands (E-29).
    pub(crate) declined: bool,
    /// Its place among the requests of its node.
    pub(crate) order: u32,
    pub(crate) state: SlotState,
}

#[derive(Clone, Debug)]
pub(crate) enum SlotState {
    Todo,
    Asked,
    Running,
    /// To be tried again or given up.
    Failed(Box<Failure>, u32),
    /// Nobody knows whether it happened (E-05); `true` once a person is asked.
    Lost(bool),
    Done(Result<Arc<Value>, Box<Fault>>),
}

impl Slot {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, SlotState::Running)
    }
}
