//! The table of `explain`: a row for each node, with a line of time, and for paths and iterations.

use super::bars::Scale;
use super::page::BARS;
use super::tree::{self, What};
use crate::durations::{duration, duration_cell};
use crate::frames::listed;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, RED, Table, YELLOW, clean};
use crate::status::Words as _;
use selvedge_host::explain::{At, Explained};
use selvedge_host::text::counted;
use selvedge_host::timeline::{Activity, Durations, FrameStatus, FrameTimeline, Interval, NodeStatus, Which};

/// Waiting that is shown beside work: from so many milliseconds on.
const MUCH_MS: i64 = 50;
/// Nodes that a row names which it waited for.
const WAITED: usize = 20;

/// A row before it is set in columns.
struct Cells {
    label: String,
    ahead: bool,
    name: String,
    /// When it began and ended, and what it did meanwhile.
    extent: Option<(i64, i64)>,
    pieces: Vec<Interval>,
    /// What goes on in it now, if it has not ended.
    now: Option<Activity>,
    took: String,
    style: &'static str,
    sums: Durations,
    last: String,
}

/// The table of these rows, and the bars in it.
pub(super) fn table(
    explained: &Explained<'_>,
    scale: &Scale,
    rows: &[tree::Row],
    short: impl Fn(&str) -> String,
) -> (Table, String) {
    let rows: Vec<Cells> = rows.iter().map(|row| cells(explained, row)).collect();
    // What is next to nothing beside the whole is no news.
    let much = |ms: i64, of: &Durations| ms >= MUCH_MS && ms.saturating_mul(20) >= of.total();
    let queues = rows.iter().any(|row| much(row.sums.queued(), &row.sums));
    let waits = rows.iter().any(|row| much(row.sums.waited(), &row.sums));
    let columns = ["NODE", " ", "NAME", BARS, "TOOK"].into_iter();
    let columns = columns.chain(queues.then_some("QUEUED")).chain(waits.then_some("WAITED"));
    let columns: Vec<&'static str> = columns.chain(["WAITED FOR"]).collect();
    let mut table = Table::new(&columns, columns.len() - 1);
    // The id stays, and figures say what bars show.
    (table.spare, table.whole) = (vec![2, 3], (3..columns.len() - 1).collect());
    let mut bars = String::new();
    for row in rows {
        let bar_style = match (row.style, row.now) {
            (RED, _) => RED,
            (_, None) => GREEN,
            _ => YELLOW,
        };
        let bar = row.extent.map(|extent| scale.bar(extent, &row.pieces, row.now));
        let bar = bar.unwrap_or_else(|| " ".repeat(scale.width));
        bars.push_str(&bar);
        let time = |ms: i64| if much(ms, &row.sums) { duration_cell(ms) } else { String::new() };
        let ahead = if row.ahead { "»" } else { "" };
        let indent = row.label.len() - row.label.trim_start().len();
        let label = format!("{}{}", " ".repeat(indent), short(row.label.trim_start()));
        let cells = [
            (label, if row.extent.is_some() || indent == 0 { BOLD } else { DIM }),
            (ahead.to_owned(), CYAN),
            (short(&row.name), ""),
            (bar, bar_style),
            (row.took, row.style),
        ];
        let queued = queues.then(|| (time(row.sums.queued()), YELLOW));
        let waited = waits.then(|| (time(row.sums.waited()), YELLOW));
        table.row(cells.into_iter().chain(queued).chain(waited).chain([(row.last, "")]));
    }
    (table, bars)
}

fn cells(explained: &Explained<'_>, row: &tree::Row) -> Cells {
    let indent = "  ".repeat(row.depth);
    match &row.what {
        What::Node(at, frame) => {
            let mut cells = node(explained, *at);
            let frame = frame.and_then(|frame| explained.story.frame_at(frame)).map(tree::word);
            let frame = frame.map(|word| format!("{} ", clean(&word))).unwrap_or_default();
            // What stands below its path, or the node that opened it, needs no more than its id.
            let id = match row.depth {
                0 => explained.name(*at),
                _ => explained.story.def(*at).map_or("", |def| &def.id),
            };
            cells.label = format!("{indent}{frame}{id}");
            cells
        }
        What::Frame(frame) => {
            let frame = explained.story.frame_at(*frame);
            frame.map_or_else(|| rest(explained, &[], &indent), |frame| path(explained, frame, &indent))
        }
        What::Rest(frames) => rest(explained, frames, &indent),
    }
}

fn node(explained: &Explained<'_>, at: At) -> Cells {
    let story = &explained.story;
    let sums = story.durations(at);
    let (took, style) = took(explained, at, &sums);
    let def = story.def(at).filter(|def| def.name != def.id);
    let goes_on = || story.now(at).unwrap_or(Activity::Other);
    Cells {
        label: String::new(),
        ahead: story.ran_ahead(at),
        name: def.map(|def| def.name.to_string()).unwrap_or_default(),
        extent: story.extent(at),
        pieces: story.intervals(at),
        now: story.ended(at).is_none().then(goes_on),
        took,
        style,
        sums,
        last: waited_for(explained, at),
    }
}

