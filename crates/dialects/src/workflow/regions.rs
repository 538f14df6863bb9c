//! How a workflow is nested: the whole, the paths of its forks, the bodies of its loops (W-03, W-14). Each is a flow of its own, with
//! one entry and one exit.

use super::doc::{Does, ForkOf, WorkflowDoc};
use super::links::{Links, Out, Take};
use super::strays::Strays;
use crate::diagnostic::shown;
use crate::json::Span;
use crate::{Diagnostics, Finding, Source};
use std::collections::VecDeque;

/// A flow: vertices, of which the first is where it begins.
pub(super) struct Region<'d> {
    pub(super) kind: Kind,
    /// The vertex that opens it, with the region that is in.
    pub(super) around: Option<(usize, usize)>,
    /// The node that ends it, which is not in it; the whole ends in its END nodes.
    pub(super) stop: Option<usize>,
    pub(super) vertices: Vec<Vertex<'d>>,
    /// All vertices, each behind those that lead to it.
    pub(super) order: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    /// A path, by its number.
    Path(usize),
    /// The iterations of a loop.
    Body,
}

/// A node of a flow. A fork and its join are one, and so are a loop and its end.
pub(super) struct Vertex<'d> {
    /// The node, or the one that opens it.
    pub(super) node: usize,
    /// The node, or the one that closes it.
    pub(super) end: usize,
    /// The regions that it opens, in order.
    pub(super) inner: Vec<usize>,
    pub(super) ways: Vec<Way<'d>>,
}

pub(super) struct Way<'d> {
    pub(super) when: Take<'d>,
    /// The vertex that it leads to; `None` is the region's exit.
    pub(super) to: Option<usize>,
}

/// All regions of a workflow; the first is the whole.
pub(super) struct Regions<'d> {
    pub(super) all: Vec<Region<'d>>,
    /// Of each node, its region and vertex there.
    pub(super) place: Vec<Option<(usize, usize)>>,
}

/// A region that is still to be walked.
struct Todo {
    entry: usize,
    /// Where it says that it begins there.
    entered: Span,
    stop: Option<usize>,
    kind: Kind,
    around: Option<(usize, usize)>,
    depth: usize,
}

impl<'d> Regions<'d> {
    /// `None`, with errors among the findings, if it does not nest.
    pub(super) fn of(
        doc: &'d WorkflowDoc,
        source: &Source,
        links: &Links<'d>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let before = diagnostics.errors();
        let start = start_of(doc, diagnostics)?;
        let nodes = doc.nodes.len();
        let (place, led, strays) = (vec![None; nodes], vec![None; nodes], Strays::default());
        let mut walk = Walk { doc, source, links, all: Vec::new(), place, led, strays, diagnostics };
        let mut todo = VecDeque::from([Todo {
            entry: start,
            entered: walk.span(start),
            stop: None,
            kind: Kind::Whole,
            around: None,
            depth: 0,
        }]);
        while let Some(next) = todo.pop_front() {
            walk.region(&next, &mut todo);
        }
        if !walk.strays.is_empty() {
            std::mem::take(&mut walk.strays).tell(walk.diagnostics);
        }
        if walk.diagnostics.errors() == before {
            walk.exits();
        }
        if walk.diagnostics.errors() == before {
            walk.unreachable();
        }
        let Walk { all, place, .. } = walk;
        (diagnostics.errors() == before).then_some(Self { all, place })
    }
}

fn start_of(doc: &WorkflowDoc, diagnostics: &mut Diagnostics) -> Option<usize> {
    let mut starts = doc.nodes.iter().enumerate().filter(|(_, node)| matches!(node.does, Does::Start));
    let (first, second) = (starts.next(), starts.next());
    if let Some((_, second)) = second {
        let finding =
            Finding::error("W-14", "several-starts", second.id.span, "the workflow has several START nodes");
        diagnostics.push(finding.help("keep one; a FORK node begins several paths at once"));
        return None;
    }
    if first.is_none() {
        let finding =
            Finding::error("W-14", "no-start", doc.head.span.opening(), "the workflow has no START node");
        diagnostics.push(finding.help("add {\"id\": \"start\", \"type\": \"START\"} and an edge from it"));
    }
    first.map(|(at, _)| at)
}

