//! `selvedge migrate`: a document in the form that is written today (C-13, W-01).

use crate::args::{Common, MigrateArgs};
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_dialects::migrate::{Change, Migration, migrate as older};
use selvedge_dialects::{Diagnostics, Source, document};
use selvedge_host::config::Config;
use selvedge_host::{Error, ErrorKind, places};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

const MARK: &str = "\u{feff}";

/// Prints the new form of a document, or writes it in the place of the old one.
pub(crate) fn migrate(args: &MigrateArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let files = places::config_files(&ui.environment, ui.environment.cwd());
    let config = Config::load(&ui.environment, files, ui.gate(common)?, ui)?;
    let limits = config.limits.document();
    let source = document::read_file(&args.file, &limits)
        .map_err(|finding| Error::findings(ErrorKind::Usage, vec![*finding]))?;
    let mut found = Diagnostics::new();
    let Some(migration) = older(&source, &limits, &mut found) else {
        return Err(Error::findings(ErrorKind::Usage, found.report(&source)));
    };
    let text = migration.apply(source.text());
    let changed = !migration.changes.is_empty();
    if args.write && changed {
        put(&args.file, &source, &text)?;
    }
    tell(&migration, &source, args.write && changed, ui);
    match (ui.json, args.write) {
        (true, write) => {
            let mut object = json!({
                "file": source.name(),
                "written": write && changed,
                "changes": migration.changes.iter().map(|change| object(change, &source)).collect::<Vec<_>>(),
            });
            if let (false, Some(fields)) = (write, object.as_object_mut()) {
                fields.insert("text".to_owned(), Value::from(text));
            }
            ui.guarded_by(&config).result(&format!("{object}\n"));
        }
        (false, false) => ui.guarded_by(&config).result(&text),
        (false, true) => {}
    }
    Ok(Exit::Completed)
}

fn object(change: &Change, source: &Source) -> Value {
    let place = source.place(change.span.start as usize);
    json!({"node": change.node, "line": place.line, "column": place.column, "from": change.from, "to": change.to})
}

/// What is older, a line each; for people only.
fn tell(migration: &Migration, source: &Source, written: bool, ui: &Ui) {
    if ui.json {
        return;
    }
    let name = source.name();
    for change in &migration.changes {
        let place = source.place(change.span.start as usize);
        let to = match change.to.is_empty() {
            true => "goes, as it says nothing more".to_owned(),
            false => {
                let fields: Vec<String> = change.to.iter().map(|field| format!("`{field}`")).collect();
                format!("becomes {}", fields.join(" and "))
            }
        };
        ui.note(&format!("{name}:{}:{}: {}: `{}` {to}", place.line, place.column, change.node, change.from));
    }
    match (migration.changes.is_empty(), written) {
        (true, _) => ui.note(&format!("{name} needs nothing: it is in today's form")),
        (false, true) => ui.note(&format!("{name} is in today's form now")),
        (false, false) => ui.note("nothing was written: --write changes the file"),
    }
}

/// Puts a text in the place of a document's: whoever reads the file finds the one or the other, whole.
fn put(file: &Path, source: &Source, text: &str) -> Result<(), Error> {
    let unwritten = |error: &std::io::Error| {
        let message = format!("{} can't be written: {error}", file.display());
        Error::environment("C-13", "not-written", &message)
            .help("nothing was changed; without --write the new form is printed")
    };
    // Where a link leads, that file is written, and stays what it is to others.
    let real = file.canonicalize().map_err(|error| unwritten(&error))?;
    let facts = real.metadata().map_err(|error| unwritten(&error))?;
    if !facts.is_file() {
        let message = format!("{} is no file that can be written", file.display());
        return Err(
            Error::usage("C-13", "not-a-file", &message).help("leave --write out to print the new form")
        );
    }
    let there = std::fs::read(&real).map_err(|error| unwritten(&error))?;
    let (mark, old) = match there.strip_prefix(MARK.as_bytes()) {
        Some(rest) => (MARK, rest),
        None => ("", &there[..]),
    };
    if old != source.text().as_bytes() {
        let message = format!("{} has changed while it was read; nothing was written", file.display());
        return Err(Error::usage("C-13", "changed-meanwhile", &message).help("give the command again"));
    }
    let written = || {
        let mut new = tempfile::NamedTempFile::new_in(real.parent().unwrap_or(Path::new(".")))?;
        new.write_all(mark.as_bytes())?;
        new.write_all(text.as_bytes())?;
        new.as_file().set_permissions(facts.permissions())?;
        new.as_file().sync_all()?;
        new.persist(&real).map_err(|error| error.error).map(drop)
    };
    written().map_err(|error| unwritten(&error))
}
