//! `selvedge trust`: what a project's `selvedge.toml` starts and sends, shown to a person who says whether it may (C-20).

use crate::args::Common;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, DIM, Page, Table};
use crate::inspect::time;
use crate::ui::Ui;
use clap::Args;
use selvedge_host::Error;
use selvedge_host::Observer;
use selvedge_host::config::Config;
use selvedge_host::places;
use selvedge_host::text::one_line;
use selvedge_host::trust::Part;
use selvedge_host::trust::{self, Record, Untrusted, row, state};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const TRUST_HELP: &str = "\
Examples:
  selvedge trust
  selvedge trust path/to/clone --yes
  selvedge trust --revoke
  selvedge trust --list

Shows the programs that `selvedge.toml` starts, the addresses that it sends keys to and what it allows tools, and asks on \
a terminal whether you trust it. What you trust is this content in this folder: a file that says something else has to be \
trusted anew. Files that the programs are made of are not looked at. Exits with 4 if something stays untrusted.";

/// `selvedge trust`.
#[derive(Args, Debug)]
#[command(after_help = TRUST_HELP)]
pub(crate) struct TrustArgs {
    /// The folder; its selvedge.toml is looked for there and above
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Trust it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Trust it no more
    #[arg(long, conflicts_with_all = ["yes", "trust"])]
    pub(crate) revoke: bool,
    /// The folders that are trusted
    #[arg(long, conflicts_with_all = ["yes", "trust", "revoke", "dir"])]
    pub(crate) list: bool,
}

/// Trusts a folder, or takes that back.
pub(crate) fn trust(args: &TrustArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    if args.list {
        return Ok(list(ui));
    }
    let dir = ui.environment.absolute(&args.dir);
    if !dir.is_dir() {
        let message = format!("there is no folder {}", args.dir.display());
        return Err(Error::usage("C-12", "file-not-found", &message).help("check the path"));
    }
    let file = places::config_files(&ui.environment, &dir).project;
    let state = places::found_state(&dir);
    let place = file.as_deref().and_then(Path::parent).or(state.as_deref().and_then(Path::parent));
    let folder = place.unwrap_or(&dir).to_owned();
    if args.revoke {
        let runs = state.as_deref().map_or(Ok(false), |state| Record::remove(&ui.environment, state))?;
        return Ok(revoked(Record::remove(&ui.environment, &folder)? || runs, &folder, ui));
    }
    let Some(file) = file.as_deref().or(state.as_deref()) else {
        let message = format!("there is no selvedge.toml in {} or above it: nothing to trust", dir.display());
        return Err(Error::usage("C-20", "nothing-to-trust", &message).help("name the project's folder"));
    };
    let configured = if file.is_file() { Config::new(&ui.environment).add(file)?.parts } else { Vec::new() };
    let runs =
        state.as_deref().filter(|state| !state::is_trusted(&ui.environment, state)).and_then(state::part);
    let shown = Shown {
        file,
        folder: &folder,
        untrusted: Untrusted::of(&ui.environment, file, &configured),
        parts: configured.iter().chain(&runs).collect(),
        runs: runs.as_ref(),
    };
    let gate = ui.gate(common)?;
    let asked = shown.is_open() && !(args.yes || common.trust);
    let now = !asked || gate.may_ask() && shown.ask(ui);
    if now && shown.untrusted.is_some() {
        Record::write(&ui.environment, &folder, &configured)?;
    }
    if let (true, Some(runs), Some(state)) = (now, &runs, &state) {
        Record::write(&ui.environment, state, std::slice::from_ref(runs))?;
    }
    shown.print(now, asked && gate.may_ask(), ui);
    Ok(if now { Exit::Completed } else { Exit::Environment })
}

/// What there is and what became of it.
struct Shown<'a> {
    file: &'a Path,
    folder: &'a Path,
    parts: Vec<&'a Part>,
    /// What was not trusted of the file.
    untrusted: Option<Untrusted>,
    /// Runs that were not trusted.
    runs: Option<&'a Part>,
}

