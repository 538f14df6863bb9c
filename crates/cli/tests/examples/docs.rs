//! The documents under `docs/` that show commands do what they show.
//!
//! A fenced block whose opening names a file (```` ```json plan.json ````) is that file. In a `console` block `$ …` is a
//! command for a shell, and what follows is all that it prints. `[…]` stands for any text within a line, and alone on
//! its line for any lines, none too.

use crate::world::{Done, Example, finish};
use std::path::Path;

/// What a document holds, in its order.
enum Block {
    File { name: String, text: String },
    Command { line: String, expected: Vec<String> },
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(opening) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match opening.split_once(' ') {
            Some((_, name)) => {
                found.push(Block::File { name: name.to_owned(), text: body.join("\n") });
            }
            None if opening == "console" => {
                for line in body {
                    match (line.strip_prefix("$ "), found.last_mut()) {
                        (Some(line), _) => {
                            found.push(Block::Command { line: line.to_owned(), expected: Vec::new() });
                        }
                        (None, Some(Block::Command { expected, .. })) => expected.push(line.to_owned()),
                        (None, _) => panic!("output before any command: {line}"),
                    }
                }
            }
            None => {}
        }
    }
    found
}

/// Whether lines are as expected.
fn fit(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((any, rest)) if any == "[…]" => (0..=lines.len()).any(|at| fit(&lines[at..], rest)),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, lines)| fits(line, first) && fit(lines, rest))
        }
    }
}

fn fits(line: &str, expected: &str) -> bool {
    let mut parts = expected.split("[…]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

fn holds(document: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let mut world = Example::new("empty");
    world.folder = world.state.path().join("project");
    std::fs::create_dir(&world.folder).unwrap();
    let mut commands = 0;
    for block in blocks(&text) {
        match block {
            Block::File { name, text } => {
                let file = world.folder.join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            Block::Command { line, expected } => {
                commands += 1;
                let done = shell(&world, &line);
                let lines: Vec<&str> = done.stdout.lines().collect();
                assert!(
                    fit(&lines, &expected),
                    "{document}: $ {line}\nexpected:\n{}\ngot:\n{}",
                    expected.join("\n"),
                    done.stdout
                );
            }
        }
    }
    assert!(commands > 3, "{document} shows commands");
}

/// Runs a line of a shell with the binary on PATH; both streams are one.
fn shell(world: &Example, line: &str) -> Done {
    let bin = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = world.command_of(Path::new("sh"), &["-c", &format!("exec 2>&1\n{line}")]);
    finish(command.env("PATH", path).env("NO_COLOR", "1").spawn().unwrap())
}

#[test]
fn concepts() {
    holds("concepts.md");
}

#[test]
fn tutorial() {
    holds("tutorial.md");
}

#[test]
fn lines_fit_what_is_expected_of_them() {
    for (line, expected, fitting) in [
        ("a b c", "a […] c", true),
        ("a b c", "[…]", true),
        ("a b c", "a […] d", false),
        ("a b c d", "a […] c", false),
        ("abc", "abc", true),
        ("abcd", "abc", false),
        ("a x b y c", "a […] b […] c", true),
    ] {
        assert_eq!(fits(line, expected), fitting, "{line} / {expected}");
    }
    let expected = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(fit(&["a", "b", "c"], &expected(&["a", "[…]"])));
    assert!(fit(&["a"], &expected(&["a", "[…]"])));
    assert!(!fit(&["a", "b"], &expected(&["a"])));
    assert!(!fit(&[], &expected(&["a"])));
}
