//! Where outcomes come from, and why the rest is asked for again: told as it comes, and to who asks (E-29).

use super::lineage::{Afresh, Edited, Lineage, Origin, Saved, Unlike};
use super::recording::changed;
use super::spot::Spot;
use crate::effect::EffectId;
use crate::graph::Graph;
use crate::ids::{LeafIx, NodeRef};
use crate::machine::state::State;
use crate::schedule::paths;
use crate::template::{Root, classify};
use std::sync::Arc;

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
        // Who says what on a long thread need not be looked for where the document is as it was.
        lineage.edited.as_ref()?;
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
