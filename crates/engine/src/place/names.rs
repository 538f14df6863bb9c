//! What reports call what is in frames (W-03): the ids of the document, and before them whatever is there several times.
//!
//! | frame | before ids of nodes | before names of threads |
//! |---|---|---|
//! | the document's own graph | – | – |
//! | a path of a fork | – | `{fork}[{path}]/` |
//! | a path of a fork over a list | `{fork}[{k}]/` | `{fork}[{k}]/` |
//! | an iteration of a loop | – | –: its threads are those around it |
//! | a subgraph, a plan | `{node}/` | `{node}/` |
//!
//! What is in frames of the latter kinds comes behind that. Within such names ids are escaped as in places, so that they can be
//! read back; by itself an id is as the document has it.

use super::Instance;
use super::text::{NESTED, escaped, unescape};
use crate::graph::{Act, PathsOf};
use crate::ids::GraphIx;
use std::borrow::Cow;
use std::sync::Arc;

/// What stands before the names of what is in a frame (W-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    nodes: Arc<str>,
    threads: Arc<str>,
    /// As people are told of nodes: with the number of an iteration, `{loop}#{n}/`.
    told: Arc<str>,
}

impl Names {
    /// Those of a frame that a node opened.
    pub fn within(&self, node: &str, act: &Act, instance: &Instance<'_>) -> Self {
        let node = escaped(node, NESTED);
        let behind = |before: &str, part: &str| -> Arc<str> { format!("{before}{node}{part}/").into() };
        match instance {
            Instance::Path(id) => {
                let part = format!("[{}]", escaped(id, NESTED));
                let threads = behind(&self.nodes, &part);
                match act {
                    Act::Fork(paths) if matches!(paths.of, PathsOf::Each { .. }) => {
                        Self { nodes: Arc::clone(&threads), threads, told: behind(&self.told, &part) }
                    }
                    _ => Self { threads, ..self.clone() },
                }
            }
            Instance::Iteration(n) => Self { told: behind(&self.told, &format!("#{n}")), ..self.clone() },
            Instance::Sub => {
                let nodes = behind(&self.nodes, "");
                Self { threads: Arc::clone(&nodes), nodes, told: behind(&self.told, "") }
            }
        }
    }

    /// What reports call a node of the frame.
    pub fn node<'a>(&self, id: &'a str) -> Cow<'a, str> {
        named(&self.nodes, id)
    }

    /// What reports call a thread of the frame, or one of its variables.
    pub fn thread<'a>(&self, name: &'a str) -> Cow<'a, str> {
        named(&self.threads, name)
    }

    /// What people are told that a node of the frame is.
    pub fn told<'a>(&self, id: &'a str) -> Cow<'a, str> {
        named(&self.told, id)
    }

    /// What people are told that the frame itself is: the beginning of the names of its threads, or of its nodes.
    pub fn frame(&self, instance: &Instance<'_>) -> &str {
        let before = match instance {
            Instance::Path(_) => &self.threads,
            Instance::Iteration(_) | Instance::Sub => &self.told,
        };
        before.trim_end_matches('/')
    }
}

impl Act {
    /// The graph of the frame that it opens as such, if it does.
    pub fn opens(&self, instance: &Instance<'_>) -> Option<GraphIx> {
        match (self, instance) {
            (Self::Fork(paths), Instance::Path(id)) => paths.of.graph(paths.of.position(id)?),
            (Self::Loop(times), Instance::Iteration(_)) => Some(times.graph),
            (Self::Sub(sub), Instance::Sub) => Some(sub.graph),
            _ => None,
        }
    }
}

fn named<'a>(before: &str, id: &'a str) -> Cow<'a, str> {
    match before.is_empty() {
        true => Cow::Borrowed(id),
        false => Cow::Owned(format!("{before}{}", escaped(id, NESTED))),
    }
}

/// A part of such a name: a node, and which of its paths.
pub(crate) struct Part<'a> {
    pub(crate) node: Cow<'a, str>,
    pub(crate) path: Option<Cow<'a, str>>,
}

/// The parts of a name before its last, and what is named there; `None` for one that names nothing in a frame.
pub(crate) fn parts(name: &str) -> Option<(Vec<Part<'_>>, Cow<'_, str>)> {
    let (frames, last) = name.rsplit_once('/')?;
    let part = |text| {
        let (node, path) = match str::strip_suffix(text, "]").and_then(|text| text.split_once('[')) {
            Some((node, path)) => (node, Some(unescape(path, NESTED)?)),
            None => (text, None),
        };
        Some(Part { node: unescape(node, NESTED)?, path })
    };
    Some((frames.split('/').map(part).collect::<Option<_>>()?, unescape(last, NESTED)?))
}
