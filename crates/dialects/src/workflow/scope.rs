//! What can be seen at a place of a workflow: nodes that may have run by then, and values that there may be.

use super::before::{Before, Order, Point};
use super::doc::{Does, InnerBody, WorkNode, WorkflowDoc};
use super::links::{Links, Take};
use super::names::{self, Names, Ran, Supply};
use super::regions::{Kind, Regions, Vertex};
use crate::ToolSource;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// A point of a region, where something is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) region: usize,
    pub(super) point: Point,
}

/// What can be seen in a workflow, and around it.
pub(super) struct Scope<'s> {
    pub(super) doc: &'s WorkflowDoc,
    pub(super) links: &'s Links<'s>,
    pub(super) regions: &'s Regions<'s>,
    /// Inputs and metadata.
    pub(super) initial: HashSet<String>,
    names: Vec<Names>,
    orders: Vec<OnceCell<Order>>,
    /// Ids of the nodes of inner documents, each with the node that runs the document.
    inside: HashMap<&'s str, &'s str>,
    /// The workflow that it is a node of.
    pub(super) around: Option<(&'s Scope<'s>, At)>,
    pub(super) tools: &'s dyn ToolSource,
}

/// What a first name stands for.
pub(super) enum Seen<'s> {
    Node {
        scope: &'s Scope<'s>,
        node: usize,
        vertex: &'s Vertex<'s>,
        passed: Before,
        failed: bool,
    },
    /// A node on another path, or in a loop.
    Outside,
    /// No node.
    Value,
}

impl<'s> Scope<'s> {
    pub(super) fn new(
        doc: &'s WorkflowDoc,
        (links, regions): (&'s Links<'s>, &'s Regions<'s>),
        initial: HashSet<String>,
        tools: &'s dyn ToolSource,
        around: Option<(&'s Scope<'s>, At)>,
    ) -> Self {
        let orders = regions.all.iter().map(|_| OnceCell::new()).collect();
        let (names, inside) = (names::of(doc, regions, tools), inside(doc));
        Self { doc, links, regions, initial, names, orders, inside, around, tools }
    }

