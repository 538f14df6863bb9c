//! The lineage of tools as a graph: a column for each batch that changed something, a box for each version, lines from what it was made of.

use super::escaped;
use crate::evolve::measures::{Change, How, Measures};
use crate::library::short;
use std::collections::HashMap;
use std::fmt::Write;

/// Changes that are drawn, at most: the latest.
const MOST: usize = 400;
const COLUMN: f64 = 200.0;
const ROW: f64 = 34.0;
const BOX: (f64, f64) = (160.0, 24.0);
const EDGE: f64 = 24.0;
/// Letters that a box has room for.
const LETTERS: usize = 22;

/// The graph, with a legend; nothing where nothing has changed.
pub(super) fn section(measures: &[Measures]) -> String {
    let all: Vec<(u32, &Change)> =
        measures.iter().flat_map(|it| it.changes.iter().map(move |change| (it.batch, change))).collect();
    if all.is_empty() {
        return String::new();
    }
    let left = all.len().saturating_sub(MOST);
    let shown = all.get(left..).unwrap_or_default();
    let (boxes, width, height) = placed(shown);
    let mut out = String::from(
        "<section>\n<h2>Lineage of tools</h2>\n<ul class=\"legend\"><li class=\"s0\">created</li><li class=\"s1\">enhanced</li>\
         <li class=\"s2\">merged</li><li class=\"s3\">retired</li></ul>\n",
    );
    if left > 0 {
        let _ = writeln!(out, "<p>The latest {} changes; {left} before them are left out.</p>", shown.len());
    }
    let _ = writeln!(
        out,
        "<div class=\"wide\"><svg class=\"lineage\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Lineage of tools\">"
    );
    heads(&mut out, shown);
    for (x, y, change) in &boxes {
        for from in &change.from {
            // What is not drawn has no line.
            if let Some((fx, fy)) = latest(&boxes, from, *x) {
                let (x1, y1, y2) = (fx + BOX.0, fy + BOX.1 / 2.0, y + BOX.1 / 2.0);
                let bend = (x1 + x) / 2.0;
                let _ =
                    writeln!(out, "<path class=\"edge\" d=\"M{x1} {y1}C{bend} {y1} {bend} {y2} {x} {y2}\"/>");
            }
        }
    }
    for (x, y, change) in &boxes {
        drawn(&mut out, (*x, *y), change);
    }
    out.push_str("</svg></div>\n</section>\n");
    out
}

type Placed<'m> = (f64, f64, &'m Change);

/// Where each box is, and how large all of it is. A tool stays in its row, if that is free.
fn placed<'m>(shown: &[(u32, &'m Change)]) -> (Vec<Placed<'m>>, f64, f64) {
    let (mut boxes, mut rows): (Vec<Placed<'m>>, HashMap<&str, usize>) = Default::default();
    let (mut column, mut last, mut most) = (0usize, None, 0);
    let mut taken: Vec<usize> = Vec::new();
    for (batch, change) in shown {
        if last != Some(*batch) {
            column += usize::from(last.is_some());
            last = Some(*batch);
            taken.clear();
        }
        let before =
            change.from.iter().filter_map(|from| rows.get(&**from).copied()).find(|row| !taken.contains(row));
        let free = || (0..).find(|row| !taken.contains(row)).unwrap_or(taken.len());
        let row = before.unwrap_or_else(free);
        taken.push(row);
        rows.insert(&change.version, row);
        most = most.max(row);
        boxes.push((EDGE / 2.0 + column as f64 * COLUMN, EDGE + row as f64 * ROW, change));
    }
    let (width, height) = (EDGE + column as f64 * COLUMN + BOX.0, EDGE * 1.5 + (most + 1) as f64 * ROW);
    (boxes, width, height)
}

/// The last box of a version before a column.
fn latest(boxes: &[Placed<'_>], version: &str, before: f64) -> Option<(f64, f64)> {
    boxes
        .iter()
        .rev()
        .find(|(x, _, change)| *x < before && *change.version == *version)
        .map(|(x, y, _)| (*x, *y))
}

fn heads(out: &mut String, shown: &[(u32, &Change)]) {
    let mut batches: Vec<u32> = shown.iter().map(|(batch, _)| *batch).collect();
    batches.dedup();
    for (column, batch) in batches.into_iter().enumerate() {
        let _ = writeln!(
            out,
            "<text class=\"head\" x=\"{:.1}\" y=\"14\">batch {batch}</text>",
            EDGE / 2.0 + column as f64 * COLUMN
        );
    }
}

fn drawn(out: &mut String, (x, y): (f64, f64), change: &Change) {
    let (class, word) = match change.how {
        How::Created => ("s0", "created"),
        How::Enhanced => ("s1", "enhanced"),
        How::Merged => ("s2", "merged"),
        How::Retired => ("s3", "retired"),
    };
    let name = match change.name.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", change.name.get(..at).unwrap_or_default()),
        None => change.name.to_string(),
    };
    let aliases: Vec<String> = change.aliases.iter().map(|alias| escaped(alias)).collect();
    let also =
        if aliases.is_empty() { String::new() } else { format!(", also called {}", aliases.join(", ")) };
    let _ = writeln!(
        out,
        "<g class=\"tool {class}\"><title>{}: {word}, version {}, of {} others{also}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"4\"/>\
         <text x=\"{}\" y=\"{}\">{}</text></g>",
        escaped(&change.name),
        escaped(short(&change.version)),
        change.from.len(),
        BOX.0,
        BOX.1,
        x + 10.0,
        y + 16.0,
        escaped(&name)
    );
}
