//! The commands that people are told to go on with: they work when they are pasted (C-04).

use selvedge_dialects::diagnostic::is_hidden;
use selvedge_host::text::quoted;
use selvedge_host::ways::{Output, WayOut};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The state folder that this process was given on its command line: the next one needs to be given it as well.
static STATE_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Takes note of `--state-dir`, and has the host tell of ways out in our words.
pub(crate) fn tell(state_dir: Option<&Path>) {
    if let Some(dir) = state_dir {
        STATE_DIR.get_or_init(|| dir.to_owned());
    }
    selvedge_host::ways::worded_by(way_out);
}

/// The command that is a way out.
fn way_out(way: &WayOut<'_>) -> String {
    match way {
        WayOut::Show { run, at: None } => command(&["show", run]),
        WayOut::Show { run, at: Some(at) } => command(&["show", run, "--at", &at.to_string()]),
        WayOut::Events(run) => command(&["show", run, "--events"]),
        WayOut::Export(run) => command(&["export", run]),
        WayOut::Resume(run) => command(&["resume", run]),
        WayOut::Cancel(run) => command(&["cancel", run]),
        WayOut::Fork { run, at: Some(at) } => command(&["fork", run, "--at", &at.to_string()]),
        WayOut::Fork { run, at: None } => format!("{} --document FILE", command(&["fork", run])),
        WayOut::Answer { run, ask, said, output } => {
            let answer = command(&["answer", run, ask, said]);
            match output {
                Output::None => answer,
                Output::Any => format!("{answer} --output JSON"),
                Output::Json(json) => format!("{answer} --output {}", quoted(json)),
                Output::OfFile(file) => format!("{answer} --output \"$(cat {})\"", quoted(file)),
            }
        }
        WayOut::Runs => command(&["runs"]),
        WayOut::ShowTool { name, folders } => showing_tool(name, folders),
        WayOut::ToolVersions(name) => command(&["tools", "history", name]),
        WayOut::AllTools => command(&["tools", "list", "--all"]),
        WayOut::Models(None) => stateless(&["models", "--available"]),
        WayOut::Models(Some(url)) => stateless(&["models", "--available", "--base-url", url]),
        WayOut::Trust(None) => stateless(&["trust"]),
        WayOut::Trust(Some(folder)) => stateless(&["trust", folder]),
        WayOut::Doctor => command(&["doctor"]),
    }
}

/// `selvedge` with these words, and with the state folder that this process was given.
pub(crate) fn command(words: &[&str]) -> String {
    command_in(words, STATE_DIR.get().map(PathBuf::as_path))
}

/// The same of a command that has nothing to do with a state folder.
fn stateless(words: &[&str]) -> String {
    command_in(words, None)
}

/// The command that shows a tool, with the folders that this one was given: it may be nowhere else.
pub(crate) fn showing_tool(name: &str, folders: &[PathBuf]) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let folders = folders.iter().flat_map(|folder| {
        ["--tools".to_owned(), folder.strip_prefix(&here).unwrap_or(folder).display().to_string()]
    });
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
    }
}
