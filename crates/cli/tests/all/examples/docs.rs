//! The README and the documents under `docs/` that show commands do what they show.
//!
//! A fenced block whose opening names a file (```` ```json plan.json ````) is that file; one of `mermaid` is what `graph` prints of
//! the file. In a `console` block `$ …` is a command for a shell, with a `\` at the end of a line that goes on, and what follows
//! is all that it prints. `[…]` stands for any text within a line, and alone on its line for any lines, none too.

use super::world::{Done, Example, copied, examples, finish};
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
            Some(("mermaid", name)) => found.push(Block::Command {
                line: format!("selvedge graph {name}"),
                expected: body.into_iter().map(str::to_owned).collect(),
            }),
            Some((_, name)) => {
                found.push(Block::File { name: name.to_owned(), text: body.join("\n") });
            }
            None if opening == "console" => {
                for line in body {
                    match (line.strip_prefix("$ "), found.last_mut()) {
                        (Some(line), _) => {
                            found.push(Block::Command { line: line.to_owned(), expected: Vec::new() });
                        }
                        (None, Some(Block::Command { line: begun, .. })) if begun.ends_with('\\') => {
                            begun.push('\n');
                            begun.push_str(line);
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

/// Whether a line is as expected, whatever times it has.
fn fits(line: &str, expected: &str) -> bool {
    fits_as_it_is(line, expected) || fits_as_it_is(&timeless(line), &timeless(expected))
}

fn fits_as_it_is(line: &str, expected: &str) -> bool {
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

/// A line without the figures of its durations (`1.04 s`, `40 ms`, `<1 ms`), and without the spaces around them, which line them up.
fn timeless(line: &str) -> String {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |figure: &str, unit: &str| match unit {
        "s" => figure.split_once('.').is_some_and(|(seconds, rest)| digits(seconds) && digits(rest)),
        "ms" => digits(figure.strip_prefix('<').unwrap_or(figure)),
        _ => false,
    };
    let mut words: Vec<&str> = Vec::new();
    let mut behind_time = false;
    for word in line.split(' ') {
        let letters = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
        let (unit, rest) = word.split_at(letters);
        if words.last().is_some_and(|figure| is_time(figure, unit)) {
            words.pop();
            while words.last().is_some_and(|word| word.is_empty()) {
                words.pop();
            }
            words.extend(["TIME", rest]);
            behind_time = true;
        } else if !(behind_time && word.is_empty()) {
            words.push(word);
            behind_time = false;
        }
    }
    words.join(" ")
}

fn holds(document: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let mut world = Example::new("empty");
    world.folder = world.state.path().join("project");
    // What the README shows, it shows in a checkout.
    copied(&examples(), &world.folder.join("examples"));
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
fn readme() {
    holds("README.md");
}

#[test]
fn concepts() {
    holds("docs/concepts.md");
}

#[test]
fn tutorial() {
    holds("docs/tutorial.md");
}

#[test]
fn workflows() {
    holds("docs/workflows.md");
}

#[test]
fn agent() {
    holds("docs/agent.md");
}

#[test]
fn archives() {
    holds("docs/archives.md");
}

#[test]
fn simulation() {
    holds("docs/simulation.md");
}

/// S-03: the API, asked as its document asks it.
#[test]
fn api() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        eprintln!("curl is not installed: the session of docs/api.md is left out");
        return;
    }
    holds("docs/api.md");
}

#[test]
fn time_travel() {
    holds("docs/time-travel.md");
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
        ("  12.04 s  done  load, 1 call", "  0.15 s  done  load, 1 call", true),
        ("  40 ms  done  load 1.04 s, 1 call", "  <1 ms  done  load  7 ms, 1 call", true),
        ("load  ███  770 ms          open", "load  ███  <1 ms   open", true),
        ("  done  load  2.5 s, 1 call", "  done  load  0.15 s, 2 calls", false),
        ("the second", "the first", false),
    ] {
        assert_eq!(fits(line, expected), fitting, "{line} / {expected}");
    }
    let expected = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(fit(&["a", "b", "c"], &expected(&["a", "[…]"])));
    assert!(fit(&["a"], &expected(&["a", "[…]"])));
    assert!(!fit(&["a", "b"], &expected(&["a"])));
    assert!(!fit(&[], &expected(&["a"])));
}
