//! What a fork, or a run that was resumed, did not have to ask for again, node by node, and why the rest was (E-29): read off its
//! timeline, with what the engine says of each request.

use crate::timeline::{CallKind, NodeTimeline, Timeline, Visit};
use selvedge_engine::{Afresh, EffectId, Origin, Saved, State};
use serde::Serialize;
use std::borrow::Cow;

/// How a node came to what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It had ended in the events that a fork shares with its source, and that stands.
    Kept,
    /// It took recorded outcomes, or follows from such without asking for anything.
    Reused,
    /// It asked for something afresh.
    Ran,
    /// A person has to say whether it may.
    Asks,
    /// It has not come to its end, and depends on what has.
    Depends,
    /// It does not run, because of a node that failed (D-16).
    Skipped,
}

/// What became of a node instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What people are told that it is (W-03).
    pub name: String,
    /// How it came to what it has.
    pub fate: Fate,
    /// Its calls that stand or took a recorded outcome.
    pub reused: u64,
    /// Those among them that the fork gave another text (E-19).
    pub edited: u64,
    /// What all of them had used.
    pub saved: Saved,
    /// Its calls that were asked for afresh, each with why.
    pub afresh: Vec<Request>,
}

/// A request that was made afresh.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its effect.
    pub effect: EffectId,
    /// Of what.
    pub kind: CallKind,
    /// Why.
    pub why: Afresh,
}

/// All nodes of a run that began anew, and the sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Node by node, in list order, each with those in the frames that it opened before it.
    pub rows: Vec<Row>,
    /// What was saved in all.
    pub saved: Saved,
}

impl Account {
    /// How many nodes came to what they have in this way.
    pub fn count(&self, fate: Fate) -> usize {
        self.rows.iter().filter(|row| row.fate == fate).count()
    }
}

/// What became of the nodes of a run that began anew.
pub fn account(state: &State, timeline: &Timeline) -> Account {
    let mut rows = Vec::new();
    for node in state.graph().nodes.values() {
        match timeline.root(&node.id) {
            Some(row) => inner(state, timeline, row, &mut rows),
            None => rows.push(Row::depends(Cow::Borrowed(&node.id))),
        }
    }
    Account { rows, saved: state.saved() }
}

fn inner(state: &State, timeline: &Timeline, node: &NodeTimeline, rows: &mut Vec<Row>) {
    for at in node.current().map(|visit| visit.inner.as_slice()).unwrap_or_default() {
        if let Some(node) = timeline.nodes().get(*at) {
            inner(state, timeline, node, rows);
        }
    }
    rows.push(Row::of(state, timeline, node));
}

impl Row {
    fn depends(name: Cow<'_, str>) -> Self {
        let (reused, edited, saved, afresh) = (0, 0, Saved::default(), Vec::new());
        Self { name: name.into_owned(), fate: Fate::Depends, reused, edited, saved, afresh }
    }

    fn of(state: &State, timeline: &Timeline, node: &NodeTimeline) -> Self {
        let mut row = Self::depends(timeline.told(node));
        let Some(visit) = node.current() else {
            row.fate = if node.skipped.is_some() { Fate::Skipped } else { Fate::Depends };
            return row;
        };
        for (call, attempt) in visit.attempts() {
            let origin = state.origin(&attempt.effect);
            row.edited += u64::from(matches!(origin, Some(Origin::Edited(_))));
            match origin {
                Some(Origin::Kept(saved) | Origin::Reused(saved) | Origin::Edited(saved)) => {
                    row.reused += 1;
                    row.saved.add(&saved);
                }
                Some(Origin::Afresh(why)) => {
                    let (effect, kind) = (attempt.effect.clone(), call.kind.clone());
                    row.afresh.push(Request { effect, kind, why });
                }
                None => {}
            }
        }
        row.fate = fate(timeline, visit, &row);
        row
    }
}

fn fate(timeline: &Timeline, visit: &Visit, row: &Row) -> Fate {
    let left = timeline.left_source();
    match visit.ended {
        _ if !row.afresh.is_empty() => Fate::Ran,
        _ if visit.open_questions().next().is_some() => Fate::Asks,
        Some(ended) if ended.n <= left => Fate::Kept,
        Some(_) => Fate::Reused,
        None => Fate::Depends,
    }
}
