//! Recorded outcomes that may stand for new requests (E-29).

use super::laid::Ahead;
use super::lineage::{Face, Unlike};
use super::outcome::{RecordedOutcome, Turn};
use super::ran::Ran;
use super::recording::{Elements, NodePlace, Recording};
use super::said::Key;
use super::spot::Spot;
use super::unknown::UnknownWrite;
use crate::effect::EffectId;
use crate::ids::NodeIx;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) node: Spot,
    pub(super) kept: RecordedOutcome,
    /// Recorded by the run that this one was forked from.
    pub(super) foreign: bool,
}

/// Successes of an earlier part of the run, or of the run that it was forked from, by what was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReuseCache {
    entries: HashMap<EffectId, Entry>,
    /// By the node that asked, so that nobody's turn depends on who is faster (E-07): those of each in their turn, most of which are one.
    by_key: BTreeMap<(Spot, Key), Vec<(Turn, EffectId)>>,
    /// Writes, by tool and arguments: another version of the tool would write again.
    writes: BTreeMap<Key, BTreeSet<(Spot, EffectId)>>,
    /// Writes of unknown outcome, by the node that made them (E-55).
    unknown: BTreeSet<(Spot, UnknownWrite)>,
    /// The same, of nodes that are gone: a replan or an edited document has others in their place.
    unknown_elsewhere: BTreeSet<UnknownWrite>,
    /// What the run recorded that this one was forked from: of effects in frames it knows what came of them, under whatever id.
    source: Option<Arc<Recording>>,
    /// What of that is to be taken at nodes that this run has not come to.
    ahead: Option<Ahead>,
    /// Writes of nodes that the fork's document no longer has.
    elsewhere: BTreeSet<Key>,
    /// What nodes recorded that are not there, or not there yet: a splice may bring them (D-20).
    unmatched: BTreeMap<Arc<str>, Vec<(RecordedOutcome, bool)>>,
    unmatched_unknown: BTreeSet<(Arc<str>, UnknownWrite)>,
    /// The journal of the run that this one was forked from is damaged: any write may have been made that is not in it (E-44).
    doubtful: bool,
    /// Nodes of which something was recorded that is taken now, or spent.
    taken: HashSet<Spot>,
    /// Nodes that had asked for something where the run ends that this one was forked from.
    in_flight: HashSet<Spot>,
    /// Where calls that are not `pure` ran afresh since the run began anew.
    pub(super) ran: Ran,
    /// Nodes that changed the world since, by a call that repeats nothing: what may depend on them is not as it was.
    changed: BTreeSet<Spot>,
}

impl ReuseCache {
    /// Whether any write may have been made that nothing tells of.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }
    /// It is so from here on, if it was not.
    pub(crate) fn doubt(&mut self, doubtful: bool) {
        self.doubtful |= doubtful;
    }
    pub(crate) fn is_empty(&self) -> bool {
        let placed = self.entries.is_empty() && self.unknown.is_empty() && self.elsewhere.is_empty();
        let placed = placed && self.unknown_elsewhere.is_empty();
        let placed = placed && self.ahead.as_ref().is_none_or(Ahead::is_empty);
        placed && self.unmatched.is_empty() && self.unmatched_unknown.is_empty() && !self.doubtful
    }

    /// Whether a success may be waiting for a request of the node.
    pub(crate) fn has(&self, node: Spot) -> bool {
        let placed =
            self.by_key.range((node, Key::default())..).next().is_some_and(|((of, _), _)| *of == node);
        placed || self.ahead_at(node).next().is_some()
    }

    /// The next one in turn for what a node asks.
    pub(crate) fn find(&self, node: Spot, key: Key) -> Option<&RecordedOutcome> {
        match self.by_key.get(&(node, key)) {
            Some(turns) => self.entries.get(&turns.first()?.1).map(|entry| &entry.kept),
            None => self.ahead_at(node).find(|kept| kept.key == key),
        }
    }

    /// What a fork may take at a node that it has not come to.
    fn ahead_at(&self, node: Spot) -> impl Iterator<Item = &RecordedOutcome> {
        self.ahead.iter().flat_map(move |ahead| ahead.at(node))
    }

    /// What is kept of a node, in its turn.
    fn at(&self, node: Spot) -> impl Iterator<Item = &RecordedOutcome> {
        let own = self.by_key.range((node, Key::default())..).take_while(move |((of, _), _)| *of == node);
        let own = own.flat_map(|(_, turns)| turns).filter_map(|(_, effect)| self.entries.get(effect));
        own.map(|entry| &entry.kept).chain(self.ahead_at(node))
    }

