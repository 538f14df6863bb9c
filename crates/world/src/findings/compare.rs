//! What differs in what two runs came to.

use crate::trial::Trial;
use selvedge_engine::{End, Event, Joined, Message, RunStatus, State};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a value that a message shows.
const SHOWN: usize = 80;

/// The first join that two runs decided otherwise.
pub(super) fn decided_otherwise(first: &Trial, second: &Trial) -> Option<String> {
    let decided = |trial: &Trial| -> Vec<(Arc<str>, Joined)> {
        let joins = trial.records.iter().filter_map(|record| match &record.event {
            Event::Left { node, joined: Some(joined) } => Some((Arc::clone(node), (**joined).clone())),
            _ => None,
        });
        joins.collect()
    };
    let second: BTreeMap<Arc<str>, Joined> = decided(second).into_iter().collect();
    let differs = |(name, joined): &(Arc<str>, Joined)| second.get(name) != Some(joined);
    decided(first).into_iter().find(differs).map(|(name, _)| name.to_string())
}

/// What differs in what two runs that have ended came to, in words.
pub(super) fn difference(first: &State, second: &State) -> Option<String> {
    let (one, other) = (first.view(), second.view());
    let ends =
        |state: &State| state.ended().map(|(end, fault)| (end, fault.map(|it| (it.kind, it.node.clone()))));
    let (end, other_end) = (ends(first), ends(second));
    if end != other_end {
        let words = |state: &State| match state.ended() {
            Some((End::Completed, _)) => "completes".to_owned(),
            Some((_, Some(fault))) => match &fault.node {
                Some(node) => format!("fails at `{}` ({})", state.report_name(node), fault.kind.name()),
                None => format!("fails ({})", fault.kind.name()),
            },
            _ => "ends".to_owned(),
        };
        return Some(format!("once it {}, once it {}", words(first), words(second)));
    }
    if one.status() != RunStatus::Completed {
        return None;
    }
    if one.output() != other.output() {
        let shown = |value: &Value| short(&value.to_string());
        return Some(format!("its output is {} or {}", shown(one.output()), shown(other.output())));
    }
    let said = |state: &State| -> BTreeMap<String, Vec<Arc<Message>>> {
        let own = state.view().threads().filter(|(name, _)| !name.contains('/'));
        own.map(|(name, thread)| (name.into_owned(), thread.iter().cloned().collect())).collect()
    };
    let (threads, others) = (said(first), said(second));
    if let Some((name, _)) = threads.iter().find(|(name, thread)| others.get(*name) != Some(thread)) {
        return Some(format!("the thread `{name}` ends otherwise"));
    }
    if threads.len() != others.len() {
        return Some("other threads are there".to_owned());
    }
    let mut own = one.runtime().into_iter().filter(|(name, _)| !name.contains('/'));
    let others = other.runtime();
    let differs = own.find(|(name, value)| others.get(name).map(|it| it.value) != Some(value.value));
    differs.map(|(name, _)| format!("`{name}` is something else"))
}

/// The beginning of a text, on one line.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.split_at(at).0),
        None => line,
    }
}