/// A path, an iteration: what was done in it.
fn path(explained: &Explained<'_>, frame: &FrameTimeline, indent: &str) -> Cells {
    let (extent, pieces) = explained.story.of_frame(frame).unzip();
    let pieces = pieces.unwrap_or_default();
    let sums = Durations::of(&pieces);
    let worked = duration(sums.worked());
    let (took, style) = match frame.status {
        FrameStatus::Failed => (format!("failed {worked}"), RED),
        FrameStatus::Cancelled => (format!("cut off {worked}"), YELLOW),
        FrameStatus::Open | FrameStatus::Completed => (duration_cell(sums.worked()), ""),
    };
    Cells {
        label: format!("{indent}{}", clean(&tree::word(frame))),
        ahead: false,
        name: String::new(),
        extent,
        pieces,
        now: (frame.status == FrameStatus::Open).then_some(Activity::Other),
        took,
        style,
        sums,
        last: String::new(),
    }
}

/// Paths or iterations that have no rows of their own: what became of them, and how long they worked.
fn rest(explained: &Explained<'_>, frames: &[usize], indent: &str) -> Cells {
    let story = &explained.story;
    let frames: Vec<&FrameTimeline> = frames.iter().filter_map(|frame| story.frame_at(*frame)).collect();
    let of = |status: FrameStatus| frames.iter().filter(|frame| frame.status == status).count();
    let parts = [
        (of(FrameStatus::Failed), "failed"),
        (of(FrameStatus::Cancelled), "cut off"),
        (of(FrameStatus::Open), "going on"),
        (of(FrameStatus::Completed), "done"),
    ];
    let most = frames.iter().map(|frame| tree::worked(story, frame)).max();
    let extents = frames.iter().filter_map(|frame| story.of_frame(frame));
    let extent = extents.map(|(extent, _)| extent).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let what = match frames.first().map(|frame| &frame.which) {
        Some(Some(Which::Iteration(_))) => "more iteration",
        _ => "more path",
    };
    Cells {
        label: format!("{indent}… {}", counted(frames.len(), what)),
        ahead: false,
        name: String::new(),
        pieces: extent
            .map(|(from, to)| Interval { activity: Activity::Working, from, to })
            .into_iter()
            .collect(),
        extent,
        now: (of(FrameStatus::Open) > 0).then_some(Activity::Other),
        took: most.map(|most| format!("up to {}", duration(most))).unwrap_or_default(),
        style: DIM,
        sums: Durations::default(),
        last: listed(parts.map(|(count, what)| (count, format!("{count} {what}")))),
    }
}

/// How long a node worked, or why it did not.
fn took(explained: &Explained<'_>, at: At, sums: &Durations) -> (String, &'static str) {
    let story = &explained.story;
    let cancelled = story.visit(at).is_some_and(|visit| visit.cancelled);
    match (story.started(at), story.ended(at), story.fault(at).is_some()) {
        (None, ..) if story.skipped(at).is_some() => (NodeStatus::Skipped.words().to_owned(), YELLOW),
        (None, ..) => (story.timeline.status(None, story.until.at).words().to_owned(), DIM),
        (Some(_), None, _) => (goes_on(explained, at, sums), YELLOW),
        (Some(_), Some(_), true) => (format!("failed {}", duration(sums.worked())), RED),
        _ if cancelled => (format!("cut off {}", duration(sums.worked())), YELLOW),
        _ if story.reused(at).is_some_and(|reused| reused.whole()) => {
            (NodeStatus::Reused.words().to_owned(), CYAN)
        }
        _ => (duration_cell(sums.worked()), ""),
    }
}

/// What becomes of a node that has started and not ended.
fn goes_on(explained: &Explained<'_>, at: At, sums: &Durations) -> String {
    let story = &explained.story;
    match story.timeline.standing(story.node(at), story.until.at, explained.driven) {
        NodeStatus::Running => format!("{} {}", NodeStatus::Running.words(), duration(sums.worked())),
        status => status.words().to_owned(),
    }
}

/// The nodes that a node waited for, with the one first that ended last: that one held it up.
fn waited_for(explained: &Explained<'_>, at: At) -> String {
    let mut nodes: Vec<At> = explained.waits(at).iter().map(|waited| waited.at).collect();
    nodes.sort_by_key(|at| std::cmp::Reverse(explained.story.ended(*at).map_or(u64::MAX, |ended| ended.n)));
    let names: Vec<&str> = nodes.iter().take(WAITED).map(|at| explained.name(*at)).collect();
    let more = nodes.len().saturating_sub(names.len());
    let more = if more > 0 { format!(", … {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
