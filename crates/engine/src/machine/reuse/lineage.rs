//! Where the outcomes of a run that began anew come from, and why what was not taken is asked for again (E-29): said where it is
//! decided, as data.

use super::laid::Standing;
use super::recording::changed;
use super::said::Key;
use super::spot::Spot;
use crate::effect::{EffectId, Outcome};
use crate::graph::Graph;
use crate::ids::{LeafIx, NodeIx, NodeRef};
use crate::machine::state::State;
use crate::machine::usage::Usage;
use crate::schedule::paths;
use crate::template::{Root, classify};
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
    origins: HashMap<EffectId, Origin>,
    saved: Saved,
    /// What stands of a fork's source.
    standing: Option<Arc<Standing>>,
    /// Nodes that asked for something afresh, and those of which a message was edited, by what events call them.
    afresh: HashSet<Arc<str>>,
    messages: HashSet<Arc<str>>,
    /// Of a fork with another graph: the nodes of it that the source's does not have, or has with another definition.
    edited: Option<Edited>,
    /// Whether the run was given other inputs.
    inputs: bool,
}

impl Lineage {
    /// Outcomes of shared events stand.
    pub(super) fn stands(&mut self, standing: Arc<Standing>) {
        self.standing = Some(standing);
    }
}

/// What another document says that the recorded one did not.
#[derive(Clone, Debug)]
struct Edited {
    root: BTreeSet<NodeIx>,
    /// Nodes of inner graphs that are as they were, by id and definition.
    inner: HashSet<(Arc<str>, String)>,
}

/// For who asks.
impl State {
    /// Where the outcome of a request comes from, or why it was asked for afresh, in a run that began anew. `None` for what was asked
    /// before that, and for tries of the same request behind the first.
    pub fn origin(&self, effect: &EffectId) -> Option<Origin> {
        let lineage = self.lineage.as_ref()?;
        let stands = || Some(Origin::Kept(lineage.standing.as_ref()?.kept(effect)?));
        lineage.origins.get(effect).cloned().or_else(stands)
    }

    /// What the run did not have to ask for again: what stands of the events that a fork shares, and what was taken since.
    pub fn saved(&self) -> Saved {
        let Some(lineage) = &self.lineage else { return Saved::default() };
        let mut saved = lineage.standing.as_ref().map(|standing| standing.saved()).unwrap_or_default();
        saved.add(&lineage.saved);
        saved
    }
}

/// As it comes.
impl State {
    /// From here on it is known what becomes of requests.
    pub(crate) fn begin_lineage(&mut self, before: Option<&Arc<Graph>>, inputs: bool) {
        let now = self.graph();
        let edited = before.filter(|before| !Arc::ptr_eq(before, now)).map(|before| Edited {
            root: changed(before, now),
            inner: before
                .graphs
                .values()
                .flat_map(|graph| graph.nodes.values())
                .map(|node| (node.id.clone(), serde_json::json!(node).to_string()))
                .collect(),
        });
        self.lineage = Some(Box::new(Lineage { edited, inputs, ..Lineage::default() }));
    }

    /// The same of a run that is resumed; of a fork what was known before stays.
    pub(crate) fn go_on_with_lineage(&mut self) {
        self.lineage.get_or_insert_default();
    }

    /// A recorded outcome was taken; `edited`: with another text.
    pub(crate) fn note_reused(&mut self, node: NodeRef, effect: &EffectId, saved: Saved, edited: bool) {
        let name = self.name(node);
        if let Some(lineage) = &mut self.lineage {
            lineage.saved.add(&saved);
            let origin = if edited { Origin::Edited(saved) } else { Origin::Reused(saved) };
            lineage.origins.insert(effect.clone(), origin);
            if edited {
                lineage.messages.insert(name);
            }
        }
    }

    /// A request is made: why nothing that was recorded stands for it. To be said before it is.
    pub(crate) fn note_afresh(&mut self, node: NodeRef, effect: &EffectId, unlike: Unlike) {
        if self.lineage.is_none() {
            return;
        }
        let why = self.traced(node, unlike);
        let name = self.name(node);
        if let Some(lineage) = &mut self.lineage {
            lineage.afresh.insert(name);
            lineage.origins.insert(effect.clone(), Origin::Afresh(why));
        }
    }

