//! What a resume keeps of steps that had finished behind a failed one (D-16, E-29), and what a person's no leaves.

use super::phase::Slot;
use super::reuse::{Reuse, unknown_outcome};
use super::state::State;
use crate::fault::{Fault, FaultKind};
use crate::ids::{NodeIx, NodeRef};
use crate::schedule::{reads, supply};
use crate::template::{Root, classify};
use serde_json::Value;
use std::collections::BTreeSet;

impl State {
    /// What a person's no means for a call: nobody knows about a write that was in flight (C-13). `None`: what the
    /// call came to before stands, and nothing is refused (E-29).
    pub(crate) fn refused_by_person(&self, node: NodeRef, slot: &Slot, said: &Value) -> Option<Fault> {
        self.refusal_of_no(node, slot).map(|fault| self.with_reason(fault, said))
    }

    fn refusal_of_no(&self, node: NodeRef, slot: &Slot) -> Option<Fault> {
        let call = &slot.call;
        let reuse =
            self.tool(node, &call.name).map(|t| self.reusable_call(node, t, &call.arguments, slot.effects));
        match reuse {
            Some(Reuse::Take(_) | Reuse::AskFirst(_, Some(_), _)) => None,
            Some(Reuse::AskUnknown(unknown, _)) => Some(unknown_outcome(&unknown.tool)),
            Some(Reuse::AskFirst(_, None, _)) if self.reuse.is_doubtful() => {
                let message =
                    format!("nobody knows whether `{}` ran: the journal that says it is damaged", call.name);
                Some(Fault::new(FaultKind::UnknownOutcome, message))
            }
            _ => Some(Fault::new(FaultKind::Denied, format!("a person said no to running `{}`", call.name))),
        }
    }

    /// Whether `node` may depend, as D-16 sees it, on a node that has changed the world afresh. Linear in what it
    /// depends on.
    pub(crate) fn may_see_change(&self, node: NodeRef) -> bool {
        let Some(first) = self.reuse.changed_before(self.spot(node)).next() else { return false };
        let mut seen = BTreeSet::new();
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for source in self.sources(at) {
                if self.reuse.has_changed(self.spot(source)) {
                    return true;
                }
                if source.node > first.node && seen.insert(source) {
                    open.push(source);
                }
            }
        }
        false
    }

    /// The nodes that `node` is said to follow or whose outputs it can read; of those that may bring any name, the ones
    /// that have changed the world afresh.
    fn sources(&self, node: NodeRef) -> BTreeSet<NodeRef> {
        let (def, frame) = (self.def(node), self.of(node));
        let earlier = |found: &NodeIx| *found < node.node;
        let by_id = |id: &str| frame.by_id(id).filter(earlier).map(|found| node.sibling(found));
        let mut sources: BTreeSet<NodeRef> = def.after.iter().filter_map(|id| by_id(id)).collect();
        for path in reads(&frame.graph, def) {
            match classify(path, |id| frame.by_id(id).is_some()) {
                Root::StepOutput { step, .. } => sources.extend(by_id(step)),
                Root::Inputs { .. } => {}
                Root::Metadata { name, .. } | Root::Name { name, .. } => {
                    let last = frame.last_supplier(node.node, name).map(|last| node.sibling(last));
                    sources.extend(last);
                    let changed =
                        self.reuse.changed_before(self.spot(node)).map(|spot| node.sibling(spot.node));
                    sources.extend(changed.filter(|of| supply(&frame.graph, self.def(*of)).unknown));
                }
            }
        }
        sources
    }
}
