//! A command line that can't be read (C-12), told as every other error is: what, why, and what to do.

use crate::cli::Cli;
use crate::failure::Exit;
use crate::ui::Ui;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use selvedge_dialects::fields;
use selvedge_host::Error;
use selvedge_host::text::or_meant;
use selvedge_host::text::{harmless, one_line};
use std::error::Error as _;

/// Characters of a word that is repeated.
const WORD: usize = 200;

/// Prints it, or the help that was asked for.
pub(super) fn refused(error: &clap::Error, ui: &Ui) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        ui.result(&error.to_string());
        return Exit::Completed;
    }
    let command = command(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
    match error.kind() {
        // What there is says more than that something is missing.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ui.error_text(&harmless(&error.to_string()));
            if ui.json {
                crate::failure::print_json(&failure(error, &command), ui);
            }
        }
        _ => crate::failure::print(&failure(error, &command), ui),
    }
    Exit::Usage
}

/// The command that was called, as far as it is one: `selvedge tools list`.
fn command(words: impl Iterator<Item = String>) -> String {
    let mut called = "selvedge".to_owned();
    let mut at = Cli::command();
    at.build();
    for word in words.skip(1) {
        let found = at.find_subcommand(&word).filter(|found| !found.is_hide_set()).cloned();
        if let Some(found) = found {
            called.push(' ');
            called.push_str(found.get_name());
            at = found;
        }
    }
    called
}

fn failure(error: &clap::Error, command: &str) -> Error {
    let (message, help) = told(error, command);
    Error::usage("C-12", "usage", &message).help(&help)
}

/// What is wrong, and what to do.
fn told(error: &clap::Error, command: &str) -> (String, String) {
    let said = Said(error);
    let arg = said.one(ContextKind::InvalidArg);
    let value = said.one(ContextKind::InvalidValue);
    let takes = format!("`{command} --help` says what it takes");
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = said.one(ContextKind::InvalidSubcommand);
            let near = said.all(ContextKind::SuggestedSubcommand);
            // A command that has not even its first letter from the word is not what is meant.
            let near: Vec<&str> = near
                .iter()
                .map(String::as_str)
                .filter(|near| near.chars().next() == word.chars().next())
                .collect();
            let nearest = fields::meant(&word, &near).or(near.last().copied()).map(str::to_owned);
            let lists = format!("`{command} --help` lists the commands");
            (format!("`{command}` has no command {word:?}"), meant(nearest.as_ref(), &lists))
        }
        ErrorKind::MissingSubcommand => {
            let known = said.all(ContextKind::ValidSubcommand);
            let known: Vec<&str> =
                known.iter().map(String::as_str).filter(|name| !name.starts_with('_')).collect();
            (format!("`{command}` needs a command"), format!("there are {}", known.join(", ")))
        }
        ErrorKind::UnknownArgument => {
            let near = said.all(ContextKind::SuggestedArg);
            let message = match arg.starts_with('-') {
                true => format!("`{command}` has no option {arg}"),
                false => format!("{arg:?} is a word too many for `{command}`"),
            };
            (message, meant(near.first(), &takes))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = said.all(ContextKind::InvalidArg).join(" and ");
            let usage = said.one(ContextKind::Usage);
            let usage = usage.trim_start_matches("Usage:").trim();
            let write = if usage.is_empty() { takes } else { format!("write `{usage}`; {takes}") };
            (format!("`{command}` needs {missing}"), write)
        }
        ErrorKind::ArgumentConflict => {
            let prior = said.all(ContextKind::PriorArg).join(", ");
            match prior == arg {
                true => {
                    (format!("{arg} is given more than once"), "leave all but one of them out".to_owned())
                }
                false => {
                    (format!("{arg} and {prior} exclude each other"), "leave one of them out".to_owned())
                }
            }
        }
        ErrorKind::InvalidValue => {
            let known = said.all(ContextKind::ValidValue);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let takes = if known.is_empty() { takes } else { format!("there are {}", known.join(", ")) };
            match value.is_empty() {
                true => (format!("{arg} needs a value"), takes),
                false => (format!("{value:?} is no value of {arg}"), or_meant(&value, &known, &takes)),
            }
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
            (format!("{arg} can't be {value:?}{why}"), takes)
        }
        ErrorKind::TooManyValues => {
            (format!("{arg} takes no value, and got {value:?}"), "leave the value out".to_owned())
        }
        _ => (first_paragraph(&error.to_string()), takes),
    }
}

