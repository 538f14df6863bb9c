//! Where the cursor is: in which command, and in the value of which argument.

use clap::{Arg, ArgAction, Command};
use std::path::PathBuf;

/// The place of the cursor.
pub(super) struct Place<'c> {
    /// The command; the program itself while none is chosen.
    pub(super) command: &'c Command,
    /// The argument whose value is being written.
    pub(super) argument: Option<&'c Arg>,
    /// What of it is written.
    pub(super) written: String,
    /// What stands before the value in the same word: `--format=`.
    pub(super) prefix: String,
    /// Whether nothing but options stands before it, so that a command may be named.
    pub(super) first: bool,
    /// Whether options may stand here.
    pub(super) options: bool,
    /// Values of the arguments before, by the argument's name.
    pub(super) given: Vec<(String, String)>,
    /// The state folder that an option names.
    pub(super) state_dir: Option<PathBuf>,
}

/// Finds the place of the last word.
pub(super) fn place<'c>(cli: &'c Command, words: &[String]) -> Place<'c> {
    let (written, before) =
        words.split_last().map_or((String::new(), &[][..]), |(last, rest)| (last.clone(), rest));
    let mut place = Place {
        command: cli,
        argument: None,
        written,
        prefix: String::new(),
        first: true,
        options: true,
        given: Vec::new(),
        state_dir: None,
    };
    let mut reader = Reader { option: None, position: 0 };
    for word in before {
        reader.word(&mut place, word);
    }
    place.first = reader.position == 0;
    reader.last(&mut place);
    place
}

struct Reader<'c> {
    /// The option that waits for its value.
    option: Option<&'c Arg>,
    /// Positional values so far.
    position: usize,
}

impl<'c> Reader<'c> {
    fn word(&mut self, place: &mut Place<'c>, word: &str) {
        if let Some(option) = self.option {
            // Bash takes `--name=value` apart.
            if word != "=" {
                note(place, option, word);
                self.option = None;
            }
            return;
        }
        if place.options && word == "--" {
            place.options = false;
        } else if let Some((option, value)) = place.options.then(|| option(place.command, word)).flatten() {
            match value {
                Some(value) => note(place, option, &value),
                None => self.option = takes_value(option).then_some(option),
            }
        } else if word.starts_with('-') && place.options {
            // No option that is known.
        } else if let Some(command) = place.command.find_subcommand(word).filter(|_| self.position == 0) {
            place.command = command;
        } else {
            if let Some(argument) = positional(place.command, self.position) {
                note(place, argument, word);
            }
            self.position += 1;
        }
    }

    fn last(self, place: &mut Place<'c>) {
        if let Some(option) = self.option {
            place.argument = Some(option);
            place.options = false;
            if place.written == "=" {
                place.written.clear();
            }
            return;
        }
        if place.options
            && let Some((name, value)) = place.written.clone().split_once('=')
            && let Some((option, _)) = option(place.command, name).filter(|_| name.starts_with("--"))
        {
            place.argument = Some(option);
            place.prefix = format!("{name}=");
            place.written = value.to_owned();
            place.options = false;
            return;
        }
        place.argument = positional(place.command, self.position);
    }
}

fn note(place: &mut Place<'_>, argument: &Arg, value: &str) {
    if argument.get_id() == "state_dir" {
        place.state_dir = Some(PathBuf::from(value));
    }
    place.given.push((argument.get_id().to_string(), value.to_owned()));
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The option that a word names, and the value in the same word.
fn option<'c>(command: &'c Command, word: &str) -> Option<(&'c Arg, Option<String>)> {
    let mut arguments = command.get_arguments().filter(|argument| !argument.is_positional());
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        return arguments.find(|argument| argument.get_long() == Some(name)).map(|option| (option, value));
    }
    // Of several letters together only the last can take a value.
    let letter = word.strip_prefix('-')?.chars().last()?;
    arguments.find(|argument| argument.get_short() == Some(letter)).map(|option| (option, None))
}

/// The argument of a position; one that takes many takes all that follow.
fn positional(command: &Command, position: usize) -> Option<&Arg> {
    let arguments: Vec<&Arg> = command.get_positionals().collect();
    let many = |argument: &&Arg| matches!(argument.get_action(), ArgAction::Append);
    arguments.get(position).copied().or_else(|| arguments.last().copied().filter(many))
}
