//! `selvedge completions`: scripts for shells, and what they ask for on every press of the tab key (C-10).
//!
//! The scripts hold no knowledge: they call the hidden command `__complete` with the words typed so far, so that
//! completions always fit the binary. It is quick, changes nothing, and is silent whatever goes wrong.

mod candidates;
mod words;

use crate::args::Common;
use crate::cli::Cli;
use crate::failure::Exit;
use crate::ui::Ui;
use clap::{Args, CommandFactory, ValueEnum};
use selvedge_host::Error;
use serde_json::json;
use std::ffi::OsString;

const COMPLETIONS_HELP: &str = "\
Examples:
  selvedge completions bash >> ~/.bash_completion
  selvedge completions zsh > ~/.zfunc/_selvedge
  selvedge completions fish > ~/.config/fish/completions/selvedge.fish

Commands, options, values, and the ids of recorded runs. For this shell only: source <(selvedge completions bash). \
Bash has to be 4.4 or newer; for zsh the folder has to be in `fpath` before `compinit` is called.";

/// `selvedge completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// The shells. (Doc comments on them would make a long help of their own.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `selvedge __complete`: what the scripts call.
#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// The words after the program's name, up to the one that the cursor is in
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

/// Prints the script for a shell.
pub(crate) fn completions(args: &CompletionsArgs, ui: &Ui) -> Result<Exit, Error> {
    let (name, script) = match args.shell {
        Shell::Bash => ("bash", include_str!("completions/selvedge.bash")),
        Shell::Zsh => ("zsh", include_str!("completions/_selvedge")),
        Shell::Fish => ("fish", include_str!("completions/selvedge.fish")),
    };
    match ui.json {
        true => ui.result(&format!("{}\n", json!({"shell": name, "script": script}))),
        false => ui.result(script),
    }
    Ok(Exit::Completed)
}

/// Prints what may stand at the cursor: a line each, with what it is behind a tab. Nothing where the shell knows
/// better, which is with files, and an empty word where nothing fits.
pub(crate) fn complete(args: &CompleteArgs, common: &Common, ui: &Ui) -> Exit {
    let mut cli = Cli::command();
    cli.build();
    let words: Vec<String> = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let place = words::place(&cli, &words);
    let state_dir = place.state_dir.clone().or_else(|| common.state_dir.clone());
    let mut lines = String::new();
    let candidates = candidates::of(&place, &ui.environment, state_dir.as_deref());
    if candidates.is_empty() && !candidates::is_file(&place) {
        // A word that is none: the shell is not to offer its files.
        lines.push_str("\t\n");
    }
    for candidate in candidates {
        let about = candidate.about.lines().next().unwrap_or_default();
        lines.push_str(&match about.is_empty() {
            true => format!("{}\n", candidate.value),
            false => format!("{}\t{}\n", candidate.value, super::page::clean(about)),
        });
    }
    ui.result(&lines);
    Exit::Completed
}

#[cfg(test)]
mod tests;
