//! One picture of a run: a header, a lane for each thread, the text of the node in focus. No input, no output.

mod header;
mod lanes;
mod paths;
mod row;

pub(super) use header::summary;

use super::text::{calm, cut, last_lines, width};
use super::view::View;
use header::header;
use selvedge_host::text::counted;
use selvedge_host::timeline::NodeTimeline;
use std::borrow::Cow;

/// The most rows of a picture.
const ROWS: usize = 20;
/// The most rows of streamed text.
const TEXT_ROWS: usize = 6;
/// Columns from which a lane shows more than one mark, and from which it shows a title.
const ROOMY: usize = 40;

const PLAIN: &str = "";
pub(super) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";
pub(super) const RED: &str = "31";
pub(super) const GREEN: &str = "32";
pub(super) const YELLOW: &str = "33";
const CYAN: &str = "36";
const MAGENTA: &str = "35";

/// Takes secrets out of a text.
pub(super) type Redact<'a> = &'a dyn Fn(&str) -> Cow<'_, str>;

/// A line in pieces, each in a style (an SGR code, or nothing).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line(pub(super) Vec<(&'static str, String)>);

impl Line {
    /// Adds a piece.
    pub(super) fn with(mut self, style: &'static str, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    pub(super) fn redacted(mut self, redact: Redact<'_>) -> Self {
        for (_, text) in &mut self.0 {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        self
    }

    /// The line without what does not fit into `most` columns.
    pub(super) fn cut(self, most: usize) -> Self {
        let mut left = most;
        let mut line = Self::default();
        for (style, text) in self.0 {
            let text = cut(&text, left);
            left = left.saturating_sub(width(&text));
            if !text.is_empty() {
                line.0.push((style, text));
            }
        }
        line
    }
}

/// The run at the time `now` (by the view's clock) for a terminal of `width` columns and `height` rows. At
/// most `height - 1` lines, each narrower than the terminal. `redact` takes secrets out of a text (C-06).
pub(super) fn frame(view: &View, now: i64, width: usize, height: usize, redact: Redact<'_>) -> Vec<Line> {
    let columns = width.saturating_sub(1);
    let rows = height.saturating_sub(1).min(ROWS);
    if rows == 0 || columns == 0 {
        return Vec::new();
    }
    let mut lines = vec![header(view, now, columns)];
    lines.extend(stopping(view, now));
    let most = TEXT_ROWS.min(rows / 3);
    let text = text(view, columns, most, redact);
    // Room for text is kept even while there is none, so that lanes do not come and go with it.
    let kept = if view.streamed { most + 1 } else { 0 };
    let room = rows.saturating_sub(lines.len() + kept);
    lines.extend(match view.flows() {
        true => paths::lines(view, now, columns, room),
        false => lanes::lines(view, now, columns, room),
    });
    lines.extend(text);
    lines.truncate(rows);
    lines.into_iter().map(|line| line.redacted(redact).cut(columns)).collect()
}

/// What happens after a Ctrl-C (C-05).
fn stopping(view: &View, now: i64) -> Option<Line> {
    let grace = view.grace(now)?;
    let text = match view.under_way() {
        0 => "stopping".to_owned(),
        calls => {
            format!("stopping: {} may end within {grace} s; Ctrl-C stops at once", counted(calls, "call"))
        }
    };
    Some(Line::default().with(YELLOW, text))
}

/// The text of the node in focus: its last lines, under the node's name.
fn text(view: &View, columns: usize, rows: usize, redact: Redact<'_>) -> Vec<Line> {
    let focus =
        view.focus.and_then(|(row, _)| Some((view.timeline.nodes().get(row)?, view.active.get(&row)?)));
    let Some((node, active)) = focus else { return Vec::new() };
    let rows = last_lines(&redact(&active.text), columns.saturating_sub(2), rows);
    if rows.iter().all(String::is_empty) {
        return Vec::new();
    }
    let title =
        Line::default().with(DIM, format!("{}:", calm(&title(view, node, &view.timeline.told(node)))));
    let text = rows.into_iter().map(|row| Line::default().with(PLAIN, format!("  {row}")));
    std::iter::once(title).chain(text).collect()
}

/// What a node is called and, where it says more, its name.
fn title(view: &View, node: &NodeTimeline, called: &str) -> String {
    match view.timeline.def(node) {
        Some(def) if def.name != def.id => format!("{called} {}", def.name),
        _ => called.to_owned(),
    }
}