fn meant(near: Option<&String>, else_: &str) -> String {
    near.map(|near| format!("did you mean `{near}`? Else {else_}")).unwrap_or_else(|| else_.to_owned())
}

/// What clap knows of an error.
struct Said<'e>(&'e clap::Error);

impl Said<'_> {
    /// Words that were typed may hold anything.
    fn all(&self, kind: ContextKind) -> Vec<String> {
        let words = match self.0.get(kind) {
            Some(ContextValue::String(word)) => vec![word.clone()],
            Some(ContextValue::Strings(words)) => words.clone(),
            Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
            _ => Vec::new(),
        };
        words.into_iter().map(|word| one_line(&word, WORD)).collect()
    }

    fn one(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }
}

/// What was wrong, in one line: the error's first paragraph.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[track_caller]
    fn of(line: &str) -> (String, String) {
        let words = || std::iter::once("selvedge").chain(line.split_whitespace());
        let error = Cli::try_parse_from(words()).expect_err("a wrong call");
        told(&error, &command(words().map(str::to_owned)))
    }

    /// C-12: every wrong call is told in our own words, with what to do.
    #[test]
    fn wrong_calls_say_what_and_what_to_do() {
        for (line, message, help) in [
            (
                "tools --json",
                "`selvedge tools` needs a command",
                "there are list, show, run, history, test, diff, rollback, retire, import, export",
            ),
            (
                "rnu",
                "`selvedge` has no command \"rnu\"",
                "did you mean `runs`? Else `selvedge --help` lists the commands",
            ),
            ("zzz", "`selvedge` has no command \"zzz\"", "`selvedge --help` lists the commands"),
            (
                "tools lst",
                "`selvedge tools` has no command \"lst\"",
                "did you mean `list`? Else `selvedge tools --help` lists the commands",
            ),
            (
                "show --nod x",
                "`selvedge show` has no option --nod",
                "did you mean `--node`? Else `selvedge show --help` says what it takes",
            ),
            (
                "run a b",
                "\"b\" is a word too many for `selvedge run`",
                "`selvedge run --help` says what it takes",
            ),
            (
                "run",
                "`selvedge run` needs <FILE>",
                "write `selvedge run <FILE>`; `selvedge run --help` says what it takes",
            ),
            (
                "completions zhs",
                "\"zhs\" is no value of <SHELL>",
                "did you mean `zsh`? there are bash, zsh, fish",
            ),
            (
                "runs --status complete",
                "\"complete\" is no value of --status <STATUS>",
                "did you mean `completed`? there are running, waiting, completed, failed, cancelled",
            ),
            (
                "runs --limit 0",
                "--limit <N> can't be \"0\": it has to be a whole number from 1 on",
                "`selvedge runs --help` says what it takes",
            ),
            (
                "run a --timeout abc",
                "--timeout <SECONDS> can't be \"abc\": it has to be a number of seconds",
                "`selvedge run --help` says what it takes",
            ),
            (
                "run a --input",
                "--input <KEY=VALUE> needs a value",
                "`selvedge run --help` says what it takes",
            ),
            ("run a --json=3", "--json takes no value, and got \"3\"", "leave the value out"),
            ("run a --json --json", "--json is given more than once", "leave all but one of them out"),
            (
                "runs --waiting --status failed",
                "--waiting and --status <STATUS> exclude each other",
                "leave one of them out",
            ),
        ] {
            assert_eq!(of(line), (message.to_owned(), help.to_owned()), "for {line}");
        }
    }
}
