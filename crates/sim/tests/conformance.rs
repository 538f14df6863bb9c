//! Every case of `spec/cases` as a test of its own.

use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_sim::conformance::{self, Case};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let cases = conformance::spec_dir().join("cases");
    for folder in ["engine", "plan", "data"] {
        let files = conformance::files(&cases.join(folder)).expect("a folder of cases");
        for file in files {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("?").to_owned();
            let prefix = format!("{folder}/{stem}");
            match conformance::read::<Case>(&file) {
                Ok(found) => trials.extend(found.into_iter().map(|case| {
                    let name = format!("{prefix}: {}", case.name);
                    Trial::test(name, move || conformance::check(&case).map_err(Failed::from))
                })),
                Err(error) => trials.push(Trial::test(prefix, move || Err(Failed::from(error)))),
            }
        }
    }
    trials
}
