//! The pure, journaled state machine that every Selvedge document runs on.
//!
//! A document lowers to a [`graph::Graph`]; a run of it is a [`State`], a fold of [`event::Event`]s. The
//! engine does no I/O, reads no clock and draws no randomness (E-02): a driver feeds inputs, appends the
//! events to a journal, and dispatches the effects they request.
//!
//! ```text
//! accept(input) -> event    one input, recorded
//! step() -> event?          the next derived event, until there is none
//! apply(event)              the only mutation
//! request(effect)           the request an effect stands for, built from references
//! ```
//!
//! # Example
//! A graph of one node, driven by hand. A real driver appends each batch of events to a journal before it
//! dispatches what they request (E-04).
//! ```
//! use selvedge_engine::{Graph, Input, ModelReply, Outcome, RunStatus, State};
//! use std::sync::Arc;
//!
//! let graph: Graph = serde_json::from_str(r#"{
//!     "threads": [{"name": "main", "first": "Say hello"}],
//!     "nodes": [{"id": "n1", "name": "greet", "body": {"thread": 0, "leaves": [
//!         {"name": "model", "act": {"infer": {}}}]}}],
//!     "tools": {}}"#)?;
//! let mut state = State::new(Arc::new(graph));
//! let mut inputs = vec![Input::Start(Box::default())];
//! while let Some(event) = inputs.pop().and_then(|input| state.accept(input)) {
//!     state.apply(&event);
//!     while let Some(event) = state.step() {
//!         state.apply(&event);
//!     }
//!     if let Some(effect) = state.pending().keys().next().cloned() {
//!         let reply = ModelReply { text: "Hello!".into(), ..ModelReply::default() };
//!         inputs.push(Input::Complete(effect, Outcome::Reply(Arc::new(reply)), 0, None, None));
//!     }
//! }
//! assert_eq!(state.status(), RunStatus::Completed);
//! assert_eq!(*state.view().output(), "Hello!");
//! # Ok::<(), serde_json::Error>(())
//! ```

#![allow(
    clippy::indexing_slicing,
    reason = "indexing goes through `ids::Table`, where a bad index is a bug that poisons the run (E-17)"
)]

pub mod effect;
pub mod event;
pub mod expression;
pub mod fault;
pub mod graph;
mod hidden;
pub mod ids;
pub mod json;
pub mod library;
mod machine;
pub mod message;
mod messages;
pub mod place;
pub mod schedule;
pub mod schema;
pub mod template;

#[cfg(test)]
mod work;

pub use effect::*;
pub use event::{
    Asked, Body, Budget, Chooser, EDITION, End, Event, Fork, Input, JoinOutcome, Joined, Limits,
    PersonMessage, Record, Recovered, Replaced, StandIn, Start,
};
pub use fault::{Fault, FaultKind, Warning};
pub use graph::{Action, AskKind, Graph};
pub use hidden::is_hidden;
pub use ids::*;
pub use machine::{
    Afresh, Asking, Declined, JoinView, MessageRefusal, NodeSoFar, NodeView, Origin, PathEnd, PathView,
    PendingEffect, Place, Publication, Published, Recording, RunStatus, RuntimeValue, Saved, State,
    StepResult, TOKENS_AROUND, Usage, View, answered, back_off, done, reasoned, shown_at, tool_text,
};
pub use message::{Message, Role, Slice, Thread, ToolCall};
pub use messages::{Messages, ThreadView};
pub use place::{AskPlace, EffectPlace, FramePath};