impl Shown<'_> {
    /// What a part was before: trusted, changed since, or new.
    fn state(&self, part: &Part) -> &'static str {
        let of = |untrusted: &Untrusted| {
            let found = untrusted.parts.iter().find(|(other, _)| other == part)?;
            Some(if found.1 { "changed" } else { "new" })
        };
        let open = if self.runs == Some(part) { "new" } else { "trusted" };
        self.untrusted.as_ref().and_then(of).unwrap_or(open)
    }

    /// Whether something was not trusted.
    fn is_open(&self) -> bool {
        self.untrusted.is_some() || self.runs.is_some()
    }

    /// Shows what was not trusted, and asks.
    fn ask(&self, ui: &Ui) -> bool {
        let open = |part: &&&Part| self.state(part) != "trusted";
        let parts = self.parts.iter().filter(open).map(|part| (*part, self.word(part)));
        ui.trusts(&trust::question(&self.file_shown(), parts))
    }

    fn file_shown(&self) -> String {
        one_line(&self.file.display().to_string(), usize::MAX)
    }

    /// What is said of a part's state: nothing where it is that of all the others.
    fn word(&self, part: &Part) -> &'static str {
        let known = self.untrusted.as_ref().is_none_or(|untrusted| untrusted.before);
        match self.state(part) {
            "new" if !known || self.runs == Some(part) => "",
            "trusted" => "",
            word => word,
        }
    }

    fn print(&self, now: bool, asked: bool, ui: &Ui) {
        let folder = self.folder.display().to_string();
        if ui.json {
            let parts = self.parts.iter().map(|part| {
                let (name, does, what) = (&part.name, part.does, &part.what);
                let line = Some(part.line).filter(|line| *line > 0);
                json!({"name": name, "does": does, "what": what, "line": line, "state": self.state(part)})
            });
            let parts: Vec<Value> = parts.collect();
            let file = self.file.display().to_string();
            let object = json!({"folder": folder, "file": file, "trusted": now, "parts": parts});
            return ui.result(&format!("{object}\n"));
        }
        let file = self.file_shown();
        if self.parts.is_empty() {
            let text = format!(
                "{file} starts no program, sends nothing anywhere, and allows nothing: there is nothing to trust\n"
            );
            return ui.result(&text);
        }
        let mut text = String::new();
        if !asked {
            text.push_str(&format!("{file} would\n"));
            self.parts.iter().for_each(|part| text.push_str(&row(part, self.word(part))));
        }
        text.push_str(match (now, self.is_open()) {
            (true, false) => "It is trusted already.\n",
            (true, true) => "It is trusted from now on.\n",
            (false, _) if asked => "It is not trusted.\n",
            (false, _) => "It is not trusted: give --yes to trust it, or call this on a terminal.\n",
        });
        ui.result(&text);
    }
}

fn revoked(was: bool, folder: &Path, ui: &Ui) -> Exit {
    let folder = folder.display().to_string();
    let shown = one_line(&folder, usize::MAX);
    match (ui.json, was) {
        (true, _) => ui.result(&format!("{}\n", json!({"folder": folder, "trusted": false, "revoked": was}))),
        (false, true) => ui.result(&format!("{shown} is no longer trusted.\n")),
        (false, false) => ui.result(&format!("{shown} was not trusted.\n")),
    }
    Exit::Completed
}

fn list(ui: &Ui) -> Exit {
    let all = Record::all(&ui.environment);
    if ui.json {
        let folders = all.iter().map(|record| {
            let parts: Vec<&String> = record.parts.keys().collect();
            json!({"folder": record.folder, "at": time::rfc3339(record.at), "parts": parts})
        });
        let folders: Vec<Value> = folders.collect();
        ui.result(&format!("{}\n", json!({ "folders": folders })));
        return Exit::Completed;
    }
    let mut table = Table::new(&["FOLDER", "TRUSTED (UTC)", "PARTS"], 2);
    for record in &all {
        let parts: Vec<&str> = record.parts.keys().map(String::as_str).collect();
        table.row([(record.folder.clone(), BOLD), (time::plain(record.at), DIM), (parts.join(", "), "")]);
    }
    let mut page = Page::new();
    page.table(&table);
    page.print(ui);
    Exit::Completed
}
