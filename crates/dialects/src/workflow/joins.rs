//! What joins can come to (W-07, W-14): paths that may be cut off while they write, and outcomes that can't be.

use super::doc::{Cut, Does, ForkOf, InnerBody, Join, Text, WorkNode};
use super::links::Take;
use super::names::is_literal;
use super::regions::Vertex;
use super::scope::Scope;
use crate::diagnostic::shown;
use crate::json::Spanned;
use crate::leaves::effects_of;
use crate::settings::ToolEffects;
use crate::{Diagnostics, Finding, ToolSource};
use selvedge_engine::Effects;
use selvedge_engine::graph::Strategy;
use std::sync::Arc;

/// Findings about the join of a vertex, if it is a fork.
pub(super) fn check(scope: &Scope<'_>, vertex: &Vertex<'_>, diagnostics: &mut Diagnostics) {
    let node = |at: usize| scope.doc.nodes.get(at);
    let (Some(opener), Some(closer)) = (node(vertex.node), node(vertex.end)) else { return };
    let (Does::Fork(fork), Does::Join(join)) = (&opener.does, &closer.does) else { return };
    let each = matches!(fork.of, ForkOf::Each { .. });
    // Nothing is cut off by a join that waits for all of them.
    let decides_early =
        join.strategy.value != Strategy::AllEnded && (each || (vertex.inner.len() > 1 && !fork.serial));
    if decides_early || join.timeout.is_some() {
        cancelled(scope, vertex, closer, diagnostics);
    }
    if !each {
        outcomes(scope, vertex, join, closer, diagnostics);
    }
}

/// W-07: a path that may be cut off, and that can write.
fn cancelled(scope: &Scope<'_>, vertex: &Vertex<'_>, closer: &WorkNode, diagnostics: &mut Diagnostics) {
    let writes = vertex.inner.iter().find_map(|region| first_write(scope, *region));
    let Some((node, tool)) = writes else { return };
    let message = format!(
        "the join {} may cut off {}, which may call the tool {}, in the middle of a write",
        shown(&closer.id.value),
        shown(&node.id.value),
        shown(&tool)
    );
    let finding = Finding::warning("W-07", "write-may-be-cancelled", node.id.span, message);
    diagnostics
        .push(finding.help("write behind the join, or declare the tool's `effects` if it does not write"));
}

/// A node of a region, or of one in it, that calls what may write.
fn first_write<'s>(scope: &'s Scope<'_>, region: usize) -> Option<(&'s WorkNode, Arc<str>)> {
    let mut todo = vec![region];
    while let Some(region) = todo.pop().and_then(|at| scope.regions.all.get(at)) {
        for vertex in &region.vertices {
            todo.extend(&vertex.inner);
            let Some(node) = scope.doc.nodes.get(vertex.node) else { continue };
            if let Some(tool) = write_of(node, scope.tools) {
                return Some((node, tool));
            }
        }
    }
    None
}

/// A tool that a node calls, or somebody in a document that it runs, and that writes. Of one that there is not nobody knows.
fn write_of(node: &WorkNode, tools: &dyn ToolSource) -> Option<Arc<str>> {
    let writes = |own: &Option<Spanned<ToolEffects>>, tool: &Text| {
        let declared = tools.def(&tool.value)?.effects;
        let effects = own.as_ref().map(|own| effects_of(own.value)).or(declared).unwrap_or_default();
        (effects == Effects::Write).then(|| tool.value.clone())
    };
    if let Some(tool) = node.tools().find_map(|tool| writes(&node.effects, tool)) {
        return Some(tool);
    }
    let Does::Sub(sub) = &node.does else { return None };
    match &*sub.inner.body {
        InnerBody::Workflow(doc) => doc.nodes.iter().find_map(|node| write_of(node, tools)),
        // What it builds may write as far as tools may.
        InnerBody::Agent(agent) => agent.tools.iter().find_map(|tool| writes(&None, tool)),
        InnerBody::Plan(plan) => {
            let mut nodes = plan.nodes.iter();
            nodes.find_map(|node| node.own_tools().find_map(|tool| writes(&node.effects, tool)))
        }
        InnerBody::Steps(task) => {
            let mut steps = task.steps.iter().flatten();
            steps.find_map(|step| {
                let others = step.alternatives.iter().map(|other| &other.tool);
                std::iter::once(&step.tool).chain(others).find_map(|tool| writes(&step.effects, tool))
            })
        }
    }
}

/// W-14: a join that nothing can meet, and an error edge that nothing leads over.
fn outcomes(
    scope: &Scope<'_>,
    vertex: &Vertex<'_>,
    join: &Join,
    closer: &WorkNode,
    diagnostics: &mut Diagnostics,
) {
    let paths = vertex.inner.len();
    let may_fail = vertex.inner.iter().filter(|region| can_fail(scope, **region)).count();
    let (met, unmet) = match join.strategy.value {
        Strategy::AllCompleted => (true, may_fail > 0),
        Strategy::AnyCompleted => (true, may_fail == paths),
        Strategy::AllFailed => (may_fail == paths, true),
        Strategy::AnyFailed => (may_fail > 0, true),
        Strategy::Count(count) => (true, paths - may_fail < count as usize),
        Strategy::AllEnded => (true, false),
    };
    let id = shown(&closer.id.value);
    if !met {
        let message = format!("no outcome can meet the join {id}: nothing on its paths can fail as it asks");
        let finding = Finding::warning("W-14", "join-never-met", join.strategy.span, message);
        diagnostics.push(finding.help("choose another `joinStrategy`"));
    }
    let handled = vertex.ways.iter().any(|way| matches!(way.when, Take::Error));
    if !unmet && join.timeout.is_none() && handled {
        let message =
            format!("the join {id} is always met: its edge with \"when\": \"error\" is never taken");
        let finding = Finding::warning("W-14", "join-always-met", join.strategy.span, message);
        diagnostics.push(finding.help("remove the edge, or choose another `joinStrategy`"));
    }
}

fn can_fail(scope: &Scope<'_>, region: usize) -> bool {
    let Some(region) = scope.regions.all.get(region) else { return true };
    region.vertices.iter().any(|vertex| {
        let conditions = vertex.ways.iter().any(|way| matches!(way.when, Take::If(_)));
        let handled = vertex.ways.iter().any(|way| matches!(way.when, Take::Error));
        let fails = match scope.doc.nodes.get(vertex.node).map(|node| &node.does) {
            Some(Does::Start | Does::Route { .. }) => false,
            Some(Does::Variable(_, worth)) => !is_literal(worth),
            Some(Does::Context { cut, .. }) => matches!(cut, Cut::Summarise(_)),
            _ => true,
        };
        conditions || (fails && !handled)
    })
}
