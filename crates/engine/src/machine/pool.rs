//! Recorded outcomes that may stand for new requests (E-29).

use crate::effect::{EffectId, Outcome};
use crate::fault::FaultKind;
use crate::ids::{NodeIx, NodeRef};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Digest of what was asked.
pub(crate) type Key = [u8; 32];

/// Whose turn it is among equal requests of a node: those of the latest visit first, in the order of its requests.
pub(crate) type Turn = (Reverse<u32>, u32);

/// One outcome, with what was asked for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) effect: EffectId,
    pub(crate) key: Key,
    /// Of a write: the call whatever the tool's version.
    pub(crate) write: Option<Key>,
    pub(crate) turn: Turn,
    pub(crate) outcome: Outcome,
    /// How many attempts it took (D-25).
    pub(crate) attempt: u32,
    /// A call that is not `pure` and stands before this one ran afresh since.
    pub(crate) stale: bool,
    /// A write of a node that finished with success behind a failed one: it did not depend on that, and is done
    /// (D-16). So it is with such a node's writes that failed.
    pub(crate) beside: bool,
    /// The tool that was called.
    pub(crate) tool: Option<Arc<str>>,
    /// A reply that came after others that its schema refused: it answers the question in a fork, where all is as
    /// it was. A node that failed is asked anew, with both its tries (E-33).
    pub(crate) second: bool,
}

impl Kept {
    /// Whether it ended as it should.
    pub(crate) fn is_success(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed(_))
    }
    /// A write about which nobody knows whether it happened.
    pub(crate) fn unknown(&self) -> Option<Key> {
        match &self.outcome {
            Outcome::Failed(failure) if failure.fault.kind == FaultKind::UnknownOutcome => self.write,
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) node: NodeRef,
    pub(crate) kept: Kept,
    /// Recorded by the run that this one was forked from.
    pub(crate) foreign: bool,
}

/// Successes of an earlier part of the run, or of the run that it was forked from, by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    entries: BTreeMap<EffectId, Entry>,
    /// By the node that asked, so that nobody's turn depends on who is faster (E-07).
    by_key: BTreeMap<(NodeRef, Key), BTreeSet<(Turn, EffectId)>>,
    /// Writes, by tool and arguments: another version of the tool would write again.
    writes: BTreeMap<Key, BTreeSet<(NodeRef, EffectId)>>,
    /// Writes that were in flight when the run ended: nobody knows whether they happened (E-05).
    unknown: BTreeSet<(NodeRef, Key)>,
    /// Writes of nodes that the fork's document no longer has.
    elsewhere: BTreeSet<Key>,
    /// What nodes recorded that are not there, or not there yet: a splice may bring them (D-20).
    unplaced: BTreeMap<Arc<str>, Vec<(Kept, bool)>>,
    unplaced_unknown: BTreeSet<(Arc<str>, Key)>,
    /// The journal of the run that this one was forked from is damaged: any write may have been made that is not in it (E-44).
    pub(crate) doubtful: bool,
    /// The first node, in list order, whose call that is not `pure` ran afresh since the run began anew.
    pub(crate) afresh: Option<NodeRef>,
    /// Nodes that changed the world since, by a call that repeats nothing: what may depend on them is not as it was.
    changed: BTreeSet<NodeRef>,
}

impl Pool {
    pub(crate) fn is_empty(&self) -> bool {
        let placed = self.entries.is_empty() && self.unknown.is_empty() && self.elsewhere.is_empty();
        placed && self.unplaced.is_empty() && self.unplaced_unknown.is_empty() && !self.doubtful
    }

    /// Whether a success may be waiting for a request of the node.
    pub(crate) fn has(&self, node: NodeRef) -> bool {
        self.by_key.range((node, Key::default())..).next().is_some_and(|((of, _), _)| *of == node)
    }

    /// The next one in turn for what a node asks.
    pub(crate) fn find(&self, node: NodeRef, key: Key) -> Option<&Kept> {
        let (_, effect) = self.by_key.get(&(node, key))?.first()?;
        self.entries.get(effect).map(|entry| &entry.kept)
    }

