//! What is told of an evolution: a line for each task while it goes on, and what it came to (V-14, V-15).

use crate::durations::duration;
use crate::failure::Exit;
use crate::live::tasks::{Known, Tasks};
use crate::progress::running_ms;
use crate::ui::Ui;
use crate::words::command;
use selvedge_dialects::Diagnostic;
use selvedge_engine::{RunStatus, Warning};
use selvedge_evolve::{Heard, Standing, Stopped, Summary};
use selvedge_host::text::{counted, one_line};
use selvedge_runtime::Stop;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Characters of a task's id and of why it failed.
const ID: usize = 60;
const WHY: usize = 300;

/// Tells a person how it goes: in lines, and on a terminal with a picture below what fails or is wrong.
pub(crate) struct Told {
    ui: Ui,
    known: Mutex<Known>,
    picture: Option<Tasks>,
}

impl Told {
    pub(crate) fn new(ui: &Ui, stop: &Stop) -> Self {
        let known = Known { began: running_ms(), ..Known::default() };
        let picture = Tasks::show(ui, known.clone(), stop);
        Self { ui: ui.clone(), known: Mutex::new(known), picture }
    }

    /// Takes the picture away; from then on everybody writes by themselves.
    pub(crate) fn close(&self) {
        self.picture.iter().for_each(Tasks::close);
    }

    /// Takes note of something; what is known then.
    fn note(&self, change: impl FnOnce(&mut Known)) -> Known {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        self.picture.iter().for_each(|picture| picture.tell(&known));
        known.clone()
    }

    fn line(&self, known: &Known, text: &str) {
        let since = duration(running_ms().saturating_sub(known.began));
        self.ui.note(&format!("{since:>8}  {text}"));
    }

    fn standing(known: &Known) -> String {
        let standing = &known.standing;
        let mut parts = vec![format!("{} of {} done", standing.done, standing.tasks)];
        parts.extend((standing.failed > 0).then(|| format!("{} failed", standing.failed)));
        parts.extend((standing.running > 0).then(|| format!("{} running", standing.running)));
        parts.extend((standing.tokens > 0).then(|| format!("{} tokens", standing.tokens)));
        parts.extend((standing.cost > 0.0).then(|| format!("cost {:.4}", standing.cost)));
        parts.extend(known.left(running_ms()).map(|left| format!("about {} left", duration(left))));
        parts.join(", ")
    }
}

impl Heard for Told {
    fn begins(&self, standing: &Standing, left_out: &[Diagnostic]) {
        let known = self.note(|known| {
            (known.since, known.before, known.standing) = (running_ms(), standing.done, standing.clone());
        });
        for found in left_out {
            let line = found.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let label = self.ui.paint("1;33", "warning");
            self.ui.note(&format!("{label}: left out: {line}{}", one_line(&found.message, WHY)));
        }
        let done = match standing.done {
            0 => String::new(),
            // Whoever has changed an option, as that of scores, is not to take these for the work of it.
            done => format!(
                ", {done} of them done before, with the options of then (another --out does them anew)"
            ),
        };
        self.line(&known, &format!("{}{done}", counted(standing.tasks, "task")));
    }

    fn arm(&self, name: &str) {
        let known = self.note(|known| (known.arm, known.batch) = (Some(name.to_owned()), None));
        self.line(&known, &self.ui.paint("1", name));
    }

    fn batch(&self, run: &str, number: u64) {
        let known = self.note(|known| known.batch = Some((number, run.to_owned())));
        self.line(&known, &format!("{} (run {run})", self.ui.paint("1", &format!("batch {number}"))));
    }

    fn used(&self, standing: &Standing) {
        self.note(|known| known.standing = standing.clone());
    }

    fn measured(&self, number: u64, standing: &Standing, warnings: &[Warning]) {
        let known = self.note(|known| known.standing = standing.clone());
        let own = warnings.iter().filter(|warning| &*warning.code != "node-failed");
        let told: BTreeSet<String> = own.map(|warning| one_line(&warning.message, WHY)).collect();
        for warning in told {
            let label = self.ui.paint("1;33", "warning");
            self.line(&known, &format!("{label}: batch {number}: {warning}"));
        }
        if self.picture.is_none() {
            self.line(&known, &format!("batch {number} done ({})", Self::standing(&known)));
        }
    }

    fn task(&self, said: &Value, meant: bool, standing: &Standing) {
        let known = self.note(|known| known.standing = standing.clone());
        let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
        let correct = said.get("correct").and_then(Value::as_bool);
        // Where a picture shows how far it is, lines are for what somebody may want to look at.
        if self.picture.is_some() && text("status") == "completed" && correct != Some(false) {
            return;
        }
        let status = match (text("status"), correct) {
            ("completed", Some(true)) => self.ui.paint("32", "right"),
            ("completed", Some(false)) => self.ui.paint("33", "wrong"),
            ("completed", None) => self.ui.paint("32", "done"),
            (status, _) => self.ui.paint("31", status),
        };
        let fault = said.get("fault").and_then(|fault| fault.get("message")).and_then(Value::as_str);
        let why = fault.map(|fault| format!(": {}", one_line(fault, WHY))).unwrap_or_default();
        let id = one_line(text("task_id"), ID);
        let meant = if meant { "" } else { ", whose line is no longer meant" };
        let standing = match &self.picture {
            Some(_) => format!(" (run {})", text("run")),
            None => format!(" ({})", Self::standing(&known)),
        };
        self.line(&known, &format!("{status} {id}{meant}{why}{standing}"));
    }
}

/// Prints what it came to.
pub(crate) fn conclude(summary: &Summary, ui: &Ui) -> Exit {
    let Summary { tasks, done, failed, scored, right, batches, tools, out, stopped, .. } = summary;
    let accuracy = summary.accuracy();
    if ui.json {
        let object = json!({
            "tasks": tasks, "done": done, "failed": failed, "accuracy": accuracy.map(|accuracy| accuracy.value), "batches": batches, "tools": tools, "out": out,
        });
        ui.result(&format!("{object}\n"));
    } else {
        let mut text = format!("{done} of {} done, {failed} of them failed\n", counted(tasks, "task"));
        if let Some(accuracy) = accuracy {
            let (low, high) = (accuracy.interval.low * 100.0, accuracy.interval.high * 100.0);
            let share = accuracy.value * 100.0;
            text.push_str(&format!(
                "{right} of {scored} right: {share:.1} % (95 %: {low:.1} to {high:.1})\n"
            ));
        }
        text.push_str(&format!(
            "{}, {}\n{}\n",
            counted(batches, "batch"),
            counted(tools, "public tool"),
            out.display()
        ));
        ui.result(&text);
    }
    match stopped {
        Some(why) => self::stopped(why, ui),
        None if done >= tasks => Exit::Completed,
        None => {
            let left = tasks.saturating_sub(*done);
            ui.notice(&format!(
                "without a prediction: {}; {} lists the batches",
                counted(left, "task"),
                command(&["runs"])
            ));
            Exit::Failed
        }
    }
}

/// Says why it has stopped before the end.
pub(super) fn stopped(why: &Stopped, ui: &Ui) -> Exit {
    match why {
        Stopped::Interrupted => {
            ui.notice("stopped before the end; the same command goes on");
            Exit::Interrupted
        }
        Stopped::Budget => {
            ui.notice(
                "the budget is used up before the end; the same command with a larger --budget goes on",
            );
            Exit::Failed
        }
        Stopped::Batch { run, status, why } => {
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
    }
}
