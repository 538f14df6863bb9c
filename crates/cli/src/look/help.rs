//! `selvedge help`: the commands' own help, and the variables of the environment (C-06).

use super::args::HelpArgs;
use super::page::{BOLD, DIM, Page};
use crate::args::Cli;
use crate::environment::VARIABLES;
use crate::failure::{Exit, Failure};
use crate::ui::Ui;
use clap::CommandFactory;
use serde_json::{Value, json};

/// The topic that is no command.
const ENVIRONMENT: &str = "environment";

/// Prints help.
pub(crate) fn help(args: &HelpArgs, ui: &Ui) -> Result<Exit, Failure> {
    let mut cli = Cli::command();
    cli.build();
    match args.topic.as_deref() {
        None => ui.result(&cli.render_help().to_string()),
        Some(ENVIRONMENT) => environment(ui),
        Some(topic) => match cli.find_subcommand_mut(topic) {
            Some(command) => ui.result(&command.render_help().to_string()),
            None => {
                let message = format!("there is no command or topic `{topic}`");
                let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
                return Err(Failure::usage("C-12", "usage", &message)
                    .help(&format!("there are {}, and the topic {ENVIRONMENT}", names.join(", "))));
            }
        },
    }
    Ok(Exit::Completed)
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
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
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
}