    /// The run has come to a node: what its source had recorded there is placed.
    pub(crate) fn come_to(&mut self, node: Spot) {
        let left = self.ahead.as_mut().map(|ahead| ahead.come_to(node)).unwrap_or_default();
        left.into_iter().for_each(|kept| self.place_one(node, kept, true));
    }

    /// The same of all nodes.
    fn come_to_all(&mut self) {
        let spots = self.ahead.as_ref().map(Ahead::spots).unwrap_or_default();
        spots.into_iter().for_each(|spot| self.come_to(spot));
    }

    /// The run is a fork: what its source had recorded may be taken, but for what stands.
    pub(super) fn go_ahead(&mut self, ahead: Ahead) {
        self.ahead = Some(ahead);
    }

    /// What a fork or a loop went over in the run that this one was forked from.
    pub(super) fn elements(&self, site: &NodePlace) -> Option<&Elements> {
        self.ahead.as_ref()?.elements(site)
    }

    /// Whether it is one.
    pub(crate) fn is_of_fork(&self) -> bool {
        self.ahead.is_some()
    }

    /// How often a node of a frame was started in the run that this one was forked from.
    pub(crate) fn visits(&self, node: Spot) -> Option<u32> {
        self.ahead.as_ref()?.visits(node)
    }

    /// The run was forked from one that had recorded this.
    pub(crate) fn note_source(&mut self, past: &Arc<Recording>) {
        let knows = !past.inner.kept.is_empty() || !past.renamed.is_empty();
        self.source = knows.then(|| Arc::clone(past));
    }

    /// Whether that run knows what came of an effect in a frame.
    pub(crate) fn knows(&self, effect: &EffectId) -> bool {
        let knows =
            |past: &Recording| past.inner.kept.contains_key(effect) || past.renamed.contains_key(effect);
        self.source.as_deref().is_some_and(knows)
    }

    pub(crate) fn is_foreign(&self, effect: &EffectId) -> bool {
        match self.entries.get(effect) {
            Some(entry) => entry.foreign,
            None => self.ahead.as_ref().is_some_and(|ahead| ahead.spot_of(effect).is_some()),
        }
    }

