//! Dots and brackets behind a value: as long as it is written out, they go on with the path of a placeholder.

use super::ExpressionError;
use super::ast::{Expr, Kind, Root};
use super::parse::{Read, node};
use crate::template::{Path, Seg, normalized};
use std::sync::Arc;

/// The root under which nodes are found whose ids are no names.
pub(super) const RESULTS: &str = "results";

/// `of.name`: still the path of a placeholder, if it was one.
pub(super) fn selected(at: usize, of: Expr, name: Arc<str>) -> Read<Expr> {
    match of {
        Expr { at, kind: Kind::Root(root), .. } => node(at, Kind::Root(root.into(Seg::Key(name)))),
        of => node(at, Kind::Member(Box::new(of), name)),
    }
}

/// `of[index]`, the same if the index is written out.
pub(super) fn indexed(at: usize, of: Expr, index: Expr) -> Read<Expr> {
    let seg = match &index.kind {
        Kind::Text(key) => Some(Seg::Key(key.clone())),
        Kind::Int(number) if *number >= 0 => Some(Seg::Index(*number)),
        _ => None,
    };
    match (of, seg) {
        (Expr { at, kind: Kind::Root(root), .. }, Some(seg))
            if !(root.is_results() && matches!(seg, Seg::Index(_))) =>
        {
            node(at, Kind::Root(root.into(seg)))
        }
        (of, _) => node(at, Kind::Index(Box::new(no_bare_results(of)?), Box::new(index))),
    }
}

impl Root {
    pub(super) fn is_results(&self) -> bool {
        !self.of_results && &*self.path.root == RESULTS && self.path.rest.is_empty()
    }
    fn into(mut self, seg: Seg) -> Self {
        match seg {
            Seg::Key(id) if self.is_results() => {
                Self { path: Path { root: normalized(&id).into(), rest: Vec::new() }, of_results: true }
            }
            seg => {
                self.path.rest.push(seg);
                self
            }
        }
    }
}

pub(super) fn no_bare_results(expr: Expr) -> Read<Expr> {
    match &expr.kind {
        Kind::Root(root) if root.is_results() => {
            let message = format!(
                "`{RESULTS}` is followed by the id of a node: {RESULTS}[\"fetch-a\"].output; a variable of that name is metadata.{RESULTS}"
            );
            Err(ExpressionError::new(expr.at, message))
        }
        _ => Ok(expr),
    }
}
