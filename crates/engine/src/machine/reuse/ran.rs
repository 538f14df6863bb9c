//! Calls that are not `pure` and ran afresh since a run began anew, by the nodes that made them and those that opened the frames of these:
//! what may have seen such a call takes no recorded outcome of one that looks at the world (E-29).

use super::spot::Spot;
use crate::ids::NodeIx;
use std::collections::{BTreeMap, BTreeSet};

/// Where calls ran afresh, as others see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    marks: BTreeMap<Spot, Mark>,
    /// Frames that were cut off, of those with marks.
    cut: BTreeSet<u32>,
}

/// What ran afresh at a node, or in the frames that it opened.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// It changed the world: that stays, whatever becomes of the path.
    changed: bool,
    /// A call of its own looked at the world.
    own: bool,
    /// So many of its frames have something that ran afresh and are not cut off.
    frames: u32,
}

impl Mark {
    fn looked(self) -> bool {
        self.own || self.frames > 0
    }
}

/// All nodes of a frame.
fn frame(of: u32) -> std::ops::RangeInclusive<Spot> {
    Spot { frame: of, node: NodeIx(0) }..=Spot { frame: of, node: NodeIx(u32::MAX) }
}

/// How far calls of a frame's nodes show to another node of it: to all, if they follow ways, else to those from there on.
fn until(node: Spot, flows: bool) -> std::ops::RangeInclusive<Spot> {
    let end = if flows { node.sibling(NodeIx(u32::MAX)) } else { node };
    node.sibling(NodeIx(0))..=end
}

impl Ran {
    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// A call of the first of these nodes ran afresh; each of the others opened the frame of the one before it.
    pub(super) fn note(&mut self, nodes: &[Spot], changed: bool) {
        let Some((first, around)) = nodes.split_first() else { return };
        let shows = self.shows(first.frame);
        let mark = self.marks.entry(*first).or_default();
        (mark.own, mark.changed) = (true, mark.changed | changed);
        if changed {
            around.iter().for_each(|node| self.marks.entry(*node).or_default().changed = true);
        }
        if !shows {
            self.show(first.frame, around);
        }
    }

    /// Whether something that ran in a frame shows around it, unless it changed the world: that does in any case.
    fn shows(&self, of: u32) -> bool {
        !self.cut.contains(&of) && self.marks.range(frame(of)).any(|(_, mark)| mark.looked())
    }

    /// What ran in a frame shows around it from now on.
    fn show(&mut self, mut of: u32, around: &[Spot]) {
        for node in around {
            if !self.shows(of) {
                return;
            }
            of = node.frame;
            let before = self.shows(of);
            self.marks.entry(*node).or_default().frames += 1;
            if before {
                return;
            }
        }
    }

    /// A frame is cut off, which the first of these nodes opened: what only looked at the world in there has come to nothing.
    pub(super) fn cut(&mut self, of: u32, around: &[Spot]) {
        let mut hidden = self.shows(of);
        self.cut.insert(of);
        for node in around {
            if !hidden {
                return;
            }
            let before = self.shows(node.frame);
            if let Some(mark) = self.marks.get_mut(node) {
                mark.frames = mark.frames.saturating_sub(1);
                if !mark.looked() && !mark.changed {
                    self.marks.remove(node);
                }
            }
            hidden = before && !self.shows(node.frame);
        }
    }

    /// It goes on.
    pub(super) fn go_on(&mut self, of: u32, around: &[Spot]) {
        if self.cut.remove(&of) {
            self.show(of, around);
        }
    }

    /// Where a call ran afresh that `node` could have seen, or made: of any node of its flow, or of one that stands before it in its
    /// dataflow.
    pub(super) fn before(&self, node: Spot, flows: bool) -> Option<Spot> {
        self.marks.range(until(node, flows)).next().map(|(spot, _)| *spot)
    }

    /// The same of the other nodes of the frame only: what `node` itself opened is told apart by its paths.
    pub(super) fn beside(&self, node: Spot, flows: bool) -> Option<Spot> {
        self.marks.range(until(node, flows)).map(|(spot, _)| *spot).find(|other| *other != node)
    }
}
