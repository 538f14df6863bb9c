//! What has run before what in a flow without circles: surely, perhaps, or never.
//!
//! Each vertex is two points: it has begun, and it has succeeded. A way after an error begins at the first, every other at the
//! second. Behind all of them is the end of the flow. What has surely happened at a point are its dominators.

use super::links::Take;
use super::regions::Region;
use std::cell::RefCell;

/// Whether something has happened by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Never,
    Perhaps,
    Surely,
}

/// A point: the vertex has begun, or has succeeded; or the flow is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    Begun(usize),
    Succeeded(usize),
    Over,
}

impl Point {
    /// Its number, of a flow with so many points.
    fn index(self, points: usize) -> usize {
        match self {
            Self::Begun(vertex) => 2 * vertex,
            Self::Succeeded(vertex) => 2 * vertex + 1,
            Self::Over => points.saturating_sub(1),
        }
    }
}

/// The points of a region, and how they follow each other.
pub(super) struct Order {
    before: Vec<Vec<usize>>,
    /// First and last number of each point and those that it dominates; none of it for points that nothing leads to.
    span: Vec<(usize, usize)>,
    /// All points before the one that was asked about last.
    last: RefCell<(usize, Vec<bool>)>,
}

impl Order {
    pub(super) fn of(region: &Region<'_>) -> Self {
        let points = 2 * region.vertices.len() + 1;
        let mut before = vec![Vec::new(); points];
        for (at, vertex) in region.vertices.iter().enumerate() {
            let mut leads = |from: Point, to: Point| {
                before
                    .get_mut(to.index(points))
                    .into_iter()
                    .for_each(|before: &mut Vec<usize>| before.push(from.index(points)));
            };
            leads(Point::Begun(at), Point::Succeeded(at));
            for way in &vertex.ways {
                let from =
                    if matches!(way.when, Take::Error) { Point::Begun(at) } else { Point::Succeeded(at) };
                leads(from, way.to.map_or(Point::Over, Point::Begun));
            }
            // The whole ends in its END nodes.
            if vertex.ways.is_empty() {
                leads(Point::Succeeded(at), Point::Over);
            }
        }
        let dominators = dominators(region, &before);
        Self { span: spans(&dominators), before, last: RefCell::new((usize::MAX, Vec::new())) }
    }

    /// Of nothing.
    pub(super) fn empty() -> Self {
        Self { before: Vec::new(), span: Vec::new(), last: RefCell::new((usize::MAX, Vec::new())) }
    }

    /// Whether one point has been passed when another is reached.
    pub(super) fn passed(&self, one: Point, at: Point) -> Before {
        let points = self.before.len();
        let (one, at) = (one.index(points), at.index(points));
        let span = |point: usize| self.span.get(point).copied().unwrap_or((1, 0));
        let ((first, last), (here, _)) = (span(one), span(at));
        if first <= here && here <= last {
            return Before::Surely;
        }
        let mut known = self.last.borrow_mut();
        if known.0 != at {
            *known = (at, self.all_before(at));
        }
        if known.1.get(one) == Some(&true) { Before::Perhaps } else { Before::Never }
    }

    fn all_before(&self, at: usize) -> Vec<bool> {
        let mut seen = vec![false; self.before.len()];
        let mut todo = vec![at];
        while let Some(next) = todo.pop() {
            for before in self.before.get(next).into_iter().flatten() {
                if seen.get_mut(*before).is_some_and(|seen| !std::mem::replace(seen, true)) {
                    todo.push(*before);
                }
            }
        }
        seen
    }
}

/// The nearest dominator of each point. In a flow without circles one pass in its order finds them.
fn dominators(region: &Region<'_>, before: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut nearest: Vec<Option<usize>> = vec![None; before.len()];
    let mut depth = vec![0usize; before.len()];
    let over = before.len().saturating_sub(1);
    for point in region.order.iter().flat_map(|at| [2 * at, 2 * at + 1]).chain([over]) {
        let mut common: Option<usize> = None;
        for other in before.get(point).into_iter().flatten() {
            common = Some(match common {
                None => *other,
                Some(known) => meet(known, *other, &nearest, &depth),
            });
        }
        if let Some(found) = common {
            let level = depth.get(found).map_or(0, |depth| depth + 1);
            nearest.get_mut(point).into_iter().for_each(|nearest| *nearest = Some(found));
            depth.get_mut(point).into_iter().for_each(|depth| *depth = level);
        }
    }
    nearest
}

fn meet(mut one: usize, mut other: usize, nearest: &[Option<usize>], depth: &[usize]) -> usize {
    let deep = |point: usize| depth.get(point).copied().unwrap_or(0);
    let up = |point: usize| nearest.get(point).copied().flatten();
    while one != other {
        let next = if deep(one) >= deep(other) { &mut one } else { &mut other };
        match up(*next) {
            Some(above) => *next = above,
            None => return *next,
        }
    }
    one
}

/// Numbers of a walk through the tree of dominators.
fn spans(nearest: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nearest.len()];
    for (point, above) in nearest.iter().enumerate() {
        if let Some(below) = above.and_then(|above| below.get_mut(above)) {
            below.push(point);
        }
    }
    let mut span = vec![(1, 0); nearest.len()];
    let mut number = 0;
    let mut todo: Vec<(usize, usize)> = nearest.first().map(|_| (0, 0)).into_iter().collect();
    while let Some((point, child)) = todo.pop() {
        if child == 0 {
            number += 1;
            span.get_mut(point).into_iter().for_each(|span| span.0 = number);
        }
        match below.get(point).and_then(|below| below.get(child)) {
            Some(next) => todo.extend([(point, child + 1), (*next, 0)]),
            None => span.get_mut(point).into_iter().for_each(|span| span.1 = number),
        }
    }
    span
}
