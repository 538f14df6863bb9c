//! What two recorded runs have in common, and what differs (C-15): threads, results, metadata and what each node used.
//!
//! The events that two forks share, or a fork and its source, are read once, for both.

mod cost;
mod json;
mod messages;
mod side;
mod words;

pub use cost::Cost;
pub use json::Entries;
pub use messages::{Change, Messages};
pub use side::{Shared, Side, both};
pub use words::{Piece, Tag, pieces};

use selvedge_engine::{StepResult, ThreadView};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// How something of one run stands to its like in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Is {
    /// Both have it, and it is the same.
    Same,
    /// Both have it, and it is not the same.
    Differs,
    /// Only the first run has it.
    OnlyA,
    /// Only the second run has it.
    OnlyB,
}

/// Two runs, compared.
pub struct Diff<'s> {
    /// The threads, by their names (W-03).
    pub threads: Vec<Thread<'s>>,
    /// The nodes that have a result in one of the runs, or used something.
    pub results: Vec<Node<'s>>,
    /// Both layers of metadata: what the runs were given, and what came of them.
    pub initial: Vec<Data<'s>>,
    /// The same of what came of them.
    pub runtime: Vec<Data<'s>>,
}

/// A thread of either run.
pub struct Thread<'s> {
    /// Its name.
    pub name: Cow<'s, str>,
    /// The thread of each run.
    pub a: Option<ThreadView<'s>>,
    /// That of the second.
    pub b: Option<ThreadView<'s>>,
    /// Its messages, compared.
    pub messages: Messages,
}

/// A node of either run: what came of it, and what that cost.
pub struct Node<'s> {
    /// What reports call it (W-03).
    pub name: Cow<'s, str>,
    /// How the results stand to each other.
    pub is: Is,
    /// What came of it in the first run.
    pub a: Option<StepResult<'s>>,
    /// What came of it in the second.
    pub b: Option<StepResult<'s>>,
    /// What it used in the first run, in all its visits, paths and iterations.
    pub cost_a: Cost,
    /// What it used in the second.
    pub cost_b: Cost,
}

/// A value of the metadata of either run.
pub struct Data<'s> {
    /// Its name.
    pub name: Cow<'s, str>,
    /// How the values stand to each other.
    pub is: Is,
    /// The value in the first run.
    pub a: Option<&'s Value>,
    /// The value in the second.
    pub b: Option<&'s Value>,
}

impl<'s> Diff<'s> {
    /// Compares two runs.
    pub fn of(a: &'s Side, b: &'s Side) -> Self {
        let (view_a, view_b) = (a.state.view(), b.state.view());
        let runtime = |side: &'s Side| {
            side.state.view().runtime().into_iter().map(|(name, known)| (name, known.value)).collect()
        };
        let initial = |side: &'s Side| {
            side.state.initial().iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), value)).collect()
        };
        Self {
            threads: threads(view_a.threads().collect(), view_b.threads().collect()),
            results: nodes(a, b),
            initial: data(initial(a), initial(b)),
            runtime: data(runtime(a), runtime(b)),
        }
    }

    /// Whether nothing differs but what it cost.
    pub fn same(&self) -> bool {
        let values = self.initial.iter().chain(&self.runtime).all(|value| value.is == Is::Same);
        let nodes = self.results.iter().all(|node| node.is == Is::Same);
        values && nodes && self.threads.iter().all(|thread| thread.messages.is == Is::Same)
    }
}

/// Pairs what both have, in the order of the first run; what only the second has comes behind.
fn paired<'s, T>(
    a: Vec<(Cow<'s, str>, T)>,
    b: Vec<(Cow<'s, str>, T)>,
) -> Vec<(Cow<'s, str>, Option<T>, Option<T>)> {
    let mut at: HashMap<Cow<'s, str>, usize> = HashMap::new();
    let mut all: Vec<(Cow<'s, str>, Option<T>, Option<T>)> = Vec::new();
    for (name, of) in a {
        at.insert(name.clone(), all.len());
        all.push((name, Some(of), None));
    }
    for (name, of) in b {
        match at.get(&name).and_then(|at| all.get_mut(*at)) {
            Some((_, _, b)) => *b = Some(of),
            None => all.push((name, None, Some(of))),
        }
    }
    all
}

fn is<T>(a: Option<&T>, b: Option<&T>, same: impl FnOnce(&T, &T) -> bool) -> Is {
    match (a, b) {
        (Some(a), Some(b)) if same(a, b) => Is::Same,
        (Some(_), None) => Is::OnlyA,
        (None, Some(_)) => Is::OnlyB,
        (Some(_), Some(_)) => Is::Differs,
        // Neither has a result: it has used something, and no more is known.
        (None, None) => Is::Same,
    }
}

type Threads<'s> = Vec<(Cow<'s, str>, ThreadView<'s>)>;

fn threads<'s>(a: Threads<'s>, b: Threads<'s>) -> Vec<Thread<'s>> {
    let mut room = messages::ROOM;
    let row = |(name, a, b): (Cow<'s, str>, Option<ThreadView<'s>>, Option<ThreadView<'s>>)| {
        let messages = Messages::compare(a.as_ref(), b.as_ref(), &mut room);
        Thread { name, a, b, messages }
    };
    paired(a, b).into_iter().map(row).collect()
}

/// What came of a node, and what it used.
type Came<'s> = (Option<StepResult<'s>>, Cost);

fn nodes<'s>(a: &'s Side, b: &'s Side) -> Vec<Node<'s>> {
    let results = |side: &'s Side| {
        let mut costs = cost::by_node(side);
        let mut rows: Vec<(Cow<'s, str>, Came<'s>)> = Vec::new();
        for result in side.state.view().results() {
            let cost = costs.remove(&*result.name).unwrap_or_default();
            rows.push((result.name.clone(), (Some(result), cost)));
        }
        // Those without a result, as they go on or were cut off.
        rows.extend(costs.into_iter().map(|(name, cost)| (Cow::Owned(name), (None, cost))));
        rows
    };
    let row = |(name, a, b): (Cow<'s, str>, Option<Came<'s>>, Option<Came<'s>>)| {
        let (a, cost_a) = a.unwrap_or_default();
        let (b, cost_b) = b.unwrap_or_default();
        let is = is(a.as_ref(), b.as_ref(), |a, b| {
            a.is_success == b.is_success && a.output == b.output && a.error == b.error
        });
        Node { name, is, a, b, cost_a, cost_b }
    };
    paired(results(a), results(b)).into_iter().map(row).collect()
}

fn data<'s>(a: BTreeMap<Cow<'s, str>, &'s Value>, b: BTreeMap<Cow<'s, str>, &'s Value>) -> Vec<Data<'s>> {
    let rows = paired(a.into_iter().collect(), b.into_iter().collect()).into_iter();
    rows.map(|(name, a, b)| Data { name, is: is(a.as_ref(), b.as_ref(), |a, b| a == b), a, b }).collect()
}

#[cfg(test)]
mod tests;
