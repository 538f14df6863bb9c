//! New nodes in the place of others: replans, planned tasks (D-20, D-21), and running again what ran ahead of a
//! recovery that nobody could foresee.

use super::done::Done;
use super::state::{Frame, NodePhase, NodeState, OrderState, State};
use crate::effect::{EffectId, Effects, ToolDef};
use crate::event::Event;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Graph, Node, Tail};
use crate::ids::{Ix, NodeIx, Table, TailIx};
use crate::schedule::{Schedule, Until};
use crate::schema::Checks;
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
        node: NodeIx,
        frame: &Frame,
        context: &Map<String, Value>,
    ) -> Result<Value, Fault> {
        let mut reply = self
            .last_reply(frame)
            .ok_or_else(|| unfit("the reply is not one JSON object {\"steps\": […]} and nothing else"))?;
        let Some(steps @ Value::Array(_)) = reply.remove("steps") else {
            return Err(unfit("the reply has no list `steps`"));
        };
        let mut args = context.clone();
        args.insert("steps".into(), steps);
        let mending = frame.mending.as_deref();
        let strategy = reply.remove("strategy").filter(Value::is_string);
        let strategy = strategy.or_else(|| mending.and_then(|m| m.strategy.as_deref()).map(Value::from));
        args.extend(strategy.map(|strategy| ("strategy".to_owned(), strategy)));
        let earlier = self.graph.nodes.iter().take_while(|(ix, _)| *ix < node).map(|(ix, def)| {
            let done = self.done(ix);
            let tool = done.and_then(Done::tool).or(def.tool.as_ref());
            let success = done.is_some_and(|done| done.fault.is_none() && !done.skipped);
            json!({"id": def.id, "tool": tool, "success": success})
        });
        args.insert("earlier".into(), earlier.collect());
        Ok(Value::Object(args))
    }

    /// What is wrong with a compiler's output: its own diagnostics, or nodes that do not fit behind those before `node`.
    /// Either goes back to who wrote the steps (D-20).
    pub(crate) fn compiled_fault(&self, node: NodeIx, output: &Value) -> Option<Fault> {
        match output.get("nodes") {
            None => Some(refused(output)),
            Some(_) => self.with_nodes(node, output).err().map(|error| unfit(&error)),
        }
    }

    /// The event of a `Splice` leaf.
    pub(crate) fn derive_splice(&self, node: NodeIx, frame: &Frame) -> Event {
        let compiled = frame.mending.as_deref().and_then(|mending| mending.compiled.as_ref());
        let spliced = match compiled {
            _ if self.retired != node.0 => Err("nodes before it have not retired".into()),
            Some((effect, output)) => self.with_nodes(node, output).map(|(graph, _)| (effect.clone(), graph)),
            None => Err("nothing was compiled".into()),
        };
        match spliced {
            Ok((effect, graph)) => {
                let warnings = self.left_out(node, &graph).into_iter().collect();
                Event::Spliced { node: self.graph.nodes[node].id.clone(), effect, warnings }
            }
            Err(error) => self.failed(node, unfit(&error)),
        }
    }

    /// D-20, D-22: nothing takes the place of a failed node and all behind it. That may be right, but whoever wrote them
    /// should know: nothing else of the run's end says so.
    fn left_out(&self, node: NodeIx, graph: &Graph) -> Option<Warning> {
        let gone: Vec<&str> = self.graph.nodes.values().skip(node.get()).map(|def| &*def.id).collect();
        (graph.nodes.len() == node.get()).then(|| {
            let named: Vec<String> = gone.iter().take(NAMED).map(|id| format!("`{id}`")).collect();
            let more = match gone.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "the replan at `{}` has no steps: what was left to do is left out ({}{more})",
                self.graph.nodes[node].id,
                named.join(", ")
            );
            Warning::at("steps-left-out", &self.graph.nodes[node].id, message)
        })
    }

    /// The graph with the compiled nodes instead of `node` and all later ones, and its schedule.
    fn with_nodes(&self, node: NodeIx, output: &Value) -> Result<(Graph, Schedule), String> {
        let compiled = Compiled::deserialize(output).map_err(|error| error.to_string())?;
        let earlier = self.graph.nodes.iter().take_while(|(ix, _)| *ix < node).map(|(_, def)| def);
        let mut graph = Graph {
            name: self.graph.name.clone(),
            threads: self.graph.threads.clone(),
            nodes: earlier.cloned().collect(),
            tools: self.graph.tools.clone(),
            withheld: self.graph.withheld.clone(),
            tails: self.graph.tails.clone(),
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
    pub(super) fn spliced(&mut self, node: NodeIx, effect: &EffectId) {
        let compiled = self.frame(node).and_then(|frame| frame.mending.as_deref()?.compiled.as_ref());
        let fits = |(known, _): &&(EffectId, Arc<Value>)| known == effect && self.retired == node.0;
        let Some((_, output)) = compiled.filter(fits) else { return };
        let Ok((graph, schedule)) = self.with_nodes(node, output) else { return };
        self.fill_pool(NodeIx(node.0 + 1));
        self.pool.unplace(node, |of| self.graph.nodes[of].id.clone());
        self.pool.changed.split_off(&NodeIx(node.0 + 1));
        self.note_former(node);
        // What is under way belongs to nodes that are about to go, and so does what they had to say.
        self.forget_in_flight();
        self.forget_warnings(node);
        self.graph = Arc::new(graph);
        self.schedule = schedule;
        // Schemas of replies are known by place.
        self.checks = Checks::default();
        let mut nodes: Table<NodeIx, NodeState> = Table::with_capacity(self.graph.nodes.len());
        for (ix, def) in self.graph.nodes.iter() {
            nodes.push(match self.nodes.get_mut(ix).filter(|_| ix < node) {
                Some(row) => std::mem::replace(row, NodeState::new(0)),
                None => {
                    let (visit, tries, counted) = self.former.get(&def.id).copied().unwrap_or_default();
                    NodeState { tries, counted, ..NodeState::new(visit) }
                }
            });
        }
        self.nodes = nodes;
        self.orders = self.schedule.orders.values().map(|_| OrderState::default()).collect();
        self.place_former(node);
        let decided = self.replans.remove(&node).unwrap_or(0);
        self.replanned += decided;
        self.begin_again(node);
    }

    /// Visits and tries of an id go on across splices (D-25), so that no effect id comes twice. What ran ahead was
    /// not tried yet (D-20).
    fn note_former(&mut self, first: NodeIx) {
        let ids = self.graph.nodes.iter().skip(first.0 as usize);
        for (ix, def) in ids {
            let (tries, counted) = self.tries_so_far(ix);
            self.former.insert(def.id.clone(), (self.nodes[ix].visit, tries, counted));
        }
    }

    /// Tries of a node that count, up to which visit: those of a node that is ahead of its turn do not yet.
    pub(crate) fn tries_so_far(&self, node: NodeIx) -> (u32, u32) {
        let row = &self.nodes[node];
        match &row.phase {
            _ if node.0 > self.retired => (row.tries, row.counted),
            NodePhase::Running(frame) => (row.tries + self.tries_of(node, frame), row.visit),
            NodePhase::Done(done) if !done.skipped => (done.attempts, row.visit),
            NodePhase::Waiting(_) | NodePhase::Done(_) => (row.tries, row.counted),
        }
    }

    /// Recorded outcomes of nodes that are there again.
    pub(crate) fn place_former(&mut self, first: NodeIx) {
        let ids: Vec<(Arc<str>, NodeIx)> =
            self.graph.nodes.iter().skip(first.0 as usize).map(|(ix, def)| (def.id.clone(), ix)).collect();
        for (id, node) in ids {
            self.pool.place(&id, node);
        }
    }

    /// A recovery did what the schedule did not foresee of `node`, which stands first in line: whatever ran ahead of
    /// it begins again once it has retired (D-16: it could not have seen this).
    pub(crate) fn squash_behind(&mut self, node: NodeIx) {
        let first = NodeIx(node.0 + 1);
        if self.graph.nodes.get(first).is_none() {
            return;
        }
        self.fill_pool(first);
        self.forget_warnings(first);
        self.drop_from(first, node);
        self.await_from(first, Some(Until::Retired(first.0)));
    }

    /// What nodes from `first` on had to say they will say again, if it still holds when they have run again.
    pub(crate) fn forget_warnings(&mut self, first: NodeIx) {
        let by_id = &self.schedule.by_id;
        let stays = |id: &Arc<str>| by_id.get(id).is_none_or(|node| *node < first);
        self.warnings.retain(|warning| warning.node.as_ref().is_none_or(stays));
    }

    /// Whether a call of `node` changes the world more than the schedule foresees of it.
    pub(crate) fn is_unforeseen(&self, node: NodeIx, effects: Effects) -> bool {
        effects >= Effects::Idempotent && self.schedule.world[node] < Some(Effects::Idempotent)
    }
}
