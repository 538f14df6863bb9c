//! Records the journals of conformance cases for `spec/journals`: `cargo run -p selvedge-sim --bin record-journals -- NAME…`, where
//! a NAME is a part of a case's name (`plan/P-05-slices: name`). Of one that begins with `cli/` the program itself is run. A journal that is there is left as it is.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use selvedge_sim::golden;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut written = 0;
    for wanted in std::env::args().skip(1) {
        let record = if wanted.starts_with("cli/") { golden::program::record } else { golden::record };
        match record(&wanted) {
            Ok(files) => {
                written += files.len();
                files.iter().for_each(|file| println!("{}", file.display()));
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    eprintln!("{written} journals recorded");
    ExitCode::SUCCESS
}
