//! The order of steps (D-14, D-15): who waits for whom, and who waits for himself or for a later one.

use super::{Check, Place};
use crate::diagnostic::shown;
use crate::json::Span;
use crate::{Finding, Severity};
use std::collections::{HashMap, VecDeque};

/// A step that waits for another one; if that is a later one, the place that says so and what it says.
pub(super) struct Link {
    from: usize,
    to: usize,
    place: Span,
    what: String,
}

/// References that are followed at most to find circles: a long list of steps in the wrong order has none, and each of
/// its steps would search all that follow.
const SEARCHED: usize = 500_000;

impl Check<'_, '_> {
    /// Notes that a step waits for another one of the list; what is wrong with it is told at the end.
    pub(super) fn link(&mut self, from: usize, to: usize, place: Place<'_>, what: impl FnOnce() -> String) {
        let (place, what) = if to >= from { (place(), what()) } else { (Span::default(), String::new()) };
        self.links.push(Link { from, to, place, what });
    }

    /// Steps that wait for themselves or for later ones (D-15): in a circle, or against the order of the list.
    pub(super) fn order(&mut self) {
        let links = std::mem::take(&mut self.links);
        if links.iter().all(|link| link.to < link.from) {
            return;
        }
        let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for link in &links {
            if let Some(waits) = waits_for.get_mut(link.from) {
                waits.push(link.to);
            }
        }
        let mut left = SEARCHED;
        for link in links.iter().filter(|link| link.to >= link.from) {
            let searched = !self.diagnostics.is_full(Severity::Error, "cycle");
            let circle = searched.then(|| way(&waits_for, link.to, link.from, &mut left)).flatten();
            let finding = match circle {
                Some(way) => self.circle(link, &way),
                None => {
                    let id = self.steps.get(link.to).map_or("", |step| &step.id.value);
                    let message = match link.what.starts_with("step ") {
                        true => format!("{} comes later in the list", link.what),
                        false => format!("{} is the result of a later step", link.what),
                    };
                    let help =
                        format!("move step {} up in the list: list order is the order of meaning", shown(id));
                    Finding::error("D-15", "later-step", link.place, message).help(help)
                }
            };
            self.diagnostics.push(finding);
        }
    }

    fn circle(&self, link: &Link, way: &[usize]) -> Finding {
        const MOST: usize = 8;
        let id = |at: usize| self.steps.get(at).map_or_else(String::new, |step| shown(&step.id.value));
        if link.to == link.from {
            let (more, help) = match link.what.starts_with("step ") {
                true => (String::new(), "take it out, or name an earlier step"),
                false => (format!(": {} is its own result", link.what), "refer to an earlier step"),
            };
            let message = format!("step {} waits for itself{more}", id(link.to));
            return Finding::error("D-15", "cycle", link.place, message).help(help);
        }
        let mut names = vec![id(link.from)];
        names.extend(way.iter().take(MOST).map(|at| id(*at)));
        let more = if way.len() > MOST { " → …" } else { "" };
        let message = format!("these steps wait for each other: {}{more}", names.join(" → "));
        Finding::error("D-15", "cycle", link.place, message).help("take one of these references out")
    }
}

/// A way from one step to another along what they wait for, both ends included. `left` is how many references may still
/// be followed: beyond that, what might be a circle is told as a later step, which it is too.
fn way(waits_for: &[Vec<usize>], from: usize, to: usize, left: &mut usize) -> Option<Vec<usize>> {
    let mut came_from: HashMap<usize, usize> = HashMap::from([(from, from)]);
    let mut todo = VecDeque::from([from]);
    while let Some(at) = todo.pop_front() {
        if at == to {
            let mut way = vec![at];
            let mut last = at;
            while let Some(&before) = came_from.get(&last).filter(|before| **before != last) {
                way.push(before);
                last = before;
            }
            way.reverse();
            return Some(way);
        }
        for &next in waits_for.get(at).into_iter().flatten() {
            *left = left.checked_sub(1)?;
            if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(at);
                todo.push_back(next);
            }
        }
    }
    None
}
