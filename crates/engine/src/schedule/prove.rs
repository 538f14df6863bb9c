//! The proof that a schedule has no race (E-11).
//!
//! Appends to a thread commute: each has its place by list order. Everything else that two nodes can do to one
//! place has to be ordered: running on a thread after any writer of it, reading a slice of it, reading a result
//! or a name. The proof goes through the accesses once, place by place.

use super::{Schedule, Until, reads, supply, unknown_order};
use crate::graph::{Act, Control, Graph, Node};
use crate::ids::{NodeIx, OrderIx};
use crate::template::{Root, classify};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("nodes {first} and {second} both use {place}, at least one changes it, and nothing orders them")]
pub struct Race {
    /// The earlier node.
    pub first: Arc<str>,
    /// The later node.
    pub second: Arc<str>,
    /// What both use.
    pub place: String,
}

/// Why a graph can't be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unsound {
    /// Two accesses that nothing orders.
    #[error(transparent)]
    Race(#[from] Race),
    /// A node of a dataflow sets a variable.
    #[error("{}", no_variables(.node, .name))]
    Variable {
        /// The node.
        node: Arc<str>,
        /// The variable.
        name: Arc<str>,
    },
    /// A node of a dataflow binds tools (E-41).
    #[error("{}", no_bindings(.node))]
    Bindings {
        /// The node.
        node: Arc<str>,
    },
    /// A node of a dataflow takes what people say at any moment (E-43).
    #[error("`{node}` takes messages of people, which in a dataflow would stand wherever chance has them")]
    Messages {
        /// The node.
        node: Arc<str>,
    },
}

/// What is wrong with a node of a dataflow that sets a variable.
pub(crate) fn no_variables(node: &str, name: &str) -> String {
    format!("`{node}` sets the variable `{name}`: a dataflow has none, as nobody could tell who sees it")
}

/// What is wrong with a node of a dataflow that binds tools.
pub(crate) fn no_bindings(node: &str) -> String {
    format!("`{node}` binds tools, which only a node of a flow can")
}

struct Proof<'a> {
    schedule: &'a Schedule,
    graph: &'a Graph,
    /// The last node so far that declares a name.
    declared: HashMap<Arc<str>, NodeIx>,
    /// How many nodes so far may bring any name.
    unknown: u32,
    /// The nodes that the present one waits for, and how many have retired by then.
    finished: HashSet<NodeIx>,
    retired: u32,
}

impl Schedule {
    /// Proves that conflicting accesses are ordered, in time linear in the accesses; of inner graphs, too. Nothing has to be ordered
    /// in a flow, which has one live node.
    ///
    /// # Errors
    /// The first pair of nodes that is not, or a node of a dataflow that sets a variable, binds tools or takes messages.
    pub fn prove(&self, graph: &Graph) -> Result<(), Unsound> {
        for inner in graph.graphs.values() {
            Self::derive(inner, false).prove(inner)?;
        }
        if graph.control == Control::Flow {
            return Ok(());
        }
        let mut proof = Proof {
            schedule: self,
            graph,
            declared: HashMap::new(),
            unknown: 0,
            finished: HashSet::new(),
            retired: 0,
        };
        for (ix, node) in graph.nodes.iter() {
            lacks_scope_acts(graph, node)?;
            proof.turn_to(ix);
            proof.after(ix, node)?;
            proof.threads(ix, node)?;
            proof.scope(ix, node)?;
            proof.supply(ix, node);
        }
        Ok(())
    }
}

/// A variable that a node sets.
fn lacks_scope_acts(graph: &Graph, node: &Node) -> Result<(), Unsound> {
    for leaf in graph.leaves(node) {
        let node = node.id.clone();
        match &leaf.act {
            Act::Set(name, _) | Act::Compute(name, _) | Act::Recall(name) => {
                return Err(Unsound::Variable { node, name: name.clone() });
            }
            Act::Bind(_) => return Err(Unsound::Bindings { node }),
            Act::TakeMessages => return Err(Unsound::Messages { node }),
            _ => {}
        }
    }
    Ok(())
}

