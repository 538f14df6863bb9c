//! What still runs behind a node that failed (D-16): nodes that can't depend on it.

use super::dataflow::Dataflow;
use super::frame::Frame;
use super::node::{Done, NodePhase};
use super::state::State;
use crate::event::End;
use crate::fault::Fault;
use crate::graph::OnError;
use crate::ids::{NodeIx, NodeRef};
use crate::message::Thread;
use crate::schedule::{reads, supply};
use crate::template::{Root, classify};
use std::sync::Arc;

impl Frame {
    /// The first node without a result that `node`, whose waits are over, may depend on. Linear in what it waits for.
    pub(crate) fn skip_cause(&self, node: NodeIx) -> Option<NodeIx> {
        let unresolved = &self.dataflow.as_ref()?.unresolved;
        unresolved.nodes.range(..node).next()?;
        let def = &self.graph.nodes[node];
        let missing =
            |id: &str| self.by_id(id).filter(|found| *found < node && unresolved.nodes.contains(found));
        let after = def.after.iter().filter_map(|id| missing(id));
        let read = reads(&self.graph, def).into_iter().filter_map(|path| {
            match classify(path, |id| self.by_id(id).is_some()) {
                Root::StepOutput { step, .. } => missing(step),
                Root::Inputs { .. } => None,
                Root::Metadata { name, .. } | Root::Name { name, .. } => {
                    let last = self.last_supplier(node, name);
                    let last = last.filter(|last| unresolved.nodes.contains(last));
                    let any = unresolved.unknown.range(..node).next().copied();
                    last.into_iter().chain(any).min()
                }
            }
        });
        after.chain(read).min()
    }

    /// The run goes on without the node's result.
    pub(crate) fn note_unresolved(&mut self, node: NodeIx) {
        let Some(dataflow) = &mut self.dataflow else { return };
        dataflow.unresolved.nodes.insert(node);
        if supply(&self.graph, &self.graph.nodes[node]).unknown {
            dataflow.unresolved.unknown.insert(node);
        }
    }

    /// A node retires: too many failures in a row are fatal (D-19).
    pub(super) fn count_failure(&mut self, node: NodeIx) {
        let def = &self.graph.nodes[node];
        let limit = def.recovery.as_ref().map_or(u32::MAX, |recovery| recovery.consecutive_failures);
        let NodePhase::Done(done) = &mut self.nodes[node].phase else { return };
        if done.skipped || (done.fault.is_some() && def.on_error != OnError::Finish) {
            return;
        }
        let Some(Dataflow { unresolved, .. }) = self.dataflow.as_deref_mut() else { return };
        if done.fault.is_none() {
            unresolved.in_a_row = 0;
            return;
        }
        unresolved.in_a_row += 1;
        Arc::make_mut(done).fatal = unresolved.in_a_row >= limit;
    }

    fn first_unresolved(&self) -> Option<NodeIx> {
        self.dataflow.as_ref()?.unresolved.nodes.first().copied()
    }

    /// The first node that a resumed run or a fork begins anew.
    pub(crate) fn first_anew(&self) -> NodeIx {
        let retired = NodeIx(self.retired());
        self.first_unresolved().map_or(retired, |failed| failed.min(retired))
    }

    /// How a frame ends that has nothing left to do: with the first fault in list order, if there is one.
    pub(crate) fn ending(&self) -> (End, Option<Fault>) {
        match self.fault() {
            Some(fault) => return (End::Failed, Some(Fault::clone(fault))),
            None if self.flow.is_some() => return (End::Completed, None),
            None => {}
        }
        let head = self.head_of_retirement().filter(|done| done.fatal);
        let first = self.first_unresolved().and_then(|node| self.done(node)).or(head);
        let Some(mut fault) = first.and_then(|done| done.fault.as_deref().cloned()) else {
            return (End::Completed, None);
        };
        let limit = head.and_then(|_| {
            let def = &self.graph.nodes[NodeIx(self.retired())];
            let rules = def.recovery.as_ref().filter(|_| def.on_error == OnError::Finish)?;
            Some(rules.consecutive_failures)
        });
        if let Some(limit) = limit {
            fault.message = format!(
                "{}; the run ended at `{}`, where {limit} in a row had failed (`consecutive_failures` in [recovery])",
                fault.message,
                Arc::clone(&self.graph.nodes[NodeIx(self.retired())].id)
            );
        }
        (End::Failed, Some(fault))
    }
}

impl State {
    /// The node does not run.
    pub(super) fn skipped(&mut self, node: NodeRef) {
        let frame = self.of(node);
        let own = self.def(node).body.thread.map_or_else(Thread::default, |thread| {
            let order = crate::ids::OrderIx(thread.0);
            frame.thread_after(thread, frame.schedule.before(order, node.node))
        });
        let done = Done { skipped: true, finished_at: self.now, ..Done::default() };
        self.frames[node].phase = NodePhase::Done(Arc::new(done));
        self.frames[node.frame].note_unresolved(node.node);
        self.announce(node, own, None);
        self.retire(node.frame);
    }
}
