//! Every journal of `spec/journals` as a test of its own.

use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_sim::golden;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// As many as there are at least: a folder that was not found must not pass for an empty one.
const AT_LEAST: usize = 270;

/// A check of one file.
type Check = fn(&Path) -> Result<(), String>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let kinds: [(PathBuf, Check); 2] =
        [(golden::dir(), golden::check), (golden::runs::dir(), golden::runs::check)];
    for (folder, check) in kinds {
        let found = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut files: Vec<_> = found.map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
        trials.extend(files.into_iter().map(|file| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Trial::test(name, move || check(&file).map_err(Failed::from))
        }));
    }
    let count = trials.len();
    trials.push(Trial::test("all of them are here", move || {
        if count >= AT_LEAST { Ok(()) } else { Err(Failed::from(format!("there are {count}"))) }
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}
