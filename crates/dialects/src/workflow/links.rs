//! Which node leads to which, and which fork belongs to which join (W-01, W-05, W-13, W-14).

use super::doc::{Does, ForkOf, Formula, JoinOf, Taken, Text, WorkNode, WorkflowDoc};
use super::read_fork::old_path_ids;
use crate::diagnostic::listed;
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::Span;
use crate::{Diagnostics, DocumentLimits, Finding};
use selvedge_engine::graph::Strategy;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A way on from a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out<'d> {
    pub(super) to: usize,
    pub(super) when: Take<'d>,
    /// Where it is written.
    pub(super) span: Span,
}

/// When a way is taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take<'d> {
    Done,
    Error,
    If(&'d Formula),
}

/// How the nodes of a workflow are linked.
pub(super) struct Links<'d> {
    pub(super) ids: HashMap<&'d str, usize>,
    /// The ways on from each node; of a fork none: its children are its paths' first nodes.
    pub(super) outs: Vec<Vec<Out<'d>>>,
    /// Of a fork its join, of a loop's start its end, and the other way round.
    pub(super) partner: Vec<Option<usize>>,
    /// How deep forks and loops may lie in each other (W-12).
    pub(super) depth: usize,
}

impl<'d> Links<'d> {
    /// `None`, with errors among the findings, if something has no partner.
    pub(super) fn of(
        doc: &'d WorkflowDoc,
        limits: &DocumentLimits,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let before = diagnostics.errors();
        let ids = doc.nodes.iter().enumerate().map(|(at, node)| (&*node.id.value, at)).collect();
        let nodes = doc.nodes.len();
        let depth = limits.depth_in_force();
        let (outs, partner) = (vec![Vec::new(); nodes], vec![None; nodes]);
        let mut links = Linking { doc, ids, outs, partner, depth, diagnostics };
        links.edges();
        links.loops();
        links.forks();
        let Linking { ids, outs, partner, .. } = links;
        (diagnostics.errors() == before).then_some(Self { ids, outs, partner, depth })
    }
}

struct Linking<'d, 'x> {
    doc: &'d WorkflowDoc,
    ids: HashMap<&'d str, usize>,
    outs: Vec<Vec<Out<'d>>>,
    partner: Vec<Option<usize>>,
    depth: usize,
    diagnostics: &'x mut Diagnostics,
}

