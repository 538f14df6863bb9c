//! What a finished node leaves: kept as long as its run is known, so what is rare is apart.

use super::children::Children;
use super::reuse::Records;
use super::state::{Publication, Visit};
use crate::fault::Fault;
use crate::ids::LeafIx;
use crate::message::Thread;
use serde_json::Value;
use std::sync::Arc;

/// What a finished node left.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) output: Value,
    pub(crate) fault: Option<Box<Fault>>,
    /// Whether the fault ends the run.
    pub(crate) fatal: bool,
    /// It did not run (D-16).
    pub(crate) skipped: bool,
    pub(crate) attempts: u32,
    /// Dropped when the node retires.
    pub(crate) records: Records,
    pub(crate) finished_at: i64,
    /// What most nodes do not leave.
    pub(crate) more: Option<Box<More>>,
}

/// What some finished nodes left.
#[derive(Debug, Default)]
pub(crate) struct More {
    pub(crate) publication: Option<Box<Publication>>,
    /// For a fatal fault: its own messages.
    pub(crate) partial: Option<Thread>,
    /// The tool that gave its result, or failed last, where it need not be the node's own.
    pub(crate) tool: Option<Arc<str>>,
    /// Of one that failed while it waited for frames: all of it, to go on in place (E-36).
    pub(crate) interrupted: Option<Box<Visit>>,
    /// The frames that it opened, as they ended, and its leaf that did: for who looks at the run (W-03).
    pub(crate) left: Option<Box<Left>>,
}

/// The frames of a leaf that has left them.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) leaf: LeafIx,
    pub(crate) children: Children,
}

/// Each node leaves one, for as long as its run is known.
const _: () = assert!(size_of::<Done>() <= 112);

impl More {
    /// `None` if there is nothing.
    pub(crate) fn kept(self) -> Option<Box<Self>> {
        let any = self.publication.is_some() || self.partial.is_some();
        let any = any || self.tool.is_some() || self.interrupted.is_some() || self.left.is_some();
        any.then(|| Box::new(self))
    }
}

impl Done {
    pub(crate) fn publication(&self) -> Option<&Publication> {
        self.more.as_ref()?.publication.as_deref()
    }
    pub(crate) fn partial(&self) -> Option<&Thread> {
        self.more.as_ref()?.partial.as_ref()
    }
    pub(crate) fn take_interrupted(&mut self) -> Option<Box<Visit>> {
        self.more.as_mut()?.interrupted.take()
    }
    pub(crate) fn tool(&self) -> Option<&Arc<str>> {
        self.more.as_ref()?.tool.as_ref()
    }
}
