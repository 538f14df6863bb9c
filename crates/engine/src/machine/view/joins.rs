//! What came of forks (W-09).

use super::View;
use crate::event::JoinOutcome;
use crate::fault::Fault;
use crate::graph::{Act, Strategy};
use crate::machine::opened::Children;
use crate::machine::usage::Usage;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// What a join came to (W-09).
#[derive(Clone, Debug, PartialEq)]
pub struct JoinView<'s> {
    /// What reports call the join.
    pub name: Cow<'s, str>,
    /// How it was to be decided.
    pub strategy: Strategy,
    /// How it was.
    pub outcome: JoinOutcome,
    /// The path whose threads took the place of those before the fork (W-10).
    pub main: Option<Arc<str>>,
    /// All paths, in order.
    pub paths: Vec<PathView<'s>>,
}

/// What a path came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PathView<'s> {
    /// Its id.
    pub id: Arc<str>,
    /// How it ended.
    pub end: PathEnd<'s>,
    /// What was used on it (W-02).
    pub usage: Usage,
}

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathEnd<'s> {
    /// It completed, with this result.
    Completed(&'s Value),
    /// It failed of this.
    Failed(&'s Fault),
    /// It was cut off when the join was decided, or never began (W-07).
    Cancelled,
}

impl<'s> View<'s> {
    /// The joins that are decided, also in paths, subgraphs and the last iterations of loops, each behind those in it.
    pub fn joins(self) -> impl Iterator<Item = JoinView<'s>> {
        self.nodes().filter_map(move |(frame, node)| {
            let (children, act) = frame.frame.children(node).filter(|_| node.0 < frame.horizon)?;
            let (Children::Fork(phase), Act::Fork(paths)) = (children, act) else { return None };
            let outcome = phase.outcome()?;
            let rows = phase.ends(&self.state.frames).enumerate().map(|(at, (inner, end))| PathView {
                id: paths.of.id(at),
                end: match end {
                    Some(Ok(output)) => PathEnd::Completed(output),
                    Some(Err(fault)) => PathEnd::Failed(fault),
                    None => PathEnd::Cancelled,
                },
                usage: self.state.used_in(inner),
            });
            Some(JoinView {
                name: frame.names.node(frame.frame.graph.nodes[node].shown_id()),
                strategy: paths.join.strategy,
                outcome,
                main: phase.adopted(paths).map(|at| paths.of.id(at)),
                paths: rows.collect(),
            })
        })
    }
}
