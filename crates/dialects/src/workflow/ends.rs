//! Places of what became of a node or a join (W-08, W-09): `{{id.error.kind}}`, `{{join.error.results.path}}`, `{{join.errors.path.kind}}`.

use super::doc::{Does, ForkOf, WorkNode};
use crate::Finding;
use crate::diagnostic::{listed, shown};
use crate::fields::meant;
use crate::json::Span;
use selvedge_engine::Fault;
use selvedge_engine::template::{Placeholder, Seg};

/// The paths of a join, as far as the document says them.
enum PathIds<'d> {
    Listed(Vec<&'d str>),
    /// Those of a fork over a list have numbers.
    Numbers,
}

impl<'d> PathIds<'d> {
    /// `None` if the node is no join.
    fn of(node: &'d WorkNode, opener: Option<&'d WorkNode>) -> Option<Self> {
        let (Does::Join(_), Does::Fork(fork)) = (&node.does, &opener?.does) else { return None };
        Some(match &fork.of {
            ForkOf::Listed(paths) => Self::Listed(paths.iter().map(|(id, _)| &*id.value).collect()),
            ForkOf::Each { .. } => Self::Numbers,
        })
    }

    fn has(&self, seg: &Seg) -> bool {
        match (self, seg) {
            (Self::Listed(ids), Seg::Key(id)) => ids.contains(&&**id),
            (Self::Numbers, Seg::Key(id)) => id.parse::<u32>().is_ok(),
            (_, Seg::Index(_)) => false,
        }
    }

    fn help(&self, seg: &Seg) -> String {
        match (self, seg) {
            (Self::Listed(ids), _) => one_of(ids, seg),
            (Self::Numbers, Seg::Index(index)) => {
                format!("write the number as a name: .{}", index.unsigned_abs())
            }
            (Self::Numbers, Seg::Key(_)) => "the paths are numbered from 0: .0, .1, …".to_owned(),
        }
    }
}

fn one_of(names: &[&str], seg: &Seg) -> String {
    match seg {
        Seg::Key(key) if meant(key, names).is_some() => {
            format!("did you mean {}?", shown(meant(key, names).unwrap_or_default()))
        }
        _ => format!("there are {}", listed(names)),
    }
}

/// Whether a path goes into why a node failed.
pub(super) fn is_error(rest: &[Seg]) -> bool {
    matches!(rest.first(), Some(Seg::Key(key)) if &**key == "error")
}

/// Whether a path goes into why paths of a join failed. A path of that id comes first.
pub(super) fn is_errors(node: &WorkNode, opener: Option<&WorkNode>, rest: &[Seg]) -> bool {
    let Some(Seg::Key(key)) = rest.first() else { return false };
    let named = |paths: PathIds<'_>| match paths {
        PathIds::Listed(ids) => !ids.contains(&"errors"),
        PathIds::Numbers => true,
    };
    &**key == "errors" && PathIds::of(node, opener).is_some_and(named)
}

/// The finding about a place that can't be there. `failed`: the node may have failed by then.
pub(super) fn missing_place(
    placeholder: &Placeholder,
    (node, opener): (&WorkNode, Option<&WorkNode>),
    rest: &[Seg],
    failed: bool,
    span: Span,
) -> Option<Finding> {
    let paths = PathIds::of(node, opener);
    let missing = if failed && is_error(rest) {
        in_error(rest.get(1..)?, paths.as_ref())
    } else if is_errors(node, opener, rest) {
        in_errors(rest.get(1..)?, paths.as_ref()?)
    } else {
        match (&paths, rest.first()) {
            // Those that have names are declared (D-24).
            (Some(paths @ PathIds::Numbers), Some(seg)) if !paths.has(seg) => Some(paths.help(seg)),
            _ => None,
        }
    };
    let message = format!("{}: there is never such a place", placeholder.raw);
    Some(Finding::error("W-08", "no-such-place", span, message).help(missing?))
}

/// A way out, if a fault has no such place.
fn in_error(rest: &[Seg], paths: Option<&PathIds<'_>>) -> Option<String> {
    let (seg, below) = rest.split_first()?;
    let mut fields = Fault::FIELDS.to_vec();
    if paths.is_some() {
        fields.extend(["results", "errors"]);
    }
    let Seg::Key(key) = seg else { return Some(one_of(&fields, seg)) };
    match (&**key, paths) {
        ("results", Some(paths)) => below.first().filter(|id| !paths.has(id)).map(|id| paths.help(id)),
        ("errors", Some(paths)) => in_errors(below, paths),
        ("cause", _) => None,
        (known, _) if fields.contains(&known) => {
            (!below.is_empty()).then(|| format!("{known} is a text, and has no fields"))
        }
        _ => Some(one_of(&fields, seg)),
    }
}

fn in_errors(rest: &[Seg], paths: &PathIds<'_>) -> Option<String> {
    let (id, below) = rest.split_first()?;
    if paths.has(id) { in_error(below, None) } else { Some(paths.help(id)) }
}
