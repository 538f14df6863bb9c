//! Paths over a list and iterations over one, in a fork whose list is another than its source's: each stands for that of its source with
//! the same element (E-29). What such a path or iteration recorded is known by the number of its *slot*: its own number, unless it stands
//! for one of the source with another number.

use super::recording::{Elements, NodePlace};
use super::said::{Key, digest};
use crate::ids::{FrameIx, NodeRef};
use crate::machine::slots::Slots;
use crate::machine::state::State;
use crate::place::{FramePath, FrameStep, Instance};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

impl State {
    /// Where a node records.
    pub(super) fn site(&self, node: NodeRef) -> NodePlace {
        NodePlace { frame: self.recorded_path(node.frame), node: self.def(node).id.clone() }
    }

    /// The path under which a frame records: without visits, and with slots in place of numbers.
    pub(super) fn recorded_path(&self, frame: FrameIx) -> FramePath {
        self.frames.moved.recorded(self.frames[frame].path.without_visits())
    }

    /// The same, as long as no frame has another number than its slot: the frame's own path.
    pub(super) fn known_path(&self, frame: FrameIx) -> Cow<'_, FramePath> {
        let own = &self.frames[frame].path;
        if self.frames.moved.is_empty() { Cow::Borrowed(own) } else { Cow::Owned(self.recorded_path(frame)) }
    }

    /// A frame was opened by a node: in the slot, if it is that of an element which has one.
    pub(in crate::machine) fn note_slot(&mut self, node: NodeRef, frame: FrameIx, slot: Option<u32>) {
        let moved = &self.frames.moved;
        if slot.is_none() && moved.is_empty() {
            return;
        }
        let path = self.frames[frame].path.without_visits();
        let Some((_, step)) = path.parent() else { return };
        let instance = match (slot, step.instance) {
            (Some(slot), Instance::Path(_)) => Instance::Path(slot.to_string().into()),
            (Some(slot), Instance::Iteration(_)) => Instance::Iteration(slot),
            (_, instance) => instance,
        };
        let recorded = self.recorded_path(node.frame).with(&FrameStep { instance, ..step });
        self.frames.moved.note(path, recorded);
    }

    /// A node begins with the elements of a list: their slots.
    pub(in crate::machine) fn slots_of(&mut self, node: NodeRef, elements: &[Value]) -> Slots {
        let keeps = self.keeps_at_once(node);
        if self.start.edition < 7 || !(keeps || self.reuse.is_of_fork()) {
            return None;
        }
        let site = self.site(node);
        let new: Vec<Key> = elements.iter().map(digest).collect();
        let old = self.reuse.elements(&site);
        let slots = old.map(|old| match_elements(old, &new));
        let is_moved = |slots: &Vec<u32>| slots.iter().enumerate().any(|(at, slot)| *slot as usize != at);
        let moved = slots.filter(is_moved);
        if keeps {
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let slot =
                |at: usize| moved.as_ref().and_then(|slots| slots.get(at).copied()).unwrap_or(number(at));
            let mut all: Elements = new.iter().enumerate().map(|(at, key)| (slot(at), *key)).collect();
            let taken: HashSet<u32> = all.iter().map(|(slot, _)| *slot).collect();
            all.extend(old.into_iter().flatten().filter(|(slot, _)| !taken.contains(slot)));
            if let Some(recorder) = &mut self.recorder {
                recorder.inner.elements.insert(site, all);
            }
        }
        moved.map(Into::into)
    }
}

/// The slots of new elements: that of an equal old one, the k-th for the k-th; else that of the old one with the same number, if it is
/// left; else one that no other has.
fn match_elements(old: &[(u32, Key)], new: &[Key]) -> Vec<u32> {
    let mut equal: HashMap<Key, VecDeque<u32>> = HashMap::new();
    old.iter().for_each(|(slot, key)| equal.entry(*key).or_default().push_back(*slot));
    let matched: Vec<Option<u32>> =
        new.iter().map(|key| equal.get_mut(key).and_then(VecDeque::pop_front)).collect();
    let taken: HashSet<u32> = matched.iter().flatten().copied().collect();
    let behind = old.iter().map(|(slot, _)| slot.saturating_add(1)).max().unwrap_or(0);
    let mut free = behind.max(u32::try_from(new.len()).unwrap_or(u32::MAX));
    let mut slots = Vec::with_capacity(new.len());
    for (at, slot) in (0..).zip(matched) {
        slots.push(match slot {
            Some(slot) => slot,
            None if !taken.contains(&at) => at,
            None => {
                free = free.saturating_add(1);
                free - 1
            }
        });
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(old: &[(u32, u8)], new: &[u8]) -> Vec<u32> {
        let old: Elements = old.iter().map(|(slot, element)| (*slot, [*element; 32])).collect();
        match_elements(&old, &new.iter().map(|element| [*element; 32]).collect::<Vec<Key>>())
    }

    #[test]
    fn equal_elements_stand_for_each_other() {
        let old = [(0, 1), (1, 2), (2, 1)];
        assert_eq!(slots(&old, &[1, 2, 1]), [0, 1, 2]);
        // One was put in front: it has a slot of its own.
        assert_eq!(slots(&old, &[9, 1, 2, 1]), [4, 0, 1, 2]);
        // One was changed: it keeps its number.
        assert_eq!(slots(&old, &[1, 9, 1]), [0, 1, 2]);
        // One was taken away.
        assert_eq!(slots(&old, &[2, 1]), [1, 0]);
        // More equal ones than there were.
        assert_eq!(slots(&old, &[1, 1, 1]), [0, 2, 3]);
        // A list that was moved before.
        assert_eq!(slots(&[(4, 9), (0, 1), (1, 2)], &[1, 9]), [0, 4]);
    }
}
