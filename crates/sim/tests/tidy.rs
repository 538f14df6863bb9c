//! The code base's invariants (`ARCHITECTURE.md`), each as a test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rust sources below a folder, as (path, text).
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// Lines of code: no comments, and nothing after a `#[cfg(test)]` that opens a module of tests.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

#[test]
fn the_engine_knows_no_outside() {
    let banned = [
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "std::time",
        "std::process",
        "tokio",
        "SystemTime",
        "Instant::now",
        "println!",
        "eprintln!",
    ];
    for (path, text) in sources(&root().join("crates/engine/src")).iter().filter(|(path, _)| !is_test(path)) {
        for (line, code) in code(text) {
            for word in banned {
                assert!(!code.contains(word), "{}:{line}: `{word}` in the engine (E-02)", path.display());
            }
        }
    }
}

#[test]
fn the_engine_names_no_document_format() {
    for (path, text) in sources(&root().join("crates/engine/src")).iter().filter(|(path, _)| !is_test(path)) {
        for (line, code) in code(text) {
            let words = code.split(|c: char| !c.is_alphanumeric());
            for word in words.map(str::to_lowercase) {
                let named = ["plan", "plans", "workflow", "workflows", "agent", "steptask", "dialect"];
                assert!(
                    !named.contains(&word.as_str()),
                    "{}:{line}: `{word}` in the engine (E-01)",
                    path.display()
                );
            }
        }
    }
}

/// Hash maps may be looked into, never walked: their order is random (E-06, E-18).
#[test]
fn the_engine_walks_no_hash_map() {
    for (path, text) in sources(&root().join("crates/engine/src")).iter().filter(|(path, _)| !is_test(path)) {
        let names: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(": HashMap<") && !line.trim_start().starts_with("//"))
            .filter_map(|line| line.split(':').next()?.split_whitespace().last())
            .collect();
        for (line, code) in code(text) {
            for name in &names {
                for walk in [".iter()", ".keys()", ".values()", ".drain(", ".into_iter()"] {
                    let found = code.contains(&format!("{name}{walk}"));
                    assert!(!found, "{}:{line}: walks the hash map `{name}`", path.display());
                }
            }
        }
    }
}

/// Ids are taken apart and put together in one place (E-35): who does it by hand forgets escapes, visits or frames.
#[test]
fn ids_are_read_by_their_parser() {
    let by_hand = regex::Regex::new(
        r"(?x)
        \b(effect|ask|id) (\s*\.0)? (\s*\.as_str\(\))? \s*\.\s*(r?split|r?find|matches)\w* \([^)]*'/'
        | \.0 \s*\.\s*(r?split|r?find|matches)\w* \([^)]*'[/~]'
        | r?split\w* \([^)]*'~'
        | EffectId\(\s*format!
        | replace\([^)]*%7E",
    )
    .unwrap();
    for seen in ["effect\n    .0\n    .rsplit_once('/')", "path.split('~')", "id.split(['/', '~'])"] {
        assert!(by_hand.is_match(seen), "{seen}");
    }
    let place = root().join("crates/engine/src/place");
    for folder in ["crates", "benches"] {
        for (path, text) in sources(&root().join(folder)) {
            let own = path.starts_with(&place) || path.ends_with("tidy.rs");
            if own || path.components().any(|part| part.as_os_str() == "target") {
                continue;
            }
            let code: String = code(&text).flat_map(|(_, line)| [line, "\n"]).collect();
            let found = by_hand.find(&code).map(|found| found.as_str());
            assert_eq!(found, None, "{}: ids are read with selvedge_engine::place", path.display());
        }
    }
}

/// Which crates of ours a crate may use (ARCHITECTURE.md).
#[test]
fn crates_use_only_what_they_may() {
    let may: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("engine", &[][..]),
        ("dialects", &["engine"][..]),
        ("store", &[][..]),
        ("runtime", &["engine", "store"][..]),
        ("http", &[][..]),
        ("sandbox", &[][..]),
        ("models", &["engine", "http", "runtime"][..]),
        ("tools", &["engine", "http", "runtime", "sandbox"][..]),
        ("host", &["engine", "dialects", "store", "runtime", "http", "models", "sandbox", "tools"][..]),
        (
            "cli",
            &["engine", "dialects", "store", "runtime", "http", "models", "sandbox", "tools", "host"][..],
        ),
    ]);
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "sim" || may.contains_key(name.as_str()), "nothing says what crate {name} may use");
    }
    for (name, allowed) in may {
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        for line in section.lines() {
            if let Some(used) = line.strip_prefix("selvedge-") {
                let used = used.split(['.', ' ', '=']).next().unwrap_or_default();
                assert!(allowed.contains(&used), "crate {name} may not use {used}");
            }
        }
    }
}

/// The host is handed its environment, its terminal and its end: a server has others.
#[test]
fn the_host_reads_no_environment_and_no_terminal() {
    const OUTSIDE: [&str; 14] = [
        "env::var",
        "env::vars",
        "env::args",
        "current_dir(",
        "current_exe(",
        "home_dir(",
        "temp_dir(",
        "stdin(",
        "stdout(",
        "stderr(",
        "println!",
        "eprint",
        "IsTerminal",
        "process::exit",
    ];
    for (path, text) in sources(&root().join("crates/host/src")) {
        for (line, code) in code(&text) {
            for outside in OUTSIDE {
                assert!(!code.contains(outside), "{}:{line}: {outside}", path.display());
            }
        }
    }
}

/// One way to call a model, a tool and an operation: the ports are implemented in models and tools, and by the
/// composition root and test doubles that wrap them.
#[test]
fn ports_are_implemented_in_adapters() {
    for krate in ["engine", "dialects", "store", "runtime", "http", "sandbox"] {
        for (path, text) in sources(&root().join(format!("crates/{krate}/src"))) {
            for (line, code) in code(&text) {
                for port in ["impl Model for", "impl Tools for", "impl Operations for"] {
                    assert!(!code.contains(port), "{}:{line}: {port}", path.display());
                }
            }
        }
    }
}

#[test]
fn nothing_is_left_undone() {
    for folder in ["crates", "benches"] {
        for (path, text) in sources(&root().join(folder)) {
            if path.ends_with("tidy.rs") || path.components().any(|c| c.as_os_str() == "target") {
                continue;
            }
            for (line, code) in code(&text) {
                for hole in ["todo!(", "unimplemented!(", "FIXME", "XXX", "HACK"] {
                    assert!(!code.contains(hole), "{}:{line}: {hole}", path.display());
                }
            }
        }
    }
}

/// Files that grow past this have a seam that nobody looked for.
#[test]
fn files_stay_small() {
    for (path, text) in sources(&root().join("crates")) {
        let lines = text.lines().count();
        assert!(is_test(&path) || lines <= 600, "{} has {lines} lines", path.display());
    }
}
