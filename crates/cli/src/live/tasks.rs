//! The picture of an evolution: how far it is, what it has come to, what it has used, and how long the rest takes (V-14).

use super::frame::{BOLD, DIM, GREEN, Line, RED, YELLOW};
use super::painter::{Picture, locked};
use super::text::short;
use crate::durations::elapsed;
use crate::progress::running_ms;
use crate::ui::Ui;
use selvedge_evolve::Standing;
use selvedge_runtime::Stop;
use std::sync::{Arc, Mutex};

/// Columns of the bar, at most, and which part of the terminal.
const BAR: usize = 40;
const PART: usize = 3;

/// What is known of an evolution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The arm of an evaluation (V-13), if it is one.
    pub(crate) arm: Option<String>,
    /// The batch that is done, and its run.
    pub(crate) batch: Option<(u64, String)>,
    /// How far it is.
    pub(crate) standing: Standing,
    /// When this process began, and when it began with these tasks, by a clock that nobody can set.
    pub(crate) began: i64,
    pub(crate) since: i64,
    /// Tasks that were done then.
    pub(crate) before: u64,
}

impl Known {
    /// Milliseconds that the rest takes if it goes on so; nothing where nothing is known of that.
    pub(crate) fn left(&self, now: i64) -> Option<i64> {
        let here = self.standing.done.checked_sub(self.before).filter(|here| *here > 0)?;
        let left = self.standing.tasks.checked_sub(self.standing.done).filter(|left| *left > 0)?;
        let took = i128::from(now.saturating_sub(self.since));
        i64::try_from(took * i128::from(left) / i128::from(here)).ok()
    }
}

/// A picture of an evolution, which is on until this is dropped.
pub(crate) struct Tasks {
    known: Arc<Mutex<Known>>,
    picture: Picture,
}

impl Tasks {
    /// Shows it, if stderr is a terminal that can and is to show it.
    pub(crate) fn show(ui: &Ui, known: Known, stop: &Stop) -> Option<Self> {
        let known = Arc::new(Mutex::new(known));
        let painted = Arc::clone(&known);
        let picture = Picture::show(ui, stop, move |ui, stopping, (width, height)| {
            let lines = lines(&locked(&painted), running_ms(), stopping, width.saturating_sub(1));
            let room = height.saturating_sub(1);
            lines.into_iter().take(room).map(|line| line.redacted(&|text| ui.redacted(text))).collect()
        })?;
        Some(Self { known, picture })
    }

    /// Something has changed.
    pub(crate) fn tell(&self, known: &Known) {
        locked(&self.known).clone_from(known);
    }

    /// Takes the picture away.
    pub(crate) fn close(&self) {
        self.picture.close();
    }
}

/// The picture, in so many columns.
fn lines(known: &Known, now: i64, stopping: bool, columns: usize) -> Vec<Line> {
    let Known { arm, batch, standing, began, .. } = known;
    let mut head = Line::default().with(BOLD, arm.clone().unwrap_or_else(|| "evolve".to_owned()));
    let took = elapsed(now.saturating_sub(*began));
    head = match batch {
        Some((number, run)) => head.with(DIM, format!(" · batch {number} (run {run}) · {took}")),
        None => head.with(DIM, format!(" · {took}")),
    };
    if stopping {
        head = head.with(YELLOW, " · stopping");
    }
    let mut far = bar(standing, (columns / PART).min(BAR));
    far = far.with("", format!(" {} of {}", standing.done, standing.tasks));
    if standing.running > 0 {
        far = far.with("", format!(" · {} running", standing.running));
    }
    if let Some(left) = known.left(now) {
        far = far.with(DIM, format!(" · about {} left", elapsed(left)));
    }
    let mut parts = Vec::new();
    if standing.scored > 0 {
        let share = standing.right as f64 / standing.scored as f64 * 100.0;
        parts.push(("", format!("{share:.1} % right ({} of {})", standing.right, standing.scored)));
    }
    parts.extend((standing.failed > 0).then(|| (RED, format!("{} failed", standing.failed))));
    parts.extend((standing.tokens > 0).then(|| ("", format!("{} tokens", short(standing.tokens)))));
    parts.extend((standing.cost > 0.0).then(|| ("", format!("cost {:.4}", standing.cost))));
    let mut came = Line::default();
    for (at, (style, text)) in parts.into_iter().enumerate() {
        came = if at > 0 { came.with(DIM, " · ") } else { came };
        came = came.with(style, text);
    }
    let lines = [head, far, came].into_iter().filter(|line| line.width() > 0);
    lines.map(|line| line.cut(columns)).collect()
}

/// How much is done, and how much of that has failed.
fn bar(standing: &Standing, columns: usize) -> Line {
    let of = |count: u64| {
        let share = count as f64 / standing.tasks.max(1) as f64;
        (share * columns as f64).floor() as usize
    };
    let done = of(standing.done).min(columns);
    // What has failed shows, however little it is.
    let failed = of(standing.failed).max(usize::from(standing.failed > 0)).min(done);
    Line::default()
        .with(GREEN, "█".repeat(done - failed))
        .with(RED, "█".repeat(failed))
        .with(DIM, "░".repeat(columns - done))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.0.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    /// V-14: tasks that are done, failed and running, tokens, cost, and how long the rest takes.
    #[test]
    fn v14_how_far_an_evolution_is() {
        let standing = Standing {
            tasks: 80,
            done: 20,
            failed: 2,
            running: 4,
            scored: 18,
            right: 15,
            tokens: 120_000,
            cost: 0.25,
        };
        let known = Known {
            batch: Some((3, "evolve1-3".to_owned())),
            standing,
            began: 0,
            since: 10_000,
            before: 10,
            ..Known::default()
        };
        assert_eq!(known.left(30_000), Some(120_000));
        let shown = text(&lines(&known, 30_000, false, 100));
        assert_eq!(shown.len(), 3);
        assert!(shown[0].starts_with("evolve · batch 3 (run evolve1-3) · "), "{shown:?}");
        assert!(
            shown[1].contains(" 20 of 80 · 4 running · about ") && shown[1].matches('█').count() == 8,
            "{shown:?}"
        );
        assert!(
            shown[2].starts_with("83.3 % right (15 of 18) · 2 failed · ") && shown[2].contains("cost 0.2500"),
            "{shown:?}"
        );
        for columns in 0..60 {
            assert!(
                lines(&known, 30_000, true, columns).iter().all(|line| line.width() <= columns),
                "{columns}"
            );
        }
        // Of nothing that is done nothing is known.
        let none = Known { standing: Standing { tasks: 5, ..Standing::default() }, ..Known::default() };
        assert_eq!((none.left(9_000), text(&lines(&none, 9_000, false, 80)).len()), (None, 2));
    }
}
