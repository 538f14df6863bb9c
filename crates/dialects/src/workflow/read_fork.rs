//! Reading forks and joins, older forms included (W-01, W-05, W-13).

use super::doc::{Fork, ForkOf, Join, JoinOf, Json, Text};
use super::read::{Reader, named};
use super::read_node::{list_of, list_or_template};
use crate::Finding;
use crate::fields::{Fields, Shape, TypeError, choice_of, type_error};
use crate::json::{Node, Span, Spanned};
use selvedge_engine::graph::Strategy;
use std::collections::HashSet;
use std::sync::Arc;

const PATH: Shape = Shape { what: "a path", fields: &["childNodeId", "pathId"] };

/// The config of a `FORK`.
pub(super) fn fork(config: &Fields<'_, '_>, reader: &mut Reader<'_, '_>) -> Option<Fork> {
    const STRATEGIES: [(&str, bool); 2] = [("serial", true), ("parallel", false)];
    let help = "say how the paths run: \"forkStrategy\": \"parallel\"";
    let strategy = config.required("forkStrategy", "W-01", help, reader.diagnostics);
    let strategy =
        strategy.and_then(|node| choice_of(node, "forkStrategy", "W-01", &STRATEGIES, reader.diagnostics));
    let old_id = config.name("forkId", "W-01", reader.diagnostics);
    let of = fork_of(config, old_id.as_ref(), reader);
    if let Some(node) = config.given("timeout") {
        let help = "write it at the join: its `timeout` counts from the fork's start";
        reader.push(
            Finding::error("W-05", "misplaced", node.span, "a fork has no `timeout` of its own").help(help),
        );
    }
    Some(Fork { of: of?, serial: strategy?.value, old_id: old_id.map(|id| id.value) })
}

fn fork_of(config: &Fields<'_, '_>, old_id: Option<&Text>, reader: &mut Reader<'_, '_>) -> Option<ForkOf> {
    let over = list_or_template(config, "forEach", "W-13", reader);
    let children = list_of(config, "childNodeIds", "W-01", reader);
    if config.given("forEach").is_some() {
        return each(config, over?, children, reader);
    }
    if let Some(node) = config.given("forkPaths") {
        let ids = list_of(config, "forkPathIds", "W-01", reader);
        let read = paths(node, reader)?;
        return same_paths(&read, ids, children, reader).then_some(read);
    }
    let ids = list_of(config, "forkPathIds", "W-01", reader);
    if config.given("childNodeIds").is_none() || (config.given("forkPathIds").is_none() && old_id.is_none()) {
        let message = "a fork needs the fields `forkPathIds` and `childNodeIds`";
        let help = "name the paths, and the first node of each: \"forkPathIds\": [\"pro\", \"con\"], \"childNodeIds\": [\"argue-pro\", \"argue-con\"]";
        reader.push(Finding::error("W-01", "missing-field", config.span().opening(), message).help(help));
        return None;
    }
    let (children, span) = children?;
    let children: Vec<Text> = children.into_iter().map(Spanned::normalized).collect();
    let ids = match (ids, old_id) {
        (Some((ids, _)), old) => {
            unused(old, &ids, reader);
            ids
        }
        (None, Some(old)) => old_path_ids(old, children.len()),
        (None, None) => return None,
    };
    if ids.len() != children.len() {
        let message = format!(
            "the fork has {} path ids and {} children: there is one child for each path",
            ids.len(),
            children.len()
        );
        let finding = Finding::error("W-14", "FORK_JOIN_MISMATCH", span, message);
        reader.push(finding.help("write as many `childNodeIds` as `forkPathIds`, in the same order"));
        return None;
    }
    listed(ids.into_iter().zip(children).collect(), span, reader)
}

