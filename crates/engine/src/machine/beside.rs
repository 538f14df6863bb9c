//! What a resume keeps of steps that had finished behind a failed one (D-16, E-29), and what a person's no leaves.

use super::reuse::{Reuse, any_version, unknown_outcome};
use super::state::{Slot, State};
use crate::fault::{Fault, FaultKind};
use crate::ids::NodeIx;
use crate::schedule::{reads, supply};
use crate::template::{Root, classify};
use std::collections::BTreeSet;

impl State {
    /// What a person's no means for a call: nobody knows about a write that was in flight (C-13). `None`: what the
    /// call came to before stands, and nothing is refused (E-29).
    pub(crate) fn refused_by_person(&self, node: NodeIx, slot: &Slot) -> Option<Fault> {
        let call = &slot.call;
        if self.pool.is_unknown(node, any_version(&call.name, &call.arguments)) {
            return Some(unknown_outcome(&call.name));
        }
        let reuse = self
            .graph
            .tools
            .get(&call.name)
            .map(|t| self.reusable_call(node, t, &call.arguments, slot.effects));
        match reuse {
            Some(Reuse::Take(_) | Reuse::AskFirst(_, Some(_))) => None,
            Some(Reuse::AskFirst(_, None)) if self.pool.doubtful => {
                let message =
                    format!("nobody knows whether `{}` ran: the journal that says it is damaged", call.name);
                Some(Fault::new(FaultKind::UnknownOutcome, message))
            }
            _ => Some(Fault::new(FaultKind::Denied, format!("a person said no to running `{}`", call.name))),
        }
    }

    /// Whether `node` may depend, as D-16 sees it, on a node that has changed the world afresh. Linear in what it
    /// depends on.
    pub(crate) fn may_see_change(&self, node: NodeIx) -> bool {
        let Some(&first) = self.pool.changed.range(..node).next() else { return false };
        let mut seen = BTreeSet::new();
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for source in self.sources(at) {
                if self.pool.changed.contains(&source) {
                    return true;
                }
                if source > first && seen.insert(source) {
                    open.push(source);
                }
            }
        }
        false
    }

    /// The nodes that `node` is said to follow or whose outputs it can read; of those that may bring any name, the ones
    /// that have changed the world afresh.
    fn sources(&self, node: NodeIx) -> BTreeSet<NodeIx> {
        let def = &self.graph.nodes[node];
        let by_id = |id: &str| self.schedule.by_id.get(id).copied().filter(|found| *found < node);
        let mut sources: BTreeSet<NodeIx> = def.after.iter().filter_map(|id| by_id(id)).collect();
        for path in reads(&self.graph, def) {
            match classify(path, |id| self.schedule.by_id.contains_key(id)) {
                Root::StepOutput { step, .. } => sources.extend(by_id(step)),
                Root::Inputs { .. } => {}
                Root::Metadata { name, .. } | Root::Name { name, .. } => {
                    let last = self.schedule.last_supplier[node].iter();
                    sources.extend(last.filter(|(known, _)| known.as_ref() == name).map(|(_, last)| *last));
                    let changed = self.pool.changed.range(..node).copied();
                    sources.extend(changed.filter(|of| supply(&self.graph, &self.graph.nodes[*of]).unknown));
                }
            }
        }
        sources
    }
}