struct Walk<'d, 'l, 'x> {
    doc: &'d WorkflowDoc,
    source: &'l Source,
    links: &'l Links<'d>,
    all: Vec<Region<'d>>,
    place: Vec<Option<(usize, usize)>>,
    /// Of each node the first way that led there.
    led: Vec<Option<Out<'d>>>,
    strays: Strays,
    diagnostics: &'x mut Diagnostics,
}

impl<'d> Walk<'d, '_, '_> {
    fn error(&mut self, code: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.diagnostics.push(Finding::error("W-14", code, span, message).help(help));
    }

    fn id(&self, node: usize) -> String {
        self.doc.nodes.get(node).map(|node| shown(&node.id.value)).unwrap_or_default()
    }

    fn span(&self, node: usize) -> Span {
        self.doc.nodes.get(node).map_or(self.doc.head.span, |node| node.id.span)
    }

    /// What a region is, for people.
    fn words(&self, kind: Kind, around: Option<(usize, usize)>) -> String {
        let opener =
            around.and_then(|(region, vertex)| Some(self.all.get(region)?.vertices.get(vertex)?.node));
        let id = opener.map(|node| self.id(node)).unwrap_or_default();
        match (kind, opener.and_then(|node| self.doc.nodes.get(node)).map(|node| &node.does)) {
            (Kind::Path(at), Some(Does::Fork(fork))) => match &fork.of {
                ForkOf::Listed(paths) => {
                    let path = paths.get(at).map(|(path, _)| shown(&path.value)).unwrap_or_default();
                    format!("the path {path} of the fork {id}")
                }
                ForkOf::Each { .. } => format!("a path of the fork {id}"),
            },
            (Kind::Body, _) => format!("the loop {id}"),
            _ => "the workflow".to_owned(),
        }
    }

    fn region(&mut self, next: &Todo, todo: &mut VecDeque<Todo>) {
        let at = self.all.len();
        let depth = self.links.depth;
        if next.depth > depth {
            let message = format!(
                "forks and loops lie more than {depth} deep in each other (`subgraph_depth` in [limits])"
            );
            self.error("too-deep", self.span(next.entry), message, "put some of them behind each other");
            return;
        }
        self.all.push(Region {
            kind: next.kind,
            around: next.around,
            stop: next.stop,
            vertices: Vec::new(),
            order: Vec::new(),
        });
        let mut vertices: Vec<Vertex<'d>> = Vec::new();
        let entry = Out { to: next.entry, when: Take::Done, span: next.entered };
        if next.stop != Some(next.entry) {
            self.come_to(at, next, entry, &mut vertices);
        } else if next.kind != Kind::Body {
            let words = self.words(next.kind, next.around);
            self.error(
                "FORK_JOIN_NOT_REACHABLE",
                entry.span,
                format!("{words} has no node"),
                "begin each path with a node of its own",
            );
        }
        let mut done = 0;
        while done < vertices.len() {
            self.opens(at, done, next.depth, &mut vertices, todo);
            let end = vertices.get(done).map_or(0, |vertex| vertex.end);
            let outs = self.links.outs.get(end).cloned().unwrap_or_default();
            let mut ways = Vec::with_capacity(outs.len());
            for out in outs {
                if Some(out.to) == next.stop {
                    ways.push(Way { when: out.when, to: None });
                } else if let Some(to) = self.come_to(at, next, out, &mut vertices) {
                    ways.push(Way { when: out.when, to: Some(to) });
                }
            }
            if let Some(vertex) = vertices.get_mut(done) {
                vertex.ways = ways;
            }
            done += 1;
        }
        if let Some(region) = self.all.get_mut(at) {
            region.vertices = vertices;
        }
        self.sort(at);
    }