/// Whether lists beside `forkPaths` say the same: which of them would count?
fn same_paths(
    read: &ForkOf,
    ids: Option<(Vec<Text>, Span)>,
    children: Option<(Vec<Text>, Span)>,
    reader: &mut Reader<'_, '_>,
) -> bool {
    let ForkOf::Listed(paths) = read else { return true };
    let ids =
        ids.map(|list| ("forkPathIds", list, paths.iter().map(|(id, _)| &id.value).collect::<Vec<_>>()));
    let children = children
        .map(|list| ("childNodeIds", list, paths.iter().map(|(_, child)| &child.value).collect::<Vec<_>>()));
    for (field, (list, span), said) in ids.into_iter().chain(children) {
        if !list.iter().map(|text| &text.value).eq(said) {
            let message = format!("`{field}` and `forkPaths` do not say the same");
            let finding = Finding::error("W-14", "FORK_JOIN_MISMATCH", span, message);
            reader.push(
                finding.help(format!("remove one of them: `{field}` is not needed beside `forkPaths`")),
            );
            return false;
        }
    }
    true
}

/// `forkPaths`: `[{pathId, childNodeId}]`.
fn paths(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<ForkOf> {
    let Some(elements) = node.as_array() else {
        let help = "write a list: [{\"pathId\": \"…\", \"childNodeId\": \"…\"}]";
        reader.push(type_error(
            node,
            TypeError { field: "forkPaths", expected: "an array", rule: "W-01", help },
        ));
        return None;
    };
    let mut paths = Vec::with_capacity(elements.len());
    for element in elements {
        let fields = Fields::open(element, &PATH, "W-01", reader.diagnostics)?;
        let id =
            fields.required_name("pathId", "W-01", "name the path: \"pathId\": \"…\"", reader.diagnostics);
        let help = "name its first node: \"childNodeId\": \"…\"";
        paths
            .push((id?, fields.required_name("childNodeId", "W-01", help, reader.diagnostics)?.normalized()));
    }
    listed(paths, node.span, reader)
}

fn listed(paths: Vec<(Text, Text)>, span: Span, reader: &mut Reader<'_, '_>) -> Option<ForkOf> {
    if paths.is_empty() {
        let finding = Finding::error("W-01", "no-paths", span, "a fork needs at least one path");
        reader.push(finding.help("name a path and its first node, or go on without a fork"));
        return None;
    }
    let mut seen = HashSet::new();
    for (id, _) in &paths {
        if !seen.insert(&id.value) {
            let message = format!("two paths of the fork have the id `{}`", id.value);
            let finding = Finding::error("W-14", "duplicate-path-id", id.span, message);
            reader.push(finding.help("give each path an id of its own"));
            return None;
        }
    }
    Some(ForkOf::Listed(paths))
}

/// W-01: one path id for each child of an older fork.
pub(super) fn old_path_ids(old: &Text, paths: usize) -> Vec<Text> {
    let id = |at: usize| match at {
        0 => old.value.clone(),
        _ => format!("{}_{}", old.value, at + 1).into(),
    };
    (0..paths).map(|at| Spanned::new(id(at), old.span)).collect()
}

/// A `forkId` beside path ids counts no more; one that means others was written for something.
fn unused(old: Option<&Text>, ids: &[Text], reader: &mut Reader<'_, '_>) {
    let Some(old) = old else { return };
    let means = old_path_ids(old, ids.len());
    if !means.iter().map(|id| &id.value).eq(ids.iter().map(|id| &id.value)) {
        let message = "`forkId` has no effect beside `forkPathIds`, and means other paths";
        reader.push(Finding::warning("W-01", "no-effect", old.span, message).help("remove it"));
    }
}

/// W-13: a path for each element of a list.
fn each(
    config: &Fields<'_, '_>,
    over: Json,
    children: Option<(Vec<Text>, Span)>,
    reader: &mut Reader<'_, '_>,
) -> Option<ForkOf> {
    for field in ["forkPathIds", "forkPaths"] {
        if let Some(node) = config.given(field) {
            let message =
                format!("a fork over a list has no `{field}`: its paths have the numbers of the elements");
            reader.push(
                Finding::error("W-13", "misplaced", node.span, message).help("remove it, or `forEach`"),
            );
            return None;
        }
    }
    let item = config.name("as", "W-13", reader.diagnostics);
    let item = item.map_or_else(|| "item".into(), |name| name.normalized().value);
    let mut first = children.map(|(children, span)| (children.into_iter(), span));
    let child = first.as_mut().and_then(|(children, _)| children.next());
    let more = first.as_mut().is_some_and(|(children, _)| children.next().is_some());
    match child {
        Some(child) if !more => Some(ForkOf::Each { over, item, child }),
        _ => {
            let at = first.map_or(config.span().opening(), |(_, span)| span);
            let message = "a fork over a list has one child: the first node of each path";
            reader.push(
                Finding::error("W-13", "missing-field", at, message).help("write \"childNodeIds\": [\"…\"]"),
            );
            None
        }
    }
}

/// The config of a `JOIN`.
pub(super) fn join(config: &Fields<'_, '_>, reader: &mut Reader<'_, '_>) -> Option<Join> {
    let strategies = [
        Strategy::AllCompleted,
        Strategy::AnyCompleted,
        Strategy::AllFailed,
        Strategy::AnyFailed,
        Strategy::Count(0),
        Strategy::AllEnded,
    ];
    let strategies = strategies.map(|strategy| (strategy.name(), strategy));
    let help = "say when the join is met: \"joinStrategy\": \"ALL_COMPLETED\"";
    let strategy = config.required("joinStrategy", "W-05", help, reader.diagnostics);
    let strategy =
        strategy.and_then(|node| choice_of(node, "joinStrategy", "W-05", &strategies, reader.diagnostics));
    let threshold = config.count("threshold", "W-05", reader.source, reader.diagnostics);
    let timeout = config.seconds("timeout", "W-05", true, reader.diagnostics);
    let main = config.name("mainPathId", "W-05", reader.diagnostics);
    let mut exports = Vec::new();
    for (name, node) in named(config, "exports", "W-11", reader.diagnostics) {
        let Some(path) = node.as_str() else {
            let help = "write {\"variable\": \"path id\"}";
            let error = TypeError { field: "exports", expected: "path ids by variable", rule: "W-11", help };
            reader.push(type_error(&node, error));
            continue;
        };
        exports.push((name, Spanned::new(Arc::from(path), node.span)));
    }
    let of = match (config.given("forkPathIds"), config.name("forkId", "W-01", reader.diagnostics)) {
        (Some(_), old) => {
            let (ids, span) = list_of(config, "forkPathIds", "W-05", reader)?;
            unused(old.as_ref(), &ids, reader);
            JoinOf::Listed(ids, span)
        }
        (None, Some(old)) => JoinOf::Old(old),
        (None, None) => JoinOf::Region,
    };
    if threshold.is_none() && config.given("threshold").is_some() {
        return None;
    }
    let strategy = with_threshold(strategy?, threshold, reader)?;
    let timeout = timeout.map(|time| time.value).filter(|time| !time.is_zero());
    Some(Join { of, strategy, timeout, main, exports })
}

/// `threshold` belongs to one strategy, which needs it.
fn with_threshold(
    strategy: Spanned<Strategy>,
    threshold: Option<Spanned<u64>>,
    reader: &mut Reader<'_, '_>,
) -> Option<Spanned<Strategy>> {
    let Spanned { value, span } = strategy;
    match (value, threshold) {
        (Strategy::Count(_), Some(count)) if count.value > 0 => {
            Some(Spanned::new(Strategy::Count(u32::try_from(count.value).unwrap_or(u32::MAX)), count.span))
        }
        (Strategy::Count(_), count) => {
            let at = count.map_or(span, |count| count.span);
            let message = "SUCCESS_COUNT_THRESHOLD needs a `threshold` of 1 or more";
            let finding = Finding::error("W-05", "threshold-out-of-range", at, message);
            reader.push(finding.help("write how many paths have to complete: \"threshold\": 2"));
            None
        }
        (_, Some(count)) => {
            let message = "`threshold` belongs to the strategy SUCCESS_COUNT_THRESHOLD";
            let finding = Finding::error("W-05", "misplaced", count.span, message);
            reader.push(finding.help("remove it, or change `joinStrategy`"));
            None
        }
        (_, None) => Some(Spanned::new(value, span)),
    }
}