impl<'d> Linking<'d, '_> {
    fn error(&mut self, code: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.diagnostics.push(Finding::error("W-14", code, span, message).help(help));
    }

    fn node(&self, at: usize) -> Option<&'d WorkNode> {
        self.doc.nodes.get(at)
    }

    fn find(&mut self, name: &Text) -> Option<usize> {
        let found = self.ids.get(&*name.value).copied();
        if found.is_none() {
            let message = format!("there is no node {}", shown(&name.value));
            let mut names: Vec<&str> = match self.diagnostics.worth_searching("unknown-node", self.ids.len())
            {
                true => self.ids.keys().copied().collect(),
                false => Vec::new(),
            };
            names.sort_unstable();
            let help = match meant(&name.value, &names) {
                Some(near) => format!("did you mean {}?", shown(near)),
                None => "write the `id` of a node".to_owned(),
            };
            self.error("unknown-node", name.span, message, help);
        }
        found
    }

    fn edges(&mut self) {
        for edge in &self.doc.edges {
            let (Some(from), Some(to)) = (self.find(&edge.from), self.find(&edge.to)) else { continue };
            let when = match &edge.when {
                None => Take::Done,
                Some(Taken::Error(_)) => Take::Error,
                Some(Taken::If(formula)) => Take::If(formula),
            };
            if self.allowed(from, to, when, edge.span) {
                let out = Out { to, when, span: edge.span };
                self.outs.get_mut(from).into_iter().for_each(|outs| outs.push(out));
            }
        }
        for (at, node) in self.doc.nodes.iter().enumerate() {
            if let Does::Route { branches, default } = &node.does {
                let mut outs = Vec::with_capacity(branches.len() + 1);
                for (formula, to) in branches {
                    let out = |to| Out { to, when: Take::If(formula), span: formula.span };
                    outs.extend(self.find(to).map(out));
                }
                outs.extend(self.find(default).map(|to| Out { to, when: Take::Done, span: default.span }));
                if let Some(known) = self.outs.get_mut(at) {
                    outs.append(known);
                    *known = outs;
                }
            }
            self.ways_of(at, node);
        }
    }

    /// Whether a written edge is a way of its own; findings if it must not be there.
    fn allowed(&mut self, from: usize, to: usize, when: Take<'_>, span: Span) -> bool {
        let (Some(node), Some(target)) = (self.node(from), self.node(to)) else { return false };
        let (id, end) = (shown(&node.id.value), shown(&target.id.value));
        if matches!(target.does, Does::Start) {
            self.error(
                "edge-to-start",
                span,
                format!("an edge leads to the START node {end}"),
                "let it lead to the node after it",
            );
            return false;
        }
        match &node.does {
            Does::End(_) => {
                self.error(
                    "edge-from-end",
                    span,
                    format!("an edge begins at the END node {id}"),
                    "remove it: the workflow ends there",
                );
                false
            }
            Does::Fork(fork) => {
                let child = |name: &Text| name.value == target.id.value;
                let implied = match &fork.of {
                    ForkOf::Listed(paths) => paths.iter().any(|(_, first)| child(first)),
                    ForkOf::Each { child: first, .. } => child(first),
                };
                if !implied || !matches!(when, Take::Done) {
                    let message =
                        format!("an edge leads from the fork {id} to {end}, and begins no path of it");
                    self.error(
                        "edge-from-fork",
                        span,
                        message,
                        "a fork leads to its `childNodeIds`; edges for what comes after begin at its join",
                    );
                }
                false
            }
            Does::Route { branches, default } if !matches!(when, Take::Error) => {
                let implied =
                    branches.iter().map(|(_, to)| to).chain([default]).any(|to| to.value == target.id.value);
                if !implied || matches!(when, Take::If(_)) {
                    let message =
                        format!("an edge leads from the ROUTE node {id} to {end}, beside its branches");
                    self.error(
                        "edge-from-route",
                        span,
                        message,
                        "write it as a branch: {\"when\": …, \"to\": …}",
                    );
                }
                false
            }
            Does::LoopStart(_) if !matches!(when, Take::Done) => {
                let message = format!("the loop {id} begins with one node, whatever happens");
                self.error(
                    "edge-from-loop",
                    span,
                    message,
                    "a failed iteration leaves by an edge of its LOOP_END with \"when\": \"error\"",
                );
                false
            }
            Does::LoopEnd(start) if start.value == target.id.value => {
                let message = format!("an edge leads from {id} back to {end}");
                self.error("edge-from-loop", span, message, "remove it: a loop goes round by itself");
                false
            }
            _ => true,
        }
    }

    /// Of several ways on from one node the first that holds is taken.
    fn ways_of(&mut self, at: usize, node: &'d WorkNode) {
        let outs = self.outs.get(at).cloned().unwrap_or_default();
        let of = |error: bool| outs.iter().filter(move |out| matches!(out.when, Take::Error) == error);
        let id = shown(&node.id.value);
        if let Some(second) = of(true).nth(1) {
            let message = format!("two edges with \"when\": \"error\" begin at {id}");
            self.error(
                "ambiguous-edges",
                second.span,
                message,
                "remove one; a ROUTE node behind it can choose by what went wrong",
            );
        }
        let mut plain = of(false).skip_while(|out| !matches!(out.when, Take::Done)).skip(1);
        if let Some(second) = plain.clone().find(|out| matches!(out.when, Take::Done)) {
            let message = format!("two edges without `when` begin at {id}");
            self.error(
                "ambiguous-edges",
                second.span,
                message,
                "give one of them a condition, or begin paths with a FORK node",
            );
        } else if let Some(after) = plain.next() {
            let message = format!("this edge is never taken: one from {id} without `when` comes before it");
            let finding = Finding::warning("W-14", "edge-never-taken", after.span, message);
            self.diagnostics.push(finding.help("move the edge without `when` behind those with conditions"));
        }
    }

    fn pair(&mut self, one: usize, other: usize) {
        for (at, partner) in [(one, other), (other, one)] {
            self.partner.get_mut(at).into_iter().for_each(|known| *known = Some(partner));
        }
    }

    fn has_partner(&self, at: usize) -> bool {
        self.partner.get(at).is_some_and(Option::is_some)
    }

    fn loops(&mut self) {
        for (at, node) in self.doc.nodes.iter().enumerate() {
            let Does::LoopEnd(name) = &node.does else { continue };
            let Some(start) = self.find(name) else { continue };
            let is_start = self.node(start).is_some_and(|node| matches!(node.does, Does::LoopStart(_)));
            if !is_start {
                let message = format!("{} is no LOOP_START node", shown(&name.value));
                self.error("unpaired-loop", name.span, message, "name the node where the loop begins");
            } else if self.has_partner(start) {
                let message = format!("the loop {} has two ends", shown(&name.value));
                self.error(
                    "unpaired-loop",
                    name.span,
                    message,
                    "let all ways within a loop lead to one LOOP_END node",
                );
            } else {
                self.pair(at, start);
            }
        }
        for (at, node) in self.doc.nodes.iter().enumerate() {
            if !matches!(node.does, Does::LoopStart(_)) {
                continue;
            }
            if !self.has_partner(at) {
                let message = format!("the loop {} has no end", shown(&node.id.value));
                self.error(
                    "unpaired-loop",
                    node.id.span,
                    message,
                    format!("add a LOOP_END node with \"loop\": {}", shown(&node.id.value)),
                );
            }
            if self.outs.get(at).is_some_and(Vec::is_empty) {
                let message = format!("no edge leads into the loop {}", shown(&node.id.value));
                self.error(
                    "no-way-on",
                    node.id.span,
                    message,
                    "write an edge from it to the first node of each iteration",
                );
            }
        }
    }

    fn forks(&mut self) {
        // Which join is whose is told by path ids.
        if !self.path_ids() {
            return;
        }
        let (mut by_path, mut by_old) = (HashMap::new(), HashMap::new());
        for (at, node) in self.doc.nodes.iter().enumerate() {
            let Does::Join(join) = &node.does else { continue };
            match &join.of {
                JoinOf::Listed(ids, _) => {
                    for id in ids {
                        by_path.entry(id.value.clone()).or_insert(at);
                    }
                }
                JoinOf::Old(old) => {
                    by_old.entry(old.value.clone()).or_insert(at);
                }
                JoinOf::Region => {}
            }
        }
        for (at, node) in self.doc.nodes.iter().enumerate() {
            let Does::Fork(fork) = &node.does else { continue };
            let ForkOf::Listed(paths) = &fork.of else { continue };
            for (_, child) in paths {
                self.find(child);
            }
            let old = fork.old_id.as_ref().and_then(|old| by_old.get(old));
            match paths.iter().find_map(|(id, _)| by_path.get(&id.value)).or(old) {
                Some(join) => self.pair_paths(at, *join, paths),
                None => self.unpaired_fork(node, "add a JOIN node with the same `forkPathIds`"),
            }
        }
        // Those over lists, once the others are known.
        for (at, node) in self.doc.nodes.iter().enumerate() {
            let Does::Fork(fork) = &node.does else { continue };
            let ForkOf::Each { child, .. } = &fork.of else { continue };
            let Some(child) = self.find(child) else { continue };
            let found = self.joins_from(child);
            match (found.first(), found.len()) {
                (Some(join), 1) if !self.has_partner(*join) => self.pair(at, *join),
                (Some(_), _) => {
                    let message = format!(
                        "the fork {} leads to a join that is another's, or to several",
                        shown(&node.id.value)
                    );
                    self.error(
                        "UNPAIRED_FORK",
                        node.id.span,
                        message,
                        "let all ways from its child lead to one JOIN node of its own",
                    );
                }
                (None, _) => {
                    self.unpaired_fork(node, "let its child lead to a JOIN node without `forkPathIds`")
                }
            }
        }
        for (at, node) in self.doc.nodes.iter().enumerate() {
            if matches!(node.does, Does::Join(_)) && !self.has_partner(at) {
                let message = format!("the join {} has no fork", shown(&node.id.value));
                self.error(
                    "UNPAIRED_JOIN",
                    node.id.span,
                    message,
                    "give it the `forkPathIds` of a fork, or remove it",
                );
            }
        }
    }

    fn unpaired_fork(&mut self, node: &WorkNode, help: &str) {
        self.error(
            "UNPAIRED_FORK",
            node.id.span,
            format!("the fork {} has no join", shown(&node.id.value)),
            help,
        );
    }

    /// W-03: whether path ids are unique within the document.
    fn path_ids(&mut self) -> bool {
        let before = self.diagnostics.errors();
        let mut seen: HashMap<&Arc<str>, &Text> = HashMap::new();
        for node in &self.doc.nodes {
            let Does::Fork(fork) = &node.does else { continue };
            let ForkOf::Listed(paths) = &fork.of else { continue };
            for (id, _) in paths {
                if seen.insert(&id.value, &node.id).is_some_and(|other| other.value != node.id.value) {
                    let message = format!("two forks have a path {}", shown(&id.value));
                    self.error(
                        "duplicate-path-id",
                        id.span,
                        message,
                        "path ids are unique in a document: choose another",
                    );
                }
            }
        }
        self.diagnostics.errors() == before
    }

    /// A fork and the join that names its paths.
    fn pair_paths(&mut self, fork: usize, join: usize, paths: &[(Text, Text)]) {
        let Some(Does::Join(says)) = self.node(join).map(|node| &node.does) else { return };
        let id = self.node(fork).map(|node| shown(&node.id.value)).unwrap_or_default();
        if self.has_partner(join) {
            let at = self.node(fork).map_or(says.strategy.span, |node| node.id.span);
            self.error(
                "UNPAIRED_FORK",
                at,
                format!("the join of the fork {id} is another fork's"),
                "give each fork a join of its own",
            );
            return;
        }
        let expected: Vec<&str> = paths.iter().map(|(id, _)| &*id.value).collect();
        let (said, span) = match &says.of {
            JoinOf::Listed(ids, span) => (ids.clone(), *span),
            JoinOf::Old(old) => (old_path_ids(old, paths.len()), old.span),
            JoinOf::Region => (Vec::new(), says.strategy.span),
        };
        let same =
            said.len() == expected.len() && said.iter().zip(&expected).all(|(said, id)| *said.value == **id);
        if !same {
            let message = format!("the join's path ids are not those of the fork {id}");
            let help = format!("write the same ids in the same order: {}", listed(&expected));
            self.error("FORK_JOIN_MISMATCH", span, message, help);
        }
        self.pair(fork, join);
        let known: HashSet<&str> = expected.iter().copied().collect();
        let main = says.main.iter().map(|main| (main, "main-path-unknown", "mainPathId"));
        for (path, code, field) in
            main.chain(says.exports.iter().map(|(_, path)| (path, "export-path-unknown", "exports")))
        {
            if !known.contains(&*path.value) {
                let message =
                    format!("`{field}` names {}, which is no path of the fork {id}", shown(&path.value));
                let help = match meant(&path.value, &expected) {
                    Some(near) => format!("did you mean {}?", shown(near)),
                    None => format!("the paths are {}", listed(&expected)),
                };
                self.error(code, path.span, message, help);
            }
        }
        if let Strategy::Count(count) = says.strategy.value
            && count as usize > paths.len()
        {
            let message = format!("`threshold` is {count}, and the fork {id} has {} paths", paths.len());
            self.error(
                "threshold-out-of-range",
                says.strategy.span,
                message,
                format!("write 1 to {}", paths.len()),
            );
        }
    }

    /// The joins without path ids that a path leads to, past whole forks in it.
    fn joins_from(&self, child: usize) -> BTreeSet<usize> {
        let (mut found, mut seen) = (BTreeSet::new(), HashSet::from([(child, 0)]));
        let mut todo = vec![(child, 0usize)];
        while let Some((at, depth)) = todo.pop() {
            let mut go = |to: usize, depth: usize| {
                if depth <= self.depth && seen.insert((to, depth)) {
                    todo.push((to, depth));
                }
            };
            let (mut from, mut depth) = (at, depth);
            match self.node(at).map(|node| &node.does) {
                Some(Does::Fork(fork)) => match &fork.of {
                    ForkOf::Listed(_) => match self.partner.get(at).copied().flatten() {
                        Some(join) => from = join,
                        None => continue,
                    },
                    ForkOf::Each { child, .. } => {
                        self.ids.get(&*child.value).into_iter().for_each(|child| go(*child, depth + 1));
                        continue;
                    }
                },
                Some(Does::Join(join)) => match (&join.of, depth) {
                    (JoinOf::Region, 0) => {
                        found.insert(at);
                        continue;
                    }
                    (JoinOf::Region, _) => depth -= 1,
                    // The end of a path around it.
                    _ => continue,
                },
                _ => {}
            }
            self.outs.get(from).into_iter().flatten().for_each(|out| go(out.to, depth));
        }
        found
    }
}