    /// The vertex that a way leads to, which is new if it is the first.
    fn come_to(
        &mut self,
        region: usize,
        next: &Todo,
        out: Out<'d>,
        vertices: &mut Vec<Vertex<'d>>,
    ) -> Option<usize> {
        let node = self.doc.nodes.get(out.to)?;
        let id = &*node.id.value;
        let here = || self.words(next.kind, next.around);
        if matches!(node.does, Does::End(_)) && next.kind != Kind::Whole {
            let here = here();
            self.strays.away(id, out, (&here, next.kind == Kind::Body));
            return None;
        }
        if let Some((known, vertex)) = self.place.get(out.to).copied().flatten() {
            if known == region && vertices.get(vertex).is_some_and(|vertex| vertex.node == out.to) {
                return Some(vertex);
            }
            let here = here();
            match self.led.get(out.to).copied().flatten() {
                Some(first) => {
                    let there = self.all.get(known).map(|known| self.words(known.kind, known.around));
                    let there = there.unwrap_or_default();
                    self.strays.between(id, out, (&here, first, &there), self.source);
                }
                None => self.strays.across(id, out, &here, "the end of what does not begin here"),
            }
            return None;
        }
        let strange = match &node.does {
            Does::Join(_) => "a join whose fork is not before it here",
            Does::LoopEnd(_) => "the end of a loop that does not begin here",
            _ => "",
        };
        if !strange.is_empty() {
            let here = here();
            self.strays.across(id, out, &here, strange);
            return None;
        }
        self.led.get_mut(out.to).into_iter().for_each(|led| *led = Some(out));
        let at = vertices.len();
        let end = self.links.partner.get(out.to).copied().flatten().unwrap_or(out.to);
        vertices.push(Vertex { node: out.to, end, inner: Vec::new(), ways: Vec::new() });
        for node in [out.to, end] {
            self.place.get_mut(node).into_iter().for_each(|place| *place = Some((region, at)));
        }
        Some(at)
    }