    pub(crate) fn is_foreign(&self, effect: &EffectId) -> bool {
        self.entries.get(effect).is_some_and(|entry| entry.foreign)
    }

    pub(crate) fn take(&mut self, effect: &EffectId) -> Option<Entry> {
        let entry = self.entries.remove(effect)?;
        let place = (entry.node, entry.kept.key);
        if let Some(turns) = self.by_key.get_mut(&place) {
            turns.remove(&(entry.kept.turn, effect.clone()));
            if turns.is_empty() {
                self.by_key.remove(&place);
            }
        }
        if let Some(write) = entry.kept.write
            && let Some(calls) = self.writes.get_mut(&write)
        {
            calls.remove(&(entry.node, effect.clone()));
            if calls.is_empty() {
                self.writes.remove(&write);
            }
        }
        Some(entry)
    }

    /// Adds a success; of a failure only that nobody knows about a write, unless its node came to a success later.
    pub(crate) fn add(&mut self, node: NodeRef, kept: Kept, foreign: bool) {
        let unknown = kept.unknown();
        if unknown.is_some() || !(kept.is_success() || kept.beside) {
            self.unknown.extend(unknown.map(|write| (node, write)));
            return;
        }
        let effect = kept.effect.clone();
        self.by_key.entry((node, kept.key)).or_default().insert((kept.turn, effect.clone()));
        if let Some(write) = kept.write.filter(|_| kept.is_success()) {
            self.writes.entry(write).or_default().insert((node, effect.clone()));
        }
        self.entries.insert(effect, Entry { node, kept, foreign });
    }

    pub(crate) fn add_unknown(&mut self, node: NodeRef, write: Key) {
        self.unknown.insert((node, write));
    }

    /// A write whose node is no more.
    pub(crate) fn add_elsewhere(&mut self, write: Key) {
        self.elsewhere.insert(write);
    }

    pub(crate) fn is_unknown(&self, node: NodeRef, write: Key) -> bool {
        self.unknown.contains(&(node, write))
    }

    /// The node's own write that succeeded, in whatever version of the tool.
    pub(crate) fn wrote(&self, node: NodeRef, write: Key) -> Option<&EffectId> {
        self.writes.get(&write)?.iter().find(|(of, _)| *of == node).map(|(_, effect)| effect)
    }

    /// The last write by which the node came to its success behind a failed one (D-16).
    pub(crate) fn done_beside(&self, node: NodeRef) -> Option<&EffectId> {
        let own = self.by_key.range((node, Key::default())..).take_while(|((of, _), _)| *of == node);
        let known = own.flat_map(|(_, turns)| turns).filter(|(_, effect)| {
            self.entries.get(effect).is_some_and(|entry| entry.kept.beside && entry.kept.is_success())
        });
        known.max_by_key(|(turn, _)| (Reverse(turn.0), turn.1)).map(|(_, effect)| effect)
    }

    /// The node's step is done anew, by a person's word: nothing of it stands for itself any more.
    pub(crate) fn done_anew(&mut self, node: NodeRef) {
        for entry in self.entries.values_mut().filter(|entry| entry.node == node) {
            entry.kept.beside = false;
        }
    }

    /// Whether another node of the run that this one was forked from did that write.
    pub(crate) fn wrote_elsewhere(&self, node: NodeRef, write: Key) -> bool {
        let foreign = |(of, effect): &(NodeRef, EffectId)| *of != node && self.is_foreign(effect);
        self.elsewhere.contains(&write)
            || self.writes.get(&write).is_some_and(|calls| calls.iter().any(foreign))
    }

    /// A person has said that a call may run, whatever became of it.
    pub(crate) fn settle(&mut self, node: NodeRef, call: Key) {
        self.unknown.remove(&(node, call));
    }

