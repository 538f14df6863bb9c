//! Commands that people are told to go on with: they work when they are pasted (C-04).

use crate::environment::Environment;
use crate::text::{harmless, one_line};
use selvedge_dialects::diagnostic::is_hidden;
use selvedge_dialects::fields::near;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Characters of a name that is probably meant.
const MEANT: usize = 200;

/// The state folder that this process was given on its command line: the next one needs to be given it as well.
static STATE_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Takes note of `--state-dir`.
pub fn state_dir(given: Option<&Path>) {
    if let Some(dir) = given {
        STATE_DIR.get_or_init(|| dir.to_owned());
    }
}

/// Advice about a name that is not there, with the one first that is probably meant.
pub fn or_meant(name: &str, known: &[&str], help: &str) -> String {
    match near(name, known) {
        Some(near) => format!("did you mean `{}`? {help}", one_line(near, MEANT)),
        None => help.to_owned(),
    }
}

/// A command that helps, and when or how.
#[derive(Debug, PartialEq)]
pub struct Way {
    /// In one line, so that it can be copied.
    pub command: String,
    /// In a few words.
    pub when: &'static str,
}

/// `selvedge` with these words, and with the state folder that this process was given.
pub fn command(words: &[&str]) -> String {
    command_in(words, STATE_DIR.get().map(PathBuf::as_path))
}

/// The same of a command that has nothing to do with a state folder.
pub fn stateless(words: &[&str]) -> String {
    command_in(words, None)
}

/// The command that shows a tool, with the folders that this one was given: it may be nowhere else.
pub fn showing_tool(name: &str, folders: &[PathBuf], environment: &Environment) -> String {
    let folders = folders.iter().flat_map(|folder| ["--tools".to_owned(), environment.shown(folder)]);
    let words: Vec<String> = ["tools", "show", name].into_iter().map(str::to_owned).chain(folders).collect();
    command(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn command_in(words: &[&str], state_dir: Option<&Path>) -> String {
    let mut line = "selvedge".to_owned();
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    if let Some(dir) = state_dir {
        let begins = dir.as_os_str().as_encoded_bytes().starts_with(b"-");
        let dir = quoted_path(dir);
        // What begins like an option is a value only behind `=`.
        line.push_str(if begins { " --state-dir=" } else { " --state-dir " });
        line.push_str(&dir);
    }
    line
}

/// A path as a shell reads it, whatever bytes it has.
fn quoted_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    match path.to_str() {
        Some(text) if !text.chars().any(is_hidden) => quoted(text),
        // `$'…'` has escapes.
        _ => {
            let escaped = bytes.iter().map(|byte| match byte {
                b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

/// A word as a shell reads it. A choice like `yes|no` is quoted, too: pasted without quotes, its first word would be taken.
pub fn quoted(word: &str) -> String {
    // Inside of a word, a shell takes these as they are.
    let plain = |c: char| c.is_alphanumeric() || "_-./:+@,%=~".contains(c);
    let bare = !word.is_empty() && !word.starts_with(['~', '=']) && word.chars().all(plain);
    match bare {
        true => word.to_owned(),
        false => format!("'{}'", one_line(&harmless(word), usize::MAX).replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-04: what is suggested works when it is pasted.
    #[test]
    fn commands_can_be_pasted() {
        let dir = Path::new("my runs/st");
        assert_eq!(command_in(&["resume", "1kq3"], None), "selvedge resume 1kq3");
        assert_eq!(command_in(&["resume", "r"], Some(dir)), "selvedge resume r --state-dir 'my runs/st'");
        let odd = |dir: &str| command_in(&["runs"], Some(Path::new(dir)));
        assert_eq!(odd("-sd"), "selvedge runs --state-dir=-sd");
        assert_eq!(odd("-s d"), "selvedge runs --state-dir='-s d'");
        assert_eq!(odd("a\nb'c"), r"selvedge runs --state-dir $'a\x0ab\'c'");
        assert_eq!(
            command_in(&["answer", "r", "n2~1/ap", "yes|no"], None),
            "selvedge answer r n2~1/ap 'yes|no'"
        );
        assert_eq!(quoted("a'b"), "'a'\\''b'");
        assert_eq!(quoted("a;b"), "'a;b'");
        assert_eq!(quoted("~x"), "'~x'");
        assert_eq!(quoted(""), "''");
    }
}
