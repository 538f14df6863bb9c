//! `selvedge tools history`, `diff`, `rollback` and `retire`: a tool's versions.

use super::args::{DiffArgs, HistoryArgs, RetireArgs, RollbackArgs};
use super::list::{counted, style};
use crate::args::Common;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, Page, RED, Table};
use crate::inspect::time;
use crate::ui::Ui;
use selvedge_engine::library::{Author, Command, Library, Place, Stage, Version};
use selvedge_host::Error;
use selvedge_host::library::{self, Decided, short};
use selvedge_host::places;
use selvedge_host::report;
use selvedge_host::secrets;
use selvedge_host::text::harmless;
use selvedge_store::{DB_FILE, Mode, Store};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::sync::Arc;

/// Shows the versions of a tool, newest first.
pub(super) fn history(args: &HistoryArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (_, library) = library::open(&places::state_dir(&ui.environment, common.state_dir.as_deref())?)?;
    let mut versions = library::of_name(&library, &args.tool)?;
    versions.reverse();
    let current = library.public(&args.tool).map(|version| &version.hash);
    let leads = library.resolve(&args.tool);
    let ui = ui.guarded();
    if ui.json {
        let aliases =
            library.aliases().iter().filter(|(_, name)| ***name == *args.tool).map(|(alias, _)| alias);
        let object = json!({
            "name": args.tool,
            "leads_to": (leads != args.tool).then_some(leads),
            "current": current,
            "aliases": aliases.collect::<Vec<_>>(),
            "versions": versions.iter().map(|version| report::version(version, current)).collect::<Vec<_>>(),
        });
        ui.result(&format!("{object}\n"));
        return Ok(Exit::Completed);
    }
    if leads != args.tool {
        ui.note(&format!("`{}` leads to the tool `{leads}`", args.tool));
    }
    let header = ["", "VERSION", "STATE", "WRITTEN (UTC)", "BY", "CALLS", "TESTED", "FROM", "WHY"];
    let mut table = Table::new(&header, 8);
    (table.spare, table.whole) = (vec![7, 4, 3], vec![1, 3, 5, 6]);
    for version in &versions {
        let state = version.shown().stage.name();
        let parents: Vec<&str> = version.parents.iter().map(|parent| short(parent)).collect();
        let (calls, failing) = counted(version);
        let calls = if failing > 0 { format!("{calls}, {failing} failed") } else { calls.to_string() };
        let tested = version.reports.last().map(|(_, report)| {
            let all = report.passed + report.failed;
            format!("{} of {all}", report.passed)
        });
        let mark = if Some(&version.hash) == current { "*" } else { "" };
        table.row([
            (mark.to_owned(), GREEN),
            (short(&version.hash).to_owned(), BOLD),
            (state.to_owned(), style(Some(state))),
            (time::plain(version.drafted).get(..16).unwrap_or_default().to_owned(), ""),
            (author(&version.author), ""),
            (calls, ""),
            (tested.unwrap_or_default(), ""),
            (parents.join(", "), DIM),
            (why(version), ""),
        ]);
    }
    let mut page = Page::new();
    page.table(&table);
    page.print(&ui);
    Ok(Exit::Completed)
}