    /// A call runs afresh: what was recorded for it has had its turn.
    pub(crate) fn spend(&mut self, node: NodeRef, key: Key, write: Option<Key>) {
        let same = self.by_key.get(&(node, key)).and_then(|turns| turns.first());
        let mut spent = same.map(|(_, effect)| effect.clone());
        if let Some(write) = write {
            self.unknown.remove(&(node, write));
            self.elsewhere.remove(&write);
            let calls = self.writes.get(&write).into_iter().flatten();
            let own = calls.into_iter().find(|(of, _)| *of == node).map(|(_, effect)| effect.clone());
            spent = spent.or(own);
        }
        if let Some(effect) = spent {
            self.take(&effect);
        }
    }

    /// Recorded by the source at a node that is not there.
    pub(crate) fn add_unplaced(&mut self, id: Arc<str>, kept: Kept) {
        self.unplaced.entry(id).or_default().push((kept, true));
    }

    pub(crate) fn add_unplaced_unknown(&mut self, id: Arc<str>, write: Key) {
        self.unplaced_unknown.insert((id, write));
    }

    /// Takes everything away from the nodes from `first` on, under their ids.
    pub(crate) fn unplace(&mut self, first: NodeRef, id: impl Fn(NodeRef) -> Arc<str>) {
        let effects = self.entries.iter().filter(|(_, entry)| entry.node >= first);
        for effect in effects.map(|(effect, _)| effect.clone()).collect::<Vec<EffectId>>() {
            if let Some(Entry { node, kept, foreign }) = self.take(&effect) {
                self.elsewhere.extend(kept.write.filter(|_| kept.is_success()));
                self.unplaced.entry(id(node)).or_default().push((kept, foreign));
            }
        }
        for (node, write) in self.unknown.split_off(&(first, Key::default())) {
            self.elsewhere.insert(write);
            self.unplaced_unknown.insert((id(node), write));
        }
    }

    /// The node of that id is there.
    pub(crate) fn place(&mut self, id: &Arc<str>, node: NodeRef) {
        for (kept, foreign) in self.unplaced.remove(id).unwrap_or_default() {
            if let Some(write) = &kept.write {
                self.elsewhere.remove(write);
            }
            self.add(node, kept, foreign);
        }
        let unknown = self.unplaced_unknown.iter().filter(|(of, _)| of == id);
        for write in unknown.map(|(_, write)| *write).collect::<Vec<Key>>() {
            self.elsewhere.remove(&write);
            self.unplaced_unknown.remove(&(id.clone(), write));
            self.unknown.insert((node, write));
        }
    }

    /// What no node has taken over.
    #[allow(clippy::type_complexity, reason = "two lists that go to the same place")]
    pub(crate) fn take_unplaced(&mut self) -> (Vec<(Arc<str>, Kept)>, BTreeSet<(Arc<str>, Key)>) {
        let lists = std::mem::take(&mut self.unplaced).into_iter();
        let kept = lists.flat_map(|(id, list)| list.into_iter().map(move |(kept, _)| (id.clone(), kept)));
        (kept.collect(), std::mem::take(&mut self.unplaced_unknown))
    }

    /// The node has changed the world afresh.
    pub(crate) fn note_changed(&mut self, node: NodeRef) {
        self.changed.insert(node);
    }

    pub(crate) fn has_changed(&self, node: NodeRef) -> bool {
        self.changed.contains(&node)
    }

    /// Nodes before `node`, in its frame, that have changed the world afresh.
    pub(crate) fn changed_before(&self, node: NodeRef) -> impl Iterator<Item = NodeRef> {
        self.changed.range(node.sibling(NodeIx(0))..node).copied()
    }

    /// Nodes from `first` on are no more.
    pub(crate) fn forget_changed(&mut self, first: NodeRef) {
        self.changed.retain(|node| node.frame != first.frame || *node < first);
    }

    /// The run begins anew: what is left was recorded before that which ran afresh.
    pub(crate) fn age(&mut self) {
        let Some(first) = self.afresh.take() else { return };
        for entry in self.entries.values_mut().filter(|entry| first <= entry.node) {
            entry.kept.stale = true;
        }
    }

    /// Everything that is left, node by node.
    pub(crate) fn into_parts(self) -> (impl Iterator<Item = Entry>, BTreeSet<(NodeRef, Key)>) {
        (self.entries.into_values(), self.unknown)
    }
}
