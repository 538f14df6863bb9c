//! The code base's invariants (`ARCHITECTURE.md`), each as a test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
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

/// What a seed brings is the same everywhere: a simulated world has no clock, no files and no randomness but its own (C-18).
#[test]
fn the_world_knows_no_outside() {
    let banned =
        ["std::fs", "std::net", "std::env", "std::time", "std::process", "tokio", "RandomState", "println!"];
    for (path, text) in sources(&root().join("crates/world/src")).iter().filter(|(path, _)| !is_test(path)) {
        for (line, code) in code(text) {
            for word in banned {
                assert!(!code.contains(word), "{}:{line}: `{word}` in a simulated world", path.display());
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
        ("world", &["engine"][..]),
        ("runtime", &["engine", "store"][..]),
        ("http", &[][..]),
        ("sandbox", &[][..]),
        ("models", &["engine", "http", "runtime"][..]),
        ("tools", &["engine", "http", "runtime", "sandbox"][..]),
        (
            "host",
            &["engine", "dialects", "store", "runtime", "http", "models", "sandbox", "tools", "world"][..],
        ),
        ("evolve", &["engine", "dialects", "store", "runtime", "host"][..]),
        ("server", &["engine", "dialects", "store", "runtime", "http", "host"][..]),
        (
            "cli",
            &[
                "engine", "dialects", "store", "runtime", "http", "models", "sandbox", "tools", "world",
                "host", "evolve", "server",
            ][..],
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

/// Environment and terminal are read by the program itself, and handed in (invariant 11): a server has others. What confines a program is started
/// as a program of its own.
#[test]
fn nothing_but_the_binary_reads_environment_or_terminal() {
    let read = regex::Regex::new(
        r"(?x)
        \benv::(vars?|vars?_os|args|args_os|current_dir|current_exe|temp_dir|home_dir|set_var|remove_var)\b
        | \btempfile::(tempdir|tempfile|NamedTempFile::new)\(\)
        | \b(stdin|stdout|stderr)\(\) | \b(e?print(ln)?|dbg)! | \bis_terminal\b | \bprocess::exit\b",
    )
    .unwrap();
    let own = root().join("crates/sandbox/src/isolation/confine");
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let krate = entry.unwrap().path();
        if krate.ends_with("cli") || krate.ends_with("sim") {
            continue;
        }
        for (path, text) in sources(&krate.join("src")) {
            let program = path.starts_with(krate.join("src/bin")) || path.starts_with(&own);
            if is_test(&path) || program || path.ends_with("confine.rs") {
                continue;
            }
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for (line, code) in code(text) {
                let found = read.find(code).map(|found| found.as_str());
                assert_eq!(found, None, "{}:{line}: it is handed in", path.display());
            }
        }
    }
}

/// One way to call a model, a tool and an operation: the ports are implemented in models and tools, and by the
/// composition root and test doubles that wrap them.
#[test]
fn ports_are_implemented_in_adapters() {
    for krate in ["engine", "dialects", "store", "runtime", "http", "sandbox", "world"] {
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

/// The most files of a crate that may import each other in a circle.
const CIRCLE: usize = 4;

#[test]
fn files_import_each_other_in_small_circles() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let krate = entry.unwrap().path();
        let name = krate.file_name().unwrap().to_str().unwrap();
        let circle = largest_circle(&imports(&krate.join("src")));
        assert!(circle.len() <= CIRCLE, "{name}: {} files import each other: {circle:#?}", circle.len());
    }
}

#[test]
fn circles_of_imports_are_found() {
    let of = |text| imported(text, &["a", "b"]);
    assert_eq!(of("use crate::{c::{D, e}, f as g};"), ["c/D", "c/e", "f"]);
    assert_eq!(of("use super::{C, d::E, *};\nlet x = super::super::f();"), ["a/C", "a/d/E", "a", "f"]);
    assert_eq!(of("// use crate::c;\nuse std::fs;\npub(crate) struct S(crate::d::E);"), ["d/E"]);
    let graph = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
    let mut imports = BTreeMap::<String, BTreeSet<String>>::new();
    for (from, to) in graph {
        imports.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    assert_eq!(largest_circle(&imports), ["a", "b", "c"]);
}

/// Of each module that is a file, the others that it imports (`use crate::…`, `super::…`). The crate's root is none of
/// them: it declares all.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files: Vec<_> = sources(source).into_iter().filter(|(path, _)| !is_test(path)).collect();
    let module = |path: &Path| {
        let path = path.strip_prefix(source).unwrap().with_extension("").display().to_string();
        if ["lib", "main"].contains(&path.as_str()) { String::new() } else { path }
    };
    let modules: BTreeSet<String> = files.iter().map(|(path, _)| module(path)).collect();
    let file_of = |path: &String| {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| modules.get(&path[..end])).next_back().cloned()
    };
    let mut imports = BTreeMap::new();
    for (path, text) in &files {
        let module = module(path);
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let parts: Vec<&str> = module.split('/').filter(|part| !part.is_empty()).collect();
        let to: BTreeSet<_> = imported(text, &parts).iter().filter_map(file_of).collect();
        imports.insert(module, to);
    }
    imports
}

/// The paths in a text that begin at the crate's root or above this module.
fn imported(text: &str, module: &[&str]) -> Vec<String> {
    let code: String = code(text).flat_map(|(_, line)| [line, "\n"]).collect();
    let token = regex::Regex::new(r"\w+|::|[{},;*]").unwrap();
    let tokens: Vec<&str> = token.find_iter(&code).map(|found| found.as_str()).collect();
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = at == 0 || tokens[at - 1] != "::";
        let base = match tokens[at..] {
            ["crate", "::", ..] if begins => &[][..],
            ["super", "::", ..] => {
                let begun =
                    tokens[..at].iter().rev().take_while(|token| ["super", "::"].contains(token)).count();
                &module[..module.len().saturating_sub(begun / 2 + 1)]
            }
            _ => continue,
        };
        if tokens.get(at + 2) != Some(&"super") {
            tree(&tokens, at + 2, base, &mut found);
        }
    }
    found
}

/// Reads one tree of names from a token on, below `base`; returns where it ends.
fn tree(tokens: &[&str], mut at: usize, base: &[&str], found: &mut Vec<String>) -> usize {
    let mut path = base.to_vec();
    let is = |at: usize, token: &str| tokens.get(at) == Some(&token);
    while at < tokens.len() {
        if is(at, "{") {
            at += 1;
            while at < tokens.len() && !is(at, "}") {
                let end = tree(tokens, at, &path, found);
                at = if is(end, ",") || end == at { end + 1 } else { end };
            }
            return at + 1;
        }
        if !["::", "}", ",", ";", "*"].contains(&tokens[at]) {
            path.push(tokens[at]);
            at += 1;
        }
        if !is(at, "::") {
            break;
        }
        at += 1;
    }
    found.push(path.join("/"));
    if is(at, "as") { at + 2 } else { at }
}

/// The largest set of files that all lead to each other.
fn largest_circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reached = |from: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(next) = todo.pop() {
            todo.extend(imports.get(next).into_iter().flatten().filter(|to| seen.insert((*to).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, _> = imports.keys().map(|from| (from, reached(from))).collect();
    let circle = |from: &String| {
        let to = reached[from].iter();
        to.filter(|to| reached.get(to).is_some_and(|back| back.contains(from))).cloned().collect::<Vec<_>>()
    };
    imports.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

/// A module with modules in it is `foo.rs` beside `foo/`.
#[test]
fn modules_are_named_after_their_files() {
    for (path, _) in sources(&root().join("crates")) {
        assert!(!path.ends_with("mod.rs"), "{} is named after nothing", path.display());
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
