//! `selvedge doctor`: what is configured, what works here, and what to do about the rest.

mod mcp;
mod models;
mod network;
mod settings;
mod state;
mod terminal;
mod tools;

use super::args::DoctorArgs;
use super::page::{CYAN, GREEN, Page, RED, YELLOW};
use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::Error;
use serde::Serialize;
use serde_json::json;

/// Where texts begin: behind the verdict and the name of a check.
const INDENT: usize = 20;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// It works.
    Ok,
    /// It works, with a catch.
    Warning,
    /// It is not there, and nothing that is configured needs it.
    Missing,
    /// What is configured can't work.
    Broken,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Check {
    /// What was looked at: `state`, `config`, `model`, `python`, ….
    check: &'static str,
    /// What came out.
    status: Verdict,
    /// What was found.
    message: String,
    /// What to do; empty where there is nothing to do.
    help: String,
}

/// The report so far.
#[derive(Debug, Default)]
struct Report(Vec<Check>);

impl Report {
    fn add(&mut self, check: &'static str, status: Verdict, message: impl Into<String>) {
        self.0.push(Check { check, status, message: message.into(), help: String::new() });
    }

    /// A way out for what was added last.
    fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.help = help.into();
        }
    }
}

/// Looks at everything and prints what it found. Exit 4 if something that is configured can't work.
pub(crate) fn doctor(args: &DoctorArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let ui = super::guarded(ui);
    let gate = ui.gate(common)?;
    let mut report = Report::default();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    report.add("selvedge", Verdict::Ok, format!("version {} on {os}, {arch}", env!("CARGO_PKG_VERSION")));
    let state = state::look(common, &ui.environment, &mut report);
    let (config, chosen) = settings::look(gate, &ui, &mut report);
    block_on(0, async {
        models::look(&chosen, &config, args.online, &mut report).await;
        network::look(&ui.environment, &mut report);
        terminal::look(&ui.environment, &mut report);
        tools::look(&chosen, &config, state.as_deref(), &mut report).await;
        mcp::look(&config, &mut report).await;
    })?;
    let broken = report.0.iter().any(|check| check.status == Verdict::Broken);
    match ui.json {
        true => ui.result(&format!("{}\n", json!({"ok": !broken, "checks": report.0}))),
        false => page(&report).print(&ui),
    }
    Ok(if broken { Exit::Environment } else { Exit::Completed })
}

fn page(report: &Report) -> Page {
    let mut page = Page::new();
    for check in &report.0 {
        let (word, style) = match check.status {
            Verdict::Ok => ("ok", GREEN),
            Verdict::Warning => ("warning", YELLOW),
            Verdict::Missing => ("missing", CYAN),
            Verdict::Broken => ("broken", RED),
        };
        let label = format!("{word:<9}{}", check.check);
        page.labelled_ends(&label, style, INDENT.max(9 + 13), &check.message, 12);
        if !check.help.is_empty() {
            page.labelled_ends("", "", INDENT, &format!("→ {}", check.help), 12);
        }
    }
    page
}
