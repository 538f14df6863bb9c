//! Every case of `spec/cases` and every journal of `spec/journals` as a test of its own, and the rules' own check.

use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_sim::conformance::cli::{self, CliCase};
use selvedge_sim::conformance::rules::{CLI_FOLDERS, FOLDERS, Rules};
use selvedge_sim::conformance::{self, Case};
use selvedge_sim::golden;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Journals that there are at least: a folder that was not found must not pass for an empty one.
const JOURNALS: usize = 270;

/// What is missing, one line each.
type Check = fn(&Rules) -> Vec<String>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for folder in FOLDERS {
        trials.extend(folder_of(folder, &arguments, |case: &Case| &case.name, conformance::check));
    }
    for folder in CLI_FOLDERS {
        trials.extend(folder_of(folder, &arguments, |case: &CliCase| &case.name, cli::check));
    }
    trials.extend(rules());
    trials.extend(journals());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folder_of<T: DeserializeOwned + Send + 'static>(
    folder: &'static str,
    arguments: &Arguments,
    name: fn(&T) -> &String,
    check: fn(&T) -> Result<(), String>,
) -> Vec<Trial> {
    let dir = conformance::spec_dir().join("cases").join(folder);
    let files = match conformance::files(&dir) {
        Ok(files) => files,
        Err(error) => return vec![Trial::test(folder, move || Err(Failed::from(error)))],
    };
    let mut trials = Vec::new();
    for file in files {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("?").to_owned();
        let prefix = format!("{folder}/{stem}");
        // One test in a process of its own needs its own file only.
        let wanted = arguments.filter.as_deref().filter(|_| arguments.exact);
        if wanted.is_some_and(|wanted| !wanted.starts_with(&prefix)) {
            continue;
        }
        match conformance::read::<T>(&file) {
            Ok(cases) => trials.extend(cases.into_iter().map(|case| {
                let name = format!("{prefix}: {}", name(&case));
                Trial::test(name, move || check(&case).map_err(Failed::from))
            })),
            Err(error) => trials.push(Trial::test(prefix, move || Err(Failed::from(error)))),
        }
    }
    trials
}

fn rules() -> Vec<Trial> {
    let checks: [(&str, Check); 4] = [
        ("rules: every rule has a case", Rules::without_case),
        ("rules: every rule that a case names is defined", Rules::undefined),
        ("rules: every rule that a diagnostic names is defined", Rules::undefined_in_source),
        ("rules: every rule stands in the source", Rules::without_source),
    ];
    let trial = |(name, check): (&str, Check)| {
        Trial::test(name, move || {
            let missing = check(&Rules::collect()?);
            if missing.is_empty() { Ok(()) } else { Err(Failed::from(missing.join("\n"))) }
        })
    };
    checks.into_iter().map(trial).collect()
}

/// A check of one file.
type CheckFile = fn(&Path) -> Result<(), String>;

fn journals() -> Vec<Trial> {
    let kinds: [(PathBuf, CheckFile); 2] =
        [(golden::dir(), golden::check), (golden::runs::dir(), golden::runs::check)];
    let mut trials = Vec::new();
    for (folder, check) in kinds {
        let found = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut files: Vec<_> = found.map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
        trials.extend(files.into_iter().map(|file| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Trial::test(format!("journals/{name}"), move || check(&file).map_err(Failed::from))
        }));
    }
    let count = trials.len();
    trials.push(Trial::test("journals: all of them are here", move || {
        if count >= JOURNALS { Ok(()) } else { Err(Failed::from(format!("there are {count}"))) }
    }));
    trials
}
