//! New nodes in the place of others: replans, planned tasks (D-20, D-21), and running again what ran ahead of a
//! recovery that nobody could foresee.

use super::frame::Frame;
use super::node::{Done, NodePhase, NodeState, Visit};
use super::nodes::Nodes;
use super::stands::Stands;
use super::state::State;
use crate::effect::{EffectId, Effects, ToolDef};
use crate::event::Event;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Graph, Node, Tail};
use crate::ids::{Ix, NodeIx, NodeRef, Table, TailIx};
use crate::schedule::{Schedule, Until};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most ids that a warning names.
const NAMED: usize = 10;

/// The output of a compiler.
#[derive(Deserialize)]
struct Compiled {
    nodes: Vec<Node>,
    #[serde(default)]
    tools: BTreeMap<Arc<str>, Arc<ToolDef>>,
    /// What `nodes` share, by places in this list.
    #[serde(default)]
    tails: Table<TailIx, Arc<Tail>>,
}

/// The fault of steps that can't be used, in words for who wrote them.
fn unfit(message: &str) -> Fault {
    Fault::new(FaultKind::MalformedResponse, format!("the steps can't be used: {message}"))
        .because(json!([message]))
}

/// The fault of a compiler's output that is no graph (D-21).
fn refused(output: &Value) -> Fault {
    let diagnostics = output.get("diagnostics").cloned().unwrap_or_default();
    let first = diagnostics.get(0).map(|first| match first.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => first.as_str().map_or_else(|| first.to_string(), str::to_owned),
    });
    let said = first.unwrap_or_else(|| "there is nothing in them".into());
    Fault::new(FaultKind::MalformedResponse, format!("the steps can't be used: {said}")).because(diagnostics)
}

impl State {
    /// What the compiler is given: the steps of the last reply, and what came before them (D-20).
    pub(crate) fn compile_arguments(
        &self,
        node: NodeRef,
        visit: &Visit,
        context: &Map<String, Value>,
    ) -> Result<Value, Fault> {
        let mut reply = self.last_reply(visit).ok_or_else(|| self.no_steps(visit))?;
        let Some(steps @ Value::Array(_)) = reply.remove("steps") else {
            return Err(unfit("the reply has no list `steps`"));
        };
        let mut args = context.clone();
        args.insert("steps".into(), steps);
        let strategy = reply.remove("strategy").filter(Value::is_string);
        let strategy = strategy.or_else(|| visit.strategy().map(Value::from));
        args.extend(strategy.map(|strategy| ("strategy".to_owned(), strategy)));
        let frame = self.of(node);
        let earlier = frame.graph.nodes.iter().take_while(|(ix, _)| *ix < node.node).map(|(ix, def)| {
            let done = frame.done(ix);
            let tool = done.and_then(Done::tool).or(def.tool.as_ref());
            let success = done.is_some_and(|done| done.fault.is_none() && !done.skipped);
            json!({"id": def.id, "tool": tool, "success": success})
        });
        args.insert("earlier".into(), earlier.collect());
        Ok(Value::Object(args))
    }

    /// The fault of a reply that is no list of steps.
    fn no_steps(&self, visit: &Visit) -> Fault {
        let mut message = "the reply is not one JSON object {\"steps\": […]} and nothing else".to_owned();
        if let Some(reply) = self.last_reply_text(visit).filter(|_| self.start.edition >= 7) {
            if let Err(error) = self.reply_json(reply) {
                message = format!("{message}: {error}");
            }
            message = format!("{message}; it begins {}", crate::json::beginning(reply));
        }
        unfit(&message)
    }

    /// What is wrong with a compiler's output: its own diagnostics, or nodes that do not fit behind those before `node`.
    /// Either goes back to who wrote the steps (D-20).
    pub(crate) fn compiled_fault(&self, node: NodeRef, output: &Value) -> Option<Fault> {
        match output.get("nodes") {
            None => Some(refused(output)),
            Some(_) => self.with_nodes(node, output).err().map(|error| unfit(&error)),
        }
    }

