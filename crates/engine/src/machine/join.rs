//! Forks and their joins: paths at the same time or one after the other, until it is decided how they come together.

use super::children::{Opening, list};
use super::frame::Frame;
use super::inputs::Inputs;
use super::opened::{Children, Ended};
use super::paths::{ForkPhase, Path};
use super::state::State;
use crate::event::{Event, JoinOutcome, Joined};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, Join, Paths, PathsOf};
use crate::ids::{FrameIx, NodeRef};
use crate::place::Instance;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

impl State {
    /// The event of a fork that begins.
    pub(super) fn derive_fork(&self, node: NodeRef, paths: &Paths) -> Event {
        match self.items(node, paths).and_then(|(count, _)| Ok((count, self.due(node)?))) {
            Ok((count, due)) => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                Event::Entered { node: self.name(node), paths: Some(count), iteration: None, due }
            }
            Err(fault) => self.failed(node, fault),
        }
    }

    /// How many paths there are, and over what they go.
    fn items(&self, node: NodeRef, paths: &Paths) -> Result<(usize, Vec<Value>), Fault> {
        match &paths.of {
            PathsOf::Listed(paths) => Ok((paths.len(), Vec::new())),
            PathsOf::Each { over, .. } => {
                let what = format!("what the fork `{}` goes over", self.def(node).id);
                let (items, limit) = (list(self.resolved(node, over)?, &what)?, self.start.limits.fanout);
                if items.len() as u64 > limit {
                    let message = format!(
                        "{what} has {} elements, over the limit of {limit} (`fanout` in [limits])",
                        items.len()
                    );
                    return Err(Fault::new(FaultKind::InputError, message));
                }
                Ok((items.len(), items))
            }
        }
    }

    /// All paths begin, or the first.
    pub(super) fn open_paths(&mut self, node: NodeRef, paths: &Paths, due: Option<i64>) {
        let (count, items) = self.items(node, paths).unwrap_or_default();
        let slots = match &paths.of {
            PathsOf::Each { .. } => self.slots_of(node, &items),
            PathsOf::Listed(_) => None,
        };
        let elements = match &paths.of {
            PathsOf::Each { item, .. } => Some(Inputs::elements(item.clone(), items)),
            PathsOf::Listed(_) => None,
        };
        let mut phase = ForkPhase { elements, slots, ..ForkPhase::default() };
        phase.paths.resize_with(count, || Path::Waiting);
        phase.outcome = phase.judge(paths.join.strategy);
        let decided = phase.outcome.is_some();
        self.set_children(node, Children::Fork(phase));
        if decided {
            return;
        }
        self.set_timer(node, due);
        if paths.serial {
            return self.next_path(node, paths);
        }
        self.frames.reserve(count);
        for at in 0..count {
            self.open_path(node, paths, at);
        }
    }

    /// The first path that has not ended begins, or goes on.
    fn next_path(&mut self, node: NodeRef, paths: &Paths) {
        let Some(Children::Fork(phase)) = self.children_mut(node) else { return };
        let next = phase.paths.iter().position(|path| !matches!(path, Path::Ended(_)));
        if let Some(at) = next {
            self.open_path(node, paths, at);
        }
    }

    fn open_path(&mut self, node: NodeRef, paths: &Paths, at: usize) {
        let Some(graph) = paths.of.graph(at) else { return };
        let suspended = self.children_mut(node).and_then(|children| match children {
            Children::Fork(phase) => phase.take_suspended(at),
            _ => None,
        });
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        if let Some(frame) = suspended {
            let open = self.reopen(node, number, frame);
            self.set_open(node, at, open);
            return self.restart(open);
        }
        let (inputs, slot) = match self.children_mut(node) {
            Some(Children::Fork(phase)) => {
                (phase.elements.clone(), phase.slots.as_ref().and_then(|slots| slots.get(at).copied()))
            }
            _ => (None, None),
        };
        let id = paths.of.id(at);
        let instance = Instance::Path(Cow::Borrowed(&id));
        let open = self.open_frame(node, graph, Opening { at: number, instance, inputs, slot });
        self.set_open(node, at, open);
        self.begin_frame(open);
    }

    fn set_open(&mut self, node: NodeRef, at: usize, open: FrameIx) {
        if let Some(Children::Fork(phase)) = self.children_mut(node)
            && let Some(path) = phase.paths.get_mut(at)
        {
            *path = Path::Open(open);
        }
    }

    /// A fork that had failed goes on: paths that failed run again, and those that were cut off where they stood (E-36).
    pub(super) fn restart_paths(&mut self, node: NodeRef) {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return };
        let graph = Arc::clone(&self.of(node).graph);
        let Act::Fork(paths) = &graph.leaf(node.node, leaf).act else { return };
        let Some(Children::Fork(phase)) = self.children_mut(node) else { return };
        phase.reopen();
        phase.outcome = phase.judge(paths.join.strategy);
        if phase.outcome.is_some() {
            return;
        }
        self.set_timer_anew(node);
        if paths.serial {
            return self.next_path(node, paths);
        }
        let Some(Children::Fork(phase)) = self.children_mut(node) else { return };
        let ended: Vec<bool> = phase.paths.iter().map(|path| matches!(path, Path::Ended(_))).collect();
        for at in (0..ended.len()).filter(|at| ended.get(*at) == Some(&false)) {
            self.open_path(node, paths, at);
        }
    }

    /// A path has ended: the journal's order of such ends decides the join (E-07).
    pub(super) fn path_over(&mut self, node: NodeRef, at: usize, ended: Ended) {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return };
        let graph = Arc::clone(&self.of(node).graph);
        let Act::Fork(paths) = &graph.leaf(node.node, leaf).act else { return };
        let Some(Children::Fork(phase)) = self.children_mut(node) else { return };
        match ended.fault {
            None => phase.completed += 1,
            Some(_) => phase.failed += 1,
        }
        if let Some(path) = phase.paths.get_mut(at) {
            *path = Path::Ended(Box::new(ended));
        }
        phase.outcome = phase.judge(paths.join.strategy);
        if phase.outcome.is_some() {
            self.cut_children(node);
        } else if paths.serial {
            self.next_path(node, paths);
        }
    }

    /// The event of a join that is decided.
    pub(super) fn derive_join(&self, node: NodeRef, paths: &Paths, phase: &ForkPhase) -> Option<Event> {
        let outcome = phase.outcome?;
        Some(match outcome {
            JoinOutcome::Met => {
                let joined = joined(paths, phase, outcome);
                Event::Left { node: self.name(node), joined: Some(Box::new(joined)) }
            }
            JoinOutcome::Unmet | JoinOutcome::Timeout => {
                self.failed(node, unmet(&self.def(node).id, paths, phase, outcome))
            }
        })
    }

    /// A join was met: its value, the main path's threads, and what it exports (W-09 … W-11).
    pub(super) fn joined(&mut self, node: NodeRef, phase: &ForkPhase) {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return };
        let graph = Arc::clone(&self.of(node).graph);
        let Act::Fork(paths) = &graph.leaf(node.node, leaf).act else { return };
        self.give_value(node, phase.results(&paths.of));
        if self.start.edition >= 7
            && let Some(visit) = self.visit_mut(node)
        {
            visit.extra_mut().errors = Some(Box::new(phase.errors(&paths.of)));
        }
        let find = |id: &str| {
            let found = phase.paths.iter().enumerate().find(|(at, _)| *paths.of.id(*at) == *id);
            found.and_then(|(_, path)| path.completed())
        };
        let name = self.name(node);
        if let Some(main) = &paths.join.main {
            match find(main) {
                Some(ended) => self.adopt(node, &ended.frame),
                None => {
                    let message = format!(
                        "the path `{main}` did not complete: the conversation goes on as it was before the fork"
                    );
                    self.warnings.push(Warning::at("main-path-not-adopted", &name, message));
                }
            }
        }
        for (variable, path) in &paths.join.exports {
            // What was set before the fork is in the path's snapshot.
            let around = || self.variable_around(node.frame, variable);
            let value =
                find(path).map(|ended| ended.frame.variable(variable).or_else(around).unwrap_or_default());
            if value.is_none() {
                let message =
                    format!("`{variable}` is null: the path `{path}`, which was to set it, did not complete");
                self.warnings.push(Warning::at("export-missing", &name, message));
            }
            self.set_variable(node.frame, variable, value.unwrap_or_default());
        }
    }
}