    fn order(&'s self, region: usize) -> Option<&'s Order> {
        Some(self.orders.get(region)?.get_or_init(|| match self.regions.all.get(region) {
            Some(region) => Order::of(region),
            None => Order::empty(),
        }))
    }

    /// The place and those around it, from the inside out.
    pub(super) fn outwards(&'s self, at: At) -> impl Iterator<Item = At> {
        let out = |at: &At| {
            let (region, vertex) = self.regions.all.get(at.region)?.around?;
            Some(At { region, point: Point::Begun(vertex) })
        };
        std::iter::successors(Some(at), out)
    }

    pub(super) fn see(&'s self, name: &str, at: At) -> Seen<'s> {
        let Some(&node) = self.links.ids.get(name) else {
            return self.around.map_or(Seen::Value, |(around, at)| around.see(name, at));
        };
        let Some((region, vertex)) = self.regions.place.get(node).copied().flatten() else {
            return Seen::Value;
        };
        let here = self.outwards(at).find(|at| at.region == region);
        let is_variable = self.doc.nodes.get(node).is_some_and(WorkNode::sets_its_id);
        if is_variable && (here.is_some() || matches!(self.supply(name, at, false), Supply::Known)) {
            return Seen::Value;
        }
        let Some(here) = here else { return Seen::Outside };
        let (Some(order), Some(found)) =
            (self.order(region), self.regions.all.get(region).and_then(|region| region.vertices.get(vertex)))
        else {
            return Seen::Value;
        };
        let passed = order.passed(Point::Succeeded(vertex), here.point);
        let fails = found.ways.iter().any(|way| matches!(way.when, Take::Error));
        let failed = fails
            && passed != Before::Surely
            && order.passed(Point::Begun(vertex), here.point) != Before::Never;
        Seen::Node { scope: self, node, vertex: found, passed, failed }
    }

    /// Where a name may come from at a place; `fields`: fields of results are looked at, too.
    pub(super) fn supply(&'s self, name: &str, at: At, fields: bool) -> Supply {
        if self.initial.contains(name) {
            return Supply::Known;
        }
        let own = self.here(at).map(|(names, moment)| names.supply(name, &moment, fields));
        let around = self.around.map(|(around, at)| around.supply(name, at, fields));
        own.chain(around).max().unwrap_or(Supply::Nothing)
    }

    /// The names of the place and of those around it, each with what has run there.
    fn here(&'s self, at: At) -> impl Iterator<Item = (&'s Names, Moment<'s>)> {
        self.outwards(at).filter_map(|At { region, point }| {
            let moment = Moment { regions: self.regions, region, order: self.order(region)?, at: point };
            Some((self.names.get(region)?, moment))
        })
    }

    pub(super) fn has_initial(&self, name: &str) -> bool {
        self.initial.contains(name) || self.around.is_some_and(|(around, _)| around.has_initial(name))
    }

    /// The node that runs the document which has a node of that id, if the document is not this one.
    pub(super) fn runs(&self, id: &str) -> Option<&'s str> {
        self.inside.get(id).copied().or_else(|| self.around.and_then(|(around, _)| around.runs(id)))
    }

    /// Whether something in a region is known to set a name.
    pub(super) fn sets(&self, region: usize, name: &str) -> bool {
        self.names.get(region).is_some_and(|names| names.has(name))
    }

    /// All names at a place, those of nodes included.
    pub(super) fn all_names(&'s self, at: At) -> Vec<Cow<'s, str>> {
        let mut all = self.values(at);
        all.extend(self.doc.nodes.iter().map(|node| Cow::Borrowed(&*node.id.value)));
        all.extend(self.around.into_iter().flat_map(|(around, at)| around.all_names(at)));
        all
    }

    /// The names that an inner document may see at a place: values, and nodes that may have run.
    pub(super) fn visible(&'s self, at: At) -> Vec<Cow<'s, str>> {
        let mut all = self.values(at);
        let ids = self.doc.nodes.iter().map(|node| &*node.id.value);
        let may_be_read = |id: &&str| match self.see(id, at) {
            Seen::Node { passed, failed, .. } => failed || passed != Before::Never,
            Seen::Outside | Seen::Value => false,
        };
        all.extend(ids.filter(may_be_read).map(Cow::Borrowed));
        all.extend(self.around.into_iter().flat_map(|(around, at)| around.visible(at)));
        all
    }

    fn values(&'s self, at: At) -> Vec<Cow<'s, str>> {
        let initial = self.initial.iter().map(|name| Cow::Borrowed(name.as_str()));
        let set = self
            .here(at)
            .flat_map(|(names, moment)| names.at(&moment).map(Cow::Borrowed).collect::<Vec<_>>());
        initial.chain(set).collect()
    }

    pub(super) fn count(&self) -> usize {
        let own = self.names.iter().map(Names::len).sum::<usize>() + self.doc.nodes.len();
        own + self.around.map_or(0, |(around, _)| around.count())
    }
}

/// A point of a region, for which it is asked what has run by then.
struct Moment<'s> {
    regions: &'s Regions<'s>,
    region: usize,
    order: &'s Order,
    at: Point,
}

impl Moment<'_> {
    fn is_body(&self, region: usize) -> bool {
        self.regions.all.get(region).is_some_and(|region| region.kind == Kind::Body)
    }

    fn is_loop(&self, vertex: usize) -> bool {
        let vertex = self.regions.all.get(self.region).and_then(|region| region.vertices.get(vertex));
        vertex.and_then(|vertex| vertex.inner.first()).is_some_and(|inner| self.is_body(*inner))
    }
}

impl Ran for Moment<'_> {
    fn set(&self, vertex: usize) -> bool {
        // An earlier iteration may have set it, and one that failed has left what those before it set.
        self.is_body(self.region)
            || self.has_result(vertex)
            || self.is_loop(vertex)
                && self.at != Point::Begun(vertex)
                && self.order.passed(Point::Begun(vertex), self.at) != Before::Never
    }

    fn has_result(&self, vertex: usize) -> bool {
        self.order.passed(Point::Succeeded(vertex), self.at) != Before::Never
    }
}

/// The ids of the nodes of all inner documents, each with the node of this one that runs it.
fn inside(doc: &WorkflowDoc) -> HashMap<&str, &str> {
    let mut all = HashMap::new();
    for node in &doc.nodes {
        if let Does::Sub(sub) = &node.does {
            each_inner_id(&sub.inner.body, &mut |id| {
                all.insert(id, &*node.id.value);
            });
        }
    }
    all
}

fn each_inner_id<'b>(body: &'b InnerBody, visit: &mut impl FnMut(&'b str)) {
    match body {
        InnerBody::Workflow(doc) => {
            for node in &doc.nodes {
                visit(&node.id.value);
                if let Does::Sub(sub) = &node.does {
                    each_inner_id(&sub.inner.body, visit);
                }
            }
        }
        InnerBody::Plan(plan) => plan.nodes.iter().for_each(|node| visit(&node.id.value)),
        InnerBody::Steps(task) => task.steps.iter().flatten().for_each(|step| visit(&step.id.value)),
        InnerBody::Agent(_) => {}
    }
}
