//! What is told of an evolution: a line for each task while it goes on, and what it came to (V-14, V-15).

use crate::failure::Exit;
use crate::progress::{running_ms, seconds};
use crate::ui::Ui;
use crate::words::command;
use selvedge_dialects::Diagnostic;
use selvedge_engine::RunStatus;
use selvedge_evolve::{Heard, Standing, Stopped, Summary};
use selvedge_host::text::one_line;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Characters of a task's id and of why it failed.
const ID: usize = 60;
const WHY: usize = 300;

/// Tells a person how it goes.
pub(crate) struct Told {
    ui: Ui,
    began: i64,
    /// Tasks that were done when this process began.
    before: AtomicU64,
}

impl Told {
    pub(crate) fn new(ui: &Ui) -> Self {
        Self { ui: ui.clone(), began: running_ms(), before: AtomicU64::new(0) }
    }

    fn line(&self, text: &str) {
        let since = seconds(running_ms().saturating_sub(self.began));
        self.ui.note(&format!("{since:>8}  {text}"));
    }

    /// How long the rest takes if it goes on so; nothing where nothing is known of that.
    fn left(&self, standing: &Standing) -> Option<String> {
        let here = standing.done.checked_sub(self.before.load(Ordering::Relaxed)).filter(|here| *here > 0)?;
        let left = standing.tasks.checked_sub(standing.done).filter(|left| *left > 0)?;
        let took = running_ms().saturating_sub(self.began);
        let each = took / i64::try_from(here).ok()?;
        Some(format!("about {} left", seconds(each.saturating_mul(i64::try_from(left).ok()?))))
    }
}

impl Heard for Told {
    fn begins(&self, standing: &Standing, left_out: &[Diagnostic]) {
        self.before.store(standing.done, Ordering::Relaxed);
        for found in left_out {
            let line = found.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let label = self.ui.paint("1;33", "warning");
            self.ui.note(&format!("{label}: left out: {line}{}", one_line(&found.message, WHY)));
        }
        let done = match standing.done {
            0 => String::new(),
            done => format!(", {done} of them done before"),
        };
        self.line(&format!("{} tasks{done}", standing.tasks));
    }

    fn batch(&self, run: &str, number: u64) {
        self.line(&format!("{} (run {run})", self.ui.paint("1", &format!("batch {number}"))));
    }

    fn task(&self, said: &Value, standing: &Standing) {
        let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
        let status = match (text("status"), said.get("correct").and_then(Value::as_bool)) {
            ("completed", Some(true)) => self.ui.paint("32", "right"),
            ("completed", Some(false)) => self.ui.paint("33", "wrong"),
            ("completed", None) => self.ui.paint("32", "done"),
            (status, _) => self.ui.paint("31", status),
        };
        let fault = said.get("fault").and_then(|fault| fault.get("message")).and_then(Value::as_str);
        let why = fault.map(|fault| format!(": {}", one_line(fault, WHY))).unwrap_or_default();
        let id = one_line(text("task_id"), ID);
        self.line(&format!("{status} {id}{why} ({})", self.standing(standing)));
    }
}

impl Told {
    fn standing(&self, standing: &Standing) -> String {
        let mut parts = vec![format!("{} of {} done", standing.done, standing.tasks)];
        parts.extend((standing.failed > 0).then(|| format!("{} failed", standing.failed)));
        parts.extend((standing.running > 0).then(|| format!("{} running", standing.running)));
        parts.extend((standing.tokens > 0).then(|| format!("{} tokens", standing.tokens)));
        parts.extend((standing.cost > 0.0).then(|| format!("cost {:.4}", standing.cost)));
        parts.extend(self.left(standing));
        parts.join(", ")
    }
}

/// Prints what it came to.
pub(crate) fn conclude(summary: &Summary, ui: &Ui) -> Exit {
    let Summary { tasks, done, failed, measures, batches, tools, out, stopped } = summary;
    let total = measures.as_ref().map(|measures| &measures.total);
    let accuracy = total.and_then(|total| total.accuracy);
    if ui.json {
        let object = json!({
            "tasks": tasks, "done": done, "failed": failed, "accuracy": accuracy.map(|accuracy| accuracy.value), "batches": batches, "tools": tools, "out": out,
        });
        ui.result(&format!("{object}\n"));
    } else {
        let mut text = format!("{done} of {tasks} tasks done, {failed} of them failed\n");
        if let (Some(total), Some(accuracy)) = (total, accuracy) {
            let (low, high) = (accuracy.interval.low * 100.0, accuracy.interval.high * 100.0);
            let share = accuracy.value * 100.0;
            let (right, scored) = (total.right, total.scored);
            text.push_str(&format!(
                "{right} of {scored} right: {share:.1} % (95 %: {low:.1} to {high:.1})\n"
            ));
        }
        text.push_str(&format!("{batches} batches, {tools} public tools\n{}\n", out.display()));
        ui.result(&text);
    }
    match stopped {
        Some(Stopped::Interrupted) => {
            ui.notice("stopped before the end; the same command goes on");
            Exit::Interrupted
        }
        Some(Stopped::Budget) => {
            ui.notice(
                "the budget is used up before the end; the same command with a larger --budget goes on",
            );
            Exit::Failed
        }
        Some(Stopped::Batch { run, status, why }) => {
            let why = why.as_ref().map(|why| format!(": {}", one_line(why, WHY))).unwrap_or_default();
            let what = match status {
                RunStatus::Cancelled => {
                    "was cancelled; the same command begins its tasks anew, in another batch"
                }
                _ => "has failed; the same command goes on with it",
            };
            ui.notice(&format!("the batch {run} {what}{why}"));
            Exit::Failed
        }
        None if done >= tasks => Exit::Completed,
        None => {
            let left = tasks.saturating_sub(*done);
            ui.notice(&format!("{left} tasks have no prediction; {} lists the batches", command(&["runs"])));
            Exit::Failed
        }
    }
}
