//! `selvedge help`: the commands' own help, and topics that are no commands (C-06, C-10).

use super::args::HelpArgs;
use super::page::{BOLD, DIM, Page};
use crate::cli::Cli;
use crate::failure::Exit;
use crate::ui::Ui;
use clap::CommandFactory;
use selvedge_host::Error;
use selvedge_host::environment::VARIABLES;
use selvedge_host::text::or_meant;
use serde_json::{Value, json};

/// The topics that are no commands.
pub(crate) const TOPICS: [(&str, &str); 4] = [
    ("environment", "The variables that configure Selvedge"),
    ("placeholders", "What {{…}} reads: the three layers of data"),
    ("scripts", "Replies of a scripted model"),
    ("config", "selvedge.toml"),
];

/// The page of a topic that says the same everywhere.
fn topic(name: &str) -> Option<&'static str> {
    match name {
        "placeholders" => Some(include_str!("help/placeholders.txt")),
        "scripts" => Some(include_str!("help/scripts.txt")),
        "config" => Some(include_str!("help/config.txt")),
        _ => None,
    }
}

/// Prints help.
pub(crate) fn help(args: &HelpArgs, ui: &Ui) -> Result<Exit, Error> {
    let mut cli = Cli::command();
    cli.build();
    if let [word] = &args.topic[..] {
        if word == "environment" {
            environment(ui);
            return Ok(Exit::Completed);
        }
        if let Some(text) = topic(word) {
            print(text, ui);
            return Ok(Exit::Completed);
        }
    }
    let mut command = cli;
    for (at, word) in args.topic.iter().enumerate() {
        command = match command.find_subcommand(word) {
            Some(next) => next.clone(),
            None => return Err(unknown(&command, word, at == 0)),
        };
    }
    print(&command.render_help().to_string(), ui);
    Ok(Exit::Completed)
}

/// A word that is no command there.
fn unknown(command: &clap::Command, word: &str, first: bool) -> Error {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    let topics = TOPICS.map(|(name, _)| name);
    let known = [&names[..], if first { &topics[..] } else { &[] }].concat();
    let (message, help) = match (first, names.is_empty()) {
        (true, _) => (
            format!("there is no command or topic `{word}`"),
            format!("there are {}, and the topics {}", names.join(", "), topics.join(", ")),
        ),
        (false, true) => (
            format!("`{}` has no command `{word}`", command.get_name()),
            "it has no commands of its own: leave the word out".to_owned(),
        ),
        (false, false) => (
            format!("`{}` has no command `{word}`", command.get_name()),
            format!("there are {}", names.join(", ")),
        ),
    };
    Error::usage("C-12", "usage", &message).help(&or_meant(word, &known, &help))
}

fn print(text: &str, ui: &Ui) {
    match ui.json {
        true => ui.result(&format!("{}\n", json!({"help": text}))),
        false => ui.result(text),
    }
}

/// The variables, whether they are set, never their values.
fn environment(ui: &Ui) {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if ui.json {
        let row =
            |(name, meaning): &(&str, &str)| json!({"name": name, "meaning": meaning, "set": set(name)});
        let variables: Vec<Value> = VARIABLES.iter().map(row).collect();
        ui.result(&format!("{}\n", json!({"variables": variables})));
        return;
    }
    let mut page = Page::new();
    page.labelled(
        "",
        "",
        0,
        "Variables that configure Selvedge. They go over configuration files, and options go over them. An empty \
         one counts as not set.",
        9,
    );
    page.gap();
    let indent = VARIABLES.iter().map(|(name, _)| name.len()).max().unwrap_or_default() + 2;
    for (name, meaning) in &VARIABLES {
        let mark = if set(name) { " (set)" } else { "" };
        page.labelled(name, if mark.is_empty() { DIM } else { BOLD }, indent, &format!("{meaning}{mark}"), 9);
    }
    page.print(ui);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
                found.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// C-06: every variable that the source names is in the table, and the table has no other.
    #[test]
    fn the_table_is_what_the_source_reads() {
        let mut texts = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for folder in ["cli/src", "host/src"] {
            sources(&crates.join(folder), &mut texts);
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for text in &texts {
            // The table itself is left out.
            let rest = text.split_once("VARIABLES: [").and_then(|(_, rest)| rest.split_once("];"));
            let text = rest.map_or(text.as_str(), |(_, rest)| rest);
            for piece in text.split("\"SELVEDGE_").skip(1) {
                let end = piece.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(piece.len());
                if piece[end..].starts_with('"') && end > 0 {
                    named.insert(&piece[..end]);
                }
            }
        }
        let listed: BTreeSet<&str> =
            VARIABLES.iter().filter_map(|(name, _)| name.strip_prefix("SELVEDGE_")).collect();
        assert_eq!(named, listed);
    }

    /// The commands that people see, with their help.
    fn commands() -> Vec<(String, String)> {
        let mut cli = Cli::command();
        cli.build();
        let mut commands = vec![(String::new(), cli.render_help().to_string())];
        for command in cli.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
            commands.push((command.get_name().to_owned(), command.render_help().to_string()));
        }
        commands
    }

    /// The words of a command line, as a shell takes it apart; what is written to a file or a pipe ends it.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
        for character in line.chars() {
            match (quote, character) {
                (None, '>' | '|' | '#') if word.is_none() => break,
                (None, ' ') => words.extend(word.take()),
                (None, '\'' | '"') => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                (Some(open), close) if open == close => quote = None,
                _ => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        words
    }

    /// Every command has an example, and examples are command lines that can be read.
    #[test]
    fn examples_can_be_read() {
        let mut cli = Cli::command();
        cli.build();
        let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
        for command in [&cli].into_iter().chain(shown) {
            let name = if command.get_name() == "selvedge" { "" } else { command.get_name() };
            // As written: what is shown is wrapped.
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Example").unwrap_or_else(|| panic!("{name} has no example"));
            let lines: Vec<&str> =
                examples.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
            assert!(!lines.is_empty(), "{name} has no example: {help}");
            for line in lines {
                let words = words(line);
                assert_eq!(words[0], "selvedge", "{line}");
                assert!(
                    name.is_empty() || words.iter().any(|word| word == name),
                    "{line}: an example of `{name}`"
                );
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    /// `help COMMAND` and `COMMAND --help` are the same.
    #[test]
    fn help_of_a_command_is_its_help() {
        for (name, help) in commands() {
            let words = ["selvedge", &name, "--help"].into_iter().filter(|word| !word.is_empty());
            let shown = Cli::try_parse_from(words).unwrap_err().to_string();
            assert_eq!(shown, help, "{name}");
        }
    }
}