impl State {
    /// A variable as those see it who are in a frame: its own, or that of a frame around it.
    fn variable_around(&self, frame: FrameIx, name: &str) -> Option<Value> {
        let mut at = Some(frame);
        while let Some(frame) = at {
            let frame = &self.frames[frame];
            if let Some(value) = frame.variable(name) {
                return Some(value);
            }
            at = frame.opened_by.map(|(node, _)| node.frame);
        }
        None
    }
}

impl Frame {
    /// A variable as it is at the end of the frame, if it was set or given there.
    fn variable(&self, name: &str) -> Option<Value> {
        let own = self.flow.as_ref().and_then(|flow| flow.variable(name).cloned());
        own.or_else(|| self.input(name).cloned())
    }
}

/// What is journaled of a join.
fn joined(paths: &Paths, phase: &ForkPhase, outcome: JoinOutcome) -> Joined {
    let ids = |keep: fn(&Path) -> bool| {
        let kept = phase.paths.iter().enumerate().filter(|(_, path)| keep(path));
        kept.map(|(at, _)| paths.of.id(at)).collect::<Vec<Arc<str>>>()
    };
    let completed = ids(|path| path.completed().is_some());
    let Join { main, .. } = &paths.join;
    Joined {
        outcome,
        main: main.clone().filter(|main| completed.contains(main)),
        failed: ids(|path| matches!(path, Path::Ended(ended) if ended.fault.is_some())),
        cancelled: ids(|path| !matches!(path, Path::Ended(_))),
        completed,
    }
}

/// The fault of a join that can't be met any more, or whose time is up (W-08).
fn unmet(id: &str, paths: &Paths, phase: &ForkPhase, outcome: JoinOutcome) -> Fault {
    const NAMED: usize = 20;
    let all = phase.paths.iter().enumerate();
    let rows: Map<String, Value> = all
        .map(|(at, path)| {
            let row = match path.end() {
                Some(Ok(_)) => json!({"status": "completed"}),
                Some(Err(fault)) => json!({"status": "failed", "error": fault}),
                None => json!({"status": "cancelled"}),
            };
            (paths.of.id(at).to_string(), row)
        })
        .collect();
    let named: Vec<String> = phase
        .paths
        .iter()
        .enumerate()
        .take(NAMED)
        .map(|(at, path)| {
            let id = paths.of.id(at);
            match path.end() {
                Some(Ok(_)) => format!("`{id}` completed"),
                Some(Err(fault)) => format!("`{id}` failed ({})", fault.message),
                None => format!("`{id}` had not ended"),
            }
        })
        .collect();
    let more = match phase.paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let (kind, why) = match outcome {
        JoinOutcome::Timeout => (FaultKind::Timeout, "was not decided in time"),
        _ => (FaultKind::JoinUnmet, "can't be met any more"),
    };
    let named = if named.is_empty() { "there is no path".to_owned() } else { named.join(", ") };
    let under_way = &phase.under_way;
    Fault::new(kind, format!("the join of `{id}` {why}: {named}{more}{under_way}"))
        .because(Value::Object(rows))
}