    /// The event of a `Splice` leaf.
    pub(crate) fn derive_splice(&self, node: NodeRef, visit: &Visit) -> Event {
        let spliced = match visit.compiled() {
            _ if self.of(node).retired() != node.node.0 => Err("nodes before it have not retired".into()),
            Some((effect, output)) => self.with_nodes(node, output).map(|(graph, _)| (effect.clone(), graph)),
            None => Err("nothing was compiled".into()),
        };
        match spliced {
            Ok((effect, graph)) => {
                let warnings = self.left_out(node, &graph).into_iter().collect();
                Event::Spliced { node: self.name(node), effect, warnings }
            }
            Err(error) => self.failed(node, unfit(&error)),
        }
    }

    /// D-20, D-22: nothing takes the place of a failed node and all behind it. That may be right, but whoever wrote them
    /// should know: nothing else of the run's end says so.
    fn left_out(&self, node: NodeRef, graph: &Graph) -> Option<Warning> {
        let gone = self.of(node).graph.nodes.values().skip(node.node.get());
        let gone: Vec<&str> = gone.map(|def| &*def.id).collect();
        (graph.nodes.len() == node.node.get()).then(|| {
            let named: Vec<String> = gone.iter().take(NAMED).map(|id| format!("`{id}`")).collect();
            let more = match gone.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "the replan at `{}` has no steps: what was left to do is left out ({}{more})",
                self.def(node).id,
                named.join(", ")
            );
            Warning::at("steps-left-out", &self.def(node).id, message)
        })
    }

    /// The graph with the compiled nodes instead of `node` and all later ones, and its schedule.
    fn with_nodes(&self, node: NodeRef, output: &Value) -> Result<(Graph, Schedule), String> {
        let compiled = Compiled::deserialize(output).map_err(|error| error.to_string())?;
        let own = &self.of(node).graph;
        let mut graph = Graph {
            name: own.name.clone(),
            threads: own.threads.clone(),
            nodes: own.nodes.values().take(node.node.get()).cloned().collect(),
            tools: own.tools.clone(),
            withheld: own.withheld.clone(),
            tails: own.tails.clone(),
            control: own.control,
            graphs: own.graphs.clone(),
            derived: crate::graph::Derived::default(),
            budget: own.budget.clone(),
        };
        let shared: Table<TailIx, TailIx> =
            compiled.tails.values().map(|tail| graph.share(Arc::clone(tail))).collect();
        for mut node in compiled.nodes {
            if let Some(tail) = &mut node.body.tail {
                let place = shared.get(*tail).copied();
                *tail = place.ok_or_else(|| format!("the node `{}` shares what is not there", node.id))?;
            }
            graph.nodes.push(node);
        }
        // What is pinned stays as it is.
        for (name, tool) in compiled.tools {
            graph.tools.entry(name).or_insert(tool);
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = graph.nodes.values().find(|node| !ids.insert(&node.id)) {
            return Err(format!("the id `{}` is taken: choose another", twice.id));
        }
        if let Some(lost) = graph.nodes.values().find(|node| !node.is_whole(&graph)) {
            return Err(format!("the node `{}` refers to what is not there", lost.id));
        }
        if let Some(endless) = graph.nodes.values().find(|node| node.spins(&graph)) {
            return Err(format!("the node `{}` goes in circles and does nothing", endless.id));
        }
        let schedule = Schedule::derive(&graph, self.start.sequential);
        schedule.prove(&graph).map_err(|race| race.to_string())?;
        Ok((graph, schedule))
    }

    /// The nodes before `node` stay as they are; the compiled ones come behind them. What the dropped ones recorded
    /// may be taken by those that recur (E-29).
    pub(super) fn spliced(&mut self, node: NodeRef, effect: &EffectId) {
        let compiled = self.visit(node).and_then(Visit::compiled);
        let fits =
            |(known, _): &&(EffectId, Arc<Value>)| known == effect && self.of(node).retired() == node.node.0;
        let Some((_, output)) = compiled.filter(fits) else { return };
        let Ok((graph, schedule)) = self.with_nodes(node, output) else { return };
        let behind = node.sibling(NodeIx(node.node.0 + 1));
        self.fill_pool(behind);
        let spot = self.spot(node);
        let own = &self.frames[node.frame].graph;
        self.reuse.unmatch(spot, |of| own.nodes[of.node].id.clone());
        self.reuse.forget_changed(spot.sibling(behind.node));
        self.note_prior_visits(node);
        // What is under way belongs to nodes that are about to go, and so does what they had to say.
        self.forget_from(node.sibling(NodeIx(0)));
        self.forget_warnings(node, &Stands::default());
        // Schemas of replies are known by place.
        self.checks = Arc::default();
        self.frames[node.frame].replace_from(node.node, graph, schedule);
        self.match_recorded(node);
        self.begin_again(node, &Stands::default());
    }

    /// Visits and tries of an id go on across splices (D-25), so that no effect id comes twice. What ran ahead was
    /// not tried yet (D-20).
    fn note_prior_visits(&mut self, first: NodeRef) {
        for node in self.of(first).nodes_from(first.node) {
            let node = first.sibling(node);
            let ((tries, counted), visit) = (self.tries_so_far(node), self.frames[node].visit);
            let id = self.def(node).id.clone();
            if let Some(dataflow) = &mut self.frames[first.frame].dataflow {
                dataflow.prior_visits.insert(id, (visit, tries, counted));
            }
        }
    }

    /// Tries of a node that count, up to which visit: those of a node that is ahead of its turn do not yet.
    pub(crate) fn tries_so_far(&self, node: NodeRef) -> (u32, u32) {
        let row = &self.frames[node];
        match &row.phase {
            _ if node.node.0 > self.of(node).retired() => (row.tries, row.counted),
            NodePhase::Running(visit) => (row.tries + self.tries_of(node, visit), row.visit),
            NodePhase::Done(done) if !done.skipped => (done.attempts, row.visit),
            NodePhase::Waiting(_) | NodePhase::Done(_) => (row.tries, row.counted),
        }
    }

    /// Recorded outcomes of nodes that are there again.
    pub(crate) fn match_recorded(&mut self, first: NodeRef) {
        let spot = self.spot_for(first);
        let frame = &self.frames[first.frame];
        for node in frame.nodes_from(first.node) {
            self.reuse.place(&frame.graph.nodes[node].id, spot.sibling(node));
        }
    }

    /// A recovery did what the schedule did not foresee of `node`, which stands first in line: whatever ran ahead of
    /// it begins again once it has retired (D-16: it could not have seen this).
    pub(crate) fn squash_behind(&mut self, node: NodeRef) {
        let first = node.sibling(NodeIx(node.node.0 + 1));
        if self.of(node).graph.nodes.get(first.node).is_none() {
            return;
        }
        self.fill_pool(first);
        self.forget_warnings(first, &Stands::default());
        self.drop_from(first, node.node, &Stands::default());
        self.await_from(first, Some(Until::Retired(first.node.0)));
    }

    /// What nodes from `first` on had to say they will say again, if it still holds when they have run again; but for those that stand.
    pub(crate) fn forget_warnings(&mut self, first: NodeRef, stands: &Stands) {
        let mut warnings = std::mem::take(&mut self.warnings);
        let of = |name: &Arc<str>| self.within(self.node_named(name)?, first.frame);
        let stays = |name: &Arc<str>| of(name).is_none_or(|node| node < first || stands.has(node.node));
        warnings.retain(|warning| warning.node.as_ref().is_none_or(stays));
        self.warnings = warnings;
    }

    /// Whether a call of `node` changes the world more than the schedule foresees of it.
    pub(crate) fn is_unforeseen(&self, node: NodeRef, effects: Effects) -> bool {
        effects >= Effects::Idempotent && self.of(node).schedule.world[node.node] < Some(Effects::Idempotent)
    }
}

impl Frame {
    /// Another graph, whose nodes before `first` are those of this one. A replan at `first` counts as made.
    fn replace_from(&mut self, first: NodeIx, graph: Graph, schedule: Schedule) {
        let Some(dataflow) = &mut self.dataflow else { return };
        let mut nodes: Table<NodeIx, NodeState> = Table::with_capacity(graph.nodes.len());
        for (ix, def) in graph.nodes.iter() {
            nodes.push(match self.nodes.get_mut(ix).filter(|_| ix < first) {
                Some(row) => std::mem::replace(row, NodeState::new(0)),
                None => {
                    let (visit, tries, counted) =
                        dataflow.prior_visits.get(&def.id).copied().unwrap_or_default();
                    NodeState { tries, counted, ..NodeState::new(visit) }
                }
            });
        }
        self.nodes = Nodes::All(nodes);
        dataflow.place(&graph, &schedule);
        dataflow.replanned += dataflow.replans.remove(&first).unwrap_or(0);
        (self.graph, self.schedule) = (Arc::new(graph), Arc::new(schedule));
    }
}
