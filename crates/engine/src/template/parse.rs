//! From text to parts (D-06, D-09). The path grammar is `winnow`; openings and backslashes are a plain loop.

use std::sync::Arc;

use winnow::Parser;
use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, opt, preceded, repeat};
use winnow::error::EmptyError;
use winnow::token::{any, one_of, take_while};

use super::name::{is_name_char, is_name_start, normalized};
use super::path::{Path, Seg};
use super::render::{Part, Placeholder};
use super::slip::{self, Slip};

/// An unfinished placeholder: `{{` or `${`, a path, and then the end of the text (D-09). An error of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {offset})")]
pub struct TemplateError {
    /// Byte offset of the opening in the source text.
    pub offset: usize,
    /// What is wrong and how to write it, for people.
    pub message: String,
}

/// What stands at an opening character.
enum Opening<'t> {
    Placeholder {
        len: usize,
        path: Path,
    },
    Unfinished {
        as_written: &'t str,
        close: &'static str,
    },
    /// `{{`, a path, and one brace: text (D-09) that hardly anybody means.
    HalfClosed {
        len: usize,
        path: Path,
    },
    Text,
}

/// What a text is that ends in `{{`, a path and one brace.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// Text, as it is anywhere else (D-09).
    Text,
    /// An error, as it was for runs of edition 0.
    Error,
}

/// The forms in the order in which they are tried (D-09: the triple form first).
const FORMS: [(&str, &str); 3] = [("{{{", "}}}"), ("{{", "}}"), ("${", "}")];
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

/// Splits `text` into literal text (escapes taken out) and placeholders. No two text parts are adjacent and none is
/// empty.
pub(super) fn parse(text: &str, ending: Ending) -> Result<Vec<Part>, TemplateError> {
    parse_with(text, ending, |_| {})
}

/// Finds what is text although it is written almost like a placeholder (D-09). A checker reports those whose first
/// name means something. Offsets are bytes of `text`; empty if the text has an unfinished placeholder.
pub fn slips(text: &str) -> Vec<Slip> {
    let mut found = Vec::new();
    match parse_with(text, Ending::Text, |slip| found.push(slip)) {
        Ok(_) => found,
        Err(_) => Vec::new(),
    }
}

fn parse_with(text: &str, ending: Ending, mut slips: impl FnMut(Slip)) -> Result<Vec<Part>, TemplateError> {
    // Most texts are one part.
    let mut parts = Vec::with_capacity(1);
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{', '$']) {
        let (before, here) = rest.split_at(at);
        literal.push_str(before);
        if here.starts_with('\\') {
            rest = backslashes(here, &mut literal);
            continue;
        }
        let offset = text.len() - here.len();
        let taken = match opening(here, ending) {
            Opening::Placeholder { len, path } => {
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal).into()));
                }
                let raw = Arc::from(here.split_at(len).0);
                parts.push(Part::Placeholder(Placeholder { raw, path, offset }));
                len
            }
            Opening::Unfinished { as_written, close } => {
                return Err(unfinished(offset, as_written, close));
            }
            Opening::HalfClosed { len, path } => {
                slips(Slip::half_closed(here.split_at(len).0, path, offset));
                literal.push_str(here.split_at(1).0);
                1
            }
            // One character, not the whole opening: the next one may begin a placeholder, as in `${{ x }}`.
            Opening::Text => {
                slip::almost(here, offset).into_iter().for_each(&mut slips);
                literal.push_str(here.split_at(1).0);
                1
            }
        };
        rest = here.split_at(taken).1;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Text(literal.into()));
    }
    Ok(parts)
}

/// Takes the run of backslashes that `text` begins with, and the opening that an odd one escapes (D-09).
fn backslashes<'t>(text: &'t str, literal: &mut String) -> &'t str {
    let after = text.trim_start_matches('\\');
    let (run, _) = text.split_at(text.len() - after.len());
    if !(after.starts_with("{{") || after.starts_with("${")) {
        literal.push_str(run);
        return after;
    }
    literal.push_str(run.split_at(run.len() / 2).0);
    if run.len() % 2 == 0 {
        return after;
    }
    let (escaped, after) = after.split_at(2);
    literal.push_str(escaped);
    after
}

fn opening(text: &str, ending: Ending) -> Opening<'_> {
    for (open, close) in FORMS {
        let Some(inner) = text.strip_prefix(open) else { continue };
        let mut inner = inner.trim_start_matches(SPACES);
        let Ok(path) = path(&mut inner) else { continue };
        let as_written = text.split_at(text.len() - inner.len()).0;
        let inner = inner.trim_start_matches(SPACES);
        if let Some(after) = inner.strip_prefix(close) {
            return Opening::Placeholder { len: text.len() - after.len(), path };
        }
        let left = match ending {
            Ending::Text => inner,
            Ending::Error => inner.strip_prefix('}').unwrap_or(inner).trim_start_matches(SPACES),
        };
        // The triple form is not asked: its last two braces are an opening too, and `{{{x}}` is finished.
        if open != "{{{" && left.is_empty() {
            return Opening::Unfinished { as_written, close };
        }
        if open == "{{"
            && let Some(after) = inner.strip_prefix('}')
        {
            return Opening::HalfClosed { len: text.len() - after.len(), path };
        }
    }
    Opening::Text
}

fn unfinished(offset: usize, as_written: &str, close: &str) -> TemplateError {
    let shown: String = as_written.chars().take(60).collect();
    let open = as_written.get(..2).unwrap_or_default();
    TemplateError {
        offset,
        message: format!(
            "the placeholder `{shown}` is not closed: add `{close}`, or write `\\{open}` if it is meant as text"
        ),
    }
}

type Parsed<T> = Result<T, EmptyError>;

fn path(input: &mut &str) -> Parsed<Path> {
    let root = name.parse_next(input)?;
    let rest = repeat(0.., segment).parse_next(input)?;
    Ok(Path { root: normalized(root).into(), rest })
}

fn name<'t>(input: &mut &'t str) -> Parsed<&'t str> {
    let word = (one_of(is_name_start), take_while(0.., is_name_char)).take();
    alt((word, digit1)).parse_next(input)
}

fn segment(input: &mut &str) -> Parsed<Seg> {
    alt((
        preceded('.', name).map(|key: &str| Seg::Key(normalized(key).into())),
        delimited('[', index, ']').map(Seg::Index),
        delimited('[', quoted, ']').map(Seg::Key),
    ))
    .parse_next(input)
}

fn index(input: &mut &str) -> Parsed<i64> {
    let digits = (opt('-'), digit1).take();
    // Only a number beyond i64 fails to parse here.
    digits
        .map(|text: &str| text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
        .parse_next(input)
}

/// A JSON string. Its end is found here; whether it is one is `serde_json`'s to say.
fn quoted(input: &mut &str) -> Parsed<Arc<str>> {
    let content = repeat::<_, _, (), _, _>(
        0..,
        alt((take_while(1.., |c| c != '"' && c != '\\').void(), ('\\', any).void())),
    );
    ('"', content, '"').take().verify_map(|token: &str| serde_json::from_str(token).ok()).parse_next(input)
}