impl Proof<'_> {
    /// Whether the node waits for the first `count` writers of an order.
    fn waits_for_first(&self, ix: NodeIx, order: OrderIx, count: u32) -> bool {
        let waits = |until: &Until| match *until {
            Until::First(known, first) => known == order && first >= count,
            Until::Retired(retired) => retired >= ix.0,
            Until::Finished(_) => false,
        };
        count == 0 || self.schedule.waits[ix].iter().any(|wait| waits(&wait.until))
    }

    fn waits_for(&self, producer: NodeIx) -> bool {
        producer.0 < self.retired || self.finished.contains(&producer)
    }

    /// What the next node waits for.
    fn turn_to(&mut self, ix: NodeIx) {
        self.finished.clear();
        self.retired = 0;
        for wait in &self.schedule.waits[ix] {
            match wait.until {
                Until::Finished(producer) => drop(self.finished.insert(producer)),
                Until::Retired(retired) => self.retired = self.retired.max(retired),
                Until::First(..) => {}
            }
        }
    }

    /// What is said to come first does (D-14).
    fn after(&self, ix: NodeIx, node: &Node) -> Result<(), Race> {
        let earlier = node.after.iter().filter_map(|id| self.schedule.by_id.get(id));
        match earlier.copied().find(|earlier| *earlier < ix && !self.waits_for(*earlier)) {
            Some(earlier) => Err(self.race(earlier, ix, "the order of both".into())),
            None => Ok(()),
        }
    }

    fn threads(&self, ix: NodeIx, node: &Node) -> Result<(), Race> {
        if let Some(thread) = node.body.thread {
            let order = OrderIx(thread.0);
            let count = self.schedule.before(order, ix);
            if !self.waits_for_first(ix, order, count) {
                return Err(self.race_in(order, count, ix, &self.graph.threads[thread].name));
            }
        }
        for leaf in self.graph.leaves(node) {
            if let Act::Open { from, .. } = leaf.act {
                let (order, count) = (OrderIx(from.0), self.schedule.open_at[ix]);
                if !self.waits_for_first(ix, order, count) {
                    return Err(self.race_in(order, count, ix, &self.graph.threads[from].name));
                }
            }
        }
        Ok(())
    }

    fn scope(&self, ix: NodeIx, node: &Node) -> Result<(), Race> {
        for path in reads(self.graph, node) {
            match classify(path, |id| self.schedule.by_id.contains_key(id)) {
                Root::Inputs { .. } => {}
                Root::StepOutput { step, .. } => {
                    if let Some(&producer) = self.schedule.by_id.get(step)
                        && !self.waits_for(producer)
                    {
                        return Err(self.race(producer, ix, format!("the result of {step}")));
                    }
                }
                Root::Metadata { name, .. } | Root::Name { name, .. } => {
                    if let Some(&producer) = self.declared.get(name)
                        && !self.waits_for(producer)
                    {
                        return Err(self.race(producer, ix, format!("the name {name}")));
                    }
                    let order = unknown_order(self.graph.threads.len());
                    if !self.waits_for_first(ix, order, self.unknown) {
                        return Err(self.race_in(order, self.unknown, ix, name));
                    }
                }
            }
        }
        Ok(())
    }

    fn supply(&mut self, ix: NodeIx, node: &Node) {
        let supply = supply(self.graph, node);
        self.unknown += u32::from(supply.unknown);
        for name in supply.names {
            self.declared.insert(format!("{}_{name}", node.id).into(), ix);
            self.declared.insert(name, ix);
        }
    }

    fn race_in(&self, order: OrderIx, count: u32, second: NodeIx, place: &str) -> Race {
        let writers = &self.schedule.orders[order].writers;
        let first = (count as usize).checked_sub(1).and_then(|at| writers.get(at)).copied();
        self.race(first.unwrap_or(second), second, place.to_owned())
    }

    fn race(&self, first: NodeIx, second: NodeIx, place: String) -> Race {
        let id = |ix: NodeIx| Arc::clone(&self.graph.nodes[ix].id);
        Race { first: id(first), second: id(second), place }
    }
}