/// Who wrote a version, in words.
pub(super) fn author(author: &Author) -> String {
    match author {
        Author::Person => "person".to_owned(),
        Author::Coder { coder, model } => {
            let named = [Some("coder"), coder.as_deref(), model.as_deref()].into_iter().flatten();
            named.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Why a version is there, or why it is not any more.
pub(super) fn why(version: &Version) -> String {
    let life = version.shown();
    if !life.reason.is_empty() {
        let into = if life.stage == Stage::Merged { "into " } else { "" };
        return format!("{into}{}", life.reason);
    }
    let field = |name: &str| version.request.get(name).and_then(Value::as_str);
    if let Some(broken) = field("mends") {
        return format!("mends {}", short(broken));
    }
    if version.request.get("merges").is_some() {
        return "does the work of all that it is made of".to_owned();
    }
    match (&version.request, field("imported"), field("description")) {
        (Value::Null, ..) => String::new(),
        (Value::String(text), ..) => text.clone(),
        (_, Some(file), _) => format!("imported from {file}"),
        (_, _, Some(text)) => text.to_owned(),
        (other, ..) => other.to_string(),
    }
}

/// Compares the code of two versions.
pub(super) fn diff(args: &DiffArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, library) = library::open(&places::state_dir(&ui.environment, common.state_dir.as_deref())?)?;
    let versions = library::of_name(&library, &args.tool)?;
    let current = library.public(&args.tool).or(versions.last().copied());
    let named = |prefix: &str| library::find(&library, &args.tool, prefix);
    let b = match &args.version_b {
        Some(prefix) => Some(named(prefix)?),
        None => current,
    };
    let a = match &args.version_a {
        Some(prefix) => Some(named(prefix)?),
        None => b.and_then(|b| before(&library, &versions, b)),
    };
    let (Some(store), Some(a), Some(b)) = (&store, a, b) else {
        let message = format!("`{}` has one version only", args.tool);
        return Err(Error::usage("A-17", "one-version", &message)
            .help(&format!("`selvedge tools show {} --code` shows it", args.tool)));
    };
    let (old, new) = (library::text(store, &a.hash)?, library::text(store, &b.hash)?);
    let ui = ui.guarded();
    if ui.json {
        let unified = unified(&args.tool, a, b, &old, &new);
        ui.result(&format!("{}\n", json!({"name": args.tool, "a": a.hash, "b": b.hash, "diff": unified})));
        return Ok(Exit::Completed);
    }
    let mut page = Page::whole();
    for line in unified(&args.tool, a, b, &old, &new).lines() {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => BOLD,
            [b'@', ..] => CYAN,
            [b'-', ..] => RED,
            [b'+', ..] => GREEN,
            _ => "",
        };
        let line = harmless(line);
        page.line(&page.paint(style, &line));
    }
    page.print(&ui);
    Ok(Exit::Completed)
}

/// The version that another one took the place of: what it was made of, else what the name meant before.
fn before<'l>(library: &'l Library, versions: &[&'l Version], version: &Version) -> Option<&'l Version> {
    let parent = version.parents.iter().find_map(|parent| library.version(parent));
    let at = versions.iter().position(|other| other.hash == version.hash)?;
    parent.or_else(|| versions.get(at.checked_sub(1)?).copied())
}

/// A unified diff; empty for equal texts.
fn unified(name: &str, a: &Version, b: &Version, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    if diff.iter_all_changes().all(|change| change.tag() == ChangeTag::Equal) {
        return String::new();
    }
    let header = |version: &Version| format!("{name} {}", short(&version.hash));
    diff.unified_diff().context_radius(3).header(&header(a), &header(b)).to_string()
}

/// Lets a name mean an earlier version again.
pub(super) fn rollback(args: &RollbackArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    let store = writable(&dir, &args.tool)?;
    let reason = reason(args.reason.as_deref(), ui)?;
    let (from, to) = library::change(&store, |library| {
        let to = Arc::clone(&library::find(library, &args.tool, &args.version)?.hash);
        let from = library.head(&Place::Library, &args.tool).cloned();
        let command = Command::Rollback {
            name: args.tool.as_str().into(),
            to: Arc::clone(&to),
            reason: reason.clone(),
        };
        let events = library.accept(command).map_err(|error| {
            let help =
                format!("`selvedge tools history {}` lists its versions, and which is in use", args.tool);
            library::refused(&error).help(&help)
        })?;
        Ok(Decided { events, contents: Vec::new(), what: (from, to) })
    })?;
    if ui.json {
        ui.result(&format!("{}\n", json!({"name": args.tool, "from": from, "to": to})));
    } else {
        let from = from.as_deref().map(|from| format!(" (was {})", short(from))).unwrap_or_default();
        ui.result(&format!("{} is version {} now{from}\n", harmless(&args.tool), short(&to)));
    }
    Ok(Exit::Completed)
}

/// Takes the version that a name means out of use.
pub(super) fn retire(args: &RetireArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    let store = writable(&dir, &args.tool)?;
    let reason = reason(args.reason.as_deref(), ui)?;
    let version = library::change(&store, |library| {
        let Some(version) = library.head(&Place::Library, &args.tool).cloned() else {
            // What never was is told as such.
            library::of_name(library, &args.tool)?;
            let message = match library.public(&args.tool) {
                Some(other) => format!("`{}` leads to the tool `{}`", args.tool, other.name),
                None => format!("`{}` is not in use", args.tool),
            };
            let help = format!("`selvedge tools history {}` lists its versions", args.tool);
            return Err(Error::usage("A-17", "not-in-use", &message).help(&help));
        };
        let command =
            Command::Retire { place: Place::Library, version: Arc::clone(&version), reason: reason.clone() };
        let events = library.accept(command).map_err(|error| library::refused(&error))?;
        Ok(Decided { events, contents: Vec::new(), what: version })
    })?;
    if ui.json {
        ui.result(&format!("{}\n", json!({"name": args.tool, "retired": version})));
    } else {
        let name = harmless(&args.tool);
        ui.result(&format!("{name} is out of use (it was version {})\n", short(&version)));
        ui.note(&format!("`selvedge tools rollback {name} {}` takes it into use again", short(&version)));
    }
    Ok(Exit::Completed)
}

/// Why a person does something, for the history: no key is in it (C-06).
fn reason(given: Option<&str>, ui: &Ui) -> Result<String, Error> {
    let reason = given.unwrap_or_default().to_owned();
    let known = secrets::named(&selvedge_host::config::Config::new(&ui.environment));
    secrets::refuse_text(&known, "the reason", &reason)?;
    Ok(reason)
}

/// The store of a library that must have something in it.
fn writable(dir: &std::path::Path, name: &str) -> Result<Store, Error> {
    if !dir.join(DB_FILE).exists() {
        let message = format!("the library has no tool `{name}`: {} is empty", dir.display());
        return Err(Error::usage("A-17", "unknown-tool", &message).help("check --state-dir"));
    }
    Ok(Store::open(dir, Mode::ReadWrite)?)
}