    /// The regions that a vertex opens are walked later; their numbers are known by then.
    fn opens(
        &mut self,
        region: usize,
        at: usize,
        depth: usize,
        vertices: &mut [Vertex<'d>],
        todo: &mut VecDeque<Todo>,
    ) {
        let Some(vertex) = vertices.get_mut(at) else { return };
        let find = |name: &str| self.links.ids.get(name).copied();
        let entries: Vec<(usize, Kind, Span)> = match self.doc.nodes.get(vertex.node).map(|node| &node.does) {
            Some(Does::Fork(fork)) => match &fork.of {
                ForkOf::Listed(paths) => {
                    let paths = paths.iter().enumerate();
                    paths
                        .filter_map(|(at, (_, child))| {
                            Some((find(&child.value)?, Kind::Path(at), child.span))
                        })
                        .collect()
                }
                ForkOf::Each { child, .. } => {
                    find(&child.value).map(|at| (at, Kind::Path(0), child.span)).into_iter().collect()
                }
            },
            Some(Does::LoopStart(_)) => {
                let outs = self.links.outs.get(vertex.node);
                outs.into_iter().flatten().map(|out| (out.to, Kind::Body, out.span)).collect()
            }
            _ => return,
        };
        for (entry, kind, entered) in entries {
            // The next one that is walked has the next number.
            vertex.inner.push(self.all.len() + todo.len());
            todo.push_back(Todo {
                entry,
                entered,
                stop: Some(vertex.end),
                kind,
                around: Some((region, at)),
                depth: depth + 1,
            });
        }
    }

    /// Vertices behind those that lead to them; an error if some lead to each other.
    fn sort(&mut self, at: usize) {
        let Some(region) = self.all.get(at) else { return };
        let vertices = &region.vertices;
        let mut missing = vec![0usize; vertices.len()];
        let targets =
            |vertex: &Vertex<'_>| vertex.ways.iter().filter_map(|way| way.to).collect::<Vec<usize>>();
        for to in vertices.iter().flat_map(targets) {
            missing.get_mut(to).into_iter().for_each(|missing| *missing += 1);
        }
        let mut order: Vec<usize> = (0..vertices.len()).filter(|at| missing.get(*at) == Some(&0)).collect();
        let mut next = 0;
        while let Some(vertex) = order.get(next).and_then(|at| vertices.get(*at)) {
            next += 1;
            for to in targets(vertex) {
                if let Some(missing) = missing.get_mut(to) {
                    *missing -= 1;
                    if *missing == 0 {
                        order.push(to);
                    }
                }
            }
        }
        if order.len() < vertices.len() {
            let circle = circle(vertices, &missing);
            let names: Vec<String> = circle.iter().take(10).map(|node| self.id(*node)).collect();
            let place = circle.first().map_or(self.doc.head.span, |node| self.span(*node));
            let message = format!("nodes lead to each other without a loop: {}", names.join(" → "));
            return self.error(
                "cycle",
                place,
                message,
                "put them between a LOOP_START and a LOOP_END node, with a limit",
            );
        }
        if let Some(region) = self.all.get_mut(at) {
            region.order = order;
        }
    }

    /// Every way leads to the end of its region.
    fn exits(&mut self) {
        for at in 0..self.all.len() {
            let Some(region) = self.all.get(at) else { continue };
            let (kind, around, stop) = (region.kind, region.around, region.stop);
            let stuck: Vec<usize> = region
                .vertices
                .iter()
                .filter(|vertex| vertex.ways.iter().all(|way| matches!(way.when, Take::Error)))
                .map(|vertex| vertex.end)
                .collect();
            for node in stuck {
                if self.doc.nodes.get(node).is_some_and(|node| matches!(node.does, Does::End(_))) {
                    continue;
                }
                let (words, id) = (self.words(kind, around), self.id(node));
                let (code, message, to) = match (kind, stop) {
                    (Kind::Whole, _) | (_, None) => (
                        "end-unreachable",
                        format!("nothing follows {id}, which is no END node"),
                        "an END node".to_owned(),
                    ),
                    (Kind::Path(_), Some(join)) => (
                        "FORK_JOIN_NOT_REACHABLE",
                        format!("{words} stops at {id}"),
                        format!("its join {}", self.id(join)),
                    ),
                    (Kind::Body, Some(end)) => (
                        "loop-end-unreachable",
                        format!("{words} stops at {id}"),
                        format!("its end {}", self.id(end)),
                    ),
                };
                self.error(
                    code,
                    self.span(node),
                    message,
                    format!("write an edge from it to {to}, or to a node that leads there"),
                );
            }
        }
    }

    fn unreachable(&mut self) {
        for (at, node) in self.doc.nodes.iter().enumerate() {
            if self.place.get(at).is_some_and(Option::is_none) {
                let message = format!("no way leads to {}", shown(&node.id.value));
                self.error(
                    "unreachable-node",
                    node.id.span,
                    message,
                    "write an edge that leads there, or remove it",
                );
            }
        }
    }
}

/// Nodes that lead to each other, of those that are left.
fn circle(vertices: &[Vertex<'_>], missing: &[usize]) -> Vec<usize> {
    let left = |at: &usize| missing.get(*at).is_some_and(|missing| *missing > 0);
    // Going back, one always comes to another that is left, and in the end to one that was there before.
    let mut before: Vec<Option<usize>> = vec![None; vertices.len()];
    for (from, vertex) in vertices.iter().enumerate().filter(|(from, _)| left(from)) {
        for to in vertex.ways.iter().filter_map(|way| way.to) {
            before.get_mut(to).into_iter().for_each(|known| *known = Some(from));
        }
    }
    let Some(mut at) = (0..vertices.len()).find(left) else { return Vec::new() };
    let mut seen = vec![false; vertices.len()];
    while seen.get_mut(at).is_some_and(|seen| !std::mem::replace(seen, true)) {
        at = before.get(at).copied().flatten().unwrap_or(at);
    }
    let first = at;
    let mut found = vec![first];
    loop {
        at = before.get(at).copied().flatten().unwrap_or(first);
        if at == first || found.len() > vertices.len() {
            break;
        }
        found.push(at);
    }
    found.push(first);
    found.reverse();
    found.iter().filter_map(|at| vertices.get(*at)).map(|vertex| vertex.node).collect()
}
