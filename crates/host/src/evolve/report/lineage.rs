//! The lineage of tools as a graph: a column for each batch that changed something, a box for each version, lines from what it was made of. What no
//! batch had made public before, as what tasks have built, has a box in a column of its own, before that of the batch which took it in.

use super::escaped;
use crate::evolve::measures::{Change, How, Measures};
use crate::library::short;
use std::collections::HashMap;
use std::fmt::Write;

/// Boxes that are drawn, at most: those of the latest changes.
const MOST: usize = 400;
const COLUMN: f64 = 200.0;
const ROW: f64 = 34.0;
const BOX: (f64, f64) = (160.0, 24.0);
const EDGE: f64 = 24.0;
/// Letters that a box has room for.
const LETTERS: usize = 22;

/// A version of a tool, and where it is.
struct Drawn<'m> {
    column: usize,
    row: usize,
    name: &'m str,
    version: &'m str,
    batch: u32,
    /// What the batch did; without it this is what something was made of.
    change: Option<&'m Change>,
}

impl Drawn<'_> {
    fn at(&self) -> (f64, f64) {
        (EDGE / 2.0 + self.column as f64 * COLUMN, EDGE + self.row as f64 * ROW)
    }
}

/// The graph, with a legend; nothing where nothing has changed.
pub(super) fn section(measures: &[Measures]) -> String {
    let all: Vec<(u32, &Change)> =
        measures.iter().flat_map(|it| it.changes.iter().map(move |change| (it.batch, change))).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut room = MOST;
    let fits = all.iter().rev().take_while(|(_, change)| {
        let left = room.checked_sub(1 + change.from.len());
        room = left.unwrap_or_default();
        left.is_some()
    });
    let left = all.len() - fits.count();
    let shown = all.get(left..).unwrap_or_default();
    let boxes = placed(shown);
    let most = |of: fn(&Drawn<'_>) -> usize| boxes.iter().map(of).max().unwrap_or_default() as f64;
    let width = EDGE + most(|it| it.column) * COLUMN + BOX.0;
    let height = EDGE * 1.5 + (most(|it| it.row) + 1.0) * ROW;
    let mut out = String::from(
        "<section>\n<h2>Lineage of tools</h2>\n<ul class=\"legend\"><li class=\"s0\">created</li><li class=\"s1\">enhanced</li>\
         <li class=\"s2\">merged</li><li class=\"s3\">retired</li><li class=\"s5\">taken into another one</li></ul>\n",
    );
    if left > 0 {
        let _ = writeln!(out, "<p>The latest {} changes; {left} before them are left out.</p>", shown.len());
    }
    let _ = writeln!(
        out,
        "<div class=\"wide\"><svg class=\"lineage\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Lineage of tools\">"
    );
    heads(&mut out, &boxes);
    for (at, to) in boxes.iter().enumerate() {
        let (x, y) = to.at();
        for from in to.change.iter().flat_map(|change| &change.from) {
            let Some(from) = before(boxes.get(..at).unwrap_or_default(), from, to.column) else { continue };
            let (x1, y1) = from.at();
            let (x1, y1, y2) = (x1 + BOX.0, y1 + BOX.1 / 2.0, y + BOX.1 / 2.0);
            let bend = (x1 + x) / 2.0;
            let _ = writeln!(out, "<path class=\"edge\" d=\"M{x1} {y1}C{bend} {y1} {bend} {y2} {x} {y2}\"/>");
        }
    }
    boxes.iter().for_each(|one| drawn(&mut out, one));
    out.push_str("</svg></div>\n</section>\n");
    out
}

/// The last box of a version before a column.
fn before<'b, 'm>(boxes: &'b [Drawn<'m>], version: &str, column: usize) -> Option<&'b Drawn<'m>> {
    boxes.iter().rev().find(|one| one.column < column && one.version == version)
}

/// Where each box is, in the order of columns. A tool stays in its row, if that is free.
fn placed<'m>(shown: &[(u32, &'m Change)]) -> Vec<Drawn<'m>> {
    let (mut boxes, mut rows): (Vec<Drawn<'m>>, HashMap<&str, usize>) = Default::default();
    let mut column = 0;
    for changes in shown.chunk_by(|(a, _), (b, _)| a == b) {
        let made_of = || changes.iter().flat_map(|(_, change)| change.from.iter());
        // A line to what is public already would seem to end at a box in its row.
        let mut taken: Vec<usize> = made_of().filter_map(|from| rows.get(&**from).copied()).collect();
        let first = boxes.len();
        for (batch, change) in changes {
            for (at, version) in change.from.iter().enumerate() {
                if rows.contains_key(&**version) {
                    continue;
                }
                let row = free(&mut taken);
                rows.insert(version, row);
                let name = change.names.get(at).map_or_else(|| short(version), |name| &**name);
                boxes.push(Drawn { column, row, name, version, batch: *batch, change: None });
            }
        }
        column += usize::from(boxes.len() > first);
        let mut taken: Vec<usize> = Vec::new();
        for (batch, change) in changes {
            let own = change.from.iter().filter_map(|from| rows.get(&**from).copied());
            let row = match own.into_iter().find(|row| !taken.contains(row)) {
                Some(row) => {
                    taken.push(row);
                    row
                }
                None => free(&mut taken),
            };
            rows.insert(&change.version, row);
            let (name, version) = (&*change.name, &*change.version);
            boxes.push(Drawn { column, row, name, version, batch: *batch, change: Some(change) });
        }
        column += 1;
    }
    boxes
}

/// Takes the first row that is free.
fn free(taken: &mut Vec<usize>) -> usize {
    let row = (0..).find(|row| !taken.contains(row)).unwrap_or(taken.len());
    taken.push(row);
    row
}

fn heads(out: &mut String, boxes: &[Drawn<'_>]) {
    for column in boxes.chunk_by(|a, b| a.column == b.column) {
        let Some(first) = column.first() else { continue };
        let what = if first.change.is_some() { "" } else { "taken in by " };
        let _ = writeln!(
            out,
            "<text class=\"head\" x=\"{:.1}\" y=\"14\">{what}batch {}</text>",
            first.at().0,
            first.batch
        );
    }
}

fn drawn(out: &mut String, one: &Drawn<'_>) {
    let (class, word) = match one.change.map(|change| change.how) {
        Some(How::Created) => ("s0", "created"),
        Some(How::Enhanced) => ("s1", "enhanced"),
        Some(How::Merged) => ("s2", "merged"),
        Some(How::Retired) => ("s3", "retired"),
        None => ("s5", "taken into another one"),
    };
    let name = match one.name.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", one.name.get(..at).unwrap_or_default()),
        None => one.name.to_owned(),
    };
    let named = |before: &str, names: &[std::sync::Arc<str>]| {
        let names: Vec<String> = names.iter().map(|name| escaped(name)).collect();
        if names.is_empty() { String::new() } else { format!(", {before} {}", names.join(", ")) }
    };
    let of = one.change.map(|change| named("of", &change.names)).unwrap_or_default();
    let also = one.change.map(|change| named("also called", &change.aliases)).unwrap_or_default();
    let (x, y) = one.at();
    let _ = writeln!(
        out,
        "<g class=\"tool {class}\"><title>{}: {word}, version {}{of}{also}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"4\"/>\
         <text x=\"{}\" y=\"{}\">{}</text></g>",
        escaped(one.name),
        escaped(short(one.version)),
        BOX.0,
        BOX.1,
        x + 10.0,
        y + 16.0,
        escaped(&name)
    );
}
