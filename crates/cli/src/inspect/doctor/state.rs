//! The state folder.

use super::{Report, Verdict};
use crate::args::Common;
use crate::inspect::is_driven;
use rustix::fs::{Access, access, statvfs};
use selvedge_host::Environment;
use selvedge_host::places;
use selvedge_host::stores::open;
use selvedge_host::text;
use selvedge_store::{DB_FILE, RunFilter, RunStatus, Store, StoreError};
use std::path::{Path, PathBuf};

const CHECK: &str = "state";
/// Free bytes below which something is said, and below which a run can hardly begin.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 32 << 20;

/// Looks at the folder; it is not created. Returns it if it is known.
pub(super) fn look(common: &Common, environment: &Environment, report: &mut Report) -> Option<PathBuf> {
    let dir = match places::state_dir(environment, common.state_dir.as_deref()) {
        Ok(dir) => dir,
        Err(failure) => {
            for diagnostic in failure.diagnostics {
                report.add(CHECK, Verdict::Broken, diagnostic.message);
                report.help(diagnostic.help);
            }
            return None;
        }
    };
    let shown = dir.display();
    // The folder that is there already decides about one that is not.
    let there = dir.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let writable = there.is_dir() && access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    match (there == dir, writable) {
        (_, _) if !there.is_dir() => {
            report.add(CHECK, Verdict::Broken, format!("{shown}: {} is no folder", there.display()));
            report.help("choose another folder with --state-dir");
        }
        (true, true) => report.add(CHECK, Verdict::Ok, format!("{shown} can be written")),
        (true, false) => {
            // Whether its runs can be looked at is another matter: the database may be nobody else's to read.
            let looked_at = matches!(open(&dir), Ok(Some(_)));
            let what = match looked_at {
                true => "can only be read: runs can be looked at, not made",
                false => "can't be written",
            };
            report.add(CHECK, Verdict::Broken, format!("{shown} {what}"));
            report.help("make it writable, or choose another folder with --state-dir");
        }
        (false, true) => report.add(CHECK, Verdict::Ok, format!("{shown} is made by the first run")),
        (false, false) => {
            let message = format!("{shown} is not there, and {} can't be written", there.display());
            report.add(CHECK, Verdict::Broken, message);
            report.help("choose another folder with --state-dir");
        }
    }
    room(there, report);
    database(&dir, report);
    Some(dir)
}

fn room(folder: &Path, report: &mut Report) {
    let Ok(facts) = statvfs(folder) else { return };
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let message = format!("{} free on its disk", bytes(free));
    match free {
        0..TOO_LITTLE => report.add(CHECK, Verdict::Broken, message),
        TOO_LITTLE..LITTLE => report.add(CHECK, Verdict::Warning, message),
        _ => return report.add(CHECK, Verdict::Ok, message),
    }
    report.help("make room, or choose a folder on another disk with --state-dir");
}

fn database(dir: &Path, report: &mut Report) {
    let store = match open(dir) {
        Ok(Some(store)) => store,
        Ok(None) => return,
        Err(error) => return broken(&error, report),
    };
    // The store opens no other format than its own.
    match store.check().and_then(|()| counted(&store)) {
        Ok(runs) => {
            let size = std::fs::metadata(dir.join(DB_FILE)).map_or(0, |facts| facts.len());
            report.add(
                CHECK,
                Verdict::Ok,
                format!("database sound, current format, {}; {runs}", bytes(size)),
            );
        }
        Err(error) => broken(&error, report),
    }
}

fn broken(error: &StoreError, report: &mut Report) {
    report.add(CHECK, Verdict::Broken, error.what());
    report.help(error.help());
}

fn counted(store: &Store) -> Result<String, StoreError> {
    let runs = store.runs(&RunFilter::default())?.sound;
    let of = |status| runs.iter().filter(move |run| run.status == status);
    let lost = of(RunStatus::Running).filter(|run| !is_driven(store, &run.id)).count();
    let waiting = of(RunStatus::Waiting).count();
    let mut text = text::counted(runs.len(), "run");
    if waiting > 0 {
        text.push_str(&format!(", {waiting} waiting for a person"));
    }
    if lost > 0 {
        text.push_str(&format!(", {lost} running that nobody drives"));
    }
    Ok(text)
}

/// A size for people.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", UNITS.get(unit).copied().unwrap_or_default())
}
