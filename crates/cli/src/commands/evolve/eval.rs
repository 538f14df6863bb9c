//! `selvedge evolve eval`: what tools are worth (V-13).

use super::args::EvalArgs;
use super::told::{self, Told};
use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_evolve::evaluation::{Arm, Difference};
use selvedge_evolve::{Compared, Evaluated, Evaluation, Heard};
use selvedge_host::Error;
use selvedge_host::evolve::statistics::Verdict;
use selvedge_host::text::one_line;
use serde_json::{Value, json};
use std::sync::Arc;

/// Tasks that are named for people, of those that came out differently.
const NAMED: usize = 8;

/// Does the tasks in each way, and compares.
pub(super) fn eval(args: &EvalArgs, common: &Common, mut ui: Ui) -> Result<Exit, Error> {
    super::refuse(&args.tasks.exec)?;
    let compared = compared(args, &ui)?;
    let evolution = super::evolution(&args.file, &args.tasks, None, common, &ui)?;
    let evaluation = Evaluation { evolution, compared };
    let host = ui.host(common)?;
    block_on(usize::MAX, async {
        let signals = Signals::listen(&ui);
        let mut prepared = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            prepared = evaluation.prepare(&host) => prepared?,
        };
        if let Some(arm) = prepared.arms().next() {
            ui.secrets = arm.ready.secrets().to_vec();
            if let Some(script) = arm.ready.script() {
                ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
            }
        }
        let told = Arc::new(Told::new(&ui, &signals.stop));
        let evaluated = prepared.go(&(Arc::clone(&told) as Arc<dyn Heard>), &signals.stop).await;
        told.close();
        let evaluated = evaluated?;
        Ok(conclude(&evaluated, &ui))
    })?
}

/// What is compared: tools or libraries.
fn compared(args: &EvalArgs, ui: &Ui) -> Result<Compared, Error> {
    let wrong = |message: &str| {
        let help = "write --without TOOL, as often as wanted, or --library A --library B";
        Err(Error::usage("V-13", "nothing-to-compare", message).help(help))
    };
    match (&args.without[..], &args.library[..]) {
        ([], [a, b]) => Ok(Compared::Libraries(ui.environment.absolute(a), ui.environment.absolute(b))),
        ([], []) => wrong("it is not said what is compared"),
        ([], _) => wrong("two libraries are compared, no more and no fewer"),
        (tools, _) => {
            let mut once: Vec<String> = Vec::new();
            for tool in tools.iter().filter(|tool| !tool.contains(['/', '\\', '\0']) && !tool.is_empty()) {
                if !once.contains(tool) {
                    once.push(tool.clone());
                }
            }
            if once.is_empty() {
                wrong("`--without` takes the name of a tool")
            } else {
                Ok(Compared::Without(once))
            }
        }
    }
}

fn conclude(evaluated: &Evaluated, ui: &Ui) -> Exit {
    if ui.json {
        ui.result(&format!("{}\n", object(evaluated)));
    } else {
        ui.result(&page(evaluated));
    }
    match (&evaluated.stopped, evaluated.arms.last()) {
        (None, _) => Exit::Completed,
        (Some(stopped), _) => told::stopped(stopped, ui),
    }
}

fn object(evaluated: &Evaluated) -> Value {
    let Evaluated { arms, differences, out, .. } = evaluated;
    let arm = |arm: &Arm| {
        let summary = &arm.summary;
        let total = summary.measures.as_ref().map(|measures| &measures.total);
        let roles = || total.into_iter().flat_map(|total| total.roles.values());
        json!({
            "name": arm.name, "tasks": summary.tasks, "done": summary.done, "failed": summary.failed, "tools": summary.tools,
            "accuracy": summary.accuracy().map(|accuracy| accuracy.value), "calls": total.map_or(0, |total| total.calls),
            "tokens": roles().map(|used| used.tokens.input + used.tokens.output).sum::<u64>(),
            "cost": roles().map(|used| used.tokens.cost).sum::<f64>(),
        })
    };
    let compared = |found: &Difference| {
        let Difference { name, arms, comparison, better, worse } = found;
        let verdict = comparison.map_or(Verdict::NotEnoughTasks, |found| found.verdict);
        json!({
            "name": name, "arms": arms, "verdict": verdict, "tasks": comparison.map_or(0, |found| found.tasks),
            "with": comparison.map(|found| found.with), "without": comparison.map(|found| found.without),
            "difference": comparison.map(|found| found.difference), "interval": comparison.map(|found| found.interval),
            "better": better, "worse": worse,
        })
    };
    json!({
        "tasks": arms.first().map_or(0, |arm| arm.summary.tasks), "arms": arms.iter().map(arm).collect::<Vec<_>>(),
        "comparisons": differences.iter().map(compared).collect::<Vec<_>>(), "out": out,
    })
}

fn page(evaluated: &Evaluated) -> String {
    let Evaluated { arms, differences, out, .. } = evaluated;
    let mut rows = Vec::new();
    for Arm { name, summary } in arms {
        let accuracy = summary.accuracy().map(|found| percent(found.value)).unwrap_or_else(|| "-".to_owned());
        rows.push([
            name.clone(),
            summary.tools.to_string(),
            summary.done.to_string(),
            summary.failed.to_string(),
            accuracy,
        ]);
    }
    let mut text = table(["way", "tools", "done", "failed", "right"], &rows);
    let rows: Vec<[String; 6]> = differences.iter().map(row).collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(["judged", "tasks", "with", "without", "difference (95 %)", "verdict"], &rows));
    }
    for found in differences {
        for (tasks, how) in [(&found.better, "only with"), (&found.worse, "only without")] {
            if tasks.is_empty() {
                continue;
            }
            let named: Vec<&str> = tasks.iter().take(NAMED).map(String::as_str).collect();
            let more = tasks.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let name = one_line(&found.name, 60);
            text.push_str(&format!("right {how} {name}: {}{more}\n", one_line(&named.join(", "), 300)));
        }
    }
    text.push_str(&format!("{}\n", out.display()));
    text
}

fn row(found: &Difference) -> [String; 6] {
    let name = one_line(&found.name, 60);
    let Some(compared) = &found.comparison else {
        let none = || "-".to_owned();
        return [name, "0".to_owned(), none(), none(), none(), Verdict::NotEnoughTasks.name().to_owned()];
    };
    let points = |share: f64| format!("{:+.1}", share * 100.0);
    let (low, high) = (points(compared.interval.low), points(compared.interval.high));
    [
        name,
        compared.tasks.to_string(),
        percent(compared.with),
        percent(compared.without),
        format!("{} ({low} to {high})", points(compared.difference)),
        compared.verdict.name().to_owned(),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Columns, the first and the last of which begin at the left.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let widths: Vec<usize> = (0..N)
        .map(|at| {
            std::iter::once(&head)
                .chain(rows)
                .filter_map(|row| row.get(at))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:width$}"),
            at if at + 1 == N && N > 5 => cell.clone(),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