    fn traced(&self, node: NodeRef, unlike: Unlike) -> Afresh {
        match unlike {
            Unlike::NeverRecorded => Afresh::NeverRecorded,
            Unlike::InFlight => Afresh::InFlight,
            Unlike::NoResult => Afresh::NoResult,
            Unlike::Taken => Afresh::Taken,
            Unlike::Model => Afresh::Model,
            Unlike::Tools => Afresh::Tools,
            Unlike::Operation => Afresh::Operation,
            Unlike::Version => Afresh::ToolVersion { tool: self.called_tool(node).unwrap_or_default() },
            Unlike::After(spot) => match self.node_at_spot(node, spot) {
                Some(node) => Afresh::Upstream { node: self.name(node) },
                None => Afresh::Different,
            },
            Unlike::Settings if self.is_edited(node) => Afresh::Edited { node: self.name(node) },
            Unlike::Settings | Unlike::Said => self.cause(node).unwrap_or(Afresh::Different),
        }
    }

    /// Which tool the next call of a node is of.
    fn called_tool(&self, node: NodeRef) -> Option<Arc<str>> {
        let phase = self.calls(node)?;
        let slot = phase.slots.get(phase.next.saturating_sub(1)).or_else(|| phase.slots.last())?;
        Some(slot.call.name.clone())
    }

    /// A node of the frame of `node`, or of one around it.
    fn node_at_spot(&self, node: NodeRef, spot: Spot) -> Option<NodeRef> {
        let mut at = Some(node);
        while let Some(node) = at {
            if self.spot(node).frame == spot.frame {
                return Some(node.sibling(spot.node));
            }
            at = self.of(node).opened_by.map(|(around, _)| around);
        }
        None
    }

    /// What made a node ask for something else: what stands first on its thread that is not as it was, else what its texts refer to,
    /// else its own definition.
    fn cause(&self, node: NodeRef) -> Option<Afresh> {
        let lineage = self.lineage.as_ref()?;
        let visit = self.visit(node)?;
        let own = self.name(node);
        let said = self.speakers(&visit.thread, 0).flatten();
        let others = said.filter(|author| **author != own).find_map(|author| self.change_of(lineage, author));
        if others.is_some() {
            return others;
        }
        // Its own earlier calls.
        let before = self.speakers(&visit.thread, 0).flatten().any(|author| *author == own);
        let edited = self.is_edited(node);
        if lineage.messages.contains(&own) {
            return Some(Afresh::Message { node: own });
        }
        if before && lineage.afresh.contains(&own) {
            return Some(Afresh::Upstream { node: own });
        }
        let read = self.read_from(node).find_map(|other| self.change_of(lineage, &self.name(other)));
        read.or(edited.then_some(Afresh::Edited { node: own })).or(lineage.inputs.then_some(Afresh::Inputs))
    }

    /// What is not as it was at a node, by what events call it.
    fn change_of(&self, lineage: &Lineage, name: &Arc<str>) -> Option<Afresh> {
        let node = name.clone();
        if lineage.messages.contains(name) {
            return Some(Afresh::Message { node });
        }
        if lineage.afresh.contains(name) {
            return Some(Afresh::Upstream { node });
        }
        self.node_named(name).is_some_and(|node| self.is_edited(node)).then_some(Afresh::Edited { node })
    }

    /// The nodes whose results the texts of a node refer to.
    fn read_from(&self, node: NodeRef) -> impl Iterator<Item = NodeRef> {
        let graph = Arc::clone(&self.of(node).graph);
        let steps: Vec<NodeRef> = graph
            .nodes
            .get(node.node)
            .into_iter()
            .flat_map(|def| paths(&graph, def))
            .filter_map(|path| {
                let known = |id: &str| self.visible_node(node, id).is_some();
                match classify(path, known) {
                    Root::StepOutput { step, .. } => self.visible_node(node, step),
                    _ => None,
                }
            })
            .collect();
        steps.into_iter()
    }

    /// The node of that id in a node's frame, or in those around it.
    fn visible_node(&self, node: NodeRef, id: &str) -> Option<NodeRef> {
        let mut at = Some(node);
        while let Some(node) = at {
            if let Some(found) = self.of(node).by_id(id) {
                return Some(node.sibling(found));
            }
            at = self.of(node).opened_by.map(|(around, _)| around);
        }
        None
    }

    /// Whether the fork's document says something else of a node than the source's did.
    fn is_edited(&self, node: NodeRef) -> bool {
        let Some(edited) = self.lineage.as_ref().and_then(|lineage| lineage.edited.as_ref()) else {
            return false;
        };
        match self.of(node).opened_by {
            None => edited.root.contains(&node.node),
            Some(_) => {
                let def = self.def(node);
                !edited.inner.contains(&(def.id.clone(), serde_json::json!(def).to_string()))
            }
        }
    }

    /// Why the request that a model's node is about to make is not answered by what was recorded.
    pub(crate) fn unlike_model(&self, node: NodeRef, leaf: LeafIx) -> Option<Unlike> {
        self.lineage.as_ref()?;
        self.reusable_model(node, self.visit(node)?, leaf).err()
    }
}
