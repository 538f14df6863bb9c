//! What people say to a run that answers no question (E-43): it waits until a node takes it that may, between two of its rounds.

use super::node::NodePhase;
use super::person_messages::Taker;
use super::state::State;
use crate::event::{Body, Event, PersonMessage};
use crate::graph::{Act, Graph, Node};
use crate::ids::{GraphIx, NodeRef};
use crate::message::{Message, Role};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Messages that may wait to be taken.
const WAITING: usize = 100;

/// Why a message of a person is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRefusal {
    /// No node of the document takes messages.
    NobodyTakes,
    /// There is no such node now, or it, and what it has opened, takes none.
    NotThere,
    /// These take messages now, and none is named.
    Several(Vec<Arc<str>>),
    /// It says nothing.
    Empty,
    /// It is over the limit on messages, in these words.
    TooLong(String),
    /// So many wait already.
    TooMany(usize),
}

impl Graph {
    /// Whether a node of it, or of a graph inside, takes what people say between its rounds.
    pub fn takes_messages(&self) -> bool {
        self.all().any(|graph| graph.nodes.values().any(|node| graph.node_takes_messages(node)))
    }

    fn node_takes_messages(&self, node: &Node) -> bool {
        self.leaves(node).any(|leaf| matches!(leaf.act, Act::TakeMessages))
    }
}

impl State {
    /// Why a message of a person can't be taken, if it can't. [`State::accept`] takes none that this refuses.
    pub fn message_refusal(&self, message: &PersonMessage) -> Option<MessageRefusal> {
        if message.text.trim().is_empty() {
            return Some(MessageRefusal::Empty);
        }
        if message.text.len() as u64 > self.start.limits.message_bytes {
            return Some(MessageRefusal::TooLong(self.too_long("the message").message));
        }
        if self.people.waiting() >= WAITING {
            return Some(MessageRefusal::TooMany(WAITING));
        }
        if !self.frames.root().graph.takes_messages() {
            return Some(MessageRefusal::NobodyTakes);
        }
        match &message.to {
            Some(to) => {
                let there = self.node_named(to).filter(|node| self.visit(*node).is_some());
                let takes = there.is_some_and(|node| self.may_take_within(node));
                (!takes).then_some(MessageRefusal::NotThere)
            }
            None => {
                let several = self.takers();
                (several.len() > 1).then_some(MessageRefusal::Several(several))
            }
        }
    }

    /// Whether a node takes messages, or one of a frame that it may open.
    fn may_take_within(&self, node: NodeRef) -> bool {
        if self.of(node).graph.node_takes_messages(self.def(node)) {
            return true;
        }
        let mut next: Vec<GraphIx> = self.leaves(node).flat_map(|leaf| leaf.act.graphs()).collect();
        let mut seen = BTreeSet::new();
        while let Some(ix) = next.pop() {
            let Some((graph, _)) = self.frames.inner(ix).filter(|_| seen.insert(ix)) else { continue };
            for node in graph.nodes.values() {
                if graph.node_takes_messages(node) {
                    return true;
                }
                next.extend(graph.leaves(node).flat_map(|leaf| leaf.act.graphs()));
            }
        }
        false
    }

    /// The nodes that a message can be said to now, as events call them: those under way that take messages, or may open one that does.
    pub fn message_targets(&self) -> Vec<Arc<str>> {
        self.running().filter(|node| self.may_take_within(*node)).map(|node| self.name(node)).collect()
    }

    /// The nodes under way that take messages themselves.
    fn takers(&self) -> Vec<Arc<str>> {
        let takes = |node: &NodeRef| self.of(*node).graph.node_takes_messages(self.def(*node));
        self.running().filter(takes).map(|node| self.name(node)).collect()
    }

    fn running(&self) -> impl Iterator<Item = NodeRef> {
        self.frames.numbered().flat_map(|(frame, of)| {
            let running = of.nodes.iter().filter(|(_, row)| matches!(row.phase, NodePhase::Running(_)));
            running.map(move |(node, _)| NodeRef { frame, node })
        })
    }

    /// What has been said to the run, answers no question, and was taken by nobody.
    pub fn untaken_messages(&self) -> impl Iterator<Item = &PersonMessage> {
        self.people.untaken()
    }

    /// The message that a node takes next.
    pub(super) fn next_message(&self, node: NodeRef) -> Option<u32> {
        self.people.first_waiting(|message| message.to.as_ref().is_none_or(|to| self.is_inside(node, to)))
    }

    /// Whether a node is the one of that name, or in a frame that it has opened.
    fn is_inside(&self, mut node: NodeRef, name: &str) -> bool {
        loop {
            if *self.name(node) == *name {
                return true;
            }
            match self.of(node).opened_by {
                Some((around, _)) => node = around,
                None => return false,
            }
        }
    }

    /// The event of a leaf that takes messages.
    pub(super) fn derive_take(&self, node: NodeRef) -> Option<Event> {
        let body = Body::PersonMessage(self.next_message(node)?);
        Some(Event::Appended { node: self.name(node), thread: self.own_thread(node), body })
    }

    /// A node has taken a message: it stands on its thread. With the last one it goes on.
    pub(super) fn append_person_message(&mut self, node: NodeRef, number: u32) {
        let Some(text) = self.people.take(number, self.taker(node)) else {
            return self.misfit(&self.name(node));
        };
        let kind = self.kind_of_data(text.len());
        self.say_on(node, Message::text(Role::User, text), kind);
        if self.next_message(node).is_none() {
            self.move_on(node);
        }
    }

    /// The visit of a node begins anew: what it had taken it takes again.
    pub(super) fn give_messages_back(&mut self, node: NodeRef) {
        let by = self.taker(node);
        self.people.give_back(&by);
    }

    fn taker(&self, node: NodeRef) -> Taker {
        (self.name(node), self.of(node).nodes.get(node.node).map_or(0, |row| row.visit))
    }
}
