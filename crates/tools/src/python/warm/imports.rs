//! What tool files import when they are loaded: their server imports that ahead, so that calls need not.

use serde::Serialize;

/// The most that is imported ahead: of one file, and of all in an environment.
const MOST: usize = 64;
const MOST_OF_ALL: usize = 256;

/// One module, and what is taken from it, which may be modules too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Import(String, Vec<String>);

/// What the lines of a file that begin with `import` or `from` name. It may be nonsense, as in a text: then it does not work,
/// and nothing is lost. A tool that sets variables first may want packages to read them: nothing behind that is taken.
pub(super) fn imports(source: &[u8]) -> Vec<Import> {
    let text = String::from_utf8_lossy(source);
    let ahead = text.lines().take_while(|line| !line.contains("environ") && !line.contains("putenv"));
    ahead.flat_map(line).take(MOST).collect()
}

/// Adds what is not among them yet.
pub(super) fn add(all: &mut Vec<Import>, more: &[Import]) {
    for import in more {
        if all.len() < MOST_OF_ALL && !all.contains(import) {
            all.push(import.clone());
        }
    }
}

fn line(line: &str) -> Vec<Import> {
    let code = line.split(['#', ';']).next().unwrap_or_default();
    if let Some(names) = code.strip_prefix("import ") {
        return names.split(',').filter_map(|part| Some(Import(module(part)?, Vec::new()))).collect();
    }
    let parts = code.strip_prefix("from ").and_then(|rest| rest.split_once(" import "));
    let Some((Some(from), names)) = parts.map(|(from, names)| (module(from), names)) else {
        return Vec::new();
    };
    vec![Import(from, names.split(',').filter_map(module).collect())]
}

/// The first word, if it is the name of a module.
fn module(text: &str) -> Option<String> {
    let word = text.trim_start_matches(['(', ' ']).split([' ', ')']).next()?;
    let named = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    word.split('.').all(named).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Import, imports};

    #[test]
    fn lines_at_the_beginning_of_a_line_are_imports() {
        let source = "\"\"\"Text.\nfrom here on\n\"\"\"\nimport os, sys as s  # why\nimport a.b.c;x()\n\
                      from pandas import DataFrame, Series as S\nfrom x import (y,\n    z)\nfrom . import own\n\
                      from q import *\n    import inside\nimport 1x\nimport\nimportant = 1\nx = 1\nimport late\r\n\
                      os.environ['A'] = 'b'\nimport behind\n";
        let found = imports(source.as_bytes());
        let of = |name: &str, members: &[&str]| {
            Import(name.to_owned(), members.iter().map(|m| (*m).to_owned()).collect())
        };
        let expected = [
            of("os", &[]),
            of("sys", &[]),
            of("a.b.c", &[]),
            of("pandas", &["DataFrame", "Series"]),
            of("x", &["y"]),
            of("q", &[]),
            of("late", &[]),
        ];
        assert_eq!(found, expected);
        assert!(imports(b"\xff\xfe\nimport").is_empty());
        assert_eq!(imports("import a\n".repeat(1000).as_bytes()).len(), 64);
    }
}
