//! Where the outcomes of a run that began anew come from, and why what was not taken is asked for again (E-29): said where it is
//! decided, as data.

use super::laid::Standing;
use super::said::Key;
use super::spot::Spot;
use crate::effect::{EffectId, Outcome};
use crate::ids::NodeIx;
use crate::machine::usage::Usage;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// What stands behind a request of a fork, or of a run that was resumed.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// It is one of the events that a fork shares with its source, and its outcome stands.
    Kept(Saved),
    /// It took a recorded outcome.
    Reused(Saved),
    /// It took one that the fork gave another text (E-19).
    Edited(Saved),
    /// It was asked for again, or for the first time.
    Afresh(Afresh),
}

/// What did not have to be asked for again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Saved {
    /// What it had used.
    pub usage: Usage,
    /// How long it had been under way, in milliseconds, where that was recorded.
    pub worked_ms: u64,
}

impl Saved {
    /// Of one outcome.
    pub(crate) fn of(outcome: &Outcome, worked_ms: u32) -> Self {
        let mut usage = Usage::default();
        if let Some(tokens) = outcome.tokens() {
            usage.tokens.add(tokens);
        }
        match outcome {
            Outcome::Reply(_) => usage.model_calls = 1,
            Outcome::Output(_) | Outcome::Failed(_) => usage.tool_calls = 1,
            // Operations of Selvedge's own are no tool calls (E-40).
            Outcome::Operated(_) => {}
        }
        Self { usage, worked_ms: worked_ms.into() }
    }

    /// Adds what another one was.
    pub fn add(&mut self, other: &Saved) {
        self.usage.model_calls += other.usage.model_calls;
        self.usage.tool_calls += other.usage.tool_calls;
        self.usage.tokens.add(&other.usage.tokens);
        self.worked_ms += other.worked_ms;
    }
}

/// Why a request was not answered by what was recorded. Nodes are named as events name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Afresh {
    /// The recording has nothing of this node here: it is new, or the source had not come to it.
    NeverRecorded,
    /// It was under way where the recording ends.
    InFlight,
    /// The recording has it begun, and nothing that came of it: it had failed, or was asked about.
    NoResult,
    /// What was recorded for such requests has been taken already.
    Taken,
    /// Another model answers.
    Model,
    /// Other tools are offered to the model.
    Tools,
    /// The tool is another version.
    ToolVersion {
        /// Its name.
        tool: Arc<str>,
    },
    /// The document says something else at this node.
    Edited {
        /// The node.
        node: Arc<str>,
    },
    /// The run was given other inputs.
    Inputs,
    /// A message of this node was edited.
    Message {
        /// The node.
        node: Arc<str>,
    },
    /// This node, which it follows from or must see the effects of, ran afresh.
    Upstream {
        /// The node.
        node: Arc<str>,
    },
    /// What the operation changes outside belongs to the run that asked for it (E-40).
    Operation,
    /// It is something else that is asked for.
    Different,
}

/// How a request differs from all that was recorded at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlike {
    NeverRecorded,
    InFlight,
    NoResult,
    Taken,
    Model,
    Tools,
    Version,
    /// What the node itself says of the request.
    Settings,
    /// Messages, or arguments.
    Said,
    /// A call of that node ran afresh.
    After(Spot),
    Operation,
}

/// The parts of a request, to tell in which one it differs: digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Face {
    /// Which model; of a call which tool.
    pub(crate) who: u64,
    /// The tools that are offered; of a call the tool's version.
    pub(crate) tools: u64,
    /// What the node says of the request.
    pub(crate) settings: u64,
    /// The messages, or the arguments.
    pub(crate) said: u64,
}

impl Face {
    /// The part of a digest that is kept to tell requests apart.
    pub(crate) fn part(key: Key) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = key;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// How many parts are the same.
    pub(crate) fn alike(&self, other: &Face) -> usize {
        let same = [
            self.who == other.who,
            self.tools == other.tools,
            self.settings == other.settings,
            self.said == other.said,
        ];
        same.into_iter().filter(|same| *same).count()
    }

    /// The first part in which a model's request differs from a recorded one.
    pub(crate) fn unlike(&self, recorded: &Face) -> Unlike {
        match () {
            () if self.settings != recorded.settings => Unlike::Settings,
            () if self.said != recorded.said => Unlike::Said,
            () if self.who != recorded.who => Unlike::Model,
            () if self.tools != recorded.tools => Unlike::Tools,
            () => Unlike::Taken,
        }
    }
}

/// What became of the requests of a run that began anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    pub(super) origins: HashMap<EffectId, Origin>,
    pub(super) saved: Saved,
    /// What stands of a fork's source.
    pub(super) standing: Option<Arc<Standing>>,
    /// Nodes that asked for something afresh, and those of which a message was edited, by what events call them.
    pub(super) afresh: HashSet<Arc<str>>,
    pub(super) messages: HashSet<Arc<str>>,
    /// Of a fork with another graph: the nodes of it that the source's does not have, or has with another definition.
    pub(super) edited: Option<Edited>,
    /// Whether the run was given other inputs.
    pub(super) inputs: bool,
}

impl Lineage {
    /// Outcomes of shared events stand.
    pub(super) fn stands(&mut self, standing: Arc<Standing>) {
        self.standing = Some(standing);
    }
}

/// What another document says that the recorded one did not.
#[derive(Clone, Debug)]
pub(super) struct Edited {
    pub(super) root: BTreeSet<NodeIx>,
    /// Nodes of inner graphs that are as they were, by id and definition.
    pub(super) inner: HashSet<(Arc<str>, String)>,
}