    pub(crate) fn take(&mut self, effect: &EffectId) -> Option<Entry> {
        if let Some(spot) = self.ahead.as_ref().and_then(|ahead| ahead.spot_of(effect)) {
            self.come_to(spot);
        }
        let entry = self.entries.remove(effect)?;
        self.taken.insert(entry.node);
        let place = (entry.node, entry.kept.key);
        if let Some(turns) = self.by_key.get_mut(&place) {
            turns.retain(|(_, of)| of != effect);
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

    /// The recorded request of a node that is most like one; of equal ones the first in turn. `tool`: of calls of that one, else of
    /// models.
    pub(crate) fn nearest(
        &self,
        node: Spot,
        tool: Option<&Arc<str>>,
        face: &Face,
    ) -> Option<&RecordedOutcome> {
        let known = self.at(node).filter(|kept| kept.tool.as_ref() == tool);
        known.min_by_key(|kept| (Reverse(kept.face.alike(face)), kept.turn))
    }

    /// Why nothing is left of what was recorded of a node.
    pub(crate) fn nothing(&self, node: Spot) -> Unlike {
        match () {
            () if self.taken.contains(&node) => Unlike::Taken,
            () if self.in_flight.contains(&node) => Unlike::InFlight,
            () if self.ahead.as_ref().is_some_and(|ahead| ahead.was_begun(node)) => Unlike::NoResult,
            () => Unlike::NeverRecorded,
        }
    }

    /// A request of the node was under way where that run ends.
    pub(crate) fn note_in_flight(&mut self, node: Spot) {
        self.in_flight.insert(node);
    }

    /// Adds a success; of a failure only that nobody knows about a write, unless its node came to a success later.
    pub(crate) fn add(&mut self, node: Spot, kept: RecordedOutcome, foreign: bool) {
        self.come_to(node);
        self.place_one(node, kept, foreign);
    }

    fn place_one(&mut self, node: Spot, kept: RecordedOutcome, foreign: bool) {
        let unknown = kept.unknown();
        if unknown.is_some() || !(kept.is_success() || kept.beside) {
            self.unknown.extend(unknown.map(|write| (node, write.clone())));
            return;
        }
        let effect = kept.effect.clone();
        let turns = self.by_key.entry((node, kept.key)).or_insert_with(|| Vec::with_capacity(1));
        let turn = (kept.turn, effect.clone());
        if let Err(at) = turns.binary_search(&turn) {
            turns.insert(at, turn);
        }
        if let Some(write) = kept.write.filter(|_| kept.is_success()) {
            self.writes.entry(write).or_default().insert((node, effect.clone()));
        }
        self.entries.insert(effect, Entry { node, kept, foreign });
    }

    pub(crate) fn add_unknown(&mut self, node: Spot, write: UnknownWrite) {
        self.unknown.insert((node, write));
    }

    /// A write of unknown outcome whose node is no more.
    pub(crate) fn add_unknown_elsewhere(&mut self, write: UnknownWrite) {
        self.elsewhere.insert(write.key);
        self.unknown_elsewhere.insert(write);
    }

    /// The writes of unknown outcome that concern a node: its own, and those of nodes that are gone.
    pub(crate) fn unknown_writes(&self, node: Spot) -> impl Iterator<Item = (&UnknownWrite, bool)> {
        let own = self.unknown.iter().filter(move |(of, _)| *of == node).map(|(_, write)| (write, true));
        own.chain(self.unknown_elsewhere.iter().map(|write| (write, false)))
    }

    /// A write whose node is no more.
    pub(crate) fn add_elsewhere(&mut self, write: Key) {
        self.elsewhere.insert(write);
    }

    pub(crate) fn is_unknown(&self, node: Spot, write: Key) -> bool {
        self.unknown_writes(node).any(|(known, own)| own && known.key == write)
    }

    /// The node's own write that succeeded, in whatever version of the tool.
    pub(crate) fn wrote(&self, node: Spot, write: Key) -> Option<&EffectId> {
        let placed = self.writes.get(&write).into_iter().flatten().map(|(of, effect)| (*of, effect));
        let ahead = self.ahead.iter().flat_map(|ahead| ahead.writes(write));
        placed.chain(ahead).find(|(of, _)| *of == node).map(|(_, effect)| effect)
    }

    /// The last write by which the node came to its success behind a failed one (D-16).
    pub(crate) fn done_beside(&self, node: Spot) -> Option<&EffectId> {
        let known = self.at(node).filter(|kept| kept.beside && kept.is_success());
        known.max_by_key(|kept| (Reverse(kept.turn.0), kept.turn.1)).map(RecordedOutcome::effect)
    }

    /// The node's step is done anew, by a person's word: nothing of it stands for itself any more.
    pub(crate) fn done_anew(&mut self, node: Spot) {
        let own = self.by_key.range((node, Key::default())..).take_while(|((of, _), _)| *of == node);
        for (_, effect) in own.flat_map(|(_, turns)| turns) {
            if let Some(entry) = self.entries.get_mut(effect) {
                entry.kept.beside = false;
            }
        }
    }

    /// Whether another node of the run that this one was forked from did that write.
    pub(crate) fn wrote_elsewhere(&self, node: Spot, write: Key) -> bool {
        let foreign = |(of, effect): &(Spot, EffectId)| *of != node && self.is_foreign(effect);
        let ahead = || self.ahead.iter().flat_map(|ahead| ahead.writes(write)).any(|(of, _)| of != node);
        self.elsewhere.contains(&write)
            || ahead()
            || self.writes.get(&write).is_some_and(|calls| calls.iter().any(foreign))
    }

    /// A person has said that a call may run, or what became of it.
    pub(crate) fn settle(&mut self, node: Spot, call: Key) {
        self.unknown.retain(|(of, write)| *of != node || write.key != call);
    }

    /// A person has decided about a second call for a write of a node that is gone.
    pub(crate) fn settle_elsewhere(&mut self, call: Key) {
        self.unknown_elsewhere.retain(|write| write.key != call);
    }

    /// A call is run again: what was recorded for it has had its turn.
    pub(crate) fn spend(&mut self, node: Spot, key: Key, write: Option<Key>) {
        self.come_to(node);
        let same = self.by_key.get(&(node, key)).and_then(|turns| turns.first());
        let mut spent = same.map(|(_, effect)| effect.clone());
        if let Some(write) = write {
            self.settle(node, write);
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
    pub(crate) fn add_unmatched(&mut self, id: Arc<str>, kept: RecordedOutcome) {
        self.unmatched.entry(id).or_default().push((kept, true));
    }

    pub(crate) fn add_unmatched_unknown(&mut self, id: Arc<str>, write: UnknownWrite) {
        self.unknown_elsewhere.insert(write.clone());
        self.unmatched_unknown.insert((id, write));
    }

    /// Takes everything away from the nodes from `first` on, under their ids.
    pub(crate) fn unmatch(&mut self, first: Spot, id: impl Fn(Spot) -> Arc<str>) {
        self.come_to_all();
        let turns = self.by_key.range((first, Key::default())..).flat_map(|(_, turns)| turns);
        for effect in turns.map(|(_, effect)| effect.clone()).collect::<BTreeSet<EffectId>>() {
            if let Some(Entry { node, kept, foreign }) = self.take(&effect) {
                self.elsewhere.extend(kept.write.filter(|_| kept.is_success()));
                self.unmatched.entry(id(node)).or_default().push((kept, foreign));
            }
        }
        let behind: Vec<_> = self.unknown.iter().filter(|(node, _)| *node >= first).cloned().collect();
        for (node, write) in behind {
            self.unknown.remove(&(node, write.clone()));
            self.elsewhere.insert(write.key);
            self.add_unmatched_unknown(id(node), write);
        }
    }

    /// The node of that id is there.
    pub(crate) fn place(&mut self, id: &Arc<str>, node: Spot) {
        for (kept, foreign) in self.unmatched.remove(id).unwrap_or_default() {
            if let Some(write) = &kept.write {
                self.elsewhere.remove(write);
            }
            self.add(node, kept, foreign);
        }
        let unknown = self.unmatched_unknown.iter().filter(|(of, _)| of == id);
        for write in unknown.map(|(_, write)| write.clone()).collect::<Vec<UnknownWrite>>() {
            self.elsewhere.remove(&write.key);
            self.unmatched_unknown.remove(&(id.clone(), write.clone()));
            self.unknown.insert((node, write));
        }
    }

    /// What no node has taken over.
    #[allow(clippy::type_complexity, reason = "two lists that go to the same place")]
    pub(crate) fn take_unmatched(
        &mut self,
    ) -> (Vec<(Arc<str>, RecordedOutcome)>, BTreeSet<(Arc<str>, UnknownWrite)>) {
        let lists = std::mem::take(&mut self.unmatched).into_iter();
        let kept = lists.flat_map(|(id, list)| list.into_iter().map(move |(kept, _)| (id.clone(), kept)));
        (kept.collect(), std::mem::take(&mut self.unmatched_unknown))
    }

    /// The node has changed the world afresh.
    pub(crate) fn note_changed(&mut self, node: Spot) {
        self.changed.insert(node);
    }

    pub(crate) fn has_changed(&self, node: Spot) -> bool {
        self.changed.contains(&node)
    }

    /// Nodes before `node`, in its frame, that have changed the world afresh.
    pub(crate) fn changed_before(&self, node: Spot) -> impl Iterator<Item = Spot> {
        self.changed.range(node.sibling(NodeIx(0))..node).copied()
    }

    /// Nodes from `first` on are no more.
    pub(crate) fn forget_changed(&mut self, first: Spot) {
        self.changed.retain(|node| node.frame != first.frame || *node < first);
    }

    /// The run begins anew: what is left was recorded before that which ran afresh. `flows`: whether nodes of that frame follow
    /// ways.
    pub(crate) fn age(&mut self, flows: impl Fn(u32) -> bool) {
        let ran = std::mem::take(&mut self.ran);
        if ran.is_empty() {
            return;
        }
        self.come_to_all();
        for (_, effect) in self.by_key.values().flatten() {
            let Some(entry) = self.entries.get_mut(effect) else { continue };
            entry.kept.outdated |= ran.before(entry.node, flows(entry.node.frame)).is_some();
        }
    }

    /// Everything that is left, node by node.
    pub(crate) fn into_parts(mut self) -> (impl Iterator<Item = Entry>, BTreeSet<(Spot, UnknownWrite)>) {
        self.come_to_all();
        let Self { by_key, mut entries, unknown, .. } = self;
        let turns = by_key.into_values().flatten();
        (turns.filter_map(move |(_, effect)| entries.remove(&effect)), unknown)
    }
}
