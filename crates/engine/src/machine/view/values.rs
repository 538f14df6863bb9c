//! Values that a run has by name: its variables and what results brought (D-02, D-26).

use super::frames::Named;
use super::{RunStatus, RuntimeValue, View};
use crate::ids::{FrameIx, NodeIx};
use crate::place::Instance;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

impl<'s> View<'s> {
    /// `runtime_metadata`, by name; that of subgraphs and plans under theirs (W-03). While an iteration goes on, its values stand in place
    /// of those of the same names around it, and so do those of a path in which a person is asked, under the path's name (D-26).
    pub fn runtime(self) -> BTreeMap<Cow<'s, str>, RuntimeValue<'s>> {
        let goes_on = matches!(self.status, RunStatus::Running | RunStatus::Waiting);
        let asked = if goes_on { self.frames_with_asks() } else { HashSet::new() };
        let mut all = BTreeMap::new();
        for frame in self.frames() {
            let live = !frame.own_variables;
            if live && !(goes_on && self.is_shown_live(&frame, &asked)) {
                continue;
            }
            let label = live.then(|| frame.told.to_string());
            let given = frame.frame.inputs.iter().filter(|_| live).flat_map(|inputs| inputs.names());
            let given = given.filter_map(|name| Some((name, frame.frame.input(name)?)));
            let given = given.map(|(name, value)| (name, RuntimeValue { value, node: None, live: None }));
            for (name, RuntimeValue { value, node, .. }) in
                given.chain(frame.frame.runtime_values(NodeIx(frame.horizon)))
            {
                // Within a frame of its own it has its names before it.
                let node = node.map(|node| frame.names.node(&node).into_owned().into());
                let live = label.clone().map(Cow::Owned);
                all.insert(frame.names.thread(name), RuntimeValue { value, node, live });
            }
        }
        all
    }

    /// The open frames in which a person is asked, with those around them.
    fn frames_with_asks(self) -> HashSet<FrameIx> {
        let mut frames = HashSet::new();
        for ask in self.state.asks.values() {
            let mut at = Some(ask.node.frame);
            while let Some(frame) = at.filter(|frame| frames.insert(*frame)) {
                at = self.state.frames[frame].opened_by.map(|(node, _)| node.frame);
            }
        }
        frames
    }

    /// Whether an iteration or a path goes on, and is one whose values are shown: of many paths those in which a person is asked.
    fn is_shown_live(self, frame: &Named<'s>, asked: &HashSet<FrameIx>) -> bool {
        let path = frame.frame.path.frames();
        let Some(open) = self.state.frames.at(path) else { return false };
        let on_path = || path.steps().any(|step| matches!(step.instance, Instance::Path(_)));
        asked.contains(&open) || !on_path()
    }
}
